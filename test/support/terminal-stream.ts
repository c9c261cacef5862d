/** A stream of a terminal, shown: what somebody sees who follows it. */
import xterm from '@xterm/headless'
import { asMap } from './document.ts'
import { eventually } from './http.ts'
import { type SessionApi, sessionPath } from './session-api.ts'
import { openStream, type SseFrame, type SseReader } from './sse.ts'

interface Following {
  readonly viewer?: string
  readonly after?: string | undefined
}

export async function openTerminal(city: SessionApi, id: string, { viewer, after }: Following = {}) {
  const query = viewer === undefined ? '' : `?viewer=${viewer}`
  const headers = after === undefined ? {} : { 'last-event-id': after }
  return new ShownTerminal(await openStream(city.api, `${city.base}${sessionPath(id)}/terminal${query}`, { headers }))
}

class ShownTerminal implements AsyncDisposable {
  readonly events: string[] = []
  readonly #stream: SseReader
  readonly #screen = new xterm.Terminal({ cols: 80, rows: 24, allowProposedApi: true })
  #bytes = ''
  #taken = 0
  #last: SseFrame | undefined
  #size: readonly [unknown, unknown] | undefined

  constructor(stream: SseReader) {
    this.#stream = stream
  }

  get lastId(): string | undefined {
    this.#take()
    return this.#last?.id
  }

  get isAlternate(): boolean {
    return this.#screen.buffer.active.type === 'alternate'
  }

  /** Everything that the program wrote, as far as the stream told it. */
  get bytes(): string {
    this.#take()
    return this.#bytes
  }

  /** Rows, colours and cursor. */
  looks(): string {
    this.#take()
    const { active } = this.#screen.buffer
    const rows = Array.from({ length: this.#screen.rows }, (_, row) => {
      const line = active.getLine(active.baseY + row)
      const cells = Array.from({ length: this.#screen.cols }, (_, column) => line?.getCell(column))
      return cells.map(
        (cell) => `${cell?.getChars() || ' '}${cell?.getFgColor()},${cell?.getBgColor()},${cell?.isBold()}`,
      )
    })
    return JSON.stringify([rows, active.cursorX, active.cursorY])
  }

  text(): string {
    this.#take()
    const { active } = this.#screen.buffer
    const row = (at: number) => active.getLine(active.baseY + at)?.translateToString(true) ?? ''
    return Array.from({ length: this.#screen.rows }, (_, at) => row(at)).join('\n')
  }

  async shows(what: RegExp): Promise<void> {
    try {
      await eventually(`a viewer sees ${what}`, async () => (what.test(this.text()) ? true : undefined))
    } catch (error) {
      throw new Error(`a viewer does not see ${what}:\n${this.text()}`, { cause: error })
    }
  }

  async resizedTo(cols: number, rows: number): Promise<void> {
    await eventually(`a viewer is told of ${cols} columns`, async () => {
      this.#take()
      return this.#size?.[0] === cols && this.#size[1] === rows ? true : undefined
    })
  }

  async ended(): Promise<void> {
    await this.#stream.ended
    this.#take()
  }

  /** Takes nothing more, as a client that hangs. */
  pause(): void {
    this.#stream.response.pause()
  }

  resume(): void {
    this.#stream.response.resume()
  }

  close(): Promise<void> {
    return this.#stream[Symbol.asyncDispose]()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close()
    this.#screen.dispose()
  }

  #take(): void {
    for (const frame of this.#stream.frames.slice(this.#taken)) this.#show(frame)
    this.#taken = this.#stream.frames.length
  }

  #show(frame: SseFrame): void {
    const said = asMap(JSON.parse(frame.data))
    this.events.push(frame.event)
    if (frame.id !== undefined) this.#last = frame
    if (frame.event === 'screen' || frame.event === 'resized') {
      this.#size = [said['cols'], said['rows']]
      this.#screen.resize(Number(said['cols']), Number(said['rows']))
    }
    if (frame.event === 'screen') this.#screen.write(String(said['text']))
    if (frame.event !== 'output') return
    const bytes = Buffer.from(String(said['data']), 'base64')
    this.#bytes += bytes.toString('utf8')
    this.#screen.write(bytes)
  }
}
