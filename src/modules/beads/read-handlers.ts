/** Handlers that look for work: lists, queries, what is ready, what is on a hook and the claim of it. */
import type { beadOperations } from '../../contract/beads.ts'
import { type Handlers, ok } from '../../kernel/call.ts'
import type { Clock } from '../../kernel/clock.ts'
import type { PageWanted } from '../../kernel/page.ts'
import { type BlockingInput, isBlocking, waitForChange } from '../../kernel/waiting.ts'
import { listQuery, readyQuery, spokenQuery } from './query/filters.ts'
import { type Order, READY, readRecords } from './query/pages.ts'
import { allOf, asksForWords, type Query } from './query/query.ts'
import { wireBead } from './store/record.ts'
import type { WorkCity } from './work/city.ts'
import { candidates, claimNext } from './work/hook.ts'

interface ReadCall {
  readonly city: WorkCity
  readonly query: BlockingInput & PageWanted
  readonly signal: AbortSignal
}

export function createBeadReadHandlers({ clock }: { readonly clock: Clock }) {
  /** Waits where that is asked for, then answers with one page; what is asked is checked before the wait. */
  const answer = async (call: ReadCall, order: Order, queryOf: (city: WorkCity) => Query) => {
    const asked = queryOf(call.city)
    const { words } = call.city.beads
    const looksForWords = asksForWords(asked)
    const read = () => {
      // The city may have been stopped meanwhile.
      const { city } = call
      const meaning = { now: clock.now(), identities: identitiesOf(city) }
      return { index: indexOf(city), page: readRecords(city, asked, order, call.query, meaning) }
    }
    if (isBlocking(call.query)) {
      const { log } = call.city.store
      const version = () => versionOf(read().page)
      using _following = looksForWords ? words.follow() : undefined
      if (looksForWords) await words.settle()
      await waitForChange(log, call.query, clock, call.signal, ({ type }) => type.startsWith('bead.'), version)
    }
    if (looksForWords) await words.settle()
    const { index, page } = read()
    return ok(page, index)
  }

  return {
    'list-beads': (call) =>
      answer(call, call.query.order === 'asc' ? 'oldest' : 'newest', (city) => listQuery(call.query, rigsOf(city))),

    'query-beads': (call) =>
      answer(call, call.query.order === 'asc' ? 'oldest' : 'newest', () =>
        spokenQuery(call.query.q, call.query.all === true),
      ),

    'list-ready-beads': (call) =>
      answer(call, call.query.sort ?? 'ready', (city) => allOf([READY, ...readyQuery(call.query, rigsOf(city))])),

    'list-hook': ({ query: asker, city }) => {
      const index = indexOf(city)
      const ended = asker.session_id !== undefined && city.ended(asker.session_id)
      const found = ended ? [] : candidates(city, asker, clock.now())
      const items = found.flatMap(({ id, tier }) => city.beads.load([id]).map((bead) => ({ ...wireBead(bead), tier })))
      return ok({ items, total: items.length }, index)
    },

    'claim-hook': async ({ body, city }) => {
      const { drain_ack = false, session_id: session } = body
      const taken =
        session !== undefined && city.ended(session)
          ? ({ action: 'drain', reason: 'stale_session' } as const)
          : await city.store.db.write((tx) => claimNext(tx, city, body, clock.now()))
      const acknowledged = drain_ack && taken.action === 'drain' ? { drain_acknowledged: true } : {}
      return ok({ ...taken, ...acknowledged }, indexOf(city))
    },
  } satisfies Partial<Handlers<typeof beadOperations, WorkCity>>
}

/** Another text for another page: whoever waits is not woken for beads that it does not show. */
const versionOf = ({ items, ...found }: ReturnType<typeof readRecords>): string =>
  JSON.stringify([found, items.map(({ id, revision, is_blocked }) => [id, revision, is_blocked])])

const indexOf = ({ store }: WorkCity) => ({ 'X-SVC-Index': String(store.log.head) })
const rigsOf = (city: WorkCity) => (name: string) => city.config().rigs.some((rig) => rig.name === name)
const identitiesOf =
  ({ people }: WorkCity) =>
  (name: string) => [...new Set([name, ...people.identities(name)])]
