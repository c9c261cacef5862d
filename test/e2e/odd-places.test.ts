// Cities in odd places, cities that two supervisors want, agents that stand still: each is dealt with, nobody else notices.
import assert from 'node:assert/strict'
import { existsSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { createCity, listCities } from '../../src/contract/cities.ts'
import { identify, readStat } from '../../src/runtimes/process/process-identity.ts'
import { eventually } from '../support/http.ts'
import { cityIs, newCity, outcome, run, runAgain, succeeds } from '../support/running.ts'
import { newSessionCity, SessionApi } from '../support/session-api.ts'

const ODD = [
  'with blanks  and\ttabs',
  `quote ' double " back \` slash \\`,
  '$(touch pwned) $HOME ;|&<>*?[x]{y}~!#',
  '-rf',
  'Zürich 東京 🏙️',
  'e\u0301 combining',
  '%2e%2e %00 %s',
  'line\nbreak',
]

test('cities in directories with odd names run agents, survive a restart, and nothing in a name is executed', {
  timeout: 180_000,
}, async () => {
  await using running = await run()
  const { api, work, server } = running
  const places = ODD.map((name, index) => ({ dir: join(work, 'odd', name), name: `odd-${index}` }))
  mkdirSync(join(work, 'odd'))
  for (const { dir, name } of places)
    await succeeds(api, await api.ask(createCity, '/v0/city', { body: { dir, name } }))
  for (const { dir, name } of places) {
    const city = new SessionApi(api, name, dir)
    await city.configure()
    await city.message(await city.start(), 'touch "$SVC_CITY_PATH/by-agent"')
    await eventually(
      `the agent of ${JSON.stringify(dir)} has written`,
      () => existsSync(join(dir, 'by-agent')) || undefined,
    )
  }
  await server.kill('SIGKILL')
  await using again = await runAgain(server.home)
  for (const { name } of places) await cityIs(again.api, name, 'running')
  const { items } = await again.api.ask(listCities, '/v0/cities?limit=1000')
  assert.deepEqual(new Set(items.map(({ path }) => path)), new Set(places.map(({ dir }) => dir)))
  for (const root of [work, join(work, 'odd'), ...places.map(({ dir }) => dir), process.cwd()])
    assert.ok(!existsSync(join(root, 'pwned')), root)
})

test('a city that one supervisor runs is refused to a second one, and goes on undisturbed', {
  timeout: 90_000,
}, async () => {
  await using first = await run()
  await using second = await run()
  const dir = await newCity(first.api, first.work, 'alpha')
  const accepted = await second.api.post('/v0/cities', { dir })
  if (accepted.status === 202) {
    const { status, error_message } = await outcome(second.api, String(Object(accepted.body).request_id))
    assert.equal(status, 'failed')
    assert.match(String(error_message), /another process has it open/)
  } else assert.ok(accepted.status >= 400, accepted.text)
  const emitted = await first.api.post('/v0/city/alpha/events', { type: 'still.mine', actor: 'ann' })
  assert.equal(emitted.status, 201, emitted.text)
  assert.equal((await second.api.get('/health')).status, 200)
})

test('an agent that was stopped in its tracks can be ended, and holds up nobody', { timeout: 90_000 }, async () => {
  await using running = await run()
  const city = await newSessionCity(running, 'alpha')
  const id = await city.start()
  const { pid = 0 } = await city.get(id)
  process.kill(pid, 'SIGSTOP')
  await eventually('it stands still', () => readStat(pid)?.runnable === false || undefined)
  const other = await city.start()
  await city.message(other, 'touch other')
  await eventually('the other one works', () => existsSync(join(city.dir, 'other')) || undefined)
  assert.equal((await running.api.get('/health')).status, 200)
  await city.close(id)
  assert.equal(identify(pid), undefined)
})
