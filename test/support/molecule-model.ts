/**
 * A molecule in a few rules, to compare the engine with: a tree of steps that is looked at as a whole after each thing that
 * happens, until nothing follows any more. It knows no rows, no counters and no store.
 */
import type { Plan, PlanStep } from '../../src/automation/plan.ts'

export type ModelStatus = 'pending' | 'ready' | 'active' | 'waiting' | 'completed' | 'failed' | 'skipped' | 'canceled'
type Phase = 'pending' | 'work' | 'gate' | 'group' | 'repeat' | 'check' | 'unjudged' | 'ask' | 'backoff' | 'settled'

interface Node {
  readonly order: number
  readonly step: PlanStep
  readonly path: string
  readonly isItem: boolean
  children: Node[]
  phase: Phase
  status: ModelStatus
  attempt: number
  reason: string
  hard: boolean
  lost: number
  unjudged: number
  /** Of its children, the first that counted. */
  firstHard: boolean | undefined
  told: boolean
}

interface Timer {
  readonly at: number
  readonly node: Node
  readonly kind: 'timeout' | 'gate' | 'retry' | 'check'
}

/** What can be done from outside. */
export interface Chance {
  readonly kind: 'claim' | 'close' | 'lose' | 'check' | 'answer' | 'time'
  readonly path: string
}

const UNJUDGED_MS = 2_000
const MAX_UNJUDGED = 5
const MAX_LOST = 3

export class MoleculeModel {
  readonly #roots: Node[]
  readonly #lists: Record<string, readonly number[]>
  #timers: Timer[] = []
  #made = 0
  now: number
  outcome: 'pass' | 'fail' | undefined

  /** `lists`: values of the variables that `for_each` names. */
  constructor(plan: Plan, lists: Record<string, readonly number[]>, now: number) {
    this.#lists = lists
    this.now = now
    this.#roots = this.#nodes(plan.steps, '')
    this.#settleAll()
  }

