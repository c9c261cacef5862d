// What an agent may do with the token that it was started with, and for how long. A real supervisor that asks for one.
import assert from 'node:assert/strict'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { Api, eventually } from '../../support/http.ts'
import { cityIs, run, runAgain } from '../../support/running.ts'
import { newSessionCity, SessionApi } from '../../support/session-api.ts'

/** What its process has, as the process itself tells it. */
async function tokenOf(city: SessionApi, id: string): Promise<string> {
  const file = join(city.dir, `${id}-${(await city.get(id)).generation}`)
  await city.message(id, `printf %s "$SVC_TOKEN" > ${file}.new; mv ${file}.new ${file}`)
  return eventually(`${id} writes its token`, async () => (existsSync(file) ? readFileSync(file, 'utf8') : undefined))
}

async function statusWith(url: string, token: string): Promise<number> {
  const api = new Api(url, token)
  const { status } = await api.get('/v0/cities')
  api.close()
  return status
}

test('an agent of a server with a token speaks with one of its own, while it runs', { timeout: 90_000 }, async () => {
  await using running = await run({ args: ['--auth'] })
  const city = await newSessionCity(running, 'alpha')
  const { url, home } = running.server
  const id = await city.start()
  const token = await tokenOf(city, id)
  assert.match(token, /^[0-9a-f]{64}$/)
  assert.notEqual(token, JSON.parse(readFileSync(join(home, 'endpoint.json'), 'utf8')).token)
  assert.equal(await statusWith(url, token), 200)

  await city.done('POST', `/sessions/${id}/kill`)
  assert.equal(await statusWith(url, token), 401)
  await city.until(id, 'runs again', ({ generation, running }) => generation === 2 && running)
  assert.equal(await statusWith(url, token), 401)

  const second = await tokenOf(city, id)
  await running.server.kill('SIGKILL')
  await using again = await runAgain(home, { args: ['--auth'] })
  // It never hears that it may not, only that nobody can tell yet.
  const early = new Set<number>()
  await eventually('the agent is known again', async () => {
    early.add(await statusWith(again.server.url, second))
    return early.has(200) ? true : undefined
  })
  assert.deepEqual(
    [...early].filter((status) => status !== 200 && status !== 503),
    [],
  )
  await cityIs(again.api, 'alpha', 'running')
  await new SessionApi(again.api, 'alpha', city.dir).close(id)
  assert.equal(await statusWith(again.server.url, second), 401)
})

test('without a token of the server an agent has none', { timeout: 60_000 }, async () => {
  await using running = await run()
  const city = await newSessionCity(running, 'alpha')
  assert.equal(await tokenOf(city, await city.start()), '')
})
