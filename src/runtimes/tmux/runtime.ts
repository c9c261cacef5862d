/**
 * The `tmux` runtime (decision 56): one tmux server per city on a socket of its own. The server belongs to nobody: it
 * outlives supervisors, and the agents in it are found again by their marks.
 *
 * A survey (one `list-panes` for all agents) follows every notification that sessions have changed, every lost
 * connection, and 5 s after the last one while an agent lives: it finds what no record tells.
 */
import { existsSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { dirname, extname, join } from 'node:path'
import { type Clock, delay } from '../../kernel/clock.ts'
import type { Logger } from '../../kernel/log.ts'
import { findBinary, minimalEnvironment, runBriefly } from '../../kernel/processes.ts'
import { compileCache } from '../compile-cache.ts'
import {
  identify,
  ignoresTerm,
  isGone,
  livenessOf,
  type ProcessIdentity,
  readStat,
} from '../process/process-identity.ts'
import { killTree, type Tree } from '../process/process-tree.ts'
import {
  type Adoption,
  type AdoptSpec,
  type Attachable,
  type Exit,
  type Identity,
  LaunchError,
  type LaunchSpec,
  type Liveness,
  type Runtime,
} from '../process/runtime.ts'
import { ControlError, TmuxControl } from './control.ts'
import { findLauncher, prepareLaunch, readAgentPid, readExit, removeScript } from './launch.ts'
import { createPane, deleteStaleBuffers, endIdleServer, listPanes, type PaneState, removePane } from './pane.ts'
import { TmuxProcess } from './process.ts'
import { quoted } from './quoting.ts'

/** `run-shell -C`, `copy-mode -q` and braces in `if-shell` are as old as this. */
const OLDEST_TMUX = 3.2
const BRIEF_MS = 5_000
const SURVEY_PAUSE_MS = 100
const SURVEY_MS = 5_000
const LAUNCH_TIMEOUT_MS = 10_000
const LAUNCH_LOOK_MS = 5

/** `window-size manual` is set per window: as a global option it crashes tmux 3.3. */
const CONFIG = `set-option -s exit-empty off
set-option -s set-clipboard off
set-option -s escape-time 0
set-option -g default-shell /bin/sh
set-option -g default-size 200x50
set-option -g status off
set-option -g history-limit 10000
set-option -g destroy-unattached off
set-option -g remain-on-exit on
set-option -g automatic-rename off
set-option -g allow-rename off
set-option -g set-titles off
`

export interface TmuxRuntimeDeps {
  readonly clock: Clock
  readonly log: Pick<Logger, 'warn'>
  /** In a directory that only we can use (`openSocketDirectory`); at most 100 bytes. */
  readonly socket: string
  /** The supervisor's environment: PATH to find tmux, locale and paths for the server; the agents get none of it. */
  readonly env: Readonly<Record<string, string | undefined>>
}

export function createTmuxRuntime(deps: TmuxRuntimeDeps): Runtime & Attachable {
  return new TmuxRuntime(deps)
}

/** Ends the server of a city that nobody looks after any more, with whatever is in it. */
export async function endTmuxServer({ socket, env }: Pick<TmuxRuntimeDeps, 'socket' | 'env'>): Promise<void> {
  const tmux = await findBinary('tmux', env)
  if (tmux === undefined || !existsSync(socket)) return
  await runBriefly(tmux, ['-S', socket, 'kill-server'], { env: minimalEnvironment(env), timeoutMs: BRIEF_MS })
}

class TmuxRuntime implements Runtime, Attachable {
  readonly name = 'tmux'
  readonly abilities = { interrupt: true, pending: false, screen: true }
  readonly #deps: TmuxRuntimeDeps
  readonly #processes = new Set<TmuxProcess>()
  #control: Promise<TmuxControl> | undefined
  #surveying = false
  #nextSurvey = Number.POSITIVE_INFINITY
  #cancelSurvey: (() => void) | undefined
  #closed = false

  constructor(deps: TmuxRuntimeDeps) {
    this.#deps = deps
  }

  async unavailable(): Promise<string | undefined> {
    const tmux = await findBinary('tmux', this.#deps.env)
    if (tmux === undefined) return 'tmux is not on the PATH'
    const { stdout } = await runBriefly(tmux, ['-V'], { env: this.#serverEnv(), timeoutMs: BRIEF_MS })
    const version = /(\d+\.\d+)/.exec(stdout)?.[1]
    if (version === undefined || Number(version) >= OLDEST_TMUX) return undefined
    return `tmux ${version} is too old: ${OLDEST_TMUX} is needed`
  }

  async start(spec: LaunchSpec, signal: AbortSignal): Promise<TmuxProcess> {
    assertAlive(signal)
    const script = await prepareLaunch(spec)
    const control = await this.#connect().catch(failedLaunch)
    await this.#makeRoom(control, spec).catch(failedLaunch)
    try {
      assertAlive(signal)
      await createPane(control, { ...spec, script, writer: logWriter(spec.directory) }).catch(failedLaunch)
      return await this.#launched(control, spec, signal)
    } catch (error) {
      // C3: a command that was lost on the way cannot make the session after this. The launcher has no token of its own.
      const pane = await this.#findPane(control, spec).catch(() => undefined)
      await this.#kill({ token: spec.identity.token, ...(await rootOf(pane, spec.directory)) })
      await removePane(control, spec.name, spec.identity.token).catch(() => {})
      await removeScript(spec.directory)
      throw error
    }
  }

  async adopt(spec: AdoptSpec, signal: AbortSignal): Promise<Adoption> {
    const { promise, resolve } = Promise.withResolvers<Adoption>()
    const giveUp = () => resolve({ state: 'unknown', message: 'tmux did not answer in time' })
    signal.addEventListener('abort', giveUp, { once: true })
    if (signal.aborted) giveUp()
    try {
      return await Promise.race([promise, this.#adopt(spec, signal)])
    } finally {
      signal.removeEventListener('abort', giveUp)
    }
  }

  async close(): Promise<void> {
    this.#closed = true
    this.#cancelSurvey?.()
    for (const process of [...this.#processes]) process.release()
    const control = await this.#control?.catch(() => undefined)
    if (control === undefined) return
    await endIdleServer(control).catch(() => {}) // What does not answer is left alone.
    await control.close()
  }

  attachCommand(_identity: Identity, name: string) {
    return { command: 'tmux', args: ['-S', this.#deps.socket, 'attach', '-t', `=${name}`] }
  }

  async attached(name: string): Promise<Liveness> {
    try {
      const control = await this.#connect()
      const lines = await control.run(() => `list-clients -t ${quoted(`=${name}`)} -F '#{client_control_mode}'`)
      return lines.includes('0') ? 'alive' : 'dead'
    } catch (error) {
      return error instanceof ControlError && error.code === 'refused' ? 'dead' : 'unknown'
    }
  }

  // ── starting ──

  /** A session of this name is an earlier generation that nobody took down, or somebody else's. */
  async #makeRoom(control: TmuxControl, { identity, name }: LaunchSpec): Promise<void> {
    const panes = await listPanes(control)
    const old = panes.find((pane) => pane.name === name)
    if (old === undefined) return
    if (!isEarlier(old, identity)) {
      throw new LaunchError('spawn_failed', `there is a tmux session ${name} already`)
    }
    await this.#kill({ token: old.token, ...paneRoot(old) })
    await removePane(control, name, old.token)
  }

  async #launched(control: TmuxControl, spec: LaunchSpec, signal: AbortSignal): Promise<TmuxProcess> {
    const { clock } = this.#deps
    const deadline = clock.monotonic() + LAUNCH_TIMEOUT_MS
    for (;;) {
      // In this order: whoever has ended before its number was read has left that number all the same (L1).
      const exit = await readExit(spec.directory)
      const pid = await readAgentPid(spec.directory)
      if (pid === undefined && exit !== undefined) throw new LaunchError('exited', 'it ended before it ran', exit)
      if (pid !== undefined) {
        const pane = await this.#findPane(control, spec).catch(failedLaunch)
        if (pane !== undefined) return this.#watch(control, spec, { pid, pane })
        if (exit !== undefined) throw new LaunchError('exited', 'it ended at once, and its terminal with it', exit)
      }
      if (clock.monotonic() > deadline) throw new LaunchError('timeout', 'tmux did not start it in time')
      assertAlive(signal)
      await delay(clock, LAUNCH_LOOK_MS)
    }
  }

  // ── adopting ──

  async #adopt(spec: AdoptSpec, signal: AbortSignal): Promise<Adoption> {
    let panes: readonly PaneState[]
    try {
      const control = await this.#connect()
      panes = await listPanes(control, signal)
      await deleteStaleBuffers(control, spec.name).catch(() => {})
      return await this.#judge(control, spec, panes)
    } catch (error) {
      if (signal.aborted) return { state: 'unknown', message: 'tmux did not answer in time' }
      return { state: 'unknown', message: error instanceof Error ? error.message : String(error) }
    }
  }

  async #judge(control: TmuxControl, spec: AdoptSpec, panes: readonly PaneState[]): Promise<Adoption> {
    const { identity, name, directory } = spec
    const pane = panes.find(({ token }) => token === identity.token)
    if (pane !== undefined && pane.generation !== identity.generation) {
      return { state: 'unknown', message: `the tmux session ${pane.name} has generation ${pane.generation}` }
    }
    const pid = await readAgentPid(directory)
    // Read after the panes: who ended in between has left its record.
    const ended = await readExit(directory)
    if (pane !== undefined && !pane.dead && pid !== undefined && ended === undefined) {
      return { state: 'alive', process: this.#watch(control, spec, { pid, pane }) }
    }
    // An earlier run of the same session is no riddle: this one was begun and not made, and its successor makes room.
    const namesake = panes.find((other) => other.name === name && !isEarlier(other, identity))
    if (pane === undefined && namesake !== undefined && ended === undefined) {
      return { state: 'unknown', message: `the tmux session ${name} is not the one of this run` }
    }
    return this.#buried(control, spec, { ended, pane })
  }

  /** It has ended while nobody looked; what it left behind goes, too. */
  async #buried(
    control: TmuxControl,
    spec: AdoptSpec,
    { ended, pane }: { ended: Exit | undefined; pane: PaneState | undefined },
  ): Promise<Adoption> {
    const survivors = await this.#kill({ token: spec.identity.token, ...(await rootOf(pane, spec.directory)) })
    if (survivors.length > 0) return { state: 'unknown', message: `cannot kill ${survivors.join(', ')}` }
    await removePane(control, spec.name, spec.identity.token)
    const message = 'it ended while no supervisor ran'
    const lost = {
      code: undefined,
      signal: undefined,
      reason: 'host_lost',
      message,
      at: this.#deps.clock.now(),
    } as const
    return { state: 'dead', exit: ended ?? lost }
  }

  // ── watching ──

  #watch(control: TmuxControl, spec: AdoptSpec, found: { pid: number; pane: PaneState }): TmuxProcess {
    const tree = { token: spec.identity.token, ...paneRoot(found.pane) }
    const agent = identify(found.pid)
    const process: TmuxProcess = new TmuxProcess(
      {
        clock: this.#deps.clock,
        log: this.#deps.log,
        control,
        killTree: () => this.#kill(tree),
        liveness: () => (agent === undefined ? 'unknown' : livenessOf(agent)),
        terminate: () => terminateGroup(agent, spec.delivery),
        onOver: () => this.#processes.delete(process),
      },
      spec,
      found,
    )
    this.#processes.add(process)
    void removeScript(spec.directory)
    this.#surveyIn(SURVEY_MS)
    return process
  }

  async #findPane(control: TmuxControl, { identity }: AdoptSpec): Promise<PaneState | undefined> {
    return (await listPanes(control)).find(({ token }) => token === identity.token)
  }

  #surveyIn(ms: number): void {
    const { clock } = this.#deps
    const due = clock.monotonic() + ms
    if (this.#closed || this.#processes.size === 0 || due >= this.#nextSurvey) return
    this.#cancelSurvey?.()
    this.#nextSurvey = due
    this.#cancelSurvey = clock.after(ms, () => {
      this.#nextSurvey = Number.POSITIVE_INFINITY
      void this.#survey()
    })
  }

  async #survey(): Promise<void> {
    if (this.#surveying || this.#closed) return
    this.#surveying = true
    const before = [...this.#processes]
    const panes = await this.#connect()
      .then((control) => listPanes(control))
      .catch(() => undefined)
    // Whoever came after the question is not in the answer.
    for (const process of before) process.observe(panes)
    this.#surveying = false
    this.#surveyIn(SURVEY_MS)
  }

  #kill(tree: Tree): Promise<readonly number[]> {
    return killTree(tree, this.#deps.clock)
  }

  // ── the server ──

  #connect(): Promise<TmuxControl> {
    this.#control ??= this.#open().catch((error) => {
      this.#control = undefined
      throw error
    })
    return this.#control
  }

  async #open(): Promise<TmuxControl> {
    const { clock, socket, env } = this.#deps
    const tmux = await findBinary('tmux', env)
    if (tmux === undefined) throw new ControlError('unreachable', 'tmux is not on the PATH')
    const configFile = join(dirname(socket), 'tmux.conf')
    await writeFile(configFile, CONFIG, { mode: 0o600 })
    return new TmuxControl({
      clock,
      tmux,
      socket,
      configFile,
      env: this.#serverEnv(),
      onNotification: (name) => {
        if (name === 'sessions-changed') this.#surveyIn(SURVEY_PAUSE_MS)
      },
      onLost: () => this.#surveyIn(0),
    })
  }

  #serverEnv(): Readonly<Record<string, string>> {
    return { ...minimalEnvironment(this.#deps.env), ...compileCache() }
  }
}

