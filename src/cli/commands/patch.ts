/** `svcctl patch …`: a city's edits of agents, rigs and providers that another layer defines. */
import type { Client } from '../../client/client.ts'
import type { PatchBody } from '../../contract/base/merge-patch.ts'
import type { PatchFields, PatchItem } from '../../contract/patches.ts'
import type { CommandSpec, Input } from '../base/command.ts'
import type { Context } from '../base/context.ts'
import { EXIT, usageError } from '../base/failure.ts'
import { bodyOf, ifMatchFlag, preconditionOf, readFields, setFlags, unsetFlag } from '../base/fields.ts'
import type { Column } from '../base/output.ts'

const KINDS = ['agent', 'rig', 'provider'] as const
type Kind = (typeof KINDS)[number]

interface Row {
  readonly kind: Kind
  readonly patch: PatchItem
}

const titleOf = ({ name, dir }: { readonly name: string; readonly dir?: string }): string =>
  dir === undefined || dir === '' ? name : `${dir}/${name}`
const fieldsOf = ({ name: _1, dir: _2, file: _3, line: _4, revision: _5, ...fields }: PatchItem) => fields

const COLUMNS: readonly Column<Row>[] = [
  { header: 'KIND', value: ({ kind }) => kind },
  { header: 'TARGET', value: ({ patch }) => titleOf(patch) },
  { header: 'FIELDS', value: ({ patch }) => Object.keys(fieldsOf(patch)).join(', ') },
  { header: 'PLACE', value: ({ patch }) => `${patch.file}:${patch.line}` },
  { header: 'REVISION', value: ({ patch }) => patch.revision, wide: true },
]

async function list(context: Context, input: Input): Promise<number> {
  using limit = context.within()
  const cityName = await context.needCity(undefined, limit.signal)
  const client = await context.client()
  const kinds = KINDS.filter((kind) => input.text('kind') === undefined || input.text('kind') === kind)
  const lists = await Promise.all(kinds.map((kind) => listOf(client, cityName, kind, limit.signal)))
  const items = lists.flatMap(({ body }, index) =>
    body.items.map((patch) => ({ kind: kinds[index] ?? 'agent', patch })),
  )
  const only = lists.length === 1 ? lists[0]?.text : undefined
  const json =
    only ?? JSON.stringify(Object.fromEntries(lists.map(({ body }, index) => [`${kinds[index]}s`, body.items])))
  await context.print.list({ items, columns: COLUMNS, name: ({ patch }) => titleOf(patch), json })
  return EXIT.ok
}

function listOf(client: Client, cityName: string, kind: Kind, signal: AbortSignal) {
  const call = { params: { cityName }, signal }
  if (kind === 'agent') return client.call('list-agent-patches', call)
  return kind === 'rig' ? client.call('list-rig-patches', call) : client.call('list-provider-patches', call)
}

/** The city, what is patched, and who to ask. */
async function targetOf(context: Context, input: Input, signal: AbortSignal) {
  const kind = KINDS.find((known) => known === input.text('kind'))
  if (kind === undefined) throw usageError(`the kind is one of ${KINDS.join(', ')}`)
  const target = input.required('target')
  return { kind, name: target, cityName: await context.needCity(undefined, signal), client: await context.client() }
}

async function get(context: Context, input: Input): Promise<number> {
  using limit = context.within()
  const { signal } = limit
  const { kind, name, cityName, client } = await targetOf(context, input, signal)
  const ask = () => {
    if (kind === 'rig') return client.call('get-rig-patch', { params: { cityName, name }, signal })
    if (kind === 'provider') return client.call('get-provider-patch', { params: { cityName, name }, signal })
    return client.call('get-agent-patch', { params: { cityName, base: name }, signal })
  }
  const { body, text } = await ask()
  return show(context, body, text)
}

async function put(context: Context, input: Input): Promise<number> {
  const fields = await readFields(context, input)
  using limit = context.within()
  const target = await targetOf(context, input, limit.signal)
  const call = { headers: preconditionOf(input), signal: limit.signal }
  const merging = input.on('merge') || input.texts('unset').length > 0
  const { body, text } = await (merging
    ? mergeOf(target, bodyOf(fields), call)
    : replaceOf(target, bodyOf(fields), call))
  return show(context, body, text)
}

type Target = Awaited<ReturnType<typeof targetOf>>
interface Call {
  readonly headers: Readonly<Record<string, string>>
  readonly signal: AbortSignal
}

