/** A session as a conversation: what it says as it says it, and lines that are typed to it. */
import type { Context } from '../base/context.ts'
import { toFailure } from '../base/failure.ts'
import { liveText, printLive } from './live.ts'
import type { TurnText } from './turn-text.ts'

/** A message is no longer. */
const MAX_LINE_CHARACTERS = 1024 * 1024

interface Place {
  readonly cityName: string
  readonly id: string
}

/** Until the session ends, or the input does: that lets go of the session and ends nothing. */
export async function converse(context: Context, place: Place): Promise<void> {
  const { io } = context
  const client = await context.client()
  const leaving = new AbortController()
  const signal = AbortSignal.any([io.signal, leaving.signal])
  const text = liveText(context)
  const query = { attended: true }
  const live = printLive(context, client, { operation: 'stream-session', params: place, query, signal, text })
  const typing = sendLines(context, place, text, signal)
  try {
    await Promise.race([live, typing])
  } finally {
    leaving.abort()
    await Promise.allSettled([live, typing])
  }
}

async function sendLines(context: Context, params: Place, text: TurnText, signal: AbortSignal): Promise<void> {
  const client = await context.client()
  for await (const line of typedLines(context, signal)) {
    if (context.io.stdin.isTerminal) text.typed(line)
    if (line.trim() === '') continue
    using limit = context.within()
    try {
      await client.call('submit-session', {
        params,
        body: { message: line, intent: 'follow_up' },
        signal: limit.signal,
      })
    } catch (error) {
      await context.note(toFailure(error).message)
    }
    // Whoever waits for a line that never comes would not be told any more.
    signal.throwIfAborted()
  }
}

async function* typedLines({ io }: Context, signal: AbortSignal): AsyncGenerator<string> {
  const decoder = new TextDecoder()
  let rest = ''
  for await (const chunk of io.stdin.chunks(signal)) {
    const lines = `${rest}${decoder.decode(chunk, { stream: true })}`.split(/\r?\n/)
    // One that is too long for a message goes out in parts.
    rest = lines.pop() ?? ''
    yield* lines
    if (rest.length < MAX_LINE_CHARACTERS) continue
    yield rest
    rest = ''
  }
  if (rest !== '') yield rest
}
