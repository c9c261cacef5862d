/** Prompts of agents: which files they are made of, checking them when the city is loaded, and rendering them. */

import { createHash } from 'node:crypto'
import { basename, dirname, join } from 'node:path'
import type { TemplateProblem } from '../../../automation/liquid.ts'
import { shapeOf, type TemplateKind } from '../../../contract/base/config-shape.ts'
import { AGENT_FIELDS } from '../../../contract/config-schema.ts'
import { FIELD_VARIABLES, PROMPT_VARIABLES } from '../../../contract/prompt-words.ts'
import { type ConfigFiles, listable } from '../../../files/files.ts'
import { fileStart, type Place } from '../../../files/issues.ts'
import { textOfBytes } from '../../../files/read.ts'
import { type ConfigNode, emptyTable, tableOf } from '../../../files/toml.ts'
import type { Composed, FinishedAgent } from '../compose/compose.ts'
import { type LoadContext, reason } from '../compose/context.ts'
import { draftIdentity } from '../compose/drafts.ts'
import { type EffectiveAgent, type EffectiveConfig, rootOf } from '../compose/effective.ts'
import type { Untrusted } from '../compose/trust.ts'
import type { Facts } from '../compose/validate.ts'
import { checkTemplate, type FilterFacts, renderTemplate } from './templates.ts'

/** The environment of the agent adds its own names, which never replace these. */
const STANDARD: ReadonlySet<string> = new Set(Object.keys(PROMPT_VARIABLES))
export type PromptData = Readonly<Record<keyof typeof PROMPT_VARIABLES, string>>

export type RenderedPrompt = {
  /** Body and fragments, without the beacon line that a session puts in front. */
  readonly text: string
  readonly version: string | undefined
  readonly sha256: string
  /** Names of the appended fragments, in order. */
  readonly fragments: readonly string[]
}

/** Where the fragments of one prompt are looked for, weakest first. */
type PromptPlace = {
  /** What the file at a path must not lead out of. */
  readonly rootOf: (path: string) => string
  readonly packDirs: readonly string[]
  /** Packs that are not trusted: what they say goes into no prompt but that of an agent which is not started either. */
  readonly held: readonly PromptPack[]
  readonly homeDir: string
  readonly cityDir: string
  readonly agentName: string
  readonly promptPath: string | undefined
}

interface PromptPack {
  readonly dir: string
  readonly root: string
  /** The import that brings it, where nobody has trusted that yet. */
  readonly untrusted: string | undefined
}

type AgentPlace = Pick<PromptPlace, 'homeDir' | 'agentName' | 'promptPath'>

function placeOf(cityDir: string, packs: readonly PromptPack[], agent: AgentPlace): PromptPlace {
  const rootAt = (path: string): string => rootOf({ dir: cityDir, packs }, path)
  const home = rootAt(agent.homeDir)
  const isHeldItself = packs.some(({ root, untrusted }) => root === home && untrusted !== undefined)
  const held = isHeldItself ? [] : packs.filter(({ untrusted }) => untrusted !== undefined)
  const packDirs = packs.filter((pack) => !held.includes(pack)).map(({ dir }) => dir)
  return { ...agent, cityDir, rootOf: rootAt, packDirs, held }
}

