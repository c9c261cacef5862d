/**
 * Which deliveries were typed: `deliveries.jsonl` in the run's directory (decision 57).
 *
 * D1  The intent is on disk before the first byte is typed, the outcome before it is acknowledged.
 * D2  An id with an intent and no outcome may have been typed: `uncertain` for ever, whoever asks.
 * D3  Memory is bounded: of ids older than the newest 10,000 only "was handled" is known, by their position.
 */
import { openSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type AppendCalls, appendWhole } from '../../kernel/whole-file.ts'
import type { Delivery, DeliveryOutcome } from '../process/runtime.ts'
import { FILES } from './protocol.ts'

type Mark = Pick<Delivery, 'seq' | 'id'>
type Entry = Mark & { readonly state: 'intent' | DeliveryOutcome['state'] }
export type Delivered = 'yes' | 'no' | 'unknown'

const REMEMBERED = 10_000

export interface Journal {
  /** Throws where it cannot be written: then nothing may be typed. */
  intent(mark: Mark): void
  outcome(mark: Mark, outcome: DeliveryOutcome): void
  delivered(mark: Mark): Delivered
}

/** `calls`: only tests pass their own. */
export function openJournal(directory: string, calls?: AppendCalls): Journal {
  const fd = openSync(join(directory, FILES.deliveries), 'a', 0o600)
  const memory = createMemory()
  /** Half a line that could not be taken back ends before the next one begins. */
  let isTorn = false
  function append(entry: Entry) {
    try {
      appendWhole(fd, `${isTorn ? '\n' : ''}${JSON.stringify(entry)}\n`, calls)
      isTorn = false
    } catch (error) {
      isTorn = true
      throw error
    }
    memory.keep(entry)
  }
  return {
    intent: ({ seq, id }) => append({ seq, id, state: 'intent' }),
    outcome({ seq, id }, { state }) {
      memory.keep({ seq, id, state })
      try {
        append({ seq, id, state })
      } catch {
        // Typed all the same; on disk it stays an intent, which is `unknown` and never typed again (D2).
      }
    },
    delivered: memory.delivered,
  }
}

/** From the file of a host that is gone. Where the file cannot be read nothing is known. */
export function readDelivered(directory: string, mark: Mark): Delivered {
  const memory = createMemory()
  try {
    for (const line of readFileSync(join(directory, FILES.deliveries), 'utf8').split('\n')) {
      const entry = parseEntry(line)
      if (entry !== undefined) memory.keep(entry)
    }
  } catch (error) {
    return error instanceof Error && 'code' in error && error.code === 'ENOENT' ? 'no' : 'unknown'
  }
  return memory.delivered(mark)
}

function createMemory() {
  const states = new Map<string, Entry['state']>()
  let forgottenSeq = -1
  const seqs = new Map<string, number>()
  return {
    keep({ seq, id, state }: Entry) {
      states.set(id, state)
      seqs.set(id, seq)
      if (states.size <= REMEMBERED) return
      for (const [oldest, oldestSeq] of seqs) {
        forgottenSeq = Math.max(forgottenSeq, oldestSeq)
        states.delete(oldest)
        seqs.delete(oldest)
        return
      }
    },
    delivered({ seq, id }: Mark): Delivered {
      const state = states.get(id)
      if (state === undefined) return seq <= forgottenSeq ? 'unknown' : 'no'
      if (state === 'delivered') return 'yes'
      // A failed one was not typed and may be tried again.
      return state === 'failed' ? 'no' : 'unknown'
    },
  }
}

/** A power cut can leave half a line: it was never acted upon. */
function parseEntry(line: string): Entry | undefined {
  try {
    const value: unknown = JSON.parse(line)
    const whole = typeof value === 'object' && value !== null && 'id' in value && 'state' in value && 'seq' in value
    return whole ? (value as Entry) : undefined
  } catch {
    return undefined
  }
}
