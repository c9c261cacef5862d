/** `svcctl patch …`: a city's edits of agents, rigs and providers that another layer defines. */

import type { Reply } from '../../client/client.ts'
import type { PatchItem } from '../../contract/patches.ts'
import { type CommandSpec, type FlagSpec, type Input, watchFlag } from '../base/command.ts'
import type { Context } from '../base/context.ts'
import { listCities } from '../base/discovery.ts'
import { EXIT } from '../base/failure.ts'
import type { AnswerOf, Call } from '../framework/declaration.ts'
import { commandsOf } from '../framework/declare.ts'
import { askEach } from '../framework/each-city.ts'
import { unsetFlag } from '../framework/fields.ts'
import { placeOf } from '../print/columns.ts'
import { view } from '../print/view.ts'
import { PATCHES as TABLE } from '../tables/patches.ts'

const KINDS = ['agent', 'rig', 'provider'] as const
type Kind = (typeof KINDS)[number]

const titleOf = ({ name, dir }: { readonly name: string; readonly dir?: string }): string =>
  dir === undefined || dir === '' ? name : `${dir}/${name}`
const fieldsOf = ({ name: _1, dir: _2, file: _3, line: _4, revision: _5, ...fields }: PatchItem) => fields

type Row = PatchItem & { readonly kind: Kind; readonly city: string }
const ROWS = view<Row>()('kind TARGET FIELDS PLACE', {
  wide: 'revision',
  as: {
    TARGET: titleOf,
    FIELDS: ({ kind: _1, city: _2, ...patch }) => Object.keys(fieldsOf(patch)).join(', '),
    PLACE: placeOf,
  },
  name: titleOf,
})
const DELETED = view<AnswerOf<'delete-rig-patch'>>()('status TARGET revision', {
  as: { TARGET: titleOf },
  name: titleOf,
})

/** Three lists as one; as JSON by kind, or with `-A` as items that say their city. */
async function list(context: Context, input: Input): Promise<number> {
  using limit = context.within()
  const { signal } = limit
  const client = await context.client()
  const kinds = KINDS.filter((kind) => (input.text('kind') ?? kind) === kind)
  const ofCity = async (cityName: string) => {
    const ask = (kind: Kind) => client.call(`list-${kind}-patches`, { params: { cityName }, signal })
    const lists = await Promise.all(kinds.map(async (kind) => ({ kind, reply: await ask(kind) })))
    const rows = lists.flatMap(({ kind, reply }) =>
      reply.body.items.map((item): Row => ({ ...item, kind, city: cityName })),
    )
    return { rows, lists }
  }
  if (context.options.allCities) {
    const cities = (await listCities(client, signal)).filter(({ running }) => running)
    const { answers, exitCode } = await askEach(context, cities, ({ name }) => ofCity(name))
    const items = answers.flatMap(({ rows }) => rows)
    const columns = [{ header: 'CITY', value: ({ city }: Row) => city }, ...ROWS.columns]
    await context.print.list({ items, ...ROWS, columns, json: JSON.stringify({ items, total: items.length }) })
    return exitCode
  }
  const { rows, lists } = await ofCity(await context.needCity(undefined, signal))
  const byKind = Object.fromEntries(lists.map(({ kind, reply }) => [`${kind}s`, reply.body.items]))
  const only = lists.length === 1 ? lists[0]?.reply.text : undefined
  await context.print.list({ items: rows, ...ROWS, json: only ?? JSON.stringify(byKind) })
  return EXIT.ok
}

const PATCH = view<PatchItem>()('TARGET PLACE revision', { as: { TARGET: titleOf, PLACE: placeOf } })

/** With what this very patch says between its target and its place. */
async function show(context: Context, { body, text }: Pick<Reply<PatchItem>, 'body' | 'text'>): Promise<void> {
  const [target, ...others] = PATCH.columns
  const fields = Object.entries(fieldsOf(body)).map(([key, value]) => ({
    header: key.toUpperCase(),
    value: () => (typeof value === 'string' ? value : JSON.stringify(value)),
  }))
  const columns = [...(target === undefined ? [] : [target]), ...fields, ...others]
  await context.print.item({ item: body, ...PATCH, columns, json: text })
}

