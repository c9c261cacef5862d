/** What is wrong, in the words of an answer. */
import type { ErrorDetail } from '../../../contract/base/problems.ts'
import type { ConfigIssue } from '../../../files/issues.ts'
import { type Problem, problem } from '../../../kernel/problem.ts'
import type { Referrer } from '../compose/references.ts'
import { FileChanged } from './transaction.ts'

/** Links in a circle, and directories and files in each other's place. */
const OBSTACLES: ReadonlySet<string> = new Set(['ELOOP', 'EISDIR', 'ENOTDIR'])

export function fileProblem(error: unknown): unknown {
  if (error instanceof FileChanged)
    return problem('conflict-config', `${error.message}: look again, then repeat`, { retryAfterSec: 1 })
  const code = error instanceof Error && 'code' in error ? String(error.code) : undefined
  if (code === undefined) return error
  // That passes by no waiting.
  if (OBSTACLES.has(code))
    return problem('conflict-config', `the file cannot be written where it is to be: ${code}`, { cause: error })
  return problem('unavailable', `the files of the city cannot be written: ${code}`, { cause: error, retryAfterSec: 5 })
}

export function stillInUse(referrers: readonly Referrer[]): Problem {
  const names = referrers.slice(0, 5).map(({ kind, name, file, line }) => `${kind} ${name} (${file}:${line})`)
  const more = referrers.length > names.length ? ` and ${referrers.length - names.length} more` : ''
  return problem('still-referenced', `still in use by ${names.join(', ')}${more}`, {
    errors: referrers.map(referrerDetail),
  })
}

/** A referrer as the `errors` of a 409 name it. */
export const referrerDetail = ({ kind, name, key, file, line }: Referrer): ErrorDetail => ({
  location: `${file}:${line}`,
  message: `${kind} ${name} names it as ${key}`,
})

const placeOfIssue = ({ file, line, column }: ConfigIssue): string => `${file}:${line}:${column}`

/** One sentence: the first issue, and how many more there are. */
export function summarize(issues: readonly ConfigIssue[]): string {
  const first = issues[0]
  if (first === undefined) return 'the configuration is not valid'
  const more = issues.length === 1 ? '' : ` (and ${issues.length - 1} more)`
  return `${placeOfIssue(first)}: ${first.message}${more}`
}

export const issueText = (issue: ConfigIssue): string =>
  `${placeOfIssue(issue)}: ${issue.message}${issue.hint === undefined ? '' : ` (${issue.hint})`}`

export const toDetail = (issue: ConfigIssue): ErrorDetail => ({
  location: placeOfIssue(issue),
  message: issue.hint === undefined ? issue.message : `${issue.message} (${issue.hint})`,
})
