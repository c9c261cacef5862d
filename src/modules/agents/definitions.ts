/** Agents in the files of a city: where each is declared, and how an edit of it is made (sheet 04 §1; decisions 30, 69). */
import { AgentFile } from '../../contract/config-schema.ts'
import {
  mergePatch,
  type Referrer,
  rewriteTable,
  type TextFiles,
  type TreeFiles,
  type TreePath,
  tablesAt,
} from '../../files/configuration.ts'
import { unmasked } from '../../files/mask.ts'
import type { PlainTable } from '../../files/toml.ts'
import { definitionHash } from '../../kernel/etag.ts'
import { unknownName } from '../../kernel/near-names.ts'
import { problem } from '../../kernel/problem.ts'

/** An agent as its own file says it. */
export interface AgentDeclaration {
  /** Before conventions, patches and defaults; without `name` and `dir`. */
  readonly fields: PlainTable
  readonly file: string
  readonly line: number
  /** `agents/<name>`, where it has a directory; undefined for `[[agent]]`. */
  readonly directory: string | undefined
  /** Binding of the pack that brings it; undefined where it stands in a file of the city. */
  readonly pack: string | undefined
}

/** What the family needs to know of an agent in force. */
export interface AgentView {
  readonly identity: string
  readonly name: string
  readonly base_name: string
  readonly dir: string
  readonly suspended: boolean
  readonly untrusted_pack?: string
  readonly provider: string
  readonly description?: string
  readonly start_command?: string
  readonly min_active_sessions: number
  readonly max_active_sessions: number
  /** Absolute paths of its files, by the field that names them. */
  readonly paths: Readonly<Record<string, string>>
}

export interface AgentsView {
  readonly revision: string
  readonly dir: string
  readonly agents: readonly AgentView[]
  readonly rigs: readonly { readonly name: string }[]
  readonly providers: Readonly<
    Record<
      string,
      { readonly resolved: { readonly display_name?: string; readonly command?: string; readonly path_check?: string } }
    >
  >
}

/** How the family looks into a configuration and its files. */
export interface AgentFiles<View> {
  readonly declaration: (config: View, identity: string) => AgentDeclaration | undefined
  /** Patches of agents in the order in which they apply. */
  readonly patches: (config: View) => readonly { readonly file: string; readonly fields: PlainTable }[]
  readonly referrers: (config: View, identity: string) => readonly Referrer[]
  readonly tree: (files: TextFiles) => TreeFiles
}

const HOME = 'city.toml'

const identitiesOf = (config: AgentsView): readonly string[] => config.agents.map(({ identity }) => identity)

export function needAgent<View extends AgentsView>(config: View, identity: string): AgentView {
  const found = config.agents.find((agent) => agent.identity === identity)
  if (found === undefined) throw unknownName('agent-not-found', 'agent', identity, identitiesOf(config))
  return found
}

/** Hash of what is stored about the agent: its own entry and the patches of it. */
export function agentRevision<View extends AgentsView>(
  files: AgentFiles<View>,
  config: View,
  identity: string,
): string {
  const agent = needAgent(config, identity)
  const declared = files.declaration(config, identity)
  const patches = files.patches(config).filter(({ fields }) => isFor(fields, agent))
  return definitionHash({
    identity,
    file: declared?.file,
    fields: declared?.fields,
    patches: patches.length === 0 ? undefined : patches,
  })
}

/** The declaration in a file of the city, which is the only kind that can be changed. */
function editable<View extends AgentsView>(files: AgentFiles<View>, config: View, identity: string): AgentDeclaration {
  needAgent(config, identity)
  const declared = files.declaration(config, identity)
  if (declared === undefined) throw problem('conflict-config', `no file of the city declares ${identity}`)
  if (declared.pack !== undefined)
    throw problem('pack-derived', `${identity} belongs to the pack ${declared.pack}: patch it instead`)
  return declared
}

/** Adds the agent: a directory of its own in the city, an entry of `city.toml` in a rig. */
export function addAgent<View extends AgentsView>(
  files: AgentFiles<View>,
  config: View,
  edited: TextFiles,
  agent: { readonly name: string; readonly dir: string },
  fields: PlainTable,
): void {
  const identity = identityOf(agent)
  if (config.agents.some((other) => other.identity === identity))
    throw problem('name-taken', `there is an agent ${identity} already`)
  if (agent.dir !== '' && !config.rigs.some(({ name }) => name === agent.dir))
    throw problem('rig-not-found', `there is no rig ${agent.dir}`)
  const values = unmasked({}, fields, AgentFile)
  const tree = files.tree(edited)
  if (agent.dir !== '') {
    tree.addElement(HOME, ['agent'], { name: agent.name, dir: agent.dir, ...values })
    return
  }
  const file = `agents/${agent.name}/agent.toml`
  edited.set(file, '')
  rewriteTable(tree, file, [], {}, values)
}

