/** What all streams have. */
import { Timestamp } from './names.ts'
import { component } from './schema.ts'

export const HEARTBEAT_MS = 15_000

export const HeartbeatEvent = component('HeartbeatEvent', { timestamp: Timestamp })
export const HEARTBEAT = {
  event: 'heartbeat',
  data: HeartbeatEvent,
  description: 'Every 15 s; without an `id:`, so the resume point stays.',
} as const
