/**
 * An IRC server for tests: enough of RFC 1459 and of IRCv3 that bridges and people meet on it, with a handle on what real
 * ones do seldom: kick, ban, cut off, keep an echo back.
 */
import { createServer, type Server, type Socket } from 'node:net'
import { createServer as createTlsServer } from 'node:tls'

export interface IrcServerOptions {
  /** message-tags, echo-message, labeled-response, batch, server-time, account-tag. */
  readonly modern?: boolean
  /** How the past of a channel is shown: replayed at the join, or when it is asked for. */
  readonly history?: 'join' | 'command'
  /** TLS, with these. */
  readonly tls?: { readonly key: string; readonly cert: string }
  /** Of the server (PASS). */
  readonly password?: string
  /** Accounts and their passwords (SASL PLAIN). */
  readonly accounts?: Readonly<Record<string, string>>
}

export interface Said {
  readonly nick: string
  readonly target: string
  readonly text: string
  readonly command: string
  readonly id: string
  readonly tags: ReadonlyMap<string, string>
}

interface Client {
  readonly socket: Socket
  nick: string
  user: string
  password: string
  account: string
  negotiating: boolean
  welcomed: boolean
  readonly caps: Set<string>
  readonly channels: Set<string>
}

const CAPS = ['message-tags', 'server-time', 'batch', 'echo-message', 'labeled-response', 'account-tag']
const HOST = 'irc.test'
const folded = (name: string) => name.toLowerCase()

export class IrcServer implements AsyncDisposable {
  /** Everything that was said, as it was accepted. */
  readonly said: Said[] = []
  /** Every line that came in, from whomever. */
  readonly lines: string[] = []
  readonly #options: IrcServerOptions
  readonly #server: Server
  readonly #clients = new Set<Client>()
  readonly #sockets = new Set<Socket>()
  readonly #banned = new Set<string>()
  readonly #muted = new Set<string>()
  #number = 0
  #batch = 0
  /** Echoes, and answers to PING, are not sent while it is true. */
  silent = false
  /** Called when something was accepted, before anybody hears of it. */
  onSaid: (said: Said) => void = () => undefined

  static async start(options: IrcServerOptions = {}): Promise<IrcServer> {
    const server = new IrcServer(options)
    await server.listen()
    return server
  }

  private constructor(options: IrcServerOptions) {
    this.#options = options
    const serve = (socket: Socket) => this.#serve(socket)
    this.#server = options.tls === undefined ? createServer(serve) : createTlsServer(options.tls, serve)
  }

  async listen(port = 0): Promise<void> {
    await new Promise<void>((resolve) => this.#server.listen(port, '127.0.0.1', resolve))
  }

  get port(): number {
    const address = this.#server.address()
    return typeof address === 'object' && address !== null ? address.port : 0
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const socket of this.#sockets) socket.destroy()
    await new Promise((resolve) => this.#server.close(resolve))
  }

  // ---- what tests do -------------------------------------------------------------------------------------------------

  nicks(channel: string): readonly string[] {
    return this.#members(channel).map(({ nick }) => nick)
  }

  /** Without a word. */
  cut(nick: string): void {
    this.#find(nick)?.socket.destroy()
  }

  /** Anything at all, to this client. */
  sendRaw(nick: string, line: string): void {
    this.#find(nick)?.socket.write(`${line}\r\n`)
  }

  // ---- serving -------------------------------------------------------------------------------------------------------

  #serve(socket: Socket): void {
    const client: Client = {
      socket,
      nick: '',
      user: '',
      password: '',
      account: '',
      negotiating: false,
      welcomed: false,
      caps: new Set(),
      channels: new Set(),
    }
    this.#clients.add(client)
    this.#sockets.add(socket)
    let rest = ''
    socket.setEncoding('utf8')
    socket.on('data', (data: string) => {
      const lines = `${rest}${data}`.split(/\r?\n/)
      rest = lines.pop() ?? ''
      for (const line of lines) if (line !== '') this.#do(client, line)
    })
    socket.on('error', () => undefined)
    socket.on('close', () => {
      this.#sockets.delete(socket)
      this.#leave(client)
    })
  }

  #leave(client: Client): void {
    this.#clients.delete(client)
    for (const channel of client.channels)
      for (const other of this.#members(channel)) this.#send(other, `:${client.nick}!u@${HOST} QUIT :gone`)
  }

  #do(client: Client, line: string): void {
    this.lines.push(line)
    const { tags, command, params } = parse(line)
    const [first = '', second = ''] = params
    const label = tags.get('label')
    const handlers: Readonly<Record<string, () => void>> = {
      CAP: () => this.#cap(client, first, second),
      AUTHENTICATE: () => this.#authenticate(client, first),
      PASS: () => {
        client.password = first
      },
      NICK: () => this.#nick(client, first),
      USER: () => {
        client.user = first
        this.#welcome(client)
      },
      PING: () => {
        if (!this.silent) this.#send(client, `:${HOST} PONG ${HOST} :${first}`)
      },
      JOIN: () => this.#join(client, first),
      PRIVMSG: () => this.#say(client, 'PRIVMSG', first, second, tags, label),
      NOTICE: () => this.#say(client, 'NOTICE', first, second, tags, label),
      KICK: () => this.#kick(client, first, second),
      MODE: () => this.#mode(client, params),
      CHATHISTORY: () => this.#history(client, params),
      QUIT: () => client.socket.end(`ERROR :bye\r\n`),
    }
    handlers[command]?.()
  }

