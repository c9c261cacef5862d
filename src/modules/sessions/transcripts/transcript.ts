/** The transcript of one session: its chapters as one row of entries, by id, in pages (decision 66). */
import { cut } from '../../../contract/base/text.ts'
import { problem } from '../../../kernel/problem.ts'
import type { Chapter, Position } from './chapters.ts'
import type { Entry } from './entries.ts'

export interface Item {
  readonly id: string
  readonly text: boolean
  readonly entry: Entry
  /** It is more of an entry of which the beginning was shown before, under the same id. */
  readonly goesOn?: true
}

/** An entry that what comes may go on with: in the same chapter, with the same run. */
export interface OpenItem {
  readonly chapter: number
  readonly id: string
  readonly run: string
}

/** A place between entries, in one of the chapters. */
export interface Place extends Position {
  readonly chapter: number
}

export interface Page {
  readonly items: readonly Item[]
  readonly older: boolean
  readonly newer: boolean
  /** Where a stream goes on behind the page. */
  readonly place: Place | undefined
  /** Lines of logs in it that nobody can read. */
  readonly unreadable: number
  /** Of a page that begins where what is kept begins: runs of the session of which nothing is. */
  readonly lostRuns?: number
}

/** What is drawn takes a while: a thousand lines and more. */
const DRAWN_BYTES = 64 * 1024

const PLACE = /^(\d{1,9})-(\d{1,15})(?:\.(\d{1,15}))?$/

/** The id of an entry, or the `id:` of a frame; undefined for what is neither. */
export function parsePlace(text: string): Place | undefined {
  const [, chapter, offset, sub] = PLACE.exec(text) ?? []
  if (chapter === undefined || offset === undefined) return undefined
  return { chapter: Number(chapter), offset: Number(offset), sub: Number(sub ?? 0) }
}

const QUESTION = /^(.*)~([\w.:-]{1,200})$/

/** The `id:` of a frame: the place, and behind a question also that its client knows of it. */
export const formatResume = (place: string, question: string | undefined): string =>
  question === undefined ? place : `${place}~${question}`

export function splitResume(text: string): { readonly place: string; readonly question: string | undefined } {
  const [, place = text, question] = QUESTION.exec(text) ?? []
  return { place, question }
}

export const formatPlace = ({ chapter, offset, sub }: Place): string =>
  sub === 0 ? `${chapter}-${offset}` : `${chapter}-${offset}.${sub}`

export class Transcript {
  readonly #chapters: readonly Chapter[]
  readonly #lostRuns: number
  /** Which logs it is read from: places in one mean nothing in another. */
  readonly source: string
  /** So many bytes of terminals are a page, however many entries were asked for. */
  readonly room: number

  /** Chapters in the order of their numbers. */
  constructor(chapters: readonly Chapter[], { source = '', lostRuns = 0, room = DRAWN_BYTES } = {}) {
    this.#chapters = chapters
    this.#lostRuns = lostRuns
    this.source = source
    this.room = room
  }

  get empty(): boolean {
    return this.#chapters.length === 0
  }

  /** What a terminal showed, and nothing else, is text. */
  get text(): boolean {
    return this.#chapters.at(-1)?.text ?? true
  }

  async newest(limit: number): Promise<Page> {
    return this.#backward(undefined, limit)
  }

  /** Entries before the one of that id; refuses what is none. */
  async before(id: string, limit: number): Promise<Page> {
    const at = await this.#known(id)
    const end =
      at.sub === 0 ? { offset: at.offset, sub: Number.MAX_SAFE_INTEGER } : { offset: at.offset, sub: at.sub - 1 }
    return this.#backward({ ...end, chapter: at.chapter }, limit)
  }

  async after(id: string, limit: number): Promise<Page> {
    const at = await this.#known(id)
    const behind = await this.#of(at.chapter)?.behind(at)
    if (behind === undefined) throw unknownEntry(id)
    const page = await this.forward({ ...behind, chapter: at.chapter }, limit)
    return { ...page, older: true }
  }

