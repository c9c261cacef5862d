/** What the steps of one list wait for: siblings that are there, no circles, and what is needed by way of others. */
import { type IssueList, nearestHint } from '../files/issues.ts'
import type { ScalarNode } from '../files/toml.ts'
import type { StepDraft } from './draft.ts'
import { listNodeOf } from './source.ts'

export interface StepNeeds {
  readonly of: (id: string) => readonly string[]
  /** Whether `id` starts only after `other` is settled. */
  readonly reaches: (id: string, other: string) => boolean
}

/** Reports what is wrong with `needs`; what is wrong is left out. `elsewhere` are ids of the formula that are no siblings. */
export function readNeeds(
  steps: readonly StepDraft[],
  elsewhere: (id: string) => boolean,
  issues: IssueList,
): StepNeeds {
  const ids = new Map(steps.map(({ id }, index) => [id, index]))
  const needs = new Map(steps.map((step) => [step.id, needsOf(step, ids, elsewhere, issues)]))
  cutCircles(steps, needs, issues)
  const reached = closures(steps, needs, ids)
  return {
    of: (id) => needs.get(id) ?? [],
    reaches: (id, other) => (((reached.get(id) ?? 0n) >> BigInt(ids.get(other) ?? 0)) & 1n) === 1n && ids.has(other),
  }
}

function needsOf(
  step: StepDraft,
  ids: ReadonlyMap<string, number>,
  elsewhere: (id: string) => boolean,
  issues: IssueList,
): readonly string[] {
  const found = new Set<string>()
  for (const [index, node] of needNodes(step).entries()) {
    const id = String(node.value)
    const key = `${step.key}.needs[${index}]`
    if (id === step.id) issues.error(node.at, key, `\`${id}\` needs itself`)
    else if (ids.has(id)) found.add(id)
    else if (elsewhere(id))
      issues.error(node.at, key, `\`${id}\` is no sibling of \`${step.id}\`: \`needs\` names steps of the same list`)
    else issues.error(node.at, key, `there is no step \`${id}\``, nearestHint(id, ids.keys()))
  }
  return [...found]
}

const needNodes = (step: StepDraft): readonly ScalarNode[] =>
  (listNodeOf(step.node, 'needs')?.items ?? []).filter((node) => node.kind === 'scalar')

/** So many circles of one list are reported; then nobody reads them, and each is looked for anew. */
const MAX_CIRCLES = 20

/** Reports each circle once, and takes its last edge out. */
function cutCircles(steps: readonly StepDraft[], needs: Map<string, readonly string[]>, issues: IssueList): void {
  const done = new Set<string>()
  let found = 0
  for (const { id } of steps) {
    for (let circle = findCircle(id, needs, done); circle !== undefined; circle = findCircle(id, needs, done)) {
      if (++found > MAX_CIRCLES) {
        needs.clear()
        return
      }
      const [first = '', ...rest] = circle
      const last = circle.at(-1) ?? first
      const step = steps.find((one) => one.id === last)
      if (step === undefined) break
      const node = needNodes(step).find(({ value }) => value === first)
      const path = [first, ...rest, first].join(' → ')
      issues.error(node?.at ?? step.at, `${step.key}.needs`, `steps need each other in a circle: ${path}`)
      needs.set(
        last,
        (needs.get(last) ?? []).filter((one) => one !== first),
      )
    }
  }
}

/** A circle that can be reached from `start`, in the order of its needs. Everything that leads into none goes into `done`. */
function findCircle(
  start: string,
  needs: ReadonlyMap<string, readonly string[]>,
  done: Set<string>,
): readonly string[] | undefined {
  if (done.has(start)) return undefined
  const path: { id: string; next: number }[] = [{ id: start, next: 0 }]
  const on = new Set([start])
  for (let top = path.at(-1); top !== undefined; top = path.at(-1)) {
    const need = needs.get(top.id)?.[top.next++]
    if (need === undefined) {
      path.pop()
      on.delete(top.id)
      done.add(top.id)
    } else if (on.has(need)) return path.slice(path.findIndex(({ id }) => id === need)).map(({ id }) => id)
    else if (!done.has(need)) {
      path.push({ id: need, next: 0 })
      on.add(need)
    }
  }
  return undefined
}

/** Of every step the steps before it, as bits: lists of a thousand steps are closed in a moment. */
function closures(
  steps: readonly StepDraft[],
  needs: ReadonlyMap<string, readonly string[]>,
  ids: ReadonlyMap<string, number>,
): ReadonlyMap<string, bigint> {
  const reached = new Map<string, bigint>()
  for (const { id } of steps) {
    const open = [id]
    for (let top = open.at(-1); top !== undefined; top = open.at(-1)) {
      const own = needs.get(top) ?? []
      const missing = own.filter((need) => !reached.has(need))
      if (missing.length > 0 && !reached.has(top)) {
        open.push(...missing)
        continue
      }
      open.pop()
      if (!reached.has(top))
        reached.set(
          top,
          own.reduce((bits, need) => bits | (1n << BigInt(ids.get(need) ?? 0)) | (reached.get(need) ?? 0n), 0n),
        )
    }
  }
  return reached
}

/** Ids of these steps and of all below them. */
export function idsBelow(steps: readonly StepDraft[], found = new Set<string>()): ReadonlySet<string> {
  for (const step of steps) {
    found.add(step.id)
    idsBelow(step.children ?? [], found)
  }
  return found
}
