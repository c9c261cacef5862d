/** A view on a screen: drawn soon after something comes and at once after a key, until somebody leaves. */
import type { Client } from '../../client/client.ts'
import { delay } from '../../client/clock.ts'
import type { Context } from '../base/context.ts'
import { EXIT, toFailure } from '../base/failure.ts'
import { Interrupted, type Terminal } from '../base/io.ts'
import type { Key } from './keys.ts'
import type { ScreenAction } from './pressing.ts'
import { runSelf } from './run-self.ts'
import { keyHandler, Screen, type Size } from './screen.ts'

/** No more than four pictures a second of what comes by itself: nobody reads faster. What a key does shows at once. */
const DRAW_EVERY_MS = 250
/** Times such as `12s` go on. */
const TICK_MS = 1_000

/** What a view shows, and what comes of keys. */
export interface Face {
  lines(size: Size): readonly string[]
  press(key: Key): void
  /** Says in the last line what became of something. */
  tell(note: string | undefined): void
}

interface Feed {
  load(): Promise<void>
  follow(): Promise<never>
}

interface Opened {
  readonly shell: Shell
  /** What goes on meanwhile. */
  readonly also?: readonly Promise<never>[]
}

/** Until somebody leaves; what is wrong with the server at the start is said before anything is drawn. */
export async function showUntilLeft<F extends Feed>(
  context: Context,
  feedOf: (client: Client, signal: AbortSignal, onChange: () => void) => F,
  open: (feed: F) => Opened,
): Promise<number> {
  const ending = new AbortController()
  const signal = AbortSignal.any([context.io.signal, ending.signal])
  let onChange = () => {}
  const feed = feedOf(await context.client(), signal, () => onChange())
  await feed.load()
  const opened = open(feed)
  using shell = opened.shell
  onChange = () => shell.drawSoon()
  const work = [feed.follow(), shell.tick(signal), ...(opened.also ?? [])]
  try {
    return await Promise.race([shell.left, ...work])
  } finally {
    ending.abort()
    await Promise.allSettled(work)
  }
}

export class Shell implements Disposable {
  readonly #context: Context
  readonly #face: Face
  readonly #screen: Screen
  readonly #left = Promise.withResolvers<number>()
  #cancelDraw: (() => void) | undefined

  constructor(context: Context, terminal: Terminal, face: Face) {
    this.#context = context
    this.#face = face
    const onKey = (key: Key) =>
      this.#guarded(() => {
        face.press(key)
        this.#draw()
      })
    this.#screen = new Screen(terminal, keyHandler(context.io.clock, onKey), () => this.#guarded(() => this.#draw()))
    this.#draw()
  }

  /** The exit code, when somebody leaves. */
  get left(): Promise<number> {
    return this.#left.promise
  }

  drawSoon(): void {
    this.#cancelDraw ??= this.#context.io.clock.after(DRAW_EVERY_MS, () => this.#guarded(() => this.#draw()))
  }

  async tick(signal: AbortSignal): Promise<never> {
    for (;;) {
      await delay(this.#context.io.clock, TICK_MS, signal)
      this.drawSoon()
    }
  }

  act({ kind }: ScreenAction): void {
    if (kind === 'leave') this.#left.resolve(EXIT.ok)
    else if (kind === 'interrupt') this.#left.reject(new Interrupted(EXIT.interrupted))
    else if (kind === 'suspend') this.#screen.suspend()
    else this.#screen.redraw()
  }

  /** What comes of it, or how it fails, is said in the last line. */
  do(work: () => Promise<string | undefined>): void {
    const told = work().catch((error: unknown) => toFailure(error).message)
    void told.then((note) => {
      this.#face.tell(note)
      this.drawSoon()
    })
  }

  /** Another command of ours has the terminal meanwhile. */
  async lend(words: readonly [string, string, ...string[]]): Promise<undefined> {
    await this.#screen.lend(() => runSelf(this.#context, words))
  }

  [Symbol.dispose](): void {
    this.#cancelDraw?.()
    this.#screen[Symbol.dispose]()
  }

  /** What breaks is told when the terminal is given back: on this screen nobody could read it. */
  #guarded(work: () => void): void {
    try {
      work()
    } catch (error) {
      this.#left.reject(error)
    }
  }

  #draw(): void {
    this.#cancelDraw?.()
    this.#cancelDraw = undefined
    this.#screen.draw(this.#face.lines(this.#screen.size))
  }
}
