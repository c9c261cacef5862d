/**
 * One control connection (`tmux -C`) to the tmux server of a city: commands in, answers out, over one pipe. It hangs on
 * a hidden session whose only pane has ended, so no output of an agent ever comes this way.
 *
 * C1  Answers come in the order of the commands. Each request is followed by a line that prints its number, so an answer
 *     is whole when that number has come, whatever failed on the way.
 * C2  A request waits at most its deadline. After a missed deadline the connection is given up: later answers could be
 *     taken for the wrong ones.
 * C3  Every connection has an owner mark of its own, set in the server as its first command. Commands with an effect
 *     carry it (`fence`), so what an earlier connection (ours, or one of a killed supervisor's that is still in a pipe)
 *     had sent and the server has not run yet is not run any more. Having connected, what the server says is final.
 * C4  The server is started where there is none. It belongs to no process group of ours and outlives us.
 * C5  A client whose supervisor was killed while tmux wrote to it never ends, and a server with such a client never ends
 *     either (tmux 3.3): each new connection kills them.
 */
import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process'
import { unlink } from 'node:fs/promises'
import { type Clock, delay } from '../../kernel/clock.ts'
import { asCaller } from '../../kernel/file-modes.ts'
import { randomHex } from '../../kernel/ids.ts'
import { readStat } from '../process/process-identity.ts'
import { variableOf } from '../process/process-tree.ts'
import { type ControlItem, ControlParser } from './control-parser.ts'
import { quoted } from './quoting.ts'

/** Not a name that a session of an agent can have. */
const CONTROL_SESSION = '+control'
export const CONTROL_TARGET = `=${CONTROL_SESSION}:`
const CONNECT_TIMEOUT_MS = 5_000
const RECONNECT_PAUSE_MS = 50
const REQUEST_TIMEOUT_MS = 10_000
const MAX_WAITING = 1_000
/** What tmux says when the server has hung up on it. */
const REFUSING = 'server exited'
/** Whom a control client was started by. */
const PARENT_VARIABLE = 'SVC_CONTROL_PARENT'
const FENCED = 'svc-fenced'
const MAX_TAKEOVERS = 3

/**
 * `refused`: tmux ran it and said no. `fenced`: another connection has taken over, it was not run. `unreachable`: it was
 * not sent. `lost`: it was sent; whether it was run is not known.
 */
export class ControlError extends Error {
  readonly code: 'refused' | 'fenced' | 'unreachable' | 'lost'

  constructor(code: ControlError['code'], message: string) {
    super(message)
    this.name = 'ControlError'
    this.code = code
  }
}

export interface ControlDeps {
  readonly clock: Clock
  /** Absolute path of the program. */
  readonly tmux: string
  readonly socket: string
  readonly configFile: string
  /** Environment of the server, should it have to be started. */
  readonly env: Readonly<Record<string, string>>
  readonly onNotification: (name: string, text: string) => void
  /** A connection that worked is gone; the server may be, too. */
  readonly onLost: () => void
}

/** Puts the mark of the connection it will be sent on into a command; see `fence`. */
type Command = (owner: string) => string

export class TmuxControl {
  readonly #deps: ControlDeps
  #connecting: Promise<Connection> | undefined
  #connection: Connection | undefined
  #closed = false

  constructor(deps: ControlDeps) {
    this.#deps = deps
  }

  /** Output lines of one line of commands. Rejects with `ControlError`, or the signal's reason where nothing was sent. */
  async run(command: Command, signal?: AbortSignal): Promise<readonly string[]> {
    for (let attempt = 1; ; attempt++) {
      const connection = await this.#connected()
      signal?.throwIfAborted()
      const lines = await connection.request(command(connection.owner))
      if (!lines.includes(FENCED)) return lines
      // Not run: another runtime of this city has connected since. The newest connection is the one that may.
      connection.end()
      if (attempt === MAX_TAKEOVERS) throw new ControlError('fenced', 'another supervisor uses this tmux server')
    }
  }

  /** The server and its sessions go on. */
  async close(): Promise<void> {
    this.#closed = true
    const connection = (await this.#connecting?.catch(() => undefined)) ?? this.#connection
    connection?.end()
    await connection?.ended
  }

  #connected(): Promise<Connection> {
    if (this.#closed) return Promise.reject(new ControlError('unreachable', 'the tmux runtime is closed'))
    if (this.#connection?.open) return Promise.resolve(this.#connection)
    this.#connecting ??= this.#connect().finally(() => {
      this.#connecting = undefined
    })
    return this.#connecting
  }

  /** A server that is just ending refuses the first tries. */
  async #connect(): Promise<Connection> {
    const { clock, socket } = this.#deps
    const deadline = clock.monotonic() + CONNECT_TIMEOUT_MS
    for (let isNew = false; ; ) {
      const outcome = await this.#tryConnect()
      if (outcome instanceof Connection) return outcome
      if (clock.monotonic() >= deadline) {
        if (isNew || !outcome.includes(REFUSING)) {
          throw new ControlError('unreachable', `no connection to tmux: ${outcome}`)
        }
        // C5: it has ended its sessions, refuses everybody and will never go. Without its socket there is a new one.
        await unlink(socket).catch(() => {})
        isNew = true
      }
      await delay(clock, RECONNECT_PAUSE_MS)
    }
  }

  async #tryConnect(): Promise<Connection | string> {
    const connection = new Connection(this.#deps)
    try {
      await connection.request(`set-option -s @svc_owner ${connection.owner}`)
      endOrphans(await connection.request(`list-clients -t =${CONTROL_SESSION} -F '#{client_pid}'`))
      this.#adopt(connection)
      return connection
    } catch (error) {
      connection.end()
      return error instanceof Error ? error.message : String(error)
    }
  }

  #adopt(connection: Connection): void {
    this.#connection = connection
    void connection.ended.then(() => {
      if (!this.#closed) this.#deps.onLost()
    })
  }
}

