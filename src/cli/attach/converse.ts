/** A session as a conversation: what it says as it says it, lines that are typed to it, answers to what it asks. */

import type { Context } from '../base/context.ts'
import { toFailure } from '../base/failure.ts'
import { Interrupted } from '../base/io.ts'
import { sendAnswer } from '../live/answering.ts'
import { possible, type Question, replyTo } from '../live/choices.ts'
import { questionLines } from '../live/question-text.ts'
import { liveText, printLive } from '../views/live.ts'
import type { TurnText } from '../views/turn-text.ts'

/** A message is no longer. */
const MAX_LINE_CHARACTERS = 1024 * 1024
const CTRL_BRACKET = '\u001d'
const LEAVES = '~.'

interface Place {
  readonly cityName: string
  readonly id: string
}

/** Until the session ends, or the input does: that lets go of the session and ends nothing. */
export async function converse(context: Context, place: Place): Promise<void> {
  const { io } = context
  const client = await context.client()
  // Input that ends at once would leave before the stream could say that there is no such session.
  using limit = context.within()
  await client.call('get-session', { params: place, signal: limit.signal })
  const leaving = new AbortController()
  const signal = AbortSignal.any([io.signal, leaving.signal])
  const talk = new Talk(context, place)
  await context.note(`attached to ${place.id}: ${waysOut(context)}; the session goes on`)
  const live = printLive(context, client, {
    ...{ operation: 'stream-session', params: place, query: { attended: true }, signal, text: talk.text },
    // Lines of a pipe were written before anybody saw the question: they are messages.
    ...(io.stdin.isTerminal ? { onQuestion: (question) => talk.ask(question) } : {}),
  })
  // A terminal hands over lines: without this the key would wait for Enter.
  const undo = io.stdin.isTerminal ? io.stdin.endLinesAt(CTRL_BRACKET) : undefined
  const typing = talk.sendLines(signal)
  try {
    const first = await Promise.race([live.then(() => 'ended' as const), typing])
    if (first === 'left') await talk.sayLeft()
  } catch (error) {
    if (error instanceof Interrupted) await talk.sayLeft()
    throw error
  } finally {
    leaving.abort()
    await Promise.allSettled([live, typing])
    undo?.()
  }
}

const waysOut = ({ io }: Context): string =>
  io.stdin.isTerminal
    ? `ctrl-], ${LEAVES} on a line of its own, or ctrl-D at the start of a line, leaves`
    : 'the end of the input leaves'

class Talk {
  readonly text: TurnText
  readonly #context: Context
  readonly #place: Place
  #question: Question | undefined
  #answered: string | undefined

  constructor(context: Context, place: Place) {
    this.#context = context
    this.#place = place
    this.text = liveText(context)
  }

  /** Shows the question: the next line that is typed answers it. */
  async ask(question: Question | undefined): Promise<void> {
    const { print } = this.#context
    // What is answered may be told of once more before the answer is.
    if (question !== undefined && question.request_id === this.#answered) return
    const before = this.#question
    this.#question = question
    if (question !== undefined) {
      await print.raw(this.text.breakLine())
      await print.lines(['', 'it asks:', ...questionLines(question), 'answer with a number or a name:'])
    } else if (before !== undefined && this.#answered !== before.request_id) {
      await print.raw(this.text.breakLine())
      await print.lines(['it asks that no longer: somebody else has answered it, or it was taken back'])
    }
  }

  /** Sends what is typed, until somebody leaves. */
  async sendLines(signal: AbortSignal): Promise<'left'> {
    for await (const line of typedLines(this.#context, signal)) {
      if (this.#context.io.stdin.isTerminal) this.text.typed(this.#question === undefined ? line : '')
      if (line.trim() !== '') await this.#send(line)
      // Whoever waits for a line that never comes would not be told any more.
      signal.throwIfAborted()
    }
    return 'left'
  }

  /** On a line of its own: in a terminal the keys that were typed stand in the last one. */
  async sayLeft(): Promise<void> {
    const { io, options, print } = this.#context
    if (io.stdin.isTerminal && io.stdout.isTerminal && !options.quiet) await print.raw('\n')
    await this.#context.note(`left ${this.#place.id}: it goes on`)
  }

  async #send(line: string): Promise<void> {
    try {
      await (this.#question === undefined ? this.#say(line) : this.#answer(this.#question, line.trim()))
    } catch (error) {
      await this.#context.note(toFailure(error).message)
    }
  }

  async #say(message: string): Promise<void> {
    const client = await this.#context.client()
    using limit = this.#context.within()
    const body = { message, intent: 'follow_up' } as const
    await client.call('submit-session', { params: this.#place, body, signal: limit.signal })
  }

  async #answer(question: Question, word: string): Promise<void> {
    const { print } = this.#context
    const reply = replyTo(question, word, { seesNumbers: true })
    if ('wrong' in reply) return print.lines([reply.wrong])
    const client = await this.#context.client()
    using limit = this.#context.within()
    const { cityName: city, id: session } = this.#place
    // The stream says that it is answered, maybe before the reply does.
    this.#answered = question.request_id
    const outcome = await sendAnswer(client, { city, session, question }, reply, limit.signal)
    if (outcome === 'answered') {
      // The next line is a message again, also where the stream has not said yet that the question is gone.
      if (this.#question === question) this.#question = undefined
      return
    }
    this.#answered = undefined
    await print.lines([
      outcome === 'gone' ? 'somebody else has answered that' : `it has no such answer: ${possible(question)}`,
    ])
  }
}

/** Lines of the input, up to its end or to what leaves: a key of a terminal, or a line. In a pipe both are text. */
async function* typedLines({ io }: Context, signal: AbortSignal): AsyncGenerator<string> {
  const decoder = new TextDecoder()
  let rest = ''
  for await (const chunk of io.stdin.chunks(signal)) {
    const typed = `${rest}${decoder.decode(chunk, { stream: true })}`
    const key = io.stdin.isTerminal ? typed.indexOf(CTRL_BRACKET) : -1
    const lines = (key === -1 ? typed : typed.slice(0, key)).split(/\r?\n/)
    // One that is too long for a message goes out in parts.
    rest = lines.pop() ?? ''
    for (const line of lines) {
      if (io.stdin.isTerminal && line === LEAVES) return
      yield line
    }
    if (key !== -1) return
    if (rest.length < MAX_LINE_CHARACTERS) continue
    yield rest
    rest = ''
  }
  if (rest !== '') yield rest
}
