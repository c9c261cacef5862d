/** Where usage meets sessions, what they work on, their logs and the configuration. */
import type { UsageReport } from '../../contract/sessions/usage.ts'
import { usageLogOf } from '../../harnesses/all.ts'
import type { Tx } from '../../kernel/database.ts'
import { beads } from '../../modules/beads/family.ts'
import { beadOfTurn, type TurnTime } from '../../modules/beads/store/held.ts'
import { config as configuration } from '../../modules/config/family.ts'
import { sessions } from '../../modules/sessions/family.ts'
import type { UsagePort } from '../../modules/sessions/record/ports.ts'
import type { SessionRecord } from '../../modules/sessions/record/record.ts'
import { type UsageContext, usage } from '../../modules/usage/family.ts'
import type { Spender } from '../../modules/usage/ledger.ts'
import type { Running } from './running.ts'
import { transcriptsIn } from './transcripts.ts'

export function usageContext(city: Running): UsageContext {
  const { store, host } = city
  const { config } = configuration.of(city)
  const all = () => sessions.find(city)?.sessions
  return {
    db: store.db,
    events: store.log,
    clock: host.clock,
    log: host.log,
    prices: () => config.current().pricing,
    settings: () => config.current().budget,
    work: (id, { at, began }) => {
      const turn = began === undefined ? turnAround(city, id, at) : { at, since: began, until: at }
      const bead = beadOfTurn(store.db, id, turn)
      const convoy = bead === undefined ? undefined : convoyOf(city, bead)
      return { ...(bead === undefined ? {} : { bead }), ...(convoy === undefined ? {} : { convoy }) }
    },
    spender: (id) => {
      const session = all()?.store.byId(id)
      return session === undefined ? undefined : spenderOf(session)
    },
    read: (id, reached, settled) => transcriptsIn(city)?.spent(id, reached, settled) ?? Promise.resolve(undefined),
    awake: () =>
      (all()?.store.open() ?? [])
        .filter(({ desired }) => desired === 'running' || desired === 'asleep')
        .map(({ id }) => id),
    worked: (tx, id, at) => all()?.worked(tx, id, at),
    limited: (tx, id, { source, message }) => all()?.limit(tx, id, { source, message }),
    suspend: (tx, id) => all()?.suspendFor(tx, id, 'budget'),
    unread: () => unreadIn(city),
    resolve: (handle) => sessions.of(city).sessions.resolve(handle).id,
    counted: (id) => all()?.store.byId(id)?.launch?.uncounted !== true,
    running: () => (all()?.store.open() ?? []).filter(({ process }) => process).map(({ id }) => id),
    names: (by, keys) => namesIn(city, by, keys),
    onReconfigured: (listener) => config.onChange(listener),
  }
}

/** What sessions tell usage, and ask of it; nothing where the city is being closed. */
export function usagePort(city: Running): UsagePort {
  const all = () => usage.find(city)?.usage
  return {
    of: (id) => all()?.of(id),
    grew: (id) => all()?.grew(id),
    turn: async (id, key) => all()?.turn(id, key),
    report: (tx: Tx, session: SessionRecord, report: UsageReport) =>
      all()?.report(tx, spenderOf(session), report) ?? false,
  }
}

const spenderOf = (session: SessionRecord): Spender => ({
  id: session.id,
  agent: session.kind === 'agent' ? session.template : session.agent,
  actor: session.agent,
  logged: isLogged(session),
  runs: session.process,
  provider: session.provider,
  model: session.options['model'] || undefined,
})

/** Its protocol, or a log that its harness keeps, counts its turns. */
function isLogged({ runtime, launch, provider }: SessionRecord): boolean {
  if (runtime === 'acp') return true
  return launch?.uncounted !== true && usageLogOf(launch?.ready.family ?? provider) !== undefined
}

/** The turn that was under way at that time: from the last message before it to the first one behind it. */
function turnAround({ store, host }: Running, sessionId: string, at: number): TurnTime {
  const times = store.db
    .all(
      `SELECT finished_at FROM session_deliveries WHERE session_id = ? AND state = 'delivered' AND finished_at IS NOT NULL
         ORDER BY seq DESC LIMIT ${NEWEST_DELIVERIES}`,
      sessionId,
    )
    .map((row) => Number(row.finished_at))
  return {
    at,
    since: times.find((time) => time <= at),
    until: times.findLast((time) => time > at) ?? Math.max(at, host.clock.now()),
  }
}

const NEWEST_DELIVERIES = 50

/** Closed ones that are older were read before they were closed, or a little later. */
const NEWEST_CLOSED = 1_000

const unreadIn = ({ store }: Running): readonly string[] =>
  store.db
    .all(
      `SELECT id FROM sessions WHERE generation > 0 AND (state <> 'closed' OR id IN (
         SELECT id FROM sessions ORDER BY created_at DESC, id DESC LIMIT ${NEWEST_CLOSED}))`,
    )
    .map(({ id }) => String(id))

/** The oldest open convoy that it is a member of. */
function convoyOf(city: Running, bead: string): string | undefined {
  const row = city.store.db.get(
    `SELECT c.id FROM beads AS c WHERE c.issue_type = 'convoy' AND c.status <> 'closed' AND c.id IN (
       SELECT issue_id FROM bead_deps WHERE depends_on_id = ? AND type = 'tracks'
       UNION SELECT parent FROM beads WHERE id = ?)
     ORDER BY c.created_at, c.id LIMIT 1`,
    bead,
    bead,
  )
  return row === undefined ? undefined : String(row.id)
}

function namesIn(city: Running, by: string, keys: readonly string[]): ReadonlyMap<string, string> {
  if (by === 'session') {
    const { store } = sessions.of(city).sessions
    return new Map(
      keys.flatMap((key): [string, string][] => {
        const session = store.byId(key)
        return session === undefined ? [] : [[key, session.alias ?? session.agent]]
      }),
    )
  }
  if (by !== 'bead' && by !== 'convoy') return new Map()
  const titles = beads
    .of(city)
    .beads.load(keys.filter((key) => key !== ''))
    .map(({ id, title }) => [id, title] as const)
  return new Map([...titles, ['', 'no bead']])
}
