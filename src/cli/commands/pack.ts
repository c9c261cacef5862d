/** `svcctl pack …`: what a city imports. */
import type { Pack, PackIssue } from '../../contract/packs.ts'
import { settle, waitFlags } from '../accepted.ts'
import { type CommandSpec, type FlagSpec, type Input, keyFlag } from '../command.ts'
import type { Context } from '../context.ts'
import { EXIT } from '../failure.ts'
import type { Column } from '../output.ts'

const COLUMNS: readonly Column<Pack>[] = [
  { header: 'NAME', value: (pack) => pack.name },
  { header: 'SCOPE', value: (pack) => pack.scope },
  { header: 'KIND', value: (pack) => pack.kind },
  { header: 'STATE', value: (pack) => pack.state, kind: 'state' },
  { header: 'VERSION', value: (pack) => pack.version },
  { header: 'PINNED', value: (pack) => pack.pin?.version },
  { header: 'SOURCE', value: (pack) => pack.source },
  { header: 'COMMIT', value: (pack) => pack.pin?.commit, wide: true },
  { header: 'CONTENT_HASH', value: (pack) => pack.pin?.content_hash, wide: true },
  { header: 'FETCHED', value: (pack) => pack.pin?.fetched, kind: 'time', wide: true },
  { header: 'FILE', value: (pack) => pack.file, wide: true },
  { header: 'AGENTS', value: (pack) => pack.provides.agents.join(', '), wide: true },
  { header: 'REVISION', value: (pack) => pack.revision, wide: true },
]
const ISSUE_COLUMNS: readonly Column<PackIssue>[] = [
  { header: 'SEVERITY', value: (issue) => issue.severity, kind: 'state' },
  { header: 'CODE', value: (issue) => issue.code },
  { header: 'NAME', value: (issue) => issue.name },
  { header: 'SCOPE', value: (issue) => issue.scope },
  { header: 'MESSAGE', value: (issue) => issue.message },
  { header: 'HINT', value: (issue) => issue.hint },
]
const name = (pack: { readonly name: string }): string => pack.name

async function list(context: Context): Promise<number> {
  using limit = context.within()
  const cityName = await context.needCity(undefined, limit.signal)
  const client = await context.client()
  const { body, text } = await client.call('list-packs', { params: { cityName }, signal: limit.signal })
  await context.print.list({ items: body.items, columns: COLUMNS, name, json: text })
  for (const failure of body.partial_errors ?? []) await context.note(`warning: ${failure}`)
  return EXIT.ok
}

async function get(context: Context, input: Input): Promise<number> {
  using limit = context.within()
  const cityName = await context.needCity(undefined, limit.signal)
  const client = await context.client()
  const { body, text } = await client.call('get-pack', {
    params: { cityName, name: input.required('name') },
    query: { scope: input.text('scope') },
    signal: limit.signal,
  })
  await context.print.item({
    item: body,
    columns: COLUMNS.map((column) => ({ ...column, wide: false })),
    name,
    json: text,
  })
  return EXIT.ok
}

async function add(context: Context, input: Input): Promise<number> {
  using limit = context.within()
  const cityName = await context.needCity(undefined, limit.signal)
  const client = await context.client()
  const [binding, version, scope] = [input.text('name'), input.text('version'), input.text('scope')]
  const { body, text } = await client.call('add-pack', {
    params: { cityName },
    body: {
      source: input.required('source'),
      ...(binding === undefined ? {} : { name: binding }),
      ...(version === undefined ? {} : { version }),
      ...(scope === undefined ? {} : { scope }),
    },
    idempotencyKey: input.text('idempotencyKey'),
    signal: limit.signal,
  })
  return settle(context, input, 'pack.add', { ...body, city: cityName }, text)
}

async function remove(context: Context, input: Input): Promise<number> {
  using limit = context.within()
  const cityName = await context.needCity(undefined, limit.signal)
  const client = await context.client()
  const { body, text } = await client.call('remove-pack', {
    params: { cityName, name: input.required('name') },
    query: { scope: input.text('scope') },
    signal: limit.signal,
  })
  await context.print.item({
    item: body,
    columns: [
      { header: 'STATUS', value: (deleted) => deleted.status },
      { header: 'NAME', value: name },
      { header: 'SCOPE', value: (deleted) => deleted.scope },
      { header: 'SOURCE', value: (deleted) => deleted.source },
    ],
    name,
    json: text,
  })
  return EXIT.ok
}

