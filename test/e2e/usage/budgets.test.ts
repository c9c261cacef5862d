// Budgets: crossed once, under load, and what follows. Real processes, over HTTP.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { asMap, at } from '../../support/document.ts'
import { eventually } from '../../support/http.ts'
import { cityIs, run, runAgain } from '../../support/running.ts'
import { newSessionCity, SessionApi } from '../../support/session-api.ts'

const PRICES = '[[pricing]]\nmodel = "*"\ninput = 1000\noutput = 0\n'
const budget = async (city: SessionApi) => asMap((await city.send('GET', '/budget')).body)
const crossings = (city: SessionApi) => city.events('budget.crossed')
const crossed = (city: SessionApi, times: number) =>
  eventually(`${times} crossings`, async () => {
    const all = await payloads(city)
    return all.length >= times ? all : undefined
  })
const payloads = async (city: SessionApi) => (await crossings(city)).map(({ payload }) => payload)

test('the budget of a day is crossed once however many work, and suspends them', { timeout: 120_000 }, async () => {
  await using running = await run()
  const city = await newSessionCity(running, 'alpha')
  // A turn of eleven letters costs 0.011 dollars.
  await city.configure(`${PRICES}[budget]\nper_day_usd = 0.1\naction = "suspend"\n`)
  const ids = await Promise.all(Array.from({ length: 4 }, () => city.startTalker()))
  const say = (id: string) =>
    city.send('POST', `/sessions/${id}/submit`, { message: 'say eleven!', intent: 'follow_up' })
  for (let round = 0; round < 4; round++) await Promise.all(ids.map(say))
  const [first] = await crossed(city, 1)
  assert.deepEqual(
    [first?.budget, first?.limit_usd, first?.action, first?.day],
    ['day', '0.10', 'suspend', new Date().toISOString().slice(0, 10)],
  )
  assert.ok(Number(first?.spent_usd) >= 0.1)
  for (const id of ids) {
    const held = await city.until(id, 'is suspended', ({ state }) => state === 'suspended')
    assert.equal(held.reason, 'budget')
  }
  const status = await budget(city)
  assert.ok(status.crossed_at !== undefined)
  assert.deepEqual([...(Array.isArray(status.held_sessions) ? status.held_sessions : [])].sort(), [...ids].sort())

  // A person decides that one goes on: it is not held again for the same crossing.
  const [one = ''] = ids
  const before = Number(at(status.today, 'turns'))
  await city.done('POST', `/sessions/${one}/wake`)
  await city.until(one, 'runs', ({ state }) => state === 'active')
  await say(one)
  await eventually('it works', async () => Number(at((await budget(city)).today, 'turns')) > before || undefined)
  assert.equal((await city.get(one)).state, 'active')
  assert.equal((await crossings(city)).length, 1)
})

test('a session that costs too much is told of once, and warned of only', { timeout: 90_000 }, async () => {
  await using running = await run()
  const city = await newSessionCity(running, 'alpha')
  await city.configure(`${PRICES}[budget]\nper_session_usd = 0.02\n`)
  const id = await city.startTalker()
  for (const turn of [1, 2, 3]) {
    await city.message(id, `say turn ${turn}.`)
    await eventually('it is recorded', async () => ((await city.get(id)).usage?.turns === turn ? true : undefined))
  }
  const [only] = await crossed(city, 1)
  assert.deepEqual(
    [only?.budget, only?.session_id, only?.limit_usd, only?.spent_usd, only?.action],
    ['session', id, '0.02', '0.022', 'warn'],
  )
  assert.equal((await crossings(city)).length, 1)
  assert.equal((await city.get(id)).state, 'active')
  // Another limit is another budget: it is crossed where it is set.
  await city.configure(`${PRICES}[budget]\nper_session_usd = 0.03\naction = "suspend"\n`)
  await crossed(city, 2)
  assert.equal((await city.until(id, 'is suspended', ({ state }) => state === 'suspended')).reason, 'budget')
})

test('a limit that was lowered while nothing ran holds at the next start', { timeout: 90_000 }, async () => {
  await using first = await run()
  let city = await newSessionCity(first, 'alpha')
  await city.configure(`${PRICES}[budget]\nper_session_usd = 5\naction = "suspend"\n`)
  const id = await city.startTalker()
  await city.message(id, 'say eleven!')
  await eventually('its turn is recorded', async () => (await city.get(id)).usage)
  assert.deepEqual(await crossings(city), [])
  await first.server.kill('SIGKILL')
  city.write('city.toml', city.read('city.toml').replace('per_session_usd = 5', 'per_session_usd = 0.01'))
  await using second = await runAgain(first.server.home)
  await cityIs(second.api, 'alpha', 'running')
  city = new SessionApi(second.api, 'alpha', city.dir)
  assert.equal((await city.until(id, 'is suspended', ({ state }) => state === 'suspended')).reason, 'budget')
  const [only] = await crossed(city, 1)
  assert.deepEqual([only?.budget, only?.limit_usd, only?.spent_usd], ['session', '0.01', '0.011'])
})