/** The prompt of `agent` as its session would get it. Throws with file, line and column when that is impossible. */
export function renderPrompt(
  config: EffectiveConfig,
  agent: EffectiveAgent,
  data: PromptData,
  filters: FilterFacts,
  files: ConfigFiles,
): RenderedPrompt {
  const promptPath = agent.paths['prompt_template']
  const packs = config.packs.map(({ dir, root, trusted, binding }) => ({
    dir,
    root,
    untrusted: trusted ? undefined : binding,
  }))
  const place = placeOf(config.dir, packs, {
    homeDir: agent.config_dir,
    agentName: agent.base_name,
    promptPath,
  })
  const paths = findFragments(files, place)
  const held = heldFragments(place, paths, (dir) => listFragments(files, dir, place))
  const texts = new Map([
    ...[...held.keys()].map((name) => [name, ''] as const),
    ...[...paths].map(([name, path]) => [name, splitFrontmatter(readText(files, path, place)).body] as const),
  ])
  const appended = agent.fragments.filter((name) => !held.has(name))
  const values = { ...agent.env, ...data }
  const {
    body: own,
    version,
    skippedLines,
  } = splitFrontmatter(promptPath === undefined ? '' : readText(files, promptPath, place))
  // Empty lines for the stripped ones, so that an error names the line of the file; they are trimmed off the text.
  const body = '\n'.repeat(skippedLines) + own
  const rendered = [
    promptPath === undefined || !isTemplate(promptPath) ? body : renderNamed(promptPath, body, values, texts, filters),
  ]
  for (const name of appended) {
    const text = texts.get(name)
    if (text === undefined) throw new Error(`there is no fragment \`${name}\``)
    rendered.push(renderNamed(paths.get(name) ?? name, text, values, texts, filters))
  }
  const text = rendered
    .map((part) => part.trim())
    .filter((part) => part !== '')
    .join('\n\n')
  return { text, version, sha256: createHash('sha256').update(text).digest('hex'), fragments: appended }
}

/** Checks every prompt, fragment by fragment, and the fragments that agents append. */
export function checkPrompts(context: LoadContext, composed: Composed, facts: Facts, untrusted: Untrusted): void {
  const checker = new PromptChecker(context)
  const packs = composed.packs.map(({ entry: { pack } }) => ({
    dir: pack.dir,
    root: pack.root,
    untrusted: untrusted.at(pack.root),
  }))
  for (const agent of composed.agents) {
    const promptPath = facts.paths.get(draftIdentity(agent.draft))?.['prompt_template']
    const { home, name } = agent.draft
    checker.check(agent, placeOf(context.city.dir, packs, { homeDir: home.dir, agentName: name, promptPath }))
  }
}

