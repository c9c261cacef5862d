/**
 * The terminal of a session put through to the one that somebody sits at: everything that is shown, every key, the size.
 *
 * AT1  The terminal is given back on every way out; what the session's program did to it is undone.
 * AT2  A lost connection is not the end: the server is looked for again, and then everything is shown anew. What was on
 *      its way is typed once; keys that are typed meanwhile are not kept: when they arrived, they would answer something
 *      else.
 * AT3  Nothing is read from the server before the terminal has taken what came before: who is slow is shown the screen
 *      of the moment, and nothing piles up.
 */
import { backoffMs } from '../../client/backoff.ts'
import type { Client } from '../../client/client.ts'
import { delay } from '../../client/clock.ts'
import { type Frame, follow } from '../../client/follow.ts'
import { ApiProblem, isRecord, Unreachable } from '../../client/problems.ts'
import type { Context } from '../base/context.ts'
import { isRegistered } from '../base/discovery.ts'
import { printable } from '../base/failure.ts'
import type { TakenTerminal, Terminal } from '../base/io.ts'
import { Leaving } from './leaving.ts'
import { PassingOutput } from './passing.ts'
import { type Seat, Typing } from './typing.ts'

const ESC = '\u001b'
const BELL = '\u0007'
const LONGEST_PAUSE_MS = 2_000
const LAST_KEYS_MS = 2_000
const PASSING_STATUS: readonly number[] = [408, 425, 429, 500, 502, 503, 504]

/** Until whoever sits there leaves, or the program ends; false: the session has no terminal. */
export async function sitAt(context: Context, seat: Seat, terminal: Terminal): Promise<boolean> {
  const client = await context.client()
  const sitting = new Sitting(context, client, seat, terminal)
  // What is refused is said before anything changes on the screen.
  try {
    await sitting.tellSize()
  } catch (error) {
    if (error instanceof ApiProblem && error.code === 'unsupported') return false
    throw error
  }
  await context.note(`attached to ${seat.id}: ctrl-], or ~. at the start of a line, leaves; the session goes on`)
  const end = await sitting.until()
  await context.note(end)
  return true
}

class Sitting {
  readonly #context: Context
  readonly #client: Client
  readonly #seat: Seat
  readonly #terminal: Terminal
  readonly #passing = new PassingOutput()
  readonly #leaving = new Leaving()
  readonly #left = Promise.withResolvers<string>()
  #taken: TakenTerminal | undefined
  readonly #viewer: string
  readonly #typing: Typing
  /** Ends the connection that is open. */
  #connection = new AbortController()
  #isFirst = true
  #resizing = false
  #resizeAgain = false

