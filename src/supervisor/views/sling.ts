/** Where sling meets beads, molecules and configuration. */
import { beads as beadFamily } from '../../modules/beads/family.ts'
import type { BeadRecord } from '../../modules/beads/store/record.ts'
import { isWorkable } from '../../modules/beads/store/record.ts'
import type { WorkCity } from '../../modules/beads/work/city.ts'
import { placeOf, tierOf } from '../../modules/beads/work/drafts.ts'
import { config as configuration } from '../../modules/config/family.ts'
import { wireMolecule } from '../../modules/molecules/engine/base/wire.ts'
import { molecules } from '../../modules/molecules/family.ts'
import type { SlingBeads, SlingCity, SlingTargets, SlungBead } from '../../modules/sling/ports.ts'
import type { Running } from './running.ts'
import { targetsOf } from './targets.ts'

export function slingContext(city: Running): SlingCity {
  return {
    store: city.store,
    beads: slingBeads(beadFamily.of(city)),
    targets: slingTargets(city),
    start(tx, wish) {
      const started = molecules.of(city).starting.start(tx, wish)
      return { id: started.id, warnings: wireMolecule(started, false).warnings }
    },
  }
}

const MEMBERS = `SELECT b.id FROM (
    SELECT depends_on_id AS id FROM bead_deps WHERE issue_id = ? AND type = 'tracks'
    UNION SELECT id FROM beads WHERE parent = ?) AS m
  JOIN beads AS b ON b.id = m.id WHERE b.status <> 'closed' ORDER BY b.created_at, b.id LIMIT ?`

function slingBeads({ beads, claims, config, steps, store: { db } }: WorkCity): SlingBeads {
  const slung = (bead: BeadRecord): SlungBead => {
    const ties = steps.ties([bead.id])
    const driver = ties.find(({ is, live }) => is === 'subject' && live)?.molecule
    const partOf = ties.find(({ is }) => is !== 'subject')?.molecule
    const isWork = isWorkable(bead.issue_type, bead.labels)
    const { id, issue_type, status, rig, assignee, routed_to } = bead
    return { id, issue_type, status, rig, assignee, routed_to, isWork, driver, partOf }
  }
  return {
    find(id) {
      const bead = beads.find(id)
      return bead === undefined ? undefined : slung(bead)
    },
    members: (convoy, limit) =>
      beads.load(db.all(MEMBERS, convoy, convoy, limit).map(({ id }) => String(id))).map(slung),
    create: (tx, { title, description, rig }, actor) => {
      const place = placeOf(config(), rig === '' ? undefined : rig)
      return beads.insert(tx, { ...place, ...tierOf(config(), {}, 'body'), title, description }, actor).id
    },
    route(tx, id, target, actor) {
      const before = beads.need(id)
      const free = before.status === 'in_progress' ? claims.release(tx, before, undefined, actor, 'reassigned') : before
      beads.change(tx, free, { routed_to: target, assignee: null }, actor)
    },
  }
}

function slingTargets(city: Running): SlingTargets {
  const config = () => configuration.of(city).config.current()
  const { rigOf, agentOf, resolve, suspended } = targetsOf(city)
  return {
    resolve,
    names: () => [...config().agents, ...config().named_sessions].map(({ identity }) => identity),
    hasRig: (name) => rigOf(name) !== undefined,
    rigNames: () => config().rigs.map(({ name }) => name),
    defaultOf: (rig) => rigOf(rig)?.default_sling_target,
    formulaOf: (target) => agentOf(target)?.default_sling_formula,
    idle(target) {
      const what = suspended(target)
      if (what === undefined) return undefined
      return { code: 'target_suspended', message: `${what} is suspended: it waits until somebody resumes it` }
    },
  }
}
