/**
 * A transcript is a row of chapters: one per run of the session for what its runtime captured, one per conversation for
 * the log of a harness. Each reads pages of entries in either direction.
 */
import { halfLetter, LONGEST_SEQUENCE, unfinishedBytes } from '../../../runtimes/terminal/unfinished.ts'
import {
  BLOCK_BYTES,
  type ByteLog,
  blockStart,
  type Dialect,
  type Entry,
  entriesAfter,
  entriesBefore,
  entryAt,
  isLineStart,
  linesOf,
  openEntry,
  type Stretch,
} from './entries.ts'

/**
 * Everything before `offset` was read. In the text of a terminal also every message up to the number `sub`, wherever it
 * stands: one may be recorded only after the output behind it was read.
 */
export interface Position {
  readonly offset: number
  readonly sub: number
}

export interface Part {
  readonly entries: readonly Entry[]
  readonly complete: boolean
  /** Where reading goes on (forward). */
  readonly next: Position
  /** Lines among them that nobody can read. */
  readonly unreadable?: number
}

export interface OpenEntry extends Position {
  readonly run: string
}

export interface Chapter {
  readonly number: number
  /** Text of a terminal: no structure is known. */
  readonly text: boolean
  /** The last ones before `end`; before everything that is not there yet where it is absent. */
  before(end: Position | undefined, limit: number): Promise<Part>
  after(from: Position, limit: number): Promise<Part>
  /** Where the entry begins that `at` is in the middle of; `at` itself where it is at no such place. */
  opening(at: Position): Promise<Position>
  /** The entry that what is at `at` may go on with; undefined where none does. */
  open(at: Position): Promise<OpenEntry | undefined>
  /** Where reading goes on behind the entry; undefined: there is none. */
  behind(at: Position): Promise<Position | undefined>
  start(): Promise<Position>
  /** Whether reading can go on there: false where that was dropped, or is not there (any more). */
  holds(at: Position): Promise<boolean>
  /** Bytes of its log that are no longer kept. */
  dropped(): Promise<number>
  end(): Promise<number>
}

/** Lines of JSON: of the agent protocol, or of a harness. */
export function lineChapter(number: number, log: ByteLog, dialect: Dialect, floor: () => Promise<number>): Chapter {
  const partOf = ({ entries, complete, end, unreadable }: Stretch): Part => ({
    entries,
    complete,
    next: { offset: end, sub: 0 },
    unreadable,
  })
  return {
    number,
    text: false,
    start: async () => ({ offset: Math.max(await log.startOffset(), await floor()), sub: 0 }),
    // Not the floor: who has read to somewhere before it goes on behind it.
    holds: async ({ offset }) =>
      offset >= (await log.startOffset()) && offset <= (await log.endOffset()) && (await isLineStart(log, offset)),
    dropped: () => log.startOffset(),
    end: () => log.endOffset(),
    before: async (end, limit) =>
      partOf(await entriesBefore(log, dialect, end?.offset ?? (await log.endOffset()), limit, await floor())),
    after: async ({ offset }, limit) =>
      partOf(await entriesAfter(log, dialect, Math.max(offset, await floor()), limit)),
    opening: async (at) => ({ offset: (await openEntry(log, dialect, at.offset))?.offset ?? at.offset, sub: 0 }),
    open: async (at) => {
      const entry = await openEntry(log, dialect, at.offset)
      return entry?.run === undefined ? undefined : { offset: entry.offset, sub: 0, run: entry.run }
    },
    behind: async ({ offset }) => {
      const entry = await entryAt(log, dialect, offset)
      return entry === undefined ? undefined : { offset: entry.end, sub: 0 }
    },
  }
}

/** A message that was typed into a terminal, at the end that its output had then. */
export interface Typed {
  readonly seq: number
  readonly id: string
  readonly text: string
  readonly end_offset: number
  readonly at: string
}

/** Messages with numbers above `after` that were typed in `[from, to]`. */
export interface TypedRange {
  readonly after: number
  readonly from: number
  readonly to: number
}