async function install(context: Context, input: Input): Promise<number> {
  using limit = context.within()
  const cityName = await context.needCity(undefined, limit.signal)
  const client = await context.client()
  const { body, text } = await client.call('install-packs', {
    params: { cityName },
    idempotencyKey: input.text('idempotencyKey'),
    signal: limit.signal,
  })
  return settle(context, input, 'pack.install', { ...body, city: cityName }, text)
}

async function upgrade(context: Context, input: Input): Promise<number> {
  using limit = context.within()
  const cityName = await context.needCity(undefined, limit.signal)
  const client = await context.client()
  const names = input.texts('names')
  const { body, text } = await client.call('upgrade-packs', {
    params: { cityName },
    body: names.length === 0 ? {} : { names: [...names] },
    idempotencyKey: input.text('idempotencyKey'),
    signal: limit.signal,
  })
  return settle(context, input, 'pack.upgrade', { ...body, city: cityName }, text)
}

async function check(context: Context): Promise<number> {
  using limit = context.within()
  const cityName = await context.needCity(undefined, limit.signal)
  const client = await context.client()
  const { body, text } = await client.call('check-packs', { params: { cityName }, signal: limit.signal })
  await context.print.list({ items: body.issues, columns: ISSUE_COLUMNS, name: ({ code }) => code, json: text })
  return body.ok ? EXIT.ok : EXIT.operationFailed
}

const pack = { name: '<name>', description: 'Name of the import.' } as const
const scopeFlag: FlagSpec = {
  flags: '--scope <scope>',
  description: '`city`, `rig:<name>` or `default-rig`; the city where absent.',
}

export const commands: readonly CommandSpec[] = [
  {
    path: ['pack', 'list'],
    operations: ['list-packs'],
    examples: [{ line: 'svcctl pack list', does: 'what the city of this directory imports' }],
    run: list,
  },
  {
    path: ['pack', 'get'],
    operations: ['get-pack'],
    arguments: [pack],
    flags: [scopeFlag],
    examples: [{ line: 'svcctl pack get core', does: 'where it is from, and what it brings' }],
    run: get,
  },
  {
    path: ['pack', 'add'],
    operations: ['add-pack'],
    arguments: [{ name: '<source>' }],
    flags: [
      { flags: '--name <name>', description: 'What to call it; from the source where absent.' },
      { flags: '--version <version>', description: '`^1.4`, `~1.4`, `>=1,<2`, an exact one or `sha:<commit>`.' },
      scopeFlag,
      ...waitFlags,
      keyFlag,
    ],
    examples: [
      { line: 'svcctl pack add ./packs/review', does: 'a pack of this city' },
      { line: 'svcctl pack add https://git.example.org/teams/packs.git//review', does: 'the highest release from git' },
    ],
    run: add,
  },
  {
    path: ['pack', 'remove'],
    operations: ['remove-pack'],
    arguments: [pack],
    flags: [scopeFlag],
    examples: [{ line: 'svcctl pack remove review', does: 'unless something still names what it brings' }],
    run: remove,
  },
  {
    path: ['pack', 'install'],
    operations: ['install-packs'],
    flags: [...waitFlags, keyFlag],
    examples: [{ line: 'svcctl pack install --wait', does: 'pin and fetch what is not there' }],
    run: install,
  },
  {
    path: ['pack', 'upgrade'],
    operations: ['upgrade-packs'],
    arguments: [{ name: '[names...]', description: 'Imports to upgrade; all where absent.' }],
    flags: [...waitFlags, keyFlag],
    examples: [{ line: 'svcctl pack upgrade review', does: 'the highest release that its version allows' }],
    run: upgrade,
  },
  {
    path: ['pack', 'check'],
    operations: ['check-packs'],
    description: 'Exit code 9 when something is wrong.',
    examples: [{ line: 'svcctl pack check', does: 'compare imports, lock and cache' }],
    run: check,
  },
]
