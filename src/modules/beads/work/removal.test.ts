import assert from 'node:assert/strict'
import { test } from 'node:test'
import { openWorkStore } from '../../../../test/support/work-store.ts'
import { removalJob } from './removal.ts'

/** Deletes a bead with `children` of this many characters; how many were deleted in each write. */
async function deletedAtOnce(children: number, characters: number): Promise<readonly number[]> {
  using city = openWorkStore()
  const description = 'x'.repeat(characters)
  await city.bead('al-root')
  await city.store.db.write((tx) => {
    for (let n = 0; n < children; n++)
      city.beads.insert(tx, { id: `al-${n}`, title: 'x', parent: 'al-root', description }, 'test')
  })
  const commits: number[] = []
  city.store.log.onCommit((events) => commits.push(events.length))
  const request = {
    id: 'r',
    operation: 'bead.delete' as const,
    city: 'alpha',
    subject: 'al-root',
    createdAt: 0,
    input: { id: 'al-root', cascade: true, actor: 'ann' },
  }
  const finish = await removalJob(city).run(request, new AbortController().signal)
  assert.equal(await city.store.db.write((tx) => finish(tx)?.payload.deleted), children + 1)
  return commits
}

test('a long deletion holds others up for a hundred beads at most, and for few where these are long', async () => {
  const short = await deletedAtOnce(1_200, 10)
  assert.equal(Math.max(...short), 100)
  const long = await deletedAtOnce(60, 100_000)
  assert.ok(Math.max(...long) <= 11, `beads in one write: ${long.join(', ')}`)
})
