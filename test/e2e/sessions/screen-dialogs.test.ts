// Dialogs that only a screen shows, over HTTP: whoever talks meanwhile answers none; keys and answers do, as they say.
import assert from 'node:assert/strict'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { assertProblem, eventually } from '../../support/http.ts'
import { type Running, run } from '../../support/running.ts'
import { newSessionCity, type SessionApi, sessionPath } from '../../support/session-api.ts'

const program = (file: string) => JSON.stringify(join(import.meta.dirname, '../../support', file))
const NODE = JSON.stringify(process.execPath)
/** Reads lines, and asks by a pointer, by letters, and for more than one key. */
const LINES = String.raw`
clear='\033[2J\033[H'
printf 'Which one?\n\n❯ 1. This\n  2. That\n'; read -r one
printf "$clear"'And then?\n\n  [a] Go\n  [s] Stop\n'; read -r two
printf "$clear"'How many?\n\n❯ 1. Number 1\n'; for n in {2..11}; do echo "  $n. Number $n"; done; read -r three
printf "$clear"'chosen %s %s %s\n' "$one" "$two" "$three"; exec cat`
/**
 * `asker` chooses by the first key, whichever that is; `foreign` asks in words of no language that is known; `deaf` loses
 * what is typed in its first seconds, though its prompt is there.
 */
const PROVIDERS = `
[providers.asker]
command = ${NODE}
args = [${program('tui-agent.ts')}, "--deaf", "1"]
prompt_mode = "none"
delivery = "tui"
ready_prompt_prefix = "❯ "
[providers.deaf]
command = ${NODE}
args = [${program('tui-agent.ts')}, "--deaf", "4000"]
prompt_mode = "none"
delivery = "tui"
ready_prompt_prefix = "❯ "
[providers.menu]
command = "bash"
args = ["-c", "printf 'Run rm -rf build?\\n\\n❯ 1. Yes, proceed\\n  2. No\\n'; cat > keys"]
prompt_mode = "none"
[providers.lines]
command = "bash"
args = ["-c", ${JSON.stringify(LINES)}]
prompt_mode = "none"
[providers.nameless]
command = "bash"
args = ["-c", "printf 'Which fruit?\\n\\n❯ Apples\\n  Pears\\n'; read -r fruit; echo ate $fruit; exec cat"]
prompt_mode = "none"
[providers.newcomer]
command = "bash"
args = ["-c", "stty raw -echo; printf 'Which account?\\r\\n\\r\\n❯ 1. Mine\\r\\n  2. Theirs\\r\\n'; read -rN1 key; echo $key > account; printf '\\\\033[2J\\\\033[H❯ '; cat > typed"]
prompt_mode = "none"
delivery = "tui"
ready_prompt_prefix = "❯ "
[providers.foreign]
command = ${NODE}
args = [${program('dialog-agent.ts')}, "claude"]
prompt_mode = "none"
delivery = "tui"
ready_prompt_prefix = "❯ "
`
/** Longer than a screen has to be quiet before anything is typed. */
const LONG_ENOUGH_MS = 1_500
/** By then a screen that does not move has been looked at for the last time. */
const LOOKED_AGAIN_MS = 4_000

