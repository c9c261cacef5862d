/**
 * Metrics in Prometheus text format. The hot path calls functions made once per operation: counts are plain numbers that
 * meet their labels at a scrape only.
 */
import { counter, type Family, gauge, Histogram, type Sample, TEXT_TYPE, toText } from './exposition.ts'
import { watchProcess } from './process-metrics.ts'

const REQUEST_BUCKETS_SEC = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5, 30, 120]
const COMMIT_BUCKETS_SEC = [0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5]

/** For the HTTP layer, which cannot import this module: a plain object of functions. */
export interface HttpMeters {
  /** Call once per operation; the returned function is for each of its answers. */
  requestMeter(method: string, operation: string): (status: number, seconds: number) => void
  /** A refusal; of what no operation was found for too. */
  refused(code: string): void
  streamOpened(): void
  streamClosed(): void
  proxyOpened(): void
  proxyClosed(): void
  /** A request that was for a service has its answer. */
  proxied(city: string, service: string, status: number): void
}

/** Asked at each scrape. */
export interface MetricReadings {
  citiesByStatus(): Readonly<Record<string, number>>
  requestsPending(): number
  /** Commands of checks, conditions and orders, by city. */
  execs(): Readonly<Record<string, { readonly running: number; readonly queued: number }>>
  /** The number of the last event of each log that is open. */
  heads(): Readonly<Record<string, number>>
}

export interface Metrics {
  readonly http: HttpMeters
  /** A durable commit took so long. */
  committed(seconds: number): void
  /** A hook or listener of a commit threw. */
  hookFailed(): void
  /** Work on rows that became due ended so. */
  due(name: string, outcome: 'done' | 'failed'): void
  /** A reaction passed over an event that it could not handle. */
  reactionSkipped(reaction: string): void
  /** A command of a check, a condition or an order ended so. */
  execEnded(kind: string): void
  readonly contentType: string
  scrape(): string
}

export function createMetrics(readings: MetricReadings): Metrics {
  const processFamilies = watchProcess()
  const commits = new Histogram(COMMIT_BUCKETS_SEC)
  const skipped: Record<string, number> = {}
  const ended: Record<string, number> = {}
  const due = { done: new Map<string, number>(), failed: new Map<string, number>() }
  let failedHooks = 0
  const { families: httpFamilies, ...http } = createHttpMeters()
  return {
    http,
    committed: (seconds) => commits.observe(seconds),
    hookFailed: () => {
      failedHooks++
    },
    due: (name, outcome) => {
      due[outcome].set(name, (due[outcome].get(name) ?? 0) + 1)
    },
    reactionSkipped: (reaction) => {
      skipped[reaction] = (skipped[reaction] ?? 0) + 1
    },
    execEnded: (kind) => {
      ended[kind] = (ended[kind] ?? 0) + 1
    },
    contentType: TEXT_TYPE,
    scrape: () =>
      toText([
        ...processFamilies(),
        ...ownFamilies(readings),
        counter('svc_reaction_events_skipped_total', 'Events passed over by a reaction that could not handle them.', {
          label: 'reaction',
          values: skipped,
        }),
        counter('svc_execs_ended_total', 'Commands of checks, conditions and orders that have ended, by how.', {
          label: 'kind',
          values: ended,
        }),
        counter('svc_due_works_total', 'Pieces of work on rows that became due, by what they are.', {
          label: 'due',
          values: Object.fromEntries(due.done),
        }),
        counter('svc_due_failures_total', 'Pieces of such work that failed and are tried again.', {
          label: 'due',
          values: Object.fromEntries(due.failed),
        }),
        counter('svc_commit_hook_failures_total', 'Hooks and listeners of commits that threw.', failedHooks),
        {
          name: 'svc_commit_seconds',
          help: 'Time of a durable commit.',
          type: 'histogram',
          samples: commits.samples(),
        },
        ...httpFamilies(),
      ]),
  }
}

function ownFamilies({ citiesByStatus, requestsPending, execs, heads }: MetricReadings): Family[] {
  const commands = Object.entries(execs())
  const byCity = (of: 'running' | 'queued') => ({
    label: 'city',
    values: Object.fromEntries(commands.map(([city, counts]) => [city, counts[of]])),
  })
  return [
    gauge('svc_cities', 'Registered cities, by status.', { label: 'status', values: citiesByStatus() }),
    gauge('svc_requests_pending', 'Accepted requests without their terminal event.', requestsPending()),
    gauge('svc_execs_running', 'Commands of checks, conditions and orders that run, by city.', byCity('running')),
    gauge('svc_execs_queued', 'Commands of checks, conditions and orders that wait for their turn.', byCity('queued')),
    counter('svc_events_appended_total', 'Events committed, by log.', { label: 'log', values: heads() }),
  ]
}

interface OperationTally {
  readonly method: string
  readonly operation: string
  readonly byStatus: Map<number, number>
  readonly durations: Histogram
}

function createHttpMeters(): HttpMeters & { families(): Family[] } {
  const tallies: OperationTally[] = []
  const refusals: Record<string, number> = {}
  const passed = new Map<string, Sample & { value: number }>()
  let streams = 0
  let passing = 0
  return {
    refused: (code) => {
      refusals[code] = (refusals[code] ?? 0) + 1
    },
    requestMeter(method, operation) {
      const byStatus = new Map<number, number>()
      const durations = new Histogram(REQUEST_BUCKETS_SEC)
      tallies.push({ method, operation, byStatus, durations })
      return (status, seconds) => {
        byStatus.set(status, (byStatus.get(status) ?? 0) + 1)
        durations.observe(seconds)
      }
    },
    streamOpened: () => {
      streams++
    },
    streamClosed: () => {
      streams--
    },
    proxyOpened: () => {
      passing++
    },
    proxyClosed: () => {
      passing--
    },
    proxied: (city, service, status) => {
      const family = `${Math.floor(status / 100)}xx`
      const key = `${city} ${service} ${family}`
      const sample = passed.get(key) ?? { labels: { city, service, status: family }, value: 0 }
      sample.value++
      passed.set(key, sample)
    },
    families: () => [
      gauge('svc_proxy_open', 'Requests on their way to services now, with what they have opened.', passing),
      {
        name: 'svc_proxy_requests_total',
        help: 'Requests for services that were answered, by them or by us.',
        type: 'counter',
        samples: [...passed.values()],
      },
      {
        name: 'svc_http_requests_total',
        help: 'HTTP requests answered.',
        type: 'counter',
        samples: tallies.flatMap(countsOf),
      },
      counter('svc_http_refusals_total', 'Requests refused, by code of the problem; also what was no request.', {
        label: 'code',
        values: refusals,
      }),
      gauge('svc_sse_streams', 'Event streams open now.', streams),
      {
        name: 'svc_http_request_duration_seconds',
        help: 'Time to the end of an answer; of a stream, to its headers.',
        type: 'histogram',
        samples: tallies.flatMap(({ operation, durations }) => durations.samples({ operation })),
      },
    ],
  }
}

const countsOf = ({ method, operation, byStatus }: OperationTally): Sample[] =>
  [...byStatus].map(([status, value]) => ({ labels: { method, operation, status: `${status}` }, value }))
