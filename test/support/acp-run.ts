/** Agents behind the acp runtime, in real host processes: what the tests with agents of ours and of others share. */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { mkdirSync, mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { systemClock } from '../../src/kernel/clock.ts'
import { type AcpRecord, parseAcpLine } from '../../src/runtimes/acp/transcript.ts'
import { createAcpRuntime } from '../../src/runtimes/acp.ts'
import { openOutputReader } from '../../src/runtimes/process/output-log.ts'
import { killTree } from '../../src/runtimes/process/process-tree.ts'
import type { AgentProcess, LaunchSpec, ProcessEvent, Runtime } from '../../src/runtimes/process/runtime.ts'
import { removeTree } from './temporary.ts'

export const ACP_AGENT = resolve(import.meta.dirname, 'acp-agent.ts')
/** Our own agent as lines of a provider. */
export const ACP_PROVIDER = `command = ${JSON.stringify(process.execPath)}
args = [${JSON.stringify(ACP_AGENT)}]
acp_command = ${JSON.stringify(process.execPath)}
acp_args = [${JSON.stringify(ACP_AGENT)}]
supports_acp = true
prompt_mode = "none"`
/** Agents of others take half a minute to begin on a busy machine. */
const PATIENCE_MS = 60_000
const READ_BYTES = 32 * 1024 * 1024

export const newAcpRuntime = (): Runtime => createAcpRuntime({ clock: systemClock, env: process.env, home: tmpdir() })
export const patience = () => AbortSignal.timeout(PATIENCE_MS)

/** A city of its own with one session; what was started in it is killed with it. */
export class AcpStage implements AsyncDisposable {
  readonly root = mkdtempSync(join(tmpdir(), 'svc-acp-'))
  readonly workDir = join(this.root, 'work')
  readonly token = randomBytes(16).toString('hex')
  readonly runtime = newAcpRuntime()
  #generation = 0

  constructor() {
    mkdirSync(this.workDir)
  }

  /** The launch of the next generation: our agent, unless `more` says otherwise. */
  spec(more: Partial<LaunchSpec> = {}): LaunchSpec {
    const generation = ++this.#generation
    const directory = join(this.root, '.svc/runtime/sessions/s1', String(generation))
    mkdirSync(directory, { recursive: true, mode: 0o700 })
    return {
      identity: { sessionId: 's1', generation, token: this.token },
      name: 's1',
      directory,
      workDir: this.workDir,
      command: process.execPath,
      args: [ACP_AGENT],
      env: { PATH: '/usr/bin:/bin', HOME: this.root, SVC_TEST_ACP_HISTORY: join(this.root, 'history') },
      io: 'pipes',
      columns: 80,
      rows: 24,
      delivery: 'line',
      debounceMs: 0,
      interruptKey: 'ctrl-c',
      acp: { handshakeTimeoutMs: PATIENCE_MS },
      ...more,
    }
  }

  async start(spec = this.spec()): Promise<AcpSession> {
    return new AcpSession(await this.runtime.start(spec, patience()), spec)
  }

  /** What an earlier supervisor started. */
  async adopt(spec: LaunchSpec, runtime = this.runtime): Promise<AcpSession> {
    const adoption = await runtime.adopt(spec, patience())
    assert.ok(adoption.state === 'alive', JSON.stringify(adoption))
    return new AcpSession(adoption.process, spec)
  }

  async [Symbol.asyncDispose]() {
    // By token: a process that was released or whose start failed has nobody else to end it. Hosts leave with their directory.
    await killTree({ token: this.token }, systemClock)
    await this.runtime.close()
    removeTree(this.root)
  }
}

let deliveries = 0

export class AcpSession {
  readonly process: AgentProcess
  readonly spec: LaunchSpec
  readonly events: ProcessEvent[] = []

  constructor(process: AgentProcess, spec: LaunchSpec) {
    this.process = process
    this.spec = spec
    process.on((event) => void this.events.push(event))
  }

  async deliver(text: string, id = `d${deliveries + 1}`): Promise<void> {
    const outcome = await this.process.deliver({ seq: ++deliveries, id, text }, patience())
    assert.deepEqual(outcome, { state: 'delivered' })
  }

  /** Delivers, and waits for the end of its turn. */
  async turn(text: string): Promise<Extract<AcpRecord, { kind: 'turn_end' }>> {
    const before = (await this.#ends()).length
    await this.deliver(text)
    return await this.until(`the turn ends: ${text}`, async () => (await this.#ends())[before])
  }

  async output(): Promise<string> {
    const { bytes } = await openOutputReader(this.spec.directory).read(0, READ_BYTES)
    return bytes.toString('utf8')
  }

  async records(): Promise<AcpRecord[]> {
    return (await this.output()).split('\n').flatMap((line) => parseAcpLine(line, 0) ?? [])
  }

  /** What the agent said, chunk by chunk. */
  async said(): Promise<string[]> {
    return (await this.records()).flatMap((record) => (record.kind === 'assistant' ? [record.text] : []))
  }

  pending() {
    return this.until('something is pending', () => this.process.pending)
  }

  idle() {
    return this.until('the agent is idle', () => this.process.activity === 'idle')
  }

  exit() {
    return this.until('the exit is told', () => this.events.find((event) => event.type === 'exit')?.exit)
  }

  async until<T>(what: string, look: () => T | undefined | false | Promise<T | undefined | false>): Promise<T> {
    const deadline = patience()
    for (;;) {
      const found = await look()
      if (found !== undefined && found !== false) return found
      if (deadline.aborted)
        assert.fail(`${what}; ${JSON.stringify(this.events)}; ${(await this.output()).slice(-4000)}`)
      await new Promise((later) => setTimeout(later, 20))
    }
  }

  async #ends() {
    return (await this.records()).filter((record) => record.kind === 'turn_end')
  }
}
