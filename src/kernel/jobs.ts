/**
 * Background work behind the 202s of one store: each accepted request has a job that owns it until its terminal event.
 *
 * J1  A request is in the ledger before its job starts; a crash in between starts it at the next boot.
 * J2  The last write of a job commits its result and its terminal event together.
 * J3  Every job has a deadline; one that cannot be resumed after a crash ends as `interrupted`.
 */

import type { AsyncAcceptedResponse } from '../contract/base/accepted.ts'
import { type ConfigIssue, MAX_FAILURE_ISSUES } from '../contract/base/issue.ts'
import { EVENT_TYPES, REQUEST_OPERATIONS, type RequestOperation } from '../contract/event-types.ts'
import { accepted, type Reply } from './call.ts'
import type { Clock } from './clock.ts'
import { contained } from './contained.ts'
import type { Tx } from './database.ts'
import { rejection } from './deadline.ts'
import type { EventDraft } from './event-log.ts'
import type { IdempotencyClaim } from './idempotency.ts'
import type { Ids } from './ids.ts'
import type { Logger } from './log.ts'
import { Problem } from './problem.ts'
import type { AcceptedRequest, UnfinishedRequest } from './requests.ts'
import type { Store } from './store.ts'

/** Why a job failed, in the words of `request.failed`. */
export class JobFailure extends Error {
  readonly code: string
  /** All that is wrong with files, where they are the reason. */
  readonly issues: readonly ConfigIssue[]

  constructor(code: string, message: string, issues: readonly ConfigIssue[] = []) {
    super(message)
    this.name = 'JobFailure'
    this.code = code
    this.issues = issues
  }
}

/**
 * The last write of a job: changes what is to be changed, and says how it ended. Undefined: the write that did what was
 * asked for has ended the request already.
 */
export type Finish<Op extends RequestOperation = RequestOperation> = (tx: Tx) => ResultOf<Op> | undefined
type ResultOf<Op extends RequestOperation> = Extract<EventDraft, { readonly type: `request.result.${Op}` }>

export interface Job<Op extends RequestOperation = RequestOperation> {
  readonly operation: Op
  readonly deadlineMs: number
  /** True: run again from the start after a crash. Must then be idempotent. */
  readonly resumable: boolean
  run(request: UnfinishedRequest, signal: AbortSignal): Promise<Finish<Op>>
  /** Removes what was kept until its good end was on disk. A failure changes nothing: that request has ended. */
  ended?(request: UnfinishedRequest): void
}

/** The jobs of a city; throws where something that a city accepts has none, or more than one. */
export function allJobs(jobs: readonly Job[]): readonly Job[] {
  for (const name of REQUEST_OPERATIONS) {
    const owners = jobs.filter(({ operation }) => operation === name).length
    const wanted = EVENT_TYPES[`request.result.${name}`].log === 'city' ? 1 : 0
    if (owners !== wanted) throw new Error(`${name} has ${owners} jobs, not ${wanted}`)
  }
  return jobs
}

/** What a 202 needs: the request, its job's input, and what is to be written with it. */
export interface LaunchInput {
  readonly operation: RequestOperation
  readonly subject?: string
  /** What the job needs to go on after a crash; never a secret. */
  readonly input: object
  readonly claim: IdempotencyClaim | undefined
  /** Refuses, or changes rows, in the write that accepts. */
  readonly check?: (tx: Tx, requestId: string) => void
}

export interface AnsweringInput<B> extends Omit<LaunchInput, 'check'> {
  /** As `check`; and what is answered. */
  readonly accept: (tx: Tx, accepted: AsyncAcceptedResponse) => B
}

export interface JobsDeps {
  readonly city: string
  readonly ids: Pick<Ids, 'requestId'>
  readonly store: Store
  readonly clock: Clock
  readonly log: Logger
  readonly jobs: readonly Job[]
  /** Requests that no job here is for are left alone: their jobs are not there yet. */
  readonly leavesOthers?: boolean
}

export class Jobs {
  readonly #deps: JobsDeps
  readonly #running = new Map<string, { readonly aborter: AbortController; readonly done: Promise<void> }>()
  #closed = false

  constructor(deps: JobsDeps) {
    this.#deps = deps
  }

  /** Accepts a request and answers its 202; the job starts with the commit. */
  launch({ check, ...input }: LaunchInput): Promise<Reply<AsyncAcceptedResponse>> {
    return this.launchAnswering({
      ...input,
      accept: (tx, body) => {
        check?.(tx, body.request_id)
        return body
      },
    })
  }

  /** The same with an answer that says more. */
  async launchAnswering<B>({ operation, subject, input, claim, accept }: AnsweringInput<B>): Promise<Reply<B>> {
    const { store, ids, city } = this.#deps
    const id = ids.requestId()
    const cursor = String(store.log.head)
    const named = subject === undefined ? {} : { subject }
    return store.keys.once(claim, () =>
      store.db.write((tx) => {
        const body = accept(tx, { request_id: id, event_cursor: cursor })
        this.accept(tx, { id, operation, city, eventCursor: cursor, input, ...named })
        return store.keys.remember(tx, claim, accepted(body))
      }),
    )
  }

