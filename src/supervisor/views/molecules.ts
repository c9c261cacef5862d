/** Where molecules meet formulas, configuration and beads. */
import { parseDurationMs } from '../../contract/base/durations.ts'
import { beads } from '../../modules/beads/family.ts'
import type { WorkSteps } from '../../modules/beads/work/steps.ts'
import { config as configuration } from '../../modules/config/family.ts'
import { execs } from '../../modules/execs/family.ts'
import { beadValue } from '../../modules/molecules/engine/steps/scope.ts'
import { type MoleculesContext, molecules } from '../../modules/molecules/family.ts'
import { partOf, tiesOf } from '../../modules/molecules/read/parts.ts'
import { orders } from '../../modules/orders/family.ts'
import { formulas } from './formulas.ts'
import { engineBeads, engineContext } from './molecule-engine.ts'
import type { Running } from './running.ts'
import { targetsOf } from './targets.ts'

export function moleculesContext(city: Running): MoleculesContext {
  const config = () => configuration.of(city).config.current()
  const { rigOf, resolve, suspended } = targetsOf(city)
  const knows = (target: string) => resolve(target, '').known
  return {
    store: city.store,
    keptMs: () => {
      const kept = config().beads.policies?.['molecule']?.delete_after_close ?? 'off'
      return kept === 'off' ? undefined : parseDurationMs(kept)
    },
    engine: engineContext(city, (tx, runId, ended) => orders.find(city)?.orders.moleculeEnded(tx, runId, ended)),
    listen: (molecules) =>
      execs.of(city).execs.own('check', {
        started: (tx, { id }) => molecules.checkStarted(tx, id),
        ended: (tx, { id }, outcome) => molecules.checkEnded(tx, id, outcome),
      }),
    around: {
      catalog: {
        formula: (name, rig) => formulas.of(city).catalog.formula(name, rig),
        formulas: (rig) => formulas.of(city).catalog.formulas(rig),
      },
      rigVars(name) {
        const rig = rigOf(name)
        return rig === undefined ? undefined : (rig.formula_vars ?? {})
      },
      commands: () => config().formulas.commands ?? [],
      rigNames: () => config().rigs.map(({ name }) => name),
      resolveTarget: resolve,
      knows,
      about: (bead) => beadValue(engineBeads(beads.of(city), city.host.clock), bead),
      idle(target) {
        if (!knows(target)) return 'nobody is called so'
        const what = suspended(target)
        return what === undefined ? undefined : `${what} is suspended`
      },
      rigOfBead: (bead) => beads.of(city).beads.find(bead)?.rig,
    },
  }
}

/** What beads ask about molecules. */
export function stepsOf(city: Running): WorkSteps {
  return {
    of(bead) {
      const opened = molecules.find(city)
      return opened === undefined ? undefined : partOf(city.store.db, opened.molecules.plans, bead)
    },
    ties: (ids) => tiesOf(city.store.db, ids),
    cancel: (tx, id, reason, actor) => void molecules.of(city).molecules.cancel(tx, id, reason, actor),
  }
}
