/** Handlers of formulas, and of the files of orders: one small function per operation (decisions 105, 115, 118). */
import type { Value } from '../../automation/plan.ts'
import type { Target } from '../../automation/target.ts'
import type { VarValues } from '../../automation/vars.ts'
import { checkVars } from '../../automation/vars.ts'
import type { orderDocumentOperations } from '../../contract/automation/documents.ts'
import { TOML_TYPE } from '../../contract/automation/documents.ts'
import type { FormulaPreview, formulaOperations, StoredFormula } from '../../contract/automation/formulas.ts'
import type { WorkWarning } from '../../contract/automation/molecules.ts'
import { cut } from '../../contract/base/text.ts'
import { compareText } from '../../files/issues.ts'
import { readPlainToml } from '../../files/toml.ts'
import { defineHandlers, ok, RawBody, type Reply } from '../../kernel/call.ts'
import type { Clock } from '../../kernel/clock.ts'
import { Page } from '../../kernel/page.ts'
import { present } from '../../kernel/present.ts'
import { invalidField, problem } from '../../kernel/problem.ts'
import type { Store } from '../../kernel/store.ts'
import { waitForChange } from '../../kernel/waiting.ts'
import type { Catalog } from './catalog/catalog.ts'
import type { CompiledFormula } from './catalog/compiled.ts'
import { type DocumentKind, nameFault } from './catalog/faults.ts'
import type { Snapshot } from './catalog/snapshot.ts'
import { type DocumentEdits, deleteDocument, missing, putDocument } from './edit.ts'
import { type Known, previewOf } from './preview.ts'
import { formulaDetail, formulaView, storedOrder } from './views.ts'

export interface FormulaCity<View> {
  readonly store: Pick<Store, 'log'>
  readonly catalog: Catalog
  readonly edits: DocumentEdits<View>
  /** `formula_vars` of a rig. */
  readonly rigVars: (rig: string) => VarValues
  /** What templates see of the city, of a rig, of a bead; of the latter undefined where there is none. */
  readonly city: () => Known
  readonly rig: (name: string) => Known
  readonly bead: (id: string) => Value | undefined
  /** Whom a word means, in a rig or, where that is empty, in the city. */
  readonly resolveTarget: (target: string, rig: string) => Target
}

interface NamedCall<View> {
  readonly params: { readonly name: string }
  readonly query: { readonly rig?: string; readonly shadow?: boolean }
  readonly city: FormulaCity<View>
  readonly header: (name: string) => string | undefined
  readonly actor: string
}

/** Whom gates and questions are for. */
const HUMAN = 'human'

const isRelevant = ({ type }: { readonly type: string }): boolean =>
  type === 'formula.changed' || type === 'config.reloaded'

