/**
 * How a family reads and changes the configuration that its objects stand in: the port it is given, and what all of
 * them do with it. Files are text; trees are how they are edited, so that everything else in them stays as it is.
 */
import { isDeepStrictEqual } from 'node:util'
import type { PatchBody, PatchValue } from '../contract/base/merge-patch.ts'
import type { Reply } from '../kernel/call.ts'
import type { Tx } from '../kernel/database.ts'
import type { EventDraft } from '../kernel/event-log.ts'
import type { IdempotencyClaim } from '../kernel/idempotency.ts'
import type { ConfigIssue } from './issues.ts'
import { isPlainTable, type PlainTable, type PlainValue } from './toml.ts'

/** The city's own configuration files during an edit, by relative path: their text, with the changes of this edit. */
export interface TextFiles {
  /** Undefined where there is no such file. */
  get(path: string): string | undefined
  /** Creates or replaces a file. */
  set(path: string, text: string): void
  delete(path: string): void
  /** Paths of the files that exist. */
  list(): readonly string[]
}

/** Keys and list positions from the top of a file. */
export type TreePath = readonly (string | number)[]

/** Edits of files as trees. Comments, order and spelling of everything else stay. */
export interface TreeFiles {
  list(): readonly string[]
  /** What stands in the file; an empty table where there is no such file. */
  read(file: string): PlainTable
  set(file: string, path: TreePath, value: PlainValue): void
  /** Removes a key, a table or an element, however it is written; nothing happens where it is not there. */
  remove(file: string, path: TreePath): void
  addTable(file: string, path: TreePath, values: PlainTable): void
  addElement(file: string, path: TreePath, values: PlainTable): void
}

/** Something that names an object, and where. */
export interface Referrer {
  readonly kind:
    | 'workspace'
    | 'agent_defaults'
    | 'agent'
    | 'provider'
    | 'patch'
    | 'named_session'
    | 'order_override'
    | 'rig'
  readonly name: string
  readonly key: string
  readonly file: string
  readonly line: number
}

export interface Edit<View, T> {
  /** Value of `If-Match`: anything but `etag` of what is stored now answers 412. */
  readonly ifMatch?: string | undefined
  /**
   * Hash of the thing that is edited; the revision of the configuration in force where absent. May refuse what does not
   * exist. `config` is what the files say, also where they are rejected for something.
   */
  readonly etag?: (config: View, files: TextFiles) => string
  /** Who does it: `api` for a request. */
  readonly actor: string
  /** Changes the files; refuses by throwing a Problem. Called once, with nothing in between; `config` as for `etag`. */
  readonly change: (files: TextFiles, config: View) => T
  /** Events of the caller's family, in the transaction of the change; not called where nothing changed. */
  readonly events?: (outcome: Edited<View, T>) => readonly EventDraft[]
  /** Who names the thing that goes away: where they are why the result does not compose, the answer is 409 with them. */
  readonly referrers?: (config: View) => readonly Referrer[]
  /** Idempotency-Key of the request, with the answer to keep for it; both or neither. */
  readonly claim?: IdempotencyClaim | undefined
  readonly reply?: (outcome: Edited<View, T>) => Reply
  /** Rows that change with the files. Not run again after a crash: for what can be made good at the next start. */
  readonly alsoWrite?: (tx: Tx, outcome: Edited<View, T>) => void
  /** Only check: everything but the writing. */
  readonly dryRun?: boolean
  /** Files that it may write though they are none of the configuration: formulas, orders. */
  readonly documents?: readonly string[]
  /** Works on the files as they are on disk, also where nobody has looked at them since they changed: its caller has. */
  readonly mends?: boolean
  /**
   * May be written while the files stay rejected for what else is wrong with them: it is in force once they are not.
   * `drafted`: only where all can be read, so that `config` shows it; `text`: also where it is that which cannot be.
   */
  readonly waits?: 'drafted' | 'text'
}

export interface Edited<View, T> {
  readonly result: T
  /** The configuration with the change; of a dry run too, and of one that waits. */
  readonly config: View
  /** What is still wrong with the files: the change has been written and waits, what was in force stays so. */
  readonly rejected: readonly ConfigIssue[]
  readonly previous: View
  readonly changed: boolean
  readonly warnings: readonly ConfigIssue[]
}

/** What an answer says of a change that waits. */
export function waitingHeader([first]: readonly ConfigIssue[]): Record<string, string> {
  if (first === undefined) return {}
  const text = `${first.file}:${first.line}:${first.column}: ${first.message}`
  return { 'X-SVC-Config-Rejected': text.replace(/[^\x20-\x7e]/g, '?') }
}

/** One city's configuration, as far as `View` shows it; its files change only through `edit`. */
export interface Configuration<View> {
  current(): View
  edit<T>(input: Edit<View, T>): Promise<Edited<View, T>>
}

/** `target` after a JSON Merge Patch (RFC 7396). A table that becomes empty is gone: files do not tell the two apart. */
export function mergePatch(target: PlainTable, patch: PatchBody): PlainTable {
  const merged = new Map(Object.entries(target))
  for (const [key, value] of Object.entries(patch)) {
    const result = mergedValue(merged.get(key), value)
    if (result === undefined) merged.delete(key)
    else merged.set(key, result)
  }
  return Object.fromEntries(merged)
}

function mergedValue(before: PlainValue | undefined, value: PatchValue): PlainValue | undefined {
  if (value === null) return undefined
  if (isPatchList(value)) return value.flatMap((item) => mergedValue(undefined, item) ?? [])
  if (typeof value !== 'object') return value
  const table = mergePatch(isPlainTable(before) ? before : {}, value)
  return Object.keys(table).length === 0 ? undefined : table
}

/** Makes the table at `path`, which holds `before`, hold `wanted`; what is equal in both is not touched. */
export function rewriteTable(
  tree: TreeFiles,
  file: string,
  path: TreePath,
  before: PlainTable,
  wanted: PlainTable,
): void {
  for (const key of Object.keys(before)) if (!Object.hasOwn(wanted, key)) tree.remove(file, [...path, key])
  for (const [key, value] of Object.entries(wanted)) {
    const old = Object.hasOwn(before, key) ? before[key] : undefined
    if (!isDeepStrictEqual(old, value)) tree.set(file, [...path, key], value)
  }
}

/** A body as a table for a file: fields that are absent, and tables without content, are left out. */
export function plainTable(body: object): PlainTable {
  return mergePatch({}, JSON.parse(JSON.stringify(body)))
}

const isPatchList = (value: PatchValue): value is readonly PatchValue[] => Array.isArray(value)

/** The tables of the list at `path`; empty where it is not there, or is no list. */
export function tablesAt(table: PlainTable, ...path: readonly string[]): readonly PlainTable[] {
  let found: PlainValue | undefined = table
  for (const key of path) found = isPlainTable(found) && Object.hasOwn(found, key) ? found[key] : undefined
  return Array.isArray(found) ? found.filter(isPlainTable) : []
}
