/** The terminal of a session over HTTP: seen, followed, typed into, sized, by several at once. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { after, before, suite, test } from 'node:test'
import { codePoint } from '../../support/code-point.ts'
import { at } from '../../support/document.ts'
import { assertProblem, eventually } from '../../support/http.ts'
import { fc } from '../../support/random.ts'
import { type Running, run, runAgain } from '../../support/running.ts'
import { newSessionCity, SessionApi, sessionPath } from '../../support/session-api.ts'
import { openTerminal } from '../../support/terminal-stream.ts'

suite('terminals of sessions', { timeout: 180_000 }, () => {
  let running: Running
  let city: SessionApi
  before(async () => {
    running = await run()
    city = await newSessionCity(running, 'alpha')
  })
  after(() => running[Symbol.asyncDispose]())

  const to = (id: string, rest: string, body: object) => city.send('POST', `${sessionPath(id)}${rest}`, body)
  const type = (id: string, viewer: string, seq: number, text: string) =>
    to(id, '/terminal/input', { viewer, seq, text })
  const screen = (id: string, query = '') => city.done('GET', `${sessionPath(id)}/screen${query}`)
  const shows = (id: string, text: string) =>
    eventually(`the screen shows ${text}`, async () => {
      const { lines } = await screen(id)
      return JSON.stringify(lines).includes(text) ? true : undefined
    })

  test('what a person types is typed once and in its order, whatever order it comes in', async () => {
    const id = await city.start()
    await using terminal = await openTerminal(city, id)
    const parts = [...'echo typed-$((6*7))\r']
    const answers = await Promise.all(
      parts
        .map((text, at) => ({ text, seq: at + 1 }))
        .toReversed()
        .map(({ text, seq }) => type(id, 'me', seq, text)),
    )
    for (const { status, text } of answers) assert.equal(status, 200, text)
    await terminal.shows(/typed-42/)
    const again = await type(id, 'me', 3, 'X')
    assert.deepEqual([again.status, at(again.body, 'typed')], [200, false])
    const sent = await to(id, '/terminal/input', {
      viewer: 'me',
      seq: parts.length + 1,
      data: Buffer.from('echo bytes-é\r').toString('base64'),
    })
    assert.equal(at(sent.body, 'typed'), true)
    await terminal.shows(/^bytes-é/m)
    const gap = await type(id, 'me', parts.length + 5, 'X')
    assertProblem(gap, 'session-conflict', `conflict: input ${parts.length + 2} of viewer me has not come`)
    assertProblem(await type(id, 'other', 2, 'X'), 'session-conflict')
    for (const body of [
      {},
      { text: 'a', data: 'YQ==' },
      { data: 'not base64!' },
      { text: 'x'.repeat(70_000) },
      { text: 'é'.repeat(40_000) },
    ])
      assert.match(String((await to(id, '/terminal/input', { viewer: 'me', seq: 99, ...body })).status), /^4(00|22)$/)
    await city.forget(id)
  })

  test('a viewer that comes later, or comes back, sees the same screen', async () => {
    const id = await city.start()
    await using first = await openTerminal(city, id)
    await type(id, 'me', 1, "printf '\\033[31mred\\033[m \\033[1;44mbold\\033[m\\n'; printf 'wide 漢字 é\\n'\r")
    await first.shows(/^wide 漢字 é/m)
    await using second = await openTerminal(city, id)
    await second.shows(/^wide 漢字 é/m)
    await eventually('both show the same', async () => (first.looks() === second.looks() ? true : undefined))
    const coloured = await screen(id, '?format=ansi')
    assert.match(JSON.stringify(coloured.lines), /\\u001b\[0;31mred/)
    const last = first.lastId
    await first.close()
    await type(id, 'me', 2, 'echo while-away\r')
    await second.shows(/^while-away/m)
    await using back = await openTerminal(city, id, { after: last })
    await eventually('what came meanwhile', async () => (back.bytes.includes('while-away') ? true : undefined))
    assert.ok(!back.events.includes('screen'), 'it goes on where it was')
    for (const cursor of ['99-0', '1-999999999']) {
      await using lost = await openTerminal(city, id, { after: cursor })
      await lost.shows(/^while-away/m)
      assert.equal(lost.events[0], 'screen')
    }
    await city.forget(id)
  })

  test('the terminal has the size of who typed last', async () => {
    const id = await city.start()
    const size = (viewer: string | undefined, cols: number, rows: number) =>
      to(id, '/terminal/size', { ...(viewer === undefined ? {} : { viewer }), cols, rows }).then(({ body }) => body)
    await using one = await openTerminal(city, id, { viewer: 'one' })
    assert.deepEqual(await size('one', 90, 20), { cols: 90, rows: 20 })
    await one.resizedTo(90, 20)
    await type(id, 'one', 1, 'stty size\r')
    await one.shows(/^20 90/m)
    {
      await using two = await openTerminal(city, id, { viewer: 'two' })
      assert.deepEqual(await size('two', 60, 15), { cols: 90, rows: 20 }, 'who only looks changes nothing')
      await type(id, 'two', 1, 'stty size\r')
      await two.shows(/^15 60/m)
      await one.resizedTo(60, 15)
      await type(id, 'one', 2, 'stty size\r')
      await two.resizedTo(90, 20)
      await type(id, 'two', 2, 'true\r')
      await one.resizedTo(60, 15)
    }
    await one.resizedTo(90, 20)
    assert.deepEqual(await size(undefined, 100, 30), { cols: 100, rows: 30 })
    for (const wrong of [
      { cols: 1, rows: 24 },
      { cols: 80, rows: 0 },
      { cols: 5000, rows: 24 },
      { cols: 80.5, rows: 24 },
    ])
      assert.equal((await to(id, '/terminal/size', wrong)).status, 422)
    await city.forget(id)
  })

  test('a program with a screen of its own is seen as it is, and leaves the other one behind', async () => {
    const id = await city.start()
    await city.message(
      id,
      'echo before; less +G -X /etc/passwd >/dev/null 2>&1; printf "\\033[?1049h\\033[2J\\033[5;7Hown\\033[?25l\\033[?1h"',
    )
    await shows(id, 'own')
    const { alternate, cursor } = await screen(id)
    assert.equal(alternate, true)
    assert.equal(at(cursor, 'visible'), false)
    await using terminal = await openTerminal(city, id)
    await terminal.shows(/own/)
    assert.equal(terminal.isAlternate, true)
    // Cursor keys are those that the program has asked for.
    await to(id, '/keys', { keys: ['C-u', ..."printf '\\033[?1049l'; cat -v", 'Enter', 'Up', 'C-d'] })
    await terminal.shows(/before/)
    await city.forget(id)
  })

  test('keys of bots: names, text, and nothing where the screen is another one', async () => {
    const id = await city.start()
    await shows(id, 'ready>')
    const differs = await to(id, '/keys', { keys: ['x', 'Enter'], expect_screen: 'Do you trust' })
    assertProblem(differs, 'screen-differs')
    const typed = await to(id, '/keys', { keys: [...'cat -v', 'Enter'], expect_screen: 'ready>' })
    assert.equal(typed.status, 200, typed.text)
    await to(id, '/keys', { keys: ['Escape', 'Up', 'F5', 'M-x', 'S-Tab', 'é', 'Enter'] })
    await shows(id, '^[^[[A^[[15~^[x^[[Z')
    await to(id, '/keys', { keys: ['C-c'] })
    await shows(id, '^C')
    const unknown = await to(id, '/keys', { keys: ['Enter', 'F13'] })
    assertProblem(unknown, 'validation-failed', /`F12`|F1/)
    assert.match(unknown.text, /body\.keys\[1\]/)
    for (const keys of [[], ['a\u0003b'], ['C-é'], [''], ['echo'], ['enter']])
      assert.equal((await to(id, '/keys', { keys })).status, 422)
    await city.forget(id)
  })

  test('somebody attends a session while a stream is open, and no longer', async () => {
    const id = await city.start()
    {
      await using _ = await openTerminal(city, id)
      await city.until(id, 'is attached', ({ attached }) => attached)
    }
    // Long before the minute is over for which it is still not restarted.
    await city.until(id, 'is not attached', ({ attached }) => !attached)
    await city.forget(id)
  })

  test('the stream tells the end behind the last output', async () => {
    const id = await city.start()
    await using terminal = await openTerminal(city, id)
    // What is there before the stream begins comes as its screen.
    await terminal.shows(/ready>/)
    await type(id, 'me', 1, 'for i in $(seq 2000); do echo line-$i; done; exit 3\r')
    await terminal.ended()
    assert.match(terminal.bytes, /line-2000/)
    assert.equal(terminal.events.at(-1), 'ended')
    assertProblem(await type(id, 'me', 2, 'x'), 'session-conflict')
    assertProblem(await city.send('GET', `${sessionPath(id)}/screen`), 'session-conflict')
    await city.forget(id)
  })

  test('who does not keep up is shown the screen of now, and nothing piles up for him', async () => {
    const id = await city.start()
    await using slow = await openTerminal(city, id)
    await slow.shows(/ready>/)
    slow.pause()
    const before = residentMb(running.server.pid)
    await type(id, 'me', 1, 'yes "$(head -c 500 /dev/zero | tr "\\0" x)" | head -c 60000000; echo; echo all-$((6*7))\r')
    await eventually(
      'all of it is on the screen',
      async () => {
        const { lines } = await screen(id)
        return Array.isArray(lines) && lines.includes('all-42') ? true : undefined
      },
      90_000,
    )
    const grown = residentMb(running.server.pid) - before
    assert.ok(grown < 150, `${grown} MB more`)
    slow.resume()
    await slow.shows(/^all-42/m)
    assert.ok(slow.events.filter((event) => event === 'screen').length > 1)
    assert.ok(slow.bytes.length < 20_000_000, 'not all of it')
    await city.forget(id)
  })
})

test('what is typed over a kill of the supervisor is typed once', { timeout: 120_000 }, async () => {
  await using running = await run()
  const city = await newSessionCity(running, 'alpha')
  const id = await city.start()
  const path = `${sessionPath(id)}/terminal/input`
  const one = { viewer: 'me', seq: 1, text: 'echo one-$((1+1))\r' }
  const first = await city.send('POST', path, one)
  assert.equal(first.status, 200, first.text)
  await running.server.kill('SIGKILL')
  await using again = await runAgain(running.server.home)
  const back = new SessionApi(again.api, city.name, city.dir)
  await back.until(id, 'runs', ({ running: runs }) => runs)
  // Whoever got no answer sends the same again.
  assert.equal((await back.send('POST', path, one)).status, 200)
  assertProblem(await back.send('POST', path, { viewer: 'me', seq: 3, text: 'X' }), 'session-conflict')
  assert.equal((await back.send('POST', path, { viewer: 'me', seq: 2, text: 'echo two-$((1+1))\r' })).status, 200)
  await eventually('the second is there', async () => {
    const { lines } = await back.done('GET', `${sessionPath(id)}/screen`)
    return Array.isArray(lines) && lines.includes('two-2') ? lines : undefined
  }).then((lines) => assert.equal(lines.filter((line) => line === 'one-2').length, 1))
  again.api.close()
})

test('what nobody would type is refused or typed, and never an error of ours', { timeout: 120_000 }, async () => {
  await using running = await run()
  const raw =
    '[providers.raw]\ncommand = "sh"\nargs = ["-c", "stty raw -echo; exec cat >/dev/null"]\nprompt_mode = "omit"\n'
  const city = await newSessionCity(running, 'alpha', raw)
  const id = await city.start({ name: 'raw' })
  const strings = fc.oneof(fc.string({ unit: codePoint }), fc.base64String(), fc.constantFrom('', 'me', 'Enter', 'C-c'))
  const anything = fc.oneof(strings, fc.integer(), fc.double(), fc.constant(null), fc.array(strings, { maxLength: 3 }))
  const fields = ['viewer', 'seq', 'text', 'data', 'cols', 'rows', 'keys', 'expect_screen', 'other']
  const nearly = fc.record({ viewer: strings, seq: fc.nat(3), text: strings }, { requiredKeys: [] })
  const keys = fc.record(
    { keys: fc.array(strings, { maxLength: 4 }), expect_screen: strings },
    { requiredKeys: ['keys'] },
  )
  const body = fc.oneof(nearly, keys, fc.dictionary(fc.constantFrom(...fields), anything), anything)
  const where = fc.constantFrom('/terminal/input', '/terminal/size', '/keys')
  const property = fc.asyncProperty(where, body, async (rest, sent) => {
    const answer = await city.send('POST', `${sessionPath(id)}${rest}`, sent)
    assert.ok([200, 400, 409, 422].includes(answer.status), answer.text)
  })
  await fc.assert(property, { numRuns: 150, endOnFailure: true })
  assert.equal((await city.get(id)).liveness, 'alive')
})

function residentMb(pid: number): number {
  return Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1024
}
