/** `svcctl config …`. */
import { ApiProblem } from '../../client/problems.ts'
import type { ConfigCheckResult, ConfigExplanation, EffectiveConfigBody } from '../../contract/config.ts'
import { waitFlags } from '../base/accepted.ts'
import { type CommandSpec, type Input, keyFlag } from '../base/command.ts'
import type { Context } from '../base/context.ts'
import { createDraft, type Draft } from '../base/editor.ts'
import { EXIT, Failure, printable, usageError } from '../base/failure.ts'
import { starts } from '../base/in-city.ts'
import type { Cell, Column } from '../base/output.ts'

const EFFECTIVE_COLUMNS: readonly Column<EffectiveConfigBody>[] = [
  { header: 'NAME', value: ({ workspace }) => workspace.name },
  { header: 'PREFIX', value: ({ workspace }) => workspace.prefix },
  { header: 'PROVIDER', value: ({ workspace }) => workspace.provider },
  { header: 'SUSPENDED', value: ({ workspace }) => workspace.suspended },
  { header: 'AGENTS', value: ({ agents }) => list(agents.map(({ identity }) => identity)) },
  { header: 'RIGS', value: ({ rigs }) => list(rigs.map((rig) => rig.name)) },
  { header: 'PROVIDERS', value: ({ providers }) => list(Object.keys(providers)) },
  {
    header: 'PATCHES',
    value: ({ patches }) =>
      `${patches.agent_count} agents, ${patches.rig_count} rigs, ${patches.provider_count} providers`,
  },
  { header: 'REVISION', value: (config) => config.revision },
  { header: 'LOADED_AT', value: (config) => config.loaded_at, kind: 'time' },
  {
    header: 'REFUSED',
    value: ({ last_error: error }) => (error === undefined ? undefined : list(error.issues.map(sentence))),
  },
]

const list = (names: readonly string[]): string => (names.length === 0 ? 'none' : names.join(', '))
const name = ({ workspace }: EffectiveConfigBody): string => workspace.name

interface Issue {
  readonly file: string
  readonly line: number
  readonly column: number
  readonly message: string
  readonly hint?: string
}
const sentence = ({ file, line, column, message, hint }: Issue): string =>
  `${file}:${line}:${column}: ${message}${hint === undefined ? '' : ` (${hint})`}`

async function get(context: Context, input: Input): Promise<number> {
  using limit = context.within()
  const cityName = await context.needCity(undefined, limit.signal)
  const client = await context.client()
  const path = input.text('path')
  if (path !== undefined) {
    const { body, text } = await client.call('get-config-file', { params: { cityName, path }, signal: limit.signal })
    await context.print.text({ text: body.text, json: text })
    return EXIT.ok
  }
  const view = input.on('raw') ? ('raw' as const) : undefined
  const { body, text } = await client.call('get-config', {
    params: { cityName },
    query: { view },
    signal: limit.signal,
  })
  if (body.view === 'raw') {
    await context.print.list({ items: body.files, columns: RAW_COLUMNS, name: (file) => file.path, json: text })
    return EXIT.ok
  }
  await context.print.item({ item: body, columns: EFFECTIVE_COLUMNS, name, json: text })
  return EXIT.ok
}

const RAW_COLUMNS: readonly Column<{
  readonly path: string
  readonly kind: string
  readonly revision: string
  readonly error?: string
}>[] = [
  { header: 'PATH', value: (file) => file.path },
  { header: 'KIND', value: (file) => file.kind },
  { header: 'REVISION', value: (file) => file.revision },
  { header: 'ERROR', value: (file) => file.error },
]

async function defaults(context: Context): Promise<number> {
  using limit = context.within()
  const cityName = await context.needCity(undefined, limit.signal)
  const client = await context.client()
  const { body, text } = await client.call('get-config-defaults', { params: { cityName }, signal: limit.signal })
  await context.print.item({ item: body, columns: EFFECTIVE_COLUMNS, name, json: text })
  return EXIT.ok
}

interface Row {
  readonly item: string
  readonly key: string
  readonly value: ConfigExplanation['settings'][string]
}

