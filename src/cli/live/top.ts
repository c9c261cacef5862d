/** `svcctl top`: the fleet as it lives, and what can be done about it with a key. */

import { delay } from '../../client/clock.ts'
import type { Context } from '../base/context.ts'
import { EXIT, toFailure } from '../base/failure.ts'
import { Interrupted, type Terminal } from '../base/io.ts'
import { sendAnswer } from './answering.ts'
import { replyTo } from './choices.ts'
import { draw } from './draw.ts'
import { Feed, type Spot } from './feed.ts'
import { type Action, type Answering, press } from './keyboard.ts'
import type { Key } from './keys.ts'
import { outcomeText } from './question-text.ts'
import { type Choosing, needAt, rowsOf, selectedAt, type View } from './rows.ts'
import { runSelf } from './run-self.ts'
import { keyHandler, Screen } from './screen.ts'

/** No more than four pictures a second of what comes by itself: nobody reads faster. What a key does shows at once. */
const DRAW_EVERY_MS = 250
/** Times such as `12s` go on. */
const TICK_MS = 1_000
/** A key that was meant for the question before must not answer the one that has just taken its place. */
const NEW_QUESTION_MS = 400

/** Until somebody leaves; what is wrong with the server at the start is said before anything is drawn. */
export async function showFleet(context: Context, terminal: Terminal, city: string | undefined): Promise<number> {
  const ending = new AbortController()
  const signal = AbortSignal.any([context.io.signal, ending.signal])
  let onChange = () => {}
  const feed = new Feed(context, await context.client(), signal, () => onChange())
  await feed.load()
  using top = new Top(context, terminal, feed, city)
  onChange = () => top.drawSoon()
  const work = [feed.follow(), feed.peek(() => top.spots), top.tick(signal)]
  try {
    return await Promise.race([top.left, ...work])
  } finally {
    ending.abort()
    await Promise.allSettled(work)
  }
}

class Top implements Disposable {
  readonly #context: Context
  readonly #feed: Feed
  readonly #screen: Screen
  readonly #left = Promise.withResolvers<number>()
  #choosing: Choosing
  /** What stands on the screen. */
  #seen: View
  #question: { readonly id: string | undefined; readonly since: number } = { id: undefined, since: 0 }
  #spots: readonly Spot[] = []
  #cancelDraw: (() => void) | undefined

  constructor(context: Context, terminal: Terminal, feed: Feed, city: string | undefined) {
    this.#context = context
    this.#feed = feed
    this.#choosing = {
      pane: 'sessions',
      selected: { key: '', at: 0 },
      filter: '',
      city,
      entry: undefined,
      help: false,
      note: undefined,
    }
    this.#seen = this.#view()
    const onBytes = keyHandler(context.io.clock, (key) => this.#guarded(() => this.#press(key)))
    this.#screen = new Screen(terminal, onBytes, () => this.#guarded(() => this.#draw()))
    this.#draw()
  }

  /** The exit code, when somebody leaves. */
  get left(): Promise<number> {
    return this.#left.promise
  }

  /** Sessions that can be seen. */
  get spots(): readonly Spot[] {
    return this.#spots
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

  #view(): View {
    const { io, print } = this.#context
    return { ...this.#choosing, fleet: this.#feed.fleet, now: io.clock.now(), color: print.color }
  }

  #draw(): void {
    this.#cancelDraw?.()
    this.#cancelDraw = undefined
    this.#seen = this.#view()
    const { lines, spots } = draw(this.#seen, this.#screen.size)
    this.#spots = spots
    const rows = rowsOf(this.#seen)
    const id = needAt(rows[selectedAt(rows, this.#seen.selected)])?.request_id
    if (id !== this.#question.id) this.#question = { id, since: this.#seen.now }
    this.#screen.draw(lines)
  }

  #press(key: Key): void {
    const { change, action } = press({ ...this.#seen, ...this.#choosing }, key)
    this.#choosing = { ...this.#choosing, ...change }
    if (action !== undefined) this.#act(action)
    this.#draw()
  }

  #act(action: Action): void {
    if (action.kind === 'attach') this.#do(() => this.#attach(action.spot))
    else if (action.kind === 'say') this.#do(() => this.#say(action.spot, action.text))
    else if (action.kind === 'answer') this.#do(() => this.#answer(action))
    else if (action.kind === 'leave') this.#left.resolve(EXIT.ok)
    else if (action.kind === 'interrupt') this.#left.reject(new Interrupted(EXIT.interrupted))
    else if (action.kind === 'suspend') this.#screen.suspend()
    else this.#screen.redraw()
  }

  /** What fails is said in the last line. */
  #do(work: () => Promise<string | undefined>): void {
    const told = work().catch((error: unknown) => toFailure(error).message)
    void told.then((note) => {
      this.#choosing = { ...this.#choosing, note }
      this.drawSoon()
    })
  }

  async #attach({ city, id }: Spot): Promise<undefined> {
    await this.#screen.lend(() => runSelf(this.#context, ['session', 'attach', id, '--city', city]))
  }

  async #say({ city: cityName, id }: Spot, message: string): Promise<string> {
    using limit = this.#context.within()
    const body = { message, intent: 'follow_up' } as const
    await (await this.#context.client()).call('submit-session', {
      params: { cityName, id },
      body,
      signal: limit.signal,
    })
    return 'said'
  }

  async #answer({ need, word, isKey }: Answering): Promise<string> {
    const reply = replyTo(need, word, { seesNumbers: true })
    if ('wrong' in reply) return reply.wrong
    const { id, since } = this.#question
    if (isKey && (id !== need.request_id || this.#context.io.clock.now() - since < NEW_QUESTION_MS))
      return 'that question has just come: press the key again'
    using limit = this.#context.within()
    const asked = { city: need.city, session: need.session_id, question: need }
    return outcomeText(await sendAnswer(await this.#context.client(), asked, reply, limit.signal), need)
  }
}
