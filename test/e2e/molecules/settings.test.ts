/** Settings of steps, each with what it does to a running molecule. The test itself does the work, over HTTP. */
import assert from 'node:assert/strict'
import { realpathSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { eventually } from '../../support/http.ts'
import { MoleculeCity } from '../../support/molecule-city.ts'
import { type RunningSupervisor, startSupervisor } from '../../support/supervisor.ts'

const items = (stops: boolean): string => `title = "Three"
[[steps]]
id = "each"
title = "Do {{ item }}"
for_each = { in = "things", max_parallel = 1, stop_on_fail = ${stops} }
[vars.things]
type = "json"
default = ["a", "b", "c"]
`

const FORMULAS = {
  stops: items(true),
  'goes-on': items(false),
  checked: `title = "Checked"
[[steps]]
id = "work"
title = "Work"
check = { exec = '''printf '%s|%s|%s|%s' "$SVC_FILE_DIR" "$FROM_OUTSIDE" "$NOT_NAMED" "$OWN"''', env = { OWN = "own" }, inherit_env = ["FROM_OUTSIDE"] }
`,
  short: 'title = "Short"\n[[steps]]\nid = "work"\ntitle = "Work"\n',
}

let supervisor: RunningSupervisor
let city: MoleculeCity
before(async () => {
  supervisor = await startSupervisor({ env: { FROM_OUTSIDE: 'outside', NOT_NAMED: 'hidden' } })
  city = await MoleculeCity.start(supervisor, 'alpha', FORMULAS)
})
after(async () => {
  city.city.api.close()
  await supervisor[Symbol.asyncDispose]()
})

const FAIL = { outcome: 'fail', reason: 'no good', failure_class: 'hard' } as const

test('with stop_on_fail no item follows one that failed; without it all are tried', { timeout: 60_000 }, async () => {
  const { id: stopped } = await city.launch('stops')
  await city.finish(stopped, 'each.1', FAIL)
  await city.is(stopped, 'failed')
  const { each, ...others } = await city.statuses(stopped)
  assert.equal(each, 'failed')
  assert.equal(others['each.1'], 'failed')
  assert.ok(
    ['each.2', 'each.3'].every((path) => [undefined, 'skipped', 'canceled'].includes(others[path])),
    JSON.stringify(others),
  )
  const { id } = await city.launch('goes-on')
  await city.finish(id, 'each.1', FAIL)
  await city.finish(id, 'each.2')
  await city.finish(id, 'each.3')
  await city.is(id, 'failed')
  assert.deepEqual(await city.statuses(id), {
    each: 'failed',
    'each.1': 'failed',
    'each.2': 'completed',
    'each.3': 'completed',
  })
})

test('a check knows the directory of its formula, and of outside variables those that are named', {
  timeout: 60_000,
}, async () => {
  const { id } = await city.launch('checked')
  await city.finish(id, 'work')
  await city.is(id, 'completed')
  const { check } = await city.step(id, 'work')
  assert.equal(check?.exit_code, 0)
  assert.equal(check?.output, `${join(realpathSync(city.city.dir), 'formulas')}|outside||own`)
})

test('a molecule that is kept for a time is there at its end, and goes with its beads behind that', {
  timeout: 150_000,
}, async () => {
  const { id } = await city.launch('short', { keep: '1s' })
  const bead = await city.beadOf(id, 'work')
  await city.finish(id, 'work')
  const done = await city.is(id, 'completed')
  assert.ok((done.expires_at ?? '') > (done.closed_at ?? ''))
  const { id: kept } = await city.launch('short')
  await city.finish(kept, 'work')
  assert.equal((await city.is(kept, 'completed')).expires_at, undefined)
  // The sweep comes within a minute.
  const isGone = async () => ((await city.city.get(`/molecules/${id}`)).status === 404 ? true : undefined)
  await eventually('it is gone', isGone, 120_000)
  assert.equal((await city.city.get(`/beads/${bead}`)).status, 404)
  assert.equal((await city.molecule(kept)).status, 'completed')
})
