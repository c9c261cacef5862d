/**
 * What is said over one connection, and how the server answers it.
 *
 * V1  A line counts as said only when the server has shown that it took it: by its echo, or by the answer to a PING that
 *     was sent behind it.
 */
import type { World } from '../library/world.ts'
import { DELIVERY_TAG } from './incoming.ts'
import type { Link } from './link.ts'
import type { Refused } from './numerics.ts'
import { Pace } from './pace.ts'
import { folded } from './text.ts'

const ANSWER_MS = 30_000

type Answer = { readonly messageId: string } | Refused
/** `unknown`: the connection broke before the server answered. */
export type Said = Answer | 'unknown'

interface Awaited {
  readonly target: string
  readonly answer: (answer: Said) => void
}

export class Voice {
  readonly #link: Link
  readonly #world: World
  /** Aborted when the connection is gone. */
  readonly #over: AbortSignal
  readonly #pace: Pace
  readonly #awaited = new Map<string, Awaited>()
  readonly #barriers = new Map<string, () => void>()
  #number = 0

  constructor(link: Link, world: World, over: AbortSignal) {
    this.#link = link
    this.#world = world
    this.#over = over
    this.#pace = new Pace(world.clock)
    over.addEventListener('abort', () => {
      for (const { answer } of this.#awaited.values()) answer('unknown')
    })
  }

  /** Each line is answered by its echo, with its id. */
  get isExact(): boolean {
    return ['message-tags', 'echo-message', 'labeled-response'].every((name) => this.#link.has(name))
  }

  /** One line, answered by its echo. */
  async sayExactly(target: string, text: string, mark: string, replyTo: string | undefined): Promise<Said> {
    const label = this.#nextKey('d')
    const reply = replyTo === undefined || replyTo.startsWith('line-') ? {} : { '+draft/reply': replyTo }
    const tags = { label, [DELIVERY_TAG]: mark, ...reply }
    try {
      await this.#pace.take(this.#over)
    } catch {
      return 'unknown'
    }
    return this.#answered(label, target, () => this.#link.send({ tags, command: 'PRIVMSG', params: [target, text] }))
  }

  /** Several lines, and a PING behind them: what comes before its answer is about them. */
  async sayPlainly(target: string, lines: readonly string[], mark: string): Promise<Said> {
    const token = this.#nextKey(`${mark}-`)
    const key = `${PLAIN}${token}`
    return this.#answered(key, target, () => void this.#sendPlainly(target, lines, key, token, mark))
  }

  async #sendPlainly(
    target: string,
    lines: readonly string[],
    key: string,
    token: string,
    mark: string,
  ): Promise<void> {
    try {
      for (const text of lines) {
        await this.#pace.take(this.#over)
        if (!this.#awaited.has(key)) return
        this.#link.send({ command: 'PRIVMSG', params: [target, text] })
      }
      await this.barrier(token)
      this.#awaited.get(key)?.answer({ messageId: mark })
    } catch {
      this.#awaited.get(key)?.answer('unknown')
    }
  }

  async #answered(key: string, target: string, send: () => void): Promise<Said> {
    if (this.#over.aborted) return 'unknown'
    const answer = Promise.withResolvers<Said>()
    this.#awaited.set(key, { target: this.#folded(target), answer: answer.resolve })
    send()
    // A plain delivery takes as long as its lines; its barrier has a deadline of its own.
    if (isPlain(key)) return answer.promise.finally(() => this.#awaited.delete(key))
    const cancel = this.#world.clock.after(ANSWER_MS, () => this.#silent())
    return answer.promise.finally(() => {
      cancel()
      this.#awaited.delete(key)
    })
  }

  /** Everything before it was read by the server, and what it said of it was read by us. Rejects where the connection ends. */
  async barrier(token: string = this.#nextKey('b')): Promise<void> {
    const passed = Promise.withResolvers<void>()
    const signal = this.#over
    const abort = () => passed.reject(signal.reason)
    signal.addEventListener('abort', abort, { once: true })
    this.#barriers.set(token, passed.resolve)
    const cancel = this.#world.clock.after(ANSWER_MS, () => this.#silent())
    try {
      signal.throwIfAborted()
      if (this.#link.isOpen) this.#link.send({ command: 'PING', params: [token] })
      await passed.promise
    } finally {
      cancel()
      signal.removeEventListener('abort', abort)
      this.#barriers.delete(token)
    }
  }

  #silent(): void {
    this.#world.log.warn('the server is silent: the connection is cut')
    this.#link.cut()
  }

  // ---- what the server answers ---------------------------------------------------------------------------------------

  ponged(token: string): void {
    this.#barriers.get(token)?.()
  }

  /** A line of ours came back. */
  echoed(label: string, messageId: string): void {
    this.#awaited.get(label)?.answer({ messageId })
  }

  /** Without a label it is about all that is being said plainly to that target, or to anybody where it names none. */
  refused(label: string | undefined, params: readonly string[], refused: Refused): void {
    const labelled = label === undefined ? undefined : this.#awaited.get(label)
    const target = this.#folded(params[1] ?? '')
    const plain = [...this.#awaited].filter(
      ([key, one]) => isPlain(key) && (one.target === target || params.length < 3),
    )
    for (const { answer } of labelled === undefined ? plain.map(([, one]) => one) : [labelled]) answer(refused)
  }

  #folded(name: string): string {
    return folded(name, this.#link.mapping)
  }

  #nextKey(prefix: string): string {
    this.#number += 1
    return `${prefix}${this.#number}`
  }
}

const PLAIN = 'plain '
const isPlain = (key: string): boolean => key.startsWith(PLAIN)
