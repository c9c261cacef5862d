/** One city of this host: its registry entry, its store, and what is observed of it. */

import type { ErrorDetail } from '../../contract/base/problems.ts'
import type { CityConfigStatus, CityGetResponse, CityInfo, CityState, ConfigRejection } from '../../contract/cities.ts'
import { isoTime } from '../../kernel/clock.ts'
import { look } from '../../kernel/look.ts'
import type { LogStream } from '../../kernel/streams/log-stream.ts'
import type { CityStore } from './city-store.ts'
import { phasesCompleted, type Wanted } from './lifecycle.ts'
import type { CityRow } from './registry.ts'

/** What the control plane itself needs from a city's configuration. */
export interface CitySettings {
  readonly provider: string | undefined
  readonly sessionTemplate: string | undefined
  readonly suspendedOnStart: boolean
  readonly agentCount: number
  readonly rigCount: number
  readonly retention: { readonly maxAgeMs: number; readonly maxBytes: number } | undefined
  readonly config: CityConfigStatus
}

export interface City {
  readonly name: string
  readonly path: string
  readonly registeredAt: number
  readonly startHead: number
  readonly previousUid: string | undefined
  readonly uid: string
  readonly knownHead: number
  /** Undefined while its directory or its database cannot be used. */
  readonly store: CityStore | undefined
  /** Feeds the city's own event streams; there whenever the store is. */
  readonly stream: LogStream | undefined
  readonly settings: CitySettings | undefined
  readonly suspended: boolean
  readonly wanted: Wanted
  readonly state: CityState
  /** When the state was entered. */
  readonly since: number
  /** Set while running. */
  readonly runningSince: number | undefined
  readonly restart: boolean
  /** Name of the request that unregisters it, once it is leaving. */
  readonly departure: string | undefined
  readonly attempts: number
  readonly retryAt: number | undefined
  readonly error: string | undefined
  readonly issues: readonly ErrorDetail[] | undefined
  /** Modification time of city.toml at the last failure: a changed file is tried at once. */
  readonly failedWith: number | undefined
}

/** The same for its worker, which alone changes it. */
export type CityRecord = { -readonly [K in keyof City]: City[K] }

export function cityFromRow(row: CityRow, now: number): CityRecord {
  return {
    name: row.name,
    path: row.path,
    registeredAt: row.registeredAt,
    startHead: row.startHead,
    previousUid: row.previousUid,
    uid: row.uid,
    knownHead: row.knownHead,
    store: undefined,
    stream: undefined,
    settings: undefined,
    suspended: false,
    wanted: row.desired,
    state: row.desired === 'stopped' ? 'stopped' : 'queued',
    since: now,
    runningSince: undefined,
    restart: false,
    departure: undefined,
    attempts: row.attempts,
    retryAt: row.retryAt,
    error: row.error,
    issues: undefined,
    failedWith: undefined,
  }
}

export function cityInfo(city: City, host: string, now: number): CityInfo {
  const phases = phasesCompleted(city.state)
  const info: CityInfo = {
    name: city.name,
    uid: city.uid,
    path: city.path,
    running: city.state === 'running',
    status: city.state,
    host,
    observed_at: isoTime(now),
  }
  if (phases !== undefined) info.phases_completed = phases
  if (city.state === 'running') return { ...info, ...lostDirectory(city), ...configRejection(city) }
  if (city.error !== undefined) info.error = city.error
  if (city.issues !== undefined) info.issues = [...city.issues]
  if (city.attempts === 0) return info
  info.attempts = city.attempts
  if (city.retryAt !== undefined) info.retry_at = isoTime(city.retryAt)
  return info
}

/** On its way to running, and not given up. */
export const isStarting = ({ state, wanted }: City): boolean =>
  wanted === 'running' && (state === 'queued' || phasesCompleted(state) !== undefined)

export const uptimeSeconds = (city: City, now: number): number =>
  city.runningSince === undefined ? 0 : Math.max(0, Math.floor((now - city.runningSince) / 1000))

/** Why the directory of a city cannot be used; undefined where it can. Never throws: lists of all cities ask. */
export function directoryComplaint(path: string): string | undefined {
  const found = look(path)
  if (found.is === 'directory') return undefined
  if (found.is === 'unknown') return `city directory cannot be looked at (${found.code}): ${path}`
  return `city directory is missing: ${path}`
}

/** Until the patrol has looked, such a city runs on. */
function lostDirectory({ path }: City): { error?: string } {
  const error = directoryComplaint(path)
  return error === undefined ? {} : { error }
}

/** Wherever a city shows: that its files are not what is in force. */
export function configRejection({ settings }: City): { config_rejected?: ConfigRejection } {
  const { since, issues: [first] = [], issues = [] } = settings?.config.last_error ?? {}
  if (since === undefined || first === undefined) return {}
  const error = `${first.file}:${first.line}:${first.column}: ${first.message}`
  return { config_rejected: { since, error, count: issues.length } }
}

export function cityDetail(city: City, version: string, revision: string, now: number): CityGetResponse {
  const { settings } = city
  return {
    name: city.name,
    uid: city.uid,
    path: city.path,
    running: city.state === 'running',
    status: city.state,
    suspended: city.suspended,
    uptime_sec: uptimeSeconds(city, now),
    version,
    ...(settings?.provider === undefined ? {} : { provider: settings.provider }),
    ...(settings?.sessionTemplate === undefined ? {} : { session_template: settings.sessionTemplate }),
    agent_count: settings?.agentCount ?? 0,
    rig_count: settings?.rigCount ?? 0,
    ...lostDirectory(city),
    ...configRejection(city),
    revision,
  }
}
