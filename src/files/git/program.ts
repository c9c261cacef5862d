/**
 * The one way in which the supervisor runs `git`.
 *
 * G1  It runs off the event loop, with a deadline and a cap on its output. It sees no `GIT_*` of the starting shell, no
 *     variable that holds a secret, and no terminal.
 * G2  It runs no hook and no file system monitor.
 */
import type { Clock } from '../../kernel/clock.ts'
import {
  type BriefResult,
  type Environment,
  findBinary,
  minimalEnvironment,
  runBriefly,
} from '../../kernel/processes.ts'

export interface GitHost {
  readonly clock: Clock
  readonly env: Environment
}

export interface GitRun {
  readonly cwd: string
  readonly timeoutMs: number
  readonly maxBytes: number
  /** Ends git when it prints more than `maxBytes`. */
  readonly endAtMax?: boolean
  readonly signal?: AbortSignal | undefined
  /** Variables beside the harmless ones. */
  readonly env?: Readonly<Record<string, string>>
  /** Settings that win over every configuration file, as `name=value`. */
  readonly settings?: readonly string[]
  /** What a helper of git reads from descriptor 3. */
  readonly secret?: string | undefined
}

const HARMLESS = ['core.hooksPath=/dev/null', 'core.fsmonitor=false'] as const

/** Runs `git`; undefined: it is not on this host. */
export async function runGit(host: GitHost, args: readonly string[], run: GitRun): Promise<BriefResult | undefined> {
  const git = await findBinary('git', host.env)
  if (git === undefined) return undefined
  const settings = [...HARMLESS, ...(run.settings ?? [])].flatMap((setting) => ['-c', setting])
  const { cwd, timeoutMs, maxBytes, endAtMax, signal, secret } = run
  return runBriefly(git, [...settings, ...args], {
    env: { ...minimalEnvironment(host.env), LC_ALL: 'C', GIT_TERMINAL_PROMPT: '0', ...run.env },
    cwd,
    timeoutMs,
    maxBytes,
    clock: host.clock,
    ...(endAtMax === undefined ? {} : { endAtMax }),
    ...(signal === undefined ? {} : { signal }),
    ...(secret === undefined ? {} : { secret }),
  })
}