const isEarlier = (pane: PaneState, { sessionId, generation }: Identity): boolean =>
  pane.sessionId === sessionId && pane.generation < generation

/** The pane's first process leads a kernel session: all that is in it belongs to the run. A dead pane's pid means nobody. */
function paneRoot(pane: PaneState | undefined): Pick<Tree, 'root'> {
  const root = pane === undefined || pane.dead ? undefined : identify(pane.pid)
  return root === undefined ? {} : { root }
}

/** Without a pane, the script that it was made for. */
async function rootOf(pane: PaneState | undefined, directory: string): Promise<Pick<Tree, 'root'>> {
  const { root = await findLauncher(directory) } = paneRoot(pane)
  return root === undefined ? {} : { root }
}

/**
 * TERM to the agent's process group, unless its number means another process by now. An interactive shell ignores that: a
 * terminal that goes away is what it ends by.
 */
function terminateGroup(agent: ProcessIdentity | undefined, delivery: AdoptSpec['delivery']): void {
  if (agent === undefined || livenessOf(agent) === 'dead') return
  const group = readStat(agent.pid)?.group ?? 0
  const target = group > 1 ? -group : agent.pid
  try {
    process.kill(target, 'SIGTERM')
    if (delivery === 'line' && ignoresTerm(agent.pid)) process.kill(target, 'SIGHUP')
  } catch (error) {
    if (!isGone(error)) throw error
  }
}

/** Node runs the writer as it runs us: from source in development, from `dist` where that is what there is. */
function logWriter(directory: string): string {
  const writer = join(import.meta.dirname, '..', `log-writer${extname(import.meta.filename)}`)
  return `exec ${[process.execPath, '--disable-warning=ExperimentalWarning', writer, directory].map(quoted).join(' ')}`
}

function assertAlive(signal: AbortSignal): void {
  if (signal.aborted) throw new LaunchError('aborted', 'the start was given up')
}

function failedLaunch(error: unknown): never {
  if (error instanceof LaunchError) throw error
  const message = error instanceof Error ? error.message : String(error)
  throw new LaunchError('unavailable', `tmux did not start it: ${message}`)
}
