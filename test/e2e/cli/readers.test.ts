// Who follows something quiet for a reader that has enough (`| head -1`) ends with the reader, and not at the next event.
import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { resolve } from 'node:path'
import { after, before, test } from 'node:test'
import { cliHere } from '../../support/cli.ts'
import { eventually } from '../../support/http.ts'
import { newCity, type Running, run } from '../../support/running.ts'

const ENTRY = resolve(import.meta.dirname, '../../../tools/svcctl.mjs')
const isGnu = /GNU coreutils/.test(spawnSync('tail', ['--version'], { encoding: 'utf8' }).stdout ?? '')
const skip = isGnu ? false : 'the tail of this system is not that of GNU'

let running: Running
before(async () => {
  running = await run()
  await newCity(running.api, running.work, 'alpha')
  const env = { SVC_API: running.server.url, SVC_CITY: 'alpha' }
  for (const words of [
    ['session', 'create', 'shell', '--provider', '--alias', 'sh', '--runtime', 'subprocess', '--wait'],
    ['session', 'message', 'sh', 'echo said-$((40+2))', '--wait'],
    ['event', 'emit', 'demo.shown'],
  ]) {
    const { code, err } = await cliHere(words, { env })
    assert.equal(code, 0, err)
  }
  await eventually('the shell has answered', async () => {
    const { out } = await cliHere(['session', 'logs', 'sh'], { env })
    return /said-42/.test(out) || undefined
  })
})
after(() => running[Symbol.asyncDispose]())

for (const words of [
  'session logs -f sh',
  'events --follow --since 1h --type demo.shown',
  'api GET /v0/city/alpha/events/stream?after_seq=0&type=demo.shown',
])
  test(`svcctl ${words} | head -1 ends on a quiet city`, { skip, timeout: 30_000 }, async () => {
    const quoted = words
      .split(' ')
      .map((word) => `'${word}'`)
      .join(' ')
    const script = `("$0" "$1" ${quoted}; echo "code $?" >&2) | head -1`
    const env = { ...process.env, SVC_HOME: running.server.home, SVC_API: running.server.url, SVC_CITY: 'alpha' }
    const shell = spawn('bash', ['-c', script, process.execPath, ENTRY], { env, stdio: ['ignore', 'pipe', 'pipe'] })
    let [out, err] = ['', '']
    shell.stdout.on('data', (text) => {
      out += text
    })
    shell.stderr.on('data', (text) => {
      err += text
    })
    await once(shell, 'close')
    assert.equal(err.trim().split('\n').at(-1), 'code 0', err)
    assert.match(out, /^.+\n$/)
  })