describe('dialogs on screens', { concurrency: 3, timeout: 120_000 }, () => {
  let running: Running
  let city: SessionApi
  before(async () => {
    running = await run()
    city = await newSessionCity(running, 'alpha')
    await city.configure(PROVIDERS)
  })
  after(() => running[Symbol.asyncDispose]())

  const to = (id: string, rest: string, body: object) => city.send('POST', `${sessionPath(id)}${rest}`, body)
  const screen = async (id: string) => JSON.stringify((await city.done('GET', `${sessionPath(id)}/screen`)).lines)
  const shows = (id: string, text: string) =>
    eventually(`the screen shows ${text}`, async () => ((await screen(id)).includes(text) ? true : undefined))

  async function asked(id: string, ms = LONG_ENOUGH_MS) {
    const pending = await eventually('what it asks is announced', () => city.pending(id))
    await eventually('it has been there for a while', async () => {
      const since = Date.parse(String((await city.get(id)).activity_since))
      return Date.now() - since > ms ? true : undefined
    })
    return pending
  }

  test('no nudge answers one, however it is delivered; a key that is pressed does, and then the nudges are heard', async () => {
    const id = await city.start({ kind: 'provider', name: 'asker' })
    await city.message(id, 'ask rm -rf build')
    const pending = await asked(id)
    for (const delivery of ['immediate', 'wait_idle', 'queue'])
      await to(id, '/nudge', { message: `1 ${delivery}`, delivery })
    await asked(id)
    assert.equal((await city.pending(id))?.request_id, pending.request_id)
    assert.doesNotMatch(await screen(id), /chosen/)
    assert.equal((await to(id, '/keys', { keys: ['3'] })).status, 200)
    await shows(id, 'heard 1 ')
    const { status, text } = await city.send('GET', `${sessionPath(id)}/transcript?format=raw&limit=1000`)
    assert.equal(status, 200, text)
    assert.match(text, /chosen 3/)
    assert.doesNotMatch(text, /chosen [^3]/)
    await city.forget(id)
  })

  test('a program that reads lines asks by a menu as any other does, however long it stands there', async () => {
    const id = await city.start({ name: 'menu' })
    const { options } = await asked(id, LOOKED_AGAIN_MS)
    assert.deepEqual(options, ['Yes, proceed', 'No'])
    for (const delivery of ['immediate', 'wait_idle', 'queue'])
      assert.equal((await to(id, '/nudge', { message: 'a nudge', delivery })).status, 201)
    assertProblem(await to(id, '/messages', { message: 'go on' }), 'pending-interaction')
    await asked(id)
    assert.equal(readFileSync(join(city.dir, 'keys'), 'utf8'), '')
    assert.equal((await to(id, '/keys', { keys: ['2', 'Enter'], expect_screen: '❯ 1. Yes' })).status, 200)
    await eventually('the key is read', () => readFileSync(join(city.dir, 'keys'), 'utf8') === '2\n' || undefined)
  })

  test('a program that reads lines gets the Enter behind its answer', async () => {
    const id = await city.start({ name: 'lines' })
    for (const option of ['That', 'Stop', 'Number 11']) {
      await eventually(`it offers ${option}`, async () => {
        const { options = [] } = (await city.pending(id)) ?? {}
        return options.includes(option) || undefined
      })
      await city.done('POST', `${sessionPath(id)}/respond`, { action: 'option', option_id: option })
    }
    await shows(id, 'chosen 2 s 11')
  })

  test('a program that reads lines and names no key for its options is not given arrows: whoever answers is told at once', async () => {
    const id = await city.start({ name: 'nameless' })
    await asked(id, 0)
    const refused = await to(id, '/respond', { action: 'option', option_id: 'Pears' })
    assertProblem(refused, 'invalid-interaction', /session keys.*session attach/)
    assert.equal((await to(id, '/keys', { keys: [...'Pears', 'Enter'] })).status, 200)
    await shows(id, 'ate Pears')
  })

  test('a question that is none of the known ones, asked while a harness starts, waits for its answer as long as any other', async () => {
    const { id } = await city.accept({ name: 'newcomer', message: 'hello' })
    const { prompt, options } = await asked(id)
    assert.deepEqual([prompt, options], ['Which account?', ['Mine', 'Theirs']])
    await city.until(id, 'waits for longer than a start may take', ({ state }) => state === 'active')
    await city.done('POST', `${sessionPath(id)}/respond`, { action: 'option', option_id: 'Theirs' })
    await eventually('the message is heard', () => {
      const typed = join(city.dir, 'typed')
      return (existsSync(typed) && readFileSync(typed, 'utf8').includes('hello')) || undefined
    })
    assert.equal(readFileSync(join(city.dir, 'account'), 'utf8'), '2\n')
  })

  test('an agent that is slow to ask is not told Enter twice: nothing is chosen', async () => {
    const id = await city.start({ kind: 'provider', name: 'asker' })
    await city.message(id, 'late 4000 ask rm -rf build')
    await asked(id)
    assert.doesNotMatch(await screen(id), /chosen/)
    assert.equal((await to(id, '/keys', { keys: ['3'] })).status, 200)
    await shows(id, 'chosen 3')
    await city.forget(id)
  })

  test('what a harness loses that has drawn its prompt and does not read yet is typed anew, and entered once', async () => {
    const id = await city.start({ kind: 'provider', name: 'deaf' })
    await city.message(id, 'are you there')
    await shows(id, 'heard are you there')
    await city.message(id, 'and now')
    await shows(id, 'heard and now')
    const { text } = await city.send('GET', `${sessionPath(id)}/transcript?format=raw&limit=1000`)
    assert.equal(text.split('heard are you there').length, 2, text)
    await city.forget(id)
  })

  test('a message that ends with a backslash is entered as well, and what comes behind it is heard', async () => {
    const id = await city.start({ kind: 'provider', name: 'asker' })
    for (const message of ['look into C:\\temp\\', 'and now']) {
      await city.message(id, message)
      await shows(id, JSON.stringify(`heard ${message}`).slice(1, -1))
    }
    await city.forget(id)
  })

  test('stop says that a turn ended once it is seen to, not where the screen no longer says that it works', async () => {
    const id = await city.start({ kind: 'provider', name: 'asker' })
    await city.message(id, 'work 8000')
    await city.until(id, 'works', ({ activity }) => activity === 'in-turn')
    const { ended } = await city.done('POST', `${sessionPath(id)}/stop`)
    assert.equal(ended, true)
    assert.equal((await city.get(id)).activity, 'idle')
    await city.forget(id)
  })

  test('whoever approves what no option says for certain is told the options, and nothing is chosen', async () => {
    const id = await city.start({ kind: 'provider', name: 'foreign' })
    await city.message(id, 'dialog 1')
    const { request_id: requestId } = await asked(id)
    for (const action of ['approve', 'approve_always', 'deny']) {
      const refused = await to(id, '/respond', { action, request_id: requestId })
      assertProblem(refused, 'invalid-interaction', /1 \(Ano, smazat\), 2 \(Ne\)/)
      assert.equal(refused.status, 409)
    }
    assert.equal((await city.pending(id))?.request_id, requestId)
    const answered = await to(id, '/respond', { action: 'option', option_id: '2', request_id: requestId })
    assert.equal(answered.status, 200, answered.text)
    await shows(id, '● Ne')
    await city.until(id, 'asks no more', ({ pending }) => pending === undefined)
    await city.forget(id)
  })
})
