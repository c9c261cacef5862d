/** `svcctl agent …`: who can work in a city. */
import type { AgentCreateRequest, AgentDefinition, AgentResponse } from '../../contract/agents.ts'
import type { PatchBody } from '../../contract/base/merge-patch.ts'
import { type ArgumentSpec, type CommandSpec, type Input, keyFlag, yesFlag } from '../base/command.ts'
import type { Context } from '../base/context.ts'
import { EXIT } from '../base/failure.ts'
import { bodyOf, ifMatchFlag, setFlags, unsetFlag } from '../base/fields.ts'
import {
  type AnswerOf,
  asking,
  fieldsOver,
  type InCity,
  inCity,
  printsItem,
  printsPages,
  type QueryFor,
  type View,
} from '../base/in-city.ts'
import { pageFlags } from '../base/paged.ts'
import { type FieldFlag, fieldsFrom, fieldsOf } from '../base/said-flags.ts'
import { printLive, printTranscript } from '../views/live.ts'

const AGENT: View<AgentResponse> = {
  columns: [
    { header: 'NAME', value: ({ name }) => name },
    // One that is defined, or one of several that work under its definition: only the former count as agents.
    { header: 'KIND', value: ({ pool }) => (pool === undefined ? 'agent' : `instance of ${pool}`) },
    { header: 'STATE', value: ({ state }) => state, kind: 'state' },
    { header: 'SESSIONS', value: ({ sessions, pool }) => (pool === undefined ? sessions : undefined) },
    { header: 'PROVIDER', value: ({ provider }) => provider },
    { header: 'BEAD', value: ({ active_bead: bead }) => bead },
    { header: 'AVAILABLE', value: ({ available, unavailable_reason: why }) => (available ? 'yes' : (why ?? 'no')) },
    { header: 'LAST_ACTIVITY', value: ({ session }) => session?.last_activity, kind: 'time' },
    { header: 'RIG', value: ({ rig }) => rig, wide: true },
    { header: 'MIN', value: ({ min_active_sessions: min }) => min, wide: true },
    { header: 'MAX', value: ({ max_active_sessions: max }) => (max < 0 ? 'no limit' : max), wide: true },
    { header: 'DEMAND', value: ({ demand }) => demand, wide: true },
    { header: 'PACK', value: ({ pack }) => pack, wide: true },
    {
      header: 'FILE',
      value: ({ file, line }) => (file === undefined ? undefined : `${file}:${line ?? 1}`),
      wide: true,
    },
    { header: 'DESCRIPTION', value: ({ description }) => description, wide: true },
    { header: 'REVISION', value: ({ revision }) => revision, wide: true },
  ],
  name: ({ name }) => name,
}
const DELETED: View<AnswerOf<'delete-agent'>> = {
  columns: [
    { header: 'STATUS', value: ({ status }) => status },
    { header: 'NAME', value: ({ name }) => name },
    { header: 'CLOSED', value: ({ closed }) => (closed.length === 0 ? undefined : closed.join(', ')) },
  ],
  name: ({ name }) => name,
}

/** The two parts of `RIG/NAME`; no rig: an agent of the city. */
function partsOf(name: string): { readonly dir: string | undefined; readonly base: string } {
  const at = name.lastIndexOf('/')
  return { dir: at < 0 ? undefined : name.slice(0, at), base: name.slice(at + 1) }
}

/** One of a rig is `RIG/NAME`, its slash percent-encoded on the way. */
const paramsOf = ({ cityName, input }: InCity) => ({ cityName, agent: input.required('agent') })

const listFilters: readonly FieldFlag[] = [
  { flags: '--rig <rig>', description: 'Of this rig.' },
  { flags: '--pool <agent>', description: 'Instances of this agent.', complete: 'agent' },
  { flags: '--running', description: 'Only those that run.' },
]

const list = printsPages(
  AGENT,
  ({ client, cityName, options }, page, filters) => {
    const query = { ...bodyOf<QueryFor<'list-agents'>>(filters), ...page }
    return client.call('list-agents', { params: { cityName }, query, ...options })
  },
  { fields: fieldsOf(listFilters) },
)

const get = printsItem(AGENT, (city) => {
  const { client, options } = city
  return client.call('get-agent', { params: paramsOf(city), ...options })
})

const createFlags: readonly FieldFlag[] = [
  { flags: '--provider <provider>', description: 'What it runs on.' },
  { flags: '--description <text>', description: 'For people.' },
]
const create = printsItem(
  AGENT,
  ({ client, cityName, options }, fields) =>
    client.call('create-agent', { params: { cityName }, body: bodyOf<AgentCreateRequest>(fields), ...options }),
  fieldsOver(async (context, input) => {
    const { dir, base } = partsOf(input.required('agent'))
    return {
      name: base,
      ...(dir === undefined ? {} : { dir }),
      ...(await fieldsFrom(context, input, createFlags)),
    }
  }),
)

const update = printsItem(
  AGENT,
  (city, fields) => {
    const { client, options } = city
    const body = bodyOf<PatchBody>(fields)
    return client.call('patch-agent', { params: paramsOf(city), body, ...options })
  },
  fieldsOver(),
)

const replace = printsItem(
  AGENT,
  (city, fields) => {
    const { client, options } = city
    const body = bodyOf<AgentDefinition>(fields)
    return client.call('replace-agent', { params: paramsOf(city), body, ...options })
  },
  fieldsOver(),
)