  statuses(): Record<string, string> {
    const found: Record<string, string> = {}
    const walk = (nodes: readonly Node[]) => {
      for (const node of nodes) {
        found[node.path] = `${node.status} ${node.attempt}`
        walk(node.children)
      }
    }
    walk(this.#roots)
    return found
  }

  chances(): readonly Chance[] {
    const found: Chance[] = []
    for (const node of this.#all()) {
      const { path } = node
      if (node.phase === 'work') found.push({ kind: 'close', path })
      if (node.phase === 'work') found.push({ kind: node.status === 'ready' ? 'claim' : 'lose', path })
      if (node.phase === 'gate' && gateOf(node.step) === 'human') found.push({ kind: 'answer', path })
      if (node.phase === 'ask') found.push({ kind: 'answer', path })
      if (node.phase === 'check') found.push({ kind: 'check', path })
    }
    if (this.#timers.length > 0) found.push({ kind: 'time', path: '' })
    return found
  }

  /** Milliseconds to the next thing that is due. */
  get nextDue(): number {
    return Math.min(...this.#timers.map(({ at }) => at)) - this.now
  }

  claim(path: string): void {
    const node = this.#at(path)
    node.status = 'active'
    if (node.step.timeout !== undefined) this.#timer(node, 'timeout', node.step.timeout)
  }

  lose(path: string): void {
    const node = this.#at(path)
    node.lost++
    this.#forget(node, 'timeout')
    node.status = 'ready'
    if (node.lost >= MAX_LOST) this.#body(node, 'transient')
    this.#settleAll()
  }

  close(path: string, failure: Failing): void {
    this.#body(this.#at(path), failure)
    this.#settleAll()
  }

  /** Of a gate, or of the question after the work: an answer to that is no reason never to try again. */
  answer(path: string, failure: Failing): void {
    const node = this.#at(path)
    if (node.phase === 'ask') this.#ended(node, failure === undefined ? undefined : 'transient')
    else this.#body(node, failure)
    this.#settleAll()
  }

  check(path: string, code: number): void {
    const node = this.#at(path)
    if (code <= 125) this.#ended(node, code === 0 ? undefined : 'transient')
    else if (++node.unjudged > MAX_UNJUDGED) this.#ended(node, 'hard')
    else {
      node.phase = 'unjudged'
      node.status = 'waiting'
      this.#timer(node, 'check', UNJUDGED_MS * 2 ** (node.unjudged - 1))
    }
    this.#settleAll()
  }

  /** Time goes on to the next thing that is due, and all that is due then happens. */
  wait(): void {
    this.now += this.nextDue
    for (;;) {
      const due = this.#timers
        .filter(({ at }) => at <= this.now)
        .sort((a, b) => a.at - b.at || a.node.order - b.node.order || (a.kind < b.kind ? -1 : 1))[0]
      if (due === undefined) return
      this.#timers = this.#timers.filter((timer) => timer !== due)
      this.#fire(due)
      this.#settleAll()
    }
  }

  #fire({ kind, node }: Timer): void {
    if (kind === 'gate') this.#body(node, undefined)
    else if (kind === 'retry') this.#attempt(node)
    else if (kind === 'check') this.#beginCheck(node)
    else if (node.phase !== 'backoff') {
      for (const child of node.children) this.#stop(child, 'failed')
      this.#ended(node, 'transient')
    }
  }

  #nodes(steps: readonly PlanStep[], prefix: string): Node[] {
    const made: Node[] = []
    for (const step of steps) {
      const node = this.#node(step, `${prefix}${step.id}`, false)
      made.push(node)
      if (step.repeat === undefined && step.body.kind === 'group')
        node.children = this.#nodes(step.body.steps, `${node.path}.`)
    }
    return made
  }

  #node(step: PlanStep, path: string, isItem: boolean): Node {
    const fresh = {
      phase: 'pending',
      status: 'pending',
      attempt: 0,
      reason: '',
      hard: false,
      lost: 0,
      unjudged: 0,
    } as const
    return { order: this.#made++, step, path, isItem, children: [], ...fresh, firstHard: undefined, told: false }
  }

  #all(nodes: readonly Node[] = this.#roots): readonly Node[] {
    return nodes.flatMap((node) => [node, ...this.#all(node.children)])
  }

  #at(path: string): Node {
    const found = this.#all().find((node) => node.path === path)
    if (found === undefined) throw new Error(`the model has no ${path}`)
    return found
  }

  /** Looks at everything again until nothing follows. */
  #settleAll(): void {
    while (this.#look(this.#roots));
    if (this.#roots.every(isSettled)) this.outcome = this.#roots.some(counts) ? 'fail' : 'pass'
    if (this.outcome !== undefined) this.#timers = []
  }

  /** One look at a list and what is in it; true where something changed. */
  #look(list: readonly Node[]): boolean {
    for (const node of list) {
      if (!isSettled(node) || node.told) continue
      node.told = true
      if (node.status !== 'failed' || node.step.on_fail !== 'abort') return true
      while (list.some((other) => this.#isBarred(other, list) && this.#skip(other, 'upstream_failed')));
      for (const other of list) if (!isSettled(other) && !other.step.always) this.#stop(other, 'canceled')
      return true
    }
    for (const node of list) {
      if (node.phase === 'pending' && this.#mayBegin(node, list)) return true
      if ((node.phase === 'group' || node.phase === 'repeat') && this.#lookInto(node)) return true
    }
    return false
  }

  #mayBegin(node: Node, list: readonly Node[]): boolean {
    const needs = list.filter(({ step }) => node.step.needs.includes(step.id))
    if (this.#isBarred(node, list)) this.#skip(node, 'upstream_failed')
    else if (needs.every(isSettled)) this.#begin(node)
    else return false
    return true
  }

  #isBarred(node: Node, list: readonly Node[]): boolean {
    if (node.phase !== 'pending' || node.step.always) return false
    return list.some((need) => node.step.needs.includes(need.step.id) && bars(need))
  }

  #begin(node: Node): void {
    const { condition, repeat } = node.step
    if (condition === 'false') this.#skip(node, 'condition')
    else if (repeat === undefined) this.#attempt(node)
    else this.#beginRepeat(node, this.#numbers(repeat))
  }

  #numbers(repeat: NonNullable<PlanStep['repeat']>): readonly number[] | undefined {
    if (repeat.kind === 'for_each') return this.#lists[repeat.in]
    return Array.from({ length: Number(repeat.to) - Number(repeat.from) + 1 }, (_, at) => at)
  }

  #beginRepeat(node: Node, items: readonly number[] | undefined): void {
    if (items === undefined) {
      node.hard = true
      settle(node, 'failed')
      this.#tellAround(node)
      return
    }
    node.attempt = 1
    node.phase = 'repeat'
    node.status = 'active'
    node.children = items.map((_, at) => this.#node(node.step, `${node.path}.${at + 1}`, true))
    if (items.length === 0) settle(node, 'completed')
  }

  #lookInto(node: Node): boolean {
    if (node.phase === 'group') {
      if (this.#look(node.children)) return true
    } else if (this.#lookAtItems(node)) return true
    const done = node.children.every(isSettled)
    if (!done) return false
    const failed = node.children.filter((child) =>
      node.phase === 'repeat' ? child.status === 'failed' : counts(child),
    )
    if (node.phase === 'repeat') {
      node.hard = node.firstHard ?? false
      settle(node, failed.length > 0 ? 'failed' : 'completed')
      this.#tellAround(node)
    } else this.#body(node, failed.length === 0 ? undefined : node.firstHard === true ? 'hard' : 'transient')
    return true
  }

  #lookAtItems(node: Node): boolean {
    const { repeat } = node.step
    for (const item of node.children) {
      if ((item.phase === 'group' || item.phase === 'repeat') && this.#lookInto(item)) return true
    }
    const stops = repeat?.kind === 'loop' || repeat?.stop_on_fail === true
    const most = repeat?.kind === 'for_each' ? repeat.max_parallel : 1
    const running = node.children.filter((item) => item.phase !== 'pending' && !isSettled(item)).length
    const next = node.children.find(({ phase }) => phase === 'pending')
    if (next === undefined) return false
    if (stops && node.children.some(({ status }) => status === 'failed')) this.#skip(next, 'previous_failed')
    else if (running < most) this.#attempt(next)
    else return false
    return true
  }

  #attempt(node: Node): void {
    const { body, timeout } = node.step
    const again = node.attempt > 0
    node.attempt++
    node.lost = 0
    node.unjudged = 0
    node.firstHard = undefined
    node.phase = body.kind
    node.status = body.kind === 'work' ? 'ready' : body.kind === 'gate' ? 'waiting' : 'active'
    if (body.kind === 'group' && (again || node.isItem)) node.children = this.#nodes(body.steps, `${node.path}.`)
    if (body.kind === 'gate' && body.gate.kind === 'timer')
      this.#timer(node, 'gate', Number.parseInt(body.gate.timer, 10) * 1_000)
    if (timeout !== undefined && body.kind !== 'work') this.#timer(node, 'timeout', timeout)
  }

  /** The body came out so; then comes the check. */
  #body(node: Node, failure: Failing): void {
    const { check } = node.step
    this.#forget(node, 'gate')
    if (failure !== undefined || check === undefined) this.#ended(node, failure)
    else if (check.kind === 'exec') this.#beginCheck(node)
    else {
      node.phase = 'ask'
      node.status = 'waiting'
      this.#beginTimeout(node)
    }
  }

  #beginCheck(node: Node): void {
    node.phase = 'check'
    node.status = 'active'
    this.#beginTimeout(node)
  }

