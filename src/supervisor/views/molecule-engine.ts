/** Where molecules at work meet beads, commands, sessions, orders and configuration. */
import { resolveTarget } from '../../automation/target.ts'
import { CONVOY_TYPE } from '../../contract/convoys.ts'
import { randomHex } from '../../kernel/ids.ts'
import { beads as beadFamily } from '../../modules/beads/family.ts'
import { insertComment } from '../../modules/beads/store/comments.ts'
import { BLOCKING_SQL } from '../../modules/beads/store/shifts.ts'
import type { BeadStore } from '../../modules/beads/store/store.ts'
import type { WorkCity } from '../../modules/beads/work/city.ts'
import { placeOf } from '../../modules/beads/work/drafts.ts'
import { config as configFamily } from '../../modules/config/family.ts'
import { execs as execFamily } from '../../modules/execs/family.ts'
import type {
  EngineBeads,
  EngineExecs,
  EngineSurroundings,
  ExecStart,
  WorkPlace,
} from '../../modules/molecules/engine/base/ports.ts'
import type { MoleculesDeps } from '../../modules/molecules/engine/molecules.ts'
import { sessions as sessionFamily } from '../../modules/sessions/family.ts'
import { worktrees as worktreeFamily } from '../../modules/worktrees/family.ts'
import type { Running } from './running.ts'

type BeadsOf = Pick<WorkCity, 'beads' | 'config'> & { readonly store: Pick<WorkCity['store'], 'db'> }

/** More than a list may have: whoever asks for the items of one sees that they are too many. */
const MAX_MEMBERS = 1_001
const MEMBERS = `SELECT b.id, b.title, b.status FROM (
    SELECT depends_on_id AS id FROM bead_deps WHERE issue_id = ? AND type = 'tracks'
    UNION SELECT issue_id FROM bead_deps WHERE depends_on_id = ? AND type = 'parent-child') AS m
  JOIN beads AS b ON b.id = m.id ORDER BY b.created_at, b.id LIMIT ${MAX_MEMBERS}`
const EDGES = `SELECT issue_id, depends_on_id FROM bead_deps WHERE ${BLOCKING_SQL}
  AND issue_id IN (SELECT value FROM json_each(?)) AND depends_on_id IN (SELECT value FROM json_each(?))`

export function engineBeads({ store: { db }, beads, config }: BeadsOf, clock: { now(): number }): EngineBeads {
  return {
    newId: (tx, rig) => beads.reserveId(tx, placeOf(config(), rig || undefined).prefix, false, new Set()),
    create: (tx, { root, ...bead }, actor) => void beads.insert(tx, { ...bead, root_bead_id: root }, actor),
    find: (id) => beads.find(id),
    close(tx, id, { outcome, reason, failure_class, failure_reason }, actor) {
      const bead = beads.find(id)
      if (bead === undefined || bead.status === 'closed') return undefined
      const change = {
        status: 'closed',
        outcome,
        ...(reason === undefined ? {} : { close_reason: reason }),
        ...(failure_class === undefined ? {} : { failure_class }),
        ...(failure_reason === undefined ? {} : { failure_reason }),
      } as const
      beads.change(tx, bead, change, actor)
      return bead
    },
    resume(tx, id, actor) {
      const open = beads.change(tx, id, { status: 'open' }, actor)
      beads.change(tx, open, { status: 'in_progress' }, actor)
    },
    give: (tx, id, actor) => void beads.change(tx, id, { status: 'open', assignee: null, routed_to: null }, actor),
    block: (tx, id, by, actor) =>
      void beads.change(tx, id, { add_edges: [{ depends_on_id: by, type: 'blocks' }] }, actor),
    comment(tx, id, text) {
      insertComment(tx, id, { text, created_at: clock.now(), author: 'supervisor' })
      beads.change(tx, id, { touched: ['comments'] }, 'supervisor')
    },
    members: (id) => (isConvoy(beads, id) ? db.all(MEMBERS, id, id).map(memberOf) : []),
    edgesAmong: (ids) =>
      db
        .all(EDGES, JSON.stringify(ids), JSON.stringify(ids))
        .map((row) => [String(row.issue_id), String(row.depends_on_id)]),
    remove: (tx, ids, actor) => void beads.removeSome(tx, beads.load(ids), actor, -1),
  }
}

