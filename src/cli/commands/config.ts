/** `svcctl config …`. */

import { ApiProblem } from '../../client/problems.ts'
import type { ConfigCheckResult, ConfigExplanation, EffectiveConfigBody } from '../../contract/config.ts'
import type { CommandSpec, Input } from '../base/command.ts'
import type { Context } from '../base/context.ts'
import { createDraft, type Draft } from '../base/editor.ts'
import { EXIT, Failure, printable, usageError } from '../base/failure.ts'
import { readNamedText } from '../base/named-files.ts'
import type { Cell } from '../base/output.ts'
import type { AnswerOf, Call } from '../framework/declaration.ts'
import { commandsOf } from '../framework/declare.ts'
import { printItem } from '../framework/run.ts'
import { view } from '../print/view.ts'
import { CONFIG as TABLE } from '../tables/config.ts'

const EFFECTIVE = view<EffectiveConfigBody>()(
  'workspace.name workspace.prefix workspace.provider workspace.suspended AGENTS RIGS PROVIDERS PATCHES revision loaded_at REFUSED',
  {
    as: {
      AGENTS: ({ agents }) => list(agents.map(({ identity }) => identity)),
      RIGS: ({ rigs }) => list(rigs.map((rig) => rig.name)),
      PROVIDERS: ({ providers }) => list(Object.keys(providers)),
      PATCHES: ({ patches }) =>
        `${patches.agent_count} agents, ${patches.rig_count} rigs, ${patches.provider_count} providers`,
      REFUSED: ({ last_error: error }) => (error === undefined ? undefined : list(error.issues.map(sentence))),
    },
  },
)

const list = (names: readonly string[]): string => (names.length === 0 ? 'none' : names.join(', '))

interface Issue {
  readonly file: string
  readonly line: number
  readonly column: number
  readonly message: string
  readonly hint?: string
}
const sentence = ({ file, line, column, message, hint }: Issue): string =>
  `${file}:${line}:${column}: ${message}${hint === undefined ? '' : ` (${hint})`}`

async function get({ context, input, client, cityName, options, send }: Call<'get-config'>): Promise<number> {
  const path = input.text('path')
  if (path !== undefined) {
    const { body, text } = await client.call('get-config-file', { params: { cityName, path }, ...options })
    await context.print.text({ text: body.text, json: text })
    return EXIT.ok
  }
  const { body, text } = await send(input.on('raw') ? { view: 'raw' } : {})
  if (body.view !== 'raw') return printItem(context, EFFECTIVE, { body, text })
  await context.print.list({ items: body.files, ...RAW, json: text })
  return EXIT.ok
}

const RAW = view<{
  readonly path: string
  readonly kind: string
  readonly revision: string
  readonly error?: string
}>()('path kind revision error')

interface Row {
  readonly item: string
  readonly key: string
  readonly value: ConfigExplanation['settings'][string]
}

const EXPLAINED = view<Row>()('item key VALUE FROM value.layer', {
  as: {
    VALUE: ({ value }) => cellOf(value.value),
    FROM: ({ value }) =>
      value.file === null ? undefined : `${value.file}${value.line === null ? '' : `:${value.line}`}`,
  },
  name: ({ item, key }) => `${item} ${key}`,
})

function cellOf(value: unknown): Cell {
  return typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean'
    ? value
    : JSON.stringify(value)
}

