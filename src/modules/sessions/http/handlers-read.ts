/** Reading sessions: lists, one of them, what waits, screens (sheet 04 §§4.1, 4.6, 4.11, 4.12). */

import { DEFAULT_LIMIT } from '../../../contract/base/paging.ts'
import { SESSION_STATES, type SessionResponse, type SessionState } from '../../../contract/sessions/session-model.ts'
import type { sessionOperations } from '../../../contract/sessions/sessions.ts'
import { type Handlers, ok } from '../../../kernel/call.ts'
import { type Clock, isoTime } from '../../../kernel/clock.ts'
import { formatPageToken, invalidCursor, parsePageToken } from '../../../kernel/cursor.ts'
import type { StoredEvent } from '../../../kernel/event-log.ts'
import { invalidField } from '../../../kernel/problem.ts'
import { waitForChange } from '../../../kernel/waiting.ts'
import { wirePending } from '../actor/journal.ts'
import { canAsk } from '../plan/views.ts'
import { type SessionCity, tag } from './handlers.ts'

const PEEK_LINES = 5
const isRelevant = ({ type }: { readonly type: string }): boolean =>
  type.startsWith('session.') || type.startsWith('config.') || type === 'city.stopped'

export function createSessionReadHandlers({ clock }: { readonly clock: Clock }) {
  return {
    'list-sessions': async (call) => {
      const { query, signal } = call
      const states = statesOf(query.state)
      const { template, rig } = query
      const filter = {
        ...(states === undefined ? {} : { states }),
        ...(template === undefined ? {} : { template }),
        ...(rig === undefined ? {} : { rig }),
      }
      const limit = query.limit || DEFAULT_LIMIT
      const after = keyOf('sessions', query.cursor)
      const read = () => {
        const { sessions, store } = call.city
        const page = sessions.store.page(filter, after, limit + 1, query.order)
        const last = page.length > limit ? page[limit - 1] : undefined
        return {
          sessions,
          head: store.log.head,
          shown: page.slice(0, limit),
          last,
          total: sessions.store.count(filter),
        }
      }
      const version = () => {
        const { sessions, shown, total } = read()
        return JSON.stringify([total, shown.map((session) => steady(sessions.view(session)))])
      }
      await waitForChange(call.city.store.log, query, clock, signal, isRelevant, version)
      const { sessions, head, shown, last, total } = read()
      const lines = query.peek === true ? (query.peek_lines ?? PEEK_LINES) : undefined
      return ok(
        {
          items: shown.map((session) => sessions.view(session, lines)),
          total,
          ...(last === undefined ? {} : { next_cursor: formatPageToken('sessions', [last.created_at, last.id]) }),
        },
        { 'X-SVC-Index': String(head) },
      )
    },

    'get-session': ({ params, query, city }) => {
      const { sessions, store } = city
      const index = String(store.log.head)
      const session = sessions.resolve(params.id)
      const lines = query.peek === true ? (query.peek_lines ?? PEEK_LINES) : undefined
      return ok(sessions.view(session, lines), { ETag: tag(session), 'X-SVC-Index': index })
    },

    'list-session-deliveries': async (call) => {
      const { params, query, signal } = call
      const { id } = call.city.sessions.resolve(params.id)
      const isNews = (event: StoredEvent) => event.subject === id && isRelevant(event)
      await waitForChange(call.city.store.log, query, clock, signal, isNews)
      const { sessions, store } = call.city
      const session = sessions.resolve(id)
      const index = { 'X-SVC-Index': String(store.log.head) }
      const limit = query.limit || DEFAULT_LIMIT
      const after = query.cursor === undefined ? undefined : seqOf(query.cursor)
      const page = sessions.deliveries.page(id, query.state, after, limit + 1, query.order)
      const items = page.slice(0, limit)
      const last = items.at(-1)
      const waitsFor = sessions.actor(id)?.obstacle(session)
      return ok(
        {
          items: items.map((one) =>
            one.state === 'queued' && waitsFor !== undefined ? { ...one, waits_for: waitsFor } : one,
          ),
          total: sessions.deliveries.count(id, query.state),
          ...(page.length > limit && last !== undefined
            ? { next_cursor: formatPageToken('deliveries', [last.seq]) }
            : {}),
        },
        index,
      )
    },

    'get-session-pending': ({ params, city }) => {
      const { sessions, store, deps } = city
      const index = { 'X-SVC-Index': String(store.log.head) }
      const session = sessions.resolve(params.id)
      const runtime = deps.runtimes.get(session.runtime)
      const supported = session.process && session.state !== 'creating' && canAsk(session, runtime)
      const found = sessions.live(session.id)?.pending
      return ok({ supported, ...(found === undefined ? {} : { pending: wirePending(found) }) }, index)
    },

    'list-pending': async (call) => {
      await waitForChange(call.city.store.log, call.query, clock, call.signal, isRelevant)
      const { sessions, store } = call.city
      const index = { 'X-SVC-Index': String(store.log.head) }
      const items = sessions.store.open().flatMap((session) => {
        const { pending: found, pendingSince } = sessions.live(session.id) ?? {}
        if (found === undefined) return []
        return [
          {
            session_id: session.id,
            template: session.template,
            title: session.title,
            ...(session.alias === undefined ? {} : { alias: session.alias }),
            since: isoTime(pendingSince ?? session.state_since),
            ...wirePending(found),
          },
        ]
      })
      return ok({ items, total: items.length }, index)
    },

    'get-session-drain': ({ params, city }) => {
      const session = city.sessions.resolve(params.id)
      const draining = session.state === 'draining'
      return ok({
        draining,
        ...(draining && session.drain_reason !== undefined ? { reason: session.drain_reason } : {}),
        ...(draining ? { since: isoTime(session.state_since) } : {}),
        ...(draining && session.deadline !== undefined ? { deadline: isoTime(session.deadline) } : {}),
        acknowledged: draining && session.drain_acked,
      })
    },

    'list-waits': ({ query, city }) => {
      const { sessions, store } = city
      const index = { 'X-SVC-Index': String(store.log.head) }
      const session = query.session === undefined ? undefined : sessions.resolve(query.session).id
      const filter = { state: query.state, session }
      const limit = query.limit || DEFAULT_LIMIT
      const page = sessions.waits.page(filter, keyOf('waits', query.cursor), limit + 1, query.order)
      const items = page.slice(0, limit)
      const last = items.at(-1)
      return ok(
        {
          items: [...items],
          total: sessions.waits.count(filter),
          ...(page.length > limit && last !== undefined
            ? { next_cursor: formatPageToken('waits', [Date.parse(last.created_at), last.id]) }
            : {}),
        },
        index,
      )
    },

    'get-wait': ({ params, city }) => ok(city.sessions.waits.get(params.id)),
  } satisfies Partial<Handlers<typeof sessionOperations, SessionCity>>
}

