/** Names that nobody knows, and those that were probably meant. */
import type { ProblemCode } from '../contract/base/problems.ts'
import { type Problem, problem } from './problem.ts'

/** Refusal of a name that is not among `known`: `there is no agent worker: did you mean core.worker?` */
export function unknownName(code: ProblemCode, kind: string, name: string, known: Iterable<string>): Problem {
  const nearest = nearestName(name, known)
  return problem(code, `there is no ${kind} ${name}${nearest === undefined ? '' : `: did you mean ${nearest}?`}`)
}

/** Refuses a list of rigs that names one which is not there: nothing of it would be shown, and nobody told why. */
export function needRigs(names: readonly string[] | undefined, known: readonly string[]): void {
  for (const name of names ?? []) if (!known.includes(name)) throw unknownName('rig-not-found', 'rig', name, known)
}

/**
 * The name of `known` that somebody meant: the only one that is `name` with something in front (`core.worker`,
 * `rig/worker`), else the nearest within edit distance 2 (1 for names up to three letters); case counts as nothing.
 */
export function nearestName(name: string, known: Iterable<string>): string | undefined {
  const all = [...known]
  const [qualified, ...others] = all.filter((one) => one.endsWith(`.${name}`) || one.endsWith(`/${name}`))
  if (qualified !== undefined && others.length === 0) return qualified
  let best: string | undefined
  let bestDistance = name.length <= 3 ? 2 : 3
  for (const candidate of all) {
    if (Math.abs(candidate.length - name.length) >= bestDistance) continue
    const distance = editDistance(name.toLowerCase(), candidate.toLowerCase())
    if (distance < bestDistance) {
      best = candidate
      bestDistance = distance
    }
  }
  return best
}

// Optimal string alignment: a swap of neighbours counts once, as typing slips do.
function editDistance(a: string, b: string): number {
  let beforeLast: number[] = []
  let last = Array.from({ length: b.length + 1 }, (_, column) => column)
  for (let row = 1; row <= a.length; row++) {
    const current = [row]
    for (let column = 1; column <= b.length; column++) {
      const cost = a[row - 1] === b[column - 1] ? 0 : 1
      let best = Math.min((last[column] ?? 0) + 1, (current[column - 1] ?? 0) + 1, (last[column - 1] ?? 0) + cost)
      if (row > 1 && column > 1 && a[row - 1] === b[column - 2] && a[row - 2] === b[column - 1]) {
        best = Math.min(best, (beforeLast[column - 2] ?? 0) + 1)
      }
      current.push(best)
    }
    beforeLast = last
    last = current
  }
  return last[b.length] ?? 0
}
