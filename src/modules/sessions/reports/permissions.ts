/**
 * Whether sessions may use tools: hooks of their harnesses ask and wait (decisions 225, 226, 236).
 *
 * Q1  One question of a session is open at a time, in the order of asking; the others wait behind it.
 * Q2  A decision is on disk, with its event, before anybody is told; asked again, the same is told. It is that of one tool
 *     with one input: who asks about another one under the same id is not told what was decided about the first.
 * Q3  A question goes when nobody waits for its answer any more; what is answered then is answered to nobody.
 */
import { createHash } from 'node:crypto'
import { realpathSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { cut } from '../../../contract/base/text.ts'
import type { SessionToolRequest, SessionToolVerdict } from '../../../contract/sessions/reports.ts'
import type { Clock } from '../../../kernel/clock.ts'
import type { Tx } from '../../../kernel/database.ts'
import { problem } from '../../../kernel/problem.ts'
import type { Store } from '../../../kernel/store.ts'
import { type AskedTool, askedByProtocol, askedTool, subjectOf } from '../../../runtimes/process/asked-tool.ts'
import type { Answer, Pending } from '../../../runtimes/process/runtime.ts'
import { findAgent, type SessionsView } from '../record/config-view.ts'
import type { SessionRecord } from '../record/record.ts'
import type { Report } from '../record/report.ts'
import { type RuleSet, type RuleVerdict, verdictOf } from './policy.ts'

type Verdict = Omit<SessionToolVerdict, 'request_id'>

export interface PermissionDeps {
  readonly store: Store
  readonly clock: Clock
  readonly config: () => SessionsView
  readonly random: (bytes: number) => string
  /** Tells what a session waits for, or that it does no more. */
  readonly tell: (id: string, report: Report) => void
}

/** How a rule answers. */
export interface Ruled {
  readonly action: 'approve' | 'deny'
  readonly by: string
}

export interface AskedBy {
  readonly request: SessionToolRequest
  readonly timeoutMs: number
  /** Who asked is gone. */
  readonly signal: AbortSignal
}

interface Asked {
  readonly requestId: string
  readonly key: string
  readonly tool: AskedTool
  readonly request: SessionToolRequest
  readonly timeoutMs: number
}

interface Decision {
  readonly session: SessionRecord
  readonly tool: AskedTool
  readonly requestId: string
  readonly key: string
  readonly verdict: Verdict
  /** Somebody was asked: no rule decided. */
  readonly asked: boolean
}

interface Question {
  readonly session: SessionRecord
  readonly key: string
  readonly tool: AskedTool
  readonly pending: Pending
  readonly until: number
  readonly answered: PromiseWithResolvers<Verdict | undefined>
  cancelTimer: () => void
  /** How many wait for it: who lost the connection may ask again before that is noticed. */
  waiting: number
}

const MAX_OPEN = 20
const MAX_PROMPT = 4_096
const MAX_SUBJECT = 500
const MAX_INPUT = 16_384
/** Kept of one run; whoever asks again does so at once. */
const MAX_KEPT = 200
const NOBODY: Verdict = { decision: 'none', by: 'timeout' }
const ELSEWHERE: Verdict = { decision: 'none', by: 'terminal' }
const GONE: Verdict = { decision: 'none', by: 'end of the turn' }
const OPTIONS: Pending['options'] = [
  { id: 'allow', label: 'Allow', kind: 'allow_once' },
  { id: 'deny', label: 'Deny', kind: 'reject_once' },
]

export class Permissions {
  readonly #deps: PermissionDeps
  readonly #lines = new Map<string, Question[]>()

  constructor(deps: PermissionDeps) {
    this.#deps = deps
  }

  async ask(session: SessionRecord, { request, timeoutMs, signal }: AskedBy): Promise<SessionToolVerdict> {
    const requestId = request.request_id ?? `perm-${this.#deps.random(8)}`
    const told = (verdict: Verdict): SessionToolVerdict => ({ request_id: requestId, ...verdict })
    const key = keyOf(requestId, request)
    const known = this.#known(session, key)
    if (known !== undefined) return told(known)
    const tool = askedTool(request.tool, request.input ?? {})
    const rule = this.rule(session, tool)
    if (rule !== undefined && rule.action !== 'ask') {
      const decision = rule.action
      const verdict: Verdict = {
        decision,
        by: rule.by,
        ...(decision === 'deny' ? { reason: `refused by ${rule.by}` } : {}),
      }
      await this.#deps.store.db.write((tx) =>
        this.#decide(tx, { session, tool, requestId, key, verdict, asked: false }),
      )
      return told(verdict)
    }
    return told(await this.#wait(this.#questionOf(session, { requestId, key, tool, request, timeoutMs }), signal))
  }

  /** Which rule decides about a tool; undefined: none does. */
  rule(session: SessionRecord, tool: AskedTool): RuleVerdict | undefined {
    const config = this.#deps.config()
    const agent = session.kind === 'agent' ? findAgent(config, session.template) : undefined
    const sets: RuleSet[] = [
      { of: session.template, rules: agent?.permissions ?? [] },
      { of: 'the city', rules: config.permissions },
    ]
    return verdictOf(sets, tool, { workDir: session.work_dir ?? config.dir, real: realPath })
  }

  /** What a rule decides about a question of the agent protocol; undefined: somebody is asked. */
  ruled(session: SessionRecord, { tool }: Pending): Ruled | undefined {
    const rule = tool === undefined ? undefined : this.rule(session, askedByProtocol(tool))
    if (rule === undefined || rule.action === 'ask') return undefined
    return { action: rule.action === 'allow' ? 'approve' : 'deny', by: rule.by }
  }

  /** The agent has taken the answer to a question of its protocol: of a rule, or of somebody who was asked. */
  decided(tx: Tx, session: SessionRecord, { requestId, tool, options }: Pending, answer: Answer, asked: boolean): void {
    if (tool === undefined) return
    const kind = answer.action === 'option' ? options.find(({ id }) => id === answer.optionId)?.kind : undefined
    const allowed = kind === undefined ? answer.action.startsWith('approve') : kind.startsWith('allow')
    const verdict: Verdict = { decision: allowed ? 'allow' : 'deny', by: answer.by ?? 'api' }
    this.#decide(tx, { session, tool: askedByProtocol(tool), requestId, key: requestId, verdict, asked })
  }

  /** What was decided in runs that are over. */
  forget(tx: Tx, sessionId: string, before: number): void {
    tx.run('DELETE FROM session_permissions WHERE session_id = ? AND generation < ?', sessionId, before)
  }

  /** Its turn is over, or its process: whoever asked has an answer, or needs none. */
  drop(sessionId: string): void {
    for (const question of this.#lines.get(sessionId)?.toReversed() ?? []) this.#end(question, GONE)
  }

  isOpen(sessionId: string): boolean {
    return this.#lines.has(sessionId)
  }

  // --- The line ----------------------------------------------------------------------------------------------------

  #questionOf(session: SessionRecord, { requestId, key, tool, request, timeoutMs }: Asked): Question {
    const line = this.#lines.get(session.id) ?? []
    const same = line.find(({ pending }) => pending.requestId === requestId)
    if (same?.key === key) return same
    if (same !== undefined)
      throw problem('session-conflict', `request_id ${requestId} is that of another question, which is open`)
    if (line.length >= MAX_OPEN) throw problem('queue-full', `session ${session.id} asks too much at once`)
    const subject = subjectOf(tool)
    const asked = JSON.stringify(request.input ?? {})
    const question: Question = {
      session,
      key,
      tool,
      pending: {
        requestId,
        kind: 'approval',
        prompt: cut(subject === undefined ? tool.name : `${tool.name}: ${subject}`, MAX_PROMPT),
        options: OPTIONS,
        metadata: {
          tool_name: tool.name,
          kind: tool.kind,
          ...(tool.command === undefined ? {} : { command: cut(tool.command, MAX_PROMPT) }),
          ...(asked.length > MAX_INPUT ? {} : { input: asked }),
        },
      },
      until: this.#deps.clock.now() + timeoutMs,
      answered: Promise.withResolvers(),
      cancelTimer: () => undefined,
      waiting: 0,
    }
    question.cancelTimer = this.#deps.clock.after(timeoutMs, () => this.#end(question, NOBODY))
    line.push(question)
    this.#lines.set(session.id, line)
    if (line.length === 1) this.#show(question)
    return question
  }

  async #wait(question: Question, signal: AbortSignal): Promise<Verdict> {
    question.waiting++
    const leave = () => {
      question.waiting--
      if (question.waiting === 0) this.#end(question, undefined)
    }
    if (signal.aborted) leave()
    else signal.addEventListener('abort', leave, { once: true })
    try {
      return (await question.answered.promise) ?? NOBODY
    } finally {
      signal.removeEventListener('abort', leave)
    }
  }

  #show(question: Question): void {
    const { session, pending } = question
    const at = this.#deps.clock.now()
    const overtaken = () => this.#end(question, ELSEWHERE)
    const answer = (given: Answer) => this.#take(session.id, pending.requestId, given)
    this.#deps.tell(session.id, { at, activity: 'in-turn', pending, answer, overtaken })
  }

  /** False: it is not open any more. */
  async #take(sessionId: string, requestId: string, answer: Answer): Promise<boolean> {
    const question = this.#lines.get(sessionId)?.find(({ pending }) => pending.requestId === requestId)
    if (question === undefined) return false
    const verdict = verdictFor(answer)
    await this.#deps.store.db.write((tx) => this.#decide(tx, { ...question, requestId, verdict, asked: true }))
    this.#end(question, verdict, answer)
    return true
  }

  /** Undefined: nobody waits for it any more. */
  #end(question: Question, verdict: Verdict | undefined, answer?: Answer): void {
    const { session, cancelTimer, answered } = question
    const line = this.#lines.get(session.id) ?? []
    const place = line.indexOf(question)
    if (place < 0) return
    cancelTimer()
    line.splice(place, 1)
    if (line.length === 0) this.#lines.delete(session.id)
    answered.resolve(verdict)
    if (place > 0) return
    const taken = answer?.action === 'cancel' ? 'dismissed' : 'answered'
    const outcome = answer === undefined && verdict !== ELSEWHERE ? 'gone' : taken
    this.#deps.tell(session.id, { at: this.#deps.clock.now(), pending: null, outcome })
    const [next] = line
    if (next !== undefined) this.#show(next)
  }

  // --- What was decided --------------------------------------------------------------------------------------------

  #known({ id, generation }: SessionRecord, key: string): Verdict | undefined {
    const row = this.#deps.store.db.get(
      'SELECT decision, reason, by FROM session_permissions WHERE session_id = ? AND generation = ? AND request_id = ?',
      id,
      generation,
      key,
    )
    if (row === undefined) return undefined
    const reason = row.reason === null ? {} : { reason: String(row.reason) }
    return { decision: row.decision === 'allow' ? 'allow' : 'deny', by: String(row.by), ...reason }
  }

  #decide(tx: Tx, { session, tool, requestId, key, verdict, asked }: Decision): void {
    const { id, generation, template } = session
    const { decision, by, reason } = verdict
    if (decision === 'none') return
    tx.run(
      'INSERT OR REPLACE INTO session_permissions (session_id, generation, request_id, decision, reason, by, at) VALUES (?, ?, ?, ?, ?, ?, ?)',
      id,
      generation,
      key,
      decision,
      reason ?? null,
      by,
      this.#deps.clock.now(),
    )
    tx.run(
      `DELETE FROM session_permissions WHERE session_id = ? AND (generation < ? OR request_id NOT IN
       (SELECT request_id FROM session_permissions WHERE session_id = ? AND generation = ? ORDER BY at DESC LIMIT ?))`,
      id,
      generation,
      id,
      generation,
      MAX_KEPT,
    )
    const whole = subjectOf(tool)
    const subject = whole === undefined ? undefined : cut(whole, MAX_SUBJECT)
    this.#deps.store.log.append(tx, {
      type: 'session.permission',
      actor: asked ? by : 'supervisor',
      subject: id,
      payload: {
        session_id: id,
        template,
        request_id: requestId,
        tool: tool.name,
        ...(subject === undefined ? {} : { subject }),
        decision,
        by,
        asked,
      },
    })
  }
}

/** Names what is asked: the id that a harness gave it, and what it is about. */
function keyOf(requestId: string, { tool, input = {} }: SessionToolRequest): string {
  const call = createHash('sha256')
    .update(JSON.stringify([tool, input]))
    .digest('hex')
  return `${requestId} ${cut(call, 32)}`
}

/** What an answer means for a tool: who dismisses the question does not let it through. */
function verdictFor(answer: Answer): Verdict {
  const by = answer.by ?? 'api'
  const allowed =
    answer.action === 'option'
      ? answer.optionId === 'allow'
      : answer.action === 'approve' || answer.action === 'approve_always'
  if (allowed) return { decision: 'allow', by }
  const reason = answer.text ?? (answer.action === 'cancel' ? 'the question was dismissed' : `refused by ${by}`)
  return { decision: 'deny', by, reason }
}

/** Where a path really leads; of one that is not there, of the nearest directory above it that is. */
function realPath(path: string): string {
  try {
    return realpathSync(path)
  } catch {
    const above = dirname(path)
    return above === path ? path : join(realPath(above), basename(path))
  }
}
