/** Texts of strangers in front of real agents of every runtime: what is no text never arrives, the rest arrives whole. */
import assert from 'node:assert/strict'
import { existsSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { test } from 'node:test'
import { isDeepStrictEqual } from 'node:util'
import { systemClock } from '../../src/kernel/clock.ts'
import { plainText } from '../../src/messaging/hostile-text.ts'
import { createSubprocessRuntime } from '../../src/runtimes/subprocess.ts'
import { AcpStage } from '../support/acp-run.ts'
import { hostileTexts, KEYS } from '../support/hostile-texts.ts'
import { message, soon, TestCity, until } from './conformance.ts'

const RAW_AGENT = resolve(import.meta.dirname, '../support/raw-agent.ts')
const make = (city: string) =>
  createSubprocessRuntime({ clock: systemClock, env: { ...process.env, XDG_RUNTIME_DIR: city }, home: city })
const TEXTS = hostileTexts('touch harmed')
const SEPARATE = '\r'
/** Some of them are long. */
const summary = (texts: readonly string[]) => JSON.stringify(texts.map((text) => text.slice(0, 200)))

for (const mode of ['bracketed', 'plain'] as const) {
  test(`a harness that reads keys, ${mode}: each message is its text and one Enter, and nothing else is typed`, async () => {
    await using city = new TestCity(make)
    const got = join(city.path, 'got')
    const args = [RAW_AGENT, got, mode]
    const spec = city.spec({ command: process.execPath, args, io: 'pty', delivery: 'tui', debounceMs: 0 })
    const { agent } = city.follow(await city.runtime().start(spec, soon()))
    await city.printed(spec, 'ready')
    const around = mode === 'bracketed' ? (text: string) => `\u001b[200~${text}\u001b[201~` : (text: string) => text
    const expected = TEXTS.map((text) => `${around(plainText(text))}${SEPARATE}`).join('')
    for (const [at, text] of TEXTS.entries())
      assert.deepEqual(await agent.deliver(message(at + 1, text), soon()), { state: 'delivered' })
    const length = Buffer.byteLength(expected)
    await until('all of it has arrived', () => existsSync(got) && readFileSync(got).length >= length)
    const typed = readFileSync(got, 'utf8')
    assert.ok(typed === expected, summary(typed.split(SEPARATE)))
    // By what is looked for, and not by the function that was used: all that is no text is a mark of ours, or the Enter.
    const without = typed.replaceAll('\u001b[200~', '').replaceAll('\u001b[201~', '').replaceAll(SEPARATE, '')
    assert.ok(!KEYS.test(without), summary([without]))
    assert.equal(typed.split(SEPARATE).length - 1, TEXTS.length)
  })
}

test('a message of nothing but keys is refused: an Enter alone might answer what is asked', async () => {
  await using city = new TestCity(make)
  const got = join(city.path, 'got')
  const args = [RAW_AGENT, got, 'bracketed']
  const spec = city.spec({ command: process.execPath, args, io: 'pty', delivery: 'tui', debounceMs: 0 })
  const { agent } = city.follow(await city.runtime().start(spec, soon()))
  await city.printed(spec, 'ready')
  for (const [at, text] of ['\u001b\u0003', '\r', '\u0085 \u009b'].entries()) {
    const outcome = await agent.deliver(message(at + 1, text), soon())
    assert.deepEqual([outcome.state, outcome.state === 'failed' && outcome.code], ['failed', 'refused'])
  }
  assert.equal(existsSync(got), false)
})

for (const io of ['pty', 'pipes'] as const) {
  test(`a shell on ${io === 'pty' ? 'a terminal' : 'pipes'} takes each for one line, and runs nothing that stands in it`, async () => {
    await using city = new TestCity(make)
    const spec = city.spec({ command: 'bash', args: ['--norc', '--noprofile'], io })
    const { agent } = city.follow(await city.runtime().start(spec, soon()))
    const texts = [...TEXTS.filter((text) => !text.includes('<')), "echo 'the''-end'"]
    for (const [at, text] of texts.entries())
      assert.deepEqual(await agent.deliver(message(at + 1, text), soon()), { state: 'delivered' })
    await city.printed(spec, 'the-end')
    assert.equal(existsSync(join(city.path, 'harmed')), false)
  })
}

test('an agent behind the protocol is told the text alone', async () => {
  await using stage = new AcpStage()
  const session = await stage.start()
  for (const text of TEXTS) await session.turn(text)
  const told = readFileSync(join(stage.root, 'history'), 'utf8')
    .split('\n')
    .filter((line) => line !== '')
    .map((line): { role: string; text: string } => JSON.parse(line))
    .filter(({ role }) => role === 'user')
    .map(({ text }) => text)
  assert.ok(isDeepStrictEqual(told, TEXTS.map(plainText)), summary(told))
  for (const text of told) assert.ok(!KEYS.test(text), summary([text]))
  const shown = (await session.records()).flatMap((record) => (record.kind === 'user' ? [record.text] : []))
  assert.ok(isDeepStrictEqual(shown, told), `its transcript says ${summary(shown)}`)
})
