import assert from 'node:assert/strict'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { temporaryDirectory } from '../../../../test/support/temporary.ts'
import { systemClock } from '../../../kernel/clock.ts'
import { watchCity } from './watch.ts'

test('an edit of city.toml or site.toml is seen, and a write to the database beside it is not even looked at', {
  timeout: 30_000,
}, async () => {
  using directory = temporaryDirectory()
  const { path: dir } = directory
  const site = join(dir, '.svc', 'site.toml')
  const database = join(dir, '.svc', 'city.db-wal')
  mkdirSync(join(dir, '.svc'))
  for (const file of [site, database, join(dir, 'city.toml')]) writeFileSync(file, '')
  let asked = 0
  let rung: PromiseWithResolvers<ReadonlySet<string>> = Promise.withResolvers()
  const watch = watchCity({
    dir,
    clock: systemClock,
    extra: () => {
      asked++
      return [site]
    },
    changed: (paths) => rung.resolve(paths),
    failed: (error) => rung.reject(error),
  })
  try {
    await watch.ready
    asked = 0
    writeFileSync(database, 'a commit')
    writeFileSync(site, 'workspace_name = "other"\n')
    assert.deepEqual([...(await rung.promise)], [site])
    assert.equal(asked, 0, 'nothing below .svc is asked about')
    rung = Promise.withResolvers()
    writeFileSync(join(dir, 'city.toml'), '[workspace]\n')
    assert.deepEqual([...(await rung.promise)], [join(dir, 'city.toml')])
  } finally {
    await watch.close()
  }
})
