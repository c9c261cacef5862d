/**
 * The sessions of one running city: their store, their actors, their reconciler.
 *
 * X1  One actor per session that is not closed or whose process may still run; made and dropped with its record.
 * X2  At the start of a city every process that may run is taken over before anything is started; what does not answer in
 *     time is looked for in the background.
 * X3  `stop` ends every process (reason `city-stop`), dependants first; `release` leaves every one running (decision 24).
 * X4  What carries a token of this city and is no session's process is ended.
 */
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { SessionReportRequest } from '../../../contract/sessions/reports.ts'
import type { SessionResponse } from '../../../contract/sessions/session-model.ts'
import type { Tx } from '../../../kernel/database.ts'
import { deadline } from '../../../kernel/deadline.ts'
import { Due } from '../../../kernel/due.ts'
import { Problem, problem } from '../../../kernel/problem.ts'
import type { Answer } from '../../../runtimes/process/runtime.ts'
import { SessionActor } from '../actor/actor.ts'
import { takesMessages } from '../actor/evidence.ts'
import { liftLimit, limitSession } from '../actor/limits.ts'
import type { BUDGET, DriftKind, Want } from '../actor/reconcile.ts'
import { type ActorDeps, SUPERVISOR } from '../actor/scene.ts'
import { Slots } from '../actor/slots.ts'
import { Launcher } from '../launch/launcher.ts'
import { type NewSession, newSession } from '../launch/new-session.ts'
import { Deliveries } from '../queue/deliveries.ts'
import { DigestQueue } from '../queue/digests.ts'
import { Offers } from '../queue/offers.ts'
import { Holders } from '../queue/stalls.ts'
import { Waits } from '../queue/waits.ts'
import { findAgent } from '../record/config-view.ts'
import { mayMove } from '../record/lifecycle.ts'
import { isConfigured, resolveSession, sessionId } from '../record/names.ts'
import { type Policy, policyOf } from '../record/policy.ts'
import type { LiveFacts, Screen, SessionsDeps, ToldLimit } from '../record/ports.ts'
import type { SessionRecord } from '../record/record.ts'
import type { Report } from '../record/report.ts'
import { SessionStore } from '../record/store.ts'
import { takeMissed } from '../reports/missed.ts'
import { Permissions } from '../reports/permissions.ts'
import { checkRun, evidenceOf, keepReport } from '../reports/reports.ts'
import { Retention } from '../retention/retention.ts'
import { depths, holdOf, limitReached, mayRun, missingDependencies, type Plan, type Wanted } from './desire.ts'
import { Patrol } from './patrol.ts'
import { sessionView } from './views.ts'

const ADOPTION_MS = 500
const STOP_MS = 25_000
/** Who watched is taken to be there a little longer (decision 68). */
const ATTENDED_MS = 60_000
const AS_DESIRED: Want = { run: 'as-desired' }

export class Sessions {
  readonly store: SessionStore
  readonly deliveries: Deliveries
  readonly waits: Waits
  readonly digests: DigestQueue
  readonly permissions: Permissions
  readonly #deps: SessionsDeps
  readonly #actors = new Map<string, SessionActor>()
  readonly #listeners = new Map<string, Set<() => void>>()
  readonly #everyone = new Set<() => void>()
  readonly #requests = new Map<string, Set<() => void>>()
  /** Those who watch, and who left a moment ago. */
  readonly #watchers = new Map<string, number>()
  readonly #watching = new Map<string, number>()
  readonly #hearing = new Map<string, Promise<void>>()
  readonly #stops: (() => void)[] = []
  readonly #ends = new Set<() => void>()
  readonly #actorDeps: ActorDeps
  readonly #patrol: Patrol
  readonly #holders: Holders
  readonly #offers: Offers
  readonly retention: Retention
  #wants: Plan['wants'] = new Map()
  #open: readonly SessionRecord[] | undefined
  #closed = false
  /** A wait whose time is up ends then, and not at the next look. */
  readonly #expiring: Due

