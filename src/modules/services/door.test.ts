import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { ManualClock } from '../../../test/support/manual-clock.ts'
import { Problem, problem } from '../../kernel/problem.ts'
import { Door } from './door.ts'
import type { Visit } from './ports.ts'

const UPSTREAM = { socketPath: '/tmp/page' }
const NEVER = new AbortController().signal
const aborted = (reason: string) => AbortSignal.abort(new Error(reason))
const down = () => problem('unavailable', 'service page is degraded', { retryAfterSec: 3 })

function opened() {
  const clock = new ManualClock()
  const door = new Door('page', clock)
  return { clock, door }
}

/** A visit that nobody had to wait for. */
function atOnce(door: Door): Visit {
  const visit = door.enter(NEVER)
  assert.ok(!(visit instanceof Promise))
  return visit
}

describe('the door of a service', () => {
  test('an open one lets in at once, and tells lives apart', () => {
    const { door } = opened()
    door.open(UPSTREAM)
    const [first, second] = [atOnce(door), atOnce(door)]
    assert.deepEqual(first.upstream, UPSTREAM)
    assert.equal(first.life, second.life)
    door.open(UPSTREAM)
    assert.notEqual(atOnce(door).life, first.life)
    assert.equal(first.cut.aborted, true)
  })

  test('whoever comes while it is held waits, and all get in when it opens', async () => {
    const { door } = opened()
    door.hold()
    const waiting = [door.enter(NEVER), door.enter(NEVER)]
    door.open(UPSTREAM)
    const visits = await Promise.all(waiting)
    assert.equal(visits[0]?.life, visits[1]?.life)
  })

  test('nobody waits longer than 30 s, and no more than 1,000 do', async () => {
    const { clock, door } = opened()
    door.hold()
    const waiting = Array.from({ length: 1_000 }, () =>
      Promise.resolve(door.enter(NEVER)).catch((error: unknown) => error),
    )
    assert.throws(() => door.enter(NEVER), { code: 'unavailable', message: /1000 requests wait/ })
    await clock.advance(29_999)
    const settled = await Promise.race([...waiting, Promise.resolve('none yet')])
    assert.equal(settled, 'none yet')
    await clock.advance(1)
    for (const error of await Promise.all(waiting)) {
      assert.ok(error instanceof Problem)
      assert.match(error.message, /not ready within 30 s/)
      assert.equal(error.options.retryAfterSec, 5)
    }
    const next = door.enter(NEVER)
    door.open(UPSTREAM)
    assert.deepEqual((await next).upstream, UPSTREAM)
  })

  test('a client that is gone does not wait on, and leaves room', async () => {
    const { door } = opened()
    door.hold()
    const client = new AbortController()
    const waiting = Promise.resolve(door.enter(client.signal))
    client.abort(new Error('gone'))
    await assert.rejects(waiting, /gone/)
    await assert.rejects(Promise.resolve(door.enter(aborted('before'))), /before/)
  })

  test('a shut one says why, also to those who wait', async () => {
    const { door } = opened()
    door.hold()
    const waiting = Promise.resolve(door.enter(NEVER))
    door.shut(down)
    await assert.rejects(waiting, { message: 'service page is degraded' })
    assert.throws(() => door.enter(NEVER), { message: 'service page is degraded' })
  })

  test('it is empty when the last visitor has left; leaving twice is leaving once', async () => {
    const { door } = opened()
    door.open(UPSTREAM)
    const [first, second] = [atOnce(door), atOnce(door)]
    door.hold()
    let isEmpty = false
    const drained = door.drained(NEVER).then(() => {
      isEmpty = true
    })
    first.leave()
    first.leave()
    await Promise.resolve()
    assert.equal(isEmpty, false)
    second.leave()
    await drained
    assert.equal(second.cut.aborted, false)
  })

  test('who does not leave in time is cut, and only then', async () => {
    const { door } = opened()
    door.open(UPSTREAM)
    const visit = atOnce(door)
    door.hold()
    await door.drained(aborted('time is up'))
    assert.equal(visit.cut.aborted, false)
    door.end()
    assert.equal(visit.cut.aborted, true)
    assert.match(String(visit.cut.reason), /service page: it is being restarted/)
    door.open(UPSTREAM)
    const last = atOnce(door)
    door.shut(down)
    door.end()
    assert.match(String(last.cut.reason), /service page is degraded/)
  })

  test('a stream for every one of many visitors warns nobody', () => {
    const { door } = opened()
    const warned: unknown[] = []
    const onWarning = (warning: unknown) => warned.push(warning)
    process.on('warning', onWarning)
    door.open(UPSTREAM)
    for (let i = 0; i < 50; i++) atOnce(door).cut.addEventListener('abort', () => {})
    process.off('warning', onWarning)
    assert.deepEqual(warned, [])
  })
})
