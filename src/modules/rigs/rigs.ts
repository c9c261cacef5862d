/** What the rigs family needs of its surroundings, and what a rig looks like from outside. */
import type { RigGit, RigInfo } from '../../contract/rigs.ts'
import type { Configuration, Referrer, TextFiles, TreeFiles } from '../../files/configuration.ts'
import type { PlainTable, PlainValue } from '../../files/toml.ts'
import { isoTime } from '../../kernel/clock.ts'
import { definitionHash } from '../../kernel/etag.ts'
import type { Jobs } from '../../kernel/jobs.ts'
import { unknownName } from '../../kernel/near-names.ts'
import type { Store } from '../../kernel/store.ts'
import { readOverride } from './overrides.ts'

/** A rig in force. */
export interface RigView {
  readonly name: string
  readonly prefix: string
  readonly suspended_on_start: boolean
  readonly path?: string
  readonly default_branch?: string
}

export interface RigsView {
  readonly revision: string
  readonly rigs: readonly RigView[]
  readonly agents: readonly { readonly dir: string; readonly suspended: boolean }[]
  readonly default_rig_imports: Readonly<Record<string, PlainValue>>
}

/** A rig as files declare it, with this machine's path. */
export interface RigDeclaration {
  readonly fields: PlainTable
  readonly file: string
  readonly line: number
}

/** Sessions of a rig's agents. */
export interface RigSessions {
  running(rig: string): { readonly count: number; readonly lastActivity: number | undefined }
  /** Ends their processes; they start again. Ids of those that could not be ended. */
  restart(rig: string): Promise<readonly string[]>
}

export interface RigCity<View> {
  readonly name: string
  readonly directory: string
  readonly store: Pick<Store, 'db' | 'keys' | 'log' | 'requests'>
  readonly config: Configuration<View>
  readonly sessions: RigSessions
  /** Beads of a rig that are not closed, some of them where there are many. */
  openBeads(rig: string): readonly string[]
  /** How many beads it has, closed ones included. */
  beads(rig: string): number
  readonly launch: Jobs['launch']
}

/** How the family looks into a configuration and its files. */
export interface RigFiles<View> {
  readonly declaration: (config: View, name: string) => RigDeclaration | undefined
  readonly referrers: (config: View, name: string) => readonly Referrer[]
  readonly tree: (files: TextFiles) => TreeFiles
}

export const findRig = (config: RigsView, name: string): RigView | undefined =>
  config.rigs.find((rig) => rig.name === name)

export function needRig(config: RigsView, name: string): RigView {
  const found = findRig(config, name)
  if (found === undefined)
    throw unknownName(
      'rig-not-found',
      'rig',
      name,
      config.rigs.map((rig) => rig.name),
    )
  return found
}

function isSuspended(config: RigsView, rig: RigView, override: boolean | undefined): boolean {
  if (override !== undefined) return override
  if (rig.suspended_on_start) return true
  const agents = config.agents.filter(({ dir }) => dir === rig.name)
  return agents.length > 0 && agents.every(({ suspended }) => suspended)
}

/** Hash of what is stored about the rig: its entry, its path here, its override. */
export function rigRevision<View extends RigsView>(
  files: RigFiles<View>,
  city: RigCity<View>,
  config: View,
  name: string,
): string {
  needRig(config, name)
  const declared = files.declaration(config, name)
  return definitionHash({
    name,
    file: declared?.file,
    fields: declared?.fields,
    override: readOverride(city.store.db, name),
  })
}

export function rigInfo<View extends RigsView>(
  files: RigFiles<View>,
  city: RigCity<View>,
  config: View,
  name: string,
  git: RigGit | undefined,
): RigInfo {
  const rig = needRig(config, name)
  const declared = files.declaration(config, name)
  const { count, lastActivity } = city.sessions.running(name)
  // A copy that may be handed out; the schema of the files and that of the wire are the same.
  const fields: Partial<RigInfo> = JSON.parse(JSON.stringify(rig))
  return {
    ...fields,
    name,
    prefix: rig.prefix,
    suspended: isSuspended(config, rig, readOverride(city.store.db, name)),
    suspended_on_start: rig.suspended_on_start,
    agent_count: config.agents.filter(({ dir }) => dir === name).length,
    running_count: count,
    ...(lastActivity === undefined ? {} : { last_activity: isoTime(lastActivity) }),
    ...(git === undefined ? {} : { git }),
    ...(declared === undefined || declared.line === 0 ? {} : { file: declared.file, line: declared.line }),
    revision: rigRevision(files, city, config, name),
  }
}
