/**
 * A mailbox as it changes: events of mail say when it is read again. A stream that ends, for whatever reason, is opened
 * anew and everything is read again.
 */
import { backoffMs } from '../../client/backoff.ts'
import type { Client } from '../../client/client.ts'
import { delay } from '../../client/clock.ts'
import { eventHead, streamOf } from '../../client/events.ts'
import { follow } from '../../client/follow.ts'
import type { MailReplyRequest, MailSendRequest, Message } from '../../contract/messaging/mail.ts'
import type { Context } from '../base/context.ts'
import { toFailure } from '../base/failure.ts'
import { Paced } from '../live/paced.ts'
import type { Box, Mail } from './state.ts'

export interface Mailbox {
  readonly city: string
  /** Whose it is. */
  readonly agent: string
  /** Of whoever looks: what is opened is read. What somebody else looks at stays unread. */
  readonly isOwn: boolean
}

interface FeedOptions extends Mailbox {
  readonly signal: AbortSignal
  /** It is another than before. */
  readonly onChange: () => void
}

/** Between two reads. */
const PACE_MS = 500
/** As many as somebody looks through; `mail list` has them all. */
const MOST_MESSAGES = 200
const MOST_IN_THREAD = 100

/** What of the mailbox is in a box. */
const QUERIES = {
  inbox: (agent: string) => ({ agent, status: 'all' }) as const,
  unread: (agent: string) => ({ agent, status: 'unread' }) as const,
  archived: (agent: string) => ({ agent, status: 'archived' }) as const,
  sent: (agent: string) => ({ from: agent, status: 'all' }) as const,
}
const MOVES = {
  archive: ['archive-mail', 'archived'],
  unarchive: ['unarchive-mail', 'taken back'],
  'mark-unread': ['mark-mail-unread', 'unread again'],
} as const

export class MailFeed {
  readonly #context: Context
  readonly #client: Client
  readonly #options: FeedOptions
  readonly #reader: Paced
  #box: Box = 'inbox'
  #messages: readonly Message[] | undefined
  #more = false
  #counts = { total: 0, unread: 0 }
  #thread: readonly Message[] = []
  /** The message whose thread that is. */
  #open: string | undefined
  #lost: string | undefined

  constructor(context: Context, client: Client, options: FeedOptions) {
    this.#context = context
    this.#client = client
    this.#options = options
    this.#reader = new Paced(context.io.clock, options.signal, PACE_MS, () => this.#readAgain())
  }

  get mail(): Mail {
    const { city, agent } = this.#options
    return {
      ...{ city, owner: agent, messages: this.#messages, more: this.#more },
      ...{ counts: this.#counts, thread: this.#thread, lost: this.#lost },
    }
  }

  /** Reads all there is, once. */
  async load(): Promise<void> {
    await this.#within(async (signal) => {
      const box = this.#box
      const { city: cityName, agent } = this.#options
      const params = { cityName }
      const query = { ...QUERIES[box](agent), limit: MOST_MESSAGES }
      const [list, counts] = await Promise.all([
        this.#client.call('list-mail', { params, query, signal }),
        this.#client.call('count-mail', { params, query: { agent }, signal }),
        this.#readThread(signal),
      ])
      // Another box may have been turned to meanwhile.
      if (box !== this.#box) return
      this.#messages = list.body.items
      this.#more = list.body.next_cursor !== undefined
      this.#counts = counts.body
    })
    this.#options.onChange()
  }

  /** Another box. */
  turn(box: Box): void {
    this.#box = box
    this.#messages = undefined
    this.#more = false
    this.#reader.wish()
  }

  /** It is being read: what is archived stays so. */
  async open(message: Message): Promise<undefined> {
    this.#open = message.id
    this.#thread = [message]
    await this.#within(async (signal) => {
      const params = { cityName: this.#options.city, id: message.id }
      // Of what was sent to somebody else only he can say that he has read it.
      if (message.status === 'unread' && this.#box !== 'sent') await this.#client.call('read-mail', { params, signal })
      await this.#readThread(signal)
    })
    this.#reader.wish()
  }

  async move(what: keyof typeof MOVES | 'delete', { id }: Message): Promise<string> {
    const params = { cityName: this.#options.city, id }
    const said = await this.#within(async (signal) => {
      if (what === 'delete') {
        await this.#client.call('delete-mail', { params, signal })
        return 'deleted'
      }
      const [operation, note] = MOVES[what]
      await this.#client.call(operation, { params, signal })
      return note
    })
    this.#reader.wish()
    return said
  }

  async reply({ id, from }: Message, body: MailReplyRequest): Promise<string> {
    const params = { cityName: this.#options.city, id }
    await this.#within((signal) => this.#client.call('reply-mail', { params, body, signal }))
    this.#reader.wish()
    return `answered ${from}`
  }

  async send(body: MailSendRequest): Promise<string> {
    const params = { cityName: this.#options.city }
    const sent = await this.#within((signal) => this.#client.call('send-mail', { params, body, signal }))
    this.#reader.wish()
    return `sent to ${sent.body.to}`
  }

  /** Until the signal; ends by throwing its reason. */
  async follow(): Promise<never> {
    const { signal, onChange } = this.#options
    for (let failures = 0; ; failures += 1) {
      const onOpen = () => {
        failures = 0
      }
      const reason = await this.#connection(onOpen).catch((error: unknown) => toFailure(error).message)
      signal.throwIfAborted()
      this.#client.lost()
      const delayMs = backoffMs(failures, this.#client.random())
      this.#lost = `${reason}; again in ${Math.round(delayMs / 100) / 10} s`
      onChange()
      await delay(this.#client.clock, delayMs, signal)
    }
  }

  /** One connection, from the first read to its end; answers with why it ended. */
  async #connection(onOpen: () => void): Promise<string> {
    const { city, signal } = this.#options
    const after = await this.#within((limited) => eventHead(this.#client, { city }, limited))
    await this.load()
    this.#lost = undefined
    this.#options.onChange()
    onOpen()
    const { operation, params, query } = streamOf({ city }, { type: ['mail.*'], after })
    const frames = follow(this.#client, operation, { params, query, signal, reconnect: false })
    for await (const _ of frames) this.#reader.wish()
    return 'the stream ended'
  }

  async #readAgain(): Promise<void> {
    try {
      await this.load()
    } catch {
      // What it is that cannot be reached shows in the stream as well, and then everything is read again.
      this.#options.signal.throwIfAborted()
    }
  }

  async #readThread(signal: AbortSignal): Promise<void> {
    const id = this.#open
    if (id === undefined) return
    const query = { agent: this.#options.agent, limit: MOST_IN_THREAD }
    const params = { cityName: this.#options.city, id }
    const found = await this.#client.call('get-mail-thread', { params, query, signal }).catch(() => undefined)
    if (found !== undefined && this.#open === id) this.#thread = found.body.items
  }

  async #within<T>(work: (signal: AbortSignal) => Promise<T>): Promise<T> {
    using limit = this.#context.within()
    return await work(AbortSignal.any([limit.signal, this.#options.signal]))
  }
}