/** Without what changes from look to look: that is no news to wait for. */
const steady = (view: SessionResponse) => ({ ...view, observed_at: '', last_active: '' })

/** Undefined: all that are not closed. */
function statesOf(text: string | undefined): readonly SessionState[] | undefined {
  if (text === undefined || text === 'open') return undefined
  const states = text.split(',').flatMap((word): readonly SessionState[] => {
    if (word === 'all') return SESSION_STATES
    if (word === 'open') return SESSION_STATES.filter((state) => state !== 'closed')
    const found = SESSION_STATES.find((state) => state === word)
    if (found === undefined) throw invalidField('query.state', `takes ${SESSION_STATES.join(', ')}, open, all`, text)
    return [found]
  })
  return [...new Set(states)]
}

function keyOf(
  kind: string,
  token: string | undefined,
): { readonly createdAt: number; readonly id: string } | undefined {
  if (token === undefined) return undefined
  const [createdAt, id] = parsePageToken(kind, token)
  if (typeof createdAt !== 'number' || typeof id !== 'string') throw invalidCursor('does not name an item')
  return { createdAt, id }
}

function seqOf(token: string): number {
  const [seq] = parsePageToken('deliveries', token)
  if (typeof seq !== 'number') throw invalidCursor('does not name a delivery')
  return seq
}