const EXPLAIN_COLUMNS: readonly Column<Row>[] = [
  { header: 'ITEM', value: ({ item }) => item },
  { header: 'KEY', value: ({ key }) => key },
  { header: 'VALUE', value: ({ value }) => cellOf(value.value) },
  {
    header: 'FROM',
    value: ({ value }) =>
      value.file === null ? undefined : `${value.file}${value.line === null ? '' : `:${value.line}`}`,
  },
  { header: 'LAYER', value: ({ value }) => value.layer },
]

function cellOf(value: unknown): Cell {
  return typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean'
    ? value
    : JSON.stringify(value)
}

async function explain(context: Context, input: Input): Promise<number> {
  using limit = context.within()
  const cityName = await context.needCity(undefined, limit.signal)
  const client = await context.client()
  const query = { agent: input.text('agent'), rig: input.text('rig'), provider: input.text('provider') }
  const { body, text } = await client.call('explain-config', { params: { cityName }, query, signal: limit.signal })
  const prefix = input.text('key')
  const shown = prefix === undefined ? body : onlyKey(body, prefix)
  const items = rowsOf(prefix === undefined && query.provider === undefined ? withoutUnused(body) : shown)
  if (prefix !== undefined && items.length === 0) throw new Failure(EXIT.notFound, `nothing has a key ${prefix}`)
  await context.print.list({
    items,
    columns: EXPLAIN_COLUMNS,
    name: ({ item, key }) => `${item} ${key}`,
    json: prefix === undefined ? text : JSON.stringify(shown),
  })
  return EXIT.ok
}

/** What is said of one key and what is below it. */
function onlyKey(explanation: ConfigExplanation, prefix: string): ConfigExplanation {
  const fieldsOf = (fields: ConfigExplanation['settings']): ConfigExplanation['settings'] =>
    Object.fromEntries(Object.entries(fields).filter(([key]) => key === prefix || key.startsWith(`${prefix}.`)))
  const itemsOf = <T extends { readonly fields: ConfigExplanation['settings'] }>(items: readonly T[]): T[] =>
    items.map((item) => ({ ...item, fields: fieldsOf(item.fields) })).filter(({ fields }) => hasAny(fields))
  const { settings, agents, rigs, named_sessions, providers, services } = explanation
  return {
    ...explanation,
    settings: fieldsOf(settings),
    agents: itemsOf(agents),
    rigs: itemsOf(rigs),
    named_sessions: itemsOf(named_sessions),
    providers: itemsOf(providers),
    services: itemsOf(services),
  }
}

const hasAny = (fields: object): boolean => Object.keys(fields).length > 0

/** Without the built-in providers that no agent runs on. */
function withoutUnused(explanation: ConfigExplanation): ConfigExplanation {
  const used = new Set(explanation.agents.map(({ fields }) => fields['provider']?.value))
  const providers = explanation.providers.filter(({ name, origin }) => origin !== 'builtin' || used.has(name))
  return { ...explanation, providers }
}

function rowsOf(explanation: ConfigExplanation): Row[] {
  const rows = (item: string, fields: ConfigExplanation['settings']): Row[] =>
    Object.entries(fields).map(([key, value]) => ({ item, key, value }))
  return [
    ...rows('city', explanation.settings),
    ...explanation.agents.flatMap(({ identity, fields }) => rows(`agent ${identity}`, fields)),
    ...explanation.rigs.flatMap((rig) => rows(`rig ${rig.name}`, rig.fields)),
    ...explanation.named_sessions.flatMap(({ identity, fields }) => rows(`session ${identity}`, fields)),
    ...explanation.providers.flatMap((provider) => rows(`provider ${provider.name}`, provider.fields)),
    ...explanation.services.flatMap((service) => rows(`service ${service.name}`, service.fields)),
  ]
}

const ISSUE_COLUMNS: readonly Column<ConfigCheckResult['issues'][number]>[] = [
  { header: 'SEVERITY', value: (issue) => issue.severity },
  { header: 'PLACE', value: ({ file, line, column }) => `${file}:${line}:${column}` },
  { header: 'KEY', value: (issue) => issue.key },
  { header: 'MESSAGE', value: (issue) => issue.message },
  { header: 'HINT', value: (issue) => issue.hint },
]