export interface TerminalSources {
  readonly provider: string
  readonly log: ByteLog
  /** In order: of their numbers, and so of their places. */
  readonly typed: (range: TypedRange) => readonly Typed[]
  /** Number of the last message that was typed before `offset`; 0: none was. */
  readonly lastTyped: (offset: number) => number
  /** What the bytes add to what a person has read of those before them; `anew`: in the place of its last line. */
  readonly render: (bytes: Buffer, before: Buffer) => Promise<{ readonly text: string; readonly anew: boolean }>
}

/** Drawing is work: reading on from a place takes no more than this at once. */
const PAGE_BYTES = 2 * BLOCK_BYTES
/** Programs draw their lines anew from where they stand: so much of what was there is looked at with what comes. */
const BEFORE_BYTES = 8 * 1024

/**
 * Output of a terminal: bytes by offset, cut where a message was typed and at blocks of 64 KiB; while it comes, also wherever
 * it was read to. Each piece has the name of its place, and says what it adds to those before it.
 */
export function terminalChapter(number: number, sources: TerminalSources): Chapter {
  const { log, typed, lastTyped, provider } = sources

  /** A message that was recorded late stands where reading is. */
  const stretch = async (from: number, to: number, said: readonly Typed[]): Promise<Entry[]> => {
    const entries: Entry[] = []
    let at = from
    for (const message of said) {
      const place = Math.max(at, message.end_offset)
      entries.push(...(await outputEntries(sources, at, place)), userEntry(message, provider))
      at = place
    }
    entries.push(...(await outputEntries(sources, at, to)))
    return entries
  }

  /** The last entries before `end`, block by block: nothing is drawn that is not on the page. */
  const backwards = async (end: Position, limit: number): Promise<Part> => {
    const start = await log.startOffset()
    const said = typed({ after: 0, from: blockBefore(end.offset, start), to: end.offset })
    // Taken with the messages: one that is recorded while they are drawn is none that was read.
    const next = { offset: end.offset, sub: lastOf(said, end) ?? lastTyped(blockBefore(end.offset, start)) }
    const entries: Entry[] = []
    let to = end.offset
    for (;;) {
      const from = blockBefore(to, start)
      const isFirst = to === end.offset
      const inBlock = isFirst ? said : typed({ after: 0, from, to: to - 1 })
      entries.unshift(...(await stretch(from, to, isFirst ? inBlock.filter((one) => isBefore(one, end)) : inBlock)))
      to = from
      if (to <= start || entries.length >= limit || end.offset - to >= BLOCK_BYTES) break
    }
    return { entries: entries.slice(-limit), complete: to <= start && entries.length <= limit, next }
  }

  /** What is behind it waits for more; a message that was typed there does not. */
  const settledEnd = async (): Promise<number> => {
    const end = await log.endOffset()
    const { bytes } = await log.read(Math.max(0, end - LONGEST_SEQUENCE), LONGEST_SEQUENCE)
    const settled = end - unfinishedBytes(bytes)
    return settled === end ? end : (typed({ after: 0, from: settled, to: end }).at(-1)?.end_offset ?? settled)
  }

  return {
    number,
    text: true,
    holds: async ({ offset }) => offset >= (await log.startOffset()) && offset <= (await log.endOffset()),
    dropped: () => log.startOffset(),
    start: async () => {
      const offset = await log.startOffset()
      return { offset, sub: lastTyped(offset) }
    },
    end: () => log.endOffset(),
    before: async (end, limit) => backwards(end ?? { offset: await settledEnd(), sub: Number.MAX_SAFE_INTEGER }, limit),
    after: async (from, limit) => {
      const end = await settledEnd()
      const first = Math.max(from.offset, await log.startOffset())
      const to = Math.max(first, Math.min(end, blockStart(first) + PAGE_BYTES))
      const said = typed({ after: from.sub, from: 0, to })
      const entries = await stretch(first, to, said)
      const page = entries.slice(0, limit)
      const whole = entries.length <= limit
      return {
        entries: page,
        complete: whole && to >= end,
        next: whole ? { offset: to, sub: said.at(-1)?.seq ?? from.sub } : reached(page, from),
      }
    },
    opening: (at) => Promise.resolve(at),
    open: () => Promise.resolve(undefined),
    behind: async (at) => {
      const { offset, sub } = at
      if (sub > 0) return typed({ after: sub - 1, from: offset, to: offset })[0]?.seq === sub ? at : undefined
      const end = await log.endOffset()
      if (offset >= end || offset < (await log.startOffset())) return undefined
      const blockEnd = Math.min(await settledEnd(), blockStart(offset) + BLOCK_BYTES)
      const [next] = typed({ after: 0, from: offset + 1, to: blockEnd })
      const boundary = Math.min(blockEnd, next?.end_offset ?? blockEnd)
      return { offset: boundary, sub: lastTyped(boundary) }
    },
  }
}

