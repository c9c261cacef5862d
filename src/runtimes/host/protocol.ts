/**
 * What supervisor and host say to each other: one JSON object a line over the host's Unix socket, and the files of a run
 * (decisions 54, 55). Objects of `runtime.ts` (deliveries, exits, interactions) travel as they are.
 *
 * Versioned so that a newer supervisor drives older hosts: fields are only ever added, and a host answers a request that
 * it does not know with `unsupported`.
 */
import { LineTooLong, lineSplitter } from '../process/lines.ts'
import type {
  Activity,
  AgentOffers,
  Answer,
  Delivery,
  DeliveryOutcome,
  Exit,
  InputDetails,
  KeyDetails,
  LaunchError,
  LaunchSpec,
  Pending,
  SettingOutcome,
  TerminalSize,
  TypingReply,
} from '../process/runtime.ts'

export const PROTOCOL = 1
/** A message of 1 MiB, escaped, with room to spare. */
export const MAX_LINE_BYTES = 4 * 1024 * 1024

/** Files in the run's directory. `revoked`: the host must not start its agent any more. */
export const FILES = {
  spec: 'spec.json',
  host: 'host.json',
  exit: 'exit.json',
  deliveries: 'deliveries.jsonl',
  revoked: 'revoked',
  /** Where a host is to listen that cannot be reached any more. */
  socket: 'socket',
  log: 'host.log',
} as const

/** `spec.json`: all that a host is told; removed by it as soon as it has read it, since it holds secrets. */
export interface HostSpec {
  readonly protocol: number
  readonly kind: 'subprocess' | 'acp'
  readonly socket: string
  readonly launch: LaunchSpec
}

/** `host.json`: where a host is, and which process. */
export interface HostFile {
  readonly protocol: number
  readonly pid: number
  readonly start_time: string
  readonly boot_id: string
  readonly socket: string
}

export interface StartError {
  readonly code: LaunchError['code']
  readonly message: string
}

/** `exit.json`, and the event `exit`. */
export interface ExitRecord {
  readonly exit: Exit
  readonly end_offset: number
  /** The agent never ran. */
  readonly start_error?: StartError
}

export interface HostStatus {
  readonly protocol: number
  readonly state: 'starting' | 'running' | 'ended'
  /** Root process of the agent. */
  readonly pid?: number
  readonly activity: Activity
  readonly pending?: Pending
  readonly conversation_id?: string
  readonly person_typing?: boolean
  readonly size?: TerminalSize
  readonly offers?: AgentOffers
  readonly title?: string
  readonly end_offset: number
  readonly ended?: ExitRecord
}

/** Operation → what it takes and what it answers. `hello` comes first; anything else before it ends the connection. */
export interface Operations {
  hello: { in: { protocol: number; session_id: string; generation: number; token: string }; out: HostStatus }
  status: { in: object; out: HostStatus }
  deliver: { in: { delivery: Delivery }; out: DeliveryOutcome }
  /** The answer to `pasted`. */
  enter: { in: { delivery_id: string; enter: boolean }; out: object }
  delivered: { in: { delivery: Pick<Delivery, 'seq' | 'id'> }; out: { delivered: 'yes' | 'no' | 'unknown' } }
  interrupt: { in: object; out: { interrupted: boolean } }
  answer: { in: { request_id: string; answer: Answer }; out: { answered: boolean } }
  /** `data`: base64. */
  input: { in: { viewer: string; data: string } & InputDetails; out: TypingReply }
  type_keys: { in: { keys: string } & KeyDetails; out: TypingReply }
  /** With its Enter, where the terminal is read line by line. */
  type_line: { in: { line: string }; out: TypingReply }
  set: { in: { key: string; value: string }; out: SettingOutcome }
  resize: { in: { columns: number; rows: number }; out: object }
  /** TERM, and the tree is killed after the grace; answers when nothing of it runs. */
  stop: { in: { grace_ms: number }; out: ExitRecord }
  /** The exit was read: the host may leave. */
  bye: { in: object; out: object }
}
export type Operation = keyof Operations
export type Request = { [Op in Operation]: { readonly id: number; readonly op: Op } & Operations[Op]['in'] }[Operation]

