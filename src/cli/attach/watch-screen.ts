/** The screen of a session, again whenever it changes; nobody types here. */
import { follow } from '../../client/follow.ts'
import { ApiProblem } from '../../client/problems.ts'
import type { SessionScreenBody } from '../../contract/sessions/terminal.ts'
import type { Context } from '../base/context.ts'
import { isRegistered } from '../base/discovery.ts'
import { EXIT } from '../base/failure.ts'
import { Interrupted, type Terminal } from '../base/io.ts'
import { Paced } from '../live/paced.ts'
import { keyHandler, Screen } from '../live/screen.ts'
import { forTerminal, paintedForTerminal } from '../print/terminal-text.ts'
import type { Seat } from './typing.ts'

const PACE_MS = 100

export async function watchScreen(context: Context, seat: Seat, isPainted: boolean): Promise<void> {
  const { terminal } = context.io
  if (terminal !== undefined && context.print.isForPeople) return drawScreens(context, seat, terminal, isPainted)
  let shown = ''
  await eachScreen(context, seat, isPainted, context.io.reading(), async (screen) => {
    const { observed_at: _, ...steady } = screen
    const text = JSON.stringify(steady)
    if (text === shown) return
    shown = text
    if (!context.print.isForPeople) return context.print.records([JSON.stringify(screen)])
    await (isPainted ? context.print.painted(screen.lines) : context.print.lines(screen.lines))
  })
}

async function drawScreens(context: Context, seat: Seat, terminal: Terminal, isPainted: boolean): Promise<void> {
  const left = Promise.withResolvers<void>()
  const ending = new AbortController()
  const onBytes = keyHandler(context.io.clock, (key) => {
    if (key.key === 'suspend') screen.suspend()
    if (key.key === 'redraw') screen.redraw()
    if (key.key === 'interrupt') left.reject(new Interrupted(EXIT.interrupted))
    if (key.key === 'text' && key.text === 'q') left.resolve()
  })
  let last: readonly string[] = []
  const draw = () => screen.draw(last.slice(0, screen.size.rows))
  using screen = new Screen(terminal, onBytes, draw)
  const signal = AbortSignal.any([context.io.signal, ending.signal])
  const drawing = eachScreen(context, seat, isPainted, signal, async ({ lines }) => {
    last = lines.length === 0 ? [''] : lines.map(isPainted ? paintedForTerminal : forTerminal)
    draw()
  })
  drawing.catch(() => undefined)
  try {
    await Promise.race([left.promise, drawing])
  } finally {
    ending.abort(new DOMException('nobody looks any more', 'AbortError'))
    await drawing.catch(() => undefined)
  }
}

/** Until the program has ended. */
async function eachScreen(
  context: Context,
  seat: Seat,
  isPainted: boolean,
  signal: AbortSignal,
  show: (screen: SessionScreenBody) => Promise<void>,
): Promise<void> {
  const client = await context.client()
  const failed = Promise.withResolvers<never>()
  failed.promise.catch(() => undefined)
  const look = async () => {
    const query = isPainted ? { format: 'ansi' as const } : {}
    try {
      await show((await client.call('get-session-screen', { params: seat, query, signal })).body)
    } catch (error) {
      // What has ended, or cannot be reached for a moment, shows in the stream.
      if (!(error instanceof ApiProblem) && !signal.aborted) failed.reject(error)
    }
  }
  const paced = new Paced(context.io.clock, signal, PACE_MS, look)
  const following = (async () => {
    const frames = follow(client, 'stream-session-terminal', {
      params: seat,
      signal,
      onRetry: ({ reason }) => void context.note(reason),
      mayReturn: async ({ code }) => {
        using limit = context.within()
        return code === 'city-not-found' && (await isRegistered(client, seat.cityName, limit.signal))
      },
    })
    for await (const { event } of frames) {
      if (event === 'ended') return
      paced.wish()
    }
  })()
  await Promise.race([following, failed.promise])
}