/** How far one has read who has read these. */
const reached = (entries: readonly Entry[], from: Position): Position => ({
  offset: Math.max(from.offset, ...entries.map(({ end }) => end)),
  sub: Math.max(from.sub, ...entries.map(({ sub }) => sub ?? 0)),
})

const userEntry = ({ seq, id, text, end_offset, at }: Typed, provider: string): Entry => ({
  offset: end_offset,
  sub: seq,
  end: end_offset,
  message: {
    role: 'user',
    provider,
    status: 'final',
    timestamp: at,
    delivery_id: id,
    blocks: [{ type: 'text', text }],
  },
  raw: [{ delivery_id: id, text }],
})

/** Where the block begins that ends at `offset`, or has it in its middle. */
const blockBefore = (offset: number, start: number): number => Math.max(start, blockStart(Math.max(0, offset - 1)))

const isBefore = ({ end_offset: at, seq }: Typed, end: Position): boolean => at < end.offset || seq <= end.sub
const lastOf = (said: readonly Typed[], end: Position): number | undefined =>
  said.findLast((one) => isBefore(one, end))?.seq

async function outputEntries(sources: TerminalSources, from: number, to: number): Promise<Entry[]> {
  const entries: Entry[] = []
  for (let at = from; at < to; ) {
    const end = Math.min(to, blockStart(at) + BLOCK_BYTES)
    const entry = await outputEntry(sources, at, end)
    if (entry !== undefined) entries.push(entry)
    at = end
  }
  return entries
}

/** Also where there is nothing to see: its bytes are there all the same. */
async function outputEntry(
  { log, render, provider }: TerminalSources,
  from: number,
  end: number,
): Promise<Entry | undefined> {
  const lead = Math.min(from, BEFORE_BYTES)
  const { offset, bytes: read } = await log.read(from - lead, lead + end - from)
  const before = read.subarray(0, Math.max(0, from - offset))
  const bytes = read.subarray(before.length)
  if (bytes.length === 0) return undefined
  const { text: added, anew } = await render(bytes, before)
  const text = anew && added !== '' ? `\r${added}` : added
  return {
    offset: Math.max(from, offset),
    end,
    message: { role: 'unknown', provider, status: 'final', blocks: text === '' ? [] : [{ type: 'text', text }] },
    raw: [wholeText(bytes, before)],
  }
}

const LONGEST_CHARACTER = 4

/** A letter that is cut belongs to what it ends in. */
function wholeText(bytes: Buffer, before: Buffer): string {
  const last = before.subarray(-LONGEST_CHARACTER)
  const begun = last.subarray(last.length - halfLetter(last))
  const own = bytes.subarray(0, bytes.length - halfLetter(bytes))
  return Buffer.concat([begun, own]).toString('utf8')
}

/**
 * Where a chapter really begins whose agent first repeats an earlier conversation: behind the end of the repetition.
 * `marks` tells what a line says about it.
 */
export async function behindReplay(
  log: ByteLog,
  marks: (line: string) => 'begin' | 'end' | undefined,
): Promise<number> {
  const end = await log.endOffset()
  const start = await log.startOffset()
  let replaying = false
  let at = start
  while (at < end) {
    const { lines, end: read } = await linesOf(log, at, Math.min(end, at + 4 * BLOCK_BYTES), true)
    for (const line of lines) {
      const mark = marks(line.text)
      if (mark === 'end') return line.end
      replaying ||= mark === 'begin'
    }
    // A repetition begins before anything else is said.
    if (!replaying) return start
    if (read === at) break
    at = read
  }
  return replaying ? end : start
}
