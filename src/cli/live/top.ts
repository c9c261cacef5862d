/** `svcctl top`: the fleet as it lives, and what can be done about it with a key. */
import type { Context } from '../base/context.ts'
import type { Terminal } from '../base/io.ts'
import { sendAnswer } from './answering.ts'
import { replyTo } from './choices.ts'
import { draw } from './draw.ts'
import { Feed, type Spot } from './feed.ts'
import { type Action, type Answering, press } from './keyboard.ts'
import type { Key } from './keys.ts'
import { askerOf, outcomeText } from './question-text.ts'
import { type Choosing, questionAt, rowsOf, type View } from './rows.ts'
import type { Size } from './screen.ts'
import { selectedAt } from './selecting.ts'
import { Shell, showUntilLeft } from './shell.ts'

/** A key that was meant for the question before must not answer the one that has just taken its place. */
const NEW_QUESTION_MS = 400

/** Until somebody leaves. */
export const showFleet = (context: Context, terminal: Terminal, city: string | undefined): Promise<number> =>
  showUntilLeft(
    context,
    (client, signal, onChange) => new Feed(context, client, signal, onChange),
    (feed) => {
      const top = new Top(context, terminal, feed, city)
      return { shell: top.shell, also: [feed.peek(() => top.spots)] }
    },
  )

class Top {
  readonly #context: Context
  readonly #feed: Feed
  readonly shell: Shell
  #choosing: Choosing
  /** What stands on the screen. */
  #seen: View
  #question: { readonly id: string | undefined; readonly since: number } = { id: undefined, since: 0 }
  #spots: readonly Spot[] = []

  constructor(context: Context, terminal: Terminal, feed: Feed, city: string | undefined) {
    this.#context = context
    this.#feed = feed
    this.#choosing = {
      pane: 'sessions',
      selected: { key: '', at: 0 },
      filter: '',
      city,
      entry: undefined,
      help: false,
      note: undefined,
    }
    this.#seen = this.#view()
    this.shell = new Shell(context, terminal, {
      lines: (size) => this.#lines(size),
      press: (key) => this.#press(key),
      tell: (note) => {
        this.#choosing = { ...this.#choosing, note }
      },
    })
  }

  /** Sessions that can be seen. */
  get spots(): readonly Spot[] {
    return this.#spots
  }

  #view(): View {
    const { io, print } = this.#context
    return { ...this.#choosing, fleet: this.#feed.fleet, now: io.clock.now(), color: print.color }
  }

  #lines(size: Size): readonly string[] {
    this.#seen = this.#view()
    const { lines, spots } = draw(this.#seen, size)
    this.#spots = spots
    const rows = rowsOf(this.#seen)
    const id = questionAt(rows[selectedAt(rows, this.#seen.selected)])?.request_id
    if (id !== this.#question.id) this.#question = { id, since: this.#seen.now }
    return lines
  }

  #press(key: Key): void {
    const { change, action } = press({ ...this.#seen, ...this.#choosing }, key)
    this.#choosing = { ...this.#choosing, ...change }
    if (action !== undefined) this.#act(action)
  }

  #act(action: Action): void {
    const { shell } = this
    if (action.kind === 'attach')
      shell.do(() => shell.lend(['session', 'attach', action.spot.id, '--city', action.spot.city]))
    else if (action.kind === 'say') shell.do(() => this.#say(action.spot, action.text))
    else if (action.kind === 'answer') shell.do(() => this.#answer(action))
    else shell.act(action)
  }

  async #say({ city: cityName, id }: Spot, message: string): Promise<string> {
    using limit = this.#context.within()
    const body = { message, intent: 'follow_up' } as const
    await (await this.#context.client()).call('submit-session', {
      params: { cityName, id },
      body,
      signal: limit.signal,
    })
    return 'said'
  }

  async #answer({ question, word, isKey }: Answering): Promise<string> {
    const reply = replyTo(question, word, { seesNumbers: true })
    if ('wrong' in reply) return reply.wrong
    const { id, since } = this.#question
    if (isKey && (id !== question.request_id || this.#context.io.clock.now() - since < NEW_QUESTION_MS))
      return 'that question has just come: press the key again'
    using limit = this.#context.within()
    const asked = { city: question.city, session: question.session_id, question }
    const outcome = await sendAnswer(await this.#context.client(), asked, reply, limit.signal)
    return outcomeText(outcome, { name: askerOf(question), question })
  }
}