export function createFormulaHandlers<View>({ clock }: { readonly clock: Clock }) {
  const index = ({ store }: FormulaCity<View>) => ({ 'X-SVC-Index': String(store.log.head) })

  const detail = ({ catalog, edits }: FormulaCity<View>, compiled: CompiledFormula) =>
    formulaDetail(catalog.now, compiled, edits.settings(edits.config.current(), compiled.formula.name))

  const source = (text: string, revision: string): Reply<RawBody> => ({
    status: 200,
    body: new RawBody(text, `${TOML_TYPE}; charset=utf-8`),
    headers: { ETag: `"${revision}"` },
  })

  const put = async (kind: DocumentKind, { params, query, city, header, actor }: NamedCall<View>, text: string) => {
    const { rig, shadow = false } = query
    checkRig(city.catalog.now, rig)
    return putDocument(city.edits, { kind, ...params, rig, text, shadow, ifMatch: header('if-match'), actor })
  }

  const remove = async (kind: DocumentKind, { params, query: { rig }, city, header, actor }: NamedCall<View>) => {
    checkRig(city.catalog.now, rig)
    const { file } = await deleteDocument(city.edits, { kind, ...params, rig, ifMatch: header('if-match'), actor })
    return ok({ status: 'deleted' as const, name: params.name, ...present({ rig }), file })
  }

  const check = (kind: DocumentKind, city: FormulaCity<View>, { source: text, name, rig }: Draft) => {
    const { now } = city.catalog
    checkRig(now, rig)
    const { file, issues } = now.check(kind, name?.replace(/\.toml$/, '') ?? nameIn(kind, text), text, rig)
    return ok({ valid: issues.length === 0, file, issues: issues.map((issue) => ({ ...issue })) })
  }

  return defineHandlers<readonly [...typeof formulaOperations, ...typeof orderDocumentOperations], FormulaCity<View>>({
    'list-formulas': async (call) => {
      const { query, signal } = call
      await waitForChange(call.city.store.log, query, clock, signal, isRelevant)
      const { city } = call
      const headers = index(city)
      const { now } = city.catalog
      checkRig(now, query.rig)
      const all = query.rig === undefined ? now.everyFormula() : now.formulas(query.rig)
      const items = all
        .map(formulaView)
        .filter((one) => query.layer === undefined || one.layer === query.layer)
        .filter((one) => query.pack === undefined || one.pack === query.pack)
        .filter((one) => query.valid === undefined || one.valid === query.valid)
        .filter((one) => query.startable === undefined || one.startable === query.startable)
      const page = new Page('formulas', ['string', 'string'], query)
      return ok({ ...page.of(behind(items, page.after), placeOf), total: items.length }, headers)
    },

    'get-formula': ({ params, query, city }) => {
      const headers = index(city)
      const compiled = compiledIn(city.catalog.now, params.name, query.rig)
      return ok(detail(city, compiled), { ...headers, ETag: `"${compiled.formula.revision}"` })
    },

    'get-formula-source': ({ params, query, city }) => {
      const { source: file } = compiledIn(city.catalog.now, params.name, query.rig)
      refuseUnreadable(file.unreadable?.message, file.file)
      return source(file.text, file.revision)
    },

    'put-formula': async (call) => {
      const { created, breaks, headers } = await put('formula', call, call.body)
      const { city, params, query } = call
      const compiled = compiledIn(city.catalog.now, params.name, query.rig)
      const body: StoredFormula = { ...detail(city, compiled), breaks: breaks.map((one) => ({ ...one })) }
      const tags = { ...index(city), ETag: `"${compiled.formula.revision}"`, ...headers }
      return { status: created ? 201 : 200, body, headers: tags }
    },

    'delete-formula': (call) => remove('formula', call),
    'validate-formula': ({ body, city }) => check('formula', city, body),

    'preview-formula': ({ params, body = {}, city }) => {
      const { vars = {}, rig, bead, target } = body
      const { formula } = compiledIn(city.catalog.now, params.name, rig)
      const { plan, hash, issues } = formula
      if (plan === undefined)
        throw problem('formula-invalid', `the formula ${formula.name} is not valid: ${issues[0]?.message ?? ''}`, {
          issues: issues.map((issue) => ({ ...issue })),
        })
      const checked = checkVars(plan.vars, asValues(vars), rig === undefined ? {} : city.rigVars(rig))
      if (checked.values === undefined) throw wrongVars(checked.issues)
      const around = {
        city: city.city(),
        ...(rig === undefined ? {} : { rig: city.rig(rig) }),
        // Who names no bead would start it about none.
        bead: bead === undefined ? null : beadIn(city, bead),
      }
      const previewed = previewOf({ plan, vars: checked.values, around, target })
      const warnings = [...targetWarnings(previewed, (word) => city.resolveTarget(word, rig ?? ''))]
      return ok({ name: formula.name, ...present({ rig }), hash, vars: { ...checked.values }, ...previewed, warnings })
    },

    'get-order-source': (call) => {
      const { params, query, city } = scopedCall(call)
      const order = orderIn(city.catalog.now, params.name, query.rig)
      refuseUnreadable(order.unreadable, order.file)
      return source(order.text, order.revision)
    },

    'put-order': async (call) => {
      const scoped = scopedCall(call)
      const { created, headers } = await put('order', scoped, call.body)
      const { city, params, query } = scoped
      const order = orderIn(city.catalog.now, params.name, query.rig)
      const tags = { ETag: `"${order.revision}"`, ...headers }
      return { status: created ? 201 : 200, body: storedOrder(order), headers: tags }
    },

    'delete-order': (call) => remove('order', scopedCall(call)),
    'validate-order': ({ body, city }) => check('order', city, body),
  })
}

