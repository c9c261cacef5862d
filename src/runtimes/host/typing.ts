/**
 * All that is typed into one terminal goes through here (decision 223): deliveries, interrupts, keys, people's input.
 *
 * Q1  One thing at a time, in the order of asking; keys of bots are refused while a delivery is typed.
 * Q2  A delivery that finds a person's half line is `held`: not a byte of it was typed. Where the line was left behind
 *     (`clearsLine`) it is taken back first; where that cannot be done the delivery is `held` and says so.
 * Q3  `delivered` says that the Enter was typed. What is cut before it is `interrupted` or `closed`: taken back from the
 *     line where the program goes on, so that it can be typed again; `uncertain` where it cannot be taken back.
 * Q4  A delivery that asks before its Enter and is told no, or nothing, is taken back: `moved`.
 * Q5  An interrupt waits for nothing but the end of the delivery that it cuts.
 */
import { type Clock, delay } from '../../kernel/clock.ts'
import type { DeliveryOutcome, InputDetails, KeyDetails, TypingRefused, TypingReply } from '../process/runtime.ts'
import { HalfLine } from './half-line.ts'
import type { TtyInput, Typed } from './tty-input.ts'

const TYPING_MS = 30_000
const KEY_MS = 200
/** Less than a supervisor that has come back waits to hear what became of a delivery. */
const ANSWER_MS = 3_000
/** What people have typed and the program has not taken. */
const MAX_WAITING_BYTES = 1024 * 1024
const MAX_VIEWERS = 64
const BACKSPACE = '\x7f'

/** A message as it is typed. */
export interface Paste {
  readonly text: string
  /** The program takes it for one paste, or it has one line only: nothing of it is entered before the last Enter. */
  readonly whole: boolean
  /** The pause before Enter; undefined: Enter goes with the text. */
  readonly enterAfterMs: number | undefined
  /** How many characters stand in the line then. */
  readonly characters: number
  /** Whether it may be entered is asked under this id; undefined: it may. */
  readonly asksAs?: string
}

interface TypingDeps {
  readonly input: TtyInput
  readonly clock: Clock
  /** A shell: its line can be thrown away as a whole. */
  readonly isShell: boolean
  /** The terminal keeps what is typed until its Enter. */
  readonly readsLines: () => boolean
  /** Keys go to a program in front of the shell now, which takes them one by one. */
  readonly goesToProgram: () => boolean
  readonly onPersonTyping: (typing: boolean) => void
  readonly onPasted: (deliveryId: string) => void
}

export class Typing {
  readonly #deps: TypingDeps
  readonly #line: HalfLine
  /** The last of what each viewer has typed: a repeated one is not typed again. */
  readonly #seen = new Map<string, number>()
  #turn: Promise<unknown> = Promise.resolve()
  #waitingBytes = 0
  /** The delivery that is typed now. */
  #delivery: { readonly cut: AbortController; readonly over: Promise<unknown> } | undefined
  /** What waits for a word before its Enter. */
  #asking: { readonly id: string; answer(enter: boolean): void } | undefined

  constructor(deps: TypingDeps) {
    this.#deps = deps
    this.#line = new HalfLine(deps.onPersonTyping)
  }

  get personTyping(): boolean {
    return this.#line.open
  }

