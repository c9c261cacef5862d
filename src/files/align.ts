/** What became of the elements of a list: which stayed, which took the place of another, which came and went. */
import { isDeepStrictEqual } from 'node:util'
import { isPlainTable, type PlainValue } from './toml.ts'

/** In the order of `after`: an element of `before`, one of `after`, or one of each that stands for the other. */
export interface Step {
  readonly before: number | undefined
  readonly after: number | undefined
}

/** Beyond this many comparisons elements are paired by their position. */
const MAX_CELLS = 40_000

/** Equal elements are the same one, wherever they stand; of the rest those of a kind between two that stayed, in order. */
export function align(before: readonly PlainValue[], after: readonly PlainValue[]): readonly Step[] {
  const common = commonElements(before, after)
  const stayed = new Map(common.map(([left, right]) => [right, left]))
  const moved = movedElements(before, after, stayed)
  const taken = new Set([...stayed.values(), ...moved.values()])
  const steps: Step[] = []
  let [from, to] = [0, 0]
  for (const [left, right] of [...common, [before.length, after.length] as const]) {
    const old = before.flatMap((_, index) => (index >= from && index < left && !taken.has(index) ? [index] : []))
    for (let index = to; index < right; index++)
      steps.push({ before: moved.get(index) ?? nextOfKind(index), after: index })
    steps.push(...old.map((index) => ({ before: index, after: undefined })))
    if (left < before.length) steps.push({ before: left, after: right })
    from = left + 1
    to = right + 1
    function nextOfKind(index: number): number | undefined {
      const [first] = old
      return first !== undefined && kindOf(before[first]) === kindOf(after[index]) ? old.shift() : undefined
    }
  }
  return steps
}

/** Positions of elements of `before` by the new positions that they have out of their order. */
function movedElements(
  before: readonly PlainValue[],
  after: readonly PlainValue[],
  stayed: ReadonlyMap<number, number>,
): ReadonlyMap<number, number> {
  const free = new Set(before.keys())
  for (const index of stayed.values()) free.delete(index)
  const moved = new Map<number, number>()
  if (before.length * after.length > MAX_CELLS) return moved
  for (const [index, value] of after.entries()) {
    if (stayed.has(index)) continue
    const found = [...free].find((old) => isDeepStrictEqual(before[old], value))
    if (found === undefined) continue
    moved.set(index, found)
    free.delete(found)
  }
  return moved
}

/** Whether nothing but coming and going has happened. */
export function isInOrder(steps: readonly Step[]): boolean {
  const old = steps.flatMap(({ before }) => before ?? [])
  return old.every((index, at) => at === 0 || index > (old[at - 1] ?? 0))
}

/** The first with the first, and so on. */
export const byPosition = (before: readonly PlainValue[], after: readonly PlainValue[]): readonly Step[] =>
  Array.from({ length: Math.max(before.length, after.length) }, (_, index) => ({
    before: index < before.length ? index : undefined,
    after: index < after.length ? index : undefined,
  }))

const kindOf = (value: PlainValue | undefined): string =>
  Array.isArray(value) ? 'list' : isPlainTable(value) ? 'table' : 'scalar'

/**
 * Pairs of equal elements, in the order of both: those that both begin and end with, and a longest run of what is between,
 * so that an element that was replaced alone is seen as that one, also by one that another is equal to.
 */
function commonElements(before: readonly PlainValue[], after: readonly PlainValue[]): (readonly [number, number])[] {
  if (before.length * after.length > MAX_CELLS)
    return before.flatMap((value, index) => (isDeepStrictEqual(value, after[index]) ? [[index, index] as const] : []))
  const equal = (left: number, right: number): boolean => isDeepStrictEqual(before[left], after[right])
  const shorter = Math.min(before.length, after.length)
  let head = 0
  while (head < shorter && equal(head, head)) head++
  let tail = 0
  while (tail < shorter - head && equal(before.length - 1 - tail, after.length - 1 - tail)) tail++
  const pairs = (count: number, left: number, right: number) =>
    Array.from({ length: count }, (_, index) => [left + index, right + index] as const)
  return [
    ...pairs(head, 0, 0),
    ...longestRun([head, before.length - tail], [head, after.length - tail], equal),
    ...pairs(tail, before.length - tail, after.length - tail),
  ]
}

type Span = readonly [from: number, to: number]

function longestRun(
  [leftFrom, leftTo]: Span,
  [rightFrom, rightTo]: Span,
  equal: (left: number, right: number) => boolean,
): (readonly [number, number])[] {
  const lengths = Array.from({ length: leftTo - leftFrom }, () => new Array<number>(rightTo - rightFrom + 1).fill(0))
  const lengthAt = (left: number, right: number): number => lengths[left - leftFrom]?.[right - rightFrom] ?? 0
  for (let left = leftTo - 1; left >= leftFrom; left--) {
    for (let right = rightTo - 1; right >= rightFrom; right--) {
      const row = lengths[left - leftFrom] ?? []
      row[right - rightFrom] = equal(left, right)
        ? lengthAt(left + 1, right + 1) + 1
        : Math.max(lengthAt(left + 1, right), lengthAt(left, right + 1))
    }
  }
  const found: (readonly [number, number])[] = []
  let [left, right] = [leftFrom, rightFrom]
  while (left < leftTo && right < rightTo) {
    if (equal(left, right)) found.push([left++, right++])
    else if (lengthAt(left + 1, right) >= lengthAt(left, right + 1)) left++
    else right++
  }
  return found
}