/** What the agent's own entry says after `change`; everything else in the file stays. */
export function rewriteAgent<View extends AgentsView>(
  files: AgentFiles<View>,
  config: View,
  edited: TextFiles,
  identity: string,
  change: (before: PlainTable) => PlainTable,
): void {
  const agent = needAgent(config, identity)
  const tree = files.tree(edited)
  const { file, path, fields } = located(tree, editable(files, config, identity), agent)
  const { name, dir, ...before } = fields
  const keys = { ...(name === undefined ? {} : { name }), ...(dir === undefined ? {} : { dir }) }
  const wanted = unmasked(before, change(before), AgentFile)
  if (tree.list().includes(file)) rewriteTable(tree, file, path, fields, { ...keys, ...wanted })
  else {
    // An agent that is a prompt and nothing else has no file yet.
    edited.set(file, '')
    rewriteTable(tree, file, path, {}, wanted)
  }
}

export const replacement = (fields: PlainTable) => () => fields
export const merged = (patch: Parameters<typeof mergePatch>[1]) => (before: PlainTable) => mergePatch(before, patch)

export function removeAgent<View extends AgentsView>(
  files: AgentFiles<View>,
  config: View,
  edited: TextFiles,
  identity: string,
): void {
  const agent = needAgent(config, identity)
  const declared = editable(files, config, identity)
  const prompt = agent.paths['prompt_template']
  // A directory with a prompt is an agent, with or without a file (sheet 07 §3).
  if (
    declared.directory !== undefined &&
    declared.fields['prompt_template'] === undefined &&
    prompt?.startsWith(`${config.dir}/${declared.directory}/`) === true
  ) {
    throw problem(
      'conflict-config',
      `${declared.directory} has a prompt, which makes it an agent: remove the directory`,
    )
  }
  const tree = files.tree(edited)
  const { file, path } = located(tree, declared, agent)
  if (declared.directory === undefined) tree.remove(file, path)
  else edited.delete(file)
}

/**
 * Makes the files say that the agent is suspended or not: its own entry, or the patch of it where it belongs to a pack
 * or a patch has the last word.
 */
export function writeSuspended<View extends AgentsView>(
  files: AgentFiles<View>,
  config: View,
  edited: TextFiles,
  identity: string,
  suspended: boolean,
): void {
  const agent = needAgent(config, identity)
  const declared = files.declaration(config, identity)
  const patch = files.patches(config).findLast(({ fields }) => isFor(fields, agent))
  const patched = patch?.fields['suspended'] !== undefined
  if (declared !== undefined && declared.pack === undefined && !patched) {
    rewriteAgent(files, config, edited, identity, ({ suspended: _before, ...rest }) =>
      suspended ? { ...rest, suspended } : rest,
    )
    return
  }
  const tree = files.tree(edited)
  const at = patch === undefined ? undefined : locatedPatch(tree, patch.file, agent)
  if (at !== undefined) tree.set(at.file, [...at.path, 'suspended'], suspended)
  else tree.addElement(HOME, ['patches', 'agent'], { ...keysOf(agent), suspended })
}

export const identityOf = ({ name, dir }: { readonly name: string; readonly dir: string }): string =>
  dir === '' ? name : `${dir}/${name}`
const keysOf = ({ name, dir }: AgentView): PlainTable => (dir === '' ? { name } : { dir, name })
const isFor = ({ name, dir = '' }: PlainTable, agent: AgentView): boolean => name === agent.name && dir === agent.dir

interface Located {
  readonly file: string
  readonly path: TreePath
  readonly fields: PlainTable
}

function located(tree: TreeFiles, declared: AgentDeclaration, agent: AgentView): Located {
  const { file } = declared
  if (declared.directory !== undefined) return { file, path: [], fields: tree.read(file) }
  const entries = tablesAt(tree.read(file), 'agent')
  // An agent of the city with scope `rig` is declared once, without a rig.
  const index = [agent.dir, ''].map((dir) => entries.findIndex(isEntryOf(agent.base_name, dir))).find((at) => at >= 0)
  const fields = index === undefined ? undefined : entries[index]
  if (index === undefined || fields === undefined)
    throw problem('conflict-config', `${file} declares ${agent.identity} in a way that cannot be edited`)
  return { file, path: ['agent', index], fields }
}

const isEntryOf =
  (wanted: string, rig: string) =>
  ({ name, dir = '' }: PlainTable): boolean =>
    name === wanted && dir === rig

function locatedPatch(tree: TreeFiles, file: string, agent: AgentView): Located | undefined {
  const entries = tablesAt(tree.read(file), 'patches', 'agent')
  const index = entries.findLastIndex((fields) => isFor(fields, agent))
  const fields = entries[index]
  return fields === undefined ? undefined : { file, path: ['patches', 'agent', index], fields }
}