async function validate(context: Context, input: Input): Promise<number> {
  const given = await readGiven(context, input.texts('file'))
  using limit = context.within()
  const cityName = await context.needCity(undefined, limit.signal)
  const client = await context.client()
  const call = { params: { cityName }, signal: limit.signal }
  const { body, text } =
    given === undefined
      ? await client.call('validate-config', call)
      : await client.call('check-config', { ...call, body: { files: given } })
  await context.print.list({ items: body.issues, columns: ISSUE_COLUMNS, name: sentence, json: text })
  if (body.valid) await context.note('the configuration is valid')
  return body.valid ? EXIT.ok : EXIT.rejected
}

/** `--file city.toml=draft.toml`: contents of this machine's files for the city's. */
async function readGiven(context: Context, files: readonly string[]): Promise<Record<string, string> | undefined> {
  if (files.length === 0) return undefined
  const [{ readFile }, { resolve }] = await Promise.all([import('node:fs/promises'), import('node:path')])
  const entries = files.map(async (text) => {
    const [, path, local] = /^([^=]+)=(.+)$/.exec(text) ?? []
    if (path === undefined || local === undefined)
      throw usageError(`invalid --file "${text}": expected PATH=LOCAL_FILE`)
    try {
      return [path, await readFile(resolve(context.io.cwd, local), 'utf8')] as const
    } catch (error) {
      throw usageError(
        `cannot read ${local}: ${error instanceof Error && 'code' in error ? String(error.code) : 'unreadable'}`,
      )
    }
  })
  return Object.fromEntries(await Promise.all(entries))
}

const reload = starts('config.reload', ({ client, cityName, input, options }) =>
  client.call('reload-config', { params: { cityName }, body: input.on('soft') ? { soft: true } : {}, ...options }),
)

async function edit(context: Context, input: Input): Promise<number> {
  const path = input.text('path') ?? 'city.toml'
  const { stdin, stderr } = context.io
  const canAsk = stdin.isTerminal && stderr.isTerminal
  if (!canAsk && !input.on('yes')) throw usageError('this needs --yes where nobody can be asked')
  using limit = context.within()
  const cityName = await context.needCity(undefined, limit.signal)
  const stored = await fetchFile(context, cityName, path, limit.signal)
  const draft = await createDraft(context.io, path, stored.text)
  try {
    const text = await editUntilValid(context, { cityName, path, canAsk, stored, draft })
    if (text === undefined) {
      await draft.discard()
      await context.note('nothing changed')
      return EXIT.ok
    }
    await context.confirm(`Apply this to ${path} of ${cityName}?`, input.on('yes'))
    const reply = await put(context, { cityName, path, stored }, text, false)
    await draft.discard()
    await context.print.item({
      item: reply.body,
      columns: [
        { header: 'PATH', value: (file) => file.path },
        { header: 'REVISION', value: (file) => file.revision },
        { header: 'CONFIG_REVISION', value: (file) => file.config_revision },
      ],
      name: (file) => file.path,
      json: reply.text,
    })
    return EXIT.ok
  } catch (error) {
    await context.note(`your text is kept in ${draft.path}`)
    throw error
  }
}

interface Stored {
  readonly text: string
  /** Undefined for a file that is not there yet. */
  readonly revision: string | undefined
}
interface Target {
  readonly cityName: string
  readonly path: string
  readonly stored: Stored
}

async function fetchFile(context: Context, cityName: string, path: string, signal: AbortSignal): Promise<Stored> {
  const client = await context.client()
  try {
    const { body } = await client.call('get-config-file', { params: { cityName, path }, signal })
    return { text: body.text, revision: body.revision }
  } catch (error) {
    if (error instanceof ApiProblem && error.code === 'config-file-not-found') return { text: '', revision: undefined }
    throw error
  }
}

