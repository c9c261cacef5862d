/** What all streams have. */
import { Timestamp } from './names.ts'
import { component } from './schema.ts'

export const HEARTBEAT_MS = 15_000

export const HeartbeatEvent = component('HeartbeatEvent', { timestamp: Timestamp })
export const HEARTBEAT = {
  event: 'heartbeat',
  data: HeartbeatEvent,
  description:
    'Every 15 s. Its `id:`, where it has one, is the head of the log: the client has missed nothing up to there and resumes from it.',
} as const
