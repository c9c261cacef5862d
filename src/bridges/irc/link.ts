/** One connection to an IRC server, from its first byte to its last. */
import type { Client, IrcMessage } from 'irc-framework'
import { deadline } from '../../client/clock.ts'
import { Unusable, type World } from '../library/world.ts'
import { formatLine, type Line } from './line.ts'
import { LineTransport, type ServerPlace } from './transport.ts'

const REGISTERED_WITHIN_MS = 30_000
const MOST_NICKS = 5
const CAPS = [
  'message-tags',
  'server-time',
  'batch',
  'echo-message',
  'labeled-response',
  'account-tag',
  'standard-replies',
  'chathistory',
  'draft/chathistory',
  'draft/event-playback',
]

export interface Login {
  readonly place: ServerPlace
  readonly nick: string
  /** For the account, or for the server where there is no account. */
  readonly password: string | undefined
  readonly saslUser: string | undefined
}

export class Link {
  readonly #client: Client
  readonly #transport: () => LineTransport | undefined
  readonly #closed = Promise.withResolvers<string>()
  #lastWords = ''
  #isOpen = true

  /** Sees every message, those of batches too, in the order of their coming. */
  onMessage: (message: IrcMessage) => void = () => undefined

  private constructor(client: Client, transport: () => LineTransport | undefined) {
    this.#client = client
    this.#transport = transport
  }

  /** Resolves once the server has let us in; throws `Unusable` where it never will. */
  static async open(login: Login, world: World, signal: AbortSignal): Promise<Link> {
    const { Client } = await framework()
    let transport: LineTransport | undefined
    class Transport extends LineTransport {
      constructor() {
        super(login.place)
        transport = this
      }
    }
    const client = new Client()
    const link = new Link(client, () => transport)
    using limit = deadline(world.clock, REGISTERED_WITHIN_MS, signal)
    const registered = Promise.withResolvers<void>()
    client.requestCap(CAPS)
    client.use((_client, raw) =>
      raw.use((_command, message, _line, _same, next) => {
        if (message.command === 'ERROR') link.#lastWords = message.params.at(-1) ?? ''
        const refused = refusalOfLogin(message)
        if (refused !== undefined) registered.reject(refused)
        link.onMessage(message)
        next()
      }),
    )
    client.on('registered', () => registered.resolve())
    client.on('sasl failed', ({ reason }) =>
      registered.reject(
        new Unusable(`the server does not take the account: ${reason}`, 'see --sasl-user and SVC_BRIDGE_PASSWORD'),
      ),
    )
    client.on('close', () => {
      link.#isOpen = false
      const reason = link.#lastWords || transport?.error?.message || 'the connection is gone'
      registered.reject(new Error(reason))
      link.#closed.resolve(reason)
    })
    link.onMessage = takeAnotherNick(link, login.nick)
    client.connect({ ...optionsOf(login), transport: Transport })
    limit.signal.addEventListener('abort', () => registered.reject(limit.signal.reason), { once: true })
    try {
      await registered.promise
    } catch (error) {
      link.cut()
      throw error
    }
    return link
  }

  get nick(): string {
    return this.#client.user.nick
  }

  get isOpen(): boolean {
    return this.#isOpen
  }

  /** Resolves with the reason. */
  get closed(): Promise<string> {
    return this.#closed.promise
  }

  has(capability: string): boolean {
    return this.#client.network.cap.enabled.includes(capability)
  }

  /** What the server says of itself (ISUPPORT). */
  support(name: string): string | undefined {
    const value = this.#client.network.options[name]
    return typeof value === 'string' ? value : undefined
  }

  /** How names are compared there. */
  get mapping(): string {
    return this.support('CASEMAPPING') ?? 'rfc1459'
  }

  send(line: Line): void {
    this.#client.raw(formatLine(line))
  }

  /** At once. */
  cut(): void {
    this.#transport()?.close(true)
  }

  /** Says goodbye; the server closes. */
  quit(): void {
    this.send({ command: 'QUIT', params: ['svcctl bridge ends'] })
    this.#transport()?.close(false)
  }
}

async function framework(): Promise<typeof import('irc-framework')> {
  try {
    const loaded: typeof import('irc-framework') & { readonly default?: typeof import('irc-framework') } = await import(
      'irc-framework'
    )
    return loaded.default ?? loaded
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'ERR_MODULE_NOT_FOUND')) throw error
    throw new Unusable(
      'the IRC bridge needs the package irc-framework, which is not installed',
      'it is an optional dependency: install svcctl again without --omit=optional, or add it with: npm install irc-framework@4.14',
    )
  }
}

function optionsOf({ place, nick, password, saslUser }: Login): Readonly<Record<string, unknown>> {
  return {
    host: place.host,
    port: place.port,
    nick,
    username:
      nick
        .toLowerCase()
        .replaceAll(/[^a-z0-9]/g, '')
        .slice(0, 9) || 'svcctl',
    gecos: 'svcctl bridge',
    // Nobody is told what runs here, and nothing is answered by itself.
    version: '',
    auto_reconnect: false,
    ping_interval: 30,
    ping_timeout: 90,
    sasl_disconnect_on_fail: true,
    // An account without a name means: the password is the server's.
    account: saslUser === undefined ? {} : { account: saslUser, password: password ?? '' },
    ...(saslUser === undefined && password !== undefined ? { password } : {}),
  }
}

/** While we are not in: the nick is taken (our own last connection may still have it), so another one with a `_` more. */
function takeAnotherNick(link: Link, wanted: string): (message: IrcMessage) => void {
  let tried = 0
  return ({ command }) => {
    if (command !== '433' && command !== '436' && command !== '437') return
    tried += 1
    if (tried > MOST_NICKS) link.cut()
    else link.send({ command: 'NICK', params: [`${wanted}${'_'.repeat(tried)}`] })
  }
}

const LOGIN_REFUSALS: Readonly<Record<string, string>> = {
  '432': 'it does not take such a nick',
  '464': 'the password is wrong',
}

function refusalOfLogin({ command, params }: IrcMessage): Error | undefined {
  const why = LOGIN_REFUSALS[command]
  if (why === undefined) return undefined
  return new Unusable(
    `the server does not let us in: ${why} (${command}: ${(params.at(-1) ?? '').replaceAll(/\p{Cc}/gu, '')})`,
  )
}
