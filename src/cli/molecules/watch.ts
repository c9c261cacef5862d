/**
 * A molecule as it runs: on a terminal a tree that is drawn anew with every change, elsewhere a line for each. It ends with
 * the molecule, and as that did.
 *
 * M1  The cursor is taken before the first read, so that nothing that happens in between is missed.
 * M2  One read is under way at a time, and after it comes a pause; times go on without any.
 */
import type { Client } from '../../client/client.ts'
import { delay } from '../../client/clock.ts'
import { type AnyEvent, eventHead, parseEvent, streamOf } from '../../client/events.ts'
import { follow } from '../../client/follow.ts'
import type { Context } from '../base/context.ts'
import { isRegistered } from '../base/discovery.ts'
import { EXIT, printable, toFailure } from '../base/failure.ts'
import { Interrupted, type Terminal } from '../base/io.ts'
import { jsonLine } from '../base/output.ts'
import type { Key } from '../live/keys.ts'
import { Paced } from '../live/paced.ts'
import { keyHandler, Screen } from '../live/screen.ts'
import { forTerminal } from '../print/terminal-text.ts'
import { cutTo } from '../print/text-width.ts'
import { failureOf, isOver, mayPass, readMolecule, type Seen, type Spot } from './reading.ts'
import { headLines, stepLines } from './tree.ts'

const PACE_MS = 250
const TICK_MS = 1_000
const TYPES = [
  'molecule.*',
  'execution.*',
  'gate.*',
  'bead.claimed',
  'bead.released',
  'bead.lease_expired',
  'bead.deleted',
] as const
const LONGEST_MS = 20 * 86_400_000

export async function watchMolecule(context: Context, spot: Spot): Promise<number> {
  const client = await context.client()
  using limit = context.within(LONGEST_MS)
  const { signal } = limit
  const head = await eventHead(client, { city: spot.cityName }, signal)
  const { terminal } = context.io
  const seen =
    terminal !== undefined && context.print.isForPeople
      ? await drawn(context, { client, spot, head, signal }, terminal)
      : await told(context, { client, spot, head, signal })
  if (seen === undefined) return EXIT.ok
  const failure = failureOf(seen.molecule)
  if (failure !== undefined) throw failure
  return EXIT.ok
}

interface Watching {
  readonly client: Client
  readonly spot: Spot
  readonly head: string
  readonly signal: AbortSignal
}

async function* eventsOf(context: Context, { client, spot, head, signal }: Watching): AsyncGenerator<AnyEvent> {
  const city = spot.cityName
  const stream = streamOf({ city }, { type: TYPES, after: head })
  const frames = follow(client, stream.operation, {
    ...stream,
    signal,
    onRetry: ({ reason }) => void context.note(`${reason}; connecting again`),
    mayReturn: async () => {
      using limit = context.within()
      return await isRegistered(client, city, limit.signal)
    },
  })
  for await (const { data } of frames) yield parseEvent(data)
}

/** What there is, then a line for each event, until its end. */
async function told(context: Context, watching: Watching): Promise<Seen> {
  const { client, spot, signal } = watching
  const first = await readMolecule(client, spot, signal)
  const begun = first.steps.filter(({ status }) => status !== 'pending')
  const line = (words: readonly (string | number | undefined)[], record: object) =>
    context.print.isForPeople || context.print.format === 'name'
      ? context.print.lines([printable(words.map((word) => oneWord(word)).join('\t'))])
      : context.print.records([jsonLine(record)])
  const { molecule } = first
  await line([molecule.updated_at, molecule.id, molecule.status, undefined, undefined, molecule.title], molecule)
  for (const step of begun) {
    const { id, status, attempt, bead_id: bead, reason, started_at: at } = step
    await line([at, id, status, attempt, bead, reason], step)
  }
  if (isOver(molecule)) return first
  for await (const event of eventsOf(context, watching)) {
    if (event.subject !== spot.id) continue
    const { type, payload = {}, ts } = event
    const { step_id: step, status, attempt, bead_id: bead, reason, to, outcome, close_reason: why } = payload
    const about = { step: step ?? spot.id, status: status ?? to ?? outcome, reason: reason ?? why }
    if (type === 'molecule.created') continue
    await line([ts, text(about.step), text(about.status), text(attempt), text(bead), text(about.reason)], event)
    if (type === 'molecule.resolved' || type === 'bead.deleted') break
  }
  return await readMolecule(client, spot, signal)
}

