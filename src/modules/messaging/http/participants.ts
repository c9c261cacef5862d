/** Handlers of bindings, groups and participants. */
import { CONVERSATION_KINDS } from '../../../contract/messaging/conversations.ts'
import type {
  BindingCreateRequest,
  GroupPatchRequest,
  participantOperations,
} from '../../../contract/messaging/participants.ts'
import { defineHandlers, ok, type Reply } from '../../../kernel/call.ts'
import type { Tx } from '../../../kernel/database.ts'
import { checkPrecondition, definitionHash } from '../../../kernel/etag.ts'
import type { IdempotencyClaim } from '../../../kernel/idempotency.ts'
import { invalidField, problem, timeMs } from '../../../kernel/problem.ts'
import { HUMAN, type Mailbox, mailboxOfAgent } from '../../../messaging/address.ts'
import { normalConversation, transcriptId } from '../../../messaging/conversation.ts'
import type { ConversationWanted } from '../entries/lists.ts'
import { normalHandle } from '../routing/handles.ts'
import { listBindings, listGroups, listParticipants } from '../routing/lists.ts'
import type { BindingRow, GroupRow } from '../routing/rows.ts'
import { targetOf } from '../routing/targets.ts'
import { wireBinding, wireGroup, wireParticipant } from '../routing/wire.ts'
import type { MessagingCity } from './city.ts'
import { changed } from './waiting.ts'

const indexOf = ({ store }: MessagingCity) => ({ 'X-SVC-Index': String(store.log.head) })

/** Hash of what somebody declared of a group; whom its conversation addressed last is no other version. */
const groupRevision = ({ mode, default_handle, fanout, metadata }: GroupRow): string =>
  definitionHash({ mode, default_handle, fanout, metadata })
const tagOf = (group: GroupRow) => ({ ETag: `"${groupRevision(group)}"` })

interface WhoQuery extends ConversationWanted {
  readonly session_id?: string
  readonly agent_name?: string
  readonly mailbox?: 'human'
}

/** Conversations as lists are filtered by them; a kind that is none has no conversations. */
function conversationOf(query: ConversationWanted): ConversationWanted {
  const kind = query.kind?.trim().toLowerCase()
  if (kind !== undefined && !CONVERSATION_KINDS.some((one) => one === kind))
    throw problem('invalid-conversation', `query.kind is none of ${CONVERSATION_KINDS.join(', ')}`)
  const { transcript_id, scope_id, provider, account_id, conversation_id, parent_conversation_id } = query
  return { transcript_id, scope_id, provider, account_id, conversation_id, parent_conversation_id, kind }
}

/** Whom a filter means; whoever is not there has nothing. */
function whoOf(city: MessagingCity, { session_id: session, agent_name: agent, mailbox }: WhoQuery) {
  return {
    session: session === undefined ? undefined : sessionNamed(city, session),
    mailbox: mailboxNamed(city, agent, mailbox),
  }
}

const sessionNamed = ({ routing }: MessagingCity, word: string): string => {
  const { addresses, targets } = routing.deps
  return targets.session(word)?.id ?? addresses().find(word)?.session_id ?? word
}

function mailboxNamed(
  { routing }: MessagingCity,
  agent: string | undefined,
  mailbox: 'human' | undefined,
): Mailbox | undefined {
  if (agent === undefined) return mailbox === undefined ? undefined : HUMAN
  const found = routing.deps.addresses().find(agent)?.mailbox
  return found?.startsWith('agent:') === true ? found : mailboxOfAgent(agent)
}

