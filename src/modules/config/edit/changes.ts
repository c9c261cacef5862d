/** What differs between two configurations, by the names that people know: the `changed` of `config.reloaded`. */
import { createHash } from 'node:crypto'
import { join } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import { type DocumentHome, FRAGMENT_FILE, filesOf, TOML_FILE } from '../../../files/documents.ts'
import { type ConfigFiles, readable } from '../../../files/files.ts'
import { compareText } from '../../../files/issues.ts'
import { documentHomes } from '../compose/documents.ts'
import { type EffectiveAgent, type EffectiveConfig, rootOf } from '../compose/effective.ts'
import { hashOf } from '../load/own-files.ts'

export interface ChangedNames {
  readonly agents: readonly string[]
  readonly rigs: readonly string[]
  readonly providers: readonly string[]
  readonly orders: readonly string[]
  readonly formulas: readonly string[]
  readonly packs: readonly string[]
}

/** What the configuration object does not hold: contents of formulas, orders and prompts, as hashes. */
export interface ContentFacts {
  readonly formulas: ReadonlyMap<string, string>
  readonly orders: ReadonlyMap<string, string>
  readonly prompts: ReadonlyMap<string, string>
}

export function contentFacts(config: EffectiveConfig, files: ConfigFiles): ContentFacts {
  const homes = documentHomes(config).filter(({ trusted }) => trusted)
  const read = (path: string): Buffer => bytesOf(files, path, rootOf(config, path))
  const fragments = sharedFragments(config, files)
  return {
    formulas: documentHashes(homes, files, 'formulas'),
    orders: documentHashes(homes, files, 'orders'),
    prompts: new Map(config.agents.map((agent) => [agent.identity, promptHash(agent, read, fragments)])),
  }
}

export function changedNames(
  before: { readonly config: EffectiveConfig; readonly facts: ContentFacts },
  after: { readonly config: EffectiveConfig; readonly facts: ContentFacts },
): ChangedNames {
  const packs = ({ config }: typeof before) =>
    config.packs.map((pack) => [pack.rig === '' ? pack.binding : `${pack.rig}/${pack.binding}`, pack] as const)
  const agents = ({ config, facts }: typeof before) =>
    config.agents.map((agent) => [agent.identity, [agent, facts.prompts.get(agent.identity)]] as const)
  return {
    agents: differences(agents(before), agents(after)),
    rigs: differences(
      before.config.rigs.map((rig) => [rig.name, rig]),
      after.config.rigs.map((rig) => [rig.name, rig]),
    ),
    providers: differences(declaredProviders(before.config), declaredProviders(after.config)),
    orders: differences([...before.facts.orders], [...after.facts.orders]),
    formulas: differences([...before.facts.formulas], [...after.facts.formulas]),
    packs: differences(packs(before), packs(after)),
  }
}

// A built-in provider does not change because somebody begins to use it.
const declaredProviders = ({ providers }: EffectiveConfig): Named =>
  Object.entries(providers).filter(([name, { chain }]) => chain[0] !== `builtin:${name}`)

type Named = readonly (readonly [string, unknown])[]

function differences(before: Named, after: Named): readonly string[] {
  const old = new Map(before)
  const now = new Map(after)
  return [...new Set([...old.keys(), ...now.keys()])]
    .filter((name) => !isDeepStrictEqual(old.get(name), now.get(name)))
    .sort(compareText)
}

/** The last directory wins; what a rig has is `<rig>/<name>`. */
function documentHashes(
  homes: readonly DocumentHome[],
  files: ConfigFiles,
  kind: 'formulas' | 'orders',
): Map<string, string> {
  const found = new Map<string, string>()
  for (const { rig, root, [kind]: dir } of homes) {
    for (const { name, path } of dir === undefined ? [] : filesOf(files, dir, root, TOML_FILE))
      found.set(rig === '' ? name : `${rig}/${name}`, hashOf(bytesOf(files, path, root)))
  }
  return found
}

function sharedFragments(config: EffectiveConfig, files: ConfigFiles): ReadonlyMap<string, string> {
  const dirs = [...config.packs.map(({ dir }) => dir), config.dir].flatMap((dir) => [
    join(dir, 'prompts', 'shared'),
    join(dir, 'template-fragments'),
  ])
  const texts = new Map<string, string>()
  for (const dir of dirs) {
    const root = rootOf(config, dir)
    for (const { name, path } of filesOf(files, dir, root, FRAGMENT_FILE))
      texts.set(name, bytesOf(files, path, root).toString('utf8'))
  }
  return texts
}

/** Over the prompt's own file and every fragment that it comes to. */
function promptHash(
  agent: EffectiveAgent,
  read: (path: string) => Buffer,
  fragments: ReadonlyMap<string, string>,
): string {
  const hash = createHash('sha256')
  const seen = new Set<string>()
  const follow = (text: string): void => {
    hash.update(`${text.length}\0${text}`)
    for (const [, name = ''] of text.matchAll(/\{%-?\s*render\s+['"]([^'"]+)['"]/g)) place(name)
  }
  const place = (name: string): void => {
    const text = fragments.get(name)
    if (text === undefined || seen.has(name)) return
    seen.add(name)
    follow(text)
  }
  const path = agent.paths.prompt_template
  if (path !== undefined) follow(read(path).toString('utf8'))
  for (const name of agent.fragments) place(name)
  return hash.digest('hex')
}

// What cannot be read is reported by whoever needs it; here it is empty, and told from what it was.
const bytesOf = (files: ConfigFiles, path: string, root: string): Buffer =>
  readable(files, path, root) ?? Buffer.alloc(0)
