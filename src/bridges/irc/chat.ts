/** The chat of the IRC bridge: stays connected, hears, and says each delivery once. */
import { backoffMs } from '../../client/backoff.ts'
import { delay } from '../../client/clock.ts'
import type { Chat } from '../library/carrying.ts'
import type { Journal, Progress } from '../library/journal.ts'
import { type LogFields, reasonOf } from '../library/log.ts'
import { Occasion } from '../library/occasion.ts'
import type { Posting } from '../library/posting.ts'
import type { Delivery, InboundMessage, Outcome } from '../library/shapes.ts'
import { bounded, linesOf } from '../library/split.ts'
import { Unusable, type World } from '../library/world.ts'
import { roomFor } from './line.ts'
import { Link, type Login } from './link.ts'
import { Presence } from './presence.ts'
import { folded, isChannelName, isPerson } from './text.ts'
import type { Said } from './voice.ts'

/** What was said while the bridge was away for no longer than this is told as if it had been there. */
const MISSED_MS = 600_000
/** More of one text would keep a channel busy for minutes. */
const MOST_LINES = 200
/** A connection that lasted so long was a good one: the next tries begin anew. */
const GOOD_AFTER_MS = 60_000
/** As many `_` as a nick may get while the right one is taken. */
const NICK_MARGIN = '_____'

export interface IrcOptions {
  readonly account: string
  readonly login: Login
  readonly channels: readonly string[]
}

export class IrcChat implements Chat {
  readonly #options: IrcOptions
  readonly #journal: Journal
  readonly #posting: Pick<Posting, 'take'>
  readonly #world: World
  readonly #changed = new Occasion()
  #presence: Presence | undefined

  constructor(options: IrcOptions, journal: Journal, posting: Pick<Posting, 'take'>, world: World) {
    this.#options = options
    this.#journal = journal
    this.#posting = posting
    this.#world = world
  }

  health(): LogFields {
    const presence = this.#presence
    return {
      server: `${this.#options.login.place.host}:${this.#options.login.place.port}`,
      connected: presence !== undefined,
      nick: presence?.nick,
      exact: presence?.voice.isExact,
      channels: presence?.joined.join(' ') ?? '',
    }
  }

