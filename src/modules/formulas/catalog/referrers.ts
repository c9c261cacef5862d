/** Who names a formula. */
import type { PlainTable, PlainValue } from '../../../files/toml.ts'
import { isPlainTable } from '../../../files/toml.ts'
import type { Snapshot } from './snapshot.ts'

export interface NamedFormula {
  readonly name: string
  readonly rig?: string
}

export interface DocumentReferrer extends NamedFormula {
  readonly kind: 'formula' | 'order'
  readonly key: string
  readonly file: string
}

/** Formulas and orders whose files name it, whichever of that name they get. */
export function referrersOf(snapshot: Snapshot, name: string): readonly DocumentReferrer[] {
  const formulas = snapshot.everyFormula().flatMap(({ formula, definition }): readonly DocumentReferrer[] => {
    const key = definition === undefined ? undefined : keyNaming(definition, name)
    if (key === undefined || formula.name === name) return []
    return [{ kind: 'formula', ...namedOf(formula), key, file: formula.file }]
  })
  const orders = snapshot
    .orders()
    .flatMap((order): readonly DocumentReferrer[] =>
      order.order?.action.kind === 'formula' && order.order.action.formula === name
        ? [{ kind: 'order', ...namedOf(order), key: 'formula', file: order.file }]
        : [],
    )
  return [...formulas, ...orders]
}

const namedOf = ({ name, rig }: NamedFormula): NamedFormula => (rig === undefined ? { name } : { name, rig })

function keyNaming(definition: PlainTable, name: string): string | undefined {
  const parents = definition['extends']
  if (Array.isArray(parents) ? parents.includes(name) : parents === name) return 'extends'
  return expands(definition['steps'], name) ? 'expand' : undefined
}

function expands(steps: PlainValue | undefined, name: string): boolean {
  if (!Array.isArray(steps)) return false
  return steps.some((step) => isPlainTable(step) && (step['expand'] === name || expands(step['children'], name)))
}
