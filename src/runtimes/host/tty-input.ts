/**
 * Typing into a pty. node's own stream writes to a pty block the whole process once the program stops reading; so the
 * descriptor, which node-pty opened non-blocking, is written directly.
 *
 * Y1  Writes do not mix: one at a time, in the order of the calls.
 * Y2  A write ends by its deadline or signal and says how much went in: nothing, part of it, all.
 * Y3  Nothing is written once the descriptor may belong to somebody else (`close`).
 */
import { writeSync } from 'node:fs'
import { type Clock, delay } from '../../kernel/clock.ts'

export type Typed = 'all' | 'part' | 'nothing'

export interface TtyInput {
  type(bytes: Uint8Array, options: { deadlineMs: number; signal?: AbortSignal }): Promise<Typed>
  close(): void
}

const FIRST_PAUSE_MS = 1
const LONGEST_PAUSE_MS = 50

export function createTtyInput(fd: number, clock: Clock): TtyInput {
  let turn: Promise<unknown> = Promise.resolve()
  let closed = false

  /** How many bytes went in; 0 while the program reads nothing. */
  function writeSome(bytes: Uint8Array): number {
    try {
      return writeSync(fd, bytes)
    } catch (error) {
      if (error instanceof Error && 'code' in error && error.code === 'EAGAIN') return 0
      closed = true // EIO: there is no program on the other side any more.
      return 0
    }
  }

  async function writeAll(bytes: Uint8Array, deadline: number, signal?: AbortSignal): Promise<Typed> {
    let from = 0
    for (let pause = FIRST_PAUSE_MS; ; pause = Math.min(pause * 2, LONGEST_PAUSE_MS)) {
      if (closed || signal?.aborted) break
      const written = writeSome(bytes.subarray(from))
      from += written
      if (from === bytes.length) return 'all'
      if (written > 0) pause = FIRST_PAUSE_MS
      if (clock.monotonic() >= deadline) break
      await delay(clock, pause, signal).catch(() => {})
    }
    return from === 0 ? 'nothing' : 'part'
  }

  return {
    type(bytes, { deadlineMs, signal }) {
      const deadline = clock.monotonic() + deadlineMs
      const { promise, resolve } = Promise.withResolvers<Typed>()
      // Who waits for its turn in vain has written nothing, and does not when the turn comes.
      const cancel = clock.after(deadlineMs, () => {
        late = true
        resolve('nothing')
      })
      let late = false
      turn = turn.then(async () => {
        if (late) return
        cancel()
        resolve(await writeAll(bytes, deadline, signal))
      })
      return promise
    },
    close() {
      closed = true
    },
  }
}