  #kick(by: Client, channel: string, nick: string): void {
    const kicked = this.#find(nick)
    for (const client of this.#members(channel))
      this.#send(client, `:${by.nick}!u@${HOST} KICK ${channel} ${nick} :behave`)
    kicked?.channels.delete(folded(channel))
  }

  /** `+m`: nobody may speak; `+b NICK`: who may not join there. Whoever says so is believed. */
  #mode(client: Client, [channel = '', mode = '', who = '']: readonly string[]): void {
    const [set, what] = mode.includes('m') ? [this.#muted, channel] : [this.#banned, banOf(channel, who)]
    if (mode.startsWith('+')) set.add(folded(what))
    else set.delete(folded(what))
    for (const one of this.#members(channel))
      this.#send(one, `:${client.nick}!u@${HOST} MODE ${channel} ${mode} ${who}`)
  }

  #cap(client: Client, verb: string, names: string): void {
    const offered = [
      ...(this.#options.modern === true ? CAPS : []),
      ...(this.#options.history === 'command' ? ['draft/chathistory'] : []),
      ...(this.#options.accounts === undefined ? [] : ['sasl=PLAIN']),
    ]
    client.negotiating = verb !== 'END'
    if (verb === 'LS') this.#send(client, `:${HOST} CAP * LS :${offered.join(' ')}`)
    if (verb === 'REQ') {
      for (const name of names.trim().split(' ')) client.caps.add(name)
      this.#send(client, `:${HOST} CAP * ACK :${names}`)
    }
    if (verb === 'END') this.#welcome(client)
  }

  #authenticate(client: Client, text: string): void {
    if (text === 'PLAIN') {
      this.#send(client, 'AUTHENTICATE +')
      return
    }
    const [, account = '', password = ''] = Buffer.from(text, 'base64').toString('utf8').split('\0')
    const isRight = this.#options.accounts?.[account] === password
    if (isRight) client.account = account
    this.#send(client, isRight ? `:${HOST} 903 * :welcome` : `:${HOST} 904 * :SASL authentication failed`)
  }

  #nick(client: Client, nick: string): void {
    const taken = this.#find(nick)
    if (taken !== undefined && taken !== client) {
      this.#send(client, `:${HOST} 433 ${client.nick || '*'} ${nick} :Nickname is already in use`)
      return
    }
    const hearers = new Set([client, ...[...client.channels].flatMap((channel) => this.#members(channel))])
    if (client.welcomed) for (const one of hearers) this.#send(one, `:${client.nick}!u@${HOST} NICK :${nick}`)
    client.nick = nick
    this.#welcome(client)
  }

  #welcome(client: Client): void {
    if (client.welcomed || client.negotiating || client.nick === '' || client.user === '') return
    if (this.#options.password !== undefined && client.password !== this.#options.password) {
      this.#send(client, `:${HOST} 464 ${client.nick} :Password incorrect`)
      client.socket.end('ERROR :closing\r\n')
      return
    }
    client.welcomed = true
    for (const line of [
      `001 ${client.nick} :Welcome`,
      `005 ${client.nick} CASEMAPPING=ascii CHANTYPES=# CHATHISTORY=5 :are supported by this server`,
      `422 ${client.nick} :no message of the day`,
    ])
      this.#send(client, `:${HOST} ${line}`)
  }

  #join(client: Client, channel: string): void {
    if (this.#banned.has(folded(banOf(channel, client.nick)))) {
      this.#send(client, `:${HOST} 474 ${client.nick} ${channel} :Cannot join channel (+b)`)
      return
    }
    client.channels.add(folded(channel))
    for (const other of this.#members(channel)) this.#send(other, `:${client.nick}!u@${HOST} JOIN :${channel}`)
    if (this.#options.history === 'join') this.#replay(client, channel, this.#past(channel))
    this.#send(client, `:${HOST} 353 ${client.nick} = ${channel} :${this.nicks(channel).join(' ')}`)
    this.#send(client, `:${HOST} 366 ${client.nick} ${channel} :End of /NAMES list.`)
  }

  #say(
    client: Client,
    command: string,
    target: string,
    text: string,
    tags: ReadonlyMap<string, string>,
    label: string | undefined,
  ): void {
    const answer = label === undefined ? '' : `@label=${label} `
    const isChannel = target.startsWith('#')
    const person = isChannel ? undefined : this.#find(target)
    if (isChannel && (this.#muted.has(folded(target)) || !client.channels.has(folded(target)))) {
      this.#send(client, `${answer}:${HOST} 404 ${client.nick} ${target} :Cannot send to channel`)
      return
    }
    if (!isChannel && person === undefined) {
      this.#send(client, `${answer}:${HOST} 401 ${client.nick} ${target} :No such nick`)
      return
    }
    this.#number += 1
    const said: Said = { nick: client.nick, target, text, command, id: `m${this.#number}`, tags }
    this.said.push(said)
    this.onSaid(said)
    const hearers = person === undefined ? this.#members(target).filter((one) => one !== client) : [person]
    for (const hearer of hearers) this.#tell(hearer, said, client.account)
    if (!client.caps.has('echo-message') || this.silent) return
    this.#tell(client, said, client.account, label)
  }

  #tell(client: Client, said: Said, account: string, label?: string, batch?: string): void {
    const tags = new Map<string, string>()
    if (client.caps.has('message-tags')) {
      for (const [name, value] of said.tags) if (name.startsWith('+')) tags.set(name, value)
      tags.set('msgid', said.id)
      tags.set('time', new Date().toISOString())
      if (account !== '') tags.set('account', account)
      if (batch !== undefined) tags.set('batch', batch)
    }
    if (label !== undefined) tags.set('label', label)
    const front = tags.size === 0 ? '' : `@${[...tags].map(([name, value]) => `${name}=${value}`).join(';')} `
    this.#send(client, `${front}:${said.nick}!u@${HOST} ${said.command} ${said.target} :${said.text}`)
  }

  #past(target: string): readonly Said[] {
    return this.said.filter((one) => folded(one.target) === folded(target))
  }

  #history(client: Client, [how = '', target = '', from = '', limit = '']: readonly string[]): void {
    const past = this.#past(target)
    const most = Math.min(5, Number(limit))
    const at = past.findIndex(({ id }) => `msgid=${id}` === from)
    if (how === 'AFTER') this.#replay(client, target, past.slice(at + 1, at + 1 + most))
    else if (how === 'BEFORE') this.#replay(client, target, past.slice(Math.max(0, at - most), Math.max(0, at)))
    else this.#replay(client, target, past.slice(-most))
  }

  #replay(client: Client, target: string, past: readonly Said[]): void {
    if (!client.caps.has('batch')) return
    this.#batch += 1
    const id = `h${this.#batch}`
    this.#send(client, `:${HOST} BATCH +${id} chathistory ${target}`)
    for (const said of past) this.#tell(client, said, '', undefined, id)
    this.#send(client, `:${HOST} BATCH -${id}`)
  }

