/** Places in event logs as text: a sequence number, and a composite of several logs (sheet 02 §5.4). */
import { cut } from '../contract/base/text.ts'
import { problem } from './problem.ts'

const SEQ = /^(?:0|[1-9][0-9]{0,15})$/
const SOURCE = /^(?:__supervisor__|[a-zA-Z0-9][a-zA-Z0-9._-]*)$/
/** Longest composite cursor that is looked at: 1,000 cities with long names. */
const MAX_CURSOR_CHARACTERS = 100_000

/** A sequence number, or 400 `invalid_cursor:`. */
export function parseSeq(text: string): number {
  const seq = Number(text)
  if (!SEQ.test(text) || !Number.isSafeInteger(seq)) throw invalidCursor(`not an event sequence: "${cut(text, 40)}"`)
  return seq
}

/** Positions by log name, sorted by name bytes; `'0'` is the start of every log. */
export type Positions = ReadonlyMap<string, number>

/** `'0'` → undefined (everything retained); otherwise the positions; or 400 `invalid_cursor:`. */
export function parseComposite(text: string): Positions | undefined {
  if (text === '0') return undefined
  if (text.length > MAX_CURSOR_CHARACTERS) throw invalidCursor('too long')
  const positions = new Map<string, number>()
  for (const entry of text.split(',')) {
    const colon = entry.lastIndexOf(':')
    const name = entry.slice(0, Math.max(colon, 0))
    if (!SOURCE.test(name)) throw invalidCursor(`not a name:sequence entry: "${cut(entry, 80)}"`)
    if (positions.has(name)) throw invalidCursor(`"${name}" stands in it twice`)
    positions.set(name, parseSeq(entry.slice(colon + 1)))
  }
  return positions
}

/** The composite cursor of these positions; `0` where there is none. */
export function formatComposite(positions: Iterable<readonly [string, number]>): string {
  const parts = [...positions].sort(([a], [b]) => (a < b ? -1 : 1)).map(([name, seq]) => `${name}:${seq}`)
  return parts.length === 0 ? '0' : parts.join(',')
}

const invalidCursor = (why: string) => problem('invalid-cursor', `cursor ${why}`)