const remove = asking(
  (input) => `Remove agent ${input.required('agent')} and close its sessions?`,
  printsItem(DELETED, (city) => {
    const { client, options } = city
    return client.call('delete-agent', { params: paramsOf(city), ...options })
  }),
)

const act = (action: 'suspend' | 'resume') =>
  printsItem(AGENT, (city) => {
    const { client, options } = city
    return client.call(`${action}-agent`, { params: paramsOf(city), ...options })
  })

const entryFlags: readonly FieldFlag[] = [
  { flags: '--limit <n>', as: 'number', description: 'Entries; 100 where absent.' },
  { flags: '--before <entry>' },
  { flags: '--after <entry>' },
]

async function logs(context: Context, input: Input): Promise<number> {
  if (input.on('follow')) return followAgent(context, input)
  const query = bodyOf<QueryFor<'get-agent-output'>>(await fieldsFrom(context, input, entryFlags))
  const { body, text } = await inCity(context, input, (city) => {
    const { client, options } = city
    return client.call('get-agent-output', { params: paramsOf(city), query, ...options })
  })
  if (context.print.isForPeople) {
    await printTranscript(context, body)
    await noteEnd(context, input)
  } else await context.print.item({ item: body, columns: [], name: ({ agent }) => agent, json: text })
  return EXIT.ok
}

/** Whoever waits for more of it learns that no more comes for now. */
async function noteEnd(context: Context, input: Input): Promise<void> {
  const found = await inCity(context, input, (city) =>
    city.client.call('get-agent', { params: paramsOf(city), ...city.options }),
  ).catch(() => undefined)
  if (found?.body.running === false) await context.note(`the agent does not run: ${found.body.state}`)
}

async function followAgent(context: Context, input: Input): Promise<number> {
  const params = await inCity(context, input, async (city) => paramsOf(city))
  const client = await context.client()
  await printLive(context, client, {
    operation: 'stream-agent-output',
    params,
    query: {},
    signal: context.io.reading(),
  })
  return EXIT.ok
}

async function prompt(context: Context, input: Input): Promise<number> {
  const { body, text } = await inCity(context, input, (city) => {
    const { client, options } = city
    return client.call('get-agent-prompt', { params: paramsOf(city), ...options })
  })
  await context.print.text({ text: `${body.text.trimEnd()}\n`, json: text })
  return EXIT.ok
}

const agent: ArgumentSpec = {
  name: '<agent>',
  description: 'Its name; RIG/NAME for an agent of a rig.',
  complete: 'agent',
}

export const commands: readonly CommandSpec[] = [
  {
    path: ['agent', 'list'],
    operations: ['list-agents'],
    flags: [...listFilters, ...pageFlags],
    examples: [{ line: 'svcctl agent list', does: 'all agents and what they do' }],
    run: list,
  },
  {
    path: ['agent', 'get'],
    operations: ['get-agent'],
    arguments: [agent],
    examples: [{ line: 'svcctl agent get shop/worker', does: 'an agent of a rig' }],
    run: get,
  },
  {
    path: ['agent', 'create'],
    operations: ['create-agent'],
    arguments: [{ ...agent, complete: 'none' }],
    flags: [...createFlags, ...setFlags, ifMatchFlag, keyFlag],
    examples: [
      { line: 'svcctl agent create worker --provider claude', does: 'an agent of the city' },
      { line: 'svcctl agent create shop/worker --set max_active_sessions=3', does: 'a pool in a rig' },
    ],
    run: create,
  },
  {
    path: ['agent', 'update'],
    operations: ['patch-agent'],
    arguments: [agent],
    flags: [...setFlags, unsetFlag, ifMatchFlag],
    examples: [{ line: 'svcctl agent update worker --set provider=codex', does: 'change a field' }],
    run: update,
  },
  {
    path: ['agent', 'replace'],
    operations: ['replace-agent'],
    arguments: [agent],
    flags: [...setFlags, ifMatchFlag],
    examples: [
      {
        line: 'svcctl agent replace worker --data @worker.json',
        does: 'exactly what the file says; the rest is unset',
      },
    ],
    run: replace,
  },
  {
    path: ['agent', 'delete'],
    operations: ['delete-agent'],
    arguments: [agent],
    flags: [yesFlag, ifMatchFlag],
    examples: [{ line: 'svcctl agent delete worker --yes', does: 'remove it and close its sessions' }],
    run: remove,
  },
  {
    path: ['agent', 'suspend'],
    operations: ['suspend-agent'],
    arguments: [agent],
    examples: [{ line: 'svcctl agent suspend worker', does: 'let it finish, and start no more' }],
    run: act('suspend'),
  },
  {
    path: ['agent', 'resume'],
    operations: ['resume-agent'],
    arguments: [agent],
    examples: [{ line: 'svcctl agent resume worker', does: 'let it work again' }],
    run: act('resume'),
  },
  {
    path: ['agent', 'logs'],
    operations: ['get-agent-output', 'stream-agent-output'],
    summary: 'See what an agent said and did',
    arguments: [agent],
    flags: [{ flags: '-f, --follow', description: 'Go on with what comes.' }, ...entryFlags],
    examples: [{ line: 'svcctl agent logs -f worker', does: 'as it works' }],
    run: logs,
  },
  {
    path: ['agent', 'prompt'],
    operations: ['get-agent-prompt'],
    arguments: [agent],
    examples: [{ line: 'svcctl agent prompt worker', does: 'what its next session would be told' }],
    run: prompt,
  },
]
