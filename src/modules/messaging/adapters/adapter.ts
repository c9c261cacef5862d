/** An adapter as it is stored, and what follows from it. */
import {
  ADAPTER_STATUSES,
  type AdapterCapabilities,
  type AdapterInfo,
  type AdapterRegistration,
  type AdapterStatus,
  DEFAULT_PULL_LEASE_SECONDS,
  TRANSPORTS,
  type Transport,
} from '../../../contract/messaging/adapters.ts'
import { isoTime } from '../../../kernel/clock.ts'
import type { Row } from '../../../kernel/database.ts'
import { invalidField } from '../../../kernel/problem.ts'
import { numberOf, textOf, wordOf } from '../base/rows.ts'
import { checkedUrl } from './url.ts'

export interface AdapterKey {
  readonly provider: string
  readonly account_id: string
}

/** What whoever registers it says of it. */
export interface AdapterDefinition extends AdapterKey {
  readonly name: string
  readonly transport: Transport
  readonly callback_url: string | undefined
  readonly capabilities: AdapterCapabilities
  readonly metadata: Readonly<Record<string, string>>
  /** Undefined: it is never stale. */
  readonly lease_ms: number | undefined
}

export interface Adapter extends AdapterDefinition {
  /** As it was announced last. */
  readonly status: AdapterStatus
  /** Attempts that failed since the last that did not. */
  readonly failures: number
  readonly last_error: string | undefined
  readonly paused_until: number
  readonly registered_at: number
  readonly last_seen_at: number
  readonly last_delivery_at: number | undefined
}

/** After so many failures in a row it is `failing`. */
const FAILING_AFTER = 3

export const nameOfKey = ({ provider, account_id }: AdapterKey): string => `${provider}/${account_id}`

/** As adapters are compared: letter case of a provider does not count. */
export const normalKey = (provider: string, accountId: string): AdapterKey => ({
  provider: provider.trim().toLowerCase(),
  account_id: accountId.trim(),
})

/** What an adapter is now; `since`: nobody could call before that. */
export function statusAt(adapter: Adapter, now: number, since: number): AdapterStatus {
  const { lease_ms, last_seen_at, failures } = adapter
  if (lease_ms !== undefined && Math.max(last_seen_at, since) + lease_ms <= now) return 'stale'
  return failures >= FAILING_AFTER ? 'failing' : 'online'
}

/** The definition that a registration means; 422 where it can mean none. */
export function definitionOf(body: AdapterRegistration, generated: () => string): AdapterDefinition {
  const transport = body.transport ?? (body.callback_url === undefined ? 'pull' : 'callback')
  if (transport === 'callback' && body.callback_url === undefined)
    throw invalidField('body.callback_url', 'is needed for the transport callback')
  if (transport !== 'callback' && body.callback_url !== undefined)
    throw invalidField('body.callback_url', `is for the transport callback, not for ${transport}`, body.callback_url)
  if (body.account_id === undefined && transport !== 'stream')
    throw invalidField('body.account_id', `is needed for the transport ${transport}`)
  const key = normalKey(body.provider, body.account_id ?? generated())
  for (const [field, value] of Object.entries(key)) {
    if (value === '') throw invalidField(`body.${field}`, 'is blank')
    if (CONTROL.test(value)) throw invalidField(`body.${field}`, 'has control characters')
    // Clients take such a part out of a path, so that nobody could reach it.
    if (value === '.' || value === '..') throw invalidField(`body.${field}`, 'cannot be a part of a path', value)
  }
  return {
    ...key,
    name: body.name?.trim() || nameOfKey(key),
    transport,
    callback_url: body.callback_url === undefined ? undefined : checkedUrl(body.callback_url),
    capabilities: body.capabilities ?? {},
    metadata: body.metadata ?? {},
    lease_ms: leaseOf(transport, body.lease_seconds),
  }
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is refused.
const CONTROL = /[\u0000-\u001f\u007f-\u009f]/

export function leaseOf(transport: Transport, seconds: number | undefined): number | undefined {
  const lease = seconds ?? (transport === 'pull' ? DEFAULT_PULL_LEASE_SECONDS : undefined)
  return lease === undefined ? undefined : lease * 1000
}

/** Whether two definitions say the same, in whatever order. */
export const sameDefinition = (a: AdapterDefinition, b: AdapterDefinition): boolean =>
  textOfDefinition(a) === textOfDefinition(b)

const textOfDefinition = (one: AdapterDefinition): string =>
  JSON.stringify([
    one.name,
    one.transport,
    one.callback_url,
    sorted(one.capabilities),
    sorted(one.metadata),
    one.lease_ms,
  ])
const sorted = (object: object): readonly unknown[] => Object.entries(object).sort(([a], [b]) => (a < b ? -1 : 1))

export interface Counts {
  readonly pending: number
  readonly dead: number
}

export function infoOf(
  adapter: Adapter,
  secrets: readonly { readonly until: number | undefined }[],
  counts: Counts,
  now: number,
): AdapterInfo {
  const old = Math.max(...secrets.map(({ until }) => until ?? 0))
  const { provider, account_id, name, transport, callback_url, lease_ms, paused_until, last_delivery_at } = adapter
  return {
    provider,
    account_id,
    name,
    transport,
    ...(callback_url === undefined ? {} : { callback_url }),
    capabilities: adapter.capabilities,
    ...(lease_ms === undefined ? {} : { lease_seconds: lease_ms / 1000 }),
    metadata: adapter.metadata,
    secured: secrets.length > 0,
    ...(old > 0 ? { old_secret_until: isoTime(old) } : {}),
    status: adapter.status,
    failures: adapter.failures,
    ...(paused_until > now ? { paused_until: isoTime(paused_until) } : {}),
    pending_deliveries: counts.pending,
    dead_deliveries: counts.dead,
    registered_at: isoTime(adapter.registered_at),
    last_seen_at: isoTime(adapter.last_seen_at),
    ...(last_delivery_at === undefined ? {} : { last_delivery_at: isoTime(last_delivery_at) }),
  }
}

export const parseAdapter = (row: Row): Adapter => ({
  provider: String(row.provider),
  account_id: String(row.account_id),
  name: String(row.name),
  transport: wordOf(TRANSPORTS, row.transport, 'a transport'),
  callback_url: textOf(row.callback_url),
  capabilities: JSON.parse(String(row.capabilities_json)),
  metadata: JSON.parse(String(row.metadata_json)),
  lease_ms: numberOf(row.lease_ms),
  status: wordOf(ADAPTER_STATUSES, row.status, 'a status'),
  failures: Number(row.failures),
  last_error: textOf(row.last_error),
  paused_until: Number(row.paused_until),
  registered_at: Number(row.registered_at),
  last_seen_at: Number(row.last_seen_at),
  last_delivery_at: numberOf(row.last_delivery_at),
})