  constructor(deps: SessionsDeps) {
    const { db, log, requests } = deps.store
    const { clock, random, work } = deps
    this.#deps = deps
    this.store = new SessionStore({ db, log, clock, view: (record) => this.view(record) })
    const sessions = this.store
    this.deliveries = new Deliveries({
      db,
      log,
      requests,
      clock,
      sessions,
      random,
      requestEnded: (id) => this.#ended(id),
      digests: () => this.digests,
    })
    const { deliveries } = this
    this.digests = new DigestQueue({
      db,
      clock,
      sessions,
      port: deps.digests,
      add: (tx, session, draft) => deliveries.add(tx, session, draft, SUPERVISOR.actor),
      make: (tx, identity) => this.#makeFor(tx, identity),
      takesNudges: (session) => this.takesNudges(session),
      poke: (id) => this.#actors.get(id)?.poke(),
      log: deps.log,
      failed: (error) => deps.log.warn({ city: deps.city.name, err: error }, 'reminders not looked at'),
    })
    const open = (ids: readonly string[]) => work.beads(ids).open
    this.waits = new Waits({ db, log, clock, sessions, deliveries, random, open })
    const { waits } = this
    this.#expiring = new Due({
      name: 'waits of sessions',
      db,
      clock,
      log: deps.log,
      next: () => waits.nextExpiry()?.expires_at,
      work: () => {
        const next = waits.nextExpiry()
        return next === undefined ? undefined : db.write((tx) => waits.check(tx, next.id))
      },
      adjust: () => db.write((tx) => waits.bringBack(tx)),
    })
    this.permissions = new Permissions({ ...deps, tell: (id, report) => this.#actors.get(id)?.reported(report) })
    this.#actorDeps = {
      ...deps,
      sessions,
      deliveries,
      launcher: new Launcher(deps),
      slots: new Slots(() => this.policy.startsAtOnce),
      policy: () => this.policy,
      want: (id) => this.#wantOf(id),
      drift: (session) => this.#drift(session),
      blocked: (session) => this.#blocked(session),
      attended: (id) => this.#attended(id),
      attached: (id) => this.#watching.has(id),
      permissions: this.permissions,
      hearMissed: (session) => this.#hearMissed(session),
      closeOut: (tx, session) => this.closeOut(tx, session),
      starts: (tx, session, how) => this.digests.sessionStarts(tx, session, how),
      changed: (id) => this.#changed(id),
      rests: () => this.#patrol.poke(),
    }
    this.#holders = new Holders({
      ...deps,
      deliveries,
      live: (id) => this.live(id),
      need: (tx, id) => sessions.need(tx, id),
      takesNudges: (session) => this.takesNudges(session),
    })
    this.#offers = new Offers({
      ...deps,
      deliveries,
      live: (id) => this.live(id),
      need: (tx, id) => sessions.need(tx, id),
      takesNudges: (session) => this.takesNudges(session),
      takesMessages: (session, { activity }) => takesMessages(activity, session),
      poke: () => this.#patrol.poke(),
    })
    this.retention = new Retention({
      ...deps,
      sessions,
      deliveries,
      policy: () => this.policy,
      root: this.directory(''),
      forget: (tx, id) => this.remove(tx, id, 'supervisor', 'retention'),
    })
    this.#patrol = new Patrol({
      ...deps,
      sessions,
      policy: () => this.policy,
      kept: (session) => this.#attended(session.id) || this.live(session.id)?.pending !== undefined,
      spokenTo: ({ id, queued }) => queued > 0 && deliveries.isSpokenTo(id),
      create: (wanted) => this.#createWanted(wanted),
      planned: (plan) => this.#planned(plan),
      offer: async () => {
        await this.digests.look()
        await this.#offers.look(this.#openNow())
      },
      look: () => this.#look(),
    })
    this.#stops.push(this.store.onChange((record, id) => this.#recordChanged(record, id)))
  }

  // --- The city starts and ends ------------------------------------------------------------------------------------

  /** X2: takes over what runs. */
  async adopt(): Promise<void> {
    for (const session of [...this.store.open(), ...this.store.leftovers()]) this.#join(session)
    const running = [...this.#actors.values()].filter((actor) => this.store.byId(actor.id)?.process === true)
    for (const actor of running) actor.poke()
    using limit = deadline(this.#deps.clock, ADOPTION_MS, 'adoption goes on in the background')
    await Promise.race([Promise.all(running.map((actor) => actor.settled())), untilAborted(limit.signal)])
  }

  /** Starts what is wanted, and goes on doing so. */
  async start(): Promise<void> {
    this.#stops.push(
      this.#deps.store.log.onCommit((events) =>
        this.#sawEvents(events.map(({ type, subject }) => ({ type, subject }))),
      ),
    )
    await this.#patrol.start()
    for (const actor of this.#actors.values()) actor.poke()
    void this.#endOrphans()
    await Promise.all(this.waits.pending().map((id) => this.#checkWait(id)))
    await this.#expiring.start()
    await this.digests.start()
  }

  /** X3: every process ends; who waits for an answer gets one. How many ran. */
  async stop({ force }: { readonly force: boolean }): Promise<number> {
    await this.#patrol.stop()
    const running = this.store.open().filter(({ process }) => process)
    await this.#deps.store.db
      .write((tx) => {
        this.deliveries.failOpenRequests(tx, 'city_stopped', 'the city stopped before the message was taken')
      })
      .catch((error: unknown) => this.#deps.log.warn({ city: this.#deps.city.name, err: error }, 'stop not recorded'))
    for (const actor of this.#actors.values()) actor.hold()
    await this.#endInOrder(force ? 0 : this.policy.shutdownMs)
    this.#close()
    for (const actor of this.#actors.values()) actor.release()
    return running.length
  }

  /** Who depends on others ends before them; who is slow keeps them waiting for its share of the time and no longer. */
  async #endInOrder(graceMs: number): Promise<void> {
    const { clock, config } = this.#deps
    const depth = depths(config())
    const waves = Map.groupBy(this.#actors.values(), ({ id }) => depth(this.store.byId(id)?.template ?? ''))
    const order = [...waves].sort(([a], [b]) => b - a)
    for (const [, wave] of order) {
      using share = deadline(clock, STOP_MS / order.length, 'the sessions did not end in time')
      const ending = Promise.all(wave.map((actor) => actor.shutDown(graceMs)))
      await Promise.race([ending, untilAborted(share.signal)])
    }
  }

  /** X3: the supervisor ends, agents run on. */
  release(): void {
    this.#close()
    for (const actor of this.#actors.values()) actor.release()
  }

  /** A suspension or the work has changed. */
  poke(): void {
    this.#patrol.poke()
  }

  /** The configuration has changed: what runs may differ from it, or, where it is `soft`, takes it as its own. */
  reconfigured(soft: boolean): void {
    if (this.#closed) return
    this.#patrol.reconfigured()
    if (soft) void this.#rebase()
    else for (const actor of this.#actors.values()) actor.poke()
  }

  /** Ids of running sessions of these agents that may be restarted without asking anybody (`reconcile.ts`, R4). */
  restartable(agents: ReadonlySet<string>): readonly string[] {
    return this.#openNow()
      .filter(({ kind, template, process }) => process && kind === 'agent' && agents.has(template))
      .filter(({ id, pinned }) => !pinned && !this.#attended(id))
      .map(({ id }) => id)
  }

  async #rebase(): Promise<void> {
    const { config, fingerprints, store, log, city } = this.#deps
    const running = this.#openNow().filter(({ process, kind }) => process && kind === 'agent')
    await store.db
      .write((tx) => {
        for (const { id, template } of running) {
          const agent = findAgent(config(), template)
          if (agent !== undefined)
            this.store.change(tx, id, { fingerprints: fingerprints(agent) }, { actor: 'supervisor' })
        }
      })
      .catch((error: unknown) => log.warn({ city: city.name, err: error }, 'configuration not taken over'))
  }

  get patrolAgeMs(): number {
    return this.#patrol.ageMs
  }

  get policy(): Policy {
    return policyOf(this.#deps.config())
  }

  /** Calls when these sessions are no longer looked after: the city has stopped, or the supervisor ends. */
  onEnd(listener: () => void): () => void {
    if (this.#closed) listener()
    else this.#ends.add(listener)
    return () => this.#ends.delete(listener)
  }

  #close(): void {
    this.#closed = true
    for (const end of [...this.#ends]) end()
    this.#ends.clear()
    void this.#patrol.stop()
    this.retention.close()
    this.#offers.close()
    void this.digests.close()
    void this.#expiring.stop()
    for (const stop of this.#stops.splice(0)) stop()
  }

  // --- Reading -----------------------------------------------------------------------------------------------------

  view(session: SessionRecord, lines?: number): SessionResponse {
    const screen = lines === undefined ? undefined : this.screen(session.id, lines)
    return sessionView(session, this.live(session.id), this.#deps, screen?.lines.join('\n'))
  }

  /** As planned last; a pin that was taken off since holds nobody any more. */
  #wantOf(id: string): Want {
    const want = this.#wants.get(id) ?? AS_DESIRED
    const wasPinned = want.run === 'yes' && want.cause === 'pin'
    return wasPinned && this.store.byId(id)?.pinned !== true ? AS_DESIRED : want
  }

  live(id: string): LiveFacts | undefined {
    return this.#actors.get(id)?.facts()
  }

  actor(id: string): SessionActor | undefined {
    return this.#actors.get(id)
  }

  screen(id: string, lines: number): Screen | undefined {
    return this.#actors.get(id)?.screen(lines)
  }

  /** What `{id}` means; 404 also for a configured session that has never been. */
  resolve(id: string, closed = true): SessionRecord {
    const found = resolveSession(id, this.store, { configured: this.#isConfigured(), closed })
    if (found === undefined) throw problem('session-not-found', `the session ${id} has not been started yet`)
    return found
  }

  /** Suspends it for a reason of ours, until a person wakes it: what runs is ended by its actor. */
  suspendFor(tx: Tx, id: string, reason: typeof BUDGET): void {
    const session = this.store.need(tx, id)
    if (session.desired === 'suspended' || session.desired === 'closed') return
    if (session.process || !mayMove(session.state, 'suspend'))
      this.store.change(tx, id, { desired: 'suspended', drain_reason: reason }, SUPERVISOR)
    else this.store.move(tx, id, 'suspend', { ...SUPERVISOR, reason, fields: { desired: 'suspended' } })
  }

  /** Its provider limits it. */
  limit(tx: Tx, id: string, told: ToldLimit): void {
    limitSession(tx, id, told, { ...this.#actorDeps, holdMs: this.policy.crash.rateLimitHoldMs })
  }

  /** Its provider limits it no more, as far as who says so knows. */
  liftLimit(tx: Tx, id: string, reason: 'report' | 'wake'): void {
    liftLimit(tx, this.store.need(tx, id), reason, this.#actorDeps)
  }

  /** A turn of it has succeeded. */
  worked(tx: Tx, id: string, at: number): void {
    const session = this.store.need(tx, id)
    if (session.limited_at !== undefined && at > session.limited_at) liftLimit(tx, session, 'output', this.#actorDeps)
  }

  /** Whether `handle` is this session and no other. */
  isMeant(handle: string, id: string): boolean {
    try {
      return this.resolve(handle).id === id
    } catch {
      return false
    }
  }

  /** The same as `resolve`; a configured session that is not there is made (sheet 04 §2.3). */
  async resolveOrMake(id: string): Promise<SessionRecord> {
    const found = resolveSession(id, this.store, { configured: this.#isConfigured(), closed: true })
    if (found !== undefined) return found
    const { config } = this.#deps
    const named = config().named_sessions.find((one) => one.identity === id)
    const agent = named?.agent === undefined ? undefined : findAgent(config(), named.agent)
    if (named === undefined || agent === undefined) throw problem('session-not-found', `there is no session ${id}`)
    await this.#createWanted({ agent, origin: 'named', named: id, name: id, cause: 'message' }, 'asleep')
    return this.resolve(id)
  }

  /** Resolves when `done` holds of the record, or says so of its being gone; rejects with the signal's reason. */
  async until(id: string, done: (session: SessionRecord | undefined) => boolean, signal: AbortSignal): Promise<void> {
    if (done(this.store.byId(id))) return
    signal.throwIfAborted()
    await new Promise<void>((resolve, reject) => {
      const stop = this.store.onChange((_, changed) => {
        if (changed === id && done(this.store.byId(id))) finish(resolve)
      })
      const onAbort = () => finish(() => reject(signal.reason))
      signal.addEventListener('abort', onAbort, { once: true })
      function finish(settle: () => void) {
        stop()
        signal.removeEventListener('abort', onAbort)
        settle()
      }
    })
  }

  /** Resolves when the request has ended. */
  async requestEnd(requestId: string, signal: AbortSignal): Promise<void> {
    const ended = () => this.#deps.store.requests.get(requestId)?.finished_at !== undefined
    if (ended()) return
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    const waiting = this.#requests.get(requestId) ?? new Set()
    this.#requests.set(requestId, waiting)
    waiting.add(resolve)
    const giveUp = () => reject(signal.reason)
    if (signal.aborted) giveUp()
    signal.addEventListener('abort', giveUp)
    try {
      await promise
    } finally {
      // A signal that lives as long as the supervisor would keep one listener for each request there ever was.
      signal.removeEventListener('abort', giveUp)
      waiting.delete(resolve)
      if (waiting.size === 0) this.#requests.delete(requestId)
    }
  }

  /** Calls when there is more output of the session, or anything about it has changed. */
  listen(id: string, wake: () => void): () => void {
    const known = this.#listeners.get(id) ?? new Set()
    this.#listeners.set(id, known)
    known.add(wake)
    return () => {
      known.delete(wake)
      if (known.size === 0) this.#listeners.delete(id)
    }
  }

  /** Calls when any session came, went or changed its record. */
  listenAll(wake: () => void): () => void {
    this.#everyone.add(wake)
    return () => this.#everyone.delete(wake)
  }

  // --- Steering ----------------------------------------------------------------------------------------------------

  /** A new session, waiting for its start. */
  insert(tx: Tx, draft: NewSession, actor: string, id = this.newId()): SessionRecord {
    const { config, clock, render } = this.#deps
    const context = { config: config(), now: clock.now(), render }
    const record = newSession(id, draft, context)
    return this.store.insert(tx, record, { actor, reason: draft.cause })
  }

  newId(): string {
    return sessionId(this.#deps.random)
  }

  /** What ends with a session, in the write that closes it (decision 71). */
  closeOut(tx: Tx, session: SessionRecord): void {
    this.digests.sessionClosed(tx, session)
    this.deliveries.failAll(tx, session.id, 'session_closed', 'the session was closed', 'supervisor')
    this.waits.cancelAll(tx, session.id, 'supervisor')
    this.#deps.worktrees.close(tx, session.id)
    this.#deps.chat.closed(tx, session)
    const held = this.#deps.work.release(tx, session, 'session_closed')
    if (held.length === 0) return
    this.#deps.store.log.append(tx, {
      type: 'session.stranded',
      actor: 'supervisor',
      subject: session.id,
      payload: {
        session_id: session.id,
        session_name: session.session_name,
        template: session.template,
        work_bead_ids: [...held],
      },
    })
  }

  /** Ends a session for good: at once where nothing of it runs, else its actor ends the process first. */
  close(tx: Tx, id: string, actor: string, reason: string): void {
    const session = this.store.need(tx, id)
    if (session.state === 'closed') return
    if (session.process) this.store.change(tx, id, { desired: 'closed', drain_reason: reason }, { actor })
    else this.closeOut(tx, this.store.move(tx, id, 'close', { actor, reason, fields: { drain_reason: undefined } }))
  }

  /** Forgets a closed session, with its runs. */
  remove(tx: Tx, id: string, actor: string, reason: string): void {
    const session = this.store.need(tx, id)
    if (session.state !== 'closed' || session.process)
      throw problem('session-conflict', `session ${id} is ${session.state}: only a closed one can be deleted`)
    this.deliveries.remove(tx, id)
    this.waits.remove(tx, id)
    this.permissions.forget(tx, id, Number.MAX_SAFE_INTEGER)
    this.store.remove(tx, id, { actor, reason })
    tx.afterCommit(() => {
      void rm(this.directory(id), { recursive: true, force: true }).catch((error: unknown) =>
        this.#deps.log.warn({ session: id, err: error }, 'runs of a deleted session not removed'),
      )
    })
  }

  directory(id: string): string {
    return join(this.#deps.city.path, '.svc', 'runtime', 'sessions', id)
  }

  /** The log of its harness tells by which key this run can be resumed. */
  foundConversation({ id, generation }: SessionRecord, conversationId: string): void {
    this.#deps.store.db
      .write((tx) => {
        const now = this.store.byId(id)
        if (now === undefined || now.generation !== generation || now.conversation_id !== undefined || now.fresh) return
        this.store.change(tx, id, { conversation_id: conversationId }, SUPERVISOR)
      })
      .catch((error: unknown) => this.#deps.log.warn({ session: id, err: error }, 'conversation not recorded'))
  }

  /** Keeps what a run tells, and believes what it says of itself; 409 where that run is over. */
  async report(id: string, report: SessionReportRequest, actor: string): Promise<void> {
    const { store, usage, clock } = this.#deps
    const evidence = evidenceOf(report, clock.now())
    await store.db.write((tx) => {
      const session = this.store.need(tx, id)
      checkRun(session, report)
      keepReport(tx, session, report, { store: this.store, usage, limits: this, note: { actor } })
    })
    if (evidence === undefined) return
    this.#reported(id, evidence)
    await this.noted()
  }

  /** What was observed until now is written: who is told of it finds its events. */
  noted(): Promise<void> {
    return this.#deps.store.db.write(() => undefined)
  }

  /** One after the other for each session: what one has taken another one must not forget. */
  #hearMissed(session: SessionRecord): Promise<void> {
    const { id, launch } = session
    if (launch === undefined) return Promise.resolve()
    const hearing = (this.#hearing.get(id) ?? Promise.resolve()).then(() => this.#hearIn(id, launch.directory))
    this.#hearing.set(id, hearing)
    return hearing.finally(() => {
      if (this.#hearing.get(id) === hearing) this.#hearing.delete(id)
    })
  }

  /** Never rejects. Reports that could not be written stay for the next time; those that are refused are gone. */
  async #hearIn(id: string, directory: string): Promise<void> {
    try {
      const missed = await takeMissed(directory)
      for (const report of missed?.reports ?? [])
        await this.report(id, report, SUPERVISOR.actor).catch((error: unknown) => {
          if (!(error instanceof Problem) || error.status >= 500) throw error
          this.#deps.log.debug({ session: id, err: error }, 'missed report left out')
        })
      await missed?.forget()
    } catch (error) {
      this.#deps.log.warn({ session: id, err: error }, 'missed reports not heard; they are heard later')
    }
  }

  /** The end of its turn ends what its tools asked for; until then one that asks is in its turn, whatever else it tells. */
  #reported(id: string, report: Report): void {
    if (report.activity === 'idle') this.permissions.drop(id)
    const { pending: _, ...others } = report
    this.#actors.get(id)?.reported(this.permissions.isOpen(id) ? others : report)
  }

  /** Somebody watches; call the result when they leave. For so long it is not restarted as if nobody did. */
  attend(id: string, graceMs = ATTENDED_MS): () => void {
    count(this.#watchers, id, 1)
    count(this.#watching, id, 1)
    this.#actors.get(id)?.sawPerson()
    this.#changed(id)
    let left = false
    return () => {
      if (left) return
      left = true
      count(this.#watching, id, -1)
      this.#actors.get(id)?.sawPerson()
      this.#changed(id)
      const forget = () => {
        count(this.#watchers, id, -1)
        this.#actors.get(id)?.poke()
      }
      if (graceMs === 0) forget()
      else this.#deps.clock.after(graceMs, forget)
    }
  }

  /** Ends its process by force; false where that did not work, or there is none. */
  async kill(id: string): Promise<boolean> {
    const actor = this.#actors.get(id)
    if (actor === undefined) return false
    return actor.kill().then(
      () => true,
      () => false,
    )
  }

  answer(id: string, requestId: string, answer: Answer, signal: AbortSignal): Promise<boolean> {
    return this.#actors.get(id)?.answer(requestId, answer, signal) ?? Promise.resolve(false)
  }

  /** Why it may not run now, whatever is asked for. */
  hold(session: SessionRecord): string | undefined {
    const { config, suspended } = this.#deps
    const input = { config: config(), citySuspended: suspended.city(), rigSuspended: suspended.rig }
    return holdOf(session, input)?.says
  }

  /** Why one more session of this kind may not be made now. */
  limitFor(template: string): string | undefined {
    const newest = { id: '', template, created_at: Number.MAX_SAFE_INTEGER }
    return limitReached(this.#deps.config(), newest, this.#openNow())
  }

  // --- Actors ------------------------------------------------------------------------------------------------------

  #join(session: SessionRecord): SessionActor {
    const actor = new SessionActor(session, this.#actorDeps)
    this.#actors.set(session.id, actor)
    return actor
  }

  #recordChanged(record: SessionRecord | undefined, id: string): void {
    this.#open = undefined
    if (record?.process !== true) this.#deps.accessEnded(id)
    if (record?.process !== true) this.permissions.drop(id)
    if (this.#closed) return
    const over = record === undefined || (record.state === 'closed' && !record.process)
    const actor = this.#actors.get(id)
    if (over) {
      this.#actors.delete(id)
      void actor?.end()
    } else (actor ?? this.#join(record)).poke()
    this.#changed(id)
    for (const wake of this.#everyone) wake()
    this.#patrol.poke()
  }

  #changed(id: string): void {
    for (const wake of this.#listeners.get(id) ?? []) wake()
  }

  #ended(requestId: string): void {
    const waiting = this.#requests.get(requestId)
    this.#requests.delete(requestId)
    for (const wake of waiting ?? []) wake()
  }

  #attended(id: string): boolean {
    return this.#watchers.has(id)
  }

  #drift(session: SessionRecord): DriftKind {
    const agent = session.kind === 'agent' ? findAgent(this.#deps.config(), session.template) : undefined
    const before = session.fingerprints
    if (agent === undefined || before === undefined) return 'none'
    const now = this.#deps.fingerprints(agent)
    if (now.launch !== before.launch || now.provision !== before.provision) return 'restart'
    if (now.prompt !== before.prompt && agent.restart_on_prompt_change) return 'restart'
    return now.reapply === before.reapply ? 'none' : 'reapply'
  }

  #blocked(session: SessionRecord): string | undefined {
    const { config, clock, suspended } = this.#deps
    if (suspended.city()) return 'suspended'
    const settings = config()
    const open = this.#openNow()
    const limit = limitReached(settings, session, open)
    if (limit !== undefined) return 'max-sessions'
    if (clock.now() >= session.state_since + this.policy.dependencyMs) return undefined
    const missing = missingDependencies(findAgent(settings, session.template), open, this.#wants)
    return missing.length === 0 ? undefined : 'depends-on'
  }

  /** Sessions that are not closed; read once per change. */
  get open(): readonly SessionRecord[] {
    return this.#openNow()
  }

  #openNow(): readonly SessionRecord[] {
    this.#open ??= this.store.open()
    return this.#open
  }

  // --- The reconciler ----------------------------------------------------------------------------------------------

  #planned({ wants }: Plan): void {
    const before = this.#wants
    this.#wants = wants
    for (const [id, actor] of this.#actors) {
      const [old, now] = [before.get(id) ?? AS_DESIRED, wants.get(id) ?? AS_DESIRED]
      // A limit or a dependency may have given way.
      if (now.run !== old.run || this.store.byId(id)?.state === 'start-pending') actor.poke()
    }
  }

  async #createWanted(wanted: Wanted, state: 'start-pending' | 'asleep' = 'start-pending'): Promise<void> {
    const { agent, named, name } = wanted
    await this.#deps.store.db.write((tx) => {
      // T3: looked for in the write that makes it.
      const there =
        named === undefined
          ? tx.get("SELECT 1 FROM sessions WHERE pool = ? AND agent = ? AND state <> 'closed'", agent.identity, name)
          : tx.get("SELECT 1 FROM sessions WHERE named = ? AND state <> 'closed'", named)
      if (there === undefined) this.#insertWanted(tx, wanted, state)
    })
  }

  #insertWanted(tx: Tx, wanted: Wanted, state: 'start-pending' | 'asleep'): SessionRecord {
    const { agent, origin, named, name, cause } = wanted
    const draft: NewSession = {
      kind: 'agent',
      template: agent.identity,
      origin,
      owner: name,
      state,
      cause,
      ...(named === undefined ? { pool: agent.identity } : { named, alias: named }),
    }
    return this.insert(tx, draft, 'supervisor')
  }

  /** The session of a configured agent that is to be told something; undefined: it may not run, or takes no reminders. */
  #makeFor(tx: Tx, identity: string): SessionRecord | undefined {
    const { config, suspended } = this.#deps
    const settings = config()
    const named = settings.named_sessions.find((one) => one.identity === identity && !one.disabled)
    const agent = findAgent(settings, named?.agent ?? identity)
    if (agent === undefined || (named === undefined && agent.scales)) return undefined
    if (!mayRun(agent, { config: settings, citySuspended: suspended.city(), rigSuspended: suspended.rig }))
      return undefined
    if (!this.agentTakesNudges(agent.identity)) return undefined
    const wanted: Wanted = {
      agent,
      name: identity,
      cause: 'message',
      ...(named === undefined ? { origin: 'ephemeral' } : { origin: 'named', named: identity }),
    }
    return this.#insertWanted(tx, wanted, 'asleep')
  }

  #sawEvents(events: readonly { readonly type: string; readonly subject: string | undefined }[]): void {
    if (this.#closed) return
    const beads = events.flatMap(({ type, subject }) =>
      type.startsWith('bead.') && subject !== undefined ? [subject] : [],
    )
    if (beads.length > 0) {
      for (const id of this.waits.touched(beads)) void this.#checkWait(id)
      this.#patrol.poke()
    }
    if (events.some(({ type }) => type.startsWith('wait.'))) this.#expiring.changed()
    if (events.some(({ type }) => WORTH_A_ROUND.some((prefix) => type.startsWith(prefix)))) this.#patrol.poke()
  }

  async #checkWait(id: string): Promise<void> {
    await this.#deps.store.db
      .write((tx) => this.waits.check(tx, id))
      .catch((error: unknown) => this.#deps.log.warn({ wait: id, err: error }, 'wait not looked at'))
  }

  /** Slow looks, one after the other: whose leases run on, which waits are over. */
  async #look(): Promise<void> {
    const { work } = this.#deps
    const sessions = this.#openNow()
    await this.#holders.look(sessions, this.policy.stall.holderMs)
    await work.renew(sessions.filter(({ id, process }) => process && this.live(id)?.liveness !== 'dead'))
    for (const id of this.waits.pending()) await this.#checkWait(id)
    for (const session of sessions) if (session.process) await this.#hearMissed(session)
  }

  /** Decision 51: a program whose prompt is left out is told nothing of ours at all. */
  takesNudges({ kind, template, provider: name }: SessionRecord): boolean {
    const { config, provider } = this.#deps
    const agent = kind === 'agent' ? findAgent(config(), template) : undefined
    return (agent?.prompt_mode ?? provider(agent?.provider ?? name)?.spec.prompt_mode) !== 'omit'
  }

  /** The same of what is configured under this identity, whether it has a session or not. */
  agentTakesNudges(identity: string): boolean {
    const { config, provider } = this.#deps
    const settings = config()
    const named = settings.named_sessions.find((one) => one.identity === identity)
    const agent = findAgent(settings, named?.agent ?? identity)
    return agent !== undefined && (agent.prompt_mode ?? provider(agent.provider)?.spec.prompt_mode) !== 'omit'
  }

  /** X4; what belongs to a session is left to its actor. */
  async #endOrphans(): Promise<void> {
    const { orphans, log, city } = this.#deps
    try {
      for (const { sessionId: id, token } of await orphans.list()) {
        if (this.#closed) return
        const session = this.store.byId(id)
        if (session?.process === true && session.token === token) continue
        if (this.#deps.worktrees.runs(token)) continue
        log.warn({ session: id }, 'orphan of an earlier run is ended')
        await orphans.kill(token).catch((error: unknown) => log.error({ session: id, err: error }, 'orphan not ended'))
      }
    } catch (error) {
      log.warn({ city: city.name, err: error }, 'orphans not looked for')
    }
  }

  #isConfigured() {
    const { named_sessions: named } = this.#deps.config()
    return isConfigured(new Set(named.filter(({ disabled }) => !disabled).map(({ identity }) => identity)))
  }
}

const WORTH_A_ROUND = [
  'config.reloaded',
  'rig.suspended',
  'rig.resumed',
  'city.suspended',
  'city.resumed',
  'agent.',
] as const

const untilAborted = (signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    if (signal.aborted) resolve()
    else signal.addEventListener('abort', () => resolve(), { once: true })
  })

function count(counts: Map<string, number>, key: string, by: number): void {
  const now = (counts.get(key) ?? 0) + by
  if (now > 0) counts.set(key, now)
  else counts.delete(key)
}
