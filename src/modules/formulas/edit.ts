/**
 * Writing and deleting files of formulas and orders. They go through the edits of the configuration, whose revision they
 * are part of: one at a time, checked before anything is written, files and events together, completed after a crash.
 */
import { createHash } from 'node:crypto'
import { join, relative, sep } from 'node:path'
import type { ErrorDetail } from '../../contract/base/problems.ts'
import { cut } from '../../contract/base/text.ts'
import { type Configuration, type Edited, type TextFiles, waitingHeader } from '../../files/configuration.ts'
import { TOML_FILE } from '../../files/documents.ts'
import { diskFiles, overlayFiles } from '../../files/files.ts'
import type { ConfigIssue } from '../../files/issues.ts'
import { nearestName } from '../../kernel/near-names.ts'
import { invalidField, type Problem, problem } from '../../kernel/problem.ts'
import type { Catalog } from './catalog/catalog.ts'
import { type DocumentKind, nameFault } from './catalog/faults.ts'
import { type NamedFormula, referrersOf } from './catalog/referrers.ts'
import type { Snapshot } from './catalog/snapshot.ts'
import type { DocumentLayout } from './catalog/sources.ts'

/** Something of the configuration that names a formula. */
export interface SettingReferrer {
  readonly kind: 'agent' | 'agent_defaults'
  readonly name: string
  /** Rig whose layers it is looked up in; absent: the city. */
  readonly rig?: string
  readonly key: string
  readonly file: string
}

export interface DocumentEdits<View> {
  readonly dir: string
  readonly config: Configuration<View>
  readonly catalog: Catalog
  readonly layout: (view: View) => DocumentLayout
  /** What the configuration names as this formula. */
  readonly settings: (view: View, name: string) => readonly SettingReferrer[]
}

/** One file, and who asks for what of it. */
export interface DocumentEdit {
  readonly kind: DocumentKind
  readonly name: string
  readonly rig?: string | undefined
  readonly ifMatch: string | undefined
  readonly actor: string
}

export interface Put {
  readonly created: boolean
  /** Formulas that are not valid any more. */
  readonly breaks: readonly NamedFormula[]
  /** Of an edit that waits for the rest of the configuration. */
  readonly headers: Record<string, string>
}

/** Creates or replaces the file; refused where it would not be valid. */
export async function putDocument<View>(
  deps: DocumentEdits<View>,
  edit: DocumentEdit & { readonly text: string; readonly shadow: boolean },
): Promise<Put> {
  const { kind, name, rig = '', text } = edit
  const fault = nameFault(kind, name)
  if (fault !== undefined) throw invalidField('path.name', fault, name.slice(0, 100))
  const { result, rejected } = await changed(deps, edit, (files, path) => {
    const before = deps.catalog.now
    const created = revisionAt(deps.dir, path) === undefined
    if (created && !edit.shadow) refusePacks(before, edit)
    const candidate = deps.catalog.candidate(overlayFiles(diskFiles(), new Map([[join(deps.dir, path), text]])))
    const { issues } = candidate.check(kind, name, text, rig)
    if (issues.length > 0) throw invalidDocument(issues)
    files.set(path, text)
    return { created, breaks: broken(before, candidate) }
  })
  return { ...result, headers: waitingHeader(rejected) }
}

/** Deletes the file; refused while something needs what it says. */
export async function deleteDocument<View>(deps: DocumentEdits<View>, edit: DocumentEdit): Promise<{ file: string }> {
  // A name that no file may have deletes only what a directory has under it: others lead out of it.
  const now = deps.catalog.now
  if (nameFault(edit.kind, edit.name) !== undefined && documentIn(now, edit) === undefined) throw missing(edit, now)
  const { result } = await changed(deps, edit, (files, path, view) => {
    if (revisionAt(deps.dir, path) === undefined) throw notOwn(deps.catalog.now, edit)
    const candidate = deps.catalog.candidate(overlayFiles(diskFiles(), new Map([[join(deps.dir, path), null]])))
    if (edit.kind === 'formula') refuseReferred(deps, edit, candidate, view)
    files.delete(path)
    return { file: path }
  })
  return result
}

/** The edit of one file; what it comes to is seen, and told of, when it resolves. */
async function changed<View, T>(
  { config, dir, catalog, layout }: DocumentEdits<View>,
  edit: DocumentEdit,
  change: (files: TextFiles, path: string, view: View) => T,
): Promise<Edited<View, T>> {
  const path = placeOf(catalog.now, dir, edit)
  const outcome = await config.edit({
    actor: edit.actor,
    ifMatch: edit.ifMatch,
    // What else of the configuration has changed meanwhile does not concern it.
    mends: true,
    waits: 'text',
    documents: [path],
    etag: () => {
      const revision = revisionAt(dir, path)
      if (revision === undefined && edit.ifMatch !== undefined)
        throw problem('precondition-failed', `there is no file ${path}`)
      return revision ?? ''
    },
    change: (files, view) => change(files, path, view),
    alsoWrite: (tx, { config: view }) => catalog.change(tx, catalog.candidate(diskFiles(), layout(view)), edit.actor),
  })
  // While the configuration is refused for something else, nothing has looked at the file yet.
  if (outcome.rejected.length > 0) {
    catalog.look(diskFiles())
    await catalog.settle()
  }
  return outcome
}