/**
 * `commands`, run only while the connection that sends them is the newest one and `condition` (a tmux format, looked at
 * in `target`) holds. tmux runs all of it without a break.
 */
export function fence(
  owner: string,
  target: string,
  { condition = '1', commands }: { readonly condition?: string; readonly commands: readonly string[] },
): string {
  const owned = `#{==:#{@svc_owner},${owner}}`
  const checked = `if-shell -F -t ${target} ${quoted(condition)} { ${commands.join(' ; ')} }`
  return `if-shell -F -t ${target} ${quoted(owned)} { ${checked} } { display-message -p ${FENCED} }`
}

interface Waiting {
  readonly end: string
  readonly lines: string[]
  readonly resolve: (lines: readonly string[]) => void
  readonly reject: (error: ControlError) => void
  readonly cancelDeadline: () => void
  failure: string | undefined
}

/** One `tmux -C` child. */
class Connection {
  readonly owner = randomHex(8)
  readonly ended: Promise<void>
  readonly #deps: ControlDeps
  readonly #child: ChildProcessWithoutNullStreams
  readonly #parser = new ControlParser()
  readonly #waiting: Waiting[] = []
  #count = 0
  #open = true
  #lastWords = ''

  constructor(deps: ControlDeps) {
    this.#deps = deps
    // It may start the server, and agents inherit the server's umask.
    this.#child = asCaller(() =>
      spawn(deps.tmux, controlArgs(deps), {
        env: { ...deps.env, [PARENT_VARIABLE]: String(process.pid) },
        cwd: '/',
        stdio: 'pipe',
        detached: true,
      }),
    )
    const { promise, resolve } = Promise.withResolvers<void>()
    this.ended = promise
    this.#child.stdout.setEncoding('utf8').on('data', (text: string) => this.#read(text))
    this.#child.stderr.setEncoding('utf8').on('data', (text: string) => {
      this.#lastWords = (this.#lastWords + text).slice(-1_000)
    })
    this.#child.stdin.on('error', () => {}) // EPIPE: the exit says it, too.
    const gone = (error?: Error) => {
      if (error !== undefined) this.#lastWords = error.message
      this.#giveUp()
      resolve()
    }
    this.#child.once('error', gone)
    this.#child.once('close', () => gone())
  }

  get open(): boolean {
    return this.#open
  }

  request(line: string): Promise<readonly string[]> {
    if (!this.#open) return Promise.reject(new ControlError('unreachable', this.#lastWords || 'tmux has ended'))
    if (this.#waiting.length >= MAX_WAITING) {
      return Promise.reject(new ControlError('unreachable', 'too many commands wait for tmux'))
    }
    return new Promise((resolve, reject) => {
      this.#count++
      const end = `svc-end-${this.#count}`
      const cancelDeadline = this.#deps.clock.after(REQUEST_TIMEOUT_MS, () => {
        this.#lastWords = 'tmux did not answer in time'
        this.end()
      })
      this.#waiting.push({ end, lines: [], resolve, reject, cancelDeadline, failure: undefined })
      this.#child.stdin.write(`${line}\ndisplay-message -p ${end}\n`)
    })
  }

  /** Gives up what waits and lets go of the server. */
  end(): void {
    this.#giveUp()
    this.#child.stdin.end()
    this.#child.kill('SIGKILL')
  }

  #giveUp(): void {
    this.#open = false
    for (const waiting of this.#waiting.splice(0)) {
      waiting.cancelDeadline()
      waiting.reject(new ControlError('lost', this.#lastWords || 'tmux has ended'))
    }
  }

  #read(text: string): void {
    try {
      for (const item of this.#parser.push(text)) this.#take(item)
    } catch (error) {
      this.#lastWords = error instanceof Error ? error.message : String(error)
      this.end()
    }
  }

  #take(item: ControlItem): void {
    if (item.type === 'notification') {
      if (item.name === 'exit') this.#lastWords = item.text
      else this.#deps.onNotification(item.name, item.text)
      return
    }
    const first = this.#waiting[0]
    if (!item.ours || first === undefined) return
    if (item.failed) first.failure ??= item.lines.join(' ')
    else if (item.lines[0] === first.end) this.#settle(first)
    else first.lines.push(...item.lines)
  }

  #settle(first: Waiting): void {
    this.#waiting.shift()
    first.cancelDeadline()
    if (first.failure === undefined) first.resolve(first.lines)
    else first.reject(new ControlError('refused', first.failure))
  }
}

/** The clients among these whose supervisor is gone (C5); the server's word proves that each pid is a client of it. */
function endOrphans(pids: readonly string[]): void {
  for (const pid of pids.map(Number)) {
    const parent = readStat(pid)?.parent
    if (parent === undefined || variableOf(pid, PARENT_VARIABLE) === String(parent)) continue
    try {
      process.kill(pid, 'SIGKILL')
    } catch {
      // It has just left by itself.
    }
  }
}

/** Attaches to the hidden session, or makes it: its command ends at once, `remain-on-exit` keeps it. */
function controlArgs({ socket, configFile }: ControlDeps): string[] {
  const session = ['new-session', '-A', '-s', CONTROL_SESSION, '-x', '80', '-y', '24', '/bin/sh', '-c', ':']
  return ['-u', '-S', socket, '-f', configFile, '-C', ...session]
}
