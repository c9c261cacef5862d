/** Terminals of sessions over HTTP: look, follow, type, size, press keys (decisions 221, 222). */

import { join } from 'node:path'
import { cut } from '../../../contract/base/text.ts'
import { MAX_INPUT_BYTES, type terminalOperations } from '../../../contract/sessions/terminal.ts'
import { nearestHint } from '../../../files/issues.ts'
import { defineHandlers, ok } from '../../../kernel/call.ts'
import { type Clock, isoTime } from '../../../kernel/clock.ts'
import { deadline } from '../../../kernel/deadline.ts'
import type { Feed } from '../../../kernel/feed.ts'
import { invalidField, problem } from '../../../kernel/problem.ts'
import { type AgentProcess, TypingRefused } from '../../../runtimes/process/runtime.ts'
import type { SessionCity } from '../http/handlers.ts'
import { hasScreen } from '../plan/views.ts'
import type { Shown, Terminal } from '../record/ports.ts'
import type { SessionRecord } from '../record/record.ts'
import type { ByteLog } from '../transcripts/entries.ts'
import type { Encode } from '../transcripts/stream.ts'
import { parseTerminalPlace, terminalFeed } from './feed.ts'
import { bytesOf, KEY_NAMES } from './keys.ts'
import { Viewers } from './viewers.ts'

/** What is asked of a program and its host must be done by then. */
const DONE_MS = 10_000

export interface TerminalCity extends SessionCity {
  readonly encode: Encode
  readonly openLog: (directory: string) => ByteLog
  /** The feed, which ends with this run of the city. */
  readonly whileRunning: (feed: Feed) => Feed
}

/** A session whose program runs on a terminal. */
interface Seat {
  readonly id: string
  readonly generation: number
  readonly process: AgentProcess
  readonly terminal: Terminal
  /** A person does something at it. */
  sawPerson(): void
  /** It asks something now. */
  asks(): boolean
}

export function createTerminalHandlers({ clock }: { readonly clock: Clock }) {
  /** By the process that they look at: gone with it. */
  const known = new WeakMap<AgentProcess, Viewers>()

  const viewersOf = (seat: Seat): Viewers => {
    const { process } = seat
    const found = known.get(process) ?? makeViewers(seat)
    known.set(process, found)
    return found
  }

  const makeViewers = ({ id, process, terminal, sawPerson, asks }: Seat): Viewers =>
    new Viewers({
      clock,
      size: () => terminal.size,
      resize: ({ columns, rows }) => done(id, (signal) => process.resize(columns, rows, signal)),
      type: ({ viewer, bytes, seq }) => {
        sawPerson()
        return done(id, (signal) => process.input(viewer, bytes, signal, { seq, toDialog: asks() }))
      },
    })

  const done = async (id: string, work: (signal: AbortSignal) => Promise<void>): Promise<void> => {
    using limit = deadline(clock, DONE_MS, `session ${id} takes no input`)
    try {
      await work(limit.signal)
    } catch (error) {
      throw limit.signal.aborted ? problem('gateway-timeout', `session ${id} takes no input`) : error
    }
  }

  const look = async (seat: Seat, signal: AbortSignal): Promise<Shown> => {
    using limit = deadline(clock, DONE_MS, 'its output is faster than it can be shown', signal)
    return seat.terminal.shown(limit.signal)
  }

  return defineHandlers<typeof terminalOperations, TerminalCity>({
    'get-session-screen': async ({ params, query, signal, city }) => {
      const seat = seatOf(city, params.id)
      const shown = await look(seat, signal)
      const { columns: cols, rows, cursor, title, alternate, observedAt } = shown
      return ok({
        session_id: seat.id,
        ...{ cols, rows, cursor, alternate },
        ...(title === '' ? {} : { title }),
        lines: [...shown.lines(query.format === 'ansi')],
        observed_at: isoTime(observedAt),
      })
    },

    'stream-session-terminal': ({ params, query, header, city }) => {
      const seat = seatOf(city, params.id)
      const { id, generation, terminal } = seat
      const { sessions, encode, openLog, whileRunning } = city
      const after = resumePoint(header('last-event-id') || query.after_cursor, generation)
      const feed = terminalFeed(
        {
          sessionId: id,
          generation,
          output: openLog(join(sessions.directory(id), String(generation))),
          told: () => seat.process.endOffset,
          shown: (signal) => terminal.shown(signal),
          size: () => terminal.size,
          ended: () => {
            const session = sessions.store.byId(id)
            const isOver = sessions.actor(id)?.terminal !== terminal
            return isOver ? endOf(id, session, clock) : undefined
          },
          listen: (wake) => sessions.listen(id, wake),
          encode,
        },
        {
          after,
          attend: () => {
            const leave = sessions.attend(id, 0)
            const close = query.viewer === undefined ? undefined : viewersOf(seat).opened(query.viewer)
            return () => {
              leave()
              close?.()
            }
          },
        },
      )
      return whileRunning(feed)
    },

    'type-into-session': async ({ params, body, signal, city }) => {
      const seat = seatOf(city, params.id)
      const { viewer, seq } = body
      const bytes = inputOf(body)
      const typed = await viewersOf(seat).input({ viewer, seq, bytes }, signal).catch(refused(seat))
      return ok({ viewer, seq, typed })
    },

    'resize-session-terminal': async ({ params, body, city }) => {
      const seat = seatOf(city, params.id)
      const { viewer, cols, rows } = body
      await viewersOf(seat).sized(viewer, { columns: cols, rows }).catch(refused(seat))
      const size = seat.terminal.size
      return ok({ cols: size.columns, rows: size.rows })
    },

    'send-session-keys': async ({ params, body, signal, city }) => {
      const seat = seatOf(city, params.id)
      const shown = await look(seat, signal)
      const text = textOf(body.keys, shown.applicationCursor)
      if (body.expect_screen !== undefined && !shows(shown, body.expect_screen))
        throw problem('screen-differs', `the screen of session ${seat.id} does not show what was expected`)
      await done(seat.id, (limit) => seat.process.typeKeys(text, limit)).catch(refused(seat))
      return ok({ session_id: seat.id, typed: Buffer.byteLength(text) })
    },
  })
}

