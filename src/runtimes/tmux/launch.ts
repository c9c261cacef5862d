/**
 * The files of one run under tmux, in the run's directory. `launch.sh` is the pane's process: it puts the agent's
 * environment together (so that no secret is ever in argv), runs the agent and writes down how it ended.
 *
 * L1  `agent.pid` is there before the agent runs, and is whole once it ends with a line break.
 * L2  `exit.json` is there, whole, if and only if the agent's process has ended; only a killed script writes none.
 */
import { readFile, rename, stat, unlink, writeFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { findBinary } from '../../kernel/processes.ts'
import { commandLineOf, identify, type ProcessIdentity } from '../process/process-identity.ts'
import { markOf } from '../process/process-mark.ts'
import { TOKEN_VARIABLE } from '../process/process-tree.ts'
import { type Exit, LaunchError, type LaunchSpec } from '../process/runtime.ts'
import { quoted } from './quoting.ts'

export const EXIT_FILE = 'exit.json'
const PID_FILE = 'agent.pid'
const LAUNCHER_FILE = 'launcher.pid'
const SCRIPT_FILE = 'launch.sh'
const DELIVERY_FILE = 'delivery.txt'

/** Names that a shell can set. */
const VARIABLE = /^[A-Za-z_][A-Za-z0-9_]*$/

/** Writes `launch.sh` and returns its path. Rejects with `LaunchError` where the agent could not be run. */
export async function prepareLaunch(spec: LaunchSpec): Promise<string> {
  for (const text of [spec.directory, spec.workDir, spec.command, ...spec.args, ...Object.values(spec.env)]) {
    if (text.includes('\0')) throw new LaunchError('spawn_failed', 'a zero byte in the command or its environment')
  }
  // tmux takes neither in a command: a line break ends it, `#[` is a style whatever one does.
  if (/[\r\n]|#\[/.test(spec.directory)) throw new LaunchError('spawn_failed', `tmux cannot use ${spec.directory}`)
  const found = await stat(spec.workDir).catch(() => undefined)
  if (!found?.isDirectory()) throw new LaunchError('spawn_failed', `the working directory ${spec.workDir} is not there`)
  // A shell would find it, too, but only after the start has been reported.
  const named = spec.command.includes('/') ? resolve(spec.workDir, spec.command) : spec.command
  const program = await findBinary(named, spec.env)
  if (program === undefined) throw new LaunchError('not_found', `there is no program ${spec.command}`)
  const path = join(spec.directory, SCRIPT_FILE)
  await Promise.all(
    [EXIT_FILE, PID_FILE, LAUNCHER_FILE].map((name) => unlink(join(spec.directory, name)).catch(() => {})),
  )
  await writeFile(path, launchScript(spec, program), { mode: 0o700 })
  return path
}

/** It holds secrets, and its shell has it open: nobody needs its name any more. */
export async function removeScript(directory: string): Promise<void> {
  await unlink(join(directory, SCRIPT_FILE)).catch(() => {})
}

function launchScript(spec: LaunchSpec, program: string): string {
  const pidFile = quoted(join(spec.directory, PID_FILE))
  const exitFile = quoted(join(spec.directory, EXIT_FILE))
  return `#!/bin/sh
# Runs one agent of svcctl. The environment is set here and not in argv, where everybody could read it.
mask=$(umask)
umask 077
printf '%s\\n' "$$" > ${quoted(join(spec.directory, LAUNCHER_FILE))}
hup=0
trap 'hup=1' HUP
# Not ignored: that would be inherited. These keys and signals are for the agent; this shell outlives it.
trap : INT QUIT TERM
(
  /bin/sh -c 'printf "%s\\n" "$PPID" > "$1"' sh ${pidFile} || exit 126
  cd -- ${quoted(spec.workDir)} || exit 126
  umask "$mask"
  ulimit -S -w ${markOf(spec.identity.token)} 2>/dev/null || ulimit -S -x ${markOf(spec.identity.token)} 2>/dev/null
  unset PWD OLDPWD SHLVL _ mask hup
${exports({ ...spec.env, [TOKEN_VARIABLE]: spec.identity.token })}
  exec ${[program, ...spec.args].map(quoted).join(' ')}
)
printf '{"status":%d,"hangup":%d}\\n' "$?" "$hup" > ${exitFile}.new
command -p mv -f ${exitFile}.new ${exitFile}
`
}

function exports(env: LaunchSpec['env']): string {
  return Object.entries(env)
    .map(([name, value]) => {
      if (!VARIABLE.test(name)) throw new LaunchError('spawn_failed', `${name} is not a name that a shell can set`)
      return `  export ${name}=${quoted(value)}`
    })
    .join('\n')
}

/** The agent's process id; undefined while it has not been begun. */
export const readAgentPid = (directory: string): Promise<number | undefined> => readPid(join(directory, PID_FILE))

/**
 * The script itself, where it still runs: with its server it loses its pane, and it has no token; stopped half-way through
 * the killing of its tree, it would stand there for ever.
 */
export async function findLauncher(directory: string): Promise<ProcessIdentity | undefined> {
  const pid = await readPid(join(directory, LAUNCHER_FILE))
  const found = pid === undefined ? undefined : identify(pid)
  // Its number may mean another process by now.
  const isOurs = found !== undefined && commandLineOf(found.pid).includes(join(directory, SCRIPT_FILE))
  return isOurs ? found : undefined
}

async function readPid(path: string): Promise<number | undefined> {
  const text = await readFile(path, 'utf8').catch(() => '')
  return /^\d+\n$/.test(text) ? Number(text) : undefined
}

/** What a shell adds to the number of the signal that ended its child. */
const SIGNAL_BASE = 128
const SIGNALS: Readonly<Record<number, string>> = {
  1: 'SIGHUP',
  2: 'SIGINT',
  3: 'SIGQUIT',
  4: 'SIGILL',
  6: 'SIGABRT',
  8: 'SIGFPE',
  9: 'SIGKILL',
  11: 'SIGSEGV',
  13: 'SIGPIPE',
  14: 'SIGALRM',
  15: 'SIGTERM',
}

/** How the run ended, as far as it was written down. */
export async function readExit(directory: string): Promise<Exit | undefined> {
  const path = join(directory, EXIT_FILE)
  const [text, file] = await Promise.all([
    readFile(path, 'utf8').catch(() => undefined),
    stat(path).catch(() => undefined),
  ])
  if (text === undefined || file === undefined) return undefined
  return parseExit(text, Math.round(file.mtimeMs))
}

/** Of `launch.sh`'s record; a shell tells death by a signal only as a status above 128. */
function parseExit(text: string, at: number): Exit {
  const [, digits, hangup] = /^\{"status":(\d+),"hangup":([01])\}/.exec(text) ?? []
  if (digits === undefined) return { code: undefined, signal: undefined, reason: 'unknown', at }
  const status = Number(digits)
  const signal = SIGNALS[status - SIGNAL_BASE]
  // A terminal that hangs up is a tmux server that died: nobody else takes it away while the agent lives.
  if (hangup === '1') return { code: undefined, signal, reason: 'host_lost', at, message: 'its terminal is gone' }
  if (signal === undefined) return { code: status, signal: undefined, reason: 'exited', at }
  return { code: undefined, signal, reason: 'signalled', at }
}

/** For tmux to load: a message has no limit of length or alphabet there. */
export async function writeDelivery(directory: string, text: string): Promise<string> {
  const path = join(directory, DELIVERY_FILE)
  await writeFile(`${path}.new`, text, { mode: 0o600 })
  await rename(`${path}.new`, path)
  return path
}

export async function removeDelivery(directory: string): Promise<void> {
  await unlink(join(directory, DELIVERY_FILE)).catch(() => {})
}
