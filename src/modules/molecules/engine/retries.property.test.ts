/**
 * Random formulas, outcomes, lost leases, restarts and retries: whatever happens a molecule ends, its counts are right, and it
 * leaves no bead, timer, drive or check behind. After three retries everything passes, and then it must pass.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { MoleculeWorld, planOf } from '../../../../test/support/molecule-world.ts'
import { type Random, SEED, seededRandom } from '../../../../test/support/random.ts'
import type { PlanBody, PlanCheck, PlanRepeat, PlanStep } from '../../../automation/plan.ts'
import { isLive, type StepRow } from './base/rows.ts'

/** More by hand: `MOLECULE_RUNS=1000`. On a slow machine fewer, but never less than the first. */
const RUNS = Number(process.env['MOLECULE_RUNS'] ?? 15)
const FEWEST_RUNS = 4
const TIME_MS = process.env['MOLECULE_RUNS'] === undefined ? 8_000 : Number.POSITIVE_INFINITY
const MAX_ACTIONS = 400
const MAX_RETRIES = 6
/** From this retry on nothing fails any more. */
const PASSING_FROM = 3
const LISTS = { none: [], some: [1, 2, 3], many: [1, 2, 3, 4, 5] }

// --- Formulas --------------------------------------------------------------------------------------------------------

const pick = <T>(random: Random, items: readonly T[]): T => random.pick(items) ?? assert.fail('nothing to pick from')

function listAt(random: Random, depth: number): readonly PlanStep[] {
  return Array.from({ length: random.between(1, depth === 0 ? 5 : 3) }, (_, at) => stepAt(random, depth, at))
}

function bodyAt(random: Random, depth: number): PlanBody {
  if (depth < 3 && random.chance(0.4)) return { kind: 'group', steps: listAt(random, depth + 1) }
  return pick<PlanBody>(random, [
    { kind: 'work' },
    { kind: 'work' },
    { kind: 'work' },
    { kind: 'gate', gate: { kind: 'human' } },
    { kind: 'gate', gate: { kind: 'timer', timer: '300s' } },
    { kind: 'gate', gate: { kind: 'event', event: 'x.y', match: {} } },
  ])
}

function repeatOf(random: Random): PlanRepeat {
  const max_parallel = random.between(1, 3)
  const each = { kind: 'for_each', as: 'item', max_parallel, stop_on_fail: random.chance(0.3) } as const
  return pick<PlanRepeat>(random, [
    { ...each, in: pick(random, ['some', 'many', 'none']), exclusive: false },
    { ...each, in: 'beads', exclusive: true },
    { kind: 'loop', from: '1', to: pick(random, ['1', '2', '3']), as: 'item' },
  ])
}

const CHECKS: readonly PlanCheck[] = [
  { kind: 'exec', exec: 'true', timeout: 1_000, env: {}, inherit_env: [], file_dir: '/' },
  { kind: 'manual', question: 'Good?' },
]

function stepAt(random: Random, depth: number, at: number): PlanStep {
  const body = bodyAt(random, depth)
  const seldom = <T>(probability: number, name: string, value: () => T) =>
    random.chance(probability) ? { [name]: value() } : {}
  const ofWork = {
    ...seldom(0.3, 'retry', () => ({ max_attempts: random.between(2, 3), backoff: 1_000, max_backoff: 60_000 })),
    ...seldom(0.25, 'check', () => pick(random, CHECKS)),
    ...seldom(0.25, 'repeat', () => repeatOf(random)),
  }
  return {
    id: `s${at}`,
    title: 'A step',
    tags: [],
    metadata: {},
    output: [],
    body,
    needs: Array.from({ length: at }, (_, before) => `s${before}`).filter(() => random.chance(0.35)),
    always: random.chance(0.15),
    on_fail: pick(random, ['fail', 'fail', 'continue', 'abort'] as const),
    ...seldom(0.15, 'condition', () => pick(random, ['true', 'false'])),
    ...seldom(0.25, 'timeout', () => pick(random, [100_003, 700_001])),
    ...(body.kind === 'gate' ? {} : ofWork),
  }
}

// --- What happens ----------------------------------------------------------------------------------------------------

interface Story {
  readonly world: MoleculeWorld
  readonly random: Random
  readonly id: string
  readonly said: string[]
  passing: boolean
}

type Act = readonly [what: string, act: () => Promise<void>]

function endingOf({ random, passing }: Story) {
  if (passing || random.chance(0.6)) return { outcome: 'pass' } as const
  return random.chance(0.5) ? ({ outcome: 'fail' } as const) : ({ outcome: 'fail', failure_class: 'hard' } as const)
}

