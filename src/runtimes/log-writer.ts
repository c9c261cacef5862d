/**
 * `node log-writer.ts <directory>`: copies stdin into the output log of a run, for tmux's `pipe-pane` (decision 56).
 *
 * Reads synchronously: there is nothing else to do, and it saves the stream machinery. Ends with its input only; signals
 * of the pane's terminal must not cost the last words.
 */
import { readSync } from 'node:fs'
import { openOutputWriter } from './process/output-log.ts'

const IDLE_MS = 20

const directory = process.argv[2]
if (directory === undefined) {
  process.stderr.write('usage: log-writer <directory>\n')
  process.exit(2)
}
for (const name of ['SIGHUP', 'SIGINT', 'SIGQUIT', 'SIGTERM'] as const) process.on(name, () => {})

const writer = openOutputWriter(directory)
const buffer = Buffer.allocUnsafe(65_536)
const pause = new Int32Array(new SharedArrayBuffer(4))
for (;;) {
  const count = readInput()
  if (count === 0) break
  if (count === undefined) Atomics.wait(pause, 0, 0, IDLE_MS)
  else writer.append(buffer.subarray(0, count))
}
writer.close()

/** Bytes read, 0 at the end, undefined where a non-blocking input has nothing right now. */
function readInput(): number | undefined {
  try {
    return readSync(0, buffer, 0, buffer.length, null)
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'EAGAIN') return undefined
    return 0 // The other side is gone.
  }
}
