// What only tmux can do wrong: its server, its marks, its way of typing.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { suite, test } from 'node:test'
import { spawn as spawnOnPty } from '@lydell/node-pty'
import { openOutputReader } from '../../src/runtimes/process/output-log.ts'
import { findByToken } from '../../src/runtimes/process/process-tree.ts'
import { LaunchError, type LaunchSpec } from '../../src/runtimes/process/runtime.ts'
import { exitOf, isRunning, outputOf, printed, soon, TmuxCity, until, withoutTmux } from '../support/tmux-city.ts'

const NODE = process.execPath
const RAW_AGENT = join(import.meta.dirname, '../support/raw-agent.ts')
const DRIVER = join(import.meta.dirname, 'tmux-driver.ts')
const SHELL = ['--norc', '--noprofile', '-i']

const message = (seq: number, text: string) => ({ seq, id: `d-${seq}`, text })
const read = (file: string) => {
  try {
    return readFileSync(file, 'utf8')
  } catch {
    return ''
  }
}

suite('tmux', { skip: withoutTmux }, () => {
  test('an agent gets exactly its environment, and no secret is in any command line', async () => {
    await using city = new TmuxCity()
    const plain = city.spec('env', ['-0'])
    const spec = { ...plain, env: { ...plain.env, SECRET: "it's $HOME\nand `more`" } }
    const agent = await city.runtime().start(spec, soon())
    await exitOf(agent)
    const shown = (await outputOf(spec)).replaceAll('\r\n', '\n').split('\0').slice(0, -1).sort()
    assert.deepEqual(
      shown,
      Object.entries(spec.env)
        .map(([name, value]) => `${name}=${value}`)
        .sort(),
    )

    const waiting = { ...city.spec('sleep', ['1000']), env: { ...plain.env, SECRET: 'very-secret-word' } }
    await city.runtime().start(waiting, soon())
    const ps = await run('ps', ['-eo', 'args'])
    assert.ok(!ps.includes('very-secret-word') && !ps.includes(waiting.identity.token))
    await until('no secret on disk', () => !existsSync(join(waiting.directory, 'launch.sh')))
  })

  test('an agent ignores no signal but those that tmux ignores in every pane', async () => {
    await using city = new TmuxCity()
    const spec = city.spec('grep', ['SigIgn', '/proc/self/status'])
    await exitOf(await city.runtime().start(spec, soon()))
    // TTIN and TTOU: tmux itself leaves them ignored in every pane.
    assert.match(await outputOf(spec), /SigIgn:\s*0{10}(3|0)0{5}/)
  })

  test('an agent that kills "the" tmux server does not kill the one it runs in', async () => {
    await using city = new TmuxCity()
    const spec = city.spec('bash', SHELL)
    const agent = await city.runtime().start(spec, soon())
    const server = city.serverPid()
    await agent.deliver(message(1, 'tmux kill-server; echo "tmux=[$TMUX$TMUX_PANE]" alive'), soon())
    await printed(spec, 'tmux=[] alive')
    assert.equal(city.serverPid(), server)
    await agent.stop(0)
  })

  test('every text arrives as it was sent', async () => {
    await using city = new TmuxCity()
    const file = join(city.path, 'received')
    const spec = city.spec(NODE, [RAW_AGENT, file, 'bracketed'])
    const agent = await city.runtime().start(spec, soon())
    await printed(spec, 'ready')
    const texts = [
      'ends in a semicolon;',
      ';',
      '-l -t =x: #{pane_id} #(id) %1 ~ $HOME \'" \\ { }',
      '[201~ what is left of a paste end',
      'tab\tand\nlines\n\nwith an empty one',
      'žluťoučký 🐎 \u00a0',
      '',
      'a line\n'.repeat(15_000).trim(),
      'x'.repeat(3_999),
    ]
    let expected = ''
    for (const [index, text] of texts.entries()) {
      const outcome = await agent.deliver(message(index + 1, text), soon())
      assert.deepEqual(outcome, { state: 'delivered' })
      expected += text === '' ? '\r' : `\u001b[200~${text.replaceAll('\n', '\r')}\u001b[201~\r`
    }
    await until('all bytes', () => read(file).length >= expected.length)
    assert.ok(read(file) === expected)
    await agent.stop(0)
  })

  test('a line that a terminal would cut is refused, not cut', async () => {
    await using city = new TmuxCity()
    const spec = city.spec('cat', [])
    const agent = await city.runtime().start(spec, soon())
    const outcome = await agent.deliver(message(1, `short\n${'x'.repeat(5_000)}`), soon())
    assert.equal(outcome.state === 'failed' && outcome.code, 'too_long')
    assert.equal(await agent.delivered({ seq: 1, id: '' }, soon()), 'no')
    await agent.stop(0)
  })

  test('a delivery is typed once, also when it is asked for again after a restart', async () => {
    await using city = new TmuxCity()
    const spec = city.spec('cat', [])
    const first = city.runtime()
    const agent = await first.start(spec, soon())
    assert.equal((await agent.deliver(message(7, 'once'), soon())).state, 'delivered')
    await printed(spec, 'once\r\nonce')
    agent.release()
    const adoption = await city.runtime().adopt(spec, soon())
    assert.ok(adoption.state === 'alive')
    assert.equal(await adoption.process.delivered({ seq: 7, id: '' }, soon()), 'yes')
    assert.equal(await adoption.process.delivered({ seq: 8, id: '' }, soon()), 'no')
    assert.equal((await adoption.process.deliver(message(7, 'once'), soon())).state, 'delivered')
    assert.equal((await adoption.process.deliver(message(8, 'twice'), soon())).state, 'delivered')
    await printed(spec, 'twice\r\ntwice')
    assert.equal((await outputOf(spec)).split('once').length, 3)
    await adoption.process.stop(0)
  })

  test('what an older connection had sent is not typed after its successor has asked', async () => {
    await using city = new TmuxCity()
    const spec = city.spec('cat', [])
    const agent = await city.runtime().start(spec, soon())
    const server = city.serverPid()
    const next = city.runtime()
    process.kill(server, 'SIGSTOP')
    // Both lie in the server's sockets when it goes on; which it reads first is its choice.
    const late = agent.deliver(message(1, 'once'), soon())
    const adopting = next.adopt(spec, soon())
    await new Promise((resolve) => setTimeout(resolve, 300))
    process.kill(server, 'SIGCONT')
    const adoption = await adopting
    assert.ok(adoption.state === 'alive')
    const known = await adoption.process.delivered({ seq: 1, id: '' }, soon())
    if (known === 'no') assert.equal((await adoption.process.deliver(message(1, 'once'), soon())).state, 'delivered')
    assert.equal((await late).state, 'delivered')
    assert.equal((await adoption.process.deliver(message(2, 'end'), soon())).state, 'delivered')
    // What is typed is echoed before or after what cat makes of the line before.
    await until('the end is echoed and printed', async () => (await outputOf(spec)).split('end').length === 3)
    assert.equal((await outputOf(spec)).split('once').length, 3)
    await adoption.process.stop(0)
  })

  test('a person who scrolls back does not swallow a message', async () => {
    await using city = new TmuxCity()
    const spec = city.spec('cat', [])
    const agent = await city.runtime().start(spec, soon())
    city.tmux('copy-mode', '-t', `=${spec.name}:`)
    assert.equal((await agent.deliver(message(1, 'heard'), soon())).state, 'delivered')
    await printed(spec, 'heard\r\nheard')
    await agent.stop(0)
  })

  test('keys arrive as the bytes of a terminal', async () => {
    await using city = new TmuxCity()
    const file = join(city.path, 'received')
    const spec = city.spec(NODE, [RAW_AGENT, file])
    const agent = await city.runtime().start(spec, soon())
    await printed(spec, 'ready')
    assert.ok('typeKeys' in agent && typeof agent.typeKeys === 'function')
    await agent.typeKeys('\u001b[B\r2;\u007f\u0003', soon())
    await until('keys', () => read(file).length >= 8)
    assert.equal(read(file), '\u001b[B\r2;\u007f\u0003')
    await agent.stop(0)
  })

  test('a shell is idle, then busy with what it was told, then idle, also after a restart of ours', async () => {
    await using city = new TmuxCity()
    const spec = city.spec('bash', SHELL)
    const agent = await city.runtime().start(spec, soon())
    await until('idle', () => agent.activity === 'idle')
    await agent.deliver(message(1, 'sleep 1000'), soon())
    assert.equal(agent.activity, 'in-turn')
    await until('a quiet command is work', async () => (await outputOf(spec)).includes('sleep 1000'))
    agent.release()
    const adoption = await city.runtime().adopt(spec, soon())
    assert.ok(adoption.state === 'alive')
    await until('busy', () => adoption.process.activity === 'in-turn')
    assert.equal(await adoption.process.interrupt(soon()), true)
    await until('idle again', () => adoption.process.activity === 'idle')
    await adoption.process.stop(0)
  })

  test('how an agent ended is seen at once and known later', async () => {
    await using city = new TmuxCity()
    const runtime = city.runtime()
    const spec = city.spec('bash', ['-c', 'echo last words; exit 7'])
    const exit = await exitOf(await runtime.start(spec, soon()))
    assert.equal(exit.reason, 'exited')
    assert.equal(exit.code, 7)
    assert.ok((await outputOf(spec)).includes('last words'))
    const adoption = await city.runtime().adopt(spec, soon())
    assert.ok(adoption.state === 'dead')
    assert.equal(adoption.exit.code, 7)
    // Nobody who is not needed any more runs on: neither its terminal nor who wrote its log.
    assert.ok(!city.tmux('list-sessions', '-F', '#{session_name}').includes(spec.name))
    await until(
      'the writer of its log has ended',
      async () => !(await run('ps', ['-eo', 'args'])).includes(spec.directory),
    )

    const killed = await runtime.start(city.spec('sleep', ['1000']), soon())
    process.kill(killed.pid ?? 0, 'SIGKILL')
    assert.equal((await exitOf(killed)).signal, 'SIGKILL')
  })

  test('an agent whose launcher was killed is not lost', async () => {
    await using city = new TmuxCity()
    const spec = city.spec('sleep', ['1000'])
    const agent = await city.runtime().start(spec, soon())
    process.kill(Number(city.tmux('display-message', '-p', '-t', `=${spec.name}:`, '#{pane_pid}')), 'SIGKILL')
    const exit = await agent.stop(0)
    assert.equal(exit.reason, 'killed')
    assert.ok(!isRunning(agent.pid ?? 0))
  })

  test('the end of an agent whose launcher was killed is seen', async () => {
    await using city = new TmuxCity()
    const spec = city.spec('bash', ['-c', 'setsid sleep 1000 & exec sleep 1000'])
    const agent = await city.runtime().start(spec, soon())
    const ended = exitOf(agent)
    process.kill(Number(city.tmux('display-message', '-p', '-t', `=${spec.name}:`, '#{pane_pid}')), 'SIGKILL')
    process.kill(agent.pid ?? 0, 'SIGKILL')
    assert.equal((await ended).reason, 'unknown')
    assert.deepEqual(findByToken(spec.identity.token), [])
  })

  test('a launcher that stands still after its server and its agent were killed goes with the next adoption', async () => {
    await using city = new TmuxCity()
    const spec = city.spec('sleep', ['1000'])
    const agent = await city.runtime().start(spec, soon())
    assert.ok(agent.pid !== undefined)
    const launcher = Number(await run('ps', ['-o', 'ppid=', '-p', String(agent.pid)]))
    agent.release()
    process.kill(launcher, 'SIGSTOP')
    process.kill(city.serverPid(), 'SIGKILL')
    process.kill(agent.pid, 'SIGKILL')
    const adoption = await city.runtime().adopt(spec, soon())
    assert.equal(adoption.state, 'dead')
    assert.equal(isRunning(launcher), false)
  })

  test('nothing of an agent runs after its stop, whatever it ignores', async () => {
    await using city = new TmuxCity()
    const stubborn = `trap '' TERM HUP INT; (setsid bash -c "trap '' TERM HUP; exec -a stray sleep 1000" &); sleep 1000 & echo up; wait; sleep 1000`
    const spec = city.spec('bash', ['-c', stubborn])
    const agent = await city.runtime().start(spec, soon())
    await printed(spec, 'up')
    await until('all are there', () => findByToken(spec.identity.token).length >= 3)
    const exit = await agent.stop(100)
    assert.equal(exit.reason, 'killed')
    assert.deepEqual(findByToken(spec.identity.token), [])
    assert.equal(city.tmux('list-sessions', '-F', '#{session_name}'), '+control')
    assert.deepEqual(await agent.stop(100), exit)
  })

  test('an agent that ends when it is asked to is not killed', async () => {
    await using city = new TmuxCity()
    const spec = city.spec('bash', ['-c', `trap 'echo bye; exit 3' TERM; echo up; while :; do sleep 0.05; done`])
    const agent = await city.runtime().start(spec, soon())
    await printed(spec, 'up')
    const exit = await agent.stop(10_000)
    assert.equal(exit.code, 3)
    assert.ok((await outputOf(spec)).includes('bye'))
  })

  test('the death of the tmux server is seen, nothing runs on, and the next start has a new one', async () => {
    await using city = new TmuxCity()
    const runtime = city.runtime()
    const spec = city.spec('bash', ['-c', "trap '' HUP; sleep 1000 & echo up; wait"])
    const agent = await runtime.start(spec, soon())
    await printed(spec, 'up')
    const ended = exitOf(agent)
    process.kill(city.serverPid(), 'SIGKILL')
    assert.equal((await ended).reason, 'host_lost')
    assert.deepEqual(findByToken(spec.identity.token), [])
    assert.equal((await agent.deliver(message(1, 'x'), soon())).state, 'failed')
    const next = await runtime.start({ ...spec, identity: { ...spec.identity, generation: 2 } }, soon())
    assert.equal(next.alive, 'alive')
    await next.stop(0)
  })

  test('a message that a dying server may have typed is uncertain, and is not typed again', async () => {
    await using city = new TmuxCity()
    const spec = city.spec('cat', [])
    const agent = await city.runtime().start(spec, soon())
    const server = city.serverPid()
    process.kill(server, 'SIGSTOP')
    const outcome = agent.deliver(message(1, 'x'), soon())
    await new Promise((resolve) => setTimeout(resolve, 100))
    process.kill(server, 'SIGKILL')
    assert.equal((await outcome).state, 'uncertain')
    assert.equal(await agent.delivered({ seq: 1, id: '' }, soon()), 'unknown')
  })

  test('a server that does not answer makes its agents unknown, not dead', async () => {
    await using city = new TmuxCity()
    const spec = city.spec('sleep', ['1000'])
    const agent = await city.runtime().start(spec, soon())
    agent.release()
    const server = city.serverPid()
    process.kill(server, 'SIGSTOP')
    try {
      const adoption = await city.runtime().adopt(spec, AbortSignal.timeout(500))
      assert.equal(adoption.state, 'unknown')
    } finally {
      process.kill(server, 'SIGCONT')
    }
    const adoption = await city.runtime().adopt(spec, soon())
    assert.equal(adoption.state, 'alive')
  })

  test('only who knows the token gets an agent, and a namesake is never taken for it', async () => {
    await using city = new TmuxCity()
    const spec = city.spec('sleep', ['1000'])
    const agent = await city.runtime().start(spec, soon())
    agent.release()
    const stranger = { ...spec, identity: { ...spec.identity, token: 'f'.repeat(32) } }
    assert.equal((await city.runtime().adopt(stranger, soon())).state, 'unknown')
    await assert.rejects(city.runtime().start(stranger, soon()), LaunchError)
    assert.ok(isRunning(agent.pid ?? 0))
    // The next generation of the same session may, and takes it down first.
    const next = city.spec('sleep', ['1000'], { name: spec.name })
    const identity = { ...next.identity, sessionId: spec.identity.sessionId, generation: 2 }
    const started = await city.runtime().start({ ...next, identity }, soon())
    assert.ok(!isRunning(agent.pid ?? 0))
    assert.ok(isRunning(started.pid ?? 0))
  })

  test('a run that was begun and never made is dead, although the terminal of the one before is still there', async () => {
    await using city = new TmuxCity()
    const spec = city.spec('sleep', ['1000'])
    const watching = city.runtime()
    const { pid = 0 } = await watching.start(spec, soon())
    await watching.close()
    process.kill(pid, 'SIGKILL')
    const isDead = () => city.tmux('list-panes', '-t', `=${spec.name}:`, '-F', '#{pane_dead}').trim() === '1'
    await until('its terminal is dead, and there', isDead)
    const next = city.spec('sleep', ['1000'], { name: spec.name })
    const identity = { ...next.identity, sessionId: spec.identity.sessionId, generation: 2 }
    assert.equal((await city.runtime().adopt({ ...next, identity }, soon())).state, 'dead')
  })

  test('a start that cannot be says why and leaves nothing', async () => {
    await using city = new TmuxCity()
    const runtime = city.runtime()
    const cases: [LaunchSpec, LaunchError['code']][] = [
      [city.spec('no-such-program', []), 'not_found'],
      [city.spec(import.meta.filename, []), 'not_found'],
      [city.spec('sleep', ['1'], { workDir: '/no/such/place' }), 'spawn_failed'],
      [city.spec('/bin/sleep', ['1'], { env: { 'A-B': '' } }), 'spawn_failed'],
    ]
    for (const [spec, code] of cases) {
      await assert.rejects(
        runtime.start(spec, soon()),
        (error) => error instanceof LaunchError && error.code === code,
        spec.command,
      )
    }
    const spec = city.spec('sleep', ['1000'])
    await assert.rejects(runtime.start(spec, AbortSignal.abort()), { code: 'aborted' })
    assert.deepEqual(findByToken(spec.identity.token), [])
    assert.ok(!city.tmux('list-sessions', '-F', '#{session_name}').includes('run-'))
  })

  test('a person can attach, is seen, and does not change the size of the terminal', async () => {
    await using city = new TmuxCity()
    const runtime = city.runtime()
    const spec = city.spec('bash', SHELL)
    const agent = await runtime.start(spec, soon())
    assert.equal(await runtime.attached(spec.name), 'dead')
    const { command, args } = runtime.attachCommand(spec.identity, spec.name)
    const person = spawnOnPty(command, [...args], {
      cols: 90,
      rows: 20,
      env: { PATH: process.env['PATH'], TERM: 'xterm' },
    })
    await until('attached', async () => (await runtime.attached(spec.name)) === 'alive')
    await agent.deliver(message(1, 'stty size'), soon())
    await printed(spec, '50 200')
    person.kill('SIGKILL')
    await until('detached', async () => (await runtime.attached(spec.name)) === 'dead')
    await agent.stop(0)
  })

  test('a flood blocks neither control nor the end', async () => {
    await using city = new TmuxCity()
    const spec = city.spec('bash', ['-c', 'yes "a line of the flood" & wait'])
    const agent = await city.runtime().start(spec, soon())
    const reader = openOutputReader(spec.directory)
    await until('10 MB', async () => (await reader.endOffset()) > 10_000_000, 60_000)
    const before = performance.now()
    assert.equal(await agent.delivered({ seq: 1, id: '' }, soon()), 'no')
    assert.ok(performance.now() - before < 2_000)
    await agent.stop(0)
    assert.deepEqual(findByToken(spec.identity.token), [])
  })

  for (const delivery of ['line', 'tui'] as const) {
    test(`no message is lost or typed twice when the supervisor is killed while it types (${delivery})`, async () => {
      await using city = new TmuxCity()
      const file = join(city.path, 'received')
      const spec = city.spec(NODE, [RAW_AGENT, file], { delivery, debounceMs: 5 })
      const agent = await city.runtime().start(spec, soon())
      await printed(spec, 'ready')
      agent.release()
      const journal = join(city.path, 'journal')
      writeFileSync(join(city.path, 'spec.json'), JSON.stringify(spec))
      for (let kill = 0; kill < 15; kill++) await driveAndKill(city, journal, 3 + kill * 2)
      const adoption = await city.runtime().adopt(spec, soon())
      assert.ok(adoption.state === 'alive')
      await settleLast(journal, (seq) => adoption.process.delivered({ seq, id: '' }, soon()))
      const lines = read(journal).trim().split('\n')
      const received = read(file)
      const unknown = lines.filter((line) => line.startsWith('unknown '))
      for (const seq of lines.filter((line) => line.startsWith('intent ')).map((line) => line.slice(7))) {
        const count = received.split(`<m${seq}>`).length - 1
        if (lines.includes(`done ${seq}`)) assert.equal(count, 1, `message ${seq}`)
        else assert.ok(count <= 1, `message ${seq}`)
      }
      assert.deepEqual(unknown, [])
      assert.ok(lines.length > 30, 'it did type')
      await adoption.process.stop(0)
    })
  }
})