export type Reply =
  | { readonly reply: number; readonly result: object }
  | {
      readonly reply: number
      readonly error: { readonly code: 'refused' | 'unsupported' | 'failed'; readonly message: string }
    }

export type HostEvent =
  | { readonly event: 'started'; readonly status: HostStatus }
  | { readonly event: 'output'; readonly end_offset: number }
  | { readonly event: 'activity'; readonly activity: Activity }
  | { readonly event: 'pending'; readonly pending: Pending }
  | { readonly event: 'pending_cleared'; readonly request_id: string }
  | { readonly event: 'conversation'; readonly conversation_id: string }
  | { readonly event: 'person_typing'; readonly typing: boolean }
  | ({ readonly event: 'resized' } & TerminalSize)
  /** A guarded delivery stands in the input line: may it be entered? */
  | { readonly event: 'pasted'; readonly delivery_id: string }
  | { readonly event: 'offers'; readonly offers: AgentOffers }
  | { readonly event: 'title'; readonly title: string }
  | ({ readonly event: 'exit' } & ExitRecord)

const OPERATIONS: readonly string[] = [
  'hello',
  'status',
  'deliver',
  'enter',
  'delivered',
  'interrupt',
  'answer',
  'input',
  'set',
  'type_keys',
  'type_line',
  'resize',
  'stop',
  'bye',
] satisfies Operation[]

export const encode = (message: Reply | HostEvent): string => `${JSON.stringify(message)}\n`

export const encodeRequest = <Op extends Operation>(id: number, op: Op, input: Operations[Op]['in']): string =>
  `${JSON.stringify({ id, op, ...input })}\n`

/**
 * Host's side. The other end has the token's directory, so it is a supervisor of ours: only the form is checked. A number:
 * the id of a request that this host does not know.
 */
export function parseRequest(line: string): Request | number | undefined {
  const value = parseObject(line)
  if (value === undefined || typeof value['id'] !== 'number' || typeof value['op'] !== 'string') return undefined
  return OPERATIONS.includes(value['op']) ? (value as unknown as Request) : value['id']
}

/** Supervisor's side; events that this version does not know pass and are ignored by its `switch`. */
export function parseMessage(line: string): Reply | HostEvent | undefined {
  const value = parseObject(line)
  if (value === undefined) return undefined
  if (typeof value['reply'] === 'number') return value as unknown as Reply
  return typeof value['event'] === 'string' ? (value as unknown as HostEvent) : undefined
}

/** The result of a reply to `op`; the host made it, by the table above. */
export const parseResult = <Op extends Operation>(_op: Op, result: object): Operations[Op]['out'] =>
  result as Operations[Op]['out']

export function parseSpec(text: string): HostSpec | undefined {
  const value = parseObject(text)
  return typeof value?.['socket'] === 'string' && typeof value['launch'] === 'object'
    ? (value as unknown as HostSpec)
    : undefined
}

export function parseHostFile(text: string): HostFile | undefined {
  const value = parseObject(text)
  const whole = typeof value?.['pid'] === 'number' && typeof value['socket'] === 'string'
  return whole ? (value as unknown as HostFile) : undefined
}

export function parseExitRecord(text: string): ExitRecord | undefined {
  const value = parseObject(text)
  const whole = typeof value?.['exit'] === 'object' && typeof value['end_offset'] === 'number'
  return whole ? (value as unknown as ExitRecord) : undefined
}

function parseObject(text: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : undefined
  } catch {
    return undefined
  }
}

/** Cuts a byte stream into lines; `onOverflow` is called, once, where one is longer than the bound. */
export function lineReader(onLine: (line: string) => void, onOverflow: () => void): (chunk: Buffer) => void {
  const splitter = lineSplitter(MAX_LINE_BYTES)
  let broken = false
  return (chunk) => {
    if (broken) return
    try {
      for (const line of splitter.push(chunk)) if (line.length > 1) onLine(line.toString('utf8', 0, line.length - 1))
    } catch (error) {
      if (!(error instanceof LineTooLong)) throw error
      broken = true
      onOverflow()
    }
  }
}
