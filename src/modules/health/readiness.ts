/**
 * Last known readiness of providers and tools. Reads answer at once; probes run off the request path.
 *
 * I1  one probe per item at a time, whoever asks.
 * I2  a probe that hangs or throws becomes an observation by its deadline, and never an unhandled rejection.
 * I3  a caller that gives up ends its own wait, not the probe that others wait for.
 */

import type { ErrorDetail } from '../../contract/base/problems.ts'
import type { ReadinessItem } from '../../contract/health.ts'
import { type Clock, isoTime } from '../../kernel/clock.ts'
import { type Problem, problem } from '../../kernel/problem.ts'
import { type Observation, PROBE_LATE, PROBE_LIMIT_MS } from './logins.ts'
import { type Probe, TOOLS } from './probes.ts'

const STALE_MS = 30_000
export const DEFAULT_ITEMS = ['claude', 'codex', 'gemini', 'github_cli'] as const
export const DEFAULT_PROVIDERS = ['claude', 'codex', 'gemini'] as const

export interface ReadinessDeps {
  readonly clock: Clock
  readonly probes: readonly Probe[]
}

export interface Readiness extends AsyncDisposable {
  /** Every name that can be asked for, and those of providers. */
  readonly items: ReadonlySet<string>
  readonly providers: ReadonlySet<string>
  /** The last observations, `unknown` where there is none; starts probes of what is older than 30 s. */
  read(names: readonly string[]): readonly ReadinessItem[]
  /** New observations, joining probes under way; at most 5 s. */
  refresh(names: readonly string[], signal: AbortSignal): Promise<readonly ReadinessItem[]>
  /** Programs that the host lacks, as details of a `missing-dependency` problem. */
  checkHost(signal: AbortSignal): Promise<readonly ErrorDetail[]>
  /** Why a provider cannot be used now, ready to throw. */
  providerProblem(name: string, signal: AbortSignal): Promise<Problem | undefined>
}

interface Entry {
  readonly seen: Observation
  /** Wall clock, for people; monotonic, for age. */
  readonly at: number
  readonly since: number
}

export function createReadiness({ clock, probes }: ReadinessDeps): Readiness {
  const known = new Map(probes.map((probe) => [probe.name, probe]))
  const entries = new Map<string, Entry>()
  const flights = new Map<string, Promise<void>>()
  const closing = new AbortController()

  async function fly(probe: Probe): Promise<void> {
    const seen = await observe(probe, clock, closing.signal)
    flights.delete(probe.name)
    if (!closing.signal.aborted) entries.set(probe.name, { seen, at: clock.now(), since: clock.monotonic() })
  }
  function start(probe: Probe): Promise<void> {
    const flight = flights.get(probe.name) ?? fly(probe)
    flights.set(probe.name, flight)
    return flight
  }
  function isStale(name: string): boolean {
    const entry = entries.get(name)
    return entry === undefined || clock.monotonic() - entry.since > STALE_MS
  }
  const chosen = (names: readonly string[]) =>
    names.map((name) => known.get(name)).filter((probe) => probe !== undefined)
  const items = (asked: readonly Probe[]) => asked.map((probe) => itemOf(probe, entries.get(probe.name)))

  const readiness: Readiness = {
    items: new Set(known.keys()),
    providers: new Set(probes.filter((probe) => probe.kind === 'provider').map((probe) => probe.name)),
    read(names) {
      const asked = chosen(names)
      for (const probe of asked) {
        // The flight never rejects (I2), and closing waits for it.
        if (isStale(probe.name) && !closing.signal.aborted) void start(probe)
      }
      return items(asked)
    },
    async refresh(names, signal) {
      const asked = chosen(names)
      if (!closing.signal.aborted) await abortable(Promise.all(asked.map(start)), signal)
      return items(asked)
    },
    async checkHost(signal) {
      const seen = await readiness.refresh(['git'], signal)
      const missing = seen.some(({ status }) => status === 'not_installed')
      return missing ? [{ location: 'host.git', message: TOOLS.git.hint }] : []
    },
    async providerProblem(name, signal) {
      const [item] = await readiness.refresh([name], signal)
      return item === undefined || item.status === 'configured' ? undefined : notReady(item)
    },
    async [Symbol.asyncDispose]() {
      closing.abort()
      await Promise.all(flights.values())
    },
  }
  return readiness
}

/** `a, b,a` → `['a', 'b']`; refuses names that nobody probes. */
export function parseNames(
  parameter: 'items' | 'providers',
  text: string,
  known: ReadonlySet<string>,
): readonly string[] {
  const names = [...new Set(text.split(',').map((name) => name.trim()))].filter((name) => name !== '')
  const unsupported = names.length === 0 ? text : names.find((name) => !known.has(name))
  if (unsupported === undefined) return names
  const message = `unsupported ${parameter} value "${unsupported}"`
  throw problem('invalid-request', message, {
    errors: [{ location: `query.${parameter}`, message, value: unsupported }],
  })
}

function itemOf({ name, kind, display_name }: Probe, entry: Entry | undefined): ReadinessItem {
  if (entry === undefined) return { name, kind, display_name, status: 'unknown' }
  return { name, kind, display_name, ...entry.seen, observed_at: isoTime(entry.at) }
}

function notReady({ name, status, detail }: ReadinessItem): Problem {
  const message = `provider ${name} is not ready: ${status}${detail === undefined ? '' : ` (${detail})`}`
  return problem('provider-not-ready', message, { errors: [{ location: 'body.provider', message, value: name }] })
}

/** One run of a probe, ended by the deadline or the end of the service. */
function observe(probe: Probe, clock: Clock, closing: AbortSignal): Promise<Observation> {
  const cut = new AbortController()
  return new Promise((resolve) => {
    const finish = (seen: Observation) => {
      cancel()
      closing.removeEventListener('abort', onClose)
      resolve(seen)
      cut.abort()
    }
    const onClose = () => finish({ status: 'probe_error', detail: 'the supervisor is stopping' })
    const cancel = clock.after(PROBE_LIMIT_MS, () => finish({ status: 'probe_error', detail: PROBE_LATE }))
    closing.addEventListener('abort', onClose, { once: true })
    const onError = (error: unknown) => finish({ status: 'probe_error', detail: sentence(error) })
    void Promise.try(() => probe.run(cut.signal)).then(finish, onError)
  })
}

const sentence = (error: unknown) => (error instanceof Error ? error.message : 'the probe failed')

function abortable<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  if (signal.aborted) return Promise.reject(signal.reason)
  return new Promise((resolve, reject) => {
    const onAbort = () => reject(signal.reason)
    signal.addEventListener('abort', onAbort, { once: true })
    void work.then(resolve, reject).finally(() => signal.removeEventListener('abort', onAbort))
  })
}
