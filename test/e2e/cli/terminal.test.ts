// What others wrote cannot drive the terminal of whoever looks at it; a pipe gets it byte for byte.
import assert from 'node:assert/strict'
import { resolve } from 'node:path'
import { test } from 'node:test'
import { spawn } from '@lydell/node-pty'
import { cli } from '../../support/cli.ts'
import { newCity, run } from '../../support/running.ts'

const ENTRY = resolve(import.meta.dirname, '../../../tools/svcctl.mjs')
const HOSTILE = 'a\u009b2J\u009d0;x\u009c\u202egnp.exe\u2066\u007f\u001b[2J'
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for.
const DRIVES_A_TERMINAL = /[\p{Cc}--[\t\n\r\u{1b}]]|[\u202a-\u202e\u2066-\u2069]/v

/** What the program writes to a terminal of its own. */
async function onTerminal(home: string, words: readonly string[]): Promise<string> {
  const { SVC_API: _1, SVC_CITY: _2, ...rest } = process.env
  const env = { ...rest, SVC_HOME: home, TERM: 'xterm-256color' }
  const terminal = spawn(process.execPath, [ENTRY, ...words], { cols: 400, rows: 50, env })
  let text = ''
  terminal.onData((data) => {
    text += data
  })
  await new Promise((done) => terminal.onExit(done))
  return text
}

test('events, lists and JSON of others leave the terminal alone, and are exact in a pipe', {
  timeout: 60_000,
}, async () => {
  await using running = await run()
  await newCity(running.api, running.work, 'alpha')
  const emitted = await running.api.post('/v0/city/alpha/events', {
    type: 'demo.shown',
    actor: 'ann',
    message: HOSTILE,
    payload: { text: HOSTILE },
  })
  assert.equal(emitted.status, 201, emitted.text)
  const bead = await running.api.post('/v0/city/alpha/beads', { title: HOSTILE.replaceAll(/\p{Cc}/gu, '') })
  assert.equal(bead.status, 201, bead.text)
  const { home } = running.server
  for (const words of [
    ['events', '--city', 'alpha', '--type', 'demo.shown'],
    ['events', '--city', 'alpha', '--type', 'demo.shown', '--json'],
    ['api', 'GET', '/v0/city/alpha/events?type=demo.shown'],
    ['bead', 'list', '--city', 'alpha'],
    ['bead', 'list', '--city', 'alpha', '-o', 'json'],
  ]) {
    const shown = await onTerminal(home, words)
    assert.match(shown, /gnp\.exe/, words.join(' '))
    assert.doesNotMatch(shown, DRIVES_A_TERMINAL, words.join(' '))
    assert.ok(!shown.includes('\u001b[2J'), words.join(' '))
  }
  const { out } = await cli(['events', '--city', 'alpha', '--type', 'demo.shown', '--json'], {
    env: { SVC_HOME: home },
  })
  assert.equal(JSON.parse(out).message, HOSTILE)
  assert.ok(out.includes('\u009b2J') && out.includes('\u202e'), 'nothing is added to what is piped')
})
