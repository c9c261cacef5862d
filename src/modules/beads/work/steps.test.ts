import assert from 'node:assert/strict'
import { test } from 'node:test'
import { openWorkStore, type WorkStore } from '../../../../test/support/work-store.ts'
import type { BeadCloseRequest, BeadPatchRequest } from '../../../contract/beads.ts'
import type { WorkPeople } from './city.ts'
import {
  assertIsWork,
  assertMayEdge,
  assertMayPatch,
  assertMayRemove,
  assertMayReopen,
  closeOf,
  importFault,
  keptAmong,
  type StepBead,
  type Tie,
  type WorkSteps,
} from './steps.ts'

const PARTS: Readonly<Record<string, StepBead>> = {
  'al-m': { role: 'root', molecule: 'al-m', step: '', output: [] },
  'al-s': { role: 'work', molecule: 'al-m', step: 'plan', output: ['modules', 'notes'] },
  'al-p': { role: 'work', molecule: 'al-m', step: 'plain', output: [] },
  'al-g': { role: 'work', molecule: 'al-m', step: 'approve', output: [] },
}
const TIES: readonly Tie[] = [
  { bead: 'al-m', molecule: 'al-m', is: 'root', live: true, whole: false },
  { bead: 'al-s', molecule: 'al-m', is: 'part', live: true, whole: false },
  { bead: 'al-old', molecule: 'al-n', is: 'part', live: false, whole: false },
  { bead: 'al-b', molecule: 'al-m', is: 'subject', live: true, whole: true },
]
const steps: WorkSteps = {
  of: (bead) => PARTS[bead],
  ties: (beads) => TIES.filter(({ bead }) => beads.includes(bead)),
  cancel: () => assert.fail('nothing is canceled'),
}
/** The city knows the session s1 of the agent ann. */
const people: WorkPeople = {
  canonical: (name) => (name === 's1' ? 'ann' : name),
  identities: (name) => (name === 's1' ? ['s1', 'ann'] : [name]),
  routes: (name) => [name],
}

async function openCity(): Promise<WorkStore> {
  const city = openWorkStore()
  await city.bead('al-m', { issue_type: 'molecule', status: 'in_progress' })
  for (const id of ['al-s', 'al-p']) await city.bead(id, { root_bead_id: 'al-m' })
  await city.bead('al-g', { issue_type: 'gate', root_bead_id: 'al-m', assignee: 'human' })
  await city.bead('al-b')
  await city.bead('al-x', { root_bead_id: 'al-gone' })
  return city
}

const wrongState = (detail: RegExp) => ({ code: 'conflict-wrong-state', message: detail })

test('a step passes only with what its formula declares, fails without it, and says how it ended in any case', async () => {
  using city = await openCity()
  const close = (id: string, body?: BeadCloseRequest) => closeOf(steps, people, city.beads.need(id), body).outcome
  for (const output of [undefined, null, 'text', [1], { modules: 1 }])
    assert.throws(() => close('al-s', { output }), { code: 'validation-failed', message: /notes/ })
  assert.throws(
    () => close('al-s'),
    (error: { options: { errors: { location: string }[] } }) =>
      error.options.errors.map(({ location }) => location).join() === 'body.output.modules,body.output.notes',
  )
  assert.equal(close('al-s', { output: { modules: null, notes: 0 } }), 'pass')
  assert.equal(close('al-s', { outcome: 'fail' }), 'fail')
  assert.equal(close('al-p'), 'pass')
  assert.throws(() => close('al-p', { outcome: 'skipped' }), { code: 'validation-failed', message: /pass.*fail/ })
  assert.equal(close('al-b'), undefined, 'an ordinary bead')
  assert.equal(close('al-x', { outcome: 'skipped' }), 'skipped', 'one of a molecule that is elsewhere')
})

test('a gate must be answered with a word, and a root is not closed', async () => {
  using city = await openCity()
  const close = (id: string, body?: BeadCloseRequest) => closeOf(steps, people, city.beads.need(id), body).outcome
  assert.throws(() => close('al-g'), { code: 'validation-failed', message: /required/ })
  assert.deepEqual([close('al-g', { outcome: 'pass' }), close('al-g', { outcome: 'fail' })], ['pass', 'fail'])
  assert.throws(() => close('al-m', { outcome: 'pass' }), wrongState(/POST \/molecules\/al-m\/cancel/))
})

test('a step that is closed says again how it ended, whatever it was to report', async () => {
  using city = await openCity()
  await city.store.db.write((tx) => city.beads.change(tx, 'al-s', { status: 'closed', outcome: 'fail' }, 'test'))
  assert.equal(closeOf(steps, people, city.beads.need('al-s')).outcome, 'pass', 'which contradicts')
})

