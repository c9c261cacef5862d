/**
 * The orders of one running city: each is looked at when something may have changed for it, and at no other time.
 *
 * O1  Nothing is begun but in a write that looks again at what the order waits for: state, runs and decision are one.
 * O2  What sets an order off is remembered with the run that it begins: a crash neither loses it nor begins it twice.
 * O3  One order is looked at once at a time; what comes meanwhile makes it be looked at again.
 * O4  No command runs for a look, but the check of a condition at its interval, or by hand.
 */
import type { CatalogOrder } from '../../automation/catalog.ts'
import type { OrderDefinition } from '../../automation/order.ts'
import type { Value } from '../../automation/plan.ts'
import { verdictOf } from '../../automation/verdict.ts'
import type { OrderCheck } from '../../contract/automation/orders.ts'
import { isoTime, nextTurn } from '../../kernel/clock.ts'
import type { Database, Tx } from '../../kernel/database.ts'
import type { StoredEvent } from '../../kernel/event-log.ts'
import { randomHex } from '../../kernel/ids.ts'
import type { Logger } from '../../kernel/log.ts'
import { unknownName } from '../../kernel/near-names.ts'
import { Problem, problem } from '../../kernel/problem.ts'
import type { Swept } from '../../kernel/retention.ts'
import {
  isRunnable,
  type OrderSettings,
  type ResolvedOrder,
  type ResolvedOrders,
  resolveOrders,
} from './definitions/definition.ts'
import { causeOf, MAX_CHAIN } from './runs/causes.ts'
import {
  begin,
  type Cause,
  ended,
  endOfExec,
  endOfMolecule,
  type FiringDeps,
  failToBegin,
  skip,
} from './runs/firing.ts'
import type { ExecEnded, MoleculeEnded, OrderCatalog, Suspension } from './runs/ports.ts'
import { allRunning, countRunning, liveRuns, nthNewest, pruneRuns, type RunRow, startRun } from './runs/rows.ts'
import {
  allStates,
  changeState,
  findState,
  forgetState,
  insertState,
  type OrderState,
  type StateChange,
} from './runs/states.ts'
import { Alarm } from './triggers/alarm.ts'
import { Backlog } from './triggers/backlog.ts'
import { type Facts, MAX_REFUSALS, type Outlook, outlookOf } from './triggers/outlook.ts'
import { Times } from './triggers/times.ts'

export interface OrdersDeps extends FiringDeps {
  readonly db: Database
  readonly logger: Logger
  readonly catalog: OrderCatalog
  readonly settings: () => OrderSettings
  readonly suspension: Suspension
  readonly onReconfigured: (listener: () => void) => () => void
}

/** One order as it is at the moment. */
export interface SeenOrder {
  readonly order: ResolvedOrder
  readonly state: OrderState
  readonly enabled: boolean
  readonly suspended: boolean
  readonly running: number
  readonly outlook: Outlook
  readonly evaluatedAt: number | undefined
  /** The log keeps events for it that it would have let go of by now. */
  readonly holdsLog: boolean
  /** It has passed by events of a chain of orders that set each other off. */
  readonly endsChain: boolean
}

const SUPERVISOR = 'supervisor'
const HOUR_MS = 3_600_000
/** Looked at together; the writes that they lead to are then one. */
const LOOKS_AT_ONCE = 50
const RETRY_MS = 10_000
/** The alarm's name for another look at the files; no order can be called so. */
const FILES = ''
/** What is remembered of an order that is gone. */
const STATES_KEPT_MS = 30 * 86_400_000
/** What resuming and suspending changes for orders. */
const SUSPENSIONS: ReadonlySet<string> = new Set(['city.suspended', 'city.resumed', 'rig.suspended', 'rig.resumed'])
/** Behind the time limit of a check: until its end is recorded. */
const CHECK_GRACE_MS = 10_000

