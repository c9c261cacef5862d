/** The configuration, file by file and table by table, as data for its page and its manual. */
import { shapeOf } from '../../src/contract/base/config-shape.ts'
import { type ConfigField, type ConfigTable, configTables, kindOf } from '../../src/contract/config-fields.ts'
import {
  CONFIG_WORDS,
  CREDENTIAL_WORDS,
  LOCK_WORDS,
  SUPERVISOR_WORDS,
  type TableWords,
} from '../../src/contract/config-words.ts'
import { readPlainToml } from '../../src/files/toml.ts'
import { CREDENTIAL_KEYS } from '../../src/modules/packs/remote/credentials.ts'
import { formatLock } from '../../src/modules/packs/store/lock.ts'
import { RETENTION_KEYS, SUPERVISOR_DEFAULTS, SUPERVISOR_KEYS } from '../../src/supervisor/settings.ts'
import { anchor, page, table } from './markdown.ts'

export interface DocumentedKey {
  readonly name: string
  readonly kind: string
  readonly preset: string
  readonly words: string
}

export interface DocumentedTable {
  readonly title: string
  readonly places: readonly string[]
  readonly words: string
  readonly keys: readonly DocumentedKey[]
}

export interface DocumentedFile {
  readonly file: string
  /** What it holds. */
  readonly about: string
  readonly tables: readonly DocumentedTable[]
}

const ABOUT: Readonly<Record<string, string>> = {
  'city.toml':
    'How a city is deployed: its providers, rigs, settings and changes of what packs bring. Its presence makes a directory a city. A file that it `include`s takes the same keys but `include`.',
  'pack.toml':
    'What a city, or a pack, is made of: its name, its imports, its agents’ defaults. Belongs into version control, as `city.toml` does.',
  'agents/<name>/agent.toml':
    'An agent of the city or of a pack; the name of the directory is the name of the agent. Beside it stand its prompt and its own `template-fragments/`.',
  '.svc/site.toml':
    'What differs from machine to machine; never in version control. Written by `svcctl city create` and `svcctl rig`.',
}

/** Files that have a page of their own, with the language that is in them. */
const AUTOMATION: Readonly<Record<string, string>> = {
  'formulas/<name>.toml':
    'A method of work: steps, what they wait for and who does them. Formulas of a rig go before those of the city, and both before those of packs.',
  'orders/<name>.toml':
    'What starts a formula or runs a command by itself. The name of the file is the name of the order.',
}

/** Every file, each table under the first file in which it may stand. */
export const documentedFiles = (): readonly DocumentedFile[] => [
  ...filesOf(ABOUT),
  ...automationFiles(),
  lockFile(),
  supervisorFile(),
  credentialsFile(),
]

export const automationFiles = (): readonly DocumentedFile[] => filesOf(AUTOMATION)

function filesOf(abouts: Readonly<Record<string, string>>): readonly DocumentedFile[] {
  const tables = configTables()
  return Object.entries(abouts).map(([file, about]) => ({
    file,
    about,
    tables: tables.filter(({ places }) => belongsTo(file, places)).map(documentedTable),
  }))
}

/** `agent.toml` is where an agent is looked for, though it may stand in `city.toml` too. */
function belongsTo(file: string, places: readonly string[]): boolean {
  const home = places.find((place) => place === '`agents/<name>/agent.toml`') ?? places[0] ?? ''
  return home.startsWith(`\`${file}\``)
}

function documentedTable({ id, places, words, fields, changes }: ConfigTable): DocumentedTable {
  const keys = fields.filter((field) => changes === undefined || isOwn(id, field)).map(documentedKey)
  return { title: titleOf(places[0] ?? id), places, words: `${words}${changeWords(fields, id, changes)}`, keys }
}

const titleOf = (place: string): string => {
  const [, file = place, header] = /^`([^`]+)`(?: `(.+)`)?$/.exec(place) ?? []
  return header ?? `The top of \`${file}\``
}

const isOwn = (id: string, { name }: ConfigField): boolean => Object.hasOwn(CONFIG_WORDS[id] ?? {}, name)

/** What may be changed has the keys of what is changed: they are not said twice. */
function changeWords(fields: readonly ConfigField[], id: string, changes: string | undefined): string {
  if (changes === undefined) return ''
  const names = fields.filter((field) => !isOwn(id, field)).map(({ name }) => name)
  const ending = (end: string) =>
    names.filter((name) => name.endsWith(end) && names.includes(name.slice(0, -end.length)))
  const [appended, removed] = [ending('_append'), ending('_remove')]
  const plain = names.filter((name) => !appended.includes(name) && !removed.includes(name))
  const list = (some: readonly string[]) => some.map((name) => `\`${name}\``).join(', ')
  return ` Keys of it: ${list(plain)}. Put behind what is there: ${list(appended)}. Keys to take out of maps: ${list(removed)}.`
}

function documentedKey({ name, schema, required, words, missing }: ConfigField): DocumentedKey {
  const { preset, annotation } = shapeOf(schema)
  const notes = [
    ...(annotation.secret === true ? ['Shown masked.'] : []),
    ...(missing.length === 0 ? [] : [`Not in ${missing.join(', ')}.`]),
  ]
  return {
    name,
    kind: kindOf(schema),
    preset: required ? 'needed' : presetText(preset),
    words: [words, ...notes].join(' '),
  }
}

