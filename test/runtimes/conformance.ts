/**
 * What every runtime owes, with real processes (architecture §7). A runtime brings a program that does, on a message, what
 * `ConformingProgram` says: a shell on a terminal, an agent behind a protocol.
 */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { mkdirSync, mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { suite, test } from 'node:test'
import { systemClock } from '../../src/kernel/clock.ts'
import { openOutputReader } from '../../src/runtimes/process/output-log.ts'
import { findByToken, killTree } from '../../src/runtimes/process/process-tree.ts'
import {
  type AgentProcess,
  type Exit,
  LaunchError,
  type LaunchSpec,
  type ProcessEvent,
  type Runtime,
} from '../../src/runtimes/process/runtime.ts'
import { removeTree } from '../support/temporary.ts'

const FLOOD_BYTES = 200_000_000

export interface ConformingProgram {
  readonly launch: Pick<LaunchSpec, 'command' | 'args' | 'io'> & Partial<LaunchSpec>
  /** Message that makes it print `text`, without holding it: what is echoed must not look like the answer. */
  say(text: string): string
  /** Message that makes it end with this code. */
  exit(code: number): string
  /** Prints so much, then says `end of flood`. */
  flood(bytes: number): string
  /** Prints so many times `y` without a newline, then says `end of line`. */
  longLine(bytes: number): string
  /** Prints ff fe 80, then says `end of bytes`. */
  readonly oddBytes: string
  /** Starts a child that ignores TERM and HUP, and says `child of <pid>`. */
  readonly stubborn: string
  /** What of the log the program itself has said; all of it, where absent. */
  said?(log: string): string
  /** A turn that ends by an interrupt only; says `busy`. Absent where the program cannot be interrupted. */
  readonly busy?: string
}

/** `make`: a runtime as a supervisor of that city makes it; called again for the next supervisor. */
export function runtimeConformance(name: string, make: (city: string) => Runtime, program: ConformingProgram): void {
  suite(name, { timeout: 180_000 }, () => {
    test('a message is delivered once the agent runs, and what it prints can be read by offset', async () => {
      await using city = new TestCity(make, program.said)
      const { spec, agent, told } = await city.start(program)
      assert.equal(agent.alive, 'alive')
      assert.deepEqual(agent.identity, spec.identity)
      assert.deepEqual(await agent.deliver(message(1, program.say('hello')), soon()), { state: 'delivered' })
      await city.printed(spec, 'hello')
      const reader = openOutputReader(spec.directory)
      const at = (await outputOf(spec)).indexOf('hello')
      assert.equal((await reader.read(at, 5)).bytes.toString(), 'hello')
      await until('the end of the output is told', async () => agent.endOffset === (await reader.endOffset()))
      const ends = told.flatMap((event) => (event.type === 'output' ? [event.endOffset] : []))
      assert.deepEqual(
        ends,
        [...ends].sort((a, b) => a - b),
      )
    })

    test('twenty messages given at once arrive whole and in their order', async () => {
      await using city = new TestCity(make, program.said)
      const { spec, agent } = await city.start(program)
      const numbers = Array.from({ length: 20 }, (_, at) => at + 1)
      const outcomes = await Promise.all(
        numbers.map((seq) => agent.deliver(message(seq, program.say(`<<${seq}>>`)), soon())),
      )
      assert.ok(
        outcomes.every(({ state }) => state === 'delivered'),
        JSON.stringify(outcomes),
      )
      await city.printed(spec, '<<20>>')
      const said = [...(await city.said(spec)).matchAll(/<<(\d+)>>/g)].map((found) => Number(found[1]))
      assert.deepEqual(said, numbers)
    })

    test('the end of an agent is told with its exit code', async () => {
      await using city = new TestCity(make, program.said)
      const { agent, told, exit } = await city.start(program)
      await agent.deliver(message(1, program.exit(7)), soon())
      assert.deepEqual(pick(await exit), { code: 7, signal: undefined, reason: 'exited' })
      assert.equal(agent.alive, 'dead')
      assert.equal(told.at(-1)?.type, 'exit')
      const late = await agent.deliver(message(2, program.say('late')), soon())
      assert.deepEqual([late.state, late.state === 'failed' && late.code], ['failed', 'closed'])
      assert.deepEqual(pick(await agent.stop(1_000)), pick(await exit))
    })

    test('an agent that is killed from outside is told with the signal', async () => {
      await using city = new TestCity(make, program.said)
      const { agent, exit } = await city.start(program)
      assert.ok(agent.pid !== undefined)
      process.kill(agent.pid, 'SIGKILL')
      assert.equal((await exit).signal, 'SIGKILL')
    })

    test('stop leaves no process behind, also where TERM and HUP are ignored', async () => {
      await using city = new TestCity(make, program.said)
      const { spec, agent } = await city.start(program)
      await agent.deliver(message(1, program.stubborn), soon())
      await city.printed(spec, 'child of ')
      assert.ok(findByToken(spec.identity.token).length >= 2)
      const [exit, again] = await Promise.all([agent.stop(500), agent.stop(500)])
      assert.deepEqual(findByToken(spec.identity.token), [])
      assert.deepEqual(exit, again)
      assert.equal(agent.alive, 'dead')
    })

    test('an agent that ends by itself leaves no child behind', async () => {
      await using city = new TestCity(make, program.said)
      const { spec, agent, exit } = await city.start(program)
      await agent.deliver(message(1, program.stubborn), soon())
      await city.printed(spec, 'child of ')
      await agent.deliver(message(2, program.exit(0)), soon())
      assert.equal((await exit).code, 0)
      assert.deepEqual(findByToken(spec.identity.token), [])
    })

    test('an interrupt ends the turn and not the agent', async () => {
      await using city = new TestCity(make, program.said)
      const { spec, agent } = await city.start(program)
      if (program.busy === undefined) {
        assert.equal(await agent.interrupt(soon()), false)
        return
      }
      await agent.deliver(message(1, program.busy), soon())
      await city.printed(spec, 'busy')
      await until('it is in a turn', () => agent.activity === 'in-turn')
      assert.equal(await agent.interrupt(soon()), true)
      await until('it is idle', () => agent.activity === 'idle')
      await agent.deliver(message(2, program.say('still here')), soon())
      await city.printed(spec, 'still here')
    })

    test('an agent outlives its supervisor, and the next one takes it over with its token only', async () => {
      await using city = new TestCity(make, program.said)
      const { spec, agent } = await city.start(program)
      const { pid } = agent
      await agent.deliver(message(1, program.say('first')), soon())
      await city.printed(spec, 'first')
      agent.release()
      const runtime = city.runtime()
      const stranger = { ...spec, identity: { ...spec.identity, token: randomBytes(16).toString('hex') } }
      assert.notEqual((await runtime.adopt(stranger, soon())).state, 'alive')
      const later = { ...spec, identity: { ...spec.identity, generation: spec.identity.generation + 1 } }
      assert.notEqual((await runtime.adopt(later, soon())).state, 'alive')
      const adoption = await runtime.adopt(spec, soon())
      assert.ok(adoption.state === 'alive', JSON.stringify(adoption))
      const adopted = city.follow(adoption.process)
      assert.equal(adopted.agent.pid, pid)
      assert.equal(await adopted.agent.delivered({ seq: 1, id: 'm1' }, soon()), 'yes')
      assert.equal(await adopted.agent.delivered({ seq: 2, id: 'm2' }, soon()), 'no')
      // Typed before: the answer is known, the agent hears nothing.
      assert.deepEqual(await adopted.agent.deliver(message(1, program.say('first')), soon()), { state: 'delivered' })
      await adopted.agent.deliver(message(2, program.say('second')), soon())
      await city.printed(spec, 'second')
      assert.equal((await city.said(spec)).split('first').length, 2)
      await adopted.agent.stop(200)
      const after = await city.runtime().adopt(spec, soon())
      assert.ok(after.state === 'dead', JSON.stringify(after))
    })

    test('an agent that ended while nobody looked is known to be dead, and how', async () => {
      await using city = new TestCity(make, program.said)
      const { spec, agent } = await city.start(program)
      agent.release()
      const again = await city.runtime().adopt(spec, soon())
      assert.ok(again.state === 'alive')
      const pid = again.process.pid
      await again.process.deliver(message(1, program.exit(9)), soon())
      again.process.release()
      await until('it has ended', () => pid !== undefined && findByToken(spec.identity.token).length === 0)
      let exit: Exit | undefined
      await until('its end is known', async () => {
        const adoption = await city.runtime().adopt(spec, soon())
        if (adoption.state === 'dead') exit = adoption.exit
        return exit !== undefined
      })
      assert.equal(exit?.code, 9)
    })

    test('a flood of output does not delay control and loses nothing', async () => {
      await using city = new TestCity(make, program.said)
      const { spec, agent } = await city.start(program)
      await agent.deliver(message(1, program.flood(FLOOD_BYTES)), soon())
      await until('the flood has begun', () => agent.endOffset > 1_000_000)
      const typical = await typicalAnswer(agent, () => agent.endOffset > 50_000_000)
      assert.ok(typical < 1_000, `control took ${Math.round(typical)} ms`)
      await until('the flood is over', async () => (await tailOf(spec)).includes('end of flood'), 120_000)
      assert.ok((await openOutputReader(spec.directory).endOffset()) >= FLOOD_BYTES)
    })

    test('a flood can be stopped', async () => {
      await using city = new TestCity(make, program.said)
      const { spec, agent } = await city.start(program)
      await agent.deliver(message(1, program.flood(FLOOD_BYTES * 10)), soon())
      await until('the flood has begun', () => agent.endOffset > 1_000_000)
      await agent.stop(100)
      assert.deepEqual(findByToken(spec.identity.token), [])
      assert.equal(agent.endOffset, await openOutputReader(spec.directory).endOffset())
    })

    test('bytes that are no text are kept as they are', async () => {
      await using city = new TestCity(make, program.said)
      const { spec, agent } = await city.start(program)
      await agent.deliver(message(1, program.oddBytes), soon())
      await city.printed(spec, 'end of bytes')
      const { bytes } = await openOutputReader(spec.directory).read(0, 1_000_000)
      assert.ok(bytes.includes(Buffer.from([0xff, 0xfe, 0x80])))
    })

    test('a line of a million characters comes through', async () => {
      await using city = new TestCity(make, program.said)
      const { spec, agent } = await city.start(program)
      await agent.deliver(message(1, program.longLine(1_000_000)), soon())
      await city.printed(spec, 'end of line')
      const longest = Math.max(...[...(await city.said(spec)).matchAll(/y+/g)].map(([found]) => found.length))
      assert.ok(longest >= 1_000_000, `${longest} in a row`)
    })

    test('a program that is not there is a start that failed, with a code', async () => {
      await using city = new TestCity(make, program.said)
      const spec = city.spec({ ...program.launch, command: '/nowhere/to/be/found', args: [] })
      await assert.rejects(city.runtime().start(spec, soon()), (error) => error instanceof LaunchError)
      assert.deepEqual(findByToken(spec.identity.token), [])
    })

    test('a start that is aborted leaves nothing behind', async () => {
      await using city = new TestCity(make, program.said)
      for (const afterMs of [0, 30, 80]) {
        const spec = city.spec(program.launch)
        const start = city.runtime().start(spec, AbortSignal.timeout(afterMs))
        const outcome = await start.then(
          (agent) => agent,
          (error: unknown) => error,
        )
        if (outcome instanceof Error) assert.ok(outcome instanceof LaunchError, String(outcome))
        else await city.follow(outcome as AgentProcess).agent.stop(100)
        assert.deepEqual(findByToken(spec.identity.token), [])
        assert.equal((await city.runtime().adopt(spec, soon())).state, 'dead')
      }
    })
  })
}

/** How long a question about a delivery took while `done` was not so: most of them, since others need the machine too. */
async function typicalAnswer(agent: AgentProcess, done: () => boolean): Promise<number> {
  const took: number[] = []
  for (let asked = 0; asked < 500 && (asked < 5 || !done()); asked++) {
    const before = performance.now()
    await agent.delivered({ seq: 1, id: 'm1' }, soon())
    took.push(performance.now() - before)
  }
  return took.sort((one, other) => one - other)[Math.floor(took.length / 2)] ?? 0
}

export const soon = () => AbortSignal.timeout(30_000)
export const message = (seq: number, text: string) => ({ seq, id: `m${seq}`, text })
const pick = ({ code, signal, reason }: Exit) => ({ code, signal, reason })

/** Waits for a condition; fails with `what` after its deadline. */
export async function until(what: string, isSo: () => boolean | Promise<boolean>, timeoutMs = 20_000): Promise<void> {
  const deadline = performance.now() + timeoutMs
  while (!(await isSo())) {
    if (performance.now() > deadline) throw new Error(`waited in vain: ${what}`)
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
}

export async function outputOf({ directory }: Pick<LaunchSpec, 'directory'>): Promise<string> {
  return (await openOutputReader(directory).read(0, 10_000_000)).bytes.toString('latin1')
}

export async function tailOf({ directory }: Pick<LaunchSpec, 'directory'>): Promise<string> {
  const reader = openOutputReader(directory)
  return (await reader.read(Math.max(0, (await reader.endOffset()) - 4_096), 8_192)).bytes.toString('latin1')
}

interface Followed {
  readonly agent: AgentProcess
  readonly told: readonly ProcessEvent[]
  readonly exit: Promise<Exit>
}

/** A city's directory and the runs in it; whatever a test leaves is killed and removed. */
export class TestCity implements AsyncDisposable {
  readonly path = mkdtempSync(join(tmpdir(), 'svc-run-'))
  readonly #make: (city: string) => Runtime
  readonly #said: (log: string) => string
  readonly #runtimes: Runtime[] = []
  readonly #tokens: string[] = []
  #runs = 0

  constructor(make: (city: string) => Runtime, said = (log: string) => log) {
    this.#make = make
    this.#said = said
  }

  runtime(): Runtime {
    const runtime = this.#make(this.path)
    this.#runtimes.push(runtime)
    return runtime
  }

  spec(more: Pick<LaunchSpec, 'command' | 'args' | 'io'> & Partial<LaunchSpec>): LaunchSpec {
    const token = randomBytes(16).toString('hex')
    this.#tokens.push(token)
    const sessionId = `s-${++this.#runs}`
    const directory = join(this.path, '.svc/runtime/sessions', sessionId, '1')
    mkdirSync(directory, { recursive: true, mode: 0o700 })
    return {
      identity: { sessionId, generation: 1, token },
      name: sessionId,
      directory,
      workDir: this.path,
      columns: 200,
      rows: 50,
      delivery: 'line',
      debounceMs: 30,
      interruptKey: 'ctrl-c',
      ...more,
      env: {
        PATH: process.env['PATH'] ?? '',
        HOME: this.path,
        TERM: 'xterm-256color',
        LANG: 'C.UTF-8',
        SVC_INSTANCE_TOKEN: token,
        SVC_SESSION_ID: sessionId,
        SVC_CITY_PATH: this.path,
        ...more.env,
      },
    }
  }

  async start(program: ConformingProgram, more: Partial<LaunchSpec> = {}): Promise<Followed & { spec: LaunchSpec }> {
    const spec = this.spec({ ...program.launch, ...more })
    return { spec, ...this.follow(await this.runtime().start(spec, soon())) }
  }

  follow(agent: AgentProcess): Followed {
    const told: ProcessEvent[] = []
    const { promise, resolve, reject } = Promise.withResolvers<Exit>()
    const timer = setTimeout(() => reject(new Error('no end was told')), 60_000)
    timer.unref()
    // Most tests do not wait for the end: it is no failure of theirs that none was told.
    promise.catch(() => {})
    agent.on((event) => {
      told.push(event)
      if (event.type !== 'exit') return
      clearTimeout(timer)
      resolve(event.exit)
    })
    return { agent, told, exit: promise }
  }

  printed(spec: LaunchSpec, text: string): Promise<void> {
    return until(`output "${text}"`, async () => (await this.said(spec)).includes(text))
  }

  async said(spec: LaunchSpec): Promise<string> {
    return this.#said(await outputOf(spec))
  }

  async [Symbol.asyncDispose]() {
    for (const runtime of this.#runtimes) await runtime.close()
    for (const token of this.#tokens) await killTree({ token }, systemClock)
    // Hosts leave when their directory is gone.
    removeTree(this.path)
  }
}
