/** Random formulas with random outcomes: the engine, over a real store, against a small model that was written without it. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { MoleculeModel } from '../../../../test/support/molecule-model.ts'
import { MoleculeWorld, planOf } from '../../../../test/support/molecule-world.ts'
import { fc } from '../../../../test/support/random.ts'
import type { PlanBody, PlanStep } from '../../../automation/plan.ts'

const LISTS = { none: [], one: [1], some: [1, 2, 3], many: [1, 2, 3, 4, 5] }
const MAX_ACTIONS = 150
/** More by hand: `MOLECULE_RUNS=1000`. A counterexample is said with its seed. */
const RUNS = Number(process.env['MOLECULE_RUNS'] ?? 25)

const retry = fc.record({
  max_attempts: fc.integer({ min: 1, max: 3 }),
  backoff: fc.constantFrom(1_000, 10_007),
  max_backoff: fc.constantFrom(5_003, 60_013),
})
const check = fc.constantFrom(
  { kind: 'exec', exec: 'true', timeout: 1_000, env: {}, inherit_env: [], file_dir: '/' } as const,
  { kind: 'manual', question: 'Good?' } as const,
)
const repeat = fc.oneof(
  fc.record({
    kind: fc.constant('for_each' as const),
    in: fc.constantFrom('none', 'one', 'some', 'many', 'nothing'),
    as: fc.constant('item'),
    max_parallel: fc.integer({ min: 1, max: 3 }),
    stop_on_fail: fc.boolean(),
    exclusive: fc.constant(false),
  }),
  fc.record({
    kind: fc.constant('loop' as const),
    from: fc.constant('1'),
    to: fc.constantFrom('1', '2', '3'),
    as: fc.constant('item'),
  }),
)
const seldom = <T>(value: fc.Arbitrary<T>) => fc.option(value, { nil: undefined, freq: 3 })

function stepsAt(depth: number): fc.Arbitrary<readonly PlanStep[]> {
  return fc.array(stepAt(depth), { minLength: 1, maxLength: depth === 0 ? 5 : 3 }).chain((steps) =>
    fc.array(fc.nat(), { minLength: steps.length, maxLength: steps.length }).map((bits) =>
      steps.map((step, at) => ({
        ...step,
        id: `s${at}`,
        needs: steps.slice(0, at).flatMap((_, before) => (((bits[at] ?? 0) >> before) % 3 === 0 ? [`s${before}`] : [])),
      })),
    ),
  )
}

function stepAt(depth: number): fc.Arbitrary<PlanStep> {
  const gate = fc.constantFrom<PlanBody>(
    { kind: 'gate', gate: { kind: 'human' } },
    { kind: 'gate', gate: { kind: 'timer', timer: '300s' } },
  )
  const work = fc.constant<PlanBody>({ kind: 'work' })
  const inner = depth >= 2 ? work : stepsAt(depth + 1).map((steps): PlanBody => ({ kind: 'group', steps }))
  return fc
    .record({
      body: fc.oneof({ weight: 4, arbitrary: work }, { weight: 1, arbitrary: gate }, { weight: 3, arbitrary: inner }),
      condition: seldom(fc.constantFrom('true', 'false')),
      timeout: seldom(fc.constantFrom(100_003, 700_001)),
      always: fc.boolean(),
      on_fail: fc.constantFrom('fail', 'continue', 'abort' as const),
      retry: seldom(retry),
      check: seldom(check),
      repeat: seldom(repeat),
    })
    .map(({ body, condition, timeout, retry: again, check: checked, repeat: repeated, always, on_fail }) => {
      const isGate = body.kind === 'gate'
      // What fails as it begins would abort steps of which nobody knows whether they had begun.
      const atOnce = canFailAtOnce({ body, repeat: repeated })
      return {
        id: '',
        title: 'A step',
        needs: [],
        tags: [],
        metadata: {},
        output: [],
        always,
        on_fail: atOnce && on_fail === 'abort' ? 'fail' : on_fail,
        body,
        ...(condition === undefined ? {} : { condition }),
        ...(timeout === undefined ? {} : { timeout }),
        ...(isGate || again === undefined ? {} : { retry: again }),
        ...(isGate || checked === undefined ? {} : { check: checked }),
        ...(isGate || repeated === undefined ? {} : { repeat: repeated }),
      }
    })
}

