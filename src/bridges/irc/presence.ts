/**
 * Being in the channels of one connection: joined, told what was missed, and heard.
 *
 * P1  What comes while the past of a channel is still read is told after it.
 */
import type { IrcMessage } from 'irc-framework'
import { delay } from '../../client/clock.ts'
import { reasonOf } from '../library/log.ts'
import { Occasion } from '../library/occasion.ts'
import type { InboundMessage } from '../library/shapes.ts'
import type { World } from '../library/world.ts'
import { DELIVERY_TAG, readMessage } from './incoming.ts'
import type { Link } from './link.ts'
import { JOIN_REFUSALS, refusalIn } from './numerics.ts'
import { folded } from './text.ts'
import { Voice } from './voice.ts'

const HISTORY_PAGE = 100
const MOST_PAGES = 20
const REJOIN_FIRST_MS = 5_000
const REJOIN_LONGEST_MS = 300_000
const NICK_AGAIN_MS = 60_000

/** What is known of the past, and what becomes of what is heard. */
export interface Listener {
  readonly account: string
  readonly nick: string
  readonly isOurs: (delivery: string) => boolean
  heard(message: InboundMessage): void
  /** Of a channel, oldest first, when it was joined. */
  missed(channel: string, messages: readonly InboundMessage[]): void
  /** Id of the last message of the channel that was heard. */
  last(channel: string): string | undefined
}

interface Channel {
  readonly name: string
  state: 'out' | 'joining' | 'reading' | 'in'
  refusals: number
  readonly past: InboundMessage[]
  /** How many lines of the past were shown, ours too, and the id of the last one. */
  shown: number
  newest: string | undefined
  readonly held: InboundMessage[]
}

interface Batch {
  readonly type: string
  readonly label: string | undefined
  readonly parent: string | undefined
}

export class Presence {
  /** A channel was joined or left, or the connection ended. */
  readonly changed = new Occasion()
  readonly voice: Voice
  readonly #link: Link
  readonly #listener: Listener
  readonly #world: World
  readonly #over = new AbortController()
  readonly #channels: ReadonlyMap<string, Channel>
  readonly #batches = new Map<string, Batch>()
  /** Our own lines that the past of a channel has shown. */
  readonly #shown = new Map<string, string>()
  /** The page of the past that is being read to find a line of ours. */
  #page: { readonly target: string; oldest: string | undefined } | undefined
  #looking: Promise<void> = Promise.resolve()