function seatOf(city: SessionCity, name: string): Seat {
  const { sessions, deps } = city
  const session = sessions.resolve(name)
  const { id, generation } = session
  if (!hasScreen(session, deps.runtimes.get(session.runtime)))
    throw problem('unsupported', `session ${id} has no terminal`)
  const actor = sessions.actor(id)
  const { process, terminal } = actor ?? {}
  if (actor !== undefined && process !== undefined && terminal !== undefined && process.alive !== 'dead')
    return {
      ...{ id, generation, process, terminal },
      sawPerson: () => actor.sawPerson(),
      asks: () => actor.facts().pending !== undefined,
    }
  // What could not be observed may run all the same, and is looked for.
  if (session.process && process === undefined && sessions.live(id)?.liveness === 'unknown')
    throw problem('unavailable', `session ${id} cannot be observed at the moment`, { retryAfterSec: 1 })
  throw problem('session-conflict', `session ${id} does not run: it is ${session.state}`)
}

const endOf = (id: string, session: SessionRecord | undefined, clock: Clock) => ({
  session_id: id,
  state: session?.state ?? 'deleted',
  reason: session?.last_exit?.message ?? session?.reason ?? session?.last_exit?.reason ?? 'deleted',
  at: isoTime(clock.now()),
})

/** Undefined where the client begins, or another run of the session has begun since. */
function resumePoint(cursor: string | undefined, generation: number): number | undefined {
  if (cursor === undefined || cursor === '') return undefined
  const place = parseTerminalPlace(cursor)
  if (place === undefined) throw problem('invalid-cursor', `not a place in a terminal: ${cut(cursor, 100)}`)
  return place.generation === generation ? place.offset : undefined
}

function inputOf({ text, data }: { readonly text?: string; readonly data?: string }): Buffer {
  if ((text === undefined) === (data === undefined)) throw invalidField('body', 'takes either `text` or `data`')
  const bytes = text === undefined ? Buffer.from(data ?? '', 'base64') : Buffer.from(text)
  const field = text === undefined ? 'body.data' : 'body.text'
  if (bytes.length > MAX_INPUT_BYTES) throw invalidField(field, `is at most ${MAX_INPUT_BYTES} bytes`)
  return bytes
}

function textOf(keys: readonly string[], applicationCursor: boolean): string {
  return keys
    .map((key, at) => {
      const bytes = bytesOf(key, applicationCursor)
      if (bytes === undefined) throw invalidField(`body.keys[${at}]`, notKnown(key), key.slice(0, 100))
      return bytes
    })
    .join('')
}

/** Whoever wants a text typed has `terminal/input`: here it could not be told from a key that is not known. */
function notKnown(key: string): string {
  const hint = nearestHint(key.replace(/^(?:[CMS]-){1,3}/, ''), KEY_NAMES)
  return `is no single character and no name of a key: ${hint ?? 'texts are typed by `terminal/input`'}`
}

const trimmed = (text: string): string => text.replaceAll(/[^\S\n]+$/gm, '')

const shows = (shown: Shown, expected: string): boolean =>
  trimmed(shown.lines(false).join('\n')).includes(trimmed(expected))

const refused =
  ({ id }: Seat) =>
  (error: unknown): never => {
    if (!(error instanceof TypingRefused)) throw error
    const { code, message } = error
    if (code === 'unsupported') throw problem('unsupported', `session ${id}: ${message}`)
    if (code === 'timeout') throw problem('gateway-timeout', `session ${id}: ${message}`)
    throw problem('session-conflict', `session ${id}: ${message}`)
  }