/** Replaces the patch, unless only some of its fields are to change. */
async function put(
  {
    context,
    input,
    client,
    cityName,
    said,
    options,
    send,
  }: Call<'replace-rig-patch' | 'replace-agent-patch' | 'replace-provider-patch'>,
  kind: Kind,
): Promise<number> {
  await context.print.require(PATCH)
  const merges = input.on('merge') || input.texts('unset').length > 0
  const { name, base, ...body } = { name: undefined, base: undefined, ...said }
  const params = { cityName, name, base }
  await show(
    context,
    merges ? await client.request<PatchItem>(`merge-${kind}-patch`, { params, body, ...options }) : await send(),
  )
  return EXIT.ok
}

const command = commandsOf(TABLE)
const CHANGES = [
  { flags: '--merge', description: 'Change the fields that are given, keep the others.' },
  { ...unsetFlag, description: 'A field to drop from the patch; keeps the others.' },
] as const satisfies readonly FlagSpec[]
const WITHOUT = 'Without --merge or --unset the patch says what is given here, and nothing else.'
const AGENT = {
  says: { base: 'Its name: [RIG/][BINDING.]NAME.' },
  completes: { base: 'agent' },
  called: { base: 'target' },
} as const
const RIG = { completes: { name: 'rig' }, called: { name: 'target' } } as const
const PROVIDER = { completes: { name: 'provider' }, called: { name: 'target' } } as const

export const commands: readonly CommandSpec[] = [
  {
    path: ['patch', 'list'],
    operations: ['list-agent-patches', 'list-rig-patches', 'list-provider-patches'],
    summary: 'List patches',
    arguments: [{ name: '[kind]', description: 'Only of these (default: all).', choices: KINDS }],
    flags: [watchFlag],
    isFleet: true,
    isWatched: true,
    examples: [{ line: 'svcctl patch list', does: 'everything the city patches' }],
    run: list,
  },
  command('patch get agent', 'get-agent-patch', {
    ...AGENT,
    arguments: ['<base>'],
    print: show,
    examples: { 'svcctl patch get agent shop/core.worker': 'the patch of an agent of a rig' },
  }),
  command('patch get rig', 'get-rig-patch', {
    ...RIG,
    arguments: ['<name>'],
    print: show,
    examples: { 'svcctl patch get rig shop': 'what the city changes of it' },
  }),
  command('patch get provider', 'get-provider-patch', {
    ...PROVIDER,
    arguments: ['<name>'],
    print: show,
    examples: { 'svcctl patch get provider shell': 'what the city changes of it' },
  }),
  command('patch put agent', 'replace-agent-patch', {
    ...AGENT,
    also: ['merge-agent-patch'],
    description: WITHOUT,
    arguments: ['<base>'],
    flags: { api: '--api-access' },
    leaves: { name: 'it is the argument', dir: 'it is the argument' },
    json: true,
    more: CHANGES,
    run: (call) => put(call, 'agent'),
    examples: { 'svcctl patch put agent core.worker --nudge "go on"': 'create or replace one' },
  }),
  command('patch put rig', 'replace-rig-patch', {
    ...RIG,
    also: ['merge-rig-patch'],
    description: WITHOUT,
    arguments: ['<name>'],
    json: true,
    more: CHANGES,
    run: (call) => put(call, 'rig'),
    examples: { 'svcctl patch put rig shop --merge --formula-vars team=a': 'change one field of one' },
  }),
  command('patch put provider', 'replace-provider-patch', {
    ...PROVIDER,
    also: ['merge-provider-patch'],
    description: WITHOUT,
    arguments: ['<name>'],
    json: true,
    more: CHANGES,
    run: (call) => put(call, 'provider'),
    examples: { 'svcctl patch put provider shell --display-name Mine': 'create or replace one' },
  }),
  command('patch delete agent', 'delete-agent-patch', {
    ...AGENT,
    arguments: ['<base...>'],
    view: DELETED,
    examples: { 'svcctl patch delete agent core.worker': 'the agent is as it was' },
  }),
  command('patch delete rig', 'delete-rig-patch', {
    ...RIG,
    arguments: ['<name...>'],
    view: DELETED,
    examples: { 'svcctl patch delete rig shop': 'the rig is as it was' },
  }),
  command('patch delete provider', 'delete-provider-patch', {
    ...PROVIDER,
    arguments: ['<name...>'],
    view: DELETED,
    examples: { 'svcctl patch delete provider shell': 'the provider is as it was' },
  }),
]