  constructor(link: Link, channels: readonly string[], listener: Listener, world: World) {
    this.#link = link
    this.#listener = listener
    this.#world = world
    this.voice = new Voice(link, world, this.#over.signal)
    this.#channels = new Map(
      channels.map((name) => [
        folded(name, this.mapping),
        { name, state: 'out', refusals: 0, past: [], shown: 0, newest: undefined, held: [] },
      ]),
    )
    link.onMessage = (message) => this.#read(message)
    void link.closed.then(() => this.#end())
  }

  get mapping(): string {
    return this.#link.mapping
  }

  get nick(): string {
    return this.#link.nick
  }

  get isOver(): boolean {
    return this.#over.signal.aborted
  }

  /** Joined, with its past read. */
  isIn(channel: string): boolean {
    return !this.isOver && this.#channels.get(folded(channel, this.mapping))?.state === 'in'
  }

  isMember(channel: string): boolean {
    return this.#channels.has(folded(channel, this.mapping))
  }

  get joined(): readonly string[] {
    return [...this.#channels.values()].filter(({ state }) => state === 'in').map(({ name }) => name)
  }

  start(): void {
    for (const channel of this.#channels.values()) this.#join(channel)
    if (this.nick !== this.#listener.nick) void this.#regainNick()
  }

  /** The id under which the past has shown this part of a delivery. */
  shown(mark: string): string | undefined {
    return this.#shown.get(mark)
  }

  /** Reads the past of a person or channel, where the server lets us, until it shows this line of ours. */
  lookBack(target: string, mark: string): Promise<void> {
    const look = this.#looking.then(() => this.#lookBack(target, mark))
    this.#looking = look.catch(() => undefined)
    return look
  }

  async #lookBack(target: string, mark: string): Promise<void> {
    if (!this.#hasHistory()) return
    let from = ['LATEST', target, '*']
    for (let asked = 0; asked < MOST_PAGES && !this.#shown.has(mark); asked += 1) {
      this.#page = { target: folded(target, this.mapping), oldest: undefined }
      this.#send('CHATHISTORY', [...from, `${this.#pageSize}`])
      await this.voice.barrier()
      const { oldest } = this.#page
      if (oldest === undefined) return
      from = ['BEFORE', target, `msgid=${oldest}`]
    }
  }

  #send(command: string, params: readonly string[]): void {
    if (this.#link.isOpen) this.#link.send({ command, params })
  }

  #end(): void {
    this.#over.abort(new Error('the connection is gone'))
    this.changed.happened()
  }

  // ---- what comes ----------------------------------------------------------------------------------------------------

  #read(message: IrcMessage): void {
    const { command, params, tags, nick } = message
    const label = tags['label'] || this.#batchOf(tags, (batch) => batch.label)
    const [first = '', second = ''] = params
    if (command === 'BATCH') this.#readBatch(params, tags)
    else if (command === 'PONG') this.voice.ponged(params.at(-1) ?? '')
    else if (command === 'PRIVMSG' || command === 'NOTICE') this.#readMessage(message, label)
    else if (command === '366') void this.#readPast(second)
    else if (command === 'KICK' && this.#isSelf(second)) this.#leave(first, `kicked: ${params[2] ?? ''}`)
    else if (command === 'PART' && this.#isSelf(nick)) this.#leave(first, 'parted')
    else if ((command === 'QUIT' || command === 'NICK') && this.#isWanted(nick)) this.#takeNick()
    else if (command === 'NICK' && this.#isSelf(nick))
      this.#world.log.info('our nick changes', { from: nick, to: first })
    else this.#readNumeric(command, params, label)
  }

  #readNumeric(command: string, params: readonly string[], label: string | undefined): void {
    const channel = this.#channels.get(folded(params[1] ?? '', this.mapping))
    const cannot = JOIN_REFUSALS[command]
    const refused = refusalIn(command, params)
    if (cannot !== undefined && channel?.state === 'joining') this.#leave(channel.name, cannot)
    else if (refused !== undefined) this.voice.refused(label, params, refused)
  }

  #readBatch([name = '', type = '']: readonly string[], tags: IrcMessage['tags']): void {
    const id = name.slice(1)
    if (name.startsWith('-')) this.#batches.delete(id)
    else if (this.#batches.size < 100) this.#batches.set(id, { type, label: tags['label'], parent: tags['batch'] })
  }

  /** The first that one of the batches around a message tells. */
  #batchOf<T>(tags: IrcMessage['tags'], tell: (batch: Batch) => T | undefined): T | undefined {
    let batch = this.#batches.get(tags['batch'] ?? '')
    for (let depth = 0; batch !== undefined && depth < 5; depth += 1) {
      const told = tell(batch)
      if (told !== undefined) return told
      batch = this.#batches.get(batch.parent ?? '')
    }
    return undefined
  }

  #readMessage(message: IrcMessage, label: string | undefined): void {
    const { nick, tags } = message
    const isPast = this.#batchOf(tags, ({ type }) => (type === 'chathistory' ? true : undefined)) === true
    if (isPast) this.#noteOldest(message)
    const past = isPast ? this.#channels.get(folded(message.params[0] ?? '', this.mapping)) : undefined
    if (past !== undefined) {
      past.shown += 1
      past.newest = tags['msgid'] || undefined
    }
    const mark = tags[DELIVERY_TAG]
    const isOurs = mark !== undefined && this.#listener.isOurs(mark)
    if (isOurs || this.#isSelf(nick)) {
      if (mark !== undefined && tags['msgid']) this.#remember(mark, tags['msgid'])
      if (label !== undefined) this.voice.echoed(label, tags['msgid'] || mark || label)
      return
    }
    const read = readMessage(message, {
      account: this.#listener.account,
      nick: this.nick,
      isOwn: (name) => this.#isSelf(name) || (isPast && this.#isFormer(name)),
      isName: (name) => this.#isSelf(name) || this.#isFormer(name),
      mapping: this.mapping,
      newKey: this.#world.newKey,
      now: this.#world.clock.now(),
    })
    if (read === undefined) return
    const channel = this.#channels.get(read.conversation.conversation_id)
    if (isPast) {
      // Without an id it cannot be told from what is known already.
      if (channel !== undefined && tags['msgid']) channel.past.push(read)
    } else if (channel !== undefined && channel.state !== 'in') channel.held.push(read)
    else this.#listener.heard(read)
  }

  #noteOldest({ params: [target = ''], nick, tags }: IrcMessage): void {
    const page = this.#page
    // What others say to us has our name for a target.
    const place = this.#isSelf(target) ? nick : target
    if (page?.target === folded(place, this.mapping)) page.oldest ??= tags['msgid'] || undefined
  }

  #remember(mark: string, messageId: string): void {
    this.#shown.set(mark, messageId)
    const [oldest] = this.#shown.keys()
    if (this.#shown.size > 10_000 && oldest !== undefined) this.#shown.delete(oldest)
  }

  #isSelf(nick: string): boolean {
    return folded(nick, this.mapping) === folded(this.nick, this.mapping)
  }

  /** The nick that we want, or one that we take while it is taken. */
  #isFormer(nick: string): boolean {
    return (
      folded(nick.replace(/_+$/, ''), this.mapping) === folded(this.#listener.nick.replace(/_+$/, ''), this.mapping)
    )
  }

  // ---- channels ------------------------------------------------------------------------------------------------------

  #join(channel: Channel): void {
    if (this.isOver) return
    channel.state = 'joining'
    this.#send('JOIN', [channel.name])
  }