const text = (value: unknown): string | undefined => (value === undefined || value === null ? undefined : String(value))
const oneWord = (word: string | number | undefined): string => String(word ?? '').replaceAll(/[\t\n\r]+/g, ' ')

/** Undefined: whoever looked has left. */
async function drawn(context: Context, watching: Watching, terminal: Terminal): Promise<Seen | undefined> {
  const first = await readMolecule(watching.client, watching.spot, watching.signal)
  const seen = isOver(first.molecule) ? first : await new Watch(context, watching, terminal, first).run()
  if (seen === undefined) return undefined
  // What was on the screen is gone with it.
  const style = styleOf(context, terminal.columns)
  await context.print.painted([...headLines(seen.molecule, style), ...stepLines(seen.steps, style)])
  return seen
}

const styleOf = ({ print, io }: Context, width: number) => ({
  width,
  now: io.clock.now(),
  paint: (state: string, mark: string) => print.paint(state, mark),
})

class Watch {
  readonly #context: Context
  readonly #watching: Watching
  readonly #screen: Screen
  readonly #left = Promise.withResolvers<Seen | undefined>()
  readonly #ending = new AbortController()
  readonly #reading: Paced
  #seen: Seen
  #from = 0
  #note = ''

  constructor(context: Context, watching: Watching, terminal: Terminal, first: Seen) {
    this.#context = context
    this.#seen = first
    this.#watching = { ...watching, signal: AbortSignal.any([watching.signal, this.#ending.signal]) }
    const onBytes = keyHandler(context.io.clock, (key) => this.#press(key))
    this.#reading = new Paced(context.io.clock, this.#watching.signal, PACE_MS, () => this.#read())
    this.#screen = new Screen(terminal, onBytes, () => this.#draw())
  }

  async run(): Promise<Seen | undefined> {
    const { signal } = this.#watching
    const running = [this.#listen(), this.#tick(signal)]
    this.#draw()
    try {
      return await Promise.race([this.#left.promise, ...running])
    } finally {
      this.#ending.abort(new DOMException('nobody watches any more', 'AbortError'))
      this.#screen[Symbol.dispose]()
      await Promise.allSettled(running)
    }
  }

  async #listen(): Promise<never> {
    for await (const _ of eventsOf(this.#context, this.#watching)) this.#reading.wish()
    throw new TypeError('a stream that is followed has no end')
  }

  async #tick(signal: AbortSignal): Promise<never> {
    for (;;) {
      await delay(this.#context.io.clock, TICK_MS, signal)
      this.#draw()
    }
  }

  async #read(): Promise<void> {
    const { client, spot, signal } = this.#watching
    try {
      this.#seen = await readMolecule(client, spot, signal)
      this.#note = ''
      if (isOver(this.#seen.molecule)) this.#left.resolve(this.#seen)
    } catch (error) {
      signal.throwIfAborted()
      // What cannot be reached for a moment is shown once it is back.
      if (mayPass(error)) this.#note = toFailure(error).message
      else this.#left.reject(error)
    }
    this.#draw()
  }

  #press(key: Key): void {
    const { rows } = this.#screen.size
    const moves: Readonly<Record<string, number>> = { up: -1, down: 1, 'page-up': -rows, 'page-down': rows }
    if (key.key === 'interrupt') this.#left.reject(new Interrupted(EXIT.interrupted))
    else if (key.key === 'text' && key.text === 'q') this.#left.resolve(undefined)
    else if (key.key === 'suspend') this.#screen.suspend()
    else if (key.key === 'redraw') this.#screen.redraw()
    else {
      const word = key.key === 'text' ? { j: 'down', k: 'up' }[key.text] : key.key
      this.#from += moves[word ?? ''] ?? 0
      this.#draw()
    }
  }

  #draw(): void {
    const { columns, rows } = this.#screen.size
    const { molecule, steps } = this.#seen
    const style = styleOf(this.#context, columns)
    const head = headLines(molecule, style)
    const room = Math.max(1, rows - head.length - 2)
    const lines = stepLines(steps, style, room)
    this.#from = Math.max(0, Math.min(this.#from, lines.length - room))
    const shown = lines.slice(this.#from, this.#from + room)
    const hidden = lines.length - shown.length
    const foot = [this.#note, hidden > 0 ? `${hidden} more lines: up, down` : '', 'q leave'].filter(
      (part) => part !== '',
    )
    this.#screen.draw([...head, '', ...shown, cutTo(forTerminal(printable(foot.join('   '))), columns)].slice(0, rows))
  }
}
