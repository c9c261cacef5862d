/** `svcctl serve`: the process around the supervisor. */
import { readFileSync } from 'node:fs'
import { flushCompileCache } from 'node:module'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { EXIT } from '../contract/base/exit-codes.ts'
import { systemClock } from '../kernel/clock.ts'
import { restrictUmask } from '../kernel/file-modes.ts'
import { Problem } from '../kernel/problem.ts'
import { giveLastWords } from './last-words.ts'
import { parseFlags, resolveSettings, SERVE_HELP, SettingsError } from './settings.ts'
import { type Supervisor, startSupervisor } from './supervisor.ts'
import type { RunsOn } from './views/runs-on.ts'

export interface ServeIo {
  readonly env: Readonly<Record<string, string | undefined>>
  readonly cwd: string
  readonly stdout: { write(text: string): unknown }
  readonly stderr: { write(text: string): unknown }
}

const STOP_DEADLINE_MS = 4_800

/** Runs until a signal; resolves with the exit code. */
export async function main(argv: readonly string[], io: ServeIo): Promise<number> {
  let supervisor: Supervisor
  let home: string
  try {
    const flags = parseFlags(argv)
    if (flags.help === true) {
      io.stdout.write(SERVE_HELP)
      return 0
    }
    const settings = resolveSettings(flags, io.env, homedir(), io.cwd)
    home = settings.home
    restrictUmask()
    outliveReaders()
    giveLastWords(process, {
      file: join(home, 'supervisor.log'),
      home,
      now: () => new Date().toISOString(),
      stderr: io.stderr,
      exit: (code) => process.exit(code),
    })
    supervisor = await startSupervisor({
      settings,
      clock: systemClock,
      env: io.env,
      userHome: homedir(),
      version: packageVersion(),
      pid: process.pid,
      random: Math.random,
    })
  } catch (error) {
    return explain(error, io)
  }
  // Who waits for the line may send a signal at once: it must be an orderly end already.
  const end = stopped(supervisor, io)
  io.stdout.write(
    `listening on ${supervisor.url}\nlog in ${join(home, 'supervisor.log')}\n${OPEN_TO[supervisor.callers] ?? ''}`,
  )
  void tellFailures(supervisor, io)
  // Now and not at the exit: a supervisor that is killed would compile everything again at every start.
  flushCompileCache()
  return end
}

/** Names the cities that could not start, once each has been tried: nobody looks for what they do not expect. */
async function tellFailures(supervisor: Supervisor, io: ServeIo): Promise<void> {
  const failed = await supervisor.failedStarts()
  if (failed.length === 0) return
  const lines = failed.map(({ name, error }) => `  ${name}: ${error}\n`).join('')
  const [first] = failed
  const what = failed.length === 1 ? '1 city could not start' : `${failed.length} cities could not start`
  io.stderr.write(`warning: ${what}:\n${lines}hint: mend that, then: svcctl city start ${first?.name}\n`)
}

/** A terminal or a pipe that is gone is no reason to end: everything that matters is in the log. */
function outliveReaders(): void {
  for (const stream of [process.stdout, process.stderr]) stream.on('error', () => {})
}

const SHUT = 'start with --auth, or set auth = true under [supervisor] in supervisor.toml, to ask for a token'
/** Who needs no token; said at each start, for nothing else shows it. */
const OPEN_TO: Readonly<Partial<Record<Supervisor['callers'], string>>> = {
  owner: `open to every program of this user, agents too: ${SHUT}\n`,
  machine: `open to everybody on this machine: ${SHUT}\n`,
}

/** A signal to a whole process group reaches the server once, and once more through whoever passes it on. */
const SAME_SIGNAL_MS = 500