  /** `prepare` is asked when its turn has come. `signal`: the program ends, or is to end. */
  deliver(
    prepare: () => Promise<Paste>,
    { clearsLine, signal }: { readonly clearsLine: boolean; readonly signal: AbortSignal },
  ): Promise<DeliveryOutcome> {
    return this.#inTurn(async () => {
      if (signal.aborted) return ENDED
      if (this.#line.open && !clearsLine) return HELD
      if (this.#line.open && !(await this.#takeBackLine())) return STAYS
      const cut = new AbortController()
      const typing = prepare().then((paste) => this.#paste(paste, cut.signal, signal))
      this.#delivery = { cut, over: typing.catch(() => {}) }
      try {
        return await typing
      } finally {
        this.#delivery = undefined
      }
    })
  }

  /** False where the program took no key. */
  async interrupt(key: string): Promise<boolean> {
    this.#delivery?.cut.abort()
    await this.#delivery?.over
    const typed = await this.#deps.input.type(Buffer.from(key), { deadlineMs: KEY_MS })
    if (typed === 'all') this.#line.keyed(key)
    return typed === 'all'
  }

  /** Q4. */
  enter(deliveryId: string, enter: boolean): void {
    if (this.#asking?.id === deliveryId) this.#asking.answer(enter)
  }

  keys(keys: string, { keyByKey = false }: KeyDetails): Promise<TypingReply> {
    return this.#unlessBusy(async () => (keyByKey && this.#deps.readsLines() ? READS_LINES : this.#press(keys)))
  }

  /** Keys and their Enter, where both are read together. */
  line(text: string): Promise<TypingReply> {
    return this.#unlessBusy(async () => {
      if (this.#deps.readsLines()) return this.#press(`${text}\r`)
      return { typed: false, reads_keys: true }
    })
  }

  input(viewer: string, bytes: Uint8Array, { seq, toDialog }: InputDetails): Promise<TypingReply> {
    const seen = this.#seen.get(viewer) ?? 0
    if (seq !== undefined && seq <= seen) return Promise.resolve({ typed: true })
    if (seq !== undefined && seq > seen + 1)
      return Promise.resolve(refused('early', `input ${seen + 1} of viewer ${viewer} has not come`))
    if (this.#waitingBytes + bytes.length > MAX_WAITING_BYTES)
      return Promise.resolve(refused('busy', 'the program has not taken what was typed before'))
    if (seq !== undefined) this.#saw(viewer, seq)
    this.#waitingBytes += bytes.length
    return this.#inTurn(async () => {
      // Said before the first byte is there: a delivery must not come between.
      if (toDialog !== true) this.#count(bytes)
      const typed = await this.#type(bytes)
      this.#waitingBytes -= bytes.length
      // It may come again, if nothing has come behind it.
      if (typed === 'nothing' && this.#seen.get(viewer) === seq) this.#saw(viewer, (seq ?? 1) - 1)
      return replyOf(typed)
    })
  }

  #unlessBusy(work: () => Promise<TypingReply>): Promise<TypingReply> {
    if (this.#delivery !== undefined) return Promise.resolve(refused('busy', 'a message is being typed'))
    return this.#inTurn(work)
  }

  async #press(keys: string): Promise<TypingReply> {
    const reply = replyOf(await this.#type(Buffer.from(keys)))
    this.#line.keyed(keys)
    return reply
  }

  #count(bytes: Uint8Array): void {
    // The program has begun with an Enter: what was typed since then was read by it as well.
    if (this.#deps.goesToProgram()) this.#line.gone()
    else this.#line.typed(bytes)
  }

  async #takeBackLine(): Promise<boolean> {
    const keys = this.#line.eraser(this.#deps.isShell)
    if (keys === undefined) return false
    const typed = await this.#deps.input.type(Buffer.from(keys), { deadlineMs: KEY_MS })
    if (typed === 'all') this.#line.gone()
    return typed === 'all'
  }

  #saw(viewer: string, seq: number): void {
    this.#seen.delete(viewer)
    this.#seen.set(viewer, seq)
    const oldest = this.#seen.keys().next()
    if (this.#seen.size > MAX_VIEWERS && oldest.done !== true) this.#seen.delete(oldest.value)
  }

