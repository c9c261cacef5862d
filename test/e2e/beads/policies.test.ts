/** What the configuration says of beads of a type: how they are kept, and for how long. */
import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { BeadCity } from '../../support/bead-city.ts'
import { at } from '../../support/document.ts'
import { assertProblem, eventually } from '../../support/http.ts'
import { cityIs, newCity, outcome, run, runAgain } from '../../support/running.ts'

test('closed beads of a type go when the configuration says so, from its reload on and after a crash', async () => {
  await using first = await run()
  const dir = await newCity(first.api, first.work, 'alpha')
  const file = join(dir, 'city.toml')
  const own = readFileSync(file, 'utf8')
  const city = new BeadCity(first.api)
  const [done, parent, other] = [
    await city.bead('done'),
    await city.bead('parent'),
    await city.bead('a bug', { issue_type: 'bug' }),
  ]
  const child = await city.bead('open child', { parent, issue_type: 'bug' })
  for (const id of [done, parent, other]) await city.done('POST', `/${id}/close`)
  const head = await city.head()
  const reloading = async (policies: string) => {
    writeFileSync(file, `${own}\n${policies}`)
    const reload = await first.api.post(`${city.base}/config/reload`)
    const { status } = await outcome(first.api, String(at(reload.body, 'request_id')))
    assert.equal(status, 'succeeded')
  }
  await reloading('[beads.policies.task]\ndelete_after_close = "10ms"\n')
  const gone = async (id: string, on: BeadCity) => ((await on.send('GET', `/${id}`)).status === 404 ? true : undefined)
  await eventually('the closed task is deleted', () => gone(done, city))
  const events = await city.events(head)
  assert.deepEqual(
    events.map(({ type, actor, subject }) => [type, actor, subject]),
    [['bead.deleted', 'supervisor', done]],
  )
  assert.equal((await city.get(parent)).status, 'closed', 'it has an open child')
  assert.equal((await city.get(other)).status, 'closed', 'nothing is said of bugs')
  assertProblem(await city.send('GET', `/${done}`), 'bead-not-found')

  await reloading('[beads.policies.bug]\nstorage = "ephemeral"\ndelete_after_close = "1h"\n')
  const wisp = await city.bead('wisp', { issue_type: 'bug' })
  assert.match(wisp, /-wisp-/)
  assert.equal((await city.get(wisp)).ephemeral, true)
  assert.equal((await city.get(await city.bead('kept', { issue_type: 'bug', ephemeral: false }))).ephemeral, undefined)

  await city.done('POST', `/${child}/close`)
  await first.server.kill('SIGKILL')
  writeFileSync(file, `${own}\n[beads.policies.task]\ndelete_after_close = "10ms"\n`)
  await using second = await runAgain(first.server.home)
  await cityIs(second.api, 'alpha', 'running')
  await eventually('what was due at the start is deleted', () => gone(parent, new BeadCity(second.api)))
})
