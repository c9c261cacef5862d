/** Needs over HTTP and the command line: what opens them, what clears them, what a restart makes of them. */
import assert from 'node:assert/strict'
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { cliHere } from '../../support/cli.ts'
import { cityAgain } from '../../support/config-city.ts'
import { asMap, at } from '../../support/document.ts'
import { eventually } from '../../support/http.ts'
import { MoleculeCity } from '../../support/molecule-city.ts'
import { type RunningSupervisor, startSupervisor } from '../../support/supervisor.ts'

const GATED = `title = "Release"
[[steps]]
id = "ok"
title = "Publish it?"
description = "Read the notes first."
gate = { human = true }
[[steps]]
id = "publish"
title = "Publish"
needs = ["ok"]
`
const JUDGED = `title = "Judged"
[[steps]]
id = "work"
title = "Work"
check = { manual = "Good enough?" }
`
const GHOST = `title = "Ghost"
[[steps]]
id = "work"
title = "Work"
target = "nobody-here"
`

let supervisor: RunningSupervisor
let city: MoleculeCity
before(async () => {
  supervisor = await startSupervisor()
  city = await MoleculeCity.start(supervisor, 'needy', { gated: GATED, judged: JUDGED, ghost: GHOST })
})
after(() => supervisor[Symbol.asyncDispose]())

type Listed = Readonly<Record<string, unknown>>

async function needs(query = ''): Promise<readonly Listed[]> {
  const { body } = await city.city.get(`/needs${query}`)
  return [at(body, 'items')].flat().map(asMap)
}

const need = (kind: string, subject: string): Promise<Listed> =>
  eventually(`${subject} is a need of kind ${kind}`, async () =>
    (await needs()).find((one) => one['kind'] === kind && at(one, 'subject', 'id') === subject),
  )
const isOver = (id: unknown): Promise<true> =>
  eventually(`the need ${id} is over`, async () => !(await needs()).some((one) => one['id'] === id) || undefined)

test('a gate of a molecule is a need until somebody answers it, with what waits behind it', async () => {
  const { id } = await city.launch('gated')
  const { bead_id: gate = '' } = await city.step(id, 'ok')
  const found = await need('gate', gate)
  assert.equal(found['severity'], 'act')
  assert.equal(found['title'], 'Release: Publish it?')
  assert.equal(found['content'], 'Read the notes first.')
  assert.equal(found['holds_up'], 2)
  const listed = await cliHere(['needs', '-o', 'json', '-q'], {
    cwd: city.city.dir,
    env: { SVC_HOME: supervisor.home, SVC_CITY: 'needy' },
  })
  assert.ok(listed.out.includes(`svcctl bead close ${gate} --outcome pass`), listed.out)
  await city.city.post(`/beads/${gate}/close`, { outcome: 'pass' })
  await isOver(found['id'])
  const events = await city.city.events('need.*')
  const about = events.filter(({ subject }) => subject === found['id']).map(({ type }) => type)
  assert.deepEqual([about[0], about.at(-1)], ['need.opened', 'need.cleared'])
})

test('a check by hand and a step that nobody can take are needs', async () => {
  const { id } = await city.launch('judged')
  await city.finish(id, 'work')
  const check = await eventually('the check waits', async () =>
    (await needs()).find(({ kind, title }) => kind === 'manual_check' && String(title).includes('Good enough?')),
  )
  await city.city.post(`/beads/${String(at(check, 'subject', 'id'))}/close`, { outcome: 'pass' })
  await isOver(check['id'])
  const ghost = await city.launch('ghost')
  const stuck = await need('step_stuck', ghost.id)
  assert.match(String(stuck['title']), /nobody-here/)
  await city.city.post(`/molecules/${ghost.id}/cancel`, {})
  await isOver(stuck['id'])
})

test('a formula, an order and a configuration that are not valid are needs until they are mended', async () => {
  const broken = join(city.city.dir, 'formulas', 'broken.toml')
  const order = join(city.city.dir, 'orders', 'never.toml')
  writeFileSync(broken, 'title = "Broken"\n[[steps]]\nid = "a"\ntitle = "A"\nneeds = ["b"]\n')
  writeFileSync(order, 'trigger = { cron = "0 0 30 2 *" }\nexec = "true"\n')
  const formula = await need('formula_invalid', 'broken')
  const dead = await need('order_invalid', 'never')
  assert.match(String(formula['detail']), /broken\.toml:\d+:\d+: /)
  rmSync(broken)
  rmSync(order)
  await isOver(formula['id'])
  await isOver(dead['id'])
})

test('needs stand after the supervisor was killed, and what was answered meanwhile is over', async () => {
  const { id } = await city.launch('gated')
  const { bead_id: gate = '' } = await city.step(id, 'ok')
  const before = await need('gate', gate)
  await supervisor.kill('SIGKILL')
  city.city.api.close()
  supervisor = await startSupervisor({ home: supervisor.home })
  city = new MoleculeCity(await cityAgain(supervisor, 'needy'))
  assert.equal((await need('gate', gate))['id'], before['id'])
  await city.city.post(`/beads/${gate}/close`, { outcome: 'fail', failure_class: 'hard', failure_reason: 'no' })
  await isOver(before['id'])
  const failed = await need('molecule_failed', id)
  assert.match(String(failed['title']), /Release failed in ok/)
})

test('a city that cannot start is a need in the list of all cities', async () => {
  const everywhere = async () => {
    const { body } = await city.city.api.call('GET', '/v0/needs?kind=city_failed')
    return [at(body, 'items')].flat().map(asMap)
  }
  assert.deepEqual(await everywhere(), [])
  const dir = join(supervisor.work, 'broken')
  mkdirSync(dir)
  writeFileSync(join(dir, 'city.toml'), '[workspace]\nname = 7\n')
  const adopted = await city.city.api.call('POST', '/v0/cities', { body: { path: dir, name: 'broken' } })
  assert.equal(adopted.status, 202, adopted.text)
  const [failed] = await eventually('the failed city is a need', async () => {
    const found = await everywhere()
    return found.length === 0 ? undefined : found
  })
  assert.deepEqual([at(failed, 'city'), at(failed, 'severity')], ['broken', 'act'])
})
