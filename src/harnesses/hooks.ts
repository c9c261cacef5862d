/**
 * What harnesses tell by their hooks, and how these are laid for one run: by the harness's own flag, variable or
 * configuration on its command line, never in a person's files. Pure; the launcher writes the files.
 *
 * A hook is `svcctl session report --from <harness>` with the harness's own JSON on its input; the tables here say what
 * of it becomes a report.
 */
import { createHash } from 'node:crypto'
import type { UsageLog } from './harness.ts'

/** What one hook event says. */
export interface HookEvent {
  readonly activity?: 'idle' | 'in-turn'
  /** It waits for its person at its terminal: of which kind, and the field with the question. */
  readonly asks?: { readonly kind: 'approval' | 'question'; readonly prompt: string }
  /** The conversation has something in it by now: its key can be resumed. */
  readonly used?: true
  /** Only where the field of the input has one of these values: harnesses use one event for several things. */
  readonly only?: { readonly field: 'notification_type' | 'source'; readonly values: readonly string[] }
  /** The harness asks for leave, and waits for the verdict. */
  readonly permission?: true
}

export interface HarnessHooks {
  /** By the harness's name of the event. */
  readonly events: Readonly<Record<string, HookEvent>>
  /** Seconds that a permission hook may wait for somebody; absent: there is none. */
  readonly permissionSec?: number
  /**
   * Absent: they can be laid only in files of a person. Undefined: what the command line says of them already is not to
   * be replaced.
   */
  readonly lay?: (place: HookPlace) => LaidHooks | undefined
}

export interface HookPlace {
  /** Directory of the run: its own, 0700. */
  readonly directory: string
  /** The command of every hook, for a shell. */
  readonly command: string
  /** Arguments and environment that the harness would be started with. */
  readonly args: readonly string[]
  readonly env: Readonly<Record<string, string | undefined>>
}

export interface LaidHooks {
  readonly files: readonly HookFile[]
  /** Before its other arguments. */
  readonly args: readonly string[]
  readonly env: Readonly<Record<string, string>>
}

interface HookFile {
  readonly path: string
  readonly settings: object
  /** Settings that it stands in for, and must therefore contain. */
  readonly over?: string
}

/** Of a run, for a harness that keeps a log of its usage where it is told to. */
export const USAGE_LOG = 'usage.jsonl'

/** What tells it to; nothing where a person has said already where it is to be. */
export function usageLogEnv(
  told: UsageLog['told'],
  { directory, args, env }: Pick<HookPlace, 'directory' | 'args' | 'env'>,
): Readonly<Record<string, string>> {
  if (told === undefined || env[told.variable]) return {}
  const said = args.some((word) => word === told.flag || word.startsWith(`${told.flag}=`))
  return said ? {} : { [told.variable]: `${directory}/${USAGE_LOG}` }
}

/** A report must not keep its harness waiting, also on a busy machine. */
const REPORT_SEC = 10
/** The hook gives up a little before its harness gives it up, so that it can say so. */
const SPARE_SEC = 20

interface Group {
  readonly matcher?: string
  readonly hooks: readonly { readonly type: 'command'; readonly command: string; readonly timeout: number }[]
}

/** Hook groups by event, in the form that most harnesses share; `unit`: how many of its time units are a second. */
export function hookGroups(
  { events, permissionSec = 0 }: Pick<HarnessHooks, 'events' | 'permissionSec'>,
  command: string,
  unit = 1,
): Readonly<Record<string, readonly Group[]>> {
  const groups = Object.entries(events).map(([name, { permission, only }]) => {
    const timeout = (permission ? permissionSec + SPARE_SEC : REPORT_SEC) * unit
    const matched = only === undefined ? {} : { matcher: only.values.join('|') }
    return [name, [{ ...matched, hooks: [{ type: 'command', command, timeout } as const] }]] as const
  })
  return Object.fromEntries(groups)
}

/** By a variable that names the settings of the whole machine: what those say is kept. */
export function bySystemSettings(
  hooks: Pick<HarnessHooks, 'events' | 'permissionSec'>,
  { variable, path }: { readonly variable: string; readonly path: string },
): NonNullable<HarnessHooks['lay']> {
  return ({ directory, command, env }) => {
    const file = `${directory}/hooks-settings.json`
    const over = env[variable] || path
    return {
      files: [{ path: file, settings: { hooks: hookGroups(hooks, command, 1000) }, over }],
      args: [],
      env: { [variable]: file },
    }
  }
}

/** What codex compares to know that somebody has looked at a hook: a hash of its definition with sorted keys. */
export function codexHash(event: string, { matcher, hooks }: Group): string {
  const handlers = hooks.map(({ command, timeout, type }) => ({ async: false, command, timeout, type }))
  const definition = { event_name: snakeCase(event), hooks: handlers, ...(matcher === undefined ? {} : { matcher }) }
  return `sha256:${createHash('sha256').update(JSON.stringify(definition)).digest('hex')}`
}

export const snakeCase = (name: string): string =>
  name.replaceAll(/[A-Z]/g, (letter, at) => `${at === 0 ? '' : '_'}${letter.toLowerCase()}`)
