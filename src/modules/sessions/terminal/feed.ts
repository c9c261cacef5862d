/**
 * The terminal of one run as a stream: what it shows, then the bytes of its log as they come (decision 221).
 *
 * TF1  A viewer is a place in the log: nothing of the output is kept for it, whoever has fallen behind gets the screen.
 * TF2  `screen` and `output` join without a gap: the place of a screen is where its text ends, in front of a sequence that
 *      goes on.
 * TF3  `ended` comes behind the last byte.
 */
import type { Attachment, Feed, Sink } from '../../../kernel/feed.ts'
import { frame } from '../../../kernel/streams/frame.ts'
import type { Shown } from '../record/ports.ts'
import type { ByteLog } from '../transcripts/entries.ts'
import type { Size } from './viewers.ts'

const CHUNK_BYTES = 64 * 1024
/** Who is behind by more is shown what is there now. */
const MAX_BEHIND_BYTES = 1024 * 1024

export interface TerminalSource {
  readonly sessionId: string
  readonly generation: number
  readonly output: ByteLog
  /** How much of it the host has told of. */
  readonly told: () => number
  /** With everything that is in the log. */
  shown(signal: AbortSignal): Promise<Shown>
  readonly size: () => Size
  /** Undefined while the program runs. */
  readonly ended: () => object | undefined
  /** Calls when there may be more, or something else changed. */
  readonly listen: (wake: () => void) => () => void
  readonly encode: (frames: readonly string[]) => Buffer
}

export interface FollowTerminal {
  /** Where the client goes on, if it can. */
  readonly after: number | undefined
  /** Called when the stream begins; the result when it ends. */
  readonly attend: () => () => void
}

export const terminalFeed = (source: TerminalSource, { after, attend }: FollowTerminal): Feed => ({
  attach(sink): Attachment {
    const leave = attend()
    const follower = new TerminalFollower(source, sink, after)
    return {
      drained: () => follower.drained(),
      detach() {
        leave()
        follower.stop()
      },
    }
  },
})

class TerminalFollower {
  readonly #source: TerminalSource
  readonly #sink: Sink
  readonly #over = new AbortController()
  readonly #unlisten: () => void
  #place: number | undefined
  #size: Size | undefined
  #blocked = false
  #pumping = false
  #again = false

  constructor(source: TerminalSource, sink: Sink, after: number | undefined) {
    this.#source = source
    this.#sink = sink
    this.#place = after
    this.#unlisten = source.listen(() => this.#pump())
    this.#pump()
  }

  drained(): void {
    this.#blocked = false
    this.#pump()
  }

  stop(): void {
    this.#over.abort()
    this.#unlisten()
  }

  #pump(): void {
    this.#again = true
    if (this.#pumping || this.#blocked || this.#over.signal.aborted) return
    this.#pumping = true
    void this.#run().finally(() => {
      this.#pumping = false
      if (this.#again) this.#pump()
    })
  }

  async #run(): Promise<void> {
    while (this.#again && !this.#blocked && !this.#over.signal.aborted) {
      this.#again = false
      // What cannot be read now is read at the next sign of life.
      if (await this.#step().catch(() => false)) this.#again = true
    }
  }

  /** True where there may be more. */
  async #step(): Promise<boolean> {
    const { output, told, ended: endOf } = this.#source
    // Taken before the read: what was written until then is sent before the end is told.
    const ended = endOf()
    // While it runs its host tells; a person who types waits for no look at the disk.
    const end = ended === undefined ? told() : await output.endOffset()
    const place = this.#place
    if (place === undefined || end - place > MAX_BEHIND_BYTES || (place > end && place > (await output.endOffset()))) {
      if (ended === undefined) return this.#show()
      // There is no screen any more, only the last bytes.
      this.#place = Math.max(0, end - MAX_BEHIND_BYTES)
      return true
    }
    // What was drawn for another size stands in the wrong places.
    if (ended === undefined && this.#tellSize()) return this.#show()
    const nothing = { offset: place, bytes: Buffer.alloc(0) }
    const { offset, bytes } = end > place || ended !== undefined ? await output.read(place, CHUNK_BYTES) : nothing
    if (this.#over.signal.aborted) return false
    if (bytes.length > 0) {
      this.#place = offset + bytes.length
      this.#write('output', { offset, data: bytes.toString('base64') }, this.#place)
      return true
    }
    if (ended !== undefined) this.#end(ended)
    return false
  }

  async #show(): Promise<boolean> {
    const shown = await this.#source.shown(this.#over.signal)
    const { columns: cols, rows, cursor, title, alternate, offset } = shown
    const text = shown.escapeText()
    this.#place = offset
    this.#size = { columns: cols, rows }
    const named = title === '' ? {} : { title }
    const screen = { session_id: this.#source.sessionId, cols, rows, cursor, ...named, alternate, offset, text }
    this.#write('screen', screen, offset)
    return true
  }

  /** True where it is another one than the client knew. */
  #tellSize(): boolean {
    const { columns, rows } = this.#source.size()
    const before = this.#size
    if (columns === before?.columns && rows === before.rows) return false
    this.#size = { columns, rows }
    this.#write('resized', { cols: columns, rows })
    return before !== undefined
  }

  #end(ended: object): void {
    this.#write('ended', ended)
    this.stop()
    this.#sink.end()
  }

  #write(event: string, data: object, place?: number): void {
    if (this.#over.signal.aborted) return
    const id = place === undefined ? undefined : formatTerminalPlace(this.#source.generation, place)
    if (!this.#sink.write(this.#source.encode([frame(event, data, id)]))) this.#blocked = true
  }
}

const formatTerminalPlace = (generation: number, offset: number): string => `${generation}-${offset}`

/** Undefined: not one of ours. */
export function parseTerminalPlace(text: string): { readonly generation: number; readonly offset: number } | undefined {
  const found = /^([1-9]\d{0,8})-(0|[1-9]\d{0,14})$/.exec(text)
  return found === null ? undefined : { generation: Number(found[1]), offset: Number(found[2]) }
}
