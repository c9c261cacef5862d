/** `svcctl pack …`: what a city imports. */
import type { CachedPack, Pack, PackAddRequest, PackIssue, PackPruneRequest, PackStatus } from '../../contract/packs.ts'
import { waitFlags } from '../base/accepted.ts'
import { type CommandSpec, type FlagSpec, type Input, keyFlag, yesFlag } from '../base/command.ts'
import type { Context } from '../base/context.ts'
import { EXIT, usageError } from '../base/failure.ts'
import { bodyOf } from '../base/fields.ts'
import {
  type AnswerOf,
  allColumns,
  type InCity,
  inCity,
  printsItem,
  printsList,
  starts,
  type View,
} from '../base/in-city.ts'
import type { Column } from '../base/output.ts'
import { size } from '../base/progress.ts'
import { offerTrust, packOf, question, sayUntrusted, showRuns, trust } from '../views/pack-trust.ts'
import { whyText } from '../views/pack-why.ts'

const COLUMNS: readonly Column<Pack>[] = [
  { header: 'NAME', value: (pack) => pack.name },
  { header: 'SCOPE', value: (pack) => pack.scope },
  { header: 'KIND', value: (pack) => pack.kind },
  { header: 'STATE', value: (pack) => pack.state, kind: 'state' },
  { header: 'TRUSTED', value: (pack) => (pack.trusted ? 'yes' : 'no') },
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
const STATUS_COLUMNS: readonly Column<PackStatus>[] = [
  { header: 'NAME', value: ({ name }) => name },
  { header: 'SCOPE', value: ({ scope }) => scope },
  { header: 'STATE', value: ({ state }) => state, kind: 'state' },
  { header: 'TRUSTED', value: ({ trusted }) => (trusted ? 'yes' : 'no') },
  { header: 'VERSION', value: ({ version }) => version },
  { header: 'PINNED', value: ({ pin }) => pin?.version },
  { header: 'UPGRADE', value: ({ upgrade }) => upgrade?.version },
  { header: 'NEWEST', value: ({ newest }) => newest?.version },
  { header: 'SIZE', value: ({ bytes }) => (bytes === undefined ? undefined : size(bytes)) },
  { header: 'SOURCE', value: ({ source }) => source },
  { header: 'COMMIT', value: ({ pin }) => pin?.commit, wide: true },
  { header: 'FILE', value: ({ file, line }) => `${file}:${line}`, wide: true },
]
const CACHED: View<CachedPack> = {
  columns: [
    { header: 'REPOSITORY', value: ({ repository, id }) => repository ?? id },
    { header: 'COMMIT', value: ({ commit }) => commit?.slice(0, 12) },
    { header: 'SIZE', value: ({ bytes }) => size(bytes) },
    { header: 'LAST_USED', value: ({ last_used_at }) => last_used_at, kind: 'time' },
    { header: 'CITIES', value: ({ cities }) => cities.join(', ') },
    { header: 'ID', value: ({ id }) => id, wide: true },
  ],
  name: ({ id }) => id,
}
const PACK: View<Pack> = { columns: COLUMNS, name: ({ name }) => name }
const DELETED: View<AnswerOf<'remove-pack'>> = {
  columns: [
    { header: 'STATUS', value: (deleted) => deleted.status },
    { header: 'NAME', value: (deleted) => deleted.name },
    { header: 'SCOPE', value: (deleted) => deleted.scope },
    { header: 'SOURCE', value: (deleted) => deleted.source },
  ],
  name: ({ name }) => name,
}

const itemParams = ({ cityName, input }: InCity) => ({ cityName, name: input.required('name') })
const scopeQuery = ({ input }: InCity) => ({ scope: input.text('scope') })

const list = printsList(PACK, ({ client, cityName, options }) =>
  client.call('list-packs', { params: { cityName }, ...options }),
)

const get = printsItem(PACK, (city) =>
  city.client.call('get-pack', { params: itemParams(city), query: scopeQuery(city), ...city.options }),
)

const remove = printsItem(DELETED, (city) =>
  city.client.call('remove-pack', { params: itemParams(city), query: scopeQuery(city), ...city.options }),
)

const starting = starts('pack.add', ({ client, cityName, input, options }) =>
  client.call('add-pack', {
    params: { cityName },
    body: bodyOf<PackAddRequest>({
      source: input.required('source'),
      name: input.text('name'),
      version: input.text('version'),
      scope: input.text('scope'),
      trust: input.on('trust') ? true : undefined,
    }),
    ...options,
  }),
)

/** What was fetched is asked about once it is there. */
const asksTrust =
  (run: CommandSpec['run']): CommandSpec['run'] =>
  async (context, input) => {
    const code = await run(context, input)
    if (code !== EXIT.ok || input.on('trust')) return code
    const waited = input.choice('wait') ?? context.io.stdout.isTerminal
    if (waited) await offerTrust(context, input)
    else if (!/^(?:builtin:|[./])/.test(input.text('source') ?? '')) await sayUntrusted(context)
    return code
  }

async function trustOne(context: Context, input: Input): Promise<number> {
  const item = await packOf(context, input, input.required('name'), input.text('scope'))
  const seen = input.text('commit')
  if (seen === undefined && !item.trusted) {
    await showRuns(context, item)
    await context.confirm(question(item), input.on('yes'))
  }
  const commit = seen ?? item.pin?.commit
  if (commit === undefined && item.kind === 'git')
    throw usageError(`${item.name} is not installed`, 'run `svcctl pack install`')
  const { body, text } = await trust(context, input, item, commit ?? NO_COMMIT)
  await context.print.item({ item: body, ...allColumns(PACK), json: text })
  return EXIT.ok
}

/** What is not from git has none, and is trusted. */
const NO_COMMIT = '0'.repeat(40)

const add = asksTrust(starting)

const install = starts('pack.install', ({ client, cityName, options }) =>
  client.call('install-packs', { params: { cityName }, ...options }),
)

const upgrading = starts('pack.upgrade', ({ client, cityName, input, options }) => {
  const names = input.texts('names')
  const body = names.length === 0 ? {} : { names: [...names] }
  return client.call('upgrade-packs', { params: { cityName }, body, ...options })
})

const upgrade = asksTrust(upgrading)

async function check(context: Context, input: Input): Promise<number> {
  const { body, text } = await inCity(context, input, ({ client, cityName, options }) =>
    client.call('check-packs', { params: { cityName }, ...options }),
  )
  await context.print.list({ items: body.issues, columns: ISSUE_COLUMNS, name: ({ code }) => code, json: text })
  return body.ok ? EXIT.ok : EXIT.operationFailed
}

async function status(context: Context, input: Input): Promise<number> {
  const body = { remote: input.on('remote') }
  const { body: found, text } = await inCity(context, input, ({ client, cityName, options }) =>
    client.call('check-packs', { params: { cityName }, body, ...options }),
  )
  await context.print.list({ items: found.packs, columns: STATUS_COLUMNS, name: ({ name }) => name, json: text })
  for (const { name, remote_error } of found.packs)
    if (remote_error !== undefined) await context.note(`warning: ${name}: ${remote_error}`)
  const errors = found.issues.filter(({ severity }) => severity === 'error').length
  if (errors > 0) await context.note(`${errors} of its packs cannot be used as they are: see \`svcctl pack check\``)
  return EXIT.ok
}

async function why(context: Context, input: Input): Promise<number> {
  const { body, text } = await inCity(context, input, (city) =>
    city.client.call('explain-pack', { params: itemParams(city), ...city.options }),
  )
  await context.print.text({ text: whyText(body), json: text })
  return EXIT.ok
}

async function cache(context: Context): Promise<number> {
  using limit = context.within()
  const client = await context.client()
  const { body, text } = await client.call('list-pack-cache', { signal: limit.signal })
  await context.print.list({ items: body.items, ...CACHED, json: text })
  for (const failure of body.partial_errors ?? []) await context.note(`warning: ${failure}`)
  if (context.print.isForPeople) await context.note(`${body.total} checkouts, ${size(body.bytes)}`)
  return EXIT.ok
}

async function prune(context: Context, input: Input): Promise<number> {
  using limit = context.within()
  const client = await context.client()
  const most = input.text('maxBytes')
  if (most !== undefined && !/^\d{1,15}$/.test(most))
    throw usageError(`invalid --max-bytes "${most}": expected a number of bytes`)
  const body = bodyOf<PackPruneRequest>({
    dry_run: input.on('dryRun') ? true : undefined,
    max_age: input.text('maxAge'),
    max_bytes: most === undefined ? undefined : Number(most),
  })
  const { body: done, text } = await client.call('prune-pack-cache', { body, signal: limit.signal })
  await context.print.list({ items: done.removed, ...CACHED, json: text })
  const went = done.dry_run ? 'would go' : 'are gone'
  await context.note(`${done.removed.length} checkouts ${went} (${size(done.removed_bytes)}), ${done.kept} stay`)
  return EXIT.ok
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
      { flags: '--trust', description: 'Let it start what it brings, unseen.' },
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
    path: ['pack', 'trust'],
    operations: ['trust-pack'],
    arguments: [pack],
    flags: [
      scopeFlag,
      { flags: '--commit <commit>', description: 'The commit that was looked at; asks, where absent.' },
      yesFlag,
    ],
    examples: [{ line: 'svcctl pack trust review', does: 'shows what it would run, and asks' }],
    run: trustOne,
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
  {
    path: ['pack', 'status'],
    operations: ['check-packs'],
    summary: 'Every import, and what has become of it',
    flags: [{ flags: '--remote', description: 'Asks the repositories for newer releases.' }],
    examples: [
      { line: 'svcctl pack status', does: 'pinned, there, trusted, changed on disk, how large' },
      { line: 'svcctl pack status --remote', does: 'what an upgrade would bring' },
    ],
    run: status,
  },
  {
    path: ['pack', 'why'],
    operations: ['explain-pack'],
    arguments: [{ name: '<name>', description: 'Of an import at any depth, or of the pack itself.' }],
    examples: [{ line: 'svcctl pack why review', does: 'which import in which file leads to it, and what it brings' }],
    run: why,
  },
  {
    path: ['pack', 'cache'],
    operations: ['list-pack-cache'],
    isFleet: true,
    examples: [{ line: 'svcctl pack cache', does: 'what lies on this machine, how large, and who needs it' }],
    run: cache,
  },
  {
    path: ['pack', 'prune'],
    operations: ['prune-pack-cache'],
    isFleet: true,
    flags: [{ flags: '--dry-run' }, { flags: '--max-age <duration>' }, { flags: '--max-bytes <bytes>' }],
    examples: [
      { line: 'svcctl pack prune --dry-run', does: 'what no city needs and nobody used for a week' },
      { line: 'svcctl pack prune --max-age 0s', does: 'everything that no city needs' },
    ],
    run: prune,
  },
]