/** It, or something in it, is for each of what is no list. */
const canFailAtOnce = ({
  body,
  repeat,
}: Pick<PlanStep, 'body'> & { readonly repeat?: PlanStep['repeat'] | undefined }): boolean =>
  (repeat?.kind === 'for_each' && repeat.in === 'nothing') || (body.kind === 'group' && body.steps.some(canFailAtOnce))

test('the engine does what the model does, whatever the formula and whatever happens', async () => {
  await fc.assert(
    fc.asyncProperty(stepsAt(0), fc.array(fc.nat(), { minLength: 1, maxLength: 60 }), async (steps, chances) => {
      await compare(steps, chances)
    }),
    { numRuns: RUNS, endOnFailure: true },
  )
})

async function compare(steps: readonly PlanStep[], numbers: readonly number[]): Promise<void> {
  await using world = await MoleculeWorld.open()
  const vars = { ...LISTS, nothing: 'no list' }
  const { id } = await world.start(planOf(steps), { vars })
  const model = new MoleculeModel(planOf(steps), LISTS, world.clock.now())
  const said: string[] = []
  for (let at = 0; at < MAX_ACTIONS && model.outcome === undefined; at++) {
    same(world, id, model, said)
    const number = (numbers[at % numbers.length] ?? 0) + at
    const options = model.chances()
    const chance = options[number % options.length]
    assert.ok(chance, `nothing can happen after ${said.join(', ')}`)
    said.push(`${chance.kind} ${chance.path} ${number % 7}`)
    await happen(world, id, model, chance, number % 7)
  }
  same(world, id, model, said)
  if (model.outcome === undefined) return
  assert.equal(world.molecule(id).status, model.outcome === 'pass' ? 'completed' : 'failed')
  assert.equal(world.events('molecule.resolved').length, 1)
  countsAreRight(world, id)
}

function same(world: MoleculeWorld, id: string, model: MoleculeModel, said: readonly string[]): void {
  const steps = [...world.steps(id)].map(([path, { status, attempt }]) => [path, `${status} ${attempt}`])
  assert.deepEqual(Object.fromEntries(steps), model.statuses(), `after ${said.join(', ')}`)
}

/** The counts on the molecule are those of its rows. */
function countsAreRight(world: MoleculeWorld, id: string): void {
  const molecule = world.molecule(id)
  const nodes = world.molecules.plans.get(molecule.plan).nodes
  const leaves = [...world.steps(id).values()].filter(({ node, item_index }) => {
    const { body, repeat: repeated } = nodes[node]?.step ?? {}
    return body?.kind !== 'group' && (repeated === undefined || item_index > 0)
  })
  for (const status of ['completed', 'failed', 'skipped', 'canceled', 'active', 'waiting'] as const)
    assert.equal(molecule[status], leaves.filter((row) => row.status === status).length, status)
  assert.equal(molecule.total, leaves.length)
  assert.equal(molecule.busy, 0)
}

type Chance = ReturnType<MoleculeModel['chances']>[number]

/** Of seven numbers four are a pass. */
const failingOf = (number: number) => (number < 4 ? undefined : number < 6 ? ('transient' as const) : ('hard' as const))

async function happen(world: MoleculeWorld, id: string, model: MoleculeModel, chance: Chance, number: number) {
  const { kind, path } = chance
  const failing = failingOf(number)
  const ending = {
    outcome: failing === undefined ? 'pass' : 'fail',
    ...(failing === 'hard' ? { failure_class: 'hard' as const } : {}),
  } as const
  switch (kind) {
    case 'claim':
      model.claim(path)
      return world.claim(id, path)
    case 'lose':
      model.lose(path)
      return world.loseLease(id, path)
    case 'close':
      model.close(path, failing)
      return world.close(id, path, ending)
    case 'answer': {
      model.answer(path, failing)
      const row = world.at(id, path)
      return world.closeBead(row.asked ?? row.bead ?? '', ending)
    }
    case 'check': {
      const code = [0, 0, 0, 1, 1, 127, 127][number] ?? 0
      model.check(path, code)
      return world.checked(path, code)
    }
    case 'time': {
      const ms = model.nextDue
      model.wait()
      return world.advance(ms)
    }
  }
}
