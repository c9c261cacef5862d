/** What a command finds in its environment (decision 97): nothing of the supervisor's but what is listed here. */
import type { Value } from '../../automation/plan.ts'
import { type Environment, expanded } from '../../kernel/processes.ts'
import type { ExecAbout, NewExec } from './ports.ts'

const PASSED_ON = ['PATH', 'HOME', 'USER', 'LOGNAME', 'SHELL', 'LANG', 'TZ', 'TMPDIR'] as const
const PATH = '/usr/local/bin:/usr/bin:/bin'

export interface Surroundings {
  /** The supervisor's. */
  readonly env: Environment
  readonly home: string
  readonly city: { readonly name: string; readonly path: string }
  /** Directory of `svcctl`, which commands find as agents do. */
  readonly bin: string
}

export function environmentOf(exec: NewExec, { env, home, city, bin }: Surroundings): Readonly<Record<string, string>> {
  const passed = Object.entries(env).filter(([name]) => isPassedOn(name) || exec.inherit_env.includes(name))
  const { PATH: path = PATH, ...rest } = definedOf(Object.fromEntries(passed))
  return {
    PATH: `${bin}:${path}`,
    ...rest,
    ...Object.fromEntries(Object.entries(exec.vars).map(([name, value]) => [variableOf(name), textOf(value)])),
    ...Object.fromEntries(Object.entries(exec.env).map(([name, value]) => [name, expanded(value, env)])),
    ...definedOf({ SVC_HOME: home, SVC_CITY: city.name, SVC_CITY_PATH: city.path }),
    ...aboutOf(exec.about),
  }
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
