/**
 * Metrics in Prometheus text format. The hot path calls functions made once per operation or log: counts are plain
 * numbers that meet their labels at a scrape only.
 */
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client'

const REQUEST_BUCKETS_SEC = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5, 30, 120]
const DURATIONS = 'svc_http_request_duration_seconds'
const COMMIT_BUCKETS_SEC = [0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5]

/** For the HTTP layer, which cannot import this module: a plain object of functions. */
export interface HttpMeters {
  /** Call once per operation; the returned function is for each of its answers. */
  requestMeter(method: string, operation: string): (status: number, seconds: number) => void
  streamOpened(): void
  streamClosed(): void
}

/** For the storage of the kernel. */
export interface LogMeters {
  /** Call once per log; the returned function is for each commit with events. */
  appendMeter(log: string): (events: number) => void
  /** Call when a log is closed for good: its line would stay for ever. */
  forgetLog(log: string): void
  committed(seconds: number): void
}

/** Asked at each scrape. */
export interface MetricReadings {
  citiesByStatus(): Readonly<Record<string, number>>
  requestsPending(): number
}

export interface Metrics {
  readonly http: HttpMeters
  readonly logs: LogMeters
  /** A reaction passed over an event that it could not handle. */
  reactionSkipped(reaction: string): void
  readonly contentType: string
  scrape(): Promise<string>
}

export function createMetrics(readings: MetricReadings): Metrics {
  const registry = new Registry()
  // Process, heap, GC and event loop; its own loop monitor ticks as rarely as ours.
  collectDefaultMetrics({ register: registry, eventLoopMonitoringPrecision: 1_000 })
  addReadings(registry, readings)
  const durations = new Durations()
  const skipped = new Counter({
    name: 'svc_reaction_events_skipped_total',
    help: 'Events passed over by a reaction that could not handle them.',
    labelNames: ['reaction'],
    registers: [registry],
  })
  return {
    http: createHttpMeters(registry, durations),
    logs: createLogMeters(registry),
    reactionSkipped: (reaction) => skipped.inc({ reaction }),
    contentType: registry.contentType,
    scrape: async () => `${await registry.metrics()}\n${durations.text()}`,
  }
}

interface RequestTally {
  readonly method: string
  readonly operation: string
  readonly byStatus: Map<number, number>
}

function createHttpMeters(registry: Registry, durations: Durations): HttpMeters {
  const tallies: RequestTally[] = []
  new Counter({
    name: 'svc_http_requests_total',
    help: 'HTTP requests answered.',
    labelNames: ['method', 'operation', 'status'],
    registers: [registry],
    collect() {
      this.reset()
      for (const { method, operation, byStatus } of tallies) {
        for (const [status, count] of byStatus) this.inc({ method, operation, status: `${status}` }, count)
      }
    },
  })
  const streams = levelGauge(registry, 'svc_sse_streams', 'Event streams open now.')
  return {
    requestMeter(method, operation) {
      const byStatus = new Map<number, number>()
      tallies.push({ method, operation, byStatus })
      const observe = durations.meter(operation)
      return (status, seconds) => {
        byStatus.set(status, (byStatus.get(status) ?? 0) + 1)
        observe(seconds)
      }
    },
    streamOpened: () => streams.add(1),
    streamClosed: () => streams.add(-1),
  }
}

/** Durations by operation, counted in plain numbers: the library looks labels up at every observation. */
class Durations {
  readonly #tallies: { readonly operation: string; readonly counts: number[]; sum: number }[] = []

  /** Call once per operation; the returned function takes each duration. */
  meter(operation: string): (seconds: number) => void {
    // The last one is for all that took longer.
    const tally = { operation, counts: [...REQUEST_BUCKETS_SEC.map(() => 0), 0], sum: 0 }
    this.#tallies.push(tally)
    return (seconds) => {
      let at = 0
      while (at < REQUEST_BUCKETS_SEC.length && seconds > (REQUEST_BUCKETS_SEC[at] ?? 0)) at++
      tally.counts[at] = (tally.counts[at] ?? 0) + 1
      tally.sum += seconds
    }
  }

  /** In the text format. */
  text(): string {
    const lines = [
      `# HELP ${DURATIONS} Time to the end of an answer; of a stream, to its headers.`,
      `# TYPE ${DURATIONS} histogram`,
    ]
    for (const { operation, counts, sum } of this.#tallies) {
      if (counts.every((one) => one === 0)) continue
      let count = 0
      for (const [at, le] of [...REQUEST_BUCKETS_SEC, '+Inf'].entries()) {
        count += counts[at] ?? 0
        lines.push(`${DURATIONS}_bucket{le="${le}",operation="${operation}"} ${count}`)
      }
      lines.push(`${DURATIONS}_sum{operation="${operation}"} ${sum}`)
      lines.push(`${DURATIONS}_count{operation="${operation}"} ${count}`)
    }
    return `${lines.join('\n')}\n`
  }
}

function createLogMeters(registry: Registry): LogMeters {
  const appended = new Map<string, { events: number }>()
  new Counter({
    name: 'svc_events_appended_total',
    help: 'Events committed, by log.',
    labelNames: ['log'],
    registers: [registry],
    collect() {
      this.reset()
      for (const [log, { events }] of appended) this.inc({ log }, events)
    },
  })
  const commits = new Histogram({
    name: 'svc_commit_seconds',
    help: 'Time of a durable commit.',
    buckets: COMMIT_BUCKETS_SEC,
    registers: [registry],
  })
  return {
    appendMeter(log) {
      const tally = appended.get(log) ?? { events: 0 }
      appended.set(log, tally)
      return (events) => {
        tally.events += events
      }
    },
    forgetLog(log) {
      appended.delete(log)
    },
    committed: (seconds) => commits.observe(seconds),
  }
}

function addReadings(registry: Registry, readings: MetricReadings): void {
  new Gauge({
    name: 'svc_cities',
    help: 'Registered cities, by status.',
    labelNames: ['status'],
    registers: [registry],
    collect() {
      this.reset()
      for (const [status, count] of Object.entries(readings.citiesByStatus())) this.set({ status }, count)
    },
  })
  new Gauge({
    name: 'svc_requests_pending',
    help: 'Accepted requests without their terminal event.',
    registers: [registry],
    collect() {
      this.set(readings.requestsPending())
    },
  })
}

function levelGauge(registry: Registry, name: string, help: string) {
  let value = 0
  new Gauge({
    name,
    help,
    registers: [registry],
    collect() {
      this.set(value)
    },
  })
  return {
    add(change: number) {
      value += change
    },
  }
}