  /** Work that nobody claimed has no time yet. */
  #beginTimeout(node: Node): void {
    const { timeout } = node.step
    const has = this.#timers.some((timer) => timer.node === node && timer.kind === 'timeout')
    if (timeout !== undefined && !has) this.#timer(node, 'timeout', timeout)
  }

  #ended(node: Node, failure: Failing): void {
    const { retry } = node.step
    this.#forget(node)
    node.hard = failure === 'hard'
    if (failure === undefined) settle(node, 'completed')
    else if (retry !== undefined && failure !== 'hard' && node.attempt < retry.max_attempts) {
      node.phase = 'backoff'
      node.status = 'waiting'
      this.#timer(node, 'retry', Math.min(retry.backoff * 2 ** (node.attempt - 1), retry.max_backoff))
    } else settle(node, 'failed')
    this.#tellAround(node)
  }

  /** The first failure that counts is that of what is around. */
  #tellAround(node: Node): void {
    if (node.status !== 'failed') return
    const around = this.#all().find(({ children }) => children.includes(node))
    const isCounted = node.isItem || node.step.on_fail !== 'continue'
    if (around !== undefined && isCounted) around.firstHard ??= node.hard
  }

  #skip(node: Node, reason: string): true {
    for (const inner of this.#all([node])) {
      if (isSettled(inner)) continue
      inner.reason = reason
      settle(inner, 'skipped')
    }
    return true
  }

  /** Ends what is under way: `how` for what had begun. */
  #stop(node: Node, how: 'failed' | 'canceled'): void {
    if (isSettled(node)) return
    for (const child of node.children) this.#stop(child, how)
    this.#forget(node)
    settle(node, node.phase === 'pending' ? 'canceled' : how)
    node.told = true
  }

  #timer(node: Node, kind: Timer['kind'], ms: number): void {
    this.#forget(node, kind)
    this.#timers.push({ at: this.now + ms, node, kind })
  }

  #forget(node: Node, kind?: Timer['kind']): void {
    this.#timers = this.#timers.filter((timer) => timer.node !== node || (kind !== undefined && timer.kind !== kind))
  }
}

export type Failing = 'transient' | 'hard' | undefined

const isSettled = ({ phase }: Node): boolean => phase === 'settled'

function settle(node: Node, status: ModelStatus): void {
  node.phase = 'settled'
  node.status = status
}

/** Its list fails with it. */
const counts = ({ status, step }: Node): boolean => status === 'failed' && step.on_fail !== 'continue'

/** What needs it is not to run. */
const bars = (node: Node): boolean =>
  counts(node) || node.status === 'canceled' || (node.status === 'skipped' && node.reason !== 'condition')

const gateOf = ({ body }: PlanStep): string | undefined => (body.kind === 'gate' ? body.gate.kind : undefined)