function replaceOf({ kind, name, cityName, client }: Target, body: Partial<PatchFields>, call: Call) {
  if (kind === 'rig') return client.call('replace-rig-patch', { params: { cityName, name }, body, ...call })
  if (kind === 'provider') return client.call('replace-provider-patch', { params: { cityName, name }, body, ...call })
  return client.call('replace-agent-patch', { params: { cityName, base: name }, body, ...call })
}

function mergeOf({ kind, name, cityName, client }: Target, body: PatchBody, call: Call) {
  if (kind === 'rig') return client.call('merge-rig-patch', { params: { cityName, name }, body, ...call })
  if (kind === 'provider') return client.call('merge-provider-patch', { params: { cityName, name }, body, ...call })
  return client.call('merge-agent-patch', { params: { cityName, base: name }, body, ...call })
}

async function remove(context: Context, input: Input): Promise<number> {
  using limit = context.within()
  const { kind, name, cityName, client } = await targetOf(context, input, limit.signal)
  const call = { headers: preconditionOf(input), signal: limit.signal }
  const ask = () => {
    if (kind === 'rig') return client.call('delete-rig-patch', { params: { cityName, name }, ...call })
    if (kind === 'provider') return client.call('delete-provider-patch', { params: { cityName, name }, ...call })
    return client.call('delete-agent-patch', { params: { cityName, base: name }, ...call })
  }
  const { body, text } = await ask()
  await context.print.item({
    item: body,
    columns: [
      { header: 'STATUS', value: (deleted) => deleted.status },
      { header: 'TARGET', value: titleOf },
      { header: 'REVISION', value: (deleted) => deleted.revision },
    ],
    name: titleOf,
    json: text,
  })
  return EXIT.ok
}

async function show(context: Context, item: PatchItem, json: string): Promise<number> {
  const fields = Object.entries(fieldsOf(item))
  const columns: readonly Column<PatchItem>[] = [
    { header: 'TARGET', value: titleOf },
    ...fields.map(([key, value]) => ({
      header: key.toUpperCase(),
      value: () => (typeof value === 'string' ? value : JSON.stringify(value)),
    })),
    { header: 'PLACE', value: ({ file, line }) => `${file}:${line}` },
    { header: 'REVISION', value: (patch) => patch.revision },
  ]
  await context.print.item({ item, columns, name: titleOf, json })
  return EXIT.ok
}

const what = [
  { name: '<kind>', description: 'What is patched.', choices: KINDS },
  { name: '<target>', description: 'Its name; of an agent [RIG/][BINDING.]NAME.' },
] as const

export const commands: readonly CommandSpec[] = [
  {
    path: ['patch', 'list'],
    operations: ['list-agent-patches', 'list-rig-patches', 'list-provider-patches'],
    summary: 'List patches',
    arguments: [{ name: '[kind]', description: 'Only of these; all where absent.', choices: KINDS }],
    examples: [{ line: 'svcctl patch list', does: 'everything the city patches' }],
    run: list,
  },
  {
    path: ['patch', 'get'],
    operations: ['get-agent-patch', 'get-rig-patch', 'get-provider-patch'],
    summary: 'Get a patch',
    arguments: what,
    examples: [{ line: 'svcctl patch get agent shop/core.worker', does: 'the patch of an agent of a rig' }],
    run: get,
  },
  {
    path: ['patch', 'put'],
    operations: [
      'replace-agent-patch',
      'replace-rig-patch',
      'replace-provider-patch',
      'merge-agent-patch',
      'merge-rig-patch',
      'merge-provider-patch',
    ],
    summary: 'Create, replace or change a patch',
    description: 'Without --merge or --unset the patch says what is given here, and nothing else.',
    arguments: what,
    flags: [
      ...setFlags,
      { flags: '--merge', description: 'Change the fields that are given, keep the others.' },
      { ...unsetFlag, description: 'A field to drop from the patch; keeps the others.' },
      ifMatchFlag,
    ],
    examples: [
      { line: 'svcctl patch put agent core.worker --set nudge="go on"', does: 'create or replace one' },
      { line: 'svcctl patch put rig shop --merge --set formula_vars.team=a', does: 'change one field of one' },
    ],
    run: put,
  },
  {
    path: ['patch', 'delete'],
    operations: ['delete-agent-patch', 'delete-rig-patch', 'delete-provider-patch'],
    summary: 'Remove a patch',
    arguments: what,
    flags: [ifMatchFlag],
    examples: [{ line: 'svcctl patch delete provider shell', does: 'the provider is as it was' }],
    run: remove,
  },
]