/** The same as a molecule would say once the step has begun; who depends on what happens is not known yet. */
function* targetWarnings(
  { steps, graph }: Pick<FormulaPreview, 'steps' | 'graph'>,
  resolve: (word: string) => Target,
): Iterable<WorkWarning> {
  const work = new Set(graph.nodes.filter(({ kind }) => kind === 'work').map(({ id }) => id))
  for (const { id, target, assignee, included } of steps) {
    if (included === 'no') continue
    const said = assignee ?? (target === '' ? undefined : target)
    if (said === HUMAN) continue
    if (said === undefined && work.has(id))
      yield { code: 'no_target', message: `step ${id} has no target: it would wait until somebody claims its bead` }
    if (said === undefined || said.includes('{') || resolve(said).known) continue
    yield { code: 'unknown_target', message: `nobody is called ${said}: step ${id} would wait until somebody is` }
  }
}

/** `<name>:rig:<rig>`, as events and histories call the order of a rig, names both. */
function scopedCall<View>({ params, query, city, header, actor }: NamedCall<View>): NamedCall<View> {
  const [, name, rig] = /^(.+?):rig:(.+)$/.exec(params.name) ?? []
  if (name === undefined || rig === undefined) return { params, query, city, header, actor }
  if (query.rig !== undefined && query.rig !== rig)
    throw invalidField('query.rig', `the name is that of an order of ${rig}`, query.rig)
  return { params: { name }, query: { ...query, rig }, city, header, actor }
}

interface Draft {
  readonly source: string
  readonly name?: string
  readonly rig?: string
}

function checkRig(snapshot: Snapshot, rig: string | undefined): void {
  if (rig !== undefined && !snapshot.hasRig(rig)) throw problem('rig-not-found', `there is no rig ${rig}`)
}

function compiledIn(snapshot: Snapshot, name: string, rig: string | undefined): CompiledFormula {
  checkRig(snapshot, rig)
  const found = snapshot.compiled(name, rig)
  if (found === undefined) throw missing({ kind: 'formula', name, rig }, snapshot)
  return found
}

/** Of a rig its own, else that of a pack which says that it is for the city. */
function orderIn(snapshot: Snapshot, name: string, rig: string | undefined) {
  checkRig(snapshot, rig)
  const found = snapshot.order(name, rig)
  if (found === undefined) throw missing({ kind: 'order', name, rig }, snapshot)
  return found
}

function refuseUnreadable(why: string | undefined, file: string): void {
  if (why !== undefined) throw problem('conflict-config', `${file} ${why}`)
}

/** What a file would be called that says nothing of it. */
function nameIn(kind: DocumentKind, text: string): string {
  if (kind === 'order') return 'order'
  try {
    const { formula } = readPlainToml(text)
    if (typeof formula === 'string' && nameFault(kind, formula) === undefined) return formula
  } catch {
    // What is wrong with it is said by the check.
  }
  return 'formula'
}

/** JSON of a body: what the contract takes for any value. */
const asValues = (vars: Readonly<Record<string, unknown>>): VarValues => vars as VarValues

function wrongVars(issues: readonly { readonly name: string; readonly message: string; readonly hint?: string }[]) {
  const errors = issues.map(({ name, message, hint }) => ({
    location: `body.vars.${cut(name, 100)}`,
    message: hint === undefined ? message : `${message} (${hint})`,
  }))
  const [first] = errors
  return problem('validation-failed', `${first?.location ?? 'body.vars'}: ${first?.message ?? 'is not valid'}`, {
    errors,
  })
}

function beadIn<View>({ bead }: FormulaCity<View>, id: string): Value {
  const found = bead(id)
  if (found === undefined) throw problem('bead-not-found', `there is no bead ${cut(id, 100)}`)
  return found
}

interface Named {
  readonly name: string
  readonly rig?: string
}

/** In the order of name and rig: those behind a place. */
function behind<T extends Named>(items: readonly T[], place: readonly [string, string] | undefined): readonly T[] {
  if (place === undefined) return items
  const [name, rig] = place
  return items.filter((one) => (compareText(one.name, name) || compareText(one.rig ?? '', rig)) > 0)
}

const placeOf = ({ name, rig = '' }: Named) => [name, rig] as const