  #members(channel: string): readonly Client[] {
    return [...this.#clients].filter(({ channels }) => channels.has(folded(channel)))
  }

  #find(nick: string): Client | undefined {
    return [...this.#clients].find((client) => folded(client.nick) === folded(nick))
  }

  #send(client: Client, line: string): void {
    if (client.socket.writable) client.socket.write(`${line}\r\n`)
  }
}

function parse(line: string): {
  readonly tags: ReadonlyMap<string, string>
  readonly command: string
  readonly params: readonly string[]
} {
  const [, tags = '', rest = ''] = /^(?:@(\S+) +)?(?::\S+ +)?(.*)$/s.exec(line) ?? []
  const at = rest.indexOf(' :')
  const words = (at === -1 ? rest : rest.slice(0, at)).split(/ +/)
  const [command = '', ...params] = at === -1 ? words : [...words, rest.slice(at + 2)]
  const pairs = tags.split(';').filter((tag) => tag !== '')
  return {
    tags: new Map(
      pairs.map((pair): [string, string] => [pair.split('=')[0] ?? '', pair.split('=').slice(1).join('=')]),
    ),
    command: command.toUpperCase(),
    params,
  }
}

/** Of a mask only the nick counts. */
const banOf = (channel: string, mask: string): string => `${channel} ${mask.replace(/!.*/, '')}`