async function explain({ context, input, said, send }: Call<'explain-config'>): Promise<number> {
  const { body, text } = await send()
  const prefix = input.text('key')
  const isAll = input.on('all') || said.provider !== undefined
  const shown = prefix === undefined ? body : onlyKey(body, prefix)
  const items = rowsOf(prefix === undefined && !isAll ? withoutUnused(body) : shown)
  if (prefix !== undefined && items.length === 0) throw new Failure(EXIT.notFound, `nothing has a key ${prefix}`)
  await context.print.list({
    items,
    ...EXPLAINED,
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

const ISSUE = view<ConfigCheckResult['issues'][number]>()('severity PLACE key message hint', {
  as: { PLACE: ({ file, line, column }) => `${file}:${line}:${column}` },
  name: sentence,
})

async function validate(call: Call<'validate-config'>): Promise<number> {
  const { context, input, client, cityName, options, send } = call
  const files = await readGiven(context, input.texts('file'))
  const { body, text } =
    files === undefined
      ? await send()
      : await client.call('check-config', { params: { cityName }, body: { files }, ...options })
  await context.print.list({ items: body.issues, ...ISSUE, json: text })
  if (body.valid) await context.note('the configuration is valid')
  return body.valid ? EXIT.ok : EXIT.rejected
}

/** `--file city.toml=draft.toml`: contents of this machine's files for the city's. */
async function readGiven(context: Context, files: readonly string[]): Promise<Record<string, string> | undefined> {
  if (files.length === 0) return undefined
  const entries = files.map(async (text) => {
    const [, path, local] = /^([^=]+)=(.+)$/.exec(text) ?? []
    if (path === undefined || local === undefined)
      throw usageError(`invalid --file "${text}": expected PATH=LOCAL_FILE`)
    return [path, await readNamedText(context.io, local)] as const
  })
  return Object.fromEntries(await Promise.all(entries))
}

const WRITTEN = view<AnswerOf<'put-config-file'>>()('path revision config_revision')

async function edit(context: Context, input: Input): Promise<number> {
  const path = input.text('path') ?? 'city.toml'
  await context.print.require(WRITTEN)
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
      ...WRITTEN,
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

const command = commandsOf(TABLE)

export const commands: readonly CommandSpec[] = [
  command('config get', 'get-config', {
    also: ['get-config-file'],
    operands: [
      { name: '[path]', description: 'A configuration file, relative to the city: prints its text.', field: 'path' },
    ],
    leaves: { view: '--raw says it' },
    more: [{ flags: '--raw', description: 'What each file says by itself.' }],
    run: get,
    examples: {
      'svcctl config get': 'what the city runs on',
      'svcctl config get city.toml': 'the text of a file',
      'svcctl config get --raw -o json': 'every file as JSON',
    },
  }),
  command('config explain', 'explain-config', {
    operands: [{ name: '[key]', description: 'Only this key and what is below it, for example `workspace.provider`.' }],
    says: { rig: 'Name of a rig.', provider: 'Name of a provider.' },
    completes: { agent: 'agent', provider: 'provider' },
    more: [{ flags: '--all', description: 'Built-in providers that no agent runs on, too.' }],
    run: explain,
    examples: {
      'svcctl config explain workspace.provider': 'which line of which file sets it',
      'svcctl config explain --agent core.worker': 'every field of an agent',
    },
  }),
  command('config validate', 'validate-config', {
    also: ['check-config'],
    description: 'Exit code 6 when something is wrong.',
    more: [
      {
        flags: '--file <path=local>',
        field: 'files',
        description: 'Check this local file in place of the one of the city.',
        repeatable: true,
      },
    ],
    run: validate,
    examples: {
      'svcctl config validate': 'check the files on disk',
      'svcctl config validate --file city.toml=draft.toml': 'check a draft',
    },
  }),
  command('config reload', 'reload-config', {
    says: { soft: 'Running sessions take it as theirs, without a restart.' },
    examples: { 'svcctl config reload --wait': 'load the files now, end when they are in force' },
  }),
  command('config defaults', 'get-config-defaults', {
    view: EFFECTIVE,
    examples: { 'svcctl config defaults -o json': 'every default and every built-in provider' },
  }),
  {
    path: ['config', 'edit'],
    operations: ['put-config-file', 'get-config-file'],
    summary: 'Edit a configuration file in $EDITOR',
    description:
      'Fetches the file, opens $VISUAL or $EDITOR, shows what is wrong with the result, and asks before it is applied. A file that somebody else changed meanwhile is not overwritten: exit code 5.',
    arguments: [{ name: '[path]', description: 'The file; a new one is made (default: city.toml).' }],
    flags: [{ flags: '-y, --yes', description: 'Apply without asking.' }],
    examples: [
      { line: 'svcctl config edit', does: 'city.toml' },
      { line: 'svcctl config edit agents/mayor/agent.toml', does: 'an agent of the city' },
    ],
    run: edit,
  },
]
