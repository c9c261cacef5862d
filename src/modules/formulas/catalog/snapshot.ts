/**
 * The formulas and orders of a city at one moment. Files are read at once, formulas are compiled when somebody asks for
 * them, and what does not differ from the moment before is taken over from there.
 *
 * C1  A formula is compiled for a scope: one of the city for a rig too, where the rig has its own of what it is made of.
 * C2  What it asked for while it was compiled is known. As long as all of that is the same, so is what came of it.
 * C3  Whatever is wrong with one file, the others stay as they are.
 */
import { createHash } from 'node:crypto'
import { join } from 'node:path'
import type { CatalogFormula, CatalogOrder } from '../../../automation/catalog.ts'
import type { ConfigFiles } from '../../../files/files.ts'
import { type ConfigIssue, compareText } from '../../../files/issues.ts'
import { type CompiledFormula, compiledOf } from './compiled.ts'
import type { DocumentKind } from './faults.ts'
import { type FormulaNames, orderOf, ordersOf } from './orders.ts'
import { answerOf, type Scope, scopeOf, shadowsOf } from './scope.ts'
import { type DocumentLayout, readSources, type SourceFile, type Sources } from './sources.ts'

/** A text as the file that it would be. */
export interface Checked {
  readonly file: string
  readonly issues: readonly ConfigIssue[]
}

export class Snapshot {
  readonly layout: DocumentLayout
  readonly sources: Sources
  readonly #scopes = new Map<string, Scope>()
  readonly #compiled = new Map<string, CompiledFormula>()
  #before: Snapshot | undefined
  #orders: readonly CatalogOrder[] | undefined
  readonly #names: FormulaNames = {
    formula: (name, rig) => this.formula(name, rig),
    names: (rig) => this.names(rig),
  }

  constructor(layout: DocumentLayout, files: ConfigFiles, before?: Snapshot) {
    this.layout = layout
    this.sources = readSources(layout, files)
    this.#before = before
    for (const rig of ['', ...layout.rigs]) this.#scopes.set(rig, scopeOf(this.sources, rig))
  }

  hasRig(rig: string): boolean {
    return rig !== '' && this.#scopes.has(rig)
  }

  formula(name: string, rig = ''): CatalogFormula | undefined {
    return this.compiled(name, rig)?.formula
  }

  /** The same with what it is made of. */
  compiled(name: string, rig = ''): CompiledFormula | undefined {
    const scope = this.#scopes.get(rig)
    if (scope === undefined) return undefined
    if (rig === '') return this.#compile(scope, name)
    const shared = this.compiled(name)
    if (!this.#isApart(rig)) return shared
    const isTheSame = shared?.asked.every(({ kind, name: one, answer }) => answer === answerOf(scope, kind, one))
    return isTheSame === true ? shared : this.#compile(scope, name)
  }

  /** All that can be named in a scope. */
  formulas(rig = ''): readonly CompiledFormula[] {
    return this.names(rig).flatMap((name) => this.compiled(name, rig) ?? [])
  }

  names(rig = ''): readonly string[] {
    const own = rig === '' ? [] : (this.sources.rigs.get(rig)?.formulas.keys() ?? [])
    return [...new Set([...this.sources.city.formulas.keys(), ...own])].sort(compareText)
  }

  /** Those of the city, and those that rigs have of their own. */
  everyFormula(): readonly CompiledFormula[] {
    const ofRigs = this.layout.rigs
      .filter((rig) => this.#isApart(rig))
      .flatMap((rig) => this.formulas(rig).filter(({ formula }) => formula.rig !== undefined))
    return [...this.formulas(), ...ofRigs].sort(
      ({ formula: a }, { formula: b }) => compareText(a.name, b.name) || compareText(a.rig ?? '', b.rig ?? ''),
    )
  }

  orders(): readonly CatalogOrder[] {
    this.#orders ??= ordersOf(this.sources, this.layout, this.#names)
    return this.#orders
  }

  order(name: string, rig?: string): CatalogOrder | undefined {
    return this.orders().find((order) => order.name === name && order.rig === rig)
  }

  /** All that would be wrong with a file of this text. */
  check(kind: DocumentKind, name: string, text: string, rig = ''): Checked {
    const source = this.#draft(kind, name, text, rig)
    return { file: source.file, issues: this.#issuesOf(kind, source, rig) }
  }

  #issuesOf(kind: DocumentKind, source: SourceFile, rig: string): readonly ConfigIssue[] {
    const { name } = source
    if (kind === 'order') return orderOf(source, rig === '' ? undefined : rig, this.#names).issues
    const scope = this.#scopes.get(rig) ?? scopeOf(this.sources, rig)
    const drafted: Scope = {
      ...scope,
      formula: (one) => (one === name ? source : scope.formula(one)),
      formulaNames: () => [...new Set([...scope.formulaNames(), name])].sort(compareText),
    }
    return compiledOf(this.sources, drafted, name)?.formula.issues ?? []
  }

  /** What the moment before knew is of no use any more. */
  forget(): void {
    this.#before = undefined
  }

  /** What tells a state of the files from another, of each formula and order. */
  stamps(): ReadonlyMap<string, string> {
    return new Map([
      ...this.everyFormula().map(({ formula }) => [keyOf('formula', formula), stampOf(formula)] as const),
      ...this.orders().map((order) => [keyOf('order', order), order.revision] as const),
    ])
  }

  #draft(kind: DocumentKind, name: string, text: string, rig: string): SourceFile {
    const own = this.layout.homes.find((home) => home.rig === rig && home.layer !== 'pack')
    const home = own ?? { layer: 'rig', rig, trusted: true, root: '', formulas: '' }
    const dir = (kind === 'order' ? home.orders : home.formulas) ?? ''
    const file = dir === '' ? `${name}.toml` : this.layout.display(join(dir, `${name}.toml`))
    return { name, home, layer: 'city', path: join(dir, `${name}.toml`), file, dir, revision: hashOf(text), text }
  }

  /** A rig that brings nothing has what the city has. */
  #isApart(rig: string): boolean {
    const own = this.sources.rigs.get(rig)
    return own !== undefined && (own.formulas.size > 0 || own.fragments.size > 0)
  }

  #compile(scope: Scope, name: string): CompiledFormula | undefined {
    const key = `${scope.rig}\0${name}`
    const known = this.#compiled.get(key) ?? this.#same(scope, name, key) ?? compiledOf(this.sources, scope, name)
    if (known !== undefined) this.#compiled.set(key, known)
    return known
  }

  #same(scope: Scope, name: string, key: string): CompiledFormula | undefined {
    const before = this.#before
    const made = before === undefined ? undefined : before.#compiled.get(key)
    if (made === undefined) return undefined
    const now = scope.formula(name)
    const isSame = made.asked.every((asked) => asked.answer === answerOf(scope, asked.kind, asked.name))
    return isSame &&
      now?.file === made.formula.file &&
      made.shadows.join() === shadowsOf(this.sources, scope, name).join()
      ? made
      : undefined
  }
}

const keyOf = (kind: 'formula' | 'order', { name, rig = '' }: { name: string; rig?: string }): string =>
  `${kind}\0${rig}\0${name}`

const hashOf = (text: string): string => createHash('sha256').update(text).digest('hex')

const stampOf = ({ revision, hash, file }: CatalogFormula): string => hashOf(`${file}\0${revision}\0${hash}`)
