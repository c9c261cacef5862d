/**
 * What an agent asks a person for (`session/request_permission`), one at a time.
 *
 * AP1  Every request gets exactly one outcome: an option, or `cancelled`.
 * AP2  Requests that come together are shown in the order in which they came: the first is pending, the rest wait.
 */
import type { RequestPermissionOutcome, RequestPermissionRequest } from '@agentclientprotocol/sdk'
import { cut } from '../../contract/base/text.ts'
import type { Answer, Pending, PermissionKind } from '../process/runtime.ts'
import { objectOf } from './json.ts'
import { type KnownTool, toolOf, withCall } from './tools.ts'

export interface PermissionEvents {
  pending(pending: Pending): void
  cleared(requestId: string): void
  /** For the transcript: the value of a `permission` line. */
  record(permission: Readonly<Record<string, unknown>>): void
}

interface Open {
  readonly pending: Pending
  readonly settle: (outcome: RequestPermissionOutcome) => void
}

const MAX_TEXT = 4096
const MAX_OPTIONS = 32
const MAX_OPTION_ID = 256

export class Permissions {
  readonly #events: PermissionEvents
  readonly #idPrefix: string
  readonly #open = new Map<string, Open>()
  #count = 0

  /** `idPrefix` makes the ids of one run differ from those of the run before. */
  constructor(idPrefix: string, events: PermissionEvents) {
    this.#idPrefix = idPrefix
    this.#events = events
  }

  get pending(): Pending | undefined {
    return this.#first()?.pending
  }

  /** Resolves with what was answered; an aborted `signal` (the agent took it back, or is gone) cancels. */
  ask(request: RequestPermissionRequest, known: KnownTool, signal: AbortSignal): Promise<RequestPermissionOutcome> {
    const pending = describe(`${this.#idPrefix}-${++this.#count}`, request, known)
    return new Promise((settle) => {
      const { requestId } = pending
      const withdraw = () => this.#end(requestId, { outcome: 'cancelled' })
      const done = (outcome: RequestPermissionOutcome) => {
        signal.removeEventListener('abort', withdraw)
        settle(outcome)
      }
      this.#open.set(requestId, { pending, settle: done })
      this.#events.record({ ...recorded(pending), state: 'opened', options: pending.options })
      if (this.#open.size === 1) this.#events.pending(pending)
      signal.addEventListener('abort', withdraw, { once: true })
      if (signal.aborted) withdraw()
    })
  }

  /** False: it is not open, or has no option that says so. */
  answer(requestId: string, answer: Answer): boolean {
    const open = this.#open.get(requestId)
    if (open === undefined) return false
    const outcome = outcomeOf(answer, open.pending.options)
    if (outcome === undefined) return false
    this.#end(requestId, outcome)
    return true
  }

  cancelAll(): void {
    // From the last to the first: otherwise each of those that wait would be shown for an instant.
    for (const requestId of [...this.#open.keys()].reverse()) this.#end(requestId, { outcome: 'cancelled' })
  }

  #first(): Open | undefined {
    return this.#open.values().next().value
  }

  #end(requestId: string, outcome: RequestPermissionOutcome): void {
    const open = this.#open.get(requestId)
    if (open === undefined) return
    const shown = this.#first() === open
    this.#open.delete(requestId)
    const chosen = outcome.outcome === 'selected' ? resolved(open.pending, outcome.optionId) : DISMISSED
    this.#events.record({ ...recorded(open.pending), ...chosen })
    open.settle(outcome)
    if (!shown) return
    this.#events.cleared(requestId)
    const next = this.#first()
    if (next !== undefined) this.#events.pending(next.pending)
  }
}

const DISMISSED = { state: 'dismissed' } as const

/** With the label: whoever reads the transcript later has not seen the choices. */
const resolved = ({ options }: Pending, optionId: string) => ({
  state: 'resolved',
  option_id: optionId,
  option_label: options.find(({ id }) => id === optionId)?.label,
})

function describe(requestId: string, request: RequestPermissionRequest, known: KnownTool): Pending {
  const { toolCallId } = request.toolCall
  const call = withCall(known, objectOf(request.toolCall))
  const { name, kind, title: shown } = call
  const metadata = { tool_call_id: toolCallId, tool_name: name ?? kind ?? shown, title: shown, kind }
  const options = request.options
    .filter((option) => option.optionId.length <= MAX_OPTION_ID)
    .slice(0, MAX_OPTIONS)
    .map((option) => ({ id: option.optionId, label: cut(option.name, MAX_TEXT), kind: option.kind }))
  return {
    requestId,
    kind: 'approval',
    ...(shown != null && { prompt: cut(shown, MAX_TEXT) }),
    options,
    metadata: Object.fromEntries(
      Object.entries(metadata).flatMap(([key, value]) => (value == null ? [] : [[key, cut(value, MAX_TEXT)]])),
    ),
    tool: toolOf(call),
  }
}

const recorded = ({ requestId, metadata, prompt }: Pending) => ({
  request_id: requestId,
  tool_call_id: metadata['tool_call_id'],
  title: prompt,
})

/** Kinds that an action means, best first. An approval may become a narrower one, never a wider one. */
const MEANT: Readonly<Record<'approve' | 'approve_always' | 'deny', readonly PermissionKind[]>> = {
  approve: ['allow_once'],
  approve_always: ['allow_always', 'allow_once'],
  deny: ['reject_once', 'reject_always'],
}

function outcomeOf(answer: Answer, options: Pending['options']): RequestPermissionOutcome | undefined {
  if (answer.action === 'cancel') return { outcome: 'cancelled' }
  if (answer.action === 'option') {
    const { optionId } = answer
    return options.some(({ id }) => id === optionId) ? { outcome: 'selected', optionId } : undefined
  }
  for (const kind of MEANT[answer.action]) {
    const option = options.find((candidate) => candidate.kind === kind)
    if (option !== undefined) return { outcome: 'selected', optionId: option.id }
  }
  // An agent that offers no way to refuse is refused by taking the question back.
  return answer.action === 'deny' ? { outcome: 'cancelled' } : undefined
}
