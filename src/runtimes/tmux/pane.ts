/**
 * What we ask tmux to do with the pane of one run. Every effect proves, in the same command, that the pane is the run's
 * (token) and that nobody has taken over the server (see `fence`).
 */
import type { Delivery, Identity } from '../process/runtime.ts'
import { CONTROL_TARGET, ControlError, fence, type TmuxControl } from './control.ts'
import { literal, quoted, timeless } from './quoting.ts'

/** `pasted`: the text is in the program's input, Enter is not. */
export type Progress = 'delivered' | 'pasted' | 'none'

export interface PaneState {
  readonly name: string
  readonly token: string
  readonly generation: number
  readonly sessionId: string
  /** Its terminal has hung up: nobody reads and nobody writes any more. */
  readonly dead: boolean
  readonly pid: number
  readonly delivered: number
  readonly pasted: number
}

const FIELDS = [
  'session_name',
  '@svc_token',
  '@svc_generation',
  '@svc_session',
  'pane_dead',
  'pane_pid',
  '@svc_delivered',
  '@svc_pasted',
] as const
const FORMAT = FIELDS.map((name) => `#{${name}}`).join(' ')

/** Every pane of an agent on the server. */
export async function listPanes(control: TmuxControl, signal?: AbortSignal): Promise<readonly PaneState[]> {
  const lines = await control.run(() => `list-panes -a -F ${quoted(FORMAT)}`, signal)
  return lines.map(parsePane).filter((pane) => pane !== undefined)
}

/** A line of `FORMAT`; nothing for panes that are not ours. */
function parsePane(line: string): PaneState | undefined {
  const [name = '', token = '', generation = '', sessionId = '', dead, pid, delivered, pasted] = line.split(' ')
  if (token === '' || pasted === undefined) return undefined
  return {
    name,
    token,
    generation: Number(generation),
    sessionId,
    dead: dead === '1',
    pid: Number(pid),
    delivered: Number(delivered),
    pasted: Number(pasted),
  }
}

export interface NewPane {
  readonly identity: Identity
  readonly name: string
  readonly columns: number
  readonly rows: number
  readonly script: string
  /** Shell command that takes the pane's output. */
  readonly writer: string
}

/** Makes session and pane, its marks and its output pipe in one command, so that no byte is missed. */
export async function createPane(control: TmuxControl, pane: NewPane): Promise<void> {
  const { identity, name, columns, rows } = pane
  const session = `=${name}:`
  const commands = [
    // `env -i`: the agent gets what launch.sh sets; without TMUX its `tmux kill-server` cannot find this server.
    `new-session -d -s ${name} -x ${columns} -y ${rows} env -i /bin/sh ${quoted(pane.script)}`,
    `pipe-pane -O -t ${session} ${quoted(timeless(pane.writer))}`,
    `set-option -t ${session} @svc_token ${identity.token}`,
    `set-option -t ${session} @svc_generation ${identity.generation}`,
    `set-option -t ${session} @svc_session ${quoted(identity.sessionId)}`,
    `set-option -p -t ${session} @svc_delivered -1`,
    `set-option -p -t ${session} @svc_pasted -1`,
    // Whoever attaches sees the agent's size; as a global option it crashes tmux 3.3.
    `set-option -w -t ${session} window-size manual`,
  ]
  await control.run((owner) => fence(owner, CONTROL_TARGET, { commands }))
}

/** Ends session and pane; nothing where it is not there or another's. The processes must have been ended before. */
export async function removePane(control: TmuxControl, name: string, token: string): Promise<void> {
  const target = `=${name}:`
  await control.run((owner) =>
    fence(owner, target, {
      condition: hasToken(token),
      commands: [`kill-session -t =${name}`],
    }),
  )
}

/** Ends the server if it has no session but our own; whoever took it over meanwhile keeps it. */
export async function endIdleServer(control: TmuxControl): Promise<void> {
  const sessions = await control.run(() => `list-sessions -F '#{session_name}'`)
  if (sessions.length > 1) return
  await control.run((owner) => fence(owner, CONTROL_TARGET, { commands: ['kill-server'] })).catch(ignoreLost)
}

/** The answer to `kill-server` is the end of the connection. */
function ignoreLost(error: unknown): void {
  if (!(error instanceof ControlError && error.code === 'lost')) throw error
}

