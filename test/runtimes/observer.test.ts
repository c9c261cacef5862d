// The observer over a real terminal: a program with a screen like those of the harnesses, in a host.
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { suite, test } from 'node:test'
import { screenOf } from '../../src/harnesses/all.ts'
import { systemClock } from '../../src/kernel/clock.ts'
import { openOutputReader } from '../../src/runtimes/process/output-log.ts'
import type { AgentProcess, LaunchSpec, ProcessEvent } from '../../src/runtimes/process/runtime.ts'
import { createSubprocessRuntime } from '../../src/runtimes/subprocess.ts'
import { type ObserverHints, TerminalObserver } from '../../src/runtimes/terminal/observer.ts'
import { outputOf, soon, TestCity, until } from './conformance.ts'

const AGENT = join(import.meta.dirname, '../support/tui-agent.ts')
const HINTS: ObserverHints = {
  rules: screenOf('claude'),
  readyPrefix: '❯ ',
  readyDelayMs: 100,
  readyConfirmation: false,
  acceptStartupDialogs: true,
  lines: false,
  shell: false,
}

const newCity = () =>
  new TestCity((city) =>
    createSubprocessRuntime({ clock: systemClock, env: { ...process.env, XDG_RUNTIME_DIR: city }, home: city }),
  )

function observe(agent: AgentProcess, spec: LaunchSpec, hints: Partial<ObserverHints> = {}) {
  const output = openOutputReader(spec.directory)
  const { columns, rows } = spec
  const observer = new TerminalObserver({
    clock: systemClock,
    process: agent,
    output,
    size: { columns, rows },
    hints: { ...HINTS, ...hints },
  })
  const seen: ProcessEvent[] = []
  observer.on((event) => seen.push(event))
  return {
    observer,
    seen,
    pendings: () => seen.filter(({ type }) => type.startsWith('pending')).map(({ type }) => type),
  }
}

async function start(city: TestCity, args: string[] = []) {
  const spec = city.spec({
    command: process.execPath,
    args: [AGENT, ...args],
    io: 'pty',
    delivery: 'tui',
    debounceMs: 50,
  })
  const agent = await city.runtime().start(spec, soon())
  let seq = 0
  const tell = (text: string) => agent.deliver({ seq: ++seq, id: `d-${seq}`, text }, soon())
  return { spec, agent, tell }
}

