/**
 * Agents in detached host processes: `subprocess` (a program on a terminal or on pipes) and `acp` (an agent behind the
 * Agent Client Protocol). Both are the same from here; the host knows the difference (decisions 53–55).
 *
 * SP1  A host is told everything by a file and proves nothing by argv; its own environment has no token, so that killing
 *      by token never hits a host.
 * SP2  `start` that rejects leaves nothing behind: the directory is revoked, then host and tree are killed.
 * SP3  `adopt` of a run without a host first revokes it, then looks again: a host that comes late starts nothing (H1).
 */

import { type ChildProcess, spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, writeFileSync } from 'node:fs'
import { stat } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { extname, join, resolve } from 'node:path'
import { cut } from '../contract/base/text.ts'
import { type Clock, delay } from '../kernel/clock.ts'
import { asCaller } from '../kernel/file-modes.ts'
import { type Environment, findBinary, minimalEnvironment } from '../kernel/processes.ts'
import { compileCache } from './compile-cache.ts'
import { ConnectionLost, HostRefused } from './host/client.ts'
import { callBack, clearRun, findHost, readHostFile, revoke, sendHome } from './host/finding.ts'
import { buryHost, HostedProcess, launchFailure } from './host/hosted-process.ts'
import { FILES, type HostFile, type HostSpec, PROTOCOL } from './host/protocol.ts'
import { identify, livenessOf } from './process/process-identity.ts'
import { markedArgs, runIdOf } from './process/process-mark.ts'
import { killTree, RUN_VARIABLE, TOKEN_VARIABLE } from './process/process-tree.ts'
import {
  type Adoption,
  type AdoptSpec,
  type AgentProcess,
  LaunchError,
  type LaunchSpec,
  type Runtime,
} from './process/runtime.ts'
import { openSocketDirectory, type SocketPlaces } from './socket-directory.ts'

/** `env` is the supervisor's own: `HOME` and the like are passed on to hosts. Agents get their spec's. */
export interface HostRuntimeDeps extends SocketPlaces {
  readonly clock: Clock
}

const CONNECT_PAUSE_MS = 10
/** How long a host may take to leave by itself when a start is undone. */
const LEAVE_MS = 3_000

export const createSubprocessRuntime = (deps: HostRuntimeDeps): Runtime => createHostRuntime('subprocess', deps)

export function createHostRuntime(kind: HostSpec['kind'], deps: HostRuntimeDeps): Runtime {
  const open = new Set<HostedProcess>()

  function keep(process: HostedProcess): AgentProcess {
    open.add(process)
    process.on((event) => event.type === 'exit' && open.delete(process))
    return process
  }

  async function start(spec: LaunchSpec, signal: AbortSignal): Promise<AgentProcess> {
    const launch = await marked(await resolved(spec), deps.env)
    if (signal.aborted) throw launchError(signal.reason)
    const host = begun(spec.directory, () => spawnHost(kind, launch, deps))
    const process = new HostedProcess({ ...spec, clock: deps.clock })
    try {
      await connectWhenThere(process, host, spec.directory, signal)
      await process.untilRunning(signal)
      return keep(process)
    } catch (error) {
      await undo(process, host, spec, deps.clock)
      throw launchError(error)
    }
  }

  async function adopt(spec: AdoptSpec, signal: AbortSignal): Promise<Adoption> {
    const { directory } = spec
    let found = findHost(directory)
    if (found.state === 'absent') {
      revoke(directory)
      found = findHost(directory)
    }
    if (found.state === 'ended') {
      sendHome(directory)
      return { state: 'dead', exit: found.record.exit }
    }
    if (found.state !== 'there') return { state: 'dead', exit: (await buryHost({ ...spec, clock: deps.clock })).exit }
    const process = new HostedProcess({ ...spec, clock: deps.clock })
    try {
      await process.connect(await reachable(directory, found.file, signal), signal)
      await process.untilRunning(signal)
      return { state: 'alive', process: keep(process) }
    } catch (error) {
      process.release()
      if (process.exit !== undefined) return { state: 'dead', exit: process.exit }
      // It may have ended between the look and the knock.
      if (error instanceof ConnectionLost && findHost(directory).state !== 'there') return adopt(spec, signal)
      return { state: 'unknown', message: error instanceof Error ? error.message : String(error) }
    }
  }

  return {
    name: kind,
    abilities: { interrupt: true, pending: kind === 'acp', screen: kind === 'subprocess' },
    unavailable: () => Promise.resolve(undefined),
    start,
    adopt,
    async close() {
      for (const process of open) process.release()
      open.clear()
    },
  }

  /** Where the host listens; one whose socket is gone is called back. */
  async function reachable(directory: string, file: HostFile, signal: AbortSignal): Promise<string> {
    if (existsSync(file.socket)) return file.socket
    const socket = socketOf(directory, deps)
    callBack(directory, file, socket)
    while (!existsSync(socket)) await delay(deps.clock, CONNECT_PAUSE_MS, signal)
    return socket
  }

  async function connectWhenThere(process: HostedProcess, host: ChildProcess, directory: string, signal: AbortSignal) {
    const failed = new AbortController()
    host.once('error', (error) => failed.abort(error))
    host.once('exit', () => failed.abort(new LaunchError('spawn_failed', 'the host process ended at once')))
    const either = AbortSignal.any([signal, failed.signal])
    for (;;) {
      const found = findHost(directory)
      if (found.state === 'there') return process.connect(found.file.socket, either)
      // Over before anybody had looked.
      if (found.state === 'ended') throw launchFailure(found.record.exit, found.record.start_error)
      await delay(deps.clock, CONNECT_PAUSE_MS, either)
    }
  }
}

