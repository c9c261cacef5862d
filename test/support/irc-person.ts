/** Somebody in a channel, with the plainest of clients. */
import { connect, type Socket } from 'node:net'
import { eventually } from './http.ts'

export class IrcPerson implements Disposable {
  readonly nick: string
  /** Every line of the server. */
  readonly lines: string[] = []

  /** Called for each as it comes. */
  onLine: (line: string) => void = () => undefined
  readonly #socket: Socket

  static async connect(port: number, nick: string): Promise<IrcPerson> {
    const person = new IrcPerson(port, nick)
    person.send(`NICK ${nick}`)
    person.send(`USER ${nick} 0 * :${nick}`)
    await person.sees(/ 001 /)
    return person
  }

  static async join(port: number, nick: string, channel: string): Promise<IrcPerson> {
    const person = await IrcPerson.connect(port, nick)
    await person.enter(channel)
    return person
  }

  private constructor(port: number, nick: string) {
    this.nick = nick
    this.#socket = connect(port, '127.0.0.1')
    this.#socket.on('error', () => undefined)
    let rest = ''
    this.#socket.setEncoding('utf8')
    this.#socket.on('data', (data: string) => {
      const lines = `${rest}${data}`.split('\r\n')
      rest = lines.pop() ?? ''
      for (const line of lines) {
        if (line.startsWith('PING ')) this.send(`PONG ${line.slice(5)}`)
        this.lines.push(line)
        this.onLine(line)
      }
    })
  }

  [Symbol.dispose](): void {
    this.#socket.destroy()
  }

  send(line: string): void {
    this.#socket.write(`${line}\r\n`)
  }

  async enter(channel: string): Promise<void> {
    this.send(`JOIN ${channel}`)
    await this.sees(new RegExp(` 366 \\S+ ${RegExp.escape(channel)} `))
  }

  say(target: string, text: string): void {
    this.send(`PRIVMSG ${target} :${text}`)
  }

  sees(pattern: RegExp): Promise<string> {
    return eventually(`${this.nick} sees ${pattern}`, () => this.lines.find((line) => pattern.test(line)))
  }

  /** Texts that `from` said to `target`, in order; also while it had a `_` more. */
  heard(from: string, target: string): readonly string[] {
    return this.lines.flatMap((line) => {
      const [, nick, to, text] = /^(?:@\S+ )?:([^! ]+)\S* PRIVMSG (\S+) :(.*)$/.exec(line) ?? []
      return nick?.replace(/_+$/, '') === from && to === target ? [text ?? ''] : []
    })
  }
}