  constructor(context: Context, client: Client, seat: Seat, terminal: Terminal) {
    this.#context = context
    this.#client = client
    this.#seat = seat
    this.#terminal = terminal
    this.#viewer = context.io.newKey()
    this.#typing = new Typing({
      ...{ client, seat, viewer: this.#viewer },
      refused: ({ detail }) => void this.#say(`not typed: ${detail}`),
      failed: (error) => this.#left.reject(error),
    })
  }

  /** Why it is over, in a sentence. */
  async until(): Promise<string> {
    const over = new AbortController()
    const { io } = this.#context
    const signal = AbortSignal.any([io.signal, over.signal])
    const stop = () => this.#left.reject(io.signal.reason)
    io.signal.addEventListener('abort', stop, { once: true })
    this.#taken = this.#terminal.take('through', {
      onBytes: (bytes) => this.#typed(bytes),
      onResize: () => void this.#resized(),
      onReturn: () => this.#again(),
    })
    const looking = this.#look(signal)
    try {
      const end = await Promise.race([looking, this.#left.promise])
      // What was typed right before leaving is on its way.
      await Promise.race([this.#typing.settled(), delay(this.#client.clock, LAST_KEYS_MS, io.signal)])
      return end
    } finally {
      io.signal.removeEventListener('abort', stop)
      over.abort(new DOMException('nobody looks any more', 'AbortError'))
      // With the place of the cursor, which whoever gives the terminal back does not know.
      if (this.#passing.isAlternate) await this.#taken.write(`${ESC}[?1049l`).catch(() => undefined)
      this.#taken.release()
      await looking.catch(() => undefined)
    }
  }

  /** Over as many connections as it takes. */
  async #look(signal: AbortSignal): Promise<string> {
    for (let failures = 0; ; ) {
      const lost = await this.#connect(signal, () => {
        failures = 0
      })
      signal.throwIfAborted()
      if ('ended' in lost) return lost.ended
      if (lost.reason === undefined) continue
      const pause = Math.min(backoffMs(failures, this.#client.random()), LONGEST_PAUSE_MS)
      failures += 1
      await this.#say(`${lost.reason}: looking for the server; ctrl-] leaves`)
      await delay(this.#client.clock, pause, signal)
    }
  }

  /** One connection. Without a reason: it was ended to begin anew. */
  async #connect(
    signal: AbortSignal,
    onFrame: () => void,
  ): Promise<{ readonly ended: string } | { readonly reason: string | undefined }> {
    const connection = new AbortController()
    this.#connection = connection
    const within = AbortSignal.any([signal, connection.signal])
    try {
      if (!this.#isFirst) await this.tellSize(within)
      this.#isFirst = false
      const options = { params: this.#seat, query: { viewer: this.#viewer }, signal: within, reconnect: false }
      for await (const frame of follow(this.#client, 'stream-session-terminal', options)) {
        onFrame()
        this.#typing.connected(connection.signal)
        const end = await this.#show(frame)
        if (end !== undefined) return { ended: end }
      }
      return { reason: 'the connection was closed' }
    } catch (error) {
      signal.throwIfAborted()
      if (connection.signal.aborted) return { reason: undefined }
      return { reason: await this.#passes(error) }
    } finally {
      connection.abort(new DOMException('the connection is gone', 'AbortError'))
    }
  }

  /** What happened; throws what will not pass. */
  async #passes(error: unknown): Promise<string> {
    if (error instanceof Unreachable) return error.reason
    if (!(error instanceof ApiProblem)) throw error
    if (PASSING_STATUS.includes(error.status)) return error.detail
    using limit = this.#context.within()
    const isComing =
      error.code === 'city-not-found' && (await isRegistered(this.#client, this.#seat.cityName, limit.signal))
    if (isComing) return 'the city is not running'
    throw error
  }

  /** A sentence where it was the last one. */
  async #show({ event, data }: Frame): Promise<string | undefined> {
    const said = parse(data)
    switch (event) {
      case 'screen':
        this.#passing.reset()
        await this.#taken?.write(this.#passing.pass(Buffer.from(String(said['text']))))
        return undefined
      case 'output':
        await this.#taken?.write(this.#passing.pass(Buffer.from(String(said['data']), 'base64')))
        return undefined
      case 'ended':
        return `the program of ${this.#seat.id} has ended: ${String(said['reason'])}; the session is ${String(said['state'])}`
      default:
        return undefined
    }
  }

  #again(): void {
    this.#connection.abort(new DOMException('it is shown anew', 'AbortError'))
  }

  // ---- keys ---------------------------------------------------------------------------------------------------------

  #typed(typed: Uint8Array): void {
    const { bytes, leaves } = this.#leaving.feed(typed)
    if (bytes.length > 0 && !this.#typing.add(bytes)) void this.#ring()
    if (leaves) this.#left.resolve(`left ${this.#seat.id}: it goes on`)
  }

  async #ring(): Promise<void> {
    await this.#taken?.write(BELL).catch(() => undefined)
  }

  // ---- the size -----------------------------------------------------------------------------------------------------

  async tellSize(within?: AbortSignal): Promise<void> {
    using limit = this.#context.within()
    const signal = within === undefined ? limit.signal : AbortSignal.any([limit.signal, within])
    const { columns, rows } = this.#terminal
    const body = { viewer: this.#viewer, cols: columns, rows }
    await this.#client.call('resize-session-terminal', { params: this.#seat, body, signal })
  }

  /** The last size counts; nobody waits for those before it. */
  async #resized(): Promise<void> {
    this.#resizeAgain = true
    if (this.#resizing) return
    this.#resizing = true
    while (this.#resizeAgain) {
      this.#resizeAgain = false
      await this.tellSize().catch(() => undefined)
    }
    this.#resizing = false
  }

  /** In the last row, over what stands there: it is drawn anew when the server is back. */
  async #say(sentence: string): Promise<void> {
    const { columns, rows } = this.#terminal
    const text = printable(sentence).slice(0, Math.max(0, columns - 1))
    const line = `${ESC}7${ESC}[${rows};1H${ESC}[7m${text}${ESC}[K${ESC}[m${ESC}8`
    await this.#taken?.write(line).catch(() => undefined)
  }
}

type Json = Readonly<Record<string, unknown>>

function parse(data: string): Json {
  const value: unknown = JSON.parse(data)
  return isRecord(value) ? value : {}
}