/** The first signal stops; a SIGINT that comes later than half a second after it ends the process at once. */
function stopped(supervisor: Supervisor, io: ServeIo): Promise<number> {
  return new Promise((resolve) => {
    let stopping = false
    let isImpatient = false
    const onSignal = (signal: NodeJS.Signals) => {
      if (stopping) {
        if (signal === 'SIGINT' && isImpatient) process.exit(EXIT.interrupted)
        return
      }
      stopping = true
      // Behind a turn of the loop: a signal that came while it was blocked has been taken by then.
      setTimeout(() => setImmediate(() => (isImpatient = true)), SAME_SIGNAL_MS).unref()
      // Whatever hangs, the process is gone within five seconds; everything acknowledged is on disk already.
      setTimeout(() => process.exit(0), STOP_DEADLINE_MS).unref()
      supervisor.stop(signal).then(
        (runsOn) => {
          io.stdout.write(farewell(runsOn))
          resolve(0)
        },
        (error: unknown) => {
          io.stderr.write(`error: stopping failed: ${error instanceof Error ? error.message : String(error)}\n`)
          resolve(EXIT.failure)
        },
      )
    }
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, onSignal)
  })
}

/** The last line: what a person may not expect to go on. */
export function farewell({ sessions, services }: RunsOn): string {
  const parts = [counted(sessions, 'session'), counted(services, 'service')].filter((part) => part !== '')
  if (parts.length === 0) return 'stopped\n'
  return `stopped; running on: ${parts.join(', ')} (the next svcctl serve takes them up; svcctl city stop ends them)\n`
}

const counted = (count: number, what: string): string => {
  if (count === 0) return ''
  return `${count} ${what}${count === 1 ? '' : 's'}`
}

/** Says why it does not start, and what to do about it. */
export function explain(error: unknown, io: Pick<ServeIo, 'stderr'>): number {
  if (error instanceof SettingsError) {
    io.stderr.write(`error: ${error.message}\nhint: svcctl serve --help\n`)
    return EXIT.usage
  }
  const refusal = error instanceof Error && isListening(error) ? LISTENING[String(error.code)] : undefined
  if (refusal !== undefined) {
    io.stderr.write(`error: ${messageOf(error)}\nhint: ${refusal.hint}\n`)
    return refusal.exit
  }
  if (isDiskFull(error)) {
    io.stderr.write(`error: ${messageOf(error)}\nhint: make room on that disk and start again; nothing was lost\n`)
    return EXIT.failure
  }
  if (error instanceof Problem && error.code === 'unavailable') {
    const hint = isHeld(error.cause)
      ? 'another supervisor runs on this home; choose another with --home'
      : 'put a backup of supervisor.db in its place, go on with the version that wrote it, or choose another home with --home'
    io.stderr.write(`error: ${error.message}\nhint: ${hint}\n`)
    return EXIT.conflict
  }
  io.stderr.write(`error: ${messageOf(error)}\n`)
  return EXIT.failure
}

const NO_ADDRESS = {
  hint: 'it listens on addresses of this machine only; choose one with --bind',
  exit: EXIT.usage,
}
const isListening = (error: Error): error is Error & { readonly code: unknown } =>
  'code' in error && 'syscall' in error && (error.syscall === 'listen' || error.syscall === 'getaddrinfo')

/** Why an address cannot be listened on. */
const LISTENING: Readonly<Record<string, { readonly hint: string; readonly exit: number }>> = {
  EADDRINUSE: {
    hint: 'another program has the port; choose one with --port, or 0 for any free one',
    exit: EXIT.conflict,
  },
  EADDRNOTAVAIL: NO_ADDRESS,
  ENOTFOUND: NO_ADDRESS,
  EAI_AGAIN: NO_ADDRESS,
  EACCES: {
    hint: 'ports below 1024 need rights that this user has not; choose another with --port',
    exit: EXIT.usage,
  },
}

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))

const isHeld = (cause: unknown): boolean =>
  cause instanceof Error && 'code' in cause && String(cause.code).startsWith('SQLITE_BUSY')

/** Of the store, or of a file beside it. */
function isDiskFull(error: unknown): boolean {
  if (!(error instanceof Error)) return false
  if ('code' in error && (error.code === 'ENOSPC' || error.code === 'SQLITE_FULL')) return true
  return error.cause !== undefined && isDiskFull(error.cause)
}

function packageVersion(): string {
  const manifest: unknown = JSON.parse(readFileSync(join(import.meta.dirname, '..', '..', 'package.json'), 'utf8'))
  return typeof manifest === 'object' && manifest !== null && 'version' in manifest ? String(manifest.version) : '0.0.0'
}
