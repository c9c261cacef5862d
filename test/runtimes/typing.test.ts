/** One terminal, and all who type into it: messages, interrupts, keys, people. Real hosts, real terminals. */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { closeSync, existsSync, openSync, readFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { suite, test } from 'node:test'
import { systemClock } from '../../src/kernel/clock.ts'
import { HostedProcess } from '../../src/runtimes/host/hosted-process.ts'
import type { LaunchSpec } from '../../src/runtimes/process/runtime.ts'
import { createSubprocessRuntime } from '../../src/runtimes/subprocess.ts'
import { pipedShell, terminalShell } from '../support/shell-program.ts'
import { message, outputOf, soon, TestCity, tailOf, until } from './conformance.ts'

const environment = (city: string) => ({ ...process.env, XDG_RUNTIME_DIR: city })
const make = (city: string) => createSubprocessRuntime({ clock: systemClock, env: environment(city), home: city })

/** Shows every byte that it gets. */
const script = `stty raw -echo; echo re''ady; exec cat -v`
const rawProgram = (more: Partial<LaunchSpec> = {}) => ({
  ...terminalShell,
  launch: { command: 'bash', args: ['--norc', '-c', script], io: 'pty' as const, delivery: 'tui' as const, ...more },
})

async function started(city: TestCity, more: Partial<LaunchSpec> = {}) {
  const run = await city.start(rawProgram(more))
  await city.printed(run.spec, 'ready')
  const shown = async () => (await outputOf(run.spec)).replace(/^.*ready\r?\n/s, '')
  return { ...run, shown, shows: (text: string) => until(text, async () => (await shown()).includes(text)) }
}

const refusal = (code: string) => (error: unknown) => error instanceof Error && 'code' in error && error.code === code

suite('who types into a terminal', { timeout: 120_000 }, () => {
  test('a message is not typed behind what a person has half typed', async () => {
    await using city = new TestCity(make)
    const { agent, told, shown, shows } = await started(city)
    await agent.input('ann', Buffer.from('git comm'), soon())
    await until('it is told', () => agent.personTyping)
    const held = await agent.deliver(message(1, 'hello'), soon())
    assert.deepEqual([held.state, held.state === 'failed' && held.code], ['failed', 'held'])
    assert.equal(await agent.delivered({ seq: 1, id: 'm1' }, soon()), 'no')
    await agent.input('ann', Buffer.from('it\r'), soon())
    await until('the end of it is told', () => !agent.personTyping)
    assert.deepEqual(await agent.deliver(message(1, 'hello'), soon()), { state: 'delivered' })
    await shows('hello^M')
    assert.equal(await shown(), 'git commit^Mhello^M')
    const typing = told.flatMap((event) => (event.type === 'person-typing' ? [event.typing] : []))
    assert.deepEqual(typing, [true, false])
  })

  test('a half line is known to the next supervisor', async () => {
    await using city = new TestCity(make)
    const { spec, agent } = await started(city)
    await agent.input('ann', Buffer.from('rm -r'), soon())
    agent.release()
    const adoption = await city.runtime().adopt(spec, soon())
    assert.ok(adoption.state === 'alive')
    assert.equal(adoption.process.personTyping, true)
    await adoption.process.interrupt(soon())
    await until('an interrupt throws it away', () => !adoption.process.personTyping)
  })

  test('keys that answer a dialog are no half line', async () => {
    await using city = new TestCity(make)
    const { agent, shown, shows } = await started(city)
    await agent.input('ann', Buffer.from('1'), soon(), { seq: 1, toDialog: true })
    assert.deepEqual(await agent.deliver(message(1, 'hello'), soon()), { state: 'delivered' })
    await shows('hello^M')
    assert.equal(await shown(), '1hello^M')
    assert.equal(agent.personTyping, false)
  })

  test('keys that went to a program in front of a shell are no half line of the shell', async () => {
    await using city = new TestCity(make)
    const { spec, agent } = await city.start(terminalShell)
    const pager = `stty -icanon -echo; echo pager-o''n; while read -rsn1 key && [ $key != q ]; do echo "got<$key>"; done`
    await agent.input('ann', Buffer.from(`bash -c '${pager}; stty sane'\r`), soon())
    await city.printed(spec, 'pager-on')
    for (const key of 'jkq') await agent.input('ann', Buffer.from(key), soon())
    await city.printed(spec, 'got<k>')
    await until('the shell is back', () => agent.activity === 'idle')
    assert.deepEqual(await agent.deliver(message(1, "echo af''ter"), soon()), { state: 'delivered' })
    await city.printed(spec, 'after')
    assert.equal(agent.personTyping, false)
  })

  test('what is typed ahead of a program that does not read is half a line of the shell', async () => {
    await using city = new TestCity(make)
    const { spec, agent } = await city.start(terminalShell)
    await agent.input('ann', Buffer.from("echo o''n; sleep 1\r"), soon())
    await city.printed(spec, 'on')
    await agent.input('ann', Buffer.from("echo ah''ead"), soon())
    await until('the shell is back', () => agent.activity === 'idle')
    const outcome = await agent.deliver(message(1, 'echo no'), soon())
    assert.equal(outcome.state === 'failed' && outcome.code, 'held')
    await agent.input('ann', Buffer.from('\r'), soon())
    await city.printed(spec, 'ahead')
  })

  test('a half line that was left behind is taken back for a message', async () => {
    await using city = new TestCity(make)
    const { spec, agent } = await city.start(terminalShell)
    await until('its prompt', () => agent.activity === 'idle')
    await agent.input('ann', Buffer.from("echo ha''lf \x1b[D\x1b[D"), soon())
    await until('it is told', () => agent.personTyping)
    const said = { ...message(1, "echo wh''ole"), clearsLine: true }
    assert.deepEqual(await agent.deliver(said, soon()), { state: 'delivered' })
    await city.printed(spec, 'whole')
    await until('the end of it is told', () => !agent.personTyping)
    assert.doesNotMatch(await outputOf(spec), /^half|^echo/m)
  })

  test('in another program what was typed is erased, and what nobody typed holds the message back', async () => {
    await using city = new TestCity(make)
    const { agent, shown, shows } = await started(city)
    await agent.input('ann', Buffer.from('abc'), soon())
    assert.deepEqual(await agent.deliver({ ...message(1, 'hello'), clearsLine: true }, soon()), { state: 'delivered' })
    await shows('hello^M')
    assert.equal(await shown(), `abc^E${'^?'.repeat(4)}hello^M`)
    await agent.input('ann', Buffer.from('\x1b[A'), soon())
    const outcome = await agent.deliver({ ...message(2, 'more'), clearsLine: true }, soon())
    assert.match(outcome.state === 'failed' ? `${outcome.code}: ${outcome.message}` : '', /^held: .*taken back/)
    assert.equal(await agent.delivered({ seq: 2, id: 'm2' }, soon()), 'no')
  })

  test('an interrupt before the Enter takes the message back, and it can be typed again', async () => {
    await using city = new TestCity(make)
    const { agent, shown, shows } = await started(city, { debounceMs: 5_000 })
    const typed = agent.deliver(message(1, 'do it'), soon())
    await shows('do it')
    assert.equal(await agent.interrupt(soon()), true)
    const outcome = await typed
    assert.deepEqual([outcome.state, outcome.state === 'failed' && outcome.code], ['failed', 'interrupted'])
    assert.equal(await agent.delivered({ seq: 1, id: 'm1' }, soon()), 'no')
    await shows('^C')
    assert.equal(await shown(), `do it${'^?'.repeat(5)}^C`)
    assert.equal((await agent.deliver(message(1, 'do it'), soon())).state, 'delivered')
    await shows('^Cdo it^M')
  })

  test('what has no Enter yet when its agent is stopped was not delivered', async () => {
    await using city = new TestCity(make)
    const { agent, shows, shown } = await started(city, { debounceMs: 5_000 })
    const typed = agent.deliver(message(1, 'do it'), soon())
    await shows('do it')
    await agent.stop(2_000)
    const outcome = await typed
    assert.deepEqual([outcome.state, outcome.state === 'failed' && outcome.code], ['failed', 'closed'])
    assert.equal(await agent.delivered({ seq: 1, id: 'm1' }, soon()), 'no')
    assert.equal(await shown(), 'do it')
  })

  test('keys are refused while a message is typed, a person waits, and nobody mixes with anybody', async () => {
    await using city = new TestCity(make)
    const { agent, shows, shown } = await started(city, { debounceMs: 3_000 })
    const typed = agent.deliver(message(1, 'message'), soon())
    await shows('message')
    await assert.rejects(agent.typeKeys('1', soon()), refusal('busy'))
    const person = agent.input('ann', Buffer.from('person\r'), soon())
    assert.equal((await typed).state, 'delivered')
    await person
    await agent.typeKeys('\x1b[A', soon())
    await shows('^[[A')
    assert.equal(await shown(), 'message^Mperson^M^[[A')
    assert.equal(agent.personTyping, false)
  })

  test('a line goes with its Enter to who reads lines; who reads keys gets none of it', async () => {
    await using city = new TestCity(make)
    const keys = await started(city)
    assert.equal(await keys.agent.typeLine('2', soon()), false)
    await keys.agent.typeKeys('x', soon(), { keyByKey: true })
    await keys.shows('x')
    assert.equal(await keys.shown(), 'x')
    const lines = await started(city, {
      args: ['--norc', '-c', "echo re''ady; read -r line; echo got:$line; exec cat"],
    })
    await assert.rejects(lines.agent.typeKeys('\x1b[B', soon(), { keyByKey: true }), refusal('lines'))
    assert.equal(await lines.agent.typeLine('12', soon()), true)
    await lines.shows('got:12')
  })

  test('what people type comes in the order of their asking, and what is said twice once', async () => {
    await using city = new TestCity(make)
    const { spec, agent, shows, shown } = await started(city)
    const words = Array.from({ length: 300 }, (_, at) => `<${at + 1}>`)
    await Promise.all(words.map((word, at) => agent.input('ann', Buffer.from(word), soon(), { seq: at + 1 })))
    await agent.input('ann', Buffer.from('<300>'), soon(), { seq: 300 })
    await agent.input('bob', Buffer.from('<bob>\r'), soon(), { seq: 1 })
    agent.release()
    const adoption = await city.runtime().adopt(spec, soon())
    assert.ok(adoption.state === 'alive')
    await adoption.process.input('ann', Buffer.from('<300>'), soon(), { seq: 300 })
    await adoption.process.input('ann', Buffer.from('<301>'), soon(), { seq: 301 })
    await shows('<301>')
    assert.equal(await shown(), `${words.join('')}<bob>^M<301>`)
  })

  test('a terminal is resized, its program learns of it, and so does the next supervisor', async () => {
    await using city = new TestCity(make)
    const { spec, agent, told } = await city.start(terminalShell)
    assert.deepEqual(agent.size, { columns: 200, rows: 50 })
    await agent.resize(91, 33, soon())
    await until('it is told', () => told.some(({ type }) => type === 'resized'))
    assert.deepEqual(agent.size, { columns: 91, rows: 33 })
    await agent.deliver(message(1, 'stty size'), soon())
    await city.printed(spec, '33 91')
    agent.release()
    const adoption = await city.runtime().adopt(spec, soon())
    assert.ok(adoption.state === 'alive')
    assert.deepEqual(adoption.process.size, { columns: 91, rows: 33 })
  })

  test('who has no terminal takes no keys and says so', async () => {
    await using city = new TestCity(make)
    const { agent } = await city.start(pipedShell)
    await assert.rejects(agent.typeKeys('1', soon()), refusal('unsupported'))
    assert.equal(await agent.typeLine('1', soon()), false)
    await assert.rejects(agent.input('ann', Buffer.from('x'), soon()), refusal('unsupported'))
    await agent.resize(10, 10, soon())
    assert.equal(agent.size, undefined)
  })

  test('a host of an earlier version that takes no input is an error that says what to do', async () => {
    await using city = new TestCity(make)
    const spec = city.spec(terminalShell.launch)
    const socket = join(city.path, 'old.host')
    const status = { protocol: 1, state: 'running', activity: 'unknown', end_offset: 0 }
    const server = createServer((peer) => {
      peer.on('data', (chunk) => {
        for (const line of String(chunk).trim().split('\n')) {
          const { id, op } = JSON.parse(line)
          const error = { code: 'unsupported', message: 'this host does not know it' }
          peer.write(`${JSON.stringify(op === 'hello' ? { reply: id, result: status } : { reply: id, error })}\n`)
        }
      })
    })
    await new Promise<void>((resolve) => server.listen(socket, resolve))
    const agent = new HostedProcess({ identity: spec.identity, directory: spec.directory, clock: systemClock })
    try {
      await agent.connect(socket)
      assert.deepEqual([agent.personTyping, agent.size], [false, undefined])
      assert.equal(await agent.typeLine('1', soon()), false)
      await assert.rejects(
        agent.input('ann', Buffer.from('x'), soon(), { seq: 1 }),
        /earlier version: restart the session/,
      )
    } finally {
      agent.release()
      server.close()
    }
  })

  const readers = [
    [
      'a shell with a prompt',
      { command: 'bash', args: ['--norc'] },
      (text: string) => `echo ${text} | wc -c`,
      '100001',
    ],
    [
      'a shell without one',
      { command: 'sh', args: ['-c', 'exec sh -s'] },
      (text: string) => `echo ${text} | wc -c`,
      '100001',
    ],
    [
      'a program that reads lines',
      { command: 'sh', args: ['-c', 'while read -r line; do echo got "$(printf %s "$line" | wc -c)"; done'] },
      (text: string) => text,
      'got 100000',
    ],
  ] as const
  for (const [what, launch, messageOf, printed] of readers)
    test(`a line of 100,000 characters arrives whole in ${what}`, async () => {
      await using city = new TestCity(make)
      const { spec, agent } = await city.start({ ...terminalShell, launch: { ...launch, io: 'pty' } })
      const long = messageOf('z'.repeat(100_000))
      assert.deepEqual(await agent.deliver(message(1, long), soon()), { state: 'delivered' })
      await city.printed(spec, printed)
      const wasCanonical = launch.command !== 'bash'
      await until('the terminal is as it was', () => isCanonical(agent.pid ?? 0) === wasCanonical)
      const short = messageOf('yy')
      assert.deepEqual(await agent.deliver(message(2, short), soon()), { state: 'delivered' })
      await city.printed(spec, printed.replace(/\d+$/, printed.startsWith('got') ? '2' : '3'))
    })

  test('a person at the terminal ends a flood by a key at once', async () => {
    await using city = new TestCity(make)
    const { spec, agent } = await city.start(terminalShell)
    await agent.input('ann', Buffer.from('yes floods | head -c 500000000\r'), soon())
    await until('the flood has begun', () => agent.endOffset > 5_000_000)
    // Were they in the way of each other, the flood would be over before its key has come.
    await Promise.all(Array.from({ length: 20 }, () => agent.resize(120, 40, soon())))
    await agent.input('ann', Buffer.from('\x03'), soon())
    await agent.input('ann', Buffer.from("echo af''ter\r"), soon())
    await until('the flood is over', async () => (await tailOf(spec)).includes('after'))
    assert.ok(agent.endOffset < 500_000_000, 'it was ended')
  })

  test('a message that is longer than the terminal takes at once is whole, while a person types', async () => {
    await using city = new TestCity(make)
    const { spec, agent, shows, shown } = await started(city)
    const long = 'm'.repeat(200_000)
    const typed = agent.deliver(message(1, long), soon())
    await until('the delivery is under way', () => readJournal(spec).includes('intent'))
    const person = agent.input('ann', Buffer.from('p\r'), soon())
    assert.equal((await typed).state, 'delivered')
    await person
    await shows('p^M')
    assert.equal(await shown(), `${long}^Mp^M`)
  })
})

function readJournal({ directory }: LaunchSpec): string {
  const path = join(directory, 'deliveries.jsonl')
  return existsSync(path) ? readFileSync(path, 'utf8') : ''
}

function isCanonical(pid: number): boolean {
  const terminal = openSync(`/proc/${pid}/fd/0`, 'r')
  try {
    return / icanon/.test(spawnSync('stty', ['-a'], { stdio: [terminal, 'pipe', 'ignore'], encoding: 'utf8' }).stdout)
  } finally {
    closeSync(terminal)
  }
}
