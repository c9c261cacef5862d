/**
 * The host: a detached process that holds one agent, so that the agent does not depend on the supervisor (decision 54).
 * `node host.ts <directory of the run>`; everything else it reads from `spec.json` there.
 *
 * H1  It listens, then looks for `revoked`, then starts the agent; a supervisor writes `revoked`, then connects: so a
 *     late host either is found or starts nothing (decision 55).
 * H2  Every module is loaded before the agent starts: an upgrade of the package cannot break a running host.
 * H3  `exit.json` is written before the exit is told, and only when nothing of the agent's tree runs.
 * H4  It never outlives its directory, nor the agent for longer than a minute.
 */
import { existsSync, readFileSync, renameSync, rmSync, statSync, watch, writeFileSync } from 'node:fs'
import { flushCompileCache } from 'node:module'
import { dirname, join } from 'node:path'
import { systemClock } from '../../kernel/clock.ts'
import { ChildStartError, type StartChild } from '../process/hosted-child.ts'
import { openOutputWriter } from '../process/output-log.ts'
import { identify } from '../process/process-identity.ts'
import { dropSocket } from './finding.ts'
import { FILES, type HostFile, type HostSpec, PROTOCOL, parseSpec } from './protocol.ts'
import { Run } from './run.ts'

const LOOK_MS = 5_000
/** A directory that was moved away with those above it is seen by nobody: who waits is not woken for that often. */
const SELDOM_MS = 600_000
const LINGER_MS = 60_000

const clock = systemClock
const directory = process.argv[2] ?? ''
const spec = readSpec()
for (const name of ['SIGINT', 'SIGQUIT'] as const) process.on(name, () => {})
process.on('SIGHUP', () => void comeBack())

let socket = spec.socket
const output = openOutputWriter(directory)
const run = new Run({ spec, output, clock, writeExit: (record) => writeFile(FILES.exit, record) })
for (const name of ['uncaughtException', 'unhandledRejection'] as const)
  process.on(name, (error) => void run.fail(error).then(leave))
const start = await childOf(spec).catch(unavailable)
await run.listen(socket)
writeFile(FILES.host, hostFile())
if (existsSync(join(directory, FILES.revoked))) leave()

process.on('SIGTERM', () => void run.stop(0).then(leave))
watchDirectory()
await run.start(start)
flushCompileCache()
await run.ended
// Until a supervisor has read the exit; whoever comes later finds it in the file.
clock.after(LINGER_MS, leave)
await run.dismissed
leave()

function readSpec(): HostSpec {
  const path = join(directory, FILES.spec)
  const found = parseSpec(readFileSync(path, 'utf8'))
  // It holds secrets, and nobody reads it a second time.
  rmSync(path, { force: true })
  if (found === undefined) throw new Error(`${FILES.spec} is not what a supervisor writes`)
  return found
}

/** H2. The parts that only some agents need are memory that the others do not pay for. */
async function childOf({ kind, launch }: HostSpec): Promise<StartChild> {
  if (kind === 'acp') return (await import('../acp/child.ts')).startAcpChild
  if (launch.io === 'pipes') return (await import('./pipes-child.ts')).startPipesChild
  return (await import('./pty-child.ts')).startPtyChild
}

function unavailable(error: unknown): StartChild {
  return () => Promise.reject(new ChildStartError('unavailable', `this agent cannot be run here: ${String(error)}`))
}

function hostFile(): HostFile {
  const identity = identify(process.pid)
  if (identity === undefined) throw new Error('this process cannot see itself')
  return { protocol: PROTOCOL, ...identity, socket }
}

/** Its socket was removed by somebody: it listens where it is told. A terminal that hangs up means nothing. */
async function comeBack(): Promise<void> {
  const place = join(directory, FILES.socket)
  if (existsSync(socket) || !existsSync(place)) return
  socket = readFileSync(place, 'utf8')
  await run.listen(socket)
  writeFile(FILES.host, hostFile())
}

/** Whole or not at all. */
function writeFile(name: string, content: object): void {
  const path = join(directory, name)
  writeFileSync(`${path}.new`, JSON.stringify(content), { mode: 0o600, flush: true })
  renameSync(`${path}.new`, path)
}

/** H4: whoever removes the directory has deleted the session. */
function watchDirectory(): void {
  const { ino } = statSync(directory)
  const look = () => {
    if (statSync(directory, { throwIfNoEntry: false })?.ino !== ino) void run.stop(0).then(leave)
  }
  const lookEvery = (ms: number) => {
    clock.after(ms, () => {
      look()
      lookEvery(ms)
    })
  }
  try {
    // The parent: in the directory itself every chunk of output is a change.
    watch(dirname(directory), { persistent: false }, look).on('error', () => lookEvery(LOOK_MS))
    lookEvery(SELDOM_MS)
  } catch {
    // No watches left.
    lookEvery(LOOK_MS)
  }
}

function leave(): never {
  run.close()
  dropSocket(socket)
  process.exit(0)
}