/** The text once the server finds nothing wrong with it; undefined where it is what it was. */
async function editUntilValid(
  context: Context,
  target: Target & { readonly canAsk: boolean; readonly draft: Draft },
): Promise<string | undefined> {
  for (;;) {
    const text = await target.draft.edit()
    if (text === target.stored.text) return undefined
    try {
      const { body } = await put(context, target, text, true)
      for (const warning of body.warnings) await context.note(`warning: ${sentence(warning)}`)
      for (const issue of body.rejected ?? []) await context.note(`still wrong: ${sentence(issue)}`)
      return text
    } catch (error) {
      if (!(error instanceof ApiProblem) || error.code !== 'invalid-config' || !target.canAsk) throw error
      const issues = error.errors.map(({ location, message }) => `  ${location}: ${message}\n`)
      await context.io.stderr.write(printable(`${error.detail}\n${issues.join('')}`))
      await context.io.stderr.write('Edit it again? [Y/n] ')
      const answer = (await context.io.stdin.readLine()).trim()
      if (/^n/i.test(answer)) throw error
    }
  }
}

async function put(context: Context, { cityName, path, stored }: Target, text: string, dryRun: boolean) {
  using limit = context.within()
  const client = await context.client()
  return client.call('put-config-file', {
    params: { cityName, path },
    query: { dry_run: dryRun ? true : undefined },
    body: { text },
    ...(stored.revision === undefined ? {} : { headers: { 'If-Match': `"${stored.revision}"` } }),
    signal: limit.signal,
  })
}

const file = (description: string) => ({ name: '[path]', description })

export const commands: readonly CommandSpec[] = [
  {
    path: ['config', 'get'],
    operations: ['get-config', 'get-config-file'],
    arguments: [file('A configuration file, relative to the city: prints its text.')],
    flags: [{ flags: '--raw', description: 'What each file says by itself.' }],
    examples: [
      { line: 'svcctl config get', does: 'what the city runs on' },
      { line: 'svcctl config get city.toml', does: 'the text of a file' },
      { line: 'svcctl config get --raw -o json', does: 'every file as JSON' },
    ],
    run: get,
  },
  {
    path: ['config', 'explain'],
    operations: ['explain-config'],
    arguments: [
      { name: '[key]', description: 'Only this key and what is below it, for example `workspace.provider`.' },
    ],
    flags: [
      { flags: '--agent <agent>' },
      { flags: '--rig <rig>', description: 'Name of a rig.' },
      { flags: '--provider <provider>', description: 'Name of a provider.' },
    ],
    examples: [
      { line: 'svcctl config explain workspace.provider', does: 'which line of which file sets it' },
      { line: 'svcctl config explain --agent core.worker', does: 'every field of an agent' },
    ],
    run: explain,
  },
  {
    path: ['config', 'validate'],
    operations: ['validate-config', 'check-config'],
    description: 'Exit code 6 when something is wrong.',
    flags: [
      {
        flags: '--file <path=local>',
        description: 'Check this local file in place of the one of the city.',
        repeatable: true,
      },
    ],
    examples: [
      { line: 'svcctl config validate', does: 'check the files on disk' },
      { line: 'svcctl config validate --file city.toml=draft.toml', does: 'check a draft' },
    ],
    run: validate,
  },
  {
    path: ['config', 'reload'],
    operations: ['reload-config'],
    flags: [
      { flags: '--soft', description: 'Running sessions take it as theirs, without a restart.' },
      ...waitFlags,
      keyFlag,
    ],
    examples: [{ line: 'svcctl config reload --wait', does: 'load the files now, end when they are in force' }],
    run: reload,
  },
  {
    path: ['config', 'defaults'],
    operations: ['get-config-defaults'],
    examples: [{ line: 'svcctl config defaults -o json', does: 'every default and every built-in provider' }],
    run: defaults,
  },
  {
    path: ['config', 'edit'],
    operations: ['put-config-file', 'get-config-file'],
    summary: 'Edit a configuration file in $EDITOR',
    description:
      'Fetches the file, opens $VISUAL or $EDITOR, shows what is wrong with the result, and asks before it is applied. A file that somebody else changed meanwhile is not overwritten: exit code 5.',
    arguments: [file('city.toml where absent; a new file is made.')],
    flags: [{ flags: '-y, --yes', description: 'Apply without asking.' }],
    examples: [
      { line: 'svcctl config edit', does: 'city.toml' },
      { line: 'svcctl config edit agents/mayor/agent.toml', does: 'an agent of the city' },
    ],
    run: edit,
  },
]