  /** Q3. */
  async #paste(paste: Paste, cut: AbortSignal, ended: AbortSignal): Promise<DeliveryOutcome> {
    const signal = AbortSignal.any([cut, ended])
    const { text, enterAfterMs } = paste
    const typed = await this.#type(Buffer.from(enterAfterMs === undefined ? `${text}\r` : text), signal)
    if (typed === 'all' && enterAfterMs === undefined) return { state: 'delivered' }
    if (typed === 'all') {
      await delay(this.#deps.clock, enterAfterMs ?? 0, signal).catch(() => {})
      const may = !signal.aborted && (await this.#mayEnter(paste.asksAs, signal))
      if (!may && !signal.aborted) return this.#unsaid(paste, MOVED)
      if (!signal.aborted && (await this.#type(ENTER, signal)) === 'all') return { state: 'delivered' }
    }
    if (typed === 'nothing') return notTyped(cut, ended)
    if (ended.aborted && paste.whole) return ENDED
    return this.#unsaid(paste, cut.aborted ? INTERRUPTED : HALF_TYPED)
  }

  /** Q4; who is not there to answer may be there again for the next try. */
  async #mayEnter(id: string | undefined, signal: AbortSignal): Promise<boolean> {
    if (id === undefined) return true
    const asked = Promise.withResolvers<boolean>()
    this.#asking = { id, answer: asked.resolve }
    const cancel = this.#deps.clock.after(ANSWER_MS, () => asked.resolve(false))
    const onAbort = () => asked.resolve(false)
    signal.addEventListener('abort', onAbort, { once: true })
    try {
      this.#deps.onPasted(id)
      return await asked.promise
    } finally {
      cancel()
      signal.removeEventListener('abort', onAbort)
      this.#asking = undefined
    }
  }

  /** Takes back what was pasted and not entered. */
  async #unsaid({ whole, characters }: Paste, outcome: DeliveryOutcome): Promise<DeliveryOutcome> {
    return whole && (await this.#takeBack(characters)) ? outcome : HALF_TYPED
  }

  /** More backspaces than there are characters do no harm. */
  async #takeBack(characters: number): Promise<boolean> {
    const keys = Buffer.from(BACKSPACE.repeat(characters))
    return (await this.#deps.input.type(keys, { deadlineMs: KEY_MS })) === 'all'
  }

  #type(bytes: Uint8Array, signal?: AbortSignal): Promise<Typed> {
    return this.#deps.input.type(bytes, { deadlineMs: TYPING_MS, ...(signal !== undefined && { signal }) })
  }

  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    const done = this.#turn.then(work)
    this.#turn = done.catch(() => {})
    return done
  }
}

const ENTER = Buffer.from('\r')

export const HELD: DeliveryOutcome = {
  state: 'failed',
  code: 'held',
  message: 'somebody at its terminal has typed half a line and not entered it',
}
const STAYS: DeliveryOutcome = {
  state: 'failed',
  code: 'held',
  message: 'half a line was left at its terminal, and it is not known what all stands there to be taken back',
}
export const MOVED: DeliveryOutcome = {
  state: 'failed',
  code: 'moved',
  message: 'its screen changed before it was entered',
}
const ENDED: DeliveryOutcome = { state: 'failed', code: 'closed', message: 'the program has ended' }
const INTERRUPTED: DeliveryOutcome = {
  state: 'failed',
  code: 'interrupted',
  message: 'an interrupt came before it was entered',
}
const HALF_TYPED: DeliveryOutcome = {
  state: 'uncertain',
  message: 'the program stopped reading in the middle of the message',
}

function notTyped(cut: AbortSignal, ended: AbortSignal): DeliveryOutcome {
  if (ended.aborted) return ENDED
  if (cut.aborted) return INTERRUPTED
  return { state: 'failed', code: 'timeout', message: `the program took no input for ${TYPING_MS / 1000} s` }
}

const refused = (code: TypingRefused['code'], message: string): TypingReply => ({ typed: false, code, message })

const READS_LINES = refused('lines', 'its program reads lines: the key would be a part of the next one')

const replyOf = (typed: Typed): TypingReply =>
  typed === 'all' ? { typed: true } : refused('timeout', `the terminal took ${typed} of it`)
