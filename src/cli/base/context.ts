/** What a command has at hand: the world, the client, the city in scope, the way to print. */

import { type CallReport, Client } from '../../client/client.ts'
import { type Deadline, deadline } from '../../client/clock.ts'
import type { OperationId } from '../../contract/index.ts'
import { type Format, parseFormat } from '../print/format.ts'
import { knownFields } from '../print/known-fields.ts'
import type { Input } from './command.ts'
import { cityOfDirectory, discoverAgain, discoverEndpoint, type Endpoint, resolveCity, USUAL_URL } from './discovery.ts'
import { EXIT, Failure, printable, toFailure, usageError } from './failure.ts'
import type { Io } from './io.ts'
import { Printer } from './output.ts'
import { shippedText } from './package-files.ts'
import { nodeTransport } from './transport.ts'

/** How long an ordinary request may take. */
export const REQUEST_TIMEOUT_MS = 30_000
/** Less than the limit of a request: the reason is told, not only that time is over. */
const AGENT_PATIENCE_MS = 20_000

export interface GlobalOptions {
  readonly api: string | undefined
  readonly token: string | undefined
  readonly city: string | undefined
  readonly allCities: boolean
  readonly format: Format
  readonly sort: string | undefined
  readonly columns: string | undefined
  readonly color: boolean
  readonly quiet: boolean
  readonly debug: boolean
}

export function globalOptions(input: Input): GlobalOptions {
  return {
    api: input.text('api'),
    token: input.text('token'),
    city: input.text('city'),
    allCities: input.on('allCities'),
    format: parseFormat(input.on('json') ? 'json' : (input.text('output') ?? 'table')),
    sort: input.text('sort'),
    columns: input.text('columns'),
    color: input.choice('color') !== false,
    quiet: input.on('quiet'),
    debug: input.on('debug'),
  }
}

export class Context {
  readonly io: Io
  readonly options: GlobalOptions
  readonly print: Printer
  #client: Promise<Client> | undefined

  /**
   * `operations` are those that the command calls: their answers say which fields there are. With a `client` no server is
   * looked for.
   */
  constructor(io: Io, options: GlobalOptions, operations: readonly OperationId[] = [], client?: Promise<Client>) {
    this.io = io
    this.#client = client
    this.options = options
    const { format, sort, columns } = options
    const color = options.color && io.stdout.isTerminal && !io.env['NO_COLOR'] && !this.isDumb
    const fields = async () => knownFields(operations, await shippedText('openapi.json'))
    this.print = new Printer(io.stdout, { format, sort, columns, color, now: () => io.clock.now(), fields })
    if (columns !== undefined && !this.print.isForPeople)
      throw usageError('--columns is of tables', 'for other formats take parts: -o jsonpath=… or -o template=…')
    if (options.city !== undefined && options.allCities)
      throw usageError('--city and --all-cities are mutually exclusive')
  }

  /** A terminal that knows no escape codes: nothing can be coloured, and nothing drawn over. */
  get isDumb(): boolean {
    return this.io.env['TERM'] === 'dumb'
  }

  /** The client of the discovered server. */
  client(): Promise<Client> {
    this.#client ??= this.#connect()
    return this.#client
  }

  /** As `client`; a server that is between two lives is told, and looked for before each request until it is back. */
  steadyClient(tell: (reason: string) => void): Promise<Client> {
    this.#client ??= this.#connect().catch((error: unknown) => {
      const { exitCode, message } = toFailure(error)
      if (exitCode !== EXIT.unavailable) throw error
      tell(message)
      const client = this.#clientAt(undefined)
      client.lost()
      return client
    })
    return this.#client
  }

  async #connect(): Promise<Client> {
    const { io, options } = this
    const found = discoverEndpoint(io, options)
    if (options.debug) await io.stderr.write(`debug: server ${found.url} (${found.source})\n`)
    return this.#clientAt(found)
  }

  #clientAt(found: Endpoint | undefined): Client {
    const { io, options } = this
    return new Client({
      baseUrl: found?.url ?? USUAL_URL,
      token: found?.token,
      locate: () => discoverAgain(io, options, found),
      // What an agent answers is not lost because its supervisor is starting again; a person would rather know.
      ...(io.env['SVC_SESSION_ID'] ? { outlastMs: AGENT_PATIENCE_MS } : {}),
      clock: io.clock,
      random: io.random,
      newKey: io.newKey,
      transport: nodeTransport,
      onAnswer: options.debug ? (report) => void this.#trace(report) : undefined,
    })
  }

  async #trace({ method, path, status, ms, requestId }: CallReport): Promise<void> {
    await this.io.stderr
      .write(`debug: ${method} ${path} ${status} ${Math.round(ms)} ms ${requestId ?? ''}\n`)
      .catch(() => undefined)
  }

  /** A time limit for requests; dispose of it when they are answered. */
  within(ms: number = REQUEST_TIMEOUT_MS): Deadline {
    return deadline(this.io.clock, ms, this.io.signal)
  }

  /** The city in scope: `--city` › SVC_CITY › the working directory's › none. */
  async city(signal: AbortSignal): Promise<string | undefined> {
    const { io, options } = this
    if (options.allCities) return undefined
    const client = await this.client()
    const named = options.city ?? (io.env['SVC_CITY'] || undefined)
    return named === undefined ? cityOfDirectory(client, io, signal) : resolveCity(client, io, named, signal)
  }

  /** The city that an argument names, else the one in scope; a usage error where there is none. */
  async needCity(argument: string | undefined, signal: AbortSignal): Promise<string> {
    const { io } = this
    if (argument !== undefined) return resolveCity(await this.client(), io, argument, signal)
    const city = await this.city(signal)
    if (city === undefined)
      throw usageError('no city in scope', 'name one, or pass --city NAME, or run it inside the city’s directory')
    return city
  }

  /** A line on stderr, unless asked to be quiet. */
  async note(text: string): Promise<void> {
    if (!this.options.quiet) await this.io.stderr.write(`${printable(text)}\n`)
  }

  /** Asks before something that is hard to undo. */
  async confirm(question: string, yes: boolean): Promise<void> {
    if (yes) return
    if (!this.canAsk) throw usageError('this needs --yes where nobody can be asked')
    if (!(await this.agrees(question))) throw new Failure(EXIT.failure, 'not done')
  }

  /** Somebody is there to be asked. */
  get canAsk(): boolean {
    return this.io.stdin.isTerminal && this.io.stderr.isTerminal
  }

  /** Whether whoever is there says yes. */
  async agrees(question: string): Promise<boolean> {
    await this.io.stderr.write(`${printable(question)} [y/N] `)
    return /^y(es)?$/i.test((await this.io.stdin.readLine()).trim())
  }
}
