/** What a command finds in its environment (decision 97): nothing of the supervisor's but what is listed here. */
import type { Value } from '../../automation/plan.ts'
import { type Environment, expanded } from '../../kernel/processes.ts'
import type { ExecAbout, NewExec } from './ports.ts'

const PASSED_ON = ['PATH', 'HOME', 'USER', 'LOGNAME', 'SHELL', 'LANG', 'TZ', 'TMPDIR'] as const
const PATH = '/usr/local/bin:/usr/bin:/bin'

/** The kernel takes no longer argument or variable, and only so much of all of them; macOS takes least. */
const LARGEST = { one: 120 * 1024, together: 512 * 1024 } as const
const LEFT_OUT = 'SVC_VARS_LEFT_OUT'

export interface Surroundings {
  /** The supervisor's. */
  readonly env: Environment
  readonly home: string
  /** Whether `home` holds a token that opens the API: what judges the work of agents is not shown where. */
  readonly homeHasToken: boolean
  readonly city: { readonly name: string; readonly path: string }
  /** Directory of `svcctl`, which commands find as agents do. */
  readonly bin: string
}

export function environmentOf(exec: NewExec, around: Surroundings): Readonly<Record<string, string>> {
  const { env, home, city, bin, homeHasToken } = around
  const passed = Object.entries(env).filter(([name]) => isPassedOn(name) || exec.inherit_env.includes(name))
  const { PATH: path = PATH, ...rest } = definedOf(Object.fromEntries(passed))
  const given = fitting([
    ...Object.entries(exec.env).map(([name, value]) => [name, expanded(value, env)] as const),
    ...Object.entries(exec.vars).map(([name, value]) => [variableOf(name), textOf(value)] as const),
  ])
  const ownHome = exec.owner === 'check' && homeHasToken ? undefined : home
  return {
    PATH: `${bin}:${path}`,
    ...rest,
    ...given.env,
    ...definedOf({ SVC_HOME: ownHome, SVC_CITY: city.name, SVC_CITY_PATH: city.path }),
    ...aboutOf(exec.about),
    ...(given.leftOut.length === 0 ? {} : { [LEFT_OUT]: given.leftOut.join(' ').slice(0, LARGEST.one) }),
  }
}

/**
 * What the system takes as variables. A command could not start with the others: they stand on its standard input all the
 * same, and are named in `SVC_VARS_LEFT_OUT`.
 */
function fitting(entries: readonly (readonly [string, string])[]) {
  const env: Record<string, string> = {}
  const leftOut: string[] = []
  let room: number = LARGEST.together
  for (const [name, value] of entries) {
    const bytes = Buffer.byteLength(name) + Buffer.byteLength(value) + 2
    if (value.includes('\0') || bytes > Math.min(LARGEST.one, room)) {
      leftOut.push(name)
      continue
    }
    env[name] = value
    room -= bytes
  }
  return { env, leftOut }
}

export const isPassedOn = (name: string): boolean =>
  PASSED_ON.some((passed) => passed === name) || name.startsWith('LC_')

const definedOf = (all: Environment): Record<string, string> =>
  Object.fromEntries(Object.entries(all).filter((entry): entry is [string, string] => entry[1] !== undefined))

const aboutOf = (about: ExecAbout): Record<string, string> =>
  definedOf({
    SVC_RIG: about.rig,
    SVC_FILE_DIR: about.file_dir,
    SVC_MOLECULE_ID: about.molecule_id,
    SVC_STEP_ID: about.step_id,
    SVC_BEAD_ID: about.bead_id,
    SVC_ATTEMPT: about.attempt === undefined ? undefined : String(about.attempt),
    SVC_ORDER: about.order,
    SVC_RUN_ID: about.run_id,
  })

const variableOf = (name: string): string => `SVC_VAR_${name.toUpperCase().replaceAll(/[^A-Z0-9_]/g, '_')}`

/** A string as it is, everything else as JSON. */
const textOf = (value: Value): string => (typeof value === 'string' ? value : JSON.stringify(value))
