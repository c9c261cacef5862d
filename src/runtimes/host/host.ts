/**
 * The host: a detached process that holds one agent, so that the agent does not depend on the supervisor (decision 54).
 * `node host.ts <directory of the run>`; everything else it reads from `spec.json` there.
 *
 * H1  It listens, then looks for `revoked`, then starts the agent; a supervisor writes `revoked`, then connects: so a
 *     late host either is found or starts nothing (decision 55).
 * H2  Every module is loaded before the agent starts: an upgrade of the package cannot break a running host.
 * H3  `exit.json` is written before the exit is told, and only when nothing of the agent's tree runs.
 * H4  It never outlives its directory, nor the agent for longer than a minute, or an hour while its end cannot be written.
 */
import { existsSync, readFileSync, rmSync } from 'node:fs'
import { flushCompileCache } from 'node:module'
import { join } from 'node:path'
import { systemClock } from '../../kernel/clock.ts'
import { lookAtEntry } from '../../kernel/look.ts'
import { replaceFile } from '../../kernel/whole-file.ts'
import { ChildStartError, type StartChild } from '../process/hosted-child.ts'
import { openOutputWriter } from '../process/output-log.ts'
import { identify } from '../process/process-identity.ts'
import { dropSocket } from './finding.ts'
import { watchOwnDirectory } from './own-directory.ts'
import { FILES, type HostFile, type HostSpec, PROTOCOL, parseSpec } from './protocol.ts'
import { Run } from './run.ts'

const LINGER_MS = 60_000
/** Longest wait for room on the disk: until then the end is known to this process only. */
const UNWRITTEN_MS = 3_600_000

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
// One that cannot be looked at may be there: another host may run the agent then.
if (lookAtEntry(join(directory, FILES.revoked)).is !== 'missing') leave()

process.on('SIGTERM', () => void run.stop(0).then(leave))
watchOwnDirectory({ directory, clock, onGone: () => void run.stop(0).then(leave) })
await run.start(start)
flushCompileCache()
await run.ended
clock.after(UNWRITTEN_MS, leave)
// Until a supervisor has read the exit; a later one finds it in the file.
void run.written.then(() => clock.after(LINGER_MS, leave))
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

/**
 * Its socket was removed: it listens where the supervisor wrote. A terminal that hangs up means nothing. Where the files
 * cannot be read or written now, the agent goes on and the next call tries again.
 */
async function comeBack(): Promise<void> {
  try {
    const wanted = readFileSync(join(directory, FILES.socket), 'utf8')
    if (!existsSync(socket)) {
      await run.listen(wanted)
      socket = wanted
    }
    writeFile(FILES.host, hostFile())
  } catch {
    // No file: no supervisor has called.
  }
}

function writeFile(name: string, content: object): void {
  replaceFile(join(directory, name), JSON.stringify(content))
}

function leave(): never {
  run.close()
  dropSocket(socket)
  process.exit(0)
}