  /** Connects, again and again, until aborted. Throws `Unusable` where the server did not let us in the first time. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock, log, random } = this.#world
    let wasIn = false
    for (let failures = 0; !signal.aborted; failures += 1) {
      const started = clock.now()
      try {
        const link = await Link.open(this.#options.login, this.#world, signal)
        wasIn = true
        log.info('connected', { nick: link.nick })
        const reason = await this.#live(link, signal)
        if (signal.aborted) return
        log.warn('disconnected', { reason })
      } catch (error) {
        if (signal.aborted) return
        if (error instanceof Unusable && !wasIn) throw error
        log.warn('cannot connect', { reason: reasonOf(error), failures })
      }
      if (clock.now() - started > GOOD_AFTER_MS) failures = 0
      await delay(clock, backoffMs(failures, random()), signal).catch(() => undefined)
    }
  }

  async #live(link: Link, signal: AbortSignal): Promise<string> {
    const presence = new Presence(link, this.#options.channels, this.#listener(), this.#world)
    this.#presence = presence
    const quit = () => link.quit()
    signal.addEventListener('abort', quit, { once: true })
    const follow = async () => {
      while (!presence.isOver) {
        await presence.changed.next(signal).catch(() => undefined)
        if (signal.aborted) return
        this.#changed.happened()
      }
    }
    try {
      void follow()
      presence.start()
      // A server that does not close after our goodbye is not waited for.
      return await Promise.race([link.closed, aborted(signal).then(() => 'the bridge ends')])
    } finally {
      signal.removeEventListener('abort', quit)
      link.onMessage = () => undefined
      this.#presence = undefined
      this.#changed.happened()
    }
  }

  // ---- in ------------------------------------------------------------------------------------------------------------

  #listener() {
    const { account, login } = this.#options
    const journal = this.#journal
    return {
      account,
      nick: login.nick,
      isOurs: (mark: string) => journal.progress(deliveryOf(mark)).isAgain,
      last: (channel: string) => journal.mark(lastMark(channel)),
      heard: (message: InboundMessage) => this.#take(message, false),
      missed: (channel: string, messages: readonly InboundMessage[]) => {
        // Before it was there for the first time, nobody can have missed it.
        const wasThere = journal.mark(joinedMark(channel)) !== undefined
        const since = this.#world.clock.now() - MISSED_MS
        for (const message of messages) this.#take(message, !wasThere || Date.parse(message.received_at) < since)
        if (!wasThere) journal.setMark(joinedMark(channel), 'yes')
      },
    }
  }

  #take(message: InboundMessage, past: boolean): void {
    const { provider_message_id: id, conversation } = message
    if (this.#posting.take(message, { past }) !== 'taken' || id.startsWith('line-')) return
    if (conversation.kind === 'room') this.#journal.setMark(lastMark(conversation.conversation_id), id)
  }

  // ---- out -----------------------------------------------------------------------------------------------------------

  async ready(signal: AbortSignal): Promise<void> {
    while ((this.#presence?.joined.length ?? 0) === 0) await this.#changed.next(signal)
  }

  async say(
    delivery: Delivery,
    progress: Progress,
    said: (part: number, messageId: string) => void,
    signal: AbortSignal,
  ): Promise<Outcome> {
    const { conversation_id: target, kind } = delivery.conversation
    const refused = this.#refusal(target, kind)
    if (refused !== undefined) return refused
    const parts = new Map(progress.parts)
    const lines = this.#linesOf(delivery, target)
    let inDoubt = progress.isAgain
    for (;;) {
      const presence = await this.#present(delivery, kind === 'dm' ? undefined : target, signal)
      if (presence === undefined) return notYet(target)
      const missing = [...lines.keys()].filter((part) => !parts.has(part))
      if (inDoubt && missing[0] !== undefined && presence.voice.isExact)
        await presence.lookBack(target, markOf(delivery, missing[0])).catch(() => undefined)
      const answer = await this.#sayParts(presence, delivery, lines, missing, (part, id) => {
        parts.set(part, id)
        said(part, id)
      })
      if (answer === undefined) return { delivered: true, message_id: parts.get(0) ?? delivery.delivery_id }
      // Thrown out of the channel just now: when we are back it can be said.
      const isOut = kind !== 'dm' && !presence.isIn(target)
      if (answer !== 'unknown' && !isOut) return { delivered: false, ...answer }
      inDoubt = true
    }
  }

  /** Undefined: all of them are in the chat. */
  async #sayParts(
    presence: Presence,
    delivery: Delivery,
    lines: readonly string[],
    missing: readonly number[],
    said: (part: number, messageId: string) => void,
  ): Promise<Exclude<Said, { messageId: string }> | undefined> {
    const { conversation, reply_to_message_id: replyTo } = delivery
    const { conversation_id: target } = conversation
    if (!presence.voice.isExact) {
      const answer = await presence.voice.sayPlainly(
        target,
        missing.map((part) => lines[part] ?? ''),
        delivery.delivery_id,
      )
      if (answer === 'unknown' || 'kind' in answer) return answer
      for (const part of missing) said(part, answer.messageId)
      return undefined
    }
    for (const part of missing) {
      const mark = markOf(delivery, part)
      const shown = presence.shown(mark)
      const answer =
        shown === undefined
          ? await presence.voice.sayExactly(target, lines[part] ?? '', mark, part === 0 ? replyTo : undefined)
          : { messageId: shown }
      if (answer === 'unknown' || 'kind' in answer) return answer
      said(part, answer.messageId)
    }
    return undefined
  }

  /** The same text has the same parts at every try, whatever our nick is by then. */
  #linesOf({ text, attachments }: Delivery, target: string): readonly string[] {
    const room = roomFor(`${this.#options.login.nick}${NICK_MARGIN}`, target)
    const files = attachments.map((name) => `[file: ${name}]`)
    const lines = bounded(linesOf([text, ...files].join('\n'), room), MOST_LINES)
    return lines.length === 0 ? ['(empty)'] : lines
  }

  #refusal(target: string, kind: string): Outcome | undefined {
    if (kind === 'dm') {
      if (isPerson(target)) return undefined
      return {
        delivered: false,
        kind: 'permanent',
        error: `${JSON.stringify(target)} is nobody to whom the bridge speaks`,
      }
    }
    const mapping = this.#presence?.mapping ?? 'rfc1459'
    const isOurs = this.#options.channels.some((name) => folded(name, mapping) === folded(target, mapping))
    if (isOurs && isChannelName(target)) return undefined
    return { delivered: false, kind: 'not_found', error: `the bridge is not in ${JSON.stringify(target)}` }
  }

  /** Where it can be said, as long as the lease lasts; undefined: by then it could not. */
  async #present(delivery: Delivery, channel: string | undefined, signal: AbortSignal): Promise<Presence | undefined> {
    const late = new AbortController()
    const cancel = this.#world.clock.after(Math.max(0, delivery.lease_expires_at - this.#world.clock.now()), () =>
      late.abort(new Error('the lease is over')),
    )
    const until = AbortSignal.any([signal, late.signal])
    try {
      for (;;) {
        const presence = this.#presence
        const isThere =
          presence !== undefined && (channel === undefined ? presence.joined.length > 0 : presence.isIn(channel))
        if (presence !== undefined && isThere) return presence
        await this.#changed.next(until)
      }
    } catch {
      signal.throwIfAborted()
      return undefined
    } finally {
      cancel()
    }
  }
}

const notYet = (target: string): Outcome => ({
  delivered: false,
  kind: 'transient',
  error: `not in ${target} at the moment`,
})
const markOf = ({ delivery_id: id }: Delivery, part: number): string => `${id}/${part}`
const deliveryOf = (mark: string): string => mark.slice(0, mark.lastIndexOf('/'))
const lastMark = (channel: string): string => `last ${channel}`
const joinedMark = (channel: string): string => `joined ${channel}`

const aborted = (signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    if (signal.aborted) resolve()
    else signal.addEventListener('abort', () => resolve(), { once: true })
  })
