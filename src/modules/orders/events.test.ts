/** What an order does with events that it cannot use now, that come too often, or that its own runs lead to. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { OrderCity, order } from '../../../test/support/order-city.ts'
import { parseOrder } from '../../automation/order.ts'
import { OrderTexts } from './shown.ts'

const SECOND = 1_000
const MINUTE = 60 * SECOND
const HOUR = 60 * MINUTE
const NOON = Date.UTC(2026, 4, 1, 12)
const FORMULA = { kind: 'formula', formula: 'fix', keep: 7 * 24 * HOUR } as const
const onEvent = (on: string, said: { batch?: boolean; match?: Record<string, string>; max_per_hour?: number } = {}) =>
  ({ kind: 'event', on, match: {}, batch: false, max_per_hour: 600, ...said }) as const

const titlesOf = (city: OrderCity) => [...city.molecules.values()].map(({ title }) => title)

function warningsOf(city: OrderCity, name: string): readonly string[] {
  const [text = '{}'] = new OrderTexts().of(city.store.db, [city.see(name)])
  const shown: { readonly warnings?: readonly string[] } = JSON.parse(text)
  return shown.warnings ?? []
}

test('event order: events that come while its formula is broken are handed on once it is mended', async () => {
  const files = [
    order('a', { trigger: onEvent('job'), overlap: 'allow', action: { ...FORMULA, title: '{{ event.payload.id }}' } }),
  ]
  await using city = await new OrderCity(files, NOON).start()
  await city.emit('job', { id: 'J1' })
  city.refuses = 'the formula fix is not valid'
  await city.emit('job', { id: 'J2' })
  await city.emit('job', { id: 'J3' })
  await city.restart(SECOND)
  assert.deepEqual(city.runs().length, 1)
  const { outlook, state } = city.see('a')
  assert.match(outlook.reason, /could not begin \(1 of 8 tries\); events wait/)
  assert.match(state.error ?? '', /the formula fix is not valid/)
  city.refuses = undefined
  await city.emit('job', { id: 'J4' })
  // Whoever saves the file does not wait for the next try.
  await city.say([...files])
  assert.deepEqual(titlesOf(city), ['J1', 'J2', 'J3', 'J4'])
  assert.deepEqual([city.see('a').state.error, city.see('a').state.refusals], [undefined, 0])
})

test('event order: what never begins is given up aloud after eight tries, and what comes behind it goes on', async () => {
  const files = [order('a', { trigger: onEvent('job'), overlap: 'allow', action: FORMULA })]
  await using city = await new OrderCity(files, NOON).start()
  city.refuses = 'there is no bead al-1'
  await city.emit('job', { n: 1 }, { n: 2 })
  const begun = city.clock.now()
  for (let waited = 0; city.runs().length === 0; waited++) {
    assert.ok(waited < 200, 'it never gives up')
    await city.advance(10 * SECOND)
  }
  assert.ok(city.clock.now() - begun >= 10 * MINUTE)
  const [run] = city.runs()
  assert.match(run?.error ?? '', /8 tries to begin came to nothing, its events are passed over: there is no bead al-1/)
  assert.equal(city.events('order.failed').length, 1)
  city.refuses = undefined
  await city.advance(10 * MINUTE)
  assert.equal(city.molecules.size, 1)
})

test('orders that set each other off end after a chain of eight, and say so', async () => {
  const files = [
    order('ping', { trigger: onEvent('order.completed', { match: { name: 'pong' } }) }),
    order('pong', { trigger: onEvent('order.completed', { match: { name: 'ping' } }) }),
  ]
  await using city = await new OrderCity(files, NOON).start()
  await city.store.db.write((tx) => city.orders.run(tx, city.orders.need('ping'), { force: false, actor: 'api' }))
  for (let ended = 0; city.execs.size > 0; ended++) {
    assert.ok(ended < 50, 'they go on for ever')
    await city.endOnly('order')
  }
  assert.equal(city.runs().length, 9)
  const warnings = [...warningsOf(city, 'ping'), ...warningsOf(city, 'pong')]
  assert.equal(warnings.length, 1)
  assert.match(warnings[0] ?? '', /orders set each other off/)
  assert.equal(city.logged.length, 1)
  city.logged.length = 0
  // A chain that somebody begins anew goes as far.
  await city.store.db.write((tx) => city.orders.run(tx, city.orders.need('pong'), { force: false, actor: 'api' }))
  await city.endOnly('order')
  assert.equal(city.execs.size, 1)
})

test('an order that sets itself off by other ways runs as often as `max_per_hour` says, and loses no event', async () => {
  const files = [order('a', { trigger: onEvent('x.y', { max_per_hour: 5 }) })]
  await using city = await new OrderCity(files, NOON).start()
  await city.emit('x.y', {})
  for (let round = 0; city.execs.size > 0; round++) {
    assert.ok(round < 20, 'it goes on for ever')
    await city.emit('x.y', { round })
    await city.endOnly('order')
  }
  assert.equal(city.runs().length, 5)
  assert.match(city.see('a').outlook.reason, /as often as `max_per_hour` allows; events wait/)
  assert.match(warningsOf(city, 'a').join(), /look whether it sets itself off/)
  await city.advance(HOUR)
  assert.equal(city.execs.size, 1)
})

test('the log is not kept for an order that is gone, or waits for events no more', async () => {
  const a = order('a', { trigger: onEvent('x.y') })
  await using city = await new OrderCity([a, order('b', { trigger: onEvent('x.y') })], NOON).start()
  const oldest = () => city.store.db.get('SELECT min(seq) AS seq FROM events')?.seq
  await city.emit('x.y', ...Array.from({ length: 50 }, () => ({})))
  const prune = () => city.store.db.write((tx) => city.store.log.prune(tx, { maxAgeMs: 24 * HOUR, maxBytes: 1 }))
  await prune()
  const kept = Number(oldest())
  await city.say([order('a', { trigger: { kind: 'manual' } })])
  for (let round = 0; round < 3; round++) await prune()
  assert.ok(Number(oldest()) > kept, `the oldest event is ${oldest()} still`)
})

test('a run whose command waits for a slot is queued, and its time counts from its start', async () => {
  await using city = await new OrderCity([order('a', { trigger: { kind: 'manual' } })], NOON).start()
  city.queues = true
  const { id } = await city.store.db.write((tx) =>
    city.orders.run(tx, city.orders.need('a'), { force: false, actor: 'api' }),
  )
  assert.deepEqual([city.runs()[0]?.status, city.see('a').running], ['queued', 1])
  await city.advance(MINUTE)
  await city.store.db.write((tx) => city.orders.execStarted(tx, id))
  await city.advance(SECOND)
  assert.equal(city.runs()[0]?.status, 'running')
  await city.endOnly('order')
  const [run] = city.runs()
  assert.deepEqual([run?.status, run?.queued_at], ['succeeded', NOON])
  assert.equal(Number(run?.finished_at) - Number(run?.started_at), SECOND)
})

const parsed = (text: string) => {
  const source = { text: `[order]\n${text}`, file: 'orders/a.toml', dir: '/orders' }
  const { order: read, issues } = parseOrder('a', source)
  assert.deepEqual(issues, [])
  assert.ok(read?.trigger.kind === 'event')
  return read.trigger.batch
}

test('an order that reads one event has a run for each; one that reads all of them, one for all', () => {
  const event = 'trigger = "event"\non = "bead.created"\n'
  assert.equal(parsed(`${event}formula = "fix"\nbead = "{{ event.payload.bead.id }}"`), false)
  assert.equal(parsed(`${event}formula = "fix"\ntitle = "{% if event.payload.x %}x{% endif %}"`), false)
  assert.equal(parsed(`${event}exec = "true"\n[order.vars]\nid = "{{ event.seq }}"`), false)
  assert.equal(parsed(`${event}formula = "fix"\ntitle = "{{ events | size }} events"`), true)
  assert.equal(parsed(`${event}exec = "cat"`), true)
  assert.equal(parsed(`${event}batch = true\nformula = "fix"\ntitle = "{{ event.seq }}"`), true)
})
