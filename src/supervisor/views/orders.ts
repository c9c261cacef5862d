/** Where orders meet their files, the configuration, commands and molecules. */

import { parseDurationMs } from '../../contract/base/durations.ts'
import { fileStart } from '../../files/issues.ts'
import { elementsOf, emptyTable, tableOf } from '../../files/toml.ts'
import { type EffectiveConfig, originsOf } from '../../modules/config/compose/effective.ts'
import { config as configuration } from '../../modules/config/family.ts'
import { execs } from '../../modules/execs/family.ts'
import { isLive } from '../../modules/molecules/engine/base/rows.ts'
import { molecules } from '../../modules/molecules/family.ts'
import type { OrderSettings } from '../../modules/orders/definitions/definition.ts'
import type { OrderContext } from '../../modules/orders/family.ts'
import type { OrderExecs, OrderMolecules } from '../../modules/orders/runs/ports.ts'
import { formulas } from './formulas.ts'
import { stepsOf } from './molecules.ts'
import { isRigSuspended } from './objects.ts'
import type { Running } from './running.ts'

export function orderContext(city: Running): OrderContext {
  const { store, host } = city
  const { config } = configuration.of(city)
  return {
    store,
    db: store.db,
    events: store.log,
    clock: host.clock,
    logger: host.log,
    catalog: formulas.of(city).catalog,
    settings: () => settingsOf(config.current()),
    rigNames: () => config.current().rigs.map(({ name }) => name),
    onReconfigured: (listener) => config.onChange(listener),
    suspension: { of: (rig) => city.record.suspended || (rig !== undefined && isRigSuspended(city, rig)) },
    execs: execsOf(city),
    molecules: moleculesOf(city),
    listen: (orders) => {
      const all = execs.of(city).execs
      all.own('order', {
        started: (tx, { ref }) => orders.execStarted(tx, ref),
        ended: (tx, { ref }, outcome) => orders.execEnded(tx, ref, outcome),
      })
      all.own('condition', { ended: (tx, { id, ref }, outcome) => orders.checkEnded(tx, id, ref, outcome) })
    },
  }
}

const known = new WeakMap<EffectiveConfig, OrderSettings>()

function settingsOf(config: EffectiveConfig): OrderSettings {
  const made = known.get(config) ?? readSettings(config)
  known.set(config, made)
  return made
}

function readSettings(config: EffectiveConfig): OrderSettings {
  const { orders, workspace } = config
  const { skip, max_timeout: most, overrides } = orders
  const nodes = elementsOf(tableOf(originsOf(config).settings, 'orders') ?? emptyTable(), 'overrides')
  return {
    skip: skip ?? [],
    maxTimeoutMs: most === undefined || most === '' ? undefined : parseDurationMs(most),
    // What is written out as empty is as if it were not there.
    zone: workspace.timezone === '' ? undefined : workspace.timezone,
    overrides: (overrides ?? []).map((override, index) => ({
      ...override,
      at: nodes[index]?.at ?? fileStart('city.toml'),
      key: `orders.overrides[${index}]`,
    })),
  }
}

function execsOf(city: Running): OrderExecs {
  const all = () => execs.of(city).execs
  const { config } = configuration.of(city)
  return {
    begin: (tx, { rig, file_dir, order, run_id, ...exec }) =>
      all().begin(tx, {
        ...exec,
        cwd: config.current().rigs.find(({ name }) => name === rig)?.path ?? '.',
        about: {
          file_dir,
          order,
          ...(rig === undefined ? {} : { rig }),
          ...(run_id === undefined ? {} : { run_id }),
        },
      }),
    lives: (id) => all().find(id) !== undefined,
  }
}

function moleculesOf(city: Running): OrderMolecules {
  const all = () => molecules.of(city)
  return {
    start: (tx, { keep_ms: keep, timeout_ms: timeout, ...start }) =>
      all().starting.start(tx, { ...start, keep, timeout, setsCommands: true }).id,
    lives: (id) => {
      const found = all().reads.find(id)
      return found !== undefined && isLive(found.status)
    },
    rootOf: (bead) => stepsOf(city).of(bead)?.molecule,
  }
}