const isConvoy = (beads: BeadStore, id: string): boolean => beads.find(id)?.issue_type === CONVOY_TYPE

function memberOf(row: { readonly [column: string]: unknown }) {
  const status = row.status === 'closed' ? 'closed' : row.status === 'in_progress' ? 'in_progress' : 'open'
  return { id: String(row.id), title: String(row.title), status } as const
}

function engineExecs(city: Running): EngineExecs {
  const { execs } = execFamily.of(city)
  return {
    begin(tx, start) {
      const id = `ex-${randomHex(12)}`
      const ref = `${start.molecule_id}/${start.step_id}`
      const isQueued = execs.begin(tx, { ...commandOf(city, start), id, owner: 'check', ref })
      return { id, isQueued }
    },
    cancel: (tx, id) => execs.cancel(tx, id),
  }
}

function commandOf(city: Running, start: ExecStart) {
  const { command, timeout_ms, env, inherit_env, vars, file_dir, rig, molecule_id, step_id, bead_id, attempt } = start
  const about = {
    ...(rig === '' ? {} : { rig }),
    ...(bead_id === undefined ? {} : { bead_id }),
    file_dir,
    molecule_id,
    step_id,
    attempt,
  }
  const cwd = start.work_dir ?? pathOfRig(city, rig) ?? '.'
  return { command, timeout_ms, env, inherit_env, vars, about, cwd, stdin: start.context, idempotent: false }
}

const pathOfRig = (city: Running, name: string): string | undefined =>
  configFamily
    .of(city)
    .config.current()
    .rigs.find((rig) => rig.name === name)?.path

function surroundings(city: Running, orderEnded: EngineSurroundings['orderEnded']): EngineSurroundings {
  const config = () => configFamily.of(city).config.current()
  const { people } = beadFamily.of(city)
  return {
    city: { name: city.name, path: city.path },
    rig(name) {
      const rig = config().rigs.find((one) => one.name === name)
      if (rig === undefined) return undefined
      return rig.path === undefined ? { name } : { name, path: rig.path }
    },
    workPlace: (session) => workPlaceOf(city, session),
    resolveTarget: (target, rig) => resolveTarget(config(), target, rig),
    canonical: (name) => people.canonical(name),
    interrupt: ({ session_id }, why) => void interruptHolder(city, session_id, why),
    orderEnded,
  }
}

/** The worktree of a session, also where it is gone by now; else the directory that the session works in. */
function workPlaceOf(city: Running, id: string): WorkPlace | undefined {
  const worktree = worktreeFamily.find(city)?.worktrees.ofSession(id)
  if (worktree !== undefined) return { path: worktree.path, branch: worktree.branch }
  const path = sessionFamily.find(city)?.sessions.store.byId(id)?.work_dir
  return path === undefined || path === null || path === '' ? undefined : { path }
}

const INTERRUPT_MS = 10_000
const TOLD_MS = 600_000

/** The turn of who works on what has ended is over, and it learns why. Whoever is gone needs neither. */
async function interruptHolder(city: Running, id: string | null, why: string): Promise<void> {
  const sessions = sessionFamily.find(city)?.sessions
  const session = id === null ? undefined : sessions?.store.byId(id)
  if (sessions === undefined || session === undefined || session.desired !== 'running') return
  try {
    await sessions.actor(session.id)?.interrupt(AbortSignal.timeout(INTERRUPT_MS))
    const text = `Stop: ${why}. Its result is not wanted any more.`
    await city.store.db.write((tx) => {
      const draft = { source: 'nudge', intent: 'default', text, ttlMs: TOLD_MS, wakes: false } as const
      sessions.deliveries.add(tx, sessions.store.need(tx, session.id), draft, 'supervisor')
    })
  } catch (error) {
    city.host.log.warn({ session: session.id, err: error }, 'holder of a closed bead not interrupted')
  }
}

/**
 * What the engine of a city needs; `orderEnded`: the run of an order ends with its molecule.
 * @public
 */
export function engineContext(city: Running, orderEnded: EngineSurroundings['orderEnded']): MoleculesDeps {
  const { store, host } = city
  return {
    db: store.db,
    log: store.log,
    clock: host.clock,
    logger: host.log,
    random: host.random,
    beads: engineBeads(beadFamily.of(city), host.clock),
    execs: engineExecs(city),
    city: surroundings(city, orderEnded),
  }
}