  /** Entries from a place on; the place of the first is where reading began. */
  async forward(from: Place, limit: number): Promise<Page> {
    const items: Item[] = []
    let unreadable = 0
    let place = from
    for (const chapter of this.#chapters) {
      if (chapter.number < from.chapter) continue
      const start = chapter.number === from.chapter ? from : await chapter.start()
      const part = await chapter.after(start, limit - items.length)
      items.push(...part.entries.map((entry) => itemOf(chapter, entry)))
      unreadable += part.unreadable ?? 0
      place = { ...part.next, chapter: chapter.number }
      if (!part.complete || items.length >= limit) {
        const last = chapter === this.#chapters.at(-1)
        return { items, older: true, newer: !part.complete || !last, place, unreadable }
      }
    }
    return { items, older: true, newer: false, place, unreadable }
  }

  /** Output of the run that the page begins in that is no longer kept. */
  async dropped({ items }: Page): Promise<number> {
    const first = items[0] === undefined ? undefined : parsePlace(items[0].id)
    return first === undefined ? 0 : ((await this.#of(first.chapter)?.dropped()) ?? 0)
  }

  /** Where an entry begins that goes on at `place`: to show it anew, and whole. */
  async opening(place: Place): Promise<Place> {
    const at = await this.#of(place.chapter)?.opening(place)
    return at === undefined ? place : { ...at, chapter: place.chapter }
  }

  /** The entry that what is at `place` may go on with. */
  async open({ chapter, ...at }: Place): Promise<OpenItem | undefined> {
    const found = await this.#of(chapter)?.open(at)
    return found === undefined ? undefined : { chapter, id: formatPlace({ ...found, chapter }), run: found.run }
  }

  /** Whether it has a chapter of the place. */
  covers({ chapter }: Place): boolean {
    return this.#of(chapter) !== undefined
  }

  /** False for a place that is not in the transcript (any more). Chapter 0 is the place before everything. */
  async has({ chapter, ...at }: Place): Promise<boolean> {
    return chapter === 0 || ((await this.#of(chapter)?.holds(at)) ?? false)
  }

  async #backward(end: Place | undefined, limit: number): Promise<Page> {
    const items: Item[] = []
    let unreadable = 0
    let place: Place | undefined
    for (const chapter of this.#chapters.toReversed()) {
      if (end !== undefined && chapter.number > end.chapter) continue
      const until = chapter.number === end?.chapter ? end : undefined
      const part = await chapter.before(until, limit - items.length)
      items.unshift(...part.entries.map((entry) => itemOf(chapter, entry)))
      unreadable += part.unreadable ?? 0
      place ??= { ...part.next, chapter: chapter.number }
      const first = chapter === this.#chapters[0]
      if (!part.complete || items.length >= limit)
        return {
          items,
          older: !part.complete || !first,
          newer: end !== undefined,
          place,
          unreadable,
          lostRuns: this.#lostRuns,
        }
    }
    return { items, older: false, newer: end !== undefined, place, unreadable, lostRuns: this.#lostRuns }
  }

  #of(number: number): Chapter | undefined {
    return this.#chapters.find((chapter) => chapter.number === number)
  }

  async #known(id: string): Promise<Place> {
    const place = parsePlace(id)
    const chapter = place === undefined ? undefined : this.#of(place.chapter)
    if (place === undefined || chapter === undefined || (await chapter.behind(place)) === undefined)
      throw unknownEntry(id)
    return place
  }
}

const unknownEntry = (id: string) =>
  problem('transcript-cursor-invalidated', `the transcript has no entry ${cut(id, 100)}`)

const itemOf = (chapter: Chapter, entry: Entry): Item => ({
  id: formatPlace({ chapter: chapter.number, offset: entry.offset, sub: entry.sub ?? 0 }),
  text: chapter.text,
  entry,
})
