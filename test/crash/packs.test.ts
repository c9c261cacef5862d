// The cache of packs when the supervisor dies while it is emptied.
import assert from 'node:assert/strict'
import { existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { at } from '../support/document.ts'
import { Api, eventually } from '../support/http.ts'
import { homeWith, tokenOf } from '../support/running.ts'
import { startSupervisor } from '../support/supervisor.ts'

const ENTRIES = 120
const FILES = 100

/** A checkout that nobody needs. */
function makeEntry(repos: string, index: number): void {
  const entry = join(repos, index.toString(16).padStart(64, '0'))
  mkdirSync(join(entry, 'checkout'), { recursive: true })
  for (let file = 0; file < FILES; file++) writeFileSync(join(entry, 'checkout', `${file}.md`), 'x'.repeat(2_000))
  writeFileSync(join(entry, 'content-hash'), `sha256:${'0'.repeat(64)}`)
  const label = { repository: `https://git.example.org/${index}.git`, commit: 'a'.repeat(40), bytes: FILES * 2_000 }
  writeFileSync(join(entry, 'label.json'), JSON.stringify(label))
}

test('kill -9 in the middle of a prune leaves whole checkouts or none, and the next start sweeps up', async () => {
  using place = homeWith('')
  const cache = join(place.home, 'cache')
  const repos = join(cache, 'repos')
  for (let index = 0; index < ENTRIES; index++) makeEntry(repos, index)
  {
    await using first = await startSupervisor({ home: place.home })
    const api = new Api(first.url, tokenOf(first.home))
    const pruning = api.post('/v0/pack-cache/prune', { max_age: '0s' }).catch(() => undefined)
    await eventually('the first are taken away', () => (readdirSync(repos).length < ENTRIES ? true : undefined))
    await first.kill('SIGKILL')
    await pruning
    api.close()
  }
  for (const id of readdirSync(repos))
    assert.equal(readdirSync(join(repos, id, 'checkout')).length, FILES, `${id} is whole`)
  const left = existsSync(join(cache, 'tmp')) ? readdirSync(join(cache, 'tmp')).length : 0
  assert.ok(left > 0, 'it was in the middle')
  await using second = await startSupervisor({ home: place.home })
  const api = new Api(second.url, tokenOf(second.home))
  await eventually('what was half removed is gone', () =>
    readdirSync(cache).every((name) => name === 'repos') ? true : undefined,
  )
  assert.equal(at((await api.post('/v0/pack-cache/prune', { max_age: '0s' })).body, 'kept'), 0)
  assert.deepEqual(readdirSync(repos), [])
  api.close()
})