export function createParticipantHandlers() {
  const bindingView =
    ({ routing }: MessagingCity) =>
    (row: BindingRow) =>
      wireBinding(row, routing.deps.clock.now())

  /** A change whose answer a repeated request gets again. */
  const creating = async <B>(
    city: MessagingCity,
    claim: IdempotencyClaim | undefined,
    change: (tx: Tx) => { readonly isNew: boolean; readonly body: B },
  ): Promise<Reply<B>> => {
    const { keys, db } = city.store
    const { status, body } = await keys.once(claim, () =>
      db.write((tx) => {
        const { isNew, body } = change(tx)
        return keys.remember(tx, claim, { status: isNew ? 201 : 200, body })
      }),
    )
    return { status, body, headers: indexOf(city) }
  }

  const changing = async <B>(city: MessagingCity, change: (tx: Tx) => B): Promise<Reply<B>> => {
    const body = await city.store.db.write(change)
    return ok(body, indexOf(city))
  }

  return defineHandlers<typeof participantOperations, MessagingCity>({
    'list-participants': async (call) => {
      const { query } = call
      const city = await changed(call)
      const headers = indexOf(city)
      const { status = 'active', group_id, handle, limit, cursor } = query
      const wanted = { ...conversationOf(query), ...whoOf(city, query), group_id, handle, limit, cursor }
      const asked = { ...wanted, active: status === 'active' }
      return ok(listParticipants(city.store.db, asked, wireParticipant), headers)
    },

    'upsert-participant': ({ city, body, claim, actor }) => {
      const { groups, deps } = city.routing
      return creating(city, claim, (tx) => {
        const target = targetOf(deps, body, ['session_id', 'agent_name'])
        const { participant, isNew } = groups.upsert(tx, { ...body, target }, actor)
        return { isNew, body: wireParticipant(participant) }
      })
    },

    'remove-participant-by-handle': ({ city, query, actor }) => {
      const { groups } = city.routing
      return changing(city, (tx) => {
        const { id } = groups.need(tx, query.group_id)
        const found = groups.participant(tx, id, normalHandle(query.handle))
        if (found === undefined)
          throw problem('participant-not-found', `the group ${id} has nobody called ${query.handle}`)
        groups.remove(tx, found, 'requested', actor)
        return { status: 'removed' as const, id: found.id }
      })
    },

    'get-participant': ({ city, params }) => {
      const headers = indexOf(city)
      const { groups } = city.routing
      return ok(wireParticipant(groups.needParticipant(city.store.db, params.participantId)), headers)
    },

    'remove-participant': ({ city, params, actor }) => {
      const { groups } = city.routing
      return changing(city, (tx) => {
        const found = groups.needParticipant(tx, params.participantId)
        groups.remove(tx, found, 'requested', actor)
        return { status: 'removed' as const, id: found.id }
      })
    },

    'list-groups': async (call) => {
      const { query } = call
      const city = await changed(call)
      const headers = indexOf(city)
      const { limit, cursor } = query
      return ok(listGroups(city.store.db, { ...conversationOf(query), limit, cursor }, wireGroup), headers)
    },

    'ensure-group': ({ city, body, claim, actor }) => {
      const { root_conversation: root, default_handle, fanout_policy: fanout, metadata } = body
      const conversation = normalConversation(root, city.name, 'body.root_conversation')
      return creating(city, claim, (tx) => {
        const { group, isNew } = city.routing.groups.ensure(
          tx,
          { conversation, default_handle, fanout, metadata },
          actor,
        )
        return { isNew, body: wireGroup(group) }
      })
    },

    'get-group': ({ city, params }) => {
      const headers = indexOf(city)
      const group = city.routing.groups.need(city.store.db, params.groupId)
      return ok(wireGroup(group), { ...headers, ...tagOf(group) })
    },

    'patch-group': async ({ city, params, body, header, actor }) => {
      const { groups } = city.routing
      const group = await city.store.db.write((tx) => {
        const before = groups.need(tx, params.groupId)
        checkPrecondition(header('if-match'), groupRevision(before))
        return groups.patch(tx, before, changeOf(body), actor)
      })
      return ok(wireGroup(group), { ...indexOf(city), ...tagOf(group) })
    },

    'delete-group': ({ city, params, actor }) => {
      const { groups } = city.routing
      return changing(city, (tx) => {
        const group = groups.need(tx, params.groupId)
        groups.delete(tx, group, actor)
        return { status: 'deleted' as const, id: group.id }
      })
    },

    'list-bindings': async (call) => {
      const { query } = call
      const city = await changed(call)
      const headers = indexOf(city)
      const { status = 'active', limit, cursor } = query
      const wanted = { ...conversationOf(query), ...whoOf(city, query), limit, cursor }
      const now = city.routing.deps.clock.now()
      const asked = { ...wanted, active: status === 'active', now }
      return ok(listBindings(city.store.db, asked, bindingView(city)), headers)
    },

    'bind-conversation': ({ city, body, claim, actor }) => {
      const { bindings, deps } = city.routing
      const conversation = normalConversation(body.conversation, city.name)
      const expires = endOf(body, deps.clock.now())
      return creating(city, claim, (tx) => {
        const target = targetOf(deps, body, ['session_id', 'agent_name', 'mailbox'])
        const { replace = false, metadata = {} } = body
        const draft = { conversation, target, replace, metadata, reason: 'bound' as const, ...expires }
        const { binding, isNew } = bindings.bind(tx, draft, actor)
        return { isNew, body: bindingView(city)(binding) }
      })
    },

    'unbind-conversations': ({ city, body, actor }) => {
      const { conversation, session_id: session, agent_name: agent, mailbox } = body
      if ([conversation, session, agent, mailbox].every((one) => one === undefined))
        throw problem('invalid-request', 'the body says none of conversation, session_id, agent_name and mailbox')
      const transcript =
        conversation === undefined ? undefined : transcriptId(normalConversation(conversation, city.name))
      return changing(city, (tx) => {
        const ended = city.routing.bindings.endMatching(tx, { transcript, ...whoOf(city, body) }, 'requested', actor)
        return { unbound: ended.map(bindingView(city)) }
      })
    },

    'get-binding': ({ city, params }) => {
      const headers = indexOf(city)
      return ok(bindingView(city)(city.routing.bindings.need(city.store.db, params.bindingId)), headers)
    },

    'end-binding': ({ city, params, query, actor }) => {
      const { bindings } = city.routing
      return changing(city, (tx) => {
        const found = bindings.need(tx, params.bindingId)
        const generation = bindings.generation(tx, found.transcript_id)
        if (query.if_generation !== undefined && query.if_generation !== generation)
          throw problem(
            'binding-conflict',
            `the conversation is at generation ${generation}, not ${query.if_generation}`,
          )
        return bindingView(city)(found.ended_at === undefined ? bindings.end(tx, found, 'requested', actor) : found)
      })
    },
  })
}

/** When it ends; a time that is over would end it at once. */
function endOf({ expires_at: text }: BindingCreateRequest, now: number): { readonly expires_at?: number } {
  if (text === undefined) return {}
  const at = timeMs('body.expires_at', text)
  if (at <= now) throw invalidField('body.expires_at', 'is not in the future', text)
  return { expires_at: at }
}

const changeOf = ({ fanout_policy: fanout, ...change }: GroupPatchRequest) => ({ ...change, fanout })
