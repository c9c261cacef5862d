/** Molecules stay where they are: an export has none of their beads, and an import takes in none of elsewhere. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { openWorkStore, type WorkStore } from '../../../../test/support/work-store.ts'
import { OWNER } from '../../../kernel/caller.ts'
import { wireBead } from '../store/record.ts'
import type { WorkCity } from '../work/city.ts'
import type { Tie } from '../work/steps.ts'
import { exportLines } from './export.ts'
import { importLines } from './import.ts'

const TIES: readonly Tie[] = [
  { bead: 'al-m', molecule: 'al-m', is: 'root', live: true, whole: false },
  { bead: 'al-s', molecule: 'al-m', is: 'part', live: true, whole: false },
  { bead: 'al-bug', molecule: 'al-m', is: 'subject', live: true, whole: true },
]

/** `al-bug` waits for its molecule `al-m`, which has the step `al-s`. */
async function openMolecule(store: WorkStore): Promise<WorkCity> {
  await store.bead('al-m', { issue_type: 'molecule', status: 'in_progress', metadata: { 'svc.formula_hash': 'abc' } })
  await store.bead('al-s', { root_bead_id: 'al-m', metadata: { 'svc.step_id': 'do' } })
  await store.bead('al-bug', { edges: [{ depends_on_id: 'al-m', type: 'blocks' }] })
  const ties = (beads: readonly string[]) => TIES.filter(({ bead }) => beads.includes(bead))
  return { ...store, steps: { ...store.steps, ties } }
}

async function exported(city: WorkCity, store: WorkStore): Promise<readonly string[]> {
  let text = ''
  for await (const piece of exportLines(city, {}, store.clock)) text += piece
  return text.split('\n').filter((line) => line !== '')
}

async function* bodyOf(lines: readonly string[]) {
  for (const [at, text] of lines.entries()) yield { line: at + 1, text }
}

const imported = (city: WorkCity, store: WorkStore, lines: readonly string[]) =>
  importLines(city, bodyOf(lines), {}, { clock: store.clock, signal: new AbortController().signal, caller: OWNER })

test('export: beads of molecules stay here, and with them the edges to them', async () => {
  using store = openWorkStore()
  const city = await openMolecule(store)
  const lines = await exported(city, store)
  const [bug, ...others] = lines.map((line) => JSON.parse(line))
  assert.deepEqual([bug.id, bug.dependencies, bug.dependency_count, others], ['al-bug', undefined, 0, []])
  // Its own line, brought back, does not take away what the molecule made of it.
  const report = await imported(city, store, lines)
  assert.deepEqual([report.unchanged, report.failed], [1, 0], JSON.stringify(report))
  assert.equal(wireBead(city.beads.need('al-bug')).is_blocked, true)
})

test('import: steps and roots of molecules of elsewhere are left out, and nothing waits for them', async () => {
  using away = openWorkStore()
  await openMolecule(away)
  // As an older version wrote it: with all of it.
  const lines = await exported({ ...away, steps: { ...away.steps, ties: () => [] } }, away)
  assert.equal(lines.length, 3)
  using here = openWorkStore()
  const report = await imported(here, here, lines)
  assert.deepEqual([report.created, report.skipped, report.failed], [1, 2, 0], JSON.stringify(report))
  assert.deepEqual(
    report.warnings.map(({ id, detail }) => [id, /left out/.test(detail)]),
    [
      ['al-bug', true],
      ['al-m', true],
    ],
  )
  assert.equal(here.beads.find('al-s'), undefined)
  assert.equal(wireBead(here.beads.need('al-bug')).is_blocked, false)
  const again = await imported(here, here, lines)
  assert.deepEqual([again.created, again.failed, wireBead(here.beads.need('al-bug')).is_blocked], [0, 0, false])
})

test('import: a bead of a molecule of another program comes in as it is', async () => {
  using here = openWorkStore()
  const metadata = { 'gc.root_bead_id': 'al-root', 'gc.step_id': 'x' }
  const report = await imported(here, here, [JSON.stringify({ id: 'al-1', title: 't', metadata })])
  assert.deepEqual([report.created, report.skipped], [1, 0])
})
