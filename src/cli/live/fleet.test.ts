import assert from 'node:assert/strict'
import { test } from 'node:test'
import { EVENT_TYPE_NAMES } from '../../contract/event-types.ts'
import { changedBy, changesCities, Rate } from './fleet.ts'

test('an event names what it can have changed, and no more', () => {
  for (const [type, parts] of [
    ['bead.claimed', ['status', 'sessions']],
    ['session.pending', ['sessions', 'needs']],
    ['session.delivery', []],
    ['worker.operation', []],
    ['demo.shown', []],
    ['config.rejected', ['status', 'sessions', 'agents', 'needs']],
  ] as const)
    assert.deepEqual(changedBy({ type }), parts, type)
  assert.deepEqual(
    EVENT_TYPE_NAMES.filter((type) => changesCities({ type })).filter((type) => type.includes('session')),
    [],
  )
  assert.ok(changesCities({ type: 'city.stopped' }) && changesCities({ type: 'request.result.city.create' }))
})

test('events per second are those of the seconds that are over', () => {
  const rate = new Rate()
  const second = 1_000
  assert.equal(rate.at(10 * second), 0)
  for (let at = 0; at < 30; at += 1) rate.add(10 * second + at * 100)
  assert.equal(rate.at(13 * second), 10)
  assert.equal(rate.at(100 * second), 0)
})