/** Path of the file, relative to the city. */
function placeOf({ layout }: Snapshot, dir: string, { kind, name, rig = '' }: DocumentEdit): string {
  const home = layout.homes.find((one) => one.rig === rig && one.layer !== 'pack')
  const folder = kind === 'formula' ? home?.formulas : home?.orders
  if (folder !== undefined)
    return relative(dir, join(folder, `${name}${TOML_FILE}`))
      .split(sep)
      .join('/')
  if (home === undefined)
    throw problem('conflict-config', `the rig ${rig} has no directory of its own: set its \`formulas_dir\``)
  throw problem(
    'conflict-config',
    `the rig ${rig} has no orders of its own: they are in \`orders/\` beside a \`formulas_dir\` that is called \`formulas\``,
  )
}

/** SHA-256 (hex) of the file on disk; undefined where there is none. */
function revisionAt(dir: string, path: string): string | undefined {
  try {
    const bytes = diskFiles().read(join(dir, path), dir)
    return bytes === undefined ? undefined : createHash('sha256').update(bytes).digest('hex')
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error)
    throw problem('conflict-config', `${path} cannot be read: ${why}`, { cause: error })
  }
}

function refusePacks(snapshot: Snapshot, edit: DocumentEdit): void {
  const known = documentIn(snapshot, edit)
  if (known?.pack === undefined) return
  throw problem(
    'pack-derived',
    `the ${edit.kind} ${edit.name} belongs to the pack ${known.pack} (${known.file}): shadow=true writes one that takes its place`,
  )
}

function notOwn(snapshot: Snapshot, edit: DocumentEdit): Problem {
  const known = documentIn(snapshot, edit)
  if (known === undefined) return missing(edit, snapshot)
  if (known.pack !== undefined)
    return problem('pack-derived', `the ${edit.kind} ${edit.name} belongs to the pack ${known.pack} (${known.file})`)
  const city = `that of the city (${known.file}) is deleted without \`rig\``
  return problem(
    'conflict-config',
    `the rig ${edit.rig} has no file of its own for the ${edit.kind} ${edit.name}: ${city}`,
  )
}

export function missing({ kind, name, rig }: Pick<DocumentEdit, 'kind' | 'name' | 'rig'>, snapshot: Snapshot): Problem {
  const elsewhere = snapshot.layout.rigs.filter((one) =>
    kind === 'formula' ? snapshot.formula(name, one) !== undefined : snapshot.order(name, one) !== undefined,
  )
  const where = rig === undefined ? '' : ` of the rig ${rig}`
  const code = kind === 'formula' ? 'formula-not-found' : 'order-not-found'
  const shown = `${cut(name, 100)}${where}`
  if (rig === undefined && elsewhere.length > 0)
    return problem(code, `there is no ${kind} ${shown}: the rig ${elsewhere[0]} has one, \`rig\` names it`)
  const orders = () => snapshot.orders().filter((order) => order.rig === rig)
  const known = kind === 'formula' ? snapshot.names(rig) : orders().map((order) => order.name)
  const nearest = nearestName(name, known)
  return problem(code, `there is no ${kind} ${shown}${nearest === undefined ? '' : `: did you mean ${nearest}?`}`)
}

const documentIn = (snapshot: Snapshot, { kind, name, rig }: DocumentEdit) =>
  kind === 'formula' ? snapshot.formula(name, rig) : snapshot.order(name, rig)

function refuseReferred<View>(
  { settings }: DocumentEdits<View>,
  { name }: DocumentEdit,
  candidate: Snapshot,
  view: View,
): void {
  const left = [...referrersOf(candidate, name), ...settings(view, name)].filter(
    ({ rig }) => candidate.formula(name, rig) === undefined,
  )
  if (left.length === 0) return
  const names = left.slice(0, 5).map((one) => `${one.kind} ${one.name} (${one.file})`)
  const more = left.length > names.length ? ` and ${left.length - names.length} more` : ''
  const errors = left.map(
    (one): ErrorDetail => ({ location: one.file, message: `${one.kind} ${one.name} names it as ${one.key}` }),
  )
  throw problem('still-referenced', `the formula ${name} is still in use by ${names.join(', ')}${more}`, { errors })
}

const MAX_ISSUES = 100

function invalidDocument(issues: readonly ConfigIssue[]): Problem {
  const [first] = issues
  const text =
    first === undefined ? 'the file is not valid' : `${first.file}:${first.line}:${first.column}: ${first.message}`
  const more = issues.length > 1 ? ` (and ${issues.length - 1} more)` : ''
  return problem('invalid-config', `${text}${more}`, { issues: issues.slice(0, MAX_ISSUES).map((one) => ({ ...one })) })
}

/** Formulas that were valid and are not any more. */
function broken(before: Snapshot, after: Snapshot): readonly NamedFormula[] {
  return after
    .everyFormula()
    .filter(
      ({ formula }) => formula.plan === undefined && before.formula(formula.name, formula.rig)?.plan !== undefined,
    )
    .map(({ formula: { name, rig } }) => ({ name, ...(rig === undefined ? {} : { rig }) }))
}