const presetText = (preset: unknown): string => (preset === undefined ? '' : `\`${JSON.stringify(preset)}\``)

function lockFile(): DocumentedFile {
  const title = '[packs."<source>"]'
  const { '': about = '' } = LOCK_WORDS
  const keys = saidOf('packs.lock', LOCK_WORDS, lockKeys()).map((key) => ({ ...key, kind: 'text', preset: 'needed' }))
  const words = 'One pin; a list of tables where rigs pin a source apart.'
  return { file: 'packs.lock', about, tables: [{ title, places: [`\`packs.lock\` \`${title}\``], words, keys }] }
}

/** As a lock has them that is written now. */
function lockKeys(): readonly string[] {
  const pin = { source: 'x', version: 'x', commit: 'x', contentHash: 'x', subpath: 'x', fetched: 'x' }
  const { packs } = readPlainToml(formatLock([pin]) ?? '')
  return Object.keys(Object(Object(packs).x))
}

/** The words of these keys; throws where words are missing or left over. */
function saidOf(table: string, words: TableWords, keys: readonly string[]) {
  const idle = Object.keys(words).find((key) => key !== '' && !keys.includes(key))
  if (idle !== undefined)
    throw new Error(`src/contract/config-words.ts speaks of ${table}: ${idle}, which does not exist`)
  return keys.map((name) => {
    const said = words[name]
    if (said === undefined) throw new Error(`src/contract/config-words.ts has no words for ${table}: ${name}`)
    return { name, words: said }
  })
}

const KINDS: Readonly<Record<string, string>> = {
  text: 'text',
  number: 'whole number; at least 0',
  boolean: '`true` or `false`',
  texts: 'list of texts',
  numbers: 'list of whole numbers',
  origins: 'list of origins',
  duration: 'duration',
}

function supervisorFile(): DocumentedFile {
  const tables = [supervisorTable('supervisor', SUPERVISOR_KEYS), supervisorTable('events.retention', RETENTION_KEYS)]
  const about =
    'Settings of the supervisor, in its state directory (`$SVC_HOME`, `~/.svc` where that is not set). Flags of `svcctl serve` and the environment come first.'
  return { file: 'supervisor.toml', about, tables }
}

function credentialsFile(): DocumentedFile {
  const keys = saidOf('credentials.toml', CREDENTIAL_WORDS, CREDENTIAL_KEYS).map((key) => ({
    ...key,
    kind: 'text',
    preset: key.name === 'match' ? 'needed' : '',
  }))
  const words = 'One of `helper`, `token_file`, `token_env` and `ssh_key_file`, or only whom to believe.'
  const tables = [{ title: '[[credential]]', places: ['`credentials.toml` `[[credential]]`'], words, keys }]
  return { file: 'credentials.toml', about: CREDENTIAL_WORDS[''] ?? '', tables }
}

function supervisorTable(name: string, kinds: Readonly<Record<string, string>>): DocumentedTable {
  const words = SUPERVISOR_WORDS[name] ?? {}
  const keys = saidOf(name, words, Object.keys(kinds)).map((key) => ({
    ...key,
    kind: KINDS[kinds[key.name] ?? ''] ?? '',
    preset: SUPERVISOR_DEFAULTS[key.name] ?? '',
  }))
  return { title: `[${name}]`, places: [`\`supervisor.toml\` \`[${name}]\``], words: words[''] ?? '', keys }
}

// ---- the page -------------------------------------------------------------------------------------------------------

const INTRO = `Every file and every key. What is not listed here is refused, with the nearest name. \`svcctl config explain\` says where each value of a city comes from, \`svcctl config validate\` what is wrong; the [guide](../guide/configuration.md) says how the files work together. Formulas and orders have [a page of their own](formulas.md).

Durations are texts such as \`500ms\`, \`30s\`, \`1h30m\` or \`7d\`; an empty text is the default. Files of TOML have at most 256 KiB. Editors check and complete by [\`city.schema.json\`](../../city.schema.json) and [\`agent.schema.json\`](../../agent.schema.json), which a server has at \`/city.schema.json\` and \`/agent.schema.json\`, and \`svcctl schema city\` and \`svcctl schema agent\` print.`

export function configurationPage(): string {
  const files = documentedFiles().filter(({ file }) => !Object.hasOwn(AUTOMATION, file))
  const contents = files.map(({ file }) => `- [\`${file}\`](${anchor(file)})`).join('\n')
  return page('Configuration', INTRO, [contents, ...files.map(fileSection)])
}

export function fileSection({ file, about, tables }: DocumentedFile): string {
  return [`## \`${file}\``, about, ...tables.map(tableSection)].join('\n\n')
}

function tableSection({ title, places, words, keys }: DocumentedTable): string {
  const where = places.length > 1 ? [`Stands in ${places.join(', ')}.`] : []
  const rows = keys.map(({ name, kind, preset, words: said }) => [`\`${name}\``, kind, preset, said])
  return [
    `### ${title.startsWith('[') ? `\`${title}\`` : title}`,
    ...(words === '' ? [] : [words]),
    ...where,
    ...(rows.length === 0 ? [] : [table(['Key', 'Value', 'Default', 'Meaning'], rows)]),
  ].join('\n\n')
}