function actsOf(story: Story, row: StepRow): readonly Act[] {
  const { world, random, id } = story
  const { path, phase, bead, asked } = row
  const ends = (of: string | null): readonly Act[] => {
    const ending = endingOf(story)
    return of === null ? [] : [[`${path} ${JSON.stringify(ending)}`, () => world.closeBead(of, ending)]]
  }
  if (phase === 'ask') return ends(asked)
  if (phase === 'gate') return row.event === null ? ends(bead) : [['x.y', () => world.emit('x.y')]]
  if (phase !== 'work') return []
  const loses = !story.passing && random.chance(0.3)
  const lost: readonly Act[] = loses ? [[`lose ${path}`, () => world.loseLease(id, path)]] : []
  return [...ends(bead), ...(row.busy ? lost : [[`claim ${path}`, () => world.claim(id, path)] as const])]
}

/** Something that may happen now; false where nothing can. */
async function happens(story: Story): Promise<boolean> {
  const { world, random, id, said, passing } = story
  const acts = [...world.steps(id).values()].flatMap((row) => actsOf(story, row))
  for (const { step_id: path } of world.checks) {
    const code = passing ? 0 : pick(random, [0, 0, 1, 127])
    acts.push([`check ${path} ${code}`, () => world.checked(path, code)])
  }
  const { at } = world.store.db.get("SELECT min(due_at) AS at FROM molecule_timers WHERE kind <> 'keep'") ?? {}
  if (at !== null && at !== undefined && (acts.length === 0 || random.chance(passing ? 0 : 0.1))) {
    said.push('wait')
    await world.advance(Math.max(0, Number(at) - world.clock.now()))
    return true
  }
  if (!passing && random.chance(0.03)) acts.push(['restart', () => world.restart(pick(random, [0, 1_000, 400_000]))])
  const act = random.pick(acts)
  if (act === undefined) return false
  said.push(act[0])
  await act[1]()
  return true
}

function leavesNothing({ world, id }: Story): void {
  const { db } = world.store
  const count = (sql: string, ...values: readonly string[]) => Number(db.get(sql, ...values)?.n)
  assert.equal(
    count("SELECT count(*) AS n FROM beads WHERE root_bead_id = ? AND status <> 'closed'", id),
    0,
    'open beads',
  )
  assert.equal(count('SELECT count(*) AS n FROM molecule_timers'), 0, 'timers')
  assert.equal(count('SELECT count(*) AS n FROM molecule_drives'), 0, 'drives')
  assert.deepEqual(world.checks, [], 'checks')
  const molecule = world.molecule(id)
  const { nodes } = world.molecules.plans.get(molecule.plan)
  const rows = [...world.steps(id).values()]
  const leaves = rows.filter(({ node, item_index: item }) => {
    const { body, repeat } = nodes[node]?.step ?? {}
    return body?.kind !== 'group' && (repeat === undefined || item > 0)
  })
  assert.ok(
    rows.every(({ phase }) => phase === 'settled'),
    'rows that are not settled',
  )
  for (const status of ['completed', 'failed', 'skipped', 'canceled', 'active', 'waiting'] as const)
    assert.equal(molecule[status], leaves.filter((row) => row.status === status).length, status)
  assert.deepEqual([molecule.total, molecule.busy], [leaves.length, 0])
}

async function live(story: Story): Promise<void> {
  const { world, id, said } = story
  let retries = 0
  for (let at = 0; at < MAX_ACTIONS; at++) {
    const { status } = world.molecule(id)
    if (isLive(status)) {
      assert.ok(await happens(story), `nothing can happen, and it is ${status}`)
      continue
    }
    leavesNothing(story)
    if (status !== 'failed' || retries === MAX_RETRIES) break
    retries++
    story.passing = retries >= PASSING_FROM
    said.push(`retry ${retries}`)
    await world.store.db.write((tx) => world.molecules.retry(tx, id, 'test'))
    await world.quiet()
  }
  const { status, failure } = world.molecule(id)
  // Its time may be over all the same.
  if (retries >= PASSING_FROM && status === 'failed') assert.match(String(failure), /timeout/)
}

async function tell(seed: number): Promise<void> {
  const random = seededRandom(seed)
  await using world = await MoleculeWorld.open()
  const beads = await Promise.all([1, 2, 3].map((n) => world.bead(`b${n}`)))
  const plan = planOf(listAt(random, 0), random.chance(0.2) ? { timeout: 900_000 } : {})
  const said: string[] = []
  try {
    const { id } = await world.start(plan, { vars: { ...LISTS, beads: beads.map((bead) => bead.id) } })
    await live({ world, random, id, said, passing: false })
  } catch (error) {
    throw new Error(`seed ${seed}, after ${said.slice(-30).join(', ')}: ${JSON.stringify(plan.steps)}`, {
      cause: error,
    })
  }
}

test('a molecule ends, whatever happens and however often it is retried, and leaves nothing behind', async () => {
  const until = performance.now() + TIME_MS
  for (let run = 0; run < RUNS && (run < FEWEST_RUNS || performance.now() < until); run++)
    await tell(SEED + run * 7_919)
})
