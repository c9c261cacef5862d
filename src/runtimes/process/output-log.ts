/**
 * The raw output of one run: `out.<start offset, 15 digits>.log` segments of 8 MiB in the run's directory, 256 MiB at
 * most, oldest dropped (decision 66). Offsets are bytes since the start of the run and never change.
 *
 * O1  A segment's end is the next one's start; one writer appends, only to the last.
 * O2  What `append` accepted is in the file when it returns, and `endOffset` counts it: no offset is ever handed out for
 *     a byte that is not there.
 * O3  A reader takes no lock: a segment that is dropped or begun meanwhile makes it look again, never fail.
 * O4  A full disk loses output, visibly and in place, and nothing else: `append` does not throw.
 */
import { closeSync, fstatSync, openSync, readdirSync, statSync, unlinkSync, writeSync } from 'node:fs'
import { open, readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'

const SEGMENT_BYTES = 8 * 1024 * 1024
const CAP_BYTES = 256 * 1024 * 1024
const SEGMENT_NAME = /^out\.(\d{15})\.log$/

/** Appends; the only writer of a directory. */
export interface OutputWriter {
  readonly endOffset: number
  append(bytes: Uint8Array): void
  close(): void
}

export interface OutputReader {
  /** Oldest byte that is kept; more than 0 where segments were dropped. */
  startOffset(): Promise<number>
  endOffset(): Promise<number>
  /** At most `maxBytes` from `offset`; empty at the end. Reading what was dropped starts at `startOffset`. */
  read(offset: number, maxBytes: number): Promise<{ readonly offset: number; readonly bytes: Buffer }>
}

/** Sizes; only tests pass their own. */
export interface OutputLimits {
  readonly segmentBytes: number
  readonly capBytes: number
}

const LIMITS: OutputLimits = { segmentBytes: SEGMENT_BYTES, capBytes: CAP_BYTES }

/** Opens the log of `directory` at its end. The directory must be there: whose session was deleted gets no log again. */
export function openOutputWriter(directory: string, limits: OutputLimits = LIMITS): OutputWriter {
  const starts = startsAmong(readdirSync(directory))
  const current = { start: starts.at(-1) ?? 0, fd: -1, size: 0 }
  let lost = 0
  let closed = false
  if (starts.length === 0) starts.push(0)
  openSegment(current.start)

  function openSegment(start: number) {
    const fd = openSync(segmentPath(directory, start), 'a', 0o600)
    const before = current.fd
    Object.assign(current, { start, fd, size: sizeOf(fd) })
    if (before !== -1) closeQuietly(before)
  }

  function rotate() {
    const next = current.start + current.size
    openSegment(next)
    starts.push(next)
    while (starts.length > 1 && next + limits.segmentBytes - (starts[0] ?? 0) > limits.capBytes) dropOldest()
  }

  function dropOldest() {
    const oldest = starts.shift()
    if (oldest !== undefined) unlinkIfThere(segmentPath(directory, oldest))
  }

  function write(bytes: Uint8Array) {
    for (let from = 0; from < bytes.length; ) {
      if (current.size >= limits.segmentBytes) rotate()
      const room = limits.segmentBytes - current.size
      const written = writeSync(current.fd, bytes, from, Math.min(bytes.length - from, room))
      current.size += written
      from += written
    }
  }

  function sayLost() {
    if (lost === 0) return
    write(Buffer.from(`\r\n[${lost} bytes of output were lost: they could not be written]\r\n`))
    lost = 0
  }

  return {
    get endOffset() {
      return current.start + current.size
    },
    append(bytes) {
      if (closed || bytes.length === 0) return
      const before = current.start + current.size
      try {
        sayLost()
        write(bytes)
      } catch {
        // O4: what of it got into the file is counted, the rest is gone.
        lost += Math.max(0, bytes.length - (current.start + current.size - before))
      }
    },
    close() {
      if (closed) return
      closed = true
      try {
        sayLost()
      } catch {
        // Still no room: the log ends without a word of it.
      }
      closeQuietly(current.fd)
    },
  }
}

/** Of the segment just opened. Throws where that is not known, and leaves nothing open. */
function sizeOf(fd: number): number {
  try {
    return fstatSync(fd).size
  } catch (error) {
    closeQuietly(fd)
    throw error
  }
}

/** EIO of a network file system: the descriptor is closed all the same. */
function closeQuietly(fd: number): void {
  try {
    closeSync(fd)
  } catch {
    // O4.
  }
}

/** Reads the log of `directory`, which may not exist yet: then it is empty. Keeps nothing open. */
export function openOutputReader(directory: string): OutputReader {
  return {
    startOffset: async () => (await segments(directory))[0] ?? 0,
    endOffset: () => endOf(directory),
    async read(offset, maxBytes) {
      // O3: a segment may go between the look and the read; what is left then starts later.
      for (let attempt = 0; attempt < 5; attempt++) {
        const found = await readOnce(directory, offset, maxBytes)
        if (found !== undefined) return found
      }
      return { offset, bytes: Buffer.alloc(0) }
    },
  }
}

async function readOnce(directory: string, offset: number, maxBytes: number) {
  const starts = await segments(directory)
  const first = starts[0] ?? 0
  const from = Math.max(offset, first)
  const parts: Buffer[] = []
  let at = from
  let room = maxBytes
  for (const [index, start] of starts.entries()) {
    const end = starts[index + 1]
    if (room === 0) break
    if (end !== undefined && end <= at) continue
    if (start > at) break
    const bytes = await readSegment(segmentPath(directory, start), at - start, Math.min(room, (end ?? Infinity) - at))
    if (bytes === undefined) return parts.length > 0 ? { offset: from, bytes: Buffer.concat(parts) } : undefined
    if (bytes.length > 0) parts.push(bytes)
    at += bytes.length
    room -= bytes.length
  }
  return { offset: from, bytes: parts.length === 1 && parts[0] !== undefined ? parts[0] : Buffer.concat(parts) }
}

/** Undefined: the segment is gone. */
async function readSegment(path: string, position: number, maxBytes: number): Promise<Buffer | undefined> {
  const file = await open(path, 'r').catch(ignoreMissing)
  if (file === undefined) return undefined
  try {
    const { size } = await file.stat()
    const wanted = Math.max(0, Math.min(maxBytes, size - position))
    if (wanted === 0) return Buffer.alloc(0)
    const buffer = Buffer.allocUnsafe(wanted)
    const { bytesRead } = await file.read(buffer, 0, wanted, position)
    return buffer.subarray(0, bytesRead)
  } finally {
    await file.close()
  }
}

async function endOf(directory: string): Promise<number> {
  for (let attempt = 0; attempt < 5; attempt++) {
    const last = (await segments(directory)).at(-1)
    if (last === undefined) return 0
    const found = await stat(segmentPath(directory, last)).catch(ignoreMissing)
    if (found !== undefined) return last + found.size
  }
  return 0
}

async function segments(directory: string): Promise<number[]> {
  return startsAmong((await readdir(directory).catch(ignoreMissing)) ?? [])
}

function startsAmong(names: readonly string[]): number[] {
  const found = names.map((name) => SEGMENT_NAME.exec(name)?.[1]).filter((digits) => digits !== undefined)
  return found.map(Number).sort((a, b) => a - b)
}

/** End offset of a log right now, for whom waiting is not possible; 0 where there is none. */
export function endOffsetSync(directory: string): number {
  try {
    const last = startsAmong(readdirSync(directory)).at(-1)
    return last === undefined ? 0 : last + statSync(segmentPath(directory, last)).size
  } catch {
    return 0
  }
}

const segmentPath = (directory: string, start: number) => join(directory, `out.${String(start).padStart(15, '0')}.log`)

function unlinkIfThere(path: string) {
  try {
    unlinkSync(path)
  } catch {
    // Gone already, or not ours to remove: the cap is then exceeded by one segment, the output is not touched.
  }
}

function ignoreMissing(error: NodeJS.ErrnoException): undefined {
  if (error.code === 'ENOENT') return undefined
  throw error
}