// Each has a terminal of its own, and waits until that is quiet most of the time.
suite('what an agent does is seen by its screen', { concurrency: 3 }, () => {
  test('startup dialogs are answered where the provider says so, and then the agent is ready and idle', async () => {
    await using city = newCity()
    const { spec, agent } = await start(city)
    const { observer } = observe(agent, spec)
    assert.deepEqual(await observer.ready(15_000, soon()), { state: 'ready' })
    await until('idle', () => observer.activity === 'idle')
    assert.equal(observer.text(1).lines[0], '❯')
    assert.ok(observer.text().offset > 0)
    observer.close()
  })

  test('a busy agent that reads an arrow late is not given another, and trusts the folder as it was told', async () => {
    await using city = newCity()
    const { spec, agent } = await start(city, ['--late', '2000'])
    const { observer } = observe(agent, spec)
    assert.deepEqual(await observer.ready(20_000, soon()), { state: 'ready' })
    observer.close()
  })

  test('a startup dialog that must not be accepted is left to a person', async () => {
    await using city = newCity()
    const { spec, agent } = await start(city)
    const { observer } = observe(agent, spec, { acceptStartupDialogs: false })
    assert.deepEqual(await observer.ready(15_000, soon()), { state: 'dialog', id: 'trust' })
    assert.ok(observer.text().lines.join().includes('Do you trust'))
    observer.close()
  })

  test('a prompt that never comes is a timeout, an agent that ends has ended', async () => {
    await using city = newCity()
    const { spec, agent } = await start(city)
    const { observer } = observe(agent, spec, { readyPrefix: '▶ ' })
    assert.deepEqual(await observer.ready(1_500, soon()), { state: 'timeout' })
    const later = observer.ready(15_000, soon())
    await agent.stop(0)
    assert.deepEqual(await later, { state: 'exited' })
    assert.ok(observer.text().lines.join().includes('❯'), 'its last screen stays')
    observer.close()
  })

  test('a prompt that takes no keys yet is not ready', async () => {
    await using city = newCity()
    const { spec, agent, tell } = await start(city, ['--deaf', '1500'])
    const { observer } = observe(agent, spec, { readyConfirmation: true })
    assert.deepEqual(await observer.ready(15_000, soon()), { state: 'ready' })
    await tell('you')
    await city.printed(spec, 'heard you')
    observer.close()
  })

  test('work is seen, and its end', async () => {
    await using city = newCity()
    const { spec, agent, tell } = await start(city)
    const { observer, seen } = observe(agent, spec)
    await observer.ready(15_000, soon())
    await until('idle', () => observer.activity === 'idle')
    observer.onDelivery('work 800')
    await tell('work 800')
    await until('busy', () => observer.activity === 'in-turn')
    await until('idle again', () => observer.activity === 'idle')
    const activities = seen.flatMap((event) => (event.type === 'activity' ? [event.activity] : []))
    assert.deepEqual(activities.filter((activity) => activity !== 'unknown').slice(-3), ['idle', 'in-turn', 'idle'])
    observer.close()
  })

  test('a message whose Enter was swallowed is entered again, and once', async () => {
    await using city = newCity()
    const { spec, agent, tell } = await start(city, ['--swallow', '2'])
    const { observer } = observe(agent, spec)
    await observer.ready(15_000, soon())
    await tell('you there')
    observer.onDelivery('you there')
    await city.printed(spec, 'heard you there')
    await until('idle', () => observer.activity === 'idle')
    assert.equal((await outputOf(spec)).split('heard').length, 2)
    observer.close()
  })

  test('an Enter that was taken for the end of a line is taken back, and typed again', async () => {
    await using city = newCity()
    const { spec, agent, tell } = await start(city, ['--newline', '1'])
    const { observer } = observe(agent, spec)
    await observer.ready(15_000, soon())
    await tell('you there')
    observer.onDelivery('you there')
    await city.printed(spec, 'heard you there')
    await until('idle', () => observer.activity === 'idle')
    assert.equal((await outputOf(spec)).split('heard').length, 2)
    observer.close()
  })

  test('what a person types is not entered for them', async () => {
    await using city = newCity()
    const { spec, agent, tell } = await start(city)
    const { observer } = observe(agent, spec)
    await observer.ready(15_000, soon())
    await tell('you there')
    observer.onDelivery('you there')
    await city.printed(spec, 'heard you there')
    await until('idle', () => observer.activity === 'idle')
    await agent.typeKeys('you', soon())
    await until('half a line is not idle', () => observer.activity === 'unknown')
    await agent.typeKeys('\r', soon())
    await city.printed(spec, 'heard you\r')
    assert.equal((await outputOf(spec)).split('heard').length, 3)
    observer.close()
  })

  test('an approval dialog is pending until it is answered, and the answer is the one that was given', async () => {
    await using city = newCity()
    const { spec, agent, tell } = await start(city)
    const { observer, pendings } = observe(agent, spec)
    await observer.ready(15_000, soon())
    await tell('ask rm -rf build')
    await until('pending', () => observer.pending !== undefined)
    const pending = observer.pending ?? assert.fail()
    assert.equal(pending.metadata['tool_name'], 'Bash')
    assert.equal(pending.metadata['input'], 'rm -rf build')
    assert.equal(observer.activity, 'in-turn')
    assert.equal(await observer.answer('another', { action: 'approve' }, soon()), false)
    await assert.rejects(
      observer.answer(pending.requestId, { action: 'option', optionId: '9' }, soon()),
      /no such option/,
    )
    assert.equal(await observer.answer(pending.requestId, { action: 'approve_always' }, soon()), true)
    await city.printed(spec, 'chosen 2')
    await until('cleared', () => observer.pending === undefined)
    assert.equal(await observer.answer(pending.requestId, { action: 'deny' }, soon()), false)
    assert.deepEqual(pendings(), ['pending', 'pending-cleared'])
    observer.close()
  })

  test('a dialog that was open before a restart is pending after it', async () => {
    await using city = newCity()
    const { spec, agent, tell } = await start(city)
    const first = observe(agent, spec).observer
    await first.ready(15_000, soon())
    await tell('ask make')
    await until('pending', () => first.pending !== undefined)
    const id = first.pending?.requestId
    first.close()
    agent.release()
    const adoption = await city.runtime().adopt(spec, soon())
    assert.ok(adoption.state === 'alive')
    const { observer } = observe(adoption.process, spec)
    await until('pending again', () => observer.pending !== undefined)
    assert.equal(observer.pending?.requestId, id)
    assert.equal(await observer.answer(id ?? '', { action: 'deny' }, soon()), true)
    await city.printed(spec, 'chosen 3')
    observer.close()
  })
})
