import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createCity } from '../support/config-city.ts'
import { at } from '../support/document.ts'
import { Api, assertProblem } from '../support/http.ts'
import { succeeds } from '../support/running.ts'
import { startSupervisor } from '../support/supervisor.ts'

test('the outcome of a request of a city is found after the city was unregistered, and once after it is back', async () => {
  await using supervisor = await startSupervisor()
  const api = new Api(supervisor.url)
  const city = await createCity(supervisor, 'leaving')
  const accepted = await city.post('/config/reload', {})
  const id = String(at(accepted.body, 'request_id'))
  await city.outcome(accepted)

  const left = await api.post('/v0/city/leaving/unregister')
  await succeeds(api, { request_id: String(at(left.body, 'request_id')) })
  assert.equal(at((await api.get(`/v0/requests/${id}`)).body, 'status'), 'succeeded')

  const back = await api.post('/v0/cities', { path: city.dir })
  await succeeds(api, { request_id: String(at(back.body, 'request_id')) })
  const { body } = await api.get('/v0/requests?operation=config.reload')
  assert.equal(at(body, 'total'), 1)
  assert.equal(at(body, 'items', 0, 'request_id'), id)
  assertProblem(await api.get('/v0/requests/req-000000000000000000000000'), 'request-not-found')
})
