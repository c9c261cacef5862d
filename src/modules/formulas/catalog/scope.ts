/** Where formulas and fragments are looked up: the city, or a rig with what it has of its own in front. */
import { compareText } from '../../../files/issues.ts'
import { type SourceFile, type Sources, winnerOf } from './sources.ts'

/** What formulas are looked up in. */
export interface Scope {
  /** Empty: the city. */
  readonly rig: string
  formula(name: string): SourceFile | undefined
  fragment(name: string): SourceFile | undefined
  formulaNames(): readonly string[]
  fragmentNames(): readonly string[]
}

export function scopeOf({ city, rigs }: Sources, rig: string): Scope {
  const own = rigs.get(rig)
  const names = (a: ReadonlyMap<string, unknown>, b: ReadonlyMap<string, unknown> | undefined) =>
    [...new Set([...a.keys(), ...(b?.keys() ?? [])])].sort(compareText)
  return {
    rig,
    formula: (name) => winnerOf(own?.formulas.get(name)) ?? winnerOf(city.formulas.get(name)),
    fragment: (name) => own?.fragments.get(name) ?? city.fragments.get(name),
    formulaNames: () => names(city.formulas, own?.formulas),
    fragmentNames: () => names(city.fragments, own?.fragments),
  }
}

export type Asked = {
  readonly kind: 'formula' | 'fragment' | 'formulas' | 'fragments'
  readonly name: string
  /** Hash of what was answered; absent where there was nothing. */
  readonly answer: string | undefined
}

/** What a compilation that asks for this gets, as a hash. */
export function answerOf(scope: Scope, kind: Asked['kind'], name: string): string | undefined {
  if (kind === 'formulas') return scope.formulaNames().join('\n')
  if (kind === 'fragments') return scope.fragmentNames().join('\n')
  const file = kind === 'formula' ? scope.formula(name) : scope.fragment(name)
  return file === undefined ? undefined : `${file.path}\0${file.revision}`
}

/** Files of lower layers with the same name, weakest first. */
export function shadowsOf({ city, rigs }: Sources, { rig }: Scope, name: string): readonly string[] {
  const own = rigs.get(rig)?.formulas.get(name)?.files ?? []
  const all = [...(city.formulas.get(name)?.files ?? []), ...own]
  return all.slice(0, -1).map(({ file }) => file)
}
