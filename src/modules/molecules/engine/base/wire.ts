/** Molecules as clients see them (decisions 103, 119). */
import type { Molecule } from '../../../../contract/automation/molecules.ts'
import { isoTime } from '../../../../kernel/clock.ts'
import { type MoleculeRow, parseWarnings, type StepWarning } from './rows.ts'

/** `warnings` are those that hold; as it starts, all of them. */
export function wireMolecule(
  row: MoleculeRow,
  formulaChanged: boolean,
  warnings: readonly StepWarning[] = parseWarnings(row.warnings),
): Molecule {
  const { id, formula, formula_hash, title, status, rig, target, bead, order_run_id, failure } = row
  const { total, active, waiting, completed, failed, skipped, canceled } = row
  return {
    id,
    formula,
    formula_hash,
    formula_changed: formulaChanged,
    title,
    status,
    ...(rig === '' ? {} : { rig }),
    ...(target === '' ? {} : { target }),
    ...(bead === null ? {} : { bead_id: bead }),
    ...(order_run_id === null ? {} : { order_run_id }),
    vars: JSON.parse(row.vars),
    progress: { total, active, waiting, completed, failed, skipped, canceled },
    ...(failure === null ? {} : { failure: JSON.parse(failure) }),
    warnings: warnings.map(({ code, message }) => ({ code, message })),
    created_at: isoTime(row.created_at),
    updated_at: isoTime(row.updated_at),
    ...(row.closed_at === null ? {} : { closed_at: isoTime(row.closed_at) }),
    ...(row.expires_at === null ? {} : { expires_at: isoTime(row.expires_at) }),
    revision: row.revision,
  }
}
