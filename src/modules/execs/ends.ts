/** How commands end, in the words that their owners are told. */
import { constants } from 'node:os'
import type { ExecEnd, ExecSight } from './ports.ts'

/** Why it was ended before it had ended by itself. */
export type Why = 'timed_out' | 'canceled' | 'stopped' | 'flooded'

/** Its wrapper has ended without a claim. */
export const NEVER_BEGAN = 'its command could not be begun'
export const NOBODY_KNOWS =
  'nobody knows how it ended: what watched over it was killed, or the machine was started anew'

export const END: { readonly [Reason in Why]: ExecEnd } = {
  timed_out: { kind: 'timed_out' },
  canceled: { kind: 'interrupted' },
  stopped: { kind: 'interrupted' },
  flooded: { kind: 'signal', signal: 'SIGKILL' },
}

export const ERROR: { readonly [Reason in Why]: string | undefined } = {
  timed_out: undefined,
  canceled: undefined,
  stopped: 'the city stopped',
  flooded: 'it was ended because it wrote more than 64 MiB',
}

const SIGNALS = new Map<number, string>(Object.entries(constants.signals).map(([name, number]) => [number, name]))

/** A shell tells a signal as 128 and its number. */
export function endOf(sight: ExecSight): ExecEnd {
  if (sight.state !== 'done') return { kind: 'interrupted' }
  const signal = SIGNALS.get(sight.status - 128)
  return signal === undefined ? { kind: 'exited', exit_code: sight.status } : { kind: 'signal', signal }
}

export function startError(error: unknown): string {
  const text = error instanceof Error ? error.message : String(error)
  return text.includes('E2BIG') ? 'the command and its variables are larger than the system takes' : text
}
