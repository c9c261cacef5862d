// Transcripts of sessions whose earlier output was removed after its time: the gap is said, and nobody reads on from within it.
import assert from 'node:assert/strict'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { at } from '../../support/document.ts'
import { assertProblem } from '../../support/http.ts'
import { type Running, run } from '../../support/running.ts'
import { newSessionCity, type SessionApi, sessionPath } from '../../support/session-api.ts'
import { openStream } from '../../support/sse.ts'

describe('transcripts of which a part was removed after its time', () => {
  let running: Running
  let city: SessionApi
  before(async () => {
    running = await run()
    city = await newSessionCity(running, 'alpha')
    await city.configure()
  })
  after(() => running[Symbol.asyncDispose]())

  const RUNS = '.svc/runtime/sessions'
  const page = (id: string, query = '') => city.send('GET', `${sessionPath(id)}/transcript?format=structured${query}`)

  for (const kind of ['bash', 'talker'] as const) {
    test(`a page, a stream and a place of ${kind} say that an earlier run is no longer kept`, async () => {
      const id = await (kind === 'bash' ? city.start() : city.startTalker())
      await city.message(id, kind === 'bash' ? 'echo before' : 'before')
      await city.said(id, 'before')
      const whole = (await page(id)).body
      assert.equal(lost(whole), undefined)
      const place = String(at(whole, 'structured_messages', 0, 'id'))
      assert.match(place, /^1-/)
      await city.done('POST', `${sessionPath(id)}/suspend`)
      await city.is(id, 'suspended')
      await city.done('POST', `${sessionPath(id)}/wake`)
      await city.until(id, 'runs again', ({ generation, state }) => generation === 2 && state === 'active')
      await city.message(id, kind === 'bash' ? 'echo after' : 'after')
      await city.said(id, 'after')
      assert.equal(lost((await page(id)).body), undefined)

      assert.deepEqual(
        readdirSync(join(city.dir, RUNS, id))
          .filter((name) => /^\d+$/.test(name))
          .sort(),
        ['1', '2'],
      )
      city.remove(`${RUNS}/${id}/1`)
      const { body } = await page(id)
      assert.equal(at(body, 'pagination', 'has_older_messages'), false)
      assert.equal(lost(body), 1)
      assert.equal(at(body, 'history', 'continuity', 'status'), 'degraded')
      assert.equal(at(body, 'history', 'continuity', 'note'), 'nothing is kept of one run before this')
      assert.equal(lost((await page(id, '&limit=1')).body), undefined, 'older ones come first')
      for (const query of [`&before=${place}`, `&after=${place}`])
        assertProblem(await page(id, query), 'transcript-cursor-invalidated')

      const path = `${city.base}${sessionPath(id)}/stream?format=structured`
      await using stream = await openStream(city.api, path, { headers: { 'last-event-id': place } })
      await stream.until(() => stream.frames.some(({ event }) => event === 'structured'))
      const told: unknown = JSON.parse(stream.frames.find(({ event }) => event === 'structured')?.data ?? '')
      assert.deepEqual([at(told, 'operation'), at(told, 'reset_reason')], ['reset', 'cursor_invalidated'])
      assert.equal(lost(told), 1)
      await city.forget(id)
    })
  }

  test('a session of which nothing is kept has an empty page that says so', async () => {
    const id = await city.start()
    await city.done('POST', `${sessionPath(id)}/suspend`)
    await city.is(id, 'suspended')
    city.remove(`${RUNS}/${id}`)
    const { body } = await page(id)
    assert.deepEqual(at(body, 'structured_messages'), [])
    assert.equal(lost(body), 1)
    await city.forget(id)
  })
})

const lost = (body: unknown): unknown => Object(at(body, 'pagination'))['dropped_runs']