/** Checks every field that is a template: of agents, providers, the workspace, and live commands of packs. */
export function checkTemplateFields(context: LoadContext, composed: Composed): void {
  const seen = new Set<ConfigNode>()
  const check = (node: ConfigNode | undefined, kind: TemplateKind, key: string): void => {
    if (node === undefined || seen.has(node)) return
    seen.add(node)
    if (node.kind === 'list') for (const item of node.items) check(item, kind, key)
    if (node.kind !== 'scalar' || !/\{[{%]/.test(String(node.value))) return
    const scope = { variables: new Set<string>(FIELD_VARIABLES[kind]), fragments: new Map<string, unknown>() }
    for (const problem of checkTemplate(String(node.value), scope).problems) {
      context.issues.error(node.at, key, problem.message, problem.hint)
    }
  }
  for (const { fields } of composed.agents)
    for (const [key, kind] of TEMPLATE_FIELDS) check(fields.entries.get(key), kind, key)
  for (const [name, { resolved }] of composed.providers)
    check(resolved.entries.get('resume_command'), 'resume', `providers.${name}.resume_command`)
  const workspace = tableOf(composed.root.merged, 'workspace') ?? emptyTable()
  check(workspace.entries.get('session_template'), 'session', 'workspace.session_template')
  for (const { entry } of composed.packs) {
    check(tableOf(entry.pack.manifest, 'global')?.entries.get('session_live'), 'command', 'global.session_live')
  }
}

/** Whether a prompt file is a template; any other is taken as it stands. */
function isTemplate(path: string): boolean {
  return path.endsWith('.template.md')
}

const TEMPLATE_FIELDS: readonly (readonly [string, TemplateKind])[] = Object.entries(AGENT_FIELDS).flatMap(
  ([key, schema]) => {
    const { annotation, item } = shapeOf(schema)
    const kind = annotation.template ?? (item === undefined ? undefined : shapeOf(item).annotation.template)
    return kind === undefined ? [] : [[key, kind] as const]
  },
)

/** What a prompt or fragment may refer to, and where it is looked for. */
interface PromptScope {
  readonly variables: ReadonlySet<string>
  readonly fragments: ReadonlyMap<string, string>
  /** Names of fragments that are left out, with the import whose trust they wait for. */
  readonly held: ReadonlyMap<string, string>
  readonly place: PromptPlace
}

class PromptChecker {
  readonly #context: LoadContext
  readonly #texts = new Map<string, string | undefined>()
  readonly #listings = new Map<string, ReadonlyMap<string, string>>()
  readonly #packFragments = new Map<string, ReadonlyMap<string, string>>()
  readonly #checked = new Set<string>()

  constructor(context: LoadContext) {
    this.#context = context
  }

  check(agent: FinishedAgent, place: PromptPlace): void {
    const fragments = this.#fragmentsOf(place)
    const variables = new Set([...STANDARD, ...(tableOf(agent.fields, 'env')?.entries.keys() ?? [])])
    const held = heldFragments(place, fragments, (dir) => this.#list(dir, place))
    const scope: PromptScope = { variables, fragments, held, place }
    if (place.promptPath !== undefined && isTemplate(place.promptPath)) this.#checkFile(place.promptPath, scope, [])
    for (const { name, node } of agent.fragments) {
      const path = fragments.get(name)
      const pack = held.get(name)
      if (path !== undefined) this.#checkFile(path, scope, [])
      else if (pack !== undefined) this.#warnHeld(node.at, name, pack)
      else
        this.#context.issues.error(node.at, 'append_fragments', `there is no fragment \`${name}\``, nearest(fragments))
    }
  }

  #checkFile(path: string, scope: PromptScope, stack: readonly string[]): void {
    const { variables, fragments, held, place } = scope
    const extra = [...variables].filter((name) => !STANDARD.has(name)).sort()
    const id = JSON.stringify([path, extra, fragmentId(fragments)])
    if (this.#checked.has(id)) return
    this.#checked.add(id)
    const text = this.#text(path, place)
    if (text === undefined) return
    const { body, skippedLines } = splitFrontmatter(text)
    const { problems, uses } = checkTemplate(body, { variables, fragments: new Map([...held, ...fragments]) })
    for (const problem of problems) this.#report(path, problem, skippedLines)
    for (const use of uses) {
      const target = fragments.get(use.name)
      const pack = held.get(use.name)
      if (pack !== undefined) this.#warnHeld(this.#placeAt(path, use, skippedLines), use.name, pack)
      if (target === undefined) continue
      if (target === path || stack.includes(target)) {
        this.#report(path, { ...use, message: `fragment \`${use.name}\` contains itself` }, skippedLines)
      } else {
        this.#checkFile(target, { ...scope, variables: new Set([...variables, ...use.passed]) }, [...stack, path])
      }
    }
  }

  #report(path: string, problem: TemplateProblem, skippedLines: number): void {
    this.#context.issues.error(this.#placeAt(path, problem, skippedLines), '', problem.message, problem.hint)
  }

  #placeAt(path: string, { line, column }: Pick<TemplateProblem, 'line' | 'column'>, skippedLines: number): Place {
    return { ...fileStart(this.#context.display(path)), line: line + skippedLines, column }
  }

  #warnHeld(at: Place, name: string, pack: string): void {
    this.#context.issues.warn(
      at,
      '',
      `the fragment \`${name}\` is left out: the pack \`${pack}\` is not trusted yet`,
      `look at it, then run \`svcctl pack trust ${pack}\``,
    )
  }

  #text(path: string, place: PromptPlace): string | undefined {
    if (!this.#texts.has(path)) {
      try {
        this.#texts.set(path, readText(this.#context.files, path, place))
      } catch (error) {
        this.#texts.set(path, undefined)
        this.#context.issues.error(fileStart(this.#context.display(path)), '', `cannot be read: ${reason(error)}`)
      }
    }
    return this.#texts.get(path)
  }

  // Most agents of a pack share one set of fragments; only a directory of its own makes a difference.
  #fragmentsOf(place: PromptPlace): ReadonlyMap<string, string> {
    const shared = this.#packFragments.get(place.homeDir) ?? collect(sharedDirs(place), (dir) => this.#list(dir, place))
    this.#packFragments.set(place.homeDir, shared)
    const own = ownDirs(place)
      .map((dir) => this.#list(dir, place))
      .filter((listing) => listing.size > 0)
    return own.length === 0 ? shared : new Map([...shared, ...own.flatMap((listing) => [...listing])])
  }

  #list(dir: string, place: PromptPlace): ReadonlyMap<string, string> {
    const known = this.#listings.get(dir) ?? listFragments(this.#context.files, dir, place)
    this.#listings.set(dir, known)
    return known
  }
}