test('a session that has lost the bead of a step cannot close it: to another one, or to nobody', async () => {
  using city = await openCity()
  const close = (session_id?: string) =>
    closeOf(steps, people, city.beads.need('al-p'), session_id === undefined ? {} : { session_id }).outcome
  const claim = (assignee: string, session_id: string) =>
    city.store.db.write((tx) => city.claims.claim(tx, 'al-p', { assignee, session_id }))
  const lost = { code: 'conflict-claimed' }
  assert.equal(close('s1'), 'pass', 'without a claim')
  await claim('ann', 's1')
  assert.equal(close('s1'), 'pass')
  assert.throws(() => close('s2'), lost)
  await city.store.db.write((tx) => city.claims.release(tx, 'al-p', 'ann'))
  assert.throws(() => close('s1'), lost, 'nobody has it')
  assert.equal(close('s2'), 'pass')
  await claim('bob', 's2')
  assert.throws(() => close('s1'), lost)
  assert.equal(close(), 'pass', 'a person')
  await city.store.db.write((tx) => city.claims.release(tx, 'al-p', 'bob'))
  for (const session of ['s1', 's2']) assert.throws(() => close(session), lost)
  await claim('ann', 's1')
  assert.equal(close('s1'), 'pass', 'it has it again')
  await city.store.db.write((tx) => city.beads.change(tx, 'al-p', { assignee: 'bob' }, 'test'))
  assert.throws(() => close('s1'), lost, 'handed over')
})

test('status, type, parent and edges of a step and a root are refused with the right way, the rest is not', async () => {
  using city = await openCity()
  const need = (id: string) => city.beads.need(id)
  const cases: readonly (readonly [string, object, RegExp])[] = [
    ['al-p', { status: 'closed' }, /POST \/beads\/al-p\/close/],
    ['al-p', { status: 'in_progress' }, /POST \/beads\/al-p\/claim/],
    ['al-p', { issue_type: 'bug' }, /type/],
    ['al-p', { type: 'bug' }, /type/],
    ['al-p', { parent: 'al-b' }, /formula/],
    ['al-m', { status: 'open' }, /cancel/],
  ]
  for (const [id, patch, way] of cases) assert.throws(() => assertMayPatch(steps, need(id), patch), wrongState(way))
  const harmless: readonly BeadPatchRequest[] = [
    { title: 'other', priority: 0, labels: ['a'] },
    { status: 'open', type: 'task', parent: '' },
  ]
  for (const patch of harmless) assertMayPatch(steps, need('al-p'), patch)
  assertMayPatch(steps, need('al-b'), { status: 'closed', issue_type: 'bug', parent: 'al-x' })
  for (const id of ['al-p', 'al-m']) {
    assert.throws(() => assertMayReopen(steps, need(id)), wrongState(/retry/))
    assert.throws(() => assertMayEdge(steps, need(id)), wrongState(/formula/))
  }
  assert.throws(() => assertMayEdge(steps, need('al-b'), 'al-m'), wrongState(/works on al-b/))
  assertMayEdge(steps, need('al-b'), 'al-z')
  assert.throws(() => assertIsWork(steps, need('al-m')), wrongState(/steps/))
  assertIsWork(steps, need('al-p'))
})

test('what belongs to a molecule, or is worked on by one, is neither deleted nor swept nor imported over', async () => {
  using city = await openCity()
  assert.throws(() => assertMayRemove(steps, ['al-p', 'al-old']), wrongState(/DELETE \/molecules\/al-n/))
  assert.throws(() => assertMayRemove(steps, ['al-m']), wrongState(/the root of the molecule/))
  assert.throws(() => assertMayRemove(steps, ['al-b']), wrongState(/cancel first/))
  assert.deepEqual([...keptAmong(steps, ['al-b', 'al-m', 'al-old', 'al-s', 'al-z'])], ['al-m', 'al-s', 'al-b'])
  assert.match(importFault(steps, city.beads.need('al-s'), { gone: [], closes: false }) ?? '', /step plan/)
  assert.match(importFault(steps, city.beads.need('al-b'), { gone: ['al-m'], closes: false }) ?? '', /works on/)
  assert.equal(importFault(steps, city.beads.need('al-b'), { gone: ['al-q'], closes: false }), undefined)
  assert.match(importFault(steps, city.beads.need('al-b'), { gone: [], closes: true }) ?? '', /works on/)
})