export class Orders {
  readonly #deps: OrdersDeps
  readonly #alarm: Alarm
  readonly #times = new Times()
  readonly #backlog: Backlog
  readonly #closing = new AbortController()
  readonly #evaluated = new Map<string, number>()
  readonly #withEvents = new Set<string>()
  /** Orders that have ended a chain of orders. */
  readonly #chained = new Set<string>()
  readonly #checks = new Map<string, (end: ExecEnded) => void>()
  readonly #queue = new Set<string>()
  #byType: ReadonlyMap<string, readonly string[]> = new Map()
  #resolved: ResolvedOrders | undefined
  #working: Promise<void> | undefined
  #syncing: Promise<void> | undefined
  #isStale = false
  #watchedSince = Number.POSITIVE_INFINITY
  #unlisten: readonly (() => void)[] = []

  constructor(deps: OrdersDeps) {
    this.#deps = deps
    const { db, events, clock, logger: log } = deps
    this.#alarm = new Alarm({ db, clock, log, rings: (due) => this.#ring(due), jumped: () => this.#jumped() })
    this.#backlog = new Backlog(events, (scoped, event) => this.#isPassedBy(scoped, event))
  }

  // --- Life --------------------------------------------------------------------------------------------------------

  /** Takes up what an earlier run of the supervisor has left, and begins to look. */
  async start(): Promise<void> {
    const { clock, catalog, onReconfigured, events } = this.#deps
    await this.#endLost()
    await this.#sync()
    this.#watchedSince = clock.now()
    this.#unlisten = [
      catalog.onChange(() => this.#changed()),
      onReconfigured(() => this.#changed()),
      events.onCommit((all) => this.#committed(all)),
    ]
    await this.#alarm.start()
    this.#wakeAll()
  }

  /** What runs goes on; nothing begins any more. */
  async stop(): Promise<void> {
    for (const unlisten of this.#unlisten) unlisten()
    this.#unlisten = []
    this.#closing.abort(new Error('the city stops'))
    await this.#alarm.stop()
    await this.#syncing
    await this.#working
    this.#backlog.leaveAll()
  }

  /** A run or a check of which nothing is there any more would be under way for ever. */
  async #endLost(): Promise<void> {
    const { db, execs, molecules } = this.#deps
    const lost = liveRuns(db).filter(({ id, action, molecule_id: molecule }) =>
      action === 'exec' ? !execs.lives(id) : molecule === undefined || !molecules.lives(molecule),
    )
    const unheard = [...allStates(db).values()].filter(({ check_exec: id }) => id !== undefined && !execs.lives(id))
    if (lost.length === 0 && unheard.length === 0) return
    await db.write((tx) => {
      for (const { id } of lost) ended(this.#deps, tx, id, { status: 'failed', error: 'what it had started is gone' })
      for (const { scoped } of unheard) changeState(tx, scoped, { check_exec: undefined })
    })
  }

  // --- Reading -----------------------------------------------------------------------------------------------------

  get resolved(): ResolvedOrders {
    this.#resolved ??= this.#resolve()
    return this.#resolved
  }

  /** The order that is meant: a scoped name, or a name that only one has; `rig` says which of several. */
  need(name: string, rig?: string): ResolvedOrder {
    const { byScoped } = this.resolved
    const exact = byScoped.get(rig === undefined ? name : `${name}:rig:${rig}`)
    if (exact !== undefined) return exact
    const [only, ...others] = [...byScoped.values()].filter(({ file }) => file.name === name && rig === undefined)
    if (only === undefined)
      throw rig === undefined
        ? unknownName('order-not-found', 'order', name, byScoped.keys())
        : problem('order-not-found', `there is no order ${name} for the rig ${rig}`)
    if (others.length === 0) return only
    const names = [only, ...others].map(({ scoped }) => scoped)
    throw problem('ambiguous-order', `several rigs have an order ${name}: say one of ${names.join(', ')}`)
  }

  all(): readonly SeenOrder[] {
    const { db } = this.#deps
    const states = allStates(db)
    const running = allRunning(db)
    return [...this.resolved.byScoped.values()].map((order) =>
      this.#see(order, states.get(order.scoped), running.get(order.scoped) ?? 0),
    )
  }

  one(order: ResolvedOrder): SeenOrder {
    const { db } = this.#deps
    return this.#see(order, findState(db, order.scoped), countRunning(db, order.scoped))
  }

  #see(order: ResolvedOrder, stored: OrderState | undefined, running: number): SeenOrder {
    const state = stored ?? this.#fresh(order)
    const facts = this.#factsOf(order, state, running)
    const evaluatedAt = state.evaluated_at ?? this.#evaluated.get(order.scoped)
    return {
      order,
      state,
      enabled: facts.enabled,
      suspended: facts.suspended,
      running,
      outlook: outlookOf(facts),
      evaluatedAt,
      holdsLog: this.#backlog.holdsLog(order.scoped),
      endsChain: this.#chained.has(order.scoped),
    }
  }

  #factsOf(order: ResolvedOrder, state: OrderState, running: number): Facts {
    const { clock, suspension } = this.#deps
    const { definition, file, scoped } = order
    const now = clock.now()
    const enabled = state.enabled ?? order.enabled
    const runnable = isRunnable(order)
    const suspended = suspension.of(file.rig)
    return {
      now,
      enabled,
      runnable,
      untrusted: file.untrusted,
      suspended,
      overlap: definition?.overlap ?? 'skip',
      running,
      state,
      trigger: definition?.trigger,
      // To work them out is dear: not for those that do not wait for them.
      times:
        runnable && enabled && !suspended
          ? this.#times.of(order, state.since, now)
          : { next: undefined, open: undefined },
      watchedSince: this.#watchedSince,
      hasEvents: this.#withEvents.has(scoped),
      restsUntil: this.#withEvents.has(scoped) ? this.#restsUntil(scoped, definition?.trigger, now) : undefined,
    }
  }

  /** An order that sets itself off by way of others would run for ever. */
  #restsUntil(scoped: string, trigger: OrderDefinition['trigger'] | undefined, now: number): number | undefined {
    if (trigger?.kind !== 'event') return undefined
    const first = nthNewest(this.#deps.db, scoped, trigger.max_per_hour)
    return first === undefined || first > now ? undefined : first + HOUR_MS
  }

  /** Its own events, and those at the end of a chain of orders that set each other off, begin no run. */
  #isPassedBy(scoped: string, event: StoredEvent): boolean {
    const cause = causeOf(this.#deps.db, this.#deps, event)
    if (cause === undefined || cause.scoped === scoped) return cause !== undefined
    if (cause.depth < MAX_CHAIN) return false
    if (!this.#chained.has(scoped))
      this.#deps.logger.warn({ order: scoped, event: event.seq }, 'orders set each other off: the chain ends here')
    this.#chained.add(scoped)
    return true
  }

  // --- What the files say ------------------------------------------------------------------------------------------

  #resolve(): ResolvedOrders {
    const { catalog, settings } = this.#deps
    const files: readonly CatalogOrder[] = catalog.orders()
    return resolveOrders(files, settings())
  }

  #changed(): void {
    this.#isStale = true
    this.#syncing ??= this.#syncWhileStale().finally(() => {
      this.#syncing = undefined
    })
  }

  async #syncWhileStale(): Promise<void> {
    while (this.#isStale && !this.#closing.signal.aborted) {
      this.#isStale = false
      try {
        await this.#sync()
        this.#wakeAll()
      } catch (error) {
        this.#deps.logger.warn({ err: error }, 'orders not read')
        this.#isStale = true
        return this.#alarm.set(FILES, this.#deps.clock.now() + RETRY_MS)
      }
    }
  }

  /** Notes what is new, what is gone, and what begins to count from now on. */
  async #sync(): Promise<void> {
    const { db } = this.#deps
    const resolved = this.#resolve()
    this.#resolved = resolved
    const orders = [...resolved.byScoped.values()]
    this.#times.keep(new Set(resolved.byScoped.keys()))
    const changes = this.#changesOf(allStates(db), orders)
    if (changes.length > 0)
      await db.write((tx) => {
        for (const change of changes) change(tx)
      })
    this.#listenFor(orders)
  }

  #changesOf(states: ReadonlyMap<string, OrderState>, orders: readonly ResolvedOrder[]): readonly ((tx: Tx) => void)[] {
    const known = this.resolved.byScoped
    const fromFiles = orders.flatMap((order) => {
      const state = states.get(order.scoped)
      if (state === undefined) return [(tx: Tx) => insertState(tx, this.#fresh(order))]
      const change = this.#noticed(order, state)
      return Object.keys(change).length === 0 ? [] : [(tx: Tx) => changeState(tx, order.scoped, change)]
    })
    const gone = [...states.values()].filter((state) => !state.gone && !known.has(state.scoped))
    return [
      ...fromFiles,
      ...gone.map(
        ({ scoped }) =>
          (tx: Tx) =>
            changeState(tx, scoped, { gone: true }),
      ),
    ]
  }

  #fresh(order: ResolvedOrder): OrderState {
    const { clock, events } = this.#deps
    return {
      scoped: order.scoped,
      enabled: undefined,
      active: order.enabled,
      gone: false,
      trigger: triggerKey(order),
      since: clock.now(),
      seen_seq: events.head,
      cooled_from: undefined,
      failures: 0,
      failed_at: undefined,
      refusals: 0,
      refused_at: undefined,
      check_exec: undefined,
      checked_at: undefined,
      evaluated_at: undefined,
      error: undefined,
      holds: false,
    }
  }

  /** What differs from what was last seen. An order that cannot be read says nothing: it goes on where it was. */
  #noticed(order: ResolvedOrder, state: OrderState): StateChange {
    const { clock, events } = this.#deps
    const same = state.enabled === order.enabled
    const active = same ? order.enabled : (state.enabled ?? order.enabled)
    const key = order.definition === undefined ? state.trigger : triggerKey(order)
    const anew = state.gone || (active && !state.active) || key !== state.trigger
    return {
      ...(same ? { enabled: undefined } : {}),
      ...(active === state.active ? {} : { active }),
      ...(state.gone ? { gone: false } : {}),
      ...(key === state.trigger ? {} : { trigger: key, error: undefined, check_exec: undefined }),
      // Something in the files has changed: what refused to begin may begin now, and has all its tries again.
      ...(state.refusals === 0 ? {} : { refused_at: undefined, refusals: 0 }),
      ...(anew ? { since: clock.now(), seen_seq: events.head, ...UNTROUBLED } : {}),
    }
  }

  /** Who is to look at which events. */
  #listenFor(orders: readonly ResolvedOrder[]): void {
    const byType = new Map<string, string[]>()
    const listening = new Set<string>()
    for (const { scoped, definition } of orders) {
      if (definition?.trigger.kind !== 'event') continue
      const { on } = definition.trigger
      byType.set(on, [...(byType.get(on) ?? []), scoped])
      listening.add(scoped)
    }
    // An order whose file is not valid for a moment keeps its place; one that is gone, or waits for no events, has none.
    const broken = orders.flatMap(({ scoped, definition }) => (definition === undefined ? [scoped] : []))
    this.#backlog.keep(new Set([...listening, ...broken]))
    for (const known of [this.#withEvents, this.#chained])
      for (const scoped of known) if (!this.resolved.byScoped.has(scoped)) known.delete(scoped)
    this.#byType = byType
  }

  // --- What makes an order be looked at ----------------------------------------------------------------------------

  #committed(events: readonly StoredEvent[]): void {
    const types = new Set(events.map(({ type }) => type))
    for (const type of types) {
      if (SUSPENSIONS.has(type)) this.#wakeAll()
      for (const pattern of patternsOf(type)) for (const scoped of this.#byType.get(pattern) ?? []) this.#wake(scoped)
    }
  }

  #ring(due: readonly string[]): void {
    for (const name of due) {
      if (name === FILES) this.#changed()
      else this.#wake(name)
    }
  }

  /** Times were worked out by another clock; none of them was waited for by this one. */
  #jumped(): void {
    this.#watchedSince = Math.min(this.#watchedSince, this.#deps.clock.now())
    this.#wakeAll()
  }

  #wakeAll(): void {
    for (const scoped of this.resolved.byScoped.keys()) this.#wake(scoped)
  }

  #wake(scoped: string): void {
    if (this.#closing.signal.aborted) return
    this.#queue.add(scoped)
    this.#working ??= this.#work().finally(() => {
      this.#working = undefined
      if (this.#queue.size > 0) this.#wakeNext()
    })
  }

  #wakeNext(): void {
    const [next] = this.#queue
    if (next !== undefined) this.#wake(next)
  }

  async #work(): Promise<void> {
    // Not in the middle of the commit that woke it.
    await nextTurn()
    while (this.#queue.size > 0 && !this.#closing.signal.aborted) {
      const together = [...this.#queue].slice(0, LOOKS_AT_ONCE)
      for (const scoped of together) this.#queue.delete(scoped)
      await Promise.all(together.map((scoped) => this.#lookSafely(scoped)))
      await nextTurn()
    }
  }

  async #lookSafely(scoped: string): Promise<void> {
    try {
      await this.#look(scoped)
    } catch (error) {
      if (this.#closing.signal.aborted) return
      this.#deps.logger.warn({ order: scoped, err: error }, 'order not looked at')
      this.#alarm.set(scoped, this.#deps.clock.now() + RETRY_MS)
    }
  }

  // --- Looking -----------------------------------------------------------------------------------------------------

  async #look(scoped: string): Promise<void> {
    const { db, clock } = this.#deps
    const order = this.resolved.byScoped.get(scoped)
    if (order === undefined) return this.#alarm.set(scoped, undefined)
    const state = findState(db, scoped)
    if (state === undefined) return
    await this.#setBack(state)
    const handed = await this.#eventsFor(order)
    this.#evaluated.set(scoped, clock.now())
    const { outlook } = this.one(order)
    if (outlook.kind === 'wait') {
      this.#alarm.set(scoped, outlook.at)
      return this.#forget(order)
    }
    this.#alarm.set(scoped, undefined)
    await this.#act(order, handed)
    this.#wake(scoped)
  }

  /** A clock that was set back must not make it wait for a time that is far away by now. */
  async #setBack(state: OrderState): Promise<void> {
    const { db, clock } = this.#deps
    const now = clock.now()
    const fields = ['since', 'cooled_from', 'failed_at', 'refused_at', 'checked_at'] as const
    const ahead = fields.filter((field) => (state[field] ?? 0) > now)
    if (ahead.length === 0) return
    await db.write((tx) => changeState(tx, state.scoped, Object.fromEntries(ahead.map((field) => [field, now]))))
  }

  /** A missed time that is too old to be caught up is not looked at again. */
  async #forget(order: ResolvedOrder): Promise<void> {
    const { db } = this.#deps
    const state = findState(db, order.scoped)
    if (state === undefined) return
    const { open } = this.#factsOf(order, state, 0).times
    if (open !== undefined) await db.write((tx) => changeState(tx, order.scoped, { since: open }))
  }

  /** What is there for an order that waits for events; it is looked at while a run is under way too, to be told. */
  async #eventsFor(order: ResolvedOrder): Promise<readonly StoredEvent[]> {
    const { db } = this.#deps
    const { scoped, definition } = order
    if (definition?.trigger.kind !== 'event') return []
    const state = findState(db, scoped)
    if (state === undefined || !(state.enabled ?? order.enabled)) {
      this.#backlog.leave(scoped)
      this.#withEvents.delete(scoped)
      return []
    }
    const found = await this.#backlog.oldest(scoped, definition.trigger, state.seen_seq, this.#closing.signal)
    if (found.length > 0) this.#withEvents.add(scoped)
    else this.#withEvents.delete(scoped)
    const seen = this.#backlog.unsaved(scoped)
    if (found.length === 0 && seen !== undefined) {
      await db.write((tx) => this.#saw(tx, scoped, seen))
    }
    return found
  }

  #saw(tx: Tx, scoped: string, seq: number): void {
    changeState(tx, scoped, { seen_seq: seq })
    tx.afterCommit(() => this.#backlog.decided(scoped, seq))
  }

  /** O1, O2. What refuses to be started is recorded in a write of its own. */
  async #act(order: ResolvedOrder, handed: readonly StoredEvent[]): Promise<void> {
    const { db } = this.#deps
    try {
      await db.write((tx) => this.#decide(tx, order, handed, undefined))
    } catch (error) {
      if (!(error instanceof Problem) || error.code === 'unavailable') throw error
      await db.write((tx) => this.#refused(tx, order, handed, error))
    }
  }

  /** What cannot begin for events takes none of them, until it has been tried often enough. */
  #refused(tx: Tx, order: ResolvedOrder, handed: readonly StoredEvent[], refusal: Problem): void {
    const { code, message: why } = refusal
    const { scoped, definition } = order
    const refusals = (findState(tx, scoped)?.refusals ?? 0) + 1
    if (definition?.trigger.kind !== 'event') {
      this.#decide(tx, order, handed, why)
      return
    }
    // What an event says does not get better; files may, so it has one more try.
    if (refusals >= (code === 'validation-failed' ? 2 : MAX_REFUSALS)) {
      const error = `${refusals} tries to begin came to nothing, its events are passed over: ${why}`
      this.#decide(tx, order, handed, error)
      return
    }
    changeState(tx, scoped, { refusals, refused_at: this.#deps.clock.now(), error: `it could not begin: ${why}` })
  }

  #decide(tx: Tx, order: ResolvedOrder, handed: readonly StoredEvent[], failure: string | undefined): void {
    const { definition, scoped } = order
    const state = findState(tx, scoped)
    if (state === undefined || definition === undefined || this.#closing.signal.aborted) return
    // Somebody has moved on since the events were read: they are read again.
    if ((handed[0]?.seq ?? Number.POSITIVE_INFINITY) <= state.seen_seq) return
    const outlook = outlookOf(this.#factsOf(order, state, countRunning(tx, scoped)))
    if (outlook.kind === 'wait') return
    if (outlook.kind === 'check') {
      this.#beginCheck(tx, order, definition)
      return
    }
    const cause: Cause = {
      source: 'tick',
      actor: SUPERVISOR,
      reason: reasonOf(outlook.reason, handed),
      ...(outlook.slot === undefined ? {} : { slot: outlook.slot }),
      handed,
    }
    if (outlook.kind === 'skip') skip(this.#deps, tx, order, definition, cause)
    else if (failure !== undefined) failToBegin(this.#deps, tx, order, definition, cause, failure)
    else begin(this.#deps, tx, order, definition, cause)
    if (outlook.slot !== undefined) changeState(tx, scoped, { since: outlook.slot })
    if (state.holds) changeState(tx, scoped, { holds: false })
    if (handed.length > 0 && (state.refusals > 0 || state.error !== undefined))
      changeState(tx, scoped, { refusals: 0, refused_at: undefined, error: failure })
    const last = handed.at(-1)
    if (last !== undefined) this.#saw(tx, scoped, last.seq)
  }

  // --- Conditions --------------------------------------------------------------------------------------------------

  #beginCheck(tx: Tx, order: ResolvedOrder, definition: OrderDefinition): void {
    const id = this.#startCheck(tx, order, definition)
    changeState(tx, order.scoped, { check_exec: id, checked_at: this.#deps.clock.now() })
  }

  #startCheck(tx: Tx, order: ResolvedOrder, { trigger, action, vars }: OrderDefinition): string {
    if (trigger.kind !== 'condition') throw new Error(`${order.scoped} has no check`)
    const id = `check-${randomHex(12)}`
    const own = action.kind === 'exec' ? action : { env: {}, inherit_env: [] }
    this.#deps.execs.begin(tx, {
      id,
      owner: 'condition',
      ref: order.scoped,
      command: trigger.check,
      rig: order.file.rig,
      file_dir: order.file.dir,
      order: order.scoped,
      run_id: undefined,
      timeout_ms: trigger.check_timeout,
      vars,
      env: own.env,
      inherit_env: own.inherit_env,
      stdin: { order: order.scoped, ...(order.file.rig === undefined ? {} : { rig: order.file.rig }), vars },
      idempotent: true,
    })
    return id
  }

  /** The end of a check, in the write that records it. Of one by hand only who waits for it hears. */
  checkEnded(tx: Tx, id: string, scoped: string, end: ExecEnded): void {
    const now = this.#deps.clock.now()
    const verdict = verdictOf(end)
    const state = findState(tx, scoped)
    const error = verdict === 'none' ? (endOfExec(end, 'check_timeout').error ?? 'no verdict') : undefined
    if (state?.check_exec === id) {
      const failures = verdict === 'pass' ? state.failures : verdict === 'fail' ? 0 : state.failures + 1
      changeState(tx, scoped, { check_exec: undefined, holds: verdict === 'pass', failures })
      if (error !== undefined) changeState(tx, scoped, { failed_at: now })
    }
    changeState(tx, scoped, { evaluated_at: now, error })
    tx.afterCommit(() => {
      this.#checks.get(id)?.(end)
      this.#wake(scoped)
    })
  }

  // --- By hand -----------------------------------------------------------------------------------------------------

  /** Begins a run now, whatever the trigger says; refuses while one is under way. */
  run(
    tx: Tx,
    order: ResolvedOrder,
    input: { readonly vars?: Readonly<Record<string, Value>>; readonly force: boolean; readonly actor: string },
  ): RunRow {
    const definition = this.#needRunnable(order)
    const { vars, force, actor } = input
    if (!force && definition.overlap === 'skip' && countRunning(tx, order.scoped) > 0)
      throw problem('conflict-wrong-state', `a run of ${order.scoped} is under way; \`force\` runs it all the same`)
    const cause: Cause = { source: 'api', actor, reason: 'run by hand', ...(vars === undefined ? {} : { vars }) }
    const run = begin(this.#deps, tx, order, definition, cause)
    if (run === undefined) throw new Error('a run by hand has no time that could be taken')
    tx.afterCommit(() => this.#wake(order.scoped))
    return run
  }

  /** Looks now; of a condition its check is run, and waited for. */
  async check(order: ResolvedOrder, signal: AbortSignal): Promise<OrderCheck> {
    const { db, clock } = this.#deps
    const definition = this.#needRunnable(order)
    if (definition.trigger.kind === 'condition') return this.#checkCondition(order, definition, signal)
    await this.#eventsFor(order)
    this.#evaluated.set(order.scoped, clock.now())
    const { outlook } = this.#see(order, findState(db, order.scoped), countRunning(db, order.scoped))
    return this.#checked(
      order,
      outlook.kind === 'due',
      outlook.reason,
      outlook.kind === 'wait' ? outlook.next : undefined,
    )
  }

  async #checkCondition(order: ResolvedOrder, definition: OrderDefinition, signal: AbortSignal): Promise<OrderCheck> {
    const { db, clock } = this.#deps
    if (definition.trigger.kind !== 'condition') throw new Error('no condition')
    const done = Promise.withResolvers<ExecEnded | undefined>()
    const late = clock.after(definition.trigger.check_timeout + CHECK_GRACE_MS, () => done.resolve(undefined))
    const gone = () => done.resolve(undefined)
    signal.addEventListener('abort', gone, { once: true })
    let id: string | undefined
    try {
      id = await db.write((tx) => {
        const started = this.#startCheck(tx, order, definition)
        tx.afterCommit(() => this.#checks.set(started, done.resolve))
        return started
      })
      const end = await done.promise
      if (end === undefined) return this.#checked(order, false, 'condition: its check goes on')
      return this.#judged(order, end)
    } finally {
      late()
      signal.removeEventListener('abort', gone)
      if (id !== undefined) this.#checks.delete(id)
    }
  }

  #judged(order: ResolvedOrder, end: ExecEnded): OrderCheck {
    const { exit_code: code, output } = end
    const verdict = verdictOf(end)
    const said = verdict === 'none' ? 'no verdict' : `exit ${code}`
    const passed = verdict === 'pass'
    const reason = passed ? `condition: its check passed (${said})` : `condition: its check did not pass (${said})`
    return {
      ...this.#checked(order, passed, reason),
      ...(code === undefined ? {} : { exit_code: code }),
      ...(output === '' ? {} : { output }),
      ...(verdict === 'none' ? { error: endOfExec(end, 'check_timeout').error ?? 'no verdict' } : {}),
    }
  }

  #checked({ scoped, file }: ResolvedOrder, due: boolean, reason: string, next?: number): OrderCheck {
    return {
      name: file.name,
      scoped_name: scoped,
      ...(file.rig === undefined ? {} : { rig: file.rig }),
      due,
      reason,
      ...(next === undefined ? {} : { next_run_at: isoTime(next) }),
      evaluated_at: isoTime(this.#deps.clock.now()),
    }
  }

  #needRunnable(order: ResolvedOrder): OrderDefinition {
    const { definition, issues, file, scoped } = order
    if (file.untrusted !== undefined)
      throw problem('untrusted-pack', `the pack ${file.untrusted} is to be trusted before ${scoped} runs`)
    if (definition !== undefined && issues.length === 0) return definition
    const [first] = issues
    const why = first === undefined ? '' : `: ${first.file}:${first.line}: ${first.key} ${first.message}`
    throw problem('conflict-config', `the order ${scoped} is not valid${why}`)
  }

  /** Says whether it is on; false: it was so already. */
  setEnabled(tx: Tx, order: ResolvedOrder, enabled: boolean, actor: string): boolean {
    const { events, clock } = this.#deps
    const { scoped, file } = order
    const state = findState(tx, scoped) ?? this.#inserted(tx, order)
    const before = state.enabled ?? order.enabled
    const said = enabled === order.enabled ? undefined : enabled
    if (before === enabled) return false
    const anew = enabled ? { since: clock.now(), seen_seq: events.head, ...UNTROUBLED } : {}
    changeState(tx, scoped, { enabled: said, active: enabled, ...anew })
    const payload = { name: file.name, scoped_name: scoped, ...(file.rig === undefined ? {} : { rig: file.rig }) }
    events.append(tx, { type: enabled ? 'order.enabled' : 'order.disabled', actor, subject: scoped, payload })
    tx.afterCommit(() => this.#wake(scoped))
    return true
  }

  #inserted(tx: Tx, order: ResolvedOrder): OrderState {
    const state = this.#fresh(order)
    insertState(tx, state)
    return state
  }

  // --- Ends --------------------------------------------------------------------------------------------------------

  /** A command that had to wait has a slot now. */
  execStarted(tx: Tx, runId: string): void {
    startRun(tx, runId, this.#deps.clock.now())
  }

  execEnded(tx: Tx, runId: string, end: ExecEnded): void {
    this.#over(tx, ended(this.#deps, tx, runId, endOfExec(end)))
  }

  /** In the write that resolves the molecule. */
  moleculeEnded(tx: Tx, runId: string, end: MoleculeEnded): void {
    this.#over(tx, ended(this.#deps, tx, runId, endOfMolecule(end)))
  }

  #over(tx: Tx, run: RunRow | undefined): void {
    if (run !== undefined) tx.afterCommit(() => this.#wake(run.scoped))
  }

  // --- Retention ---------------------------------------------------------------------------------------------------

  /** Takes the runs that are too old, of orders that did not run lately either, and what is left of orders that are gone. */
  async sweep(): Promise<Swept> {
    const { db, events, clock } = this.#deps
    let runs = 0
    let states = 0
    for (const [scoped, { since }] of allStates(db)) {
      if (this.#closing.signal.aborted) break
      for (let gone = 1; gone > 0; runs += gone) {
        gone = await db.write((tx) => pruneRuns(tx, scoped, clock.now(), events.agesCount()))
        if (gone > 0) await nextTurn()
      }
      const isOld = events.agesCount() && since < clock.now() - STATES_KEPT_MS
      if (isOld && !this.resolved.byScoped.has(scoped))
        states += await db.write((tx) => forgetState(tx, scoped, clock.now() - STATES_KEPT_MS))
    }
    return { order_runs: runs, order_states: states }
  }
}

/** Whatever happened before does not count any more. */
const UNTROUBLED = { failures: 0, failed_at: undefined, refusals: 0, refused_at: undefined, holds: false } as const

/** What has to be the same for times and events to count on. */
function triggerKey({ definition, zone }: ResolvedOrder): string {
  const trigger = definition?.trigger
  if (trigger?.kind === 'cron') return `cron ${zone} ${trigger.schedule}`
  if (trigger?.kind === 'event') return `event ${trigger.on} ${JSON.stringify(Object.entries(trigger.match).sort())}`
  return trigger?.kind ?? ''
}

function reasonOf(reason: string, handed: readonly StoredEvent[]): string {
  const last = handed.at(-1)
  return last === undefined ? reason : `event: ${handed.length} × ${last.type}`
}

/** The type itself, and every `x.*` that means it. */
function patternsOf(type: string): readonly string[] {
  const parts = type.split('.')
  return [type, ...parts.slice(0, -1).map((_, index) => `${parts.slice(0, index + 1).join('.')}.*`)]
}
