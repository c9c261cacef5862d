// Prints how the answers of the contract scenarios (`SVC_RECORD_ANSWERS`) changed, by scenario. Several records of the
// commit before show what differs from run to run by itself: `-` is in all of those and not in the new one, `+` in none.
//
//   node tools/compare-answers.ts before.json before-again.json after.json
import { readFileSync } from 'node:fs'

const records = process.argv.slice(2).map(readRecord)
const after = records.pop()
const [before] = records
if (after === undefined || before === undefined) throw new Error('records are needed: of before, then of after')
for (const scenario of new Set([...before.keys(), ...after.keys()])) {
  const now = new Set(after.get(scenario))
  const old = records.map((record) => new Set(record.get(scenario)))
  const gone = [...(old[0] ?? [])].filter((answer) => !now.has(answer) && old.every((one) => one.has(answer)))
  const added = [...now].filter((answer) => !old.some((one) => one.has(answer)))
  const lines = [...gone.map((answer) => indented('-', answer)), ...added.map((answer) => indented('+', answer))]
  if (lines.length > 0) process.stdout.write(`${scenario}\n${lines.join('\n')}\n\n`)
}

function readRecord(path: string): ReadonlyMap<string, readonly string[]> {
  const record: unknown = JSON.parse(readFileSync(path, 'utf8'))
  if (typeof record !== 'object' || record === null) throw new Error(`${path} is no record of answers`)
  return new Map(
    Object.entries(record).map(([key, answers]) => [key, Array.isArray(answers) ? answers.map(String) : []]),
  )
}

function indented(sign: string, answer: string): string {
  return `  ${sign} ${answer.replaceAll('\n', `\n  ${sign}   `)}`
}
