/** Everything that is wrong with the formulas and orders of a city. */
import { type ConfigIssue, sortIssues } from '../../../files/issues.ts'
import { nextTurn, systemClock } from '../../../kernel/clock.ts'
import type { Snapshot } from './snapshot.ts'

/** How long compiling may hold up everybody else before it makes a pause. */
const TURN_MS = 8

/** In the order of the files, each once: several rigs may have one file. Those that nobody has trusted are not looked at. */
export async function issuesOfDocuments(snapshot: Snapshot): Promise<readonly ConfigIssue[]> {
  let until = systemClock.monotonic() + TURN_MS
  for (const rig of ['', ...snapshot.layout.rigs]) {
    for (const name of snapshot.names(rig)) {
      snapshot.compiled(name, rig)
      if (systemClock.monotonic() < until) continue
      await nextTurn()
      until = systemClock.monotonic() + TURN_MS
    }
  }
  const documents = [...snapshot.everyFormula().map(({ formula }) => formula), ...snapshot.orders()]
  const issues = documents.filter(({ untrusted }) => untrusted === undefined).flatMap(({ issues: own }) => own)
  const once = new Map(issues.map((issue) => [`${issue.file}:${issue.line}:${issue.column}:${issue.message}`, issue]))
  return sortIssues([...once.values()])
}