/** Runs a driver until it types, and kills it `ms` later. */
async function driveAndKill(city: TmuxCity, journal: string, ms: number): Promise<void> {
  const driver = spawn(NODE, [DRIVER, city.socket, join(city.path, 'spec.json'), journal], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const ended = new Promise<NodeJS.Signals | null>((resolve) => driver.once('exit', (_, signal) => resolve(signal)))
  await Promise.race([new Promise((resolve) => driver.stdout.once('data', resolve)), ended])
  await new Promise((resolve) => setTimeout(resolve, ms))
  driver.kill('SIGKILL')
  assert.equal(await ended, 'SIGKILL')
}

/** What the next supervisor would do about the delivery that the last one was killed at. */
async function settleLast(journal: string, ask: (seq: number) => Promise<'yes' | 'no' | 'unknown'>): Promise<void> {
  const lines = read(journal).trim().split('\n')
  const last = lines.at(-1) ?? ''
  if (!last.startsWith('intent ')) return
  const answer = await ask(Number(last.slice(7)))
  const outcome = { yes: 'done', unknown: 'unknown', no: 'never' }[answer]
  writeFileSync(journal, `${outcome} ${last.slice(7)}\n`, { flag: 'a' })
}

function run(command: string, args: string[]): Promise<string> {
  return new Promise((resolve) => {
    let text = ''
    const child = spawn(command, args, { stdio: ['ignore', 'pipe', 'ignore'] })
    child.stdout.setEncoding('utf8').on('data', (part: string) => {
      text += part
    })
    child.once('close', () => resolve(text))
  })
}
