/** Answers about molecules are bound by bytes, whatever their steps have reported. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { MoleculeWorld, planOf, step } from '../../../../test/support/molecule-world.ts'
import { PAGE_BYTES, Page } from '../../../kernel/page.ts'
import { MoleculeReads } from './reads.ts'

const ITEMS = 60
const large = { said: 'x'.repeat(250 * 1024) }

test('steps with large outputs come in pages of at most 8 MiB, none twice and none left out', async () => {
  await using world = await MoleculeWorld.open()
  const repeat = { kind: 'loop', from: '1', to: String(ITEMS), as: 'n' } as const
  const { id } = await world.start(planOf([step('a', { repeat, title: 'A' })]))
  for (let at = 1; at <= ITEMS; at++) await world.close(id, `a.${at}`, { output: large })
  const about = () => null
  const reads = new MoleculeReads(world.store.db, world.molecules.plans, {
    knows: () => true,
    idle: () => undefined,
    about,
  })
  const molecule = world.molecule(id)
  const seen: string[] = []
  let cursor: string | undefined
  for (let pages = 0; ; pages++) {
    assert.ok(pages < ITEMS)
    const { items, total, next_cursor } = reads.steps(
      molecule,
      {},
      new Page('steps', ['number'], { limit: 1_000, cursor }),
    )
    assert.equal(total, ITEMS + 1)
    assert.ok(JSON.stringify(items).length <= PAGE_BYTES)
    seen.push(...items.map(({ id }) => id))
    cursor = next_cursor
    if (cursor === undefined) break
  }
  assert.deepEqual(seen, ['a', ...Array.from({ length: ITEMS }, (_, at) => `a.${at + 1}`)])
  const whole = reads.view(molecule, 'a')
  assert.deepEqual([whole?.output, whole?.output_left_out], [undefined, true])
  assert.deepEqual(reads.view(molecule, 'a.7')?.output, large)
})