  /** Accepts a request inside a write; its job starts when that has committed. */
  accept(tx: Tx, request: AcceptedRequest): void {
    this.#deps.store.requests.accept(tx, request)
    const { id, operation, city, subject, input } = request
    const createdAt = this.#deps.clock.now()
    tx.afterCommit(() => this.#launch({ id, operation, city, subject, input: { ...input }, createdAt }))
  }

  /** Takes up what a crash left, once after the store was opened. */
  async resume(): Promise<void> {
    for (const request of this.#unfinished()) {
      const job = this.#jobOf(request.operation)
      if (job?.resumable === true) this.#launch(request)
      else await this.#fail(request, new JobFailure('interrupted', 'the supervisor ended before the request did'))
    }
  }

  /** Ends every job as failed: its city stops or leaves. */
  async stop(code: string, message: string): Promise<void> {
    const running = [...this.#running.values()]
    for (const { aborter } of running) aborter.abort(new JobFailure(code, message))
    await Promise.all(running.map(({ done }) => done))
    // Its file vanished: there is no ledger to end them in, and none to read.
    if (this.#deps.store.db.closed) return
    for (const request of this.#unfinished()) await this.#fail(request, new JobFailure(code, message))
  }

  /** The supervisor ends: jobs are cut, and taken up at the next start. */
  async close(): Promise<void> {
    this.#closed = true
    const running = [...this.#running.values()]
    for (const { aborter } of running) aborter.abort(new JobFailure('interrupted', 'the supervisor is shutting down'))
    await Promise.all(running.map(({ done }) => done))
  }

  /** Resolves when no job runs. */
  async idle(): Promise<void> {
    while (this.#running.size > 0) await Promise.all([...this.#running.values()].map(({ done }) => done))
  }

  #unfinished(): readonly UnfinishedRequest[] {
    const { store, leavesOthers } = this.#deps
    const all = store.requests.unfinished()
    return leavesOthers === true ? all.filter(({ operation }) => this.#jobOf(operation) !== undefined) : all
  }

  #jobOf(operation: RequestOperation): Job | undefined {
    return this.#deps.jobs.find((job) => job.operation === operation)
  }

  #launch(request: UnfinishedRequest): void {
    if (this.#closed || this.#running.has(request.id)) return
    const aborter = new AbortController()
    const done = this.#work(request, aborter).finally(() => this.#running.delete(request.id))
    this.#running.set(request.id, { aborter, done })
  }

  async #work(request: UnfinishedRequest, aborter: AbortController): Promise<void> {
    const { store, clock, log } = this.#deps
    const job = this.#jobOf(request.operation)
    const cancel = clock.after(job?.deadlineMs ?? 0, () =>
      aborter.abort(new JobFailure('timeout', `${request.operation} took too long`)),
    )
    try {
      if (job === undefined) throw new JobFailure('internal_error', `nothing handles ${request.operation}`)
      await store.db.write((tx) => store.requests.markRunning(tx, request.id))
      const finish = await Promise.race([job.run(request, aborter.signal), rejection(aborter.signal)])
      await store.db.write((tx) => {
        const event = finish(tx)
        if (event !== undefined && !store.requests.finish(tx, event))
          throw new Error(`request ${request.id} has ended before`)
      })
      contained(
        () => job.ended?.(request),
        (err) => log.warn({ request: request.id, err }, 'what a request kept until its end not removed'),
      )
    } catch (error) {
      if (!this.#closed) await this.#fail(request, error)
      else log.info({ request: request.id, operation: request.operation }, 'request left for the next start')
    } finally {
      cancel()
    }
  }

  /** Failing is retried while the disk refuses: a request without an end is what must not be. */
  async #fail(request: UnfinishedRequest, error: unknown): Promise<void> {
    const { store, log } = this.#deps
    const failure = toFailure(error)
    const subject = request.subject ?? request.city
    log.warn(
      { request: request.id, operation: request.operation, code: failure.code, error: failure.message },
      'request failed',
    )
    try {
      await store.db.write((tx) => {
        store.requests.finish(tx, {
          type: 'request.failed',
          actor: 'supervisor',
          ...(subject === '' ? {} : { subject }),
          payload: {
            request_id: request.id,
            operation: request.operation,
            error_code: failure.code,
            error_message: failure.message,
            ...issuesIn(failure),
          },
        })
      })
    } catch (refused) {
      if (store.db.closed) return
      log.error({ request: request.id, err: refused }, 'end of a request not recorded')
      if (!this.#closed) this.#deps.clock.after(1_000, () => this.#fail(request, failure).catch(() => {}))
    }
  }
}

const issuesIn = ({ issues }: JobFailure) =>
  issues.length === 0 ? {} : { issues: issues.slice(0, MAX_FAILURE_ISSUES).map((issue) => ({ ...issue })) }

function toFailure(error: unknown): JobFailure {
  if (error instanceof JobFailure) return error
  if (error instanceof Problem)
    return new JobFailure(error.code.replaceAll('-', '_'), error.message, error.options.issues)
  return new JobFailure('internal_error', error instanceof Error ? error.message : String(error))
}
