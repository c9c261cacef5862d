/** Formulas as answers show them. */
import type { CatalogDocument, CatalogOrder } from '../../automation/catalog.ts'
import { graphOf } from '../../automation/graph.ts'
import type { Plan, PlanStep } from '../../automation/plan.ts'
import { FormulaFile } from '../../contract/automation/formula-file.ts'
import type { Formula, FormulaDetail } from '../../contract/automation/formulas.ts'
import { maskedCopy } from '../../files/mask.ts'
import { present } from '../../kernel/present.ts'
import type { CompiledFormula } from './catalog/compiled.ts'
import { referrersOf } from './catalog/referrers.ts'
import type { Snapshot } from './catalog/snapshot.ts'
import type { SettingReferrer } from './edit.ts'

export function formulaView({ formula, uses, shadows, texts }: CompiledFormula): Formula {
  const { hash, plan } = formula
  const steps = plan === undefined ? 0 : countSteps(plan.steps)
  return {
    ...placeView(formula),
    hash,
    ...present({ title: plan?.title ?? texts.title, description: plan?.description ?? texts.description }),
    ...present({ target: plan?.target, timeout_ms: plan?.timeout }),
    vars: Object.entries(plan?.vars ?? {}).map(varView),
    steps,
    startable: steps > 0,
    uses: [...uses],
    shadows: [...shadows],
  }
}

export function formulaDetail(
  snapshot: Snapshot,
  compiled: CompiledFormula,
  settings: readonly SettingReferrer[],
): FormulaDetail {
  const { formula, definition } = compiled
  const { name, rig, plan } = formula
  const named = [...referrersOf(snapshot, name), ...settings].filter(
    (one) => snapshot.formula(name, one.rig)?.file === formula.file && (rig === undefined || one.rig === rig),
  )
  return {
    ...formulaView(compiled),
    // Variables of commands may be secrets, and whoever may read the city reads this.
    ...present({ definition: definition === undefined ? undefined : { ...maskedCopy(definition, FormulaFile) } }),
    graph: graphOf(plan?.steps ?? [], { showsPattern: true, facts: (_, step) => ({ included: alone(step) }) }),
    used_by: named.map((one) => ({ ...one })),
  }
}

/** Without values, conditions are open. */
const alone = ({ condition }: PlanStep) => (condition === undefined ? 'yes' : 'unknown')

function placeView({ name, layer, pack, untrusted, file, revision, issues, rig }: PlacedDocument) {
  return {
    name,
    ...present({ rig, pack, untrusted_pack: untrusted }),
    layer,
    file,
    revision,
    valid: issues.length === 0,
    issues: issues.map((issue) => ({ ...issue })),
  }
}
type PlacedDocument = CatalogDocument & { readonly rig?: string }

export const storedOrder = (order: CatalogOrder) => ({ ...placeView(order), text: order.text })

const varView = ([name, { type, enum: values, ...rest }]: [string, Plan['vars'][string]]): Formula['vars'][number] => ({
  name,
  type,
  ...rest,
  ...(values === undefined ? {} : { enum: [...values] }),
})

const countSteps = (steps: readonly PlanStep[]): number =>
  steps.reduce((sum, { body }) => sum + 1 + (body.kind === 'group' ? countSteps(body.steps) : 0), 0)
