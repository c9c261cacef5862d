/**
 * A command done again whenever something happened: on a terminal its output is drawn anew, elsewhere what changed is
 * printed again.
 *
 * W1  The cursor is taken before the first output, so that nothing that happens in between is missed.
 * W2  What happens while the command is being done again is one further change; a busy city is asked no more often than
 *     every `PACE_MS`.
 */

import { delay } from '../../client/clock.ts'
import { eventHead } from '../../client/events.ts'
import { follow } from '../../client/follow.ts'
import type { CommandSpec, Input } from '../base/command.ts'
import { Context } from '../base/context.ts'
import { isRegistered } from '../base/discovery.ts'
import { EXIT, mayPass, toFailure } from '../base/failure.ts'
import { Interrupted, type Terminal } from '../base/io.ts'
import { forTerminal } from '../print/terminal-text.ts'
import { cutTo } from '../print/text-width.ts'
import { keyHandler, Screen } from './screen.ts'

const PACE_MS = 200

/** Until it is stopped, or cannot go on. */
export async function watchCommand(context: Context, command: CommandSpec, input: Input): Promise<number> {
  const { terminal } = context.io
  if (terminal !== undefined && context.print.isForPeople) return drawChanges(context, terminal, command, input)
  let shown = ''
  return redoing(context, new Signal(), async () => {
    const text = await outputOf(context, command, input, context.io.stdout.columns)
    const fresh = context.print.format === 'json' ? text : newLines(shown, text)
    if (text !== shown) await context.print.raw(fresh)
    shown = text
  })
}

async function drawChanges(context: Context, terminal: Terminal, command: CommandSpec, input: Input): Promise<number> {
  const left = Promise.withResolvers<number>()
  const again = new Signal()
  const onBytes = keyHandler(context.io.clock, (key) => {
    if (key.key === 'suspend') screen.suspend()
    if (key.key === 'redraw') screen.redraw()
    if (key.key === 'interrupt') left.reject(new Interrupted(EXIT.interrupted))
    if (key.key === 'text' && key.text === 'q') left.resolve(EXIT.ok)
  })
  using screen = new Screen(terminal, onBytes, () => again.give())
  const drawing = redoing(context, again, async () => {
    const { columns, rows } = screen.size
    const text = forTerminal(await outputOf(context, command, input, columns)).trimEnd()
    const lines = text === '' ? [cutTo('nothing to show', columns)] : text.split('\n')
    screen.draw(lines.slice(0, rows))
  })
  drawing.catch(() => undefined)
  return await Promise.race([left.promise, drawing])
}

/** Something to wait for, again and again. */
class Signal {
  #given = Promise.withResolvers<void>()

  give(): void {
    this.#given.resolve()
  }

  /** Since it was asked for the last time. */
  async next(): Promise<void> {
    await this.#given.promise
    this.#given = Promise.withResolvers()
  }
}

/** Does the work at once, and after every change. */
async function redoing(context: Context, again: Signal, work: () => Promise<void>): Promise<never> {
  const client = await context.client()
  const ending = new AbortController()
  const signal = AbortSignal.any([context.io.reading(), ending.signal])
  const { city, head } = await whereNow(context)
  const listening = listen(context, { city, head, signal, onChange: () => again.give() })
  const repeating = (async (): Promise<never> => {
    await work()
    for (;;) {
      await again.next()
      await delay(client.clock, PACE_MS, signal)
      await work().catch((error: unknown) => {
        // What cannot be reached for a moment is shown once it is back.
        if (!mayPass(error)) throw error
        return context.note(toFailure(error).message)
      })
    }
  })()
  try {
    return await Promise.race([listening, repeating])
  } finally {
    ending.abort(new DOMException('nobody watches any more', 'AbortError'))
    again.give()
    await Promise.allSettled([listening, repeating])
  }
}

async function whereNow(context: Context) {
  using limit = context.within()
  const city = await context.city(limit.signal)
  return { city, head: await eventHead(await context.client(), { city }, limit.signal) }
}

interface Listening {
  readonly city: string | undefined
  readonly head: string
  readonly signal: AbortSignal
  readonly onChange: () => void
}

/** To the events of the city in scope, else of all. */
async function listen(context: Context, { city, head, signal, onChange }: Listening): Promise<never> {
  const client = await context.client()
  const frames = follow(client, city === undefined ? 'stream-events' : 'stream-city-events', {
    signal,
    ...(city === undefined
      ? { query: { after_cursor: head } }
      : { params: { cityName: city }, query: { after_seq: head } }),
    onRetry: ({ reason }) => void context.note(`${reason}; connecting again`),
    mayReturn: async () => {
      using limit = context.within()
      return await isRegistered(client, city, limit.signal)
    },
  })
  for await (const _ of frames) onChange()
  throw new TypeError('a stream that is followed has no end')
}

/** What the command prints. */
async function outputOf(context: Context, command: CommandSpec, input: Input, columns: number): Promise<string> {
  let text = ''
  const decoder = new TextDecoder()
  const stdout = {
    isTerminal: context.io.stdout.isTerminal,
    columns,
    write: async (part: string | Uint8Array) => {
      text += typeof part === 'string' ? part : decoder.decode(part, { stream: true })
    },
  }
  // Notes would be said again with every change. The client stays: while its server is gone, no other one is asked.
  const options = { ...context.options, quiet: true }
  const once = new Context({ ...context.io, stdout }, options, command.operations, context.client())
  await once.print.prepare()
  await command.run(once, input)
  return text
}

/** Lines that were not there: a thing that changed is a line that is new. */
function newLines(before: string, now: string): string {
  const known = new Set(before.split('\n'))
  const lines = now.split('\n').filter((line) => line !== '' && !known.has(line))
  return lines.map((line) => `${line}\n`).join('')
}
