/** What is wrong with a city's files, and where: every check of the configuration reports through one list. */
import type { CONFIG_LAYERS } from '../contract/config.ts'
import { nearestName } from '../kernel/near-names.ts'

/** The origin of a value; `explain` names it beside file and line. */
export type Layer = (typeof CONFIG_LAYERS)[number]

/** Where a value stands. Lines and columns count from 1; both are 0 for what stands in no file. */
export type Place = {
  readonly file: string
  readonly line: number
  readonly column: number
  readonly layer: Layer
}

/** One problem of a city's files, as the API and the command line show it. */
export type ConfigIssue = {
  readonly file: string
  readonly line: number
  readonly column: number
  /** Dotted path of the key, for example `patches.agent[0].name`; empty for the file as a whole. */
  readonly key: string
  readonly message: string
  readonly hint?: string
}

/** Collects errors and warnings of one load, so that all of them are reported at once. */
export class IssueList {
  readonly errors: ConfigIssue[] = []
  readonly warnings: ConfigIssue[] = []
  /** The files were good for an earlier version: what is gone since is read as what it is now. */
  readonly kept: boolean

  constructor({ kept = false } = {}) {
    this.kept = kept
  }

  error(at: Place, key: string, message: string, hint?: string): void {
    this.errors.push(issue(at, key, message, hint))
  }

  warn(at: Place, key: string, message: string, hint?: string): void {
    this.warnings.push(issue(at, key, message, hint))
  }
}

/** The beginning of a file: where problems of the file itself are reported. */
export function fileStart(file: string, layer: Layer = 'city'): Place {
  return { file, line: 1, column: 1, layer }
}

/** The place of defaults. */
export const NOWHERE: Place = Object.freeze({ file: '', line: 0, column: 0, layer: 'default' })

/** `city.toml:12`, for messages that point at a second place. */
export function placeText(at: Place): string {
  return at.line === 0 ? at.layer : `${at.file}:${at.line}`
}

/** Errors in the order a person reads files: by file, line, column; equal ones once. */
export function sortIssues(issues: readonly ConfigIssue[]): ConfigIssue[] {
  const seen = new Set<string>()
  const unique = issues.filter((entry) => {
    const id = JSON.stringify(entry)
    if (seen.has(id)) return false
    seen.add(id)
    return true
  })
  return unique.sort(
    (a, b) => compareText(a.file, b.file) || a.line - b.line || a.column - b.column || compareText(a.key, b.key),
  )
}

/** A hint `did you mean …?` when one of `known` is near enough to `name` to be a slip of the keyboard. */
export function nearestHint(name: string, known: Iterable<string>): string | undefined {
  const nearest = nearestName(name, known)
  return nearest === undefined ? undefined : `did you mean \`${nearest}\`?`
}

/** Order of plain text by code unit, the same on every machine. */
export function compareText(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0
}

function issue(at: Place, key: string, message: string, hint: string | undefined): ConfigIssue {
  const base = { file: at.file, line: at.line, column: at.column, key, message }
  return hint === undefined ? base : { ...base, hint }
}
