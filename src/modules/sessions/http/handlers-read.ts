/** Reading sessions: lists, one of them, what waits, screens (sheet 04 §§4.1, 4.6, 4.11, 4.12). */

import { SESSION_STATES, type SessionResponse, type SessionState } from '../../../contract/sessions/session-model.ts'
import type { sessionOperations } from '../../../contract/sessions/sessions.ts'
import { type Handlers, ok } from '../../../kernel/call.ts'
import { type Clock, isoTime } from '../../../kernel/clock.ts'
import type { StoredEvent } from '../../../kernel/event-log.ts'
import { Page } from '../../../kernel/page.ts'
import { given } from '../../../kernel/present.ts'
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
      const page = new Page('sessions', ['number', 'string'], query)
      const lines = query.peek === true ? (query.peek_lines ?? PEEK_LINES) : undefined
      const read = (peeked: number | undefined) => {
        const { sessions, store } = call.city
        const found = sessions.store.page(filter, page.after, page.ask, query.order)
        const shown = page.of(
          found,
          ({ created_at, id }) => [created_at, id],
          (session) => sessions.view(session, peeked),
        )
        return { body: { ...shown, total: sessions.store.count(filter) }, head: store.log.head }
      }
      const version = () => {
        const { items, total } = read(undefined).body
        return JSON.stringify([total, items.map(steady)])
      }
      await waitForChange(call.city.store.log, query, clock, signal, isRelevant, version)
      const { body, head } = read(lines)
      return ok(body, { 'X-SVC-Index': String(head) })
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
      const page = new Page('deliveries', ['number'], query)
      const found = sessions.deliveries.page(id, query.state, page.after?.[0], page.ask, query.order)
      const waitsFor = sessions.actor(id)?.obstacle(session)
      const shown = page.of(
        found,
        ({ seq }) => [seq],
        (one) => (one.state === 'queued' ? { ...one, ...given('waits_for', waitsFor) } : one),
      )
      return ok({ ...shown, total: sessions.deliveries.count(id, query.state) }, index)
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
      const page = new Page('waits', ['number', 'string'], query)
      const found = sessions.waits.page(filter, page.after, page.ask, query.order)
      const shown = page.of(found, ({ created_at, id }) => [Date.parse(created_at), id])
      return ok({ ...shown, total: sessions.waits.count(filter) }, index)
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