/** What a supervisor that was killed between loading a text and pasting it left in the server. */
export async function deleteStaleBuffers(control: TmuxControl, name: string): Promise<void> {
  const stale = await control.run((owner) => {
    const isOld = `#{!=:#{buffer_name},${bufferName(owner, name)}}`
    const ofName = `#{m:${bufferName('?'.repeat(owner.length), name)},#{buffer_name}}`
    return `list-buffers -f ${quoted(`#{&&:${ofName},${isOld}}`)} -F '#{buffer_name}'`
  })
  for (const buffer of stale) await control.run(() => `delete-buffer -b ${quoted(buffer)}`)
}

/** A connection's own: another one can neither take it nor swap its text. */
const bufferName = (owner: string, name: string) => `svc_${owner}_${name}`

export class Pane {
  readonly #control: TmuxControl
  readonly #name: string
  readonly #target: string
  readonly #writable: string

  constructor(control: TmuxControl, { name, token }: { name: string; token: string }) {
    this.#control = control
    this.#name = name
    this.#target = `=${name}:`
    // Pasting into a pane whose program has ended crashes tmux 3.3.
    this.#writable = `#{&&:${hasToken(token)},#{!=:#{pane_dead},1}}`
  }

  /** Text, Enter and the mark that says so, in one. `file` has the text; an empty text has none. */
  async deliverLine({ seq }: Pick<Delivery, 'seq'>, file: string | undefined): Promise<Progress> {
    await this.#load(file)
    return this.#effect((owner) => [...this.#pasting(owner, file), ...this.#entering(seq)], below('delivered', seq))
  }

  async paste({ seq }: Pick<Delivery, 'seq'>, file: string | undefined): Promise<Progress> {
    await this.#load(file)
    return this.#effect(
      (owner) => [...this.#pasting(owner, file), ...this.#marking('pasted', seq)],
      below('pasted', seq),
    )
  }

  /** Enter for what was pasted as `seq`, and for nothing else. */
  async enter({ seq }: Pick<Delivery, 'seq'>): Promise<Progress> {
    return this.#effect(() => this.#entering(seq), `#{&&:#{==:#{@svc_pasted},${seq}},${below('delivered', seq)}}`)
  }

  /** Keys by their names in tmux, or bytes in hex after `-H`; false where nobody takes them. */
  async key(keys: string): Promise<boolean> {
    const progress = await this.#effect(() => [
      `send-keys -t ${this.#target} ${keys}`,
      'display-message -p svc-delivered',
    ])
    return progress === 'delivered'
  }

  async #load(file: string | undefined): Promise<void> {
    if (file === undefined) return
    const path = quoted(literal(file))
    await this.#control.run((owner) =>
      fence(owner, this.#target, { commands: [`load-buffer -b ${bufferName(owner, this.#name)} ${path}`] }),
    )
  }

  #pasting(owner: string, file: string | undefined): readonly string[] {
    if (file === undefined) return []
    return [`paste-buffer -p -d -b ${bufferName(owner, this.#name)} -t ${this.#target}`]
  }

  #entering(seq: number): readonly string[] {
    return [`send-keys -t ${this.#target} Enter`, ...this.#marking('delivered', seq)]
  }

  #marking(progress: Progress, seq: number): readonly string[] {
    return [`set-option -p -t ${this.#target} @svc_${progress} ${seq}`, `display-message -p svc-${progress}`]
  }

  /** `none`: the pane takes nothing any more, or the condition does not hold (it was done already). */
  async #effect(commands: (owner: string) => readonly string[], holds = '1'): Promise<Progress> {
    const condition = `#{&&:${this.#writable},${holds}}`
    const lines = await this.#control.run((owner) =>
      // A person may be scrolling back: keys would go to that.
      fence(owner, this.#target, { condition, commands: [`copy-mode -q -t ${this.#target}`, ...commands(owner)] }),
    )
    if (lines.includes('svc-delivered')) return 'delivered'
    return lines.includes('svc-pasted') ? 'pasted' : 'none'
  }
}

/** Whatever is sent twice, by whomever: the mark lets it type once. */
const below = (mark: 'delivered' | 'pasted', seq: number) => `#{e|<:#{@svc_${mark}},${seq}}`

const hasToken = (token: string) => `#{==:#{@svc_token},${token}}`
