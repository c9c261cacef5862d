/** Why a message of a chat goes where it goes (sheet 06 §2.5; decisions 151, 152). */

export const INBOUND_MATCHES = [
  'binding',
  'target',
  'explicit_target',
  'last_addressed',
  'default',
  'no_match',
  'default_route',
  'unrouted',
  'hydrated',
] as const
export type InboundMatch = (typeof INBOUND_MATCHES)[number]