/** The spec as the host gets it: the program found, who it is in the environment, pipes where there is no pty. */
async function resolved(spec: LaunchSpec): Promise<LaunchSpec> {
  const workDir = await stat(spec.workDir).catch(() => undefined)
  if (!workDir?.isDirectory())
    throw new LaunchError('spawn_failed', `the working directory ${spec.workDir} is not there`)
  const named = spec.command.includes('/') ? resolve(spec.workDir, spec.command) : spec.command
  const command = await findBinary(named, spec.env)
  if (command === undefined) throw new LaunchError('not_found', `there is no program ${spec.command}`)
  const { token } = spec.identity
  const env = { ...spec.env, ...(spec.hidesToken ? { [RUN_VARIABLE]: runIdOf(token) } : { [TOKEN_VARIABLE]: token }) }
  return { ...spec, command, env, io: spec.io === 'pty' && hasPty() ? 'pty' : 'pipes' }
}

/** Whatever it starts, and however that hides, is known to be its own when it is to end. */
async function marked(launch: LaunchSpec, env: Environment): Promise<LaunchSpec> {
  const prlimit = process.platform === 'linux' ? await findBinary('prlimit', env) : undefined
  if (prlimit === undefined) return launch
  const { command, args, identity } = launch
  return { ...launch, command: prlimit, args: markedArgs(identity.token, command, args) }
}

/** Whether node-pty has a binary for this system. */
function hasPty(): boolean {
  const { platform, arch } = process
  try {
    createRequire(import.meta.url).resolve(`@lydell/node-pty-${platform}-${arch}/package.json`)
    return true
  } catch {
    return false
  }
}

function spawnHost(kind: HostSpec['kind'], launch: LaunchSpec, deps: HostRuntimeDeps): ChildProcess {
  const { directory } = launch
  const socket = socketOf(directory, deps)
  const spec: HostSpec = { protocol: PROTOCOL, kind, socket, launch }
  writeFileSync(join(directory, FILES.spec), JSON.stringify(spec), { mode: 0o600, flush: true })
  const entry = join(import.meta.dirname, 'host', `host${extname(import.meta.filename)}`)
  // With the caller's umask, which its agent inherits; what the host itself writes is private by its mode.
  const host = asCaller(() =>
    spawn(process.execPath, ['--disable-warning=ExperimentalWarning', entry, directory], {
      detached: true,
      stdio: 'ignore',
      cwd: '/',
      env: { ...minimalEnvironment(deps.env), ...compileCache() },
    }),
  )
  host.unref()
  return host
}

/** Of the host of a run, as the environment of this supervisor has it. */
function socketOf(directory: string, places: SocketPlaces): string {
  const { path } = openSocketDirectory(resolve(directory, '../../../../..'), places)
  return join(path, `${cut(createHash('sha256').update(directory).digest('hex'), 16)}.host`)
}

async function undo(process: HostedProcess, host: ChildProcess, spec: LaunchSpec, clock: Clock): Promise<void> {
  revoke(spec.directory)
  process.release()
  const identity = host.pid === undefined ? undefined : identify(host.pid)
  if (identity !== undefined) {
    host.kill('SIGTERM')
    const deadline = clock.monotonic() + LEAVE_MS
    while (livenessOf(identity) !== 'dead' && clock.monotonic() < deadline) await delay(clock, CONNECT_PAUSE_MS)
  }
  await killTree({ token: spec.identity.token, ...(identity !== undefined && { root: identity }) }, clock)
  clearRun(spec.directory)
}

/**
 * Ends whatever of a run is still there, its host too, without asking either; answers who could not be ended. Without a
 * directory that is what carries the token.
 */
export async function endRun(directory: string | undefined, token: string, clock: Clock): Promise<readonly number[]> {
  if (directory === undefined) return killTree({ token }, clock)
  revoke(directory)
  const host = readHostFile(directory)
  const left = await killTree({ token, ...(host !== undefined && { root: host }) }, clock)
  clearRun(directory)
  return left
}

/** A full disk, a socket directory that is not ours alone. */
function begun<T>(directory: string, work: () => T): T {
  try {
    return work()
  } catch (error) {
    clearRun(directory)
    throw launchError(error)
  }
}

function launchError(error: unknown): LaunchError {
  if (error instanceof LaunchError) return error
  const message = error instanceof Error ? error.message : String(error)
  if (error instanceof HostRefused || error instanceof ConnectionLost) return new LaunchError('spawn_failed', message)
  if (error instanceof Error && error.name === 'TimeoutError') return new LaunchError('timeout', message)
  if (error instanceof Error && error.name === 'AbortError') return new LaunchError('aborted', message)
  return new LaunchError(error instanceof Error ? 'spawn_failed' : 'aborted', message)
}