  #leave(name: string, why: string): void {
    const channel = this.#channels.get(folded(name, this.mapping))
    if (channel === undefined || channel.state === 'out') return
    // Nothing is lost of what was heard before.
    this.#tell(channel)
    channel.state = 'out'
    channel.refusals += 1
    const wait = Math.min(REJOIN_LONGEST_MS, REJOIN_FIRST_MS * 2 ** (channel.refusals - 1))
    this.#world.log.warn('not in the channel', { channel: channel.name, why, again_in_ms: wait })
    void this.#later(wait, () => this.#join(channel))
    this.changed.happened()
  }

  /** After the names of the members, which come last: asks what was missed, and waits until all of it is there. */
  async #readPast(name: string): Promise<void> {
    const channel = this.#channels.get(folded(name, this.mapping))
    if (channel?.state !== 'joining') return
    channel.state = 'reading'
    try {
      if (this.#hasHistory()) await this.#askPast(channel)
      await this.voice.barrier()
    } catch {
      return
    }
    if (channel.state !== 'reading') return
    channel.state = 'in'
    channel.refusals = 0
    this.#tell(channel)
    this.#world.log.info('in the channel', { channel: channel.name, nick: this.nick, exact: this.voice.isExact })
    this.changed.happened()
  }

  async #askPast(channel: Channel): Promise<void> {
    const page = this.#pageSize
    let last = this.#listener.last(folded(channel.name, this.mapping))
    for (let asked = 0; asked < MOST_PAGES; asked += 1) {
      const before = channel.shown
      const after = last === undefined ? ['LATEST', channel.name, '*'] : ['AFTER', channel.name, `msgid=${last}`]
      this.#send('CHATHISTORY', [...after, `${page}`])
      await this.voice.barrier()
      const { newest } = channel
      if (last === undefined || newest === undefined || channel.shown - before < page) return
      last = newest
    }
  }

  get #pageSize(): number {
    return Math.min(HISTORY_PAGE, Number(this.#link.support('CHATHISTORY') ?? '') || HISTORY_PAGE)
  }

  #hasHistory(): boolean {
    return this.#link.has('batch') && (this.#link.has('chathistory') || this.#link.has('draft/chathistory'))
  }

  #tell(channel: Channel): void {
    const [past, held] = [channel.past.splice(0), channel.held.splice(0)]
    if (past.length > 0 || channel.state === 'in') this.#listener.missed(folded(channel.name, this.mapping), past)
    for (const message of held) this.#listener.heard(message)
  }

  /** The nick that we would have, and have not. */
  #isWanted(nick: string): boolean {
    return !this.#isSelf(nick) && folded(nick, this.mapping) === folded(this.#listener.nick, this.mapping)
  }

  #takeNick(): void {
    this.#send('NICK', [this.#listener.nick])
  }

  async #regainNick(): Promise<void> {
    while (!this.isOver && this.#isWanted(this.#listener.nick)) await this.#later(NICK_AGAIN_MS, () => this.#takeNick())
  }

  async #later(ms: number, work: () => void): Promise<void> {
    try {
      await delay(this.#world.clock, ms, this.#over.signal)
    } catch {
      return
    }
    try {
      work()
    } catch (error) {
      this.#world.log.error('cannot do it', { reason: reasonOf(error) })
    }
  }
}
