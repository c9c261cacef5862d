/** Handlers that look for work: lists, queries, what is ready, what is on a hook and the claim of it. */
import type { claimHook, listBeads, listHook, listReadyBeads, queryBeads } from '../../contract/beads.ts'
import { type Handler, ok } from '../../kernel/call.ts'
import type { Clock } from '../../kernel/clock.ts'
import { type BlockingInput, isBlocking, waitForChange } from '../../kernel/waiting.ts'
import { listQuery, readyQuery, spokenQuery } from './query/filters.ts'
import { type Order, type PageOf, READY, type RecordPage, readRecords } from './query/pages.ts'
import { allOf, type Query } from './query/query.ts'
import { wireBead } from './store/record.ts'
import type { WorkCity } from './work/city.ts'
import { candidates, claimNext } from './work/hook.ts'

export interface ReadHandlersDeps {
  /** The spec's 404 for a city that is not running. */
  readonly city: (name: string) => WorkCity
  readonly clock: Clock
  /** True where a session has ended: whatever asks in its name gets no work. */
  readonly sessionEnded: (city: string, sessionId: string) => boolean
}

interface ReadCall {
  readonly params: { readonly cityName: string }
  readonly query: BlockingInput & PageOf
  readonly signal: AbortSignal
}

export function createBeadReadHandlers({ city: cityOf, clock, sessionEnded }: ReadHandlersDeps) {
  /** Waits where that is asked for, then answers with one page; what is asked is checked before the wait. */
  const answer = async (call: ReadCall, order: Order, queryOf: (city: WorkCity) => Query) => {
    const asked = queryOf(cityOf(call.params.cityName))
    const read = () => {
      // The city may have been stopped meanwhile.
      const city = cityOf(call.params.cityName)
      const meaning = { now: clock.now(), identities: identitiesOf(city) }
      return { index: indexOf(city), page: readRecords(city, asked, order, call.query, meaning) }
    }
    if (isBlocking(call.query)) {
      const { log } = cityOf(call.params.cityName).store
      const version = () => versionOf(read().page)
      await waitForChange(log, call.query, clock, call.signal, ({ type }) => type.startsWith('bead.'), version)
    }
    const { index, page } = read()
    const { records, ...found } = page
    return ok({ items: records.map(wireBead), ...found }, index)
  }

  const list: Handler<typeof listBeads> = (call) =>
    answer(call, call.query.order === 'asc' ? 'oldest' : 'newest', (city) => listQuery(call.query, rigsOf(city)))

  const query: Handler<typeof queryBeads> = (call) =>
    answer(call, call.query.order === 'asc' ? 'oldest' : 'newest', () =>
      spokenQuery(call.query.q, call.query.all === true),
    )

  const ready: Handler<typeof listReadyBeads> = (call) =>
    answer(call, call.query.sort ?? 'ready', (city) => allOf([READY, ...readyQuery(call.query, rigsOf(city))]))

  const hook: Handler<typeof listHook> = ({ params, query: asker }) => {
    const city = cityOf(params.cityName)
    const index = indexOf(city)
    const ended = asker.session_id !== undefined && sessionEnded(city.name, asker.session_id)
    const found = ended ? [] : candidates(city, asker, clock.now())
    const items = found.flatMap(({ id, tier }) => city.beads.load([id]).map((bead) => ({ ...wireBead(bead), tier })))
    return ok({ items, total: items.length }, index)
  }

  const claim: Handler<typeof claimHook> = async ({ params, body }) => {
    const city = cityOf(params.cityName)
    const { drain_ack = false, session_id: session } = body
    const taken =
      session !== undefined && sessionEnded(city.name, session)
        ? ({ action: 'drain', reason: 'stale_session' } as const)
        : await city.store.db.write((tx) => claimNext(tx, city, body, clock.now()))
    const acknowledged = drain_ack && taken.action === 'drain' ? { drain_acknowledged: true } : {}
    return ok({ ...taken, ...acknowledged }, indexOf(city))
  }

  return {
    'list-beads': list,
    'query-beads': query,
    'list-ready-beads': ready,
    'list-hook': hook,
    'claim-hook': claim,
  }
}

/** Another text for another page: whoever waits is not woken for beads that it does not show. */
const versionOf = ({ records, ...found }: RecordPage): string =>
  JSON.stringify([found, records.map(({ id, revision, blockers }) => [id, revision, blockers > 0])])

const indexOf = ({ store }: WorkCity) => ({ 'X-SVC-Index': String(store.log.head) })
const rigsOf = (city: WorkCity) => (name: string) => city.config().rigs.some((rig) => rig.name === name)
const identitiesOf =
  ({ people }: WorkCity) =>
  (name: string) => [...new Set([name, ...people.identities(name)])]
