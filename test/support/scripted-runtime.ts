/** A runtime without processes: agents whose every answer a test decides. */
import { ProcessEvents } from '../../src/runtimes/process/process-events.ts'
import type {
  Activity,
  Adoption,
  AgentProcess,
  Answer,
  Delivery,
  DeliveryOutcome,
  Exit,
  Identity,
  LaunchSpec,
  Liveness,
  Pending,
  ProcessEvent,
  Runtime,
  SettingOutcome,
} from '../../src/runtimes/process/runtime.ts'

const AT_NOON = Date.UTC(2026, 4, 1, 12)
const KILLED: Exit = { code: undefined, signal: 'SIGKILL', reason: 'killed', at: AT_NOON }

/** An agent behind a protocol that does what it is told at once, unless a test replaces one of its functions. */
export class ScriptedProcess implements AgentProcess {
  readonly identity: Identity
  readonly pid = 4_000_000
  readonly personTyping = false
  readonly size = undefined
  readonly endOffset = 0
  readonly heard: string[] = []
  readonly #events = new ProcessEvents()
  alive: Liveness = 'alive'
  activity: Activity = 'idle'
  pending: Pending | undefined
  deliver: (delivery: Delivery) => Promise<DeliveryOutcome> = ({ text }) => {
    this.heard.push(text)
    return Promise.resolve({ state: 'delivered' })
  }
  delivered: () => Promise<'yes' | 'no' | 'unknown'> = () => Promise.resolve('unknown')
  interrupt: () => Promise<boolean> = () => {
    this.become('idle')
    return Promise.resolve(true)
  }
  stop: (graceMs: number) => Promise<Exit> = () => {
    this.alive = 'dead'
    return Promise.resolve(KILLED)
  }

  constructor(identity: Identity) {
    this.identity = identity
  }

  become(activity: Activity): void {
    this.activity = activity
    this.tell({ type: 'activity', activity })
  }

  /** It ends by itself. */
  exit(code: number): void {
    this.alive = 'dead'
    this.tell({ type: 'exit', exit: { code, signal: undefined, reason: 'exited', at: AT_NOON } })
  }

  tell(event: ProcessEvent): void {
    this.#events.tell(event)
  }

  on(listener: (event: ProcessEvent) => void): () => void {
    return this.#events.on(listener)
  }

  answer(requestId: string, _answer: Answer): Promise<boolean> {
    return Promise.resolve(this.pending?.requestId === requestId)
  }

  input(): Promise<void> {
    return Promise.resolve()
  }

  typeKeys(): Promise<void> {
    return Promise.resolve()
  }

  typeLine(): Promise<boolean> {
    return Promise.resolve(false)
  }

  resize(): Promise<void> {
    return Promise.resolve()
  }

  set(): Promise<SettingOutcome> {
    return Promise.resolve({ state: 'unsupported' })
  }

  release(): void {
    this.#events.clear()
  }
}

export class ScriptedRuntime implements Runtime {
  readonly name = 'acp'
  readonly abilities = { interrupt: true, pending: true, screen: false }
  /** Every process that was started, in order. */
  readonly processes: ScriptedProcess[] = []
  /** Called with each process before it is handed out. */
  made: (process: ScriptedProcess) => void = () => {}
  found: () => Adoption = () => ({ state: 'dead', exit: KILLED })

  get last(): ScriptedProcess {
    const process = this.processes.at(-1)
    if (process === undefined) throw new Error('nothing was started')
    return process
  }

  unavailable(): Promise<undefined> {
    return Promise.resolve(undefined)
  }

  start({ identity }: LaunchSpec): Promise<AgentProcess> {
    const process = new ScriptedProcess(identity)
    this.processes.push(process)
    this.made(process)
    return Promise.resolve(process)
  }

  adopt(): Promise<Adoption> {
    return Promise.resolve(this.found())
  }

  close(): Promise<void> {
    return Promise.resolve()
  }
}

/** Runs as `provider` of a `SessionCity` whose runtime is scripted. */
export const SCRIPTED = {
  command: '/bin/true',
  args: [],
  supports_acp: true,
  prompt_mode: 'omit',
  delivery: 'line',
} as const
