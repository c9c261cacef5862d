/**
 * How far what a session says in a chat is told to others there (sheet 06 §2.5; decisions 154, 176). Pure.
 *
 * A publish is triggered by a peer when it is a session's second or later under one root. Beyond a bound it is still said
 * in the chat, and nobody is told: people read it there, and an argument among agents ends.
 */
import type { FANOUT_LIMITS } from '../../../contract/messaging/fanout-events.ts'
import type { FanoutPolicy } from '../../../contract/messaging/participants.ts'

export interface Publication {
  /** How many there are to be told. */
  readonly peers: number
  readonly isTargeted: boolean
  readonly isPeerTriggered: boolean
  /** Under the same root, before it. */
  readonly publishes: number
  readonly deliveries: number
}

export interface Fanout {
  /** How many of them are told: the first. */
  readonly told: number
  readonly limit?: (typeof FANOUT_LIMITS)[number]
}

export function fanOut(bounds: FanoutPolicy, publication: Publication): Fanout {
  const { peers, isTargeted, isPeerTriggered, publishes, deliveries } = publication
  if (!bounds.enabled || peers === 0) return { told: 0 }
  if (!isTargeted && !bounds.allow_untargeted_publication) return { told: 0, limit: 'untargeted' }
  if (isPeerTriggered && isReached(bounds.max_peer_triggered_publishes, publishes))
    return { told: 0, limit: 'peer_triggered_publishes' }
  const most = bounds.max_total_peer_deliveries
  const room = most === 0 ? peers : Math.max(most - deliveries, 0)
  return room >= peers ? { told: peers } : { told: room, limit: 'total_peer_deliveries' }
}

const isReached = (most: number, now: number): boolean => most > 0 && now >= most
