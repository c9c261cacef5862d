/**
 * Transcripts as entries (decision 66). A log is bytes by offset; an entry is what one of its lines says, or a run of
 * lines that belong together. `<chapter>-<offset>` names an entry: where its first line begins.
 *
 * T1  Where an entry begins depends on the bytes of its own block of 64 KiB only, so that a page read from anywhere and
 *     one read from the beginning agree, and a log of any size is opened at its tail.
 * T2  No read takes more than its window; what is in no window is older, never lost. Only a line that is longer than the
 *     largest window is passed over: what is before and behind it is read.
 */
import type { StructuredMessage } from '../../../contract/sessions/session-transcript.ts'

export const BLOCK_BYTES = 64 * 1024
const FIRST_WINDOW_BYTES = 2 * BLOCK_BYTES
const MAX_WINDOW_BYTES = 32 * 1024 * 1024
const SCAN_BYTES = 1024 * 1024
/** More are not counted. */
const MAX_UNREADABLE = 1_000
const NEWLINE = 10

/** Bytes by offset; the output of a run, or the log of a harness. */
export interface ByteLog {
  startOffset(): Promise<number>
  endOffset(): Promise<number>
  /** At most `maxBytes` from `offset`; what was dropped is skipped. */
  read(offset: number, maxBytes: number): Promise<{ readonly offset: number; readonly bytes: Buffer }>
}

export type Message = Omit<StructuredMessage, 'id'>

/** What a line says. Lines next to each other with the same `merge` are one entry. */
export interface Said {
  readonly message: Message
  readonly merge?: string
}

/** How the lines of a log are read; never throws. */
export type Dialect = (line: string, offset: number) => Said | undefined

export interface Entry {
  readonly offset: number
  /** Tells apart entries of one offset: the number of a delivery. */
  readonly sub?: number
  /** Where the next one may begin. */
  readonly end: number
  readonly message: Message
  readonly raw: readonly unknown[]
  /** What goes on behind the entry goes on with it where it has the same. */
  readonly run?: string
}

export interface Stretch {
  /** In the order of the log. */
  readonly entries: readonly Entry[]
  /** Nothing is before the first of them (backward), or after the last (forward). */
  readonly complete: boolean
  /** Up to where the log was read. */
  readonly end: number
  /** Lines among them that are no JSON. */
  readonly unreadable: number
}

interface Line {
  readonly offset: number
  readonly end: number
  readonly text: string
}

/** The last `limit` entries that begin before `end`. */
export async function entriesBefore(
  log: ByteLog,
  dialect: Dialect,
  end: number,
  limit: number,
  floor = 0,
): Promise<Stretch> {
  const start = Math.max(await log.startOffset(), floor)
  let reached: number | undefined
  let until = end
  for (let size = FIRST_WINDOW_BYTES; ; size *= 4) {
    const from = Math.max(start, blockStart(Math.max(0, until - size)))
    const read = await linesOf(log, from, until, from === start)
    const { entries, unreadable } = merge(read.lines, dialect)
    const whole = from <= start
    if (read.begins) reached ??= read.end
    if (entries.length >= limit || whole || (entries.length > 0 && size >= MAX_WINDOW_BYTES)) {
      const complete = whole && entries.length <= limit
      const page = entries.slice(-limit)
      const from = complete ? start : (page[0]?.offset ?? 0)
      return { entries: page, complete, end: reached ?? read.end, unreadable: between(unreadable, from, end) }
    }
    if (size < MAX_WINDOW_BYTES) continue
    // Nothing here that anybody reads, or the middle of a line.
    until = read.lines[0]?.offset ?? (await lineStartBefore(log, from, start))
    reached ??= until
    size = FIRST_WINDOW_BYTES / 4
  }
}

/** Where the line begins that goes on at `offset`. */
async function lineStartBefore(log: ByteLog, offset: number, start: number): Promise<number> {
  for (let until = offset; until > start; until -= SCAN_BYTES) {
    const from = Math.max(start, until - SCAN_BYTES)
    const { offset: at, bytes } = await log.read(from, until - from)
    const newline = bytes.lastIndexOf(NEWLINE)
    if (newline >= 0) return at + newline + 1
  }
  return start
}

/** Where the line ends that goes on at `offset`; undefined: it has not ended. */
async function lineEndAfter(log: ByteLog, offset: number, logEnd: number): Promise<number | undefined> {
  for (let from = offset; from < logEnd; from += SCAN_BYTES) {
    const { offset: at, bytes } = await log.read(from, SCAN_BYTES)
    const newline = bytes.indexOf(NEWLINE)
    if (newline >= 0) return at + newline + 1
  }
  return undefined
}

