/** `svcctl mail inbox`: a mailbox as it lives, and what can be done with a key. */
import type { Context } from '../base/context.ts'
import type { Terminal } from '../base/io.ts'
import { ownSessionId } from '../base/own.ts'
import type { Key } from '../live/keys.ts'
import { isOfScreen } from '../live/pressing.ts'
import type { Size } from '../live/screen.ts'
import { placeOf, selectedAt } from '../live/selecting.ts'
import { Shell, showUntilLeft } from '../live/shell.ts'
import { draw } from './draw.ts'
import { type Mailbox, MailFeed } from './feed.ts'
import { press, type Work } from './keyboard.ts'
import { type Choosing, rowsOf, type View } from './state.ts'

/** Until somebody leaves. */
export const showInbox = (context: Context, terminal: Terminal, mailbox: Mailbox): Promise<number> =>
  showUntilLeft(
    context,
    (client, signal, onChange) => new MailFeed(context, client, { ...mailbox, signal, onChange }),
    (feed) => new Inbox(context, terminal, feed),
  )

class Inbox {
  readonly #context: Context
  readonly #feed: MailFeed
  readonly shell: Shell
  #choosing: Choosing = {
    ...{ box: 'inbox', selected: { key: '', at: 0 }, filter: '', open: undefined },
    ...{ entry: undefined, help: false, note: undefined },
  }
  /** What stands on the screen. */
  #seen: View

  constructor(context: Context, terminal: Terminal, feed: MailFeed) {
    this.#context = context
    this.#feed = feed
    this.#seen = this.#view()
    this.shell = new Shell(context, terminal, {
      lines: (size) => this.#lines(size),
      press: (key) => this.#press(key),
      tell: (note) => {
        this.#choosing = { ...this.#choosing, note }
      },
    })
  }

  #view(): View {
    const { io, print } = this.#context
    return { ...this.#choosing, mail: this.#feed.mail, now: io.clock.now(), color: print.color }
  }

  #lines(size: Size): readonly string[] {
    this.#seen = this.#view()
    const { lines, from } = draw(this.#seen, size)
    // Whoever scrolled beyond the end goes back from the end.
    const { open } = this.#choosing
    if (open !== undefined && open.from !== from) this.#choosing = { ...this.#choosing, open: { ...open, from } }
    // What comes moves the list, and never what a key is meant for.
    const rows = rowsOf(this.#seen)
    if (rows.length > 0)
      this.#choosing = { ...this.#choosing, selected: placeOf(rows, selectedAt(rows, this.#choosing.selected)) }
    return lines
  }

  #press(key: Key): void {
    const { box } = this.#choosing
    const { change, action } = press({ ...this.#seen, ...this.#choosing }, key)
    this.#choosing = { ...this.#choosing, ...change }
    if (this.#choosing.box !== box) this.#feed.turn(this.#choosing.box)
    if (action === undefined) return
    if (isOfScreen(action)) this.shell.act(action)
    else this.shell.do(() => this.#work(action))
  }

  async #work(action: Work) {
    const feed = this.#feed
    const from = ownSessionId(this.#context.io)
    const sender = from === undefined ? {} : { from }
    switch (action.kind) {
      case 'open':
        return feed.open(action.message)
      case 'archive':
      case 'unarchive':
      case 'mark-unread':
      case 'delete':
        return feed.move(action.kind, action.message)
      case 'reply':
        return feed.reply(action.message, { body: action.body, ...sender })
      case 'send':
        return feed.send({ to: action.to, subject: action.subject, body: action.body, ...sender })
      case 'write':
        return this.#write(action.about)
    }
  }

  /** In the editor, which has the terminal meanwhile. */
  #write(about: Extract<Work, { kind: 'write' }>['about']): Promise<undefined> {
    const { city } = this.#feed.mail
    if ('message' in about) return this.shell.lend(['mail', 'reply', '--city', city, about.message.id])
    const { subject = '', to } = about.draft
    return this.shell.lend(['mail', 'send', '--city', city, '--subject', subject, '--', to])
  }
}
