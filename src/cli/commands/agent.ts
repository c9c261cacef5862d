/** `svcctl agent …`: who can work in a city. */

import type { AgentResponse } from '../../contract/agents.ts'
import type { CommandSpec } from '../base/command.ts'
import { EXIT } from '../base/failure.ts'
import type { AnswerOf, Call } from '../framework/declaration.ts'
import { commandsOf } from '../framework/declare.ts'
import { anyOf, placeOf } from '../print/columns.ts'
import { view } from '../print/view.ts'
import { AGENTS as TABLE } from '../tables/agents.ts'
import { CONFIG } from '../tables/config.ts'
import { printLive, printTranscript } from '../views/live.ts'
import { exitText } from '../views/session-views.ts'

const AGENT = view<AgentResponse>()('name KIND state SESSIONS provider BEAD AVAILABLE session.last_activity', {
  wide: 'rig MIN MAX demand LAST_EXIT pack FILE description revision',
  as: {
    KIND: ({ pool }) => (pool === undefined ? 'agent' : `instance of ${pool}`),
    SESSIONS: ({ sessions, pool }) => (pool === undefined ? sessions : undefined),
    BEAD: 'active_bead',
    AVAILABLE: ({ available, unavailable_reason: why }) =>
      available === undefined ? 'unknown' : available ? 'yes' : (why ?? 'no'),
    MIN: 'min_active_sessions',
    MAX: ({ max_active_sessions: max }) => (max < 0 ? 'no limit' : max),
    LAST_EXIT: ({ session }) => session?.last_exit && exitText(session.last_exit),
    FILE: placeOf,
  },
})
const DELETED = view<AnswerOf<'delete-agent'>>()('status name CLOSED', {
  as: { CLOSED: ({ closed }) => anyOf(closed) },
  name: 'name',
})

async function logs({
  context,
  input,
  client,
  cityName,
  said,
  options,
  send,
}: Call<'get-agent-output'>): Promise<number> {
  const params = { cityName, agent: String(said.agent) }
  if (input.on('follow')) {
    const signal = context.io.reading()
    await printLive(context, client, { operation: 'stream-agent-output', params, query: {}, signal })
    return EXIT.ok
  }
  const { body, text } = await send()
  if (!context.print.isForPeople) {
    await context.print.item({ item: body, columns: [], name: ({ agent }) => agent, json: text })
    return EXIT.ok
  }
  await printTranscript(context, body)
  // Whoever waits for more of it learns that no more comes for now.
  const agent = await client.call('get-agent', { params, ...options }).catch(() => undefined)
  if (agent?.body.running === false) await context.note(`the agent does not run: ${agent.body.state}`)
  return EXIT.ok
}

const command = commandsOf(TABLE)
const AGENT_NAME = 'Its name; RIG/NAME for an agent of a rig.'
const NAMED = { says: { agent: AGENT_NAME }, completes: { agent: 'agent' } } as const
const EDITED = {
  ...NAMED,
  flags: { api: '--api-access' },
  completes: { agent: 'agent', provider: 'provider' },
  json: true,
  view: AGENT,
} as const

export const commands: readonly CommandSpec[] = [
  command('agent list', 'list-agents', {
    leaves: { peek: '`svcctl session screen` shows them' },
    view: AGENT,
    examples: { 'svcctl agent list': 'all agents and what they do' },
  }),
  command('agent get', 'get-agent', {
    ...NAMED,
    arguments: ['<agent...>'],
    view: AGENT,
    examples: { 'svcctl agent get shop/worker': 'an agent of a rig' },
  }),
  command('agent create', 'create-agent', {
    arguments: ['<name>'],
    called: { name: 'agent' },
    flags: { api: '--api-access' },
    says: { name: AGENT_NAME },
    completes: { provider: 'provider' },
    leaves: { dir: 'it is the rig in RIG/NAME' },
    json: true,
    change: ({ name = '' }) => {
      const at = name.lastIndexOf('/')
      return at < 0 ? {} : { dir: name.slice(0, at), name: name.slice(at + 1) }
    },
    view: AGENT,
    examples: {
      'svcctl agent create worker --provider claude': 'an agent of the city',
      'svcctl agent create shop/worker --max-active-sessions 3': 'a pool in a rig',
    },
  }),
  command('agent update', 'patch-agent', {
    ...EDITED,
    arguments: ['<agent...>'],
    examples: { 'svcctl agent update worker --provider codex --unset idle_timeout': 'change two fields' },
  }),
  command('agent replace', 'replace-agent', {
    ...EDITED,
    arguments: ['<agent>'],
    examples: { 'svcctl agent replace worker --data @worker.json': 'exactly what the file says; the rest is unset' },
  }),
  command('agent delete', 'delete-agent', {
    ...NAMED,
    arguments: ['<agent...>'],
    asks: (names) => `Remove agent ${names} and close its sessions?`,
    view: DELETED,
    examples: {
      'svcctl agent delete worker --yes': 'remove it and close its sessions',
      'svcctl agent delete worker --force --yes': 'also where work waits for it',
    },
  }),
  command('agent suspend', 'suspend-agent', {
    ...NAMED,
    arguments: ['<agent...>'],
    view: AGENT,
    examples: { 'svcctl agent suspend worker': 'let it finish, and start no more' },
  }),
  command('agent resume', 'resume-agent', {
    ...NAMED,
    arguments: ['<agent...>'],
    view: AGENT,
    examples: { 'svcctl agent resume worker': 'let it work again' },
  }),
  command('agent logs', 'get-agent-output', {
    ...NAMED,
    also: ['stream-agent-output'],
    summary: 'See what an agent said and did',
    arguments: ['<agent>'],
    more: [{ flags: '-f, --follow', description: 'Go on with what comes.' }],
    run: logs,
    examples: { 'svcctl agent logs -f worker': 'as it works' },
  }),
  commandsOf(CONFIG)('agent prompt', 'get-agent-prompt', {
    ...NAMED,
    arguments: ['<agent>'],
    print: (context, { body, text }) => context.print.text({ text: `${body.text.trimEnd()}\n`, json: text }),
    examples: { 'svcctl agent prompt worker': 'what its next session would be told' },
  }),
]
