/** The subprocess runtime: the conformance suite, and what only a host can do wrong. */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { join, resolve } from 'node:path'
import { suite, test } from 'node:test'
import { type Clock, systemClock } from '../../src/kernel/clock.ts'
import { identify } from '../../src/runtimes/process/process-identity.ts'
import { findByToken } from '../../src/runtimes/process/process-tree.ts'
import { LaunchError, type LaunchSpec } from '../../src/runtimes/process/runtime.ts'
import { createSubprocessRuntime } from '../../src/runtimes/subprocess.ts'
import { pipedShell, terminalShell } from '../support/shell-program.ts'
import { message, outputOf, runtimeConformance, soon, TestCity, until } from './conformance.ts'

const DRIVER = resolve(import.meta.dirname, 'driver.ts')
const KILLS = process.env['SVC_SOAK'] === undefined ? 8 : 200

/** The sockets go with the city. */
const environment = (city: string) => ({ ...process.env, XDG_RUNTIME_DIR: city })
const make = (city: string) => createSubprocessRuntime({ clock: systemClock, env: environment(city), home: city })

runtimeConformance('a shell on a terminal, in a host', make, terminalShell)
runtimeConformance('a shell on pipes, in a host', make, pipedShell)

suite('a host', { timeout: 120_000 }, () => {
  test('no message is lost or typed twice, however often the supervisor is killed', async () => {
    await using city = new TestCity(make)
    const args = ['-c', 'stty -echo; echo ready; exec cat']
    const spec = city.spec({ command: 'bash', args, io: 'pty' })
    const [specFile, journal] = [join(city.path, 'spec'), join(city.path, 'journal')]
    writeFileSync(specFile, JSON.stringify(spec))
    for (let round = 0; round < KILLS; round++) {
      const driver = spawn(process.execPath, [DRIVER, specFile, journal], {
        env: environment(city.path),
        stdio: ['ignore', 'pipe', 'inherit'],
      })
      const gone = once(driver, 'exit')
      await once(driver.stdout, 'data')
      // However little of the machine the others got.
      if (round === KILLS - 1) await until('messages were typed', () => doneIn(journal).length > KILLS)
      await new Promise((resolve) => setTimeout(resolve, (round * 13) % 60))
      driver.kill('SIGKILL')
      await gone
    }
    assert.doesNotMatch(readFileSync(journal, 'utf8'), /^unknown/m)
    const last = doneIn(journal).at(-1) ?? 0
    await city.printed(spec, `<m${last}>`)
    const typed = [...(await outputOf(spec)).matchAll(/<m(\d+)>/g)].map((found) => Number(found[1]))
    assert.deepEqual(
      typed,
      Array.from({ length: typed.length }, (_, at) => at + 1),
    )
    assert.ok(typed.length >= last)
  })

  test('a host that was killed is told as lost, and what it held is killed', async () => {
    await using city = new TestCity(make)
    const { spec, agent, exit } = await city.start(terminalShell)
    await agent.deliver(message(1, terminalShell.stubborn), soon())
    await city.printed(spec, 'child of ')
    process.kill(hostOf(spec).pid, 'SIGKILL')
    assert.equal((await exit).reason, 'host_lost')
    assert.deepEqual(findByToken(spec.identity.token), [])
    assert.equal(await agent.delivered({ seq: 1, id: 'm1' }, soon()), 'yes')
    const late = await agent.deliver(message(2, 'echo late'), soon())
    assert.equal(late.state, 'failed')
  })

  test('an agent that is over before its supervisor has looked is a failed start at once, and its host leaves', async () => {
    const clock: Clock = { ...systemClock, after: (ms, work) => systemClock.after(ms + 2_000, work) }
    await using city = new TestCity((path) => createSubprocessRuntime({ clock, env: environment(path), home: path }))
    const spec = city.spec({ command: 'bash', args: ['-c', 'exit 3'], io: 'pty' })
    const started = city.runtime().start(spec, soon())
    started.catch(() => {})
    await until('its end is on record', () => existsSync(join(spec.directory, 'exit.json')))
    const host = hostOf(spec).pid
    const isTold = (error: unknown) => error instanceof LaunchError && error.code === 'exited' && error.exit?.code === 3
    await assert.rejects(started, isTold)
    await until('the host has left', () => identify(host) === undefined)
  })

  test('a host whose agent ended while nobody looked leaves when that was read', async () => {
    await using city = new TestCity(make)
    const { spec, agent } = await city.start(terminalShell)
    const host = hostOf(spec).pid
    agent.release()
    process.kill(agent.pid ?? 0, 'SIGKILL')
    await until('its end is on record', () => existsSync(join(spec.directory, 'exit.json')))
    assert.equal((await make(city.path).adopt(spec, soon())).state, 'dead')
    await until('the host has left', () => identify(host) === undefined)
  })

  test('a host that was killed while nobody looked leaves orphans only until the next adoption', async () => {
    await using city = new TestCity(make)
    const { spec, agent } = await city.start(terminalShell)
    await agent.deliver(message(1, terminalShell.stubborn), soon())
    await city.printed(spec, 'child of ')
    agent.release()
    process.kill(hostOf(spec).pid, 'SIGKILL')
    await until('the host is gone', () => identify(hostOf(spec).pid) === undefined)
    const adoption = await city.runtime().adopt(spec, soon())
    assert.ok(adoption.state === 'dead' && adoption.exit.reason === 'host_lost', JSON.stringify(adoption))
    assert.deepEqual(findByToken(spec.identity.token), [])
  })

  test('a child that left its session with a cleaned environment ends with the agent', async () => {
    await using city = new TestCity(make)
    const { spec, agent } = await city.start(terminalShell)
    const daemon = `env -i setsid sh -c 'trap "" HUP TERM; echo daemon $$; exec sleep 600' & disown`
    await agent.deliver(message(1, daemon), soon())
    const said = async () => Number(/daemon (\d+)\s/.exec(await outputOf(spec))?.[1] ?? 0)
    await until('it runs', async () => (await said()) > 0)
    const pid = await said()
    assert.ok(identify(pid) !== undefined)
    await agent.stop(5_000)
    assert.equal(identify(pid), undefined)
  })

  test('a host that stands still makes the agent unknown and not dead', async () => {
    await using city = new TestCity(make)
    const { spec, agent } = await city.start(terminalShell)
    agent.release()
    process.kill(hostOf(spec).pid, 'SIGSTOP')
    const adoption = await city.runtime().adopt(spec, AbortSignal.timeout(500))
    assert.equal(adoption.state, 'unknown')
    process.kill(hostOf(spec).pid, 'SIGCONT')
    const again = await city.runtime().adopt(spec, soon())
    assert.equal(again.state, 'alive')
  })

  test('a host that does not answer is killed by stop, and its agent with it', async () => {
    await using city = new TestCity(make)
    const { spec, agent } = await city.start(terminalShell)
    process.kill(hostOf(spec).pid, 'SIGSTOP')
    assert.equal((await agent.stop(0)).reason, 'killed')
    assert.equal(identify(hostOf(spec).pid), undefined)
    assert.ok(!existsSync(hostOf(spec).socket))
    assert.deepEqual(findByToken(spec.identity.token), [])
  })

  test('a deleted session takes its host and its agent along', async () => {
    await using city = new TestCity(make)
    const { spec, agent } = await city.start(terminalShell)
    const { pid } = hostOf(spec)
    agent.release()
    rmSync(spec.directory, { recursive: true, force: true })
    await until('its host has left', () => identify(pid) === undefined)
    assert.deepEqual(findByToken(spec.identity.token), [])
  })

  test('a host leaves once its end was read, and takes its socket along', async () => {
    await using city = new TestCity(make)
    const { spec, agent } = await city.start(terminalShell)
    const { pid, socket } = hostOf(spec)
    await agent.stop(100)
    await until('the host has left', () => identify(pid) === undefined)
    assert.ok(!existsSync(socket))
  })

  test('signals of a terminal do not end a host; TERM ends it with its agent', async () => {
    await using city = new TestCity(make)
    const { spec, agent, exit } = await city.start(terminalShell)
    const { pid } = hostOf(spec)
    process.kill(pid, 'SIGHUP')
    process.kill(pid, 'SIGINT')
    await agent.deliver(message(1, terminalShell.say('alive')), soon())
    await city.printed(spec, 'alive')
    process.kill(pid, 'SIGTERM')
    assert.equal((await exit).reason, 'killed')
    assert.deepEqual(findByToken(spec.identity.token), [])
  })

  test('who does not prove the token is told nothing, and secrets are not in argv or on disk', async () => {
    await using city = new TestCity(make)
    const { spec } = await city.start(terminalShell)
    const { pid, socket } = hostOf(spec)
    for (const line of [
      '{"id":1,"op":"status"}',
      '{"id":1,"op":"hello","token":"x"}',
      'nonsense',
      '{"id":1,"op":"fly"}',
    ]) {
      const peer = connect(socket)
      let heard = ''
      peer.on('data', (chunk) => (heard += chunk))
      peer.on('error', () => {})
      peer.write(`${line}\n`)
      await once(peer, 'close')
      assert.ok(!heard.includes('result'), heard)
    }
    const { token } = spec.identity
    for (const file of ['cmdline', 'environ'])
      assert.ok(!readFileSync(`/proc/${pid}/${file}`, 'latin1').includes(token))
    await until('the spec is gone', () => !existsSync(join(spec.directory, 'spec.json')))
    assert.equal(statSync(join(spec.directory, 'host.json')).mode & 0o777, 0o600)
  })

  test('a program that does not read blocks its own messages only, and is interrupted all the same', async () => {
    await using city = new TestCity(make)
    const script = `trap 'echo inter''rupted' INT; stty raw -echo isig; echo re''ady; while :; do sleep 1; done`
    const { spec, agent } = await city.start({ ...terminalShell, launch: bash(script, 'tui') })
    await city.printed(spec, 'ready')
    const stuck = agent.deliver(message(1, 'x'.repeat(500_000)), soon())
    await until('the delivery is under way', async () => (await journal(spec)).includes('intent'))
    assert.equal(await agent.interrupt(soon()), true)
    await city.printed(spec, 'interrupted')
    await agent.stop(0)
    assert.equal((await stuck).state, 'uncertain')
    assert.equal(await agent.delivered({ seq: 1, id: 'm1' }, soon()), 'unknown')
  })

  test('a paste is marked for a program that asks for it, and Enter comes after the pause', async () => {
    await using city = new TestCity(make)
    const script = `stty raw -echo; printf '\\033[?2004h'; echo re''ady; exec cat -v`
    const { spec, agent } = await city.start({ ...terminalShell, launch: bash(script, 'tui') })
    await city.printed(spec, 'ready')
    await agent.deliver(message(1, 'one\ntwo'), soon())
    await city.printed(spec, '^M')
    assert.ok((await outputOf(spec)).includes('^[[200~one\ntwo^[[201~^M'))
    assert.equal(agent.activity, 'unknown')
  })

  test('a message of several lines is one command of a shell, and its tabs complete nothing', async () => {
    await using city = new TestCity(make)
    const { spec, agent } = await city.start(terminalShell)
    const lines = ['for i in 1 2', 'do', "\techo 'x''y' $i", 'done']
    for (let seq = 1; seq <= 5; seq++) await agent.deliver(message(seq, lines.join('\n')), soon())
    await until('all ran', async () => (await outputOf(spec)).split('xy 2').length === 6)
    assert.ok(!(await outputOf(spec)).includes('command not found'))
  })

  test('an agent gets the environment it was given and no signal ignored', async () => {
    await using city = new TestCity(make)
    const script = 'env; grep SigIgn /proc/self/status; echo do""ne; sleep 600'
    const launch = { command: 'sh', args: ['-c', script], io: 'pty' as const, env: { ONLY: 'this' } }
    const { spec } = await city.start({ ...terminalShell, launch })
    await city.printed(spec, 'done')
    const shown = (await outputOf(spec)).replaceAll('\r', '')
    const names = [...shown.matchAll(/^(\w+)=/gm)].map((found) => found[1])
    const given = [...Object.keys(spec.env), 'PWD'] // PWD is the terminal's and the shell's own.
    assert.deepEqual(new Set(names), new Set(given))
    assert.match(shown, /SigIgn:\s+0+$/m)
  })
})

const bash = (script: string, delivery: LaunchSpec['delivery']) =>
  ({ command: 'bash', args: ['--norc', '-c', script], io: 'pty', delivery }) as const

function hostOf(spec: LaunchSpec): { readonly pid: number; readonly socket: string } {
  return JSON.parse(readFileSync(join(spec.directory, 'host.json'), 'utf8'))
}

/** Numbers of the messages that a driver knows to be typed. */
const doneIn = (journal: string): readonly number[] =>
  [...readFileSync(journal, 'utf8').matchAll(/^done (\d+)$/gm)].map((found) => Number(found[1]))

async function journal(spec: LaunchSpec): Promise<string> {
  const path = join(spec.directory, 'deliveries.jsonl')
  return existsSync(path) ? readFileSync(path, 'utf8') : ''
}
