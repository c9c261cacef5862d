/** Values that only the server knows, with a few words about each. */
import type { Client } from '../../client/client.ts'
import { isRecord } from '../../client/problems.ts'
import type { Bead } from '../../contract/beads.ts'
import type { SessionResponse } from '../../contract/sessions/session-model.ts'
import type { Completed } from '../base/command.ts'
import type { Context } from '../base/context.ts'
import { listCities } from '../base/discovery.ts'
import { printable } from '../base/failure.ts'
import { cutTo } from '../print/text-width.ts'
import { conversationText } from '../views/conversations.ts'

const MOST_SESSIONS = 200
const MOST = 50
/** Of a title beside an id. */
const MOST_COLUMNS = 60

export interface Look {
  /** What is typed of the value. */
  readonly current: string
  readonly context: Context
  readonly client: Client
  readonly signal: AbortSignal
}

/** A candidate: a word, and after a tab what it is. */
export const tab = (word: string, description: string | undefined): string =>
  description === undefined || description === '' ? word : `${word}\t${printable(description.replaceAll(/\s+/g, ' '))}`

export const LOOK_UPS: Partial<Readonly<Record<Completed, (look: Look) => Promise<readonly string[]>>>> = {
  city: async ({ client, signal }) => (await listCities(client, signal)).map(({ name, status }) => tab(name, status)),
  adapter: async (look) => {
    const { body } = await look.client.call('list-adapters', { ...(await inCity(look)), query: { limit: MOST } })
    return body.items.map(({ provider, account_id: account, status }) => tab(`${provider}/${account}`, status))
  },
  agent: async (look) => {
    const { body } = await look.client.call('list-agents', { ...(await inCity(look)), query: { limit: 1000 } })
    return body.items.map(({ name, state }) => tab(name, state))
  },
  bead: async (look) => {
    const call = await inCity(look)
    // What is typed may be that of an old one: then it is looked for, and not only among the newest.
    const q = `id~${JSON.stringify(look.current)}`
    const { body } =
      look.current === ''
        ? await look.client.call('list-beads', { ...call, query: { limit: MOST } })
        : await look.client.call('query-beads', { ...call, query: { q, limit: MOST } })
    return body.items.map(aboutBead)
  },
  binding: async (look) => {
    const { body } = await look.client.call('list-bindings', { ...(await inCity(look)), query: { limit: MOST } })
    return body.items.map(({ id, conversation }) => tab(id, conversationText(conversation)))
  },
  group: async (look) => {
    const { body } = await look.client.call('list-groups', { ...(await inCity(look)), query: { limit: MOST } })
    return body.items.map(({ id, root_conversation: conversation }) => tab(id, conversationText(conversation)))
  },
  'closed-bead': async (look) => {
    const query = { status: ['closed' as const], limit: MOST }
    const { body } = await look.client.call('list-beads', { ...(await inCity(look)), query })
    return body.items.map(aboutBead)
  },
  'config-file': async (look) => {
    const { body } = await look.client.call('list-config-files', await inCity(look))
    return body.items.map(({ path, kind }) => tab(path, kind))
  },
  'config-key': async (look) => {
    const { body } = await look.client.call('explain-config', await inCity(look))
    return [...new Set([...fieldKeys(body)])].sort()
  },
  convoy: async (look) => {
    const { body } = await look.client.call('list-convoys', { ...(await inCity(look)), query: { limit: MOST } })
    return body.items.map(({ id, progress, title }) =>
      tab(id, `${progress.closed} of ${progress.total}: ${cutTo(title, MOST_COLUMNS)}`),
    )
  },
  worktree: async (look) => {
    const { body } = await look.client.call('list-worktrees', await inCity(look))
    return body.items.map(({ name, state, branch }) => tab(name, `${state}: ${branch}`))
  },
  service: async (look) => {
    const { body } = await look.client.call('list-services', await inCity(look))
    return body.items.map(({ service_name: name, state }) => tab(name, state))
  },
  formula: async (look) => {
    const { body } = await look.client.call('list-formulas', await inCity(look))
    return body.items.map(({ name, title, rig }) => tab(name, title ?? rig))
  },
  mailbox: async (look) => {
    const call = await inCity(look)
    const [agents, sessions] = await Promise.all([
      look.client.call('list-agents', { ...call, query: { limit: 1000 } }),
      look.client.call('list-sessions', { ...call, query: { limit: MOST_SESSIONS } }),
    ])
    const named = agents.body.items.filter(({ pool }) => pool === undefined).map(({ name, state }) => tab(name, state))
    const open = sessions.body.items.map(({ id, alias, template, state }) => tab(alias ?? id, `${template}, ${state}`))
    return [tab('human', 'the people of the city'), ...named, ...open]
  },
  message: async (look) => {
    const query = { agent: look.context.io.env['SVC_SESSION_ID'] || 'human', status: 'all' as const, limit: MOST }
    const { body } = await look.client.call('list-mail', { ...(await inCity(look)), query })
    return body.items.map(({ id, from, subject }) => tab(id, cutTo(`${from}: ${subject}`, MOST_COLUMNS)))
  },
  molecule: async (look) => {
    const { body } = await look.client.call('list-molecules', { ...(await inCity(look)), query: { limit: MOST } })
    return body.items.map(({ id, status, title }) => tab(id, cutTo(`${status} ${title}`, MOST_COLUMNS)))
  },
  pack: async (look) => {
    const { body } = await look.client.call('list-packs', await inCity(look))
    return body.items.map(({ name, kind, source }) => tab(name, `${kind}: ${source ?? ''}`))
  },
  provider: async (look) => {
    const { body } = await look.client.call('list-providers', await inCity(look))
    return body.items.map(({ name, display_name: about }) => tab(name, about))
  },
  'provider-base': async (look) => {
    const { body } = await look.client.call('list-providers', await inCity(look))
    return body.items.flatMap(({ name, builtin, display_name: about }) => [
      tab(name, about),
      ...(builtin ? [tab(`builtin:${name}`, about)] : []),
    ])
  },
  request: async ({ client, signal }) => {
    const { body } = await client.call('list-requests', { query: { limit: MOST }, signal })
    return body.items.map(({ request_id: id, operation, status }) => tab(id, `${operation}, ${status}`))
  },
  rig: async (look) => {
    const { body } = await look.client.call('list-rigs', await inCity(look))
    return body.items.map(({ name, path }) => tab(name, path))
  },
  session: async (look) => {
    const { body } = await look.client.call('list-sessions', {
      ...(await inCity(look)),
      query: { limit: MOST_SESSIONS },
    })
    const about = ({ template, state, title }: SessionResponse) => `${template}, ${state}: ${title}`
    const named = body.items.flatMap((one) => (one.alias === undefined ? [] : tab(one.alias, about(one))))
    return [...named, ...body.items.map((one) => tab(one.id, about(one)))]
  },
  transcript: async (look) => {
    const { body } = await look.client.call('list-transcripts', { ...(await inCity(look)), query: { limit: MOST } })
    return body.items.map(({ transcript_id: id, conversation }) => tab(id, conversationText(conversation)))
  },
  token: async ({ client, signal }) => {
    const { body } = await client.call('list-tokens', { signal })
    return body.items.map(({ name, role }) => tab(name, role))
  },
}

const aboutBead = ({ id, status, title }: Bead): string => tab(id, `${status}: ${cutTo(title, MOST_COLUMNS)}`)

/** Keys of every `settings` and `fields`, wherever they are. */
function* fieldKeys(value: unknown): Generator<string> {
  if (Array.isArray(value)) for (const one of value) yield* fieldKeys(one)
  if (!isRecord(value)) return
  for (const [name, below] of Object.entries(value)) {
    if ((name === 'settings' || name === 'fields') && isRecord(below)) yield* Object.keys(below)
    else yield* fieldKeys(below)
  }
}

const inCity = async ({ context, signal }: Look) => ({
  params: { cityName: await context.needCity(undefined, signal) },
  signal,
})
