/** One formula, or one order, as its file and those that it is made of come to. */
import { createHash } from 'node:crypto'
import type { CatalogFormula } from '../../../automation/catalog.ts'
import {
  type CompiledFormula as Compilation,
  compileFormula,
  type FormulaSources,
} from '../../../automation/formula.ts'
import type { Plan } from '../../../automation/plan.ts'
import { sortIssues } from '../../../files/issues.ts'
import { type PlainTable, readPlainToml } from '../../../files/toml.ts'
import { present } from '../../../kernel/present.ts'
import { documentOf, faultsOf, issueAt, untrustedIssue } from './faults.ts'
import { type Asked, answerOf, type Scope, shadowsOf } from './scope.ts'
import { type SourceFile, type Sources, winnerOf } from './sources.ts'

export interface CompiledFormula {
  readonly formula: CatalogFormula
  /** What it was made of, and what it looked for in vain. */
  readonly asked: readonly Asked[]
  readonly shadows: readonly string[]
  /** Undefined where it is no TOML. */
  readonly definition: PlainTable | undefined
  readonly source: SourceFile
  /** Formulas that it extends or expands, also by way of others. */
  readonly uses: readonly string[]
  /** Of one that is not valid too. */
  readonly texts: { readonly title?: string; readonly description?: string }
}

const NOTHING = { uses: [], texts: {} }

export function compiledOf(sources: Sources, scope: Scope, name: string): CompiledFormula | undefined {
  const trusted = scope.formula(name)
  const source = trusted ?? heldOf(sources, scope.rig, name)
  if (source === undefined) return undefined
  const asked = new Map<string, Asked>()
  const look = (kind: Asked['kind'], one: string): void => {
    asked.set(`${kind}\0${one}`, { kind, name: one, answer: answerOf(scope, kind, one) })
  }
  look('formula', name)
  const rest = { source, definition: definitionOf(source), shadows: shadowsOf(sources, scope, name) }
  const about = { ...documentOf(source), ...rigOf(source, scope) }
  const faults = trusted === undefined ? [untrustedIssue(source)] : faultsOf('formula', source)
  if (faults.length > 0)
    return {
      ...rest,
      ...NOTHING,
      asked: [...asked.values()],
      formula: { ...about, hash: source.revision, issues: faults },
    }
  const {
    plan,
    issues,
    definition: said,
  } = compiling(name, source, {
    formula: (one) => {
      look('formula', one)
      return scope.formula(one)
    },
    fragment: (one) => {
      look('fragment', one)
      return scope.fragment(one)?.text
    },
    formulaNames: () => {
      look('formulas', '')
      return scope.formulaNames()
    },
    fragmentNames: () => {
      look('fragments', '')
      return scope.fragmentNames()
    },
  })
  const isOfRig = [...asked.values()].some((one) => isOwn(sources, scope, one))
  const formula = {
    ...about,
    ...(isOfRig ? { rig: scope.rig } : {}),
    hash: plan === undefined ? source.revision : hashOf(plan),
    issues: sortIssues(issues),
    ...(plan === undefined || issues.length > 0 ? {} : { plan }),
  }
  const { uses, title, description } = said
  return { ...rest, asked: [...asked.values()], formula, uses, texts: present({ title, description }) }
}

/** What is wrong with the grammar of one file is no reason that the others are not there. */
function compiling(
  name: string,
  source: SourceFile,
  sources: FormulaSources,
): Pick<Compilation, 'plan' | 'issues' | 'definition'> {
  try {
    return compileFormula(name, sources)
  } catch (error) {
    const message = `cannot be compiled: ${error instanceof Error ? error.message : String(error)}`
    return { issues: [issueAt(source, message)], definition: { vars: {}, uses: [] } }
  }
}

const isOwn = ({ rigs }: Sources, { rig }: Scope, { kind, name }: Asked): boolean => {
  const own = rigs.get(rig)
  if (own === undefined) return false
  return kind === 'formula'
    ? winnerOf(own.formulas.get(name)) !== undefined
    : kind === 'fragment' && own.fragments.has(name)
}

const rigOf = ({ home }: SourceFile, { rig }: Scope) => (home.rig === '' ? {} : { rig })

function heldOf({ city, rigs }: Sources, rig: string, name: string): SourceFile | undefined {
  return (rigs.get(rig)?.formulas.get(name) ?? city.formulas.get(name))?.held.at(-1)
}

const hashOf = (plan: Plan): string => createHash('sha256').update(JSON.stringify(plan)).digest('hex')

function definitionOf({ text, unreadable }: SourceFile): PlainTable | undefined {
  if (unreadable !== undefined) return undefined
  try {
    return readPlainToml(text)
  } catch {
    return undefined
  }
}
