/** The background work of each running city: what is behind the 202s of its families. */
import type { AsyncAcceptedResponse } from '../contract/base/accepted.ts'
import type { RequestOperation } from '../contract/event-types.ts'
import { accepted, type Reply } from '../kernel/call.ts'
import type { Clock } from '../kernel/clock.ts'
import type { Tx } from '../kernel/database.ts'
import type { IdempotencyClaim } from '../kernel/idempotency.ts'
import type { Ids } from '../kernel/ids.ts'
import { type Job, Jobs } from '../kernel/jobs.ts'
import type { Logger } from '../kernel/log.ts'
import { problem } from '../kernel/problem.ts'
import type { Store } from '../kernel/store.ts'
import type { City } from '../modules/cities/city.ts'
import type { PhaseHook } from '../modules/cities/worker.ts'

export interface CityJobsDeps {
  readonly clock: Clock
  readonly log: Logger
  readonly ids: Ids
  /** The jobs of all families for one city. */
  readonly jobsOf: (city: City) => readonly Job[]
}

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

export class CityJobs {
  readonly #deps: CityJobsDeps
  readonly #running = new Map<string, { readonly jobs: Jobs; readonly store: Store }>()

  constructor(deps: CityJobsDeps) {
    this.#deps = deps
  }

  /** Takes up what a crash left as soon as the families of the city are there. */
  get hook(): PhaseHook {
    return {
      phase: 'starting_agents',
      run: async (city) => {
        const { store } = city
        if (store === undefined) return
        const { clock, log, jobsOf } = this.#deps
        const jobs = new Jobs({ store, clock, log, jobs: jobsOf(city) })
        this.#running.set(city.name, { jobs, store })
        await jobs.resume()
      },
      stop: async (city) => {
        const entry = this.#running.get(city.name)
        this.#running.delete(city.name)
        await entry?.jobs.stop('city_stopped', 'the city stopped before the request was done')
      },
    }
  }

  /** Accepts a request about a running city and answers its 202; the job starts with the commit. */
  launch(cityName: string, { check, ...input }: LaunchInput): Promise<Reply<AsyncAcceptedResponse>> {
    const accept = (tx: Tx, body: AsyncAcceptedResponse) => {
      check?.(tx, body.request_id)
      return body
    }
    return this.launchAnswering(cityName, { ...input, accept })
  }

  /** The same with an answer that says more. */
  launchAnswering<B>(
    cityName: string,
    { operation, subject, input, claim, accept }: AnsweringInput<B>,
  ): Promise<Reply<B>> {
    const entry = this.#running.get(cityName)
    if (entry === undefined) throw problem('city-not-found', `city not found or not running: ${cityName}`)
    const { jobs, store } = entry
    const requestId = this.#deps.ids.requestId()
    const cursor = String(store.log.head)
    return Promise.resolve(
      store.keys.once(claim, () =>
        store.db.write((tx) => {
          const body = accept(tx, { request_id: requestId, event_cursor: cursor })
          jobs.accept(tx, {
            id: requestId,
            operation,
            city: cityName,
            eventCursor: cursor,
            input,
            ...(subject === undefined ? {} : { subject }),
          })
          return store.keys.remember(tx, claim, accepted(body))
        }),
      ),
    )
  }

  /** The supervisor ends: jobs are cut, and taken up at the next start. */
  async closeAll(): Promise<void> {
    const entries = [...this.#running.values()]
    this.#running.clear()
    await Promise.all(entries.map(({ jobs }) => jobs.close()))
  }
}