/** At most `limit` entries that begin at `from` or later, which must be where a line begins. */
export async function entriesAfter(log: ByteLog, dialect: Dialect, from: number, limit: number): Promise<Stretch> {
  const logEnd = await log.endOffset()
  let at = from
  for (let size = FIRST_WINDOW_BYTES; ; size *= 4) {
    const { lines, end } = await linesOf(log, at, Math.min(logEnd, at + size), true)
    const { entries, unreadable } = merge(lines, dialect)
    const whole = at + size >= logEnd
    // The last one may go on behind the window.
    const known = whole || size >= MAX_WINDOW_BYTES ? entries : entries.slice(0, -1)
    if (known.length >= limit || whole || (known.length > 0 && size >= MAX_WINDOW_BYTES)) {
      const page = known.slice(0, limit)
      const complete = whole && known.length <= limit
      const until = complete ? end : (page.at(-1)?.end ?? end)
      return { entries: page, complete, end: until, unreadable: between(unreadable, from, until) }
    }
    if (size < MAX_WINDOW_BYTES) continue
    const next = lines.length > 0 ? end : await lineEndAfter(log, at + size, logEnd)
    if (next === undefined) return { entries: [], complete: true, end: at, unreadable: 0 }
    at = next
    size = FIRST_WINDOW_BYTES / 4
  }
}

/** The entry that begins at `offset`; undefined: none does. */
export async function entryAt(log: ByteLog, dialect: Dialect, offset: number): Promise<Entry | undefined> {
  if (offset > 0 && !(await isLineStart(log, offset))) return undefined
  const { entries } = await entriesAfter(log, dialect, offset, 1)
  return entries[0]?.offset === offset ? entries[0] : undefined
}

/** The entry that may go on at `offset`; undefined where none does. */
export async function openEntry(log: ByteLog, dialect: Dialect, offset: number): Promise<Entry | undefined> {
  const start = await log.startOffset()
  const from = Math.max(start, blockStart(offset))
  if (from >= offset) return undefined
  const { lines } = await linesOf(log, from, offset, from === start)
  const last = merge(lines, dialect).entries.at(-1)
  return last?.run === undefined ? undefined : last
}

/** False for the middle of a line. */
export async function isLineStart(log: ByteLog, offset: number): Promise<boolean> {
  if (offset === (await log.startOffset())) return true
  const { offset: at, bytes } = await log.read(offset - 1, 1)
  return at === offset - 1 && bytes[0] === NEWLINE
}

/** Where the block of `offset` begins, or the log itself. */
export const blockStart = (offset: number): number => Math.floor(offset / BLOCK_BYTES) * BLOCK_BYTES

/** Whole lines that begin in `[from, end)`; with `atLine` the first byte begins one. `begins`: some line does, whole or not. */
export async function linesOf(
  log: ByteLog,
  from: number,
  end: number,
  atLine: boolean,
): Promise<{ readonly lines: readonly Line[]; readonly end: number; readonly begins: boolean }> {
  const lead = atLine ? 0 : 1
  const { offset, bytes } = await log.read(from - lead, Math.max(0, end - from + lead))
  const lines: Line[] = []
  let at = 0
  if (lead > 0 || offset > from) {
    const first = bytes.indexOf(NEWLINE)
    if (first < 0) return { lines, end: offset, begins: false }
    at = first + 1
  }
  for (let next = bytes.indexOf(NEWLINE, at); next >= 0; next = bytes.indexOf(NEWLINE, at)) {
    lines.push({ offset: offset + at, end: offset + next + 1, text: bytes.toString('utf8', at, next) })
    at = next + 1
  }
  return { lines, end: offset + at, begins: true }
}

const between = (offsets: readonly number[], from: number, to: number): number =>
  offsets.filter((offset) => offset >= from && offset < to).length

/** The entries, and where lines begin that nobody can read. */
function merge(lines: readonly Line[], dialect: Dialect): { readonly entries: Entry[]; readonly unreadable: number[] } {
  const entries: Entry[] = []
  const unreadable: number[] = []
  for (const { offset, end, text } of lines) {
    const said = dialect(text, offset)
    if (said === undefined) {
      if (text.trim() !== '' && typeof rawOf(text) === 'string' && unreadable.length < MAX_UNREADABLE)
        unreadable.push(offset)
      continue
    }
    const last = entries.at(-1)
    // T1: a run ends where its block does.
    const run = said.merge === undefined ? undefined : `${said.merge} ${blockStart(offset)}`
    if (last !== undefined && run !== undefined && last.run === run) {
      entries[entries.length - 1] = {
        ...last,
        end,
        message: joined(last.message, said.message),
        raw: [...last.raw, rawOf(text)],
      }
      continue
    }
    entries.push({
      offset,
      end,
      message: said.message,
      raw: [rawOf(text)],
      ...(run === undefined ? {} : { run }),
    })
  }
  return { entries, unreadable }
}

/** Text goes on in the block before it; everything else stands behind. */
function joined(before: Message, after: Message): Message {
  const blocks = [...before.blocks]
  for (const block of after.blocks) {
    const last = blocks.at(-1)
    if (block.type === 'text' && last?.type === 'text') {
      blocks[blocks.length - 1] = { type: 'text', text: last.text + block.text }
    } else if (block.type === 'thinking' && last?.type === 'thinking') {
      blocks[blocks.length - 1] = { type: 'thinking', thinking: last.thinking + block.thinking }
    } else blocks.push(block)
  }
  return { ...before, ...after, blocks }
}

function rawOf(line: string): unknown {
  try {
    return JSON.parse(line)
  } catch {
    return line
  }
}
