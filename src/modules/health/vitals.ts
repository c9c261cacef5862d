/** Is the supervisor well: readings of its own machinery against limits (decision 23). */
import { monitorEventLoopDelay } from 'node:perf_hooks'
import type { HealthCheck } from '../../contract/health.ts'
import type { Clock } from '../../kernel/clock.ts'

/** Where each reading comes from; absent values mean that there is nothing to measure yet. */
export interface VitalReadings {
  eventLoopMs(): number | undefined
  /** Since the reconciler last finished a round. */
  reconcilerAgeMs(): number | undefined
  /** Age of the oldest committed event that its subscribers have not been given; 0 where there is none. */
  logLagMs(): number | undefined
  /** What is wrong with the files we write, or nothing: for example `city alpha: disk full`. */
  storageFault(): string | undefined
}

const VITAL_LIMITS = { event_loop: 250, reconciler: 60_000, log_lag: 5000 } as const
type Measured = keyof typeof VITAL_LIMITS
export type VitalLimits = Readonly<Record<Measured, number>>

const COMPLAINTS: Readonly<Record<Measured, string>> = {
  event_loop: 'the event loop is blocked for long spells',
  reconciler: 'the reconciler has not finished a round for long',
  log_lag: 'events reach subscribers late',
}

/** The checks of `GET /health`: a few readings, no I/O. */
export function vitalChecks(readings: VitalReadings, limits: VitalLimits = VITAL_LIMITS): HealthCheck[] {
  return [
    guarded('event_loop', () => judge('event_loop', readings.eventLoopMs(), limits.event_loop)),
    guarded('reconciler', () => judge('reconciler', readings.reconcilerAgeMs(), limits.reconciler)),
    guarded('log_lag', () => judge('log_lag', readings.logLagMs(), limits.log_lag)),
    guarded('storage', () => judgeStorage(readings.storageFault())),
  ]
}

/** One measure against its limit; what cannot be measured yet is no complaint. */
export function judge(name: Measured, ms: number | undefined, limitMs: number): HealthCheck {
  if (ms === undefined) return { name, status: 'ok' }
  const value = Math.round(ms * 10) / 10
  if (ms <= limitMs) return { name, status: 'ok', value, unit: 'ms' }
  return { name, status: 'degraded', value, unit: 'ms', detail: `${COMPLAINTS[name]}: more than ${limitMs} ms` }
}

const judgeStorage = (fault: string | undefined): HealthCheck =>
  fault === undefined ? { name: 'storage', status: 'ok' } : { name: 'storage', status: 'degraded', detail: fault }

export const overallStatus = (checks: readonly HealthCheck[]): HealthCheck['status'] =>
  checks.every((check) => check.status === 'ok') ? 'ok' : 'degraded'

/** A reading that throws is a complaint about that reading, not a failed `GET /health`. */
function guarded(name: string, check: () => HealthCheck): HealthCheck {
  try {
    return check()
  } catch (error) {
    return {
      name,
      status: 'degraded',
      detail: `cannot be read: ${error instanceof Error ? error.message : String(error)}`,
    }
  }
}

// Each tick wakes an idle process: at 20 ms the watch alone cost 1 % of a core.
const RESOLUTION_MS = 200
const WINDOW_MS = 10_000

/** What we use of a delay histogram of `node:perf_hooks`; nanoseconds. */
export interface DelayHistogram {
  enable(): boolean
  disable(): boolean
  reset(): void
  percentile(percent: number): number
  readonly count: number
}

export interface LoopDelay extends Disposable {
  /** p99 of the last whole window in milliseconds, of the current one until there is one. */
  read(): number | undefined
}

/** Watches the event loop in windows of 10 s, so that many readers of /health do not shorten each other's. */
export function watchLoopDelay(
  clock: Clock,
  histogram: DelayHistogram = monitorEventLoopDelay({ resolution: RESOLUTION_MS }),
): LoopDelay {
  let last: number | undefined
  // A sample is the time between two ticks of the monitor: undisturbed, it is the resolution itself.
  const current = () =>
    histogram.count === 0 ? undefined : Math.max(0, histogram.percentile(99) / 1e6 - RESOLUTION_MS)
  const turn = () => {
    last = current()
    histogram.reset()
    cancel = clock.after(WINDOW_MS, turn)
  }
  // Asked for by every GET /health: a percentile walks the histogram, so the first window's is kept for a second.
  let early: { readonly at: number; readonly value: number | undefined } | undefined
  const reading = () => {
    const now = clock.monotonic()
    if (early === undefined || now - early.at > 1_000) early = { at: now, value: current() }
    return early.value
  }
  histogram.enable()
  let cancel = clock.after(WINDOW_MS, turn)
  return {
    read: () => last ?? reading(),
    [Symbol.dispose]() {
      cancel()
      histogram.disable()
    },
  }
}