const fragmentIds = new WeakMap<ReadonlyMap<string, string>, number>()
let lastFragmentId = 0

// Sets of fragments are compared by identity: the checker makes one map for all who share it.
function fragmentId(fragments: ReadonlyMap<string, string>): number {
  const known = fragmentIds.get(fragments)
  if (known !== undefined) return known
  lastFragmentId += 1
  fragmentIds.set(fragments, lastFragmentId)
  return lastFragmentId
}

function nearest(fragments: ReadonlyMap<string, string>): string | undefined {
  const known = [...fragments.keys()]
  return known.length === 0
    ? 'fragments are files `template-fragments/<name>.template.md`'
    : `there are: ${known.slice(0, 10).join(', ')}`
}

function findFragments(files: ConfigFiles, place: PromptPlace): Map<string, string> {
  return collect([...sharedDirs(place), ...ownDirs(place)], (dir) => listFragments(files, dir, place))
}

/** Those that only packs have which are not trusted, by name. */
function heldFragments(
  { held }: PromptPlace,
  fragments: ReadonlyMap<string, string>,
  list: (dir: string) => ReadonlyMap<string, string>,
): ReadonlyMap<string, string> {
  const found = held.flatMap(({ dir, untrusted = '' }) =>
    fragmentDirs(dir).flatMap((one) => [...list(one).keys()].map((name) => [name, untrusted] as const)),
  )
  return new Map(found.filter(([name]) => !fragments.has(name)))
}

/** Weakest first: packs in their order, the prompt's own pack, the city. */
function sharedDirs(place: PromptPlace): string[] {
  return [...place.packDirs, place.homeDir, place.cityDir].flatMap(fragmentDirs)
}

function fragmentDirs(dir: string): string[] {
  return [join(dir, 'prompts', 'shared'), join(dir, 'template-fragments')]
}

function ownDirs(place: PromptPlace): string[] {
  const beside = place.promptPath === undefined ? [] : [join(dirname(place.promptPath), 'shared')]
  return [...beside, join(place.homeDir, 'agents', place.agentName, 'template-fragments')]
}

function collect(dirs: readonly string[], list: (dir: string) => ReadonlyMap<string, string>): Map<string, string> {
  return new Map(dirs.flatMap((dir) => [...list(dir)]))
}

function listFragments(files: ConfigFiles, dir: string, { rootOf }: PromptPlace): Map<string, string> {
  const found = new Map<string, string>()
  for (const entry of listable(files, dir, rootOf(dir))) {
    if (entry.directory || !isTemplate(entry.name)) continue
    found.set(basename(entry.name, '.template.md'), join(dir, entry.name))
  }
  return found
}

function renderNamed(
  path: string,
  text: string,
  values: Readonly<Record<string, unknown>>,
  fragments: ReadonlyMap<string, string>,
  filters: FilterFacts,
): string {
  try {
    return renderTemplate(text, values, fragments, filters)
  } catch (error) {
    throw new Error(`${path}: ${error instanceof Error ? error.message : String(error)}`, { cause: error })
  }
}

function readText(files: ConfigFiles, path: string, { rootOf }: PromptPlace): string {
  const bytes = files.read(path, rootOf(path))
  if (bytes === undefined) throw new Error(`${path} does not exist`)
  return textOfBytes(bytes)
}

/** The text behind a leading `---` block of flat `key: value` lines, and that block's `version`. */
function splitFrontmatter(text: string): { body: string; version: string | undefined; skippedLines: number } {
  const block = /^---\r?\n((?:[A-Za-z_][\w-]*:[^\n]*\n)*)---\r?\n/.exec(text)
  if (block === null) return { body: text, version: undefined, skippedLines: 0 }
  const version = /^version:[ \t]*(.*?)[ \t]*\r?$/m.exec(block[1] ?? '')?.[1]
  return { body: text.slice(block[0].length), version, skippedLines: block[0].split('\n').length - 1 }
}
