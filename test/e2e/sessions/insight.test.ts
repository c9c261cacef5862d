// What the transcripts of agents add to what is known of their sessions. Real processes, over HTTP.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { eventually } from '../../support/http.ts'
import { cityIs, run, runAgain } from '../../support/running.ts'
import { newSessionCity, SessionApi } from '../../support/session-api.ts'

/** Its calls of the runtime that said something, in order. */
const said = async (city: SessionApi, id: string) =>
  (await city.events('worker.operation', { subject: id })).flatMap(({ payload }) =>
    payload.operation === 'message' ? [payload] : [],
  )

const saidTimes = (city: SessionApi, id: string, times: number) =>
  eventually(`${times} messages of ${id} are told`, async () => {
    const all = await said(city, id)
    return all.length >= times ? all : undefined
  })

test('how full an agent is, and what a turn of it cost, can be seen', { timeout: 90_000 }, async () => {
  await using running = await run()
  const city = await newSessionCity(running, 'alpha')
  const id = await city.startTalker()
  const text = 'usage 500 1000\nsay hello'
  await city.message(id, text)
  const [first] = await saidTimes(city, id, 1)
  assert.deepEqual(
    [first?.result, first?.delivered, first?.input_tokens, first?.output_tokens],
    ['succeeded', true, text.length, 1],
  )
  const session = await city.until(id, 'tells how full it is', ({ context_pct }) => context_pct !== undefined)
  assert.deepEqual([session.context_pct, session.context_window], [50, 1000])

  await city.message(id, 'crash 3')
  const all = await saidTimes(city, id, 2)
  assert.equal(all.length, 2)
  assert.equal(all[1]?.input_tokens, undefined)
})

test('a turn is told once, also when the supervisor dies in the middle of it', { timeout: 90_000 }, async () => {
  await using first = await run()
  const city = await newSessionCity(first, 'alpha')
  const id = await city.startTalker()
  await city.message(id, 'stall')
  await city.until(id, 'works', ({ activity }) => activity === 'in-turn')
  assert.deepEqual(await said(city, id), [])
  await first.server.kill('SIGKILL')
  await using second = await runAgain(first.server.home)
  await cityIs(second.api, 'alpha', 'running')
  const again = new SessionApi(second.api, 'alpha', city.dir)
  await again.until(id, 'is taken over', ({ activity }) => activity === 'in-turn')
  await again.done('POST', `/sessions/${id}/stop`)
  const told = await saidTimes(again, id, 1)
  assert.deepEqual(
    told.map(({ input_tokens }) => input_tokens),
    ['stall'.length],
  )
  await again.message(id, 'say done')
  assert.equal((await saidTimes(again, id, 2)).length, 2)
})
