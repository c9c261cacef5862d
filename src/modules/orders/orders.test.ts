/** What sets orders off, on a clock that the test moves, over a real store. Processes are in test/e2e/orders. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { OrderCity, order } from '../../../test/support/order-city.ts'
import { tidy } from '../../kernel/store.ts'
import { outputOf, pruneOutputs } from './runs/rows.ts'
import { OrderTexts } from './shown.ts'

const SECOND = 1_000
const MINUTE = 60 * SECOND
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR
/** Of the clock of tests. */
const NOON = Date.UTC(2026, 4, 1, 12)

const cron = (schedule: string, catchUp = DAY, tz?: string) =>
  ({ kind: 'cron', schedule, catch_up: catchUp, ...(tz === undefined ? {} : { tz }) }) as const
const onEvent = (on: string, batch = true, match: Record<string, string> = {}) =>
  ({ kind: 'event', on, match, batch, max_per_hour: 600 }) as const
const condition = (interval = MINUTE) =>
  ({ kind: 'condition', check: 'true', check_timeout: 10_000, interval }) as const
const FORMULA = { kind: 'formula', formula: 'tidy', keep: DAY } as const

const statuses = (city: OrderCity, name?: string) =>
  city
    .runs(name)
    .map(({ status }) => status)
    .reverse()
const types = (city: OrderCity) => city.events('order.*').map(({ type, subject }) => `${type} ${subject}`)
const slots = (city: OrderCity, name?: string) =>
  city
    .runs(name)
    .map(({ slot }) => new Date(slot ?? 0).toISOString().slice(5, 16))
    .reverse()

test('a cron order runs at its times, says so, and tells when it is next', async () => {
  await using city = await new OrderCity([order('hourly', { trigger: cron('0 * * * *') })], NOON - 5 * SECOND).start()
  assert.equal(city.runs().length, 0)
  const before = city.see('hourly').outlook
  assert.deepEqual([before.kind, before.kind === 'wait' && before.next], ['wait', NOON])
  await city.advance(5 * SECOND)
  const exec = await city.endOnly('order', { output: 'done' })
  assert.equal(exec.order, 'hourly')
  assert.deepEqual(statuses(city), ['succeeded'])
  assert.deepEqual(types(city), ['order.fired hourly', 'order.completed hourly'])
  const [fired, completed] = city.events('order.*').map(({ envelope }) => JSON.parse(envelope).payload)
  assert.equal(fired.run_id, completed.run_id)
  assert.equal(fired.scheduled_for, new Date(NOON).toISOString())
  assert.deepEqual([fired.status, completed.status, completed.exit_code], ['running', 'succeeded', 0])
  await city.advance(HOUR - SECOND)
  assert.equal(city.runs().length, 1)
  await city.advance(SECOND)
  assert.deepEqual(slots(city), ['05-01T12:00', '05-01T13:00'])
})

test('a time that comes while a run is under way is skipped, and the row and an event say so', async () => {
  await using city = await new OrderCity([order('slow', { trigger: cron('0 * * * *') })], NOON - SECOND).start()
  await city.advance(SECOND)
  await city.advance(2 * HOUR)
  assert.deepEqual(statuses(city), ['running', 'skipped', 'skipped'])
  await city.endOnly('order')
  await city.advance(HOUR)
  assert.deepEqual(statuses(city), ['succeeded', 'skipped', 'skipped', 'running'])
  assert.deepEqual(slots(city), ['05-01T12:00', '05-01T13:00', '05-01T14:00', '05-01T15:00'])
  assert.equal(city.events('order.skipped').length, 2)
})

test('runs that may overlap all begin', async () => {
  const files = [order('busy', { trigger: cron('*/10 * * * *'), overlap: 'allow' })]
  await using city = await new OrderCity(files, NOON - SECOND).start()
  await city.advance(HOUR)
  assert.deepEqual(statuses(city), Array(6).fill('running'))
  const input = { force: false, actor: 'api' }
  await city.store.db.write((tx) => city.orders.run(tx, city.orders.need('busy'), input))
  assert.equal(city.runs().length, 7)
})

test('after a time without a supervisor the latest missed time runs once, if it is not too old', async () => {
  const files = [
    order('hourly', { trigger: cron('0 * * * *') }),
    order('daily', { trigger: cron('30 12 * * *', 2 * HOUR) }),
    order('never', { trigger: cron('0 * * * *', 0) }),
  ]
  await using city = await new OrderCity(files, NOON + SECOND).start()
  await city.restart(5 * HOUR)
  assert.deepEqual(slots(city, 'hourly'), ['05-01T17:00'])
  assert.match(city.runs('hourly')[0]?.reason ?? '', /missed/)
  assert.equal(city.runs('daily').length, 0)
  assert.equal(city.runs('never').length, 0)
  await city.endOnly('order')
  await city.restart(30)
  assert.equal(city.runs().length, 1)
  await city.advance(HOUR)
  assert.deepEqual(slots(city, 'never'), ['05-01T18:00'])
  assert.deepEqual(slots(city, 'hourly'), ['05-01T17:00', '05-01T18:00'])
})

test('an order that is new, enabled again, or has another schedule begins to count now', async () => {
  await using city = await new OrderCity([order('a', { trigger: cron('0 11 * * *') })], NOON).start()
  assert.equal(city.runs().length, 0)
  const toggle = (enabled: boolean) =>
    city.store.db.write((tx) => city.orders.setEnabled(tx, city.orders.need('a'), enabled, 'api'))
  assert.equal(await toggle(false), true)
  assert.equal(await toggle(false), false)
  await city.rest()
  await city.advance(2 * DAY)
  assert.equal(city.runs().length, 0)
  await toggle(true)
  await city.rest()
  assert.equal(city.runs().length, 0)
  await city.say([order('a', { trigger: cron('30 11 * * *') })])
  assert.equal(city.runs().length, 0)
  await city.advance(DAY)
  assert.deepEqual(slots(city), ['05-04T11:30'])
  assert.deepEqual(types(city), ['order.disabled a', 'order.enabled a', 'order.fired a'])
})

test('what was said of an order outlives its file, and goes where the file says the same', async () => {
  const trigger = cron('0 * * * *')
  await using city = await new OrderCity([order('a', { trigger })], NOON).start()
  await city.store.db.write((tx) => city.orders.setEnabled(tx, city.orders.need('a'), false, 'api'))
  assert.deepEqual([city.see('a').enabled, city.see('a').state.enabled], [false, false])
  await city.say([])
  assert.throws(() => city.see('a'), /there is no order a/)
  await city.say([order('a', { trigger, description: 'other words' })])
  assert.deepEqual([city.see('a').enabled, city.see('a').state.enabled], [false, false])
  await city.say([order('a', { trigger, enabled: false })])
  assert.deepEqual([city.see('a').enabled, city.see('a').state.enabled], [false, undefined])
  await city.say([order('a', { trigger })])
  assert.deepEqual([city.see('a').enabled, city.see('a').state.enabled], [true, undefined])
})

test('a suspended city runs nothing by itself, and catches up when it goes on', async () => {
  await using city = await new OrderCity([order('a', { trigger: cron('0 * * * *') })], NOON - SECOND).start()
  city.suspended = true
  await city.advance(3 * HOUR)
  assert.equal(city.runs().length, 0)
  assert.equal(city.see('a').suspended, true)
  city.suspended = false
  await city.store.db.write((tx) => city.store.log.append(tx, { type: 'city.resumed', actor: 'api', payload: {} }))
  await city.rest()
  assert.deepEqual(slots(city), ['05-01T14:00'])
})

test('a clock that is set forward is time without a supervisor, one that is set back begins nothing twice', async () => {
  const files = [
    order('a', { trigger: cron('0 * * * *') }),
    order('b', { trigger: { kind: 'cooldown', interval: HOUR } }),
  ]
  await using city = await new OrderCity(files, NOON + MINUTE).start()
  for (const { id } of [...city.execs.values()]) await city.end(id)
  city.clock.step(3 * HOUR)
  await city.advance(MINUTE)
  assert.deepEqual(slots(city, 'a'), ['05-01T15:00'])
  assert.equal(city.runs('b').length, 2)
  for (const { id } of [...city.execs.values()]) await city.end(id)
  city.clock.step(-3 * HOUR)
  await city.advance(MINUTE)
  assert.equal(city.runs('a').length, 1)
  for (let hour = 0; hour < 4; hour++) {
    await city.advance(HOUR)
    for (const { id } of [...city.execs.values()]) await city.end(id)
  }
  assert.deepEqual(slots(city, 'a'), ['05-01T15:00', '05-01T13:00', '05-01T14:00', '05-01T16:00'])
  assert.ok(city.runs('b').length >= 5, `${city.runs('b').length} runs`)
})

test('a cooldown counts from start to start; a run by hand moves it', async () => {
  await using city = await new OrderCity([order('a', { trigger: { kind: 'cooldown', interval: HOUR } })], NOON).start()
  assert.equal(city.runs().length, 1)
  await city.advance(2 * HOUR)
  assert.equal(city.runs().length, 1)
  await city.endOnly('order')
  assert.equal(city.runs().length, 2)
  await city.endOnly('order')
  await city.advance(HOUR / 2)
  await city.store.db.write((tx) => city.orders.run(tx, city.orders.need('a'), { force: false, actor: 'api' }))
  await city.endOnly('order')
  await city.advance(HOUR / 2)
  assert.equal(city.runs().length, 3)
  await city.advance(HOUR / 2)
  assert.equal(city.runs().length, 4)
})

test('a condition is checked at its interval, and a run begins where the check passes', async () => {
  await using city = await new OrderCity([order('a', { trigger: condition(), action: FORMULA })], NOON).start()
  const check = await city.endOnly('condition', { exit_code: 1 })
  assert.equal(check.command, 'true')
  assert.equal(city.runs().length, 0)
  await city.advance(MINUTE)
  await city.endOnly('condition', { exit_code: 0 })
  const [run] = city.runs()
  assert.deepEqual(
    [run?.status, run?.trigger, run?.reason],
    ['running', 'condition', 'condition: its check passed (exit 0)'],
  )
  await city.advance(10 * MINUTE)
  assert.equal(city.execs.size, 0)
  await city.store.db.write((tx) => city.orders.moleculeEnded(tx, run?.id ?? '', { outcome: 'pass' }))
  await city.rest()
  assert.deepEqual(statuses(city), ['succeeded'])
  assert.equal(city.execs.size, 1)
})

test('a check without a verdict says why, and is repeated less and less often', async () => {
  await using city = await new OrderCity([order('a', { trigger: condition(5 * SECOND) })], NOON).start()
  const times: number[] = []
  for (let round = 0; round < 12; round++) {
    while (city.execs.size === 0) await city.advance(SECOND)
    times.push(city.clock.now())
    await city.endOnly('condition', { kind: 'exited', exit_code: 127 })
  }
  assert.match(city.see('a').state.error ?? '', /127/)
  assert.equal(city.runs().length, 0)
  const waits = times.slice(1).map((at, index) => (at - (times[index] ?? 0)) / SECOND)
  assert.deepEqual(waits, [5, 10, 20, 40, 80, 160, 320, 600, 600, 600, 600])
  await city.advance(10 * MINUTE)
  await city.endOnly('condition', { exit_code: 1 })
  assert.equal(city.see('a').state.error, undefined)
  await city.advance(5 * SECOND)
  assert.equal(city.execs.size, 1)
})

test('an event order is handed what occurred since it is there, the oldest hundred first, and loses none', async () => {
  await using city = new OrderCity([order('a', { trigger: onEvent('build.*') })], NOON)
  await city.emit('build.failed', { n: -1 })
  await city.start()
  assert.equal(city.runs().length, 0)
  await city.emit('build.failed', ...Array.from({ length: 250 }, (_, n) => ({ n })))
  await city.emit('other.thing', { n: 1_000 })
  const seen: number[] = []
  for (let round = 0; round < 3; round++) {
    const exec = await city.endOnly('order')
    const { stdin } = exec
    assert.ok(typeof stdin === 'object' && stdin !== null && 'events' in stdin && Array.isArray(stdin.events))
    for (const event of stdin.events) seen.push(event.payload.n)
  }
  assert.deepEqual(
    seen,
    Array.from({ length: 250 }, (_, n) => n),
  )
  assert.deepEqual(
    city.runs().map(({ events }) => events),
    [50, 100, 100],
  )
  assert.equal(city.execs.size, 0)
  await city.restart()
  assert.equal(city.runs().length, 3)
})

test('events one by one make a run each, in their order, also over a death between them', async () => {
  const trigger = onEvent('build.failed', false, { 'job.name': 'lint' })
  const vars = { n: '{{ event.payload.n }}' }
  await using city = await new OrderCity([order('a', { trigger, vars })], NOON).start()
  const payloads = Array.from({ length: 6 }, (_, n) => ({ n, job: { name: n % 2 === 0 ? 'lint' : 'test' } }))
  await city.emit('build.failed', ...payloads)
  const seen: unknown[] = []
  for (let round = 0; round < 3; round++) {
    await city.restart(MINUTE)
    seen.push((await city.endOnly('order')).vars.n)
  }
  assert.deepEqual(seen, ['0', '2', '4'])
  assert.equal(city.runs().length, 3)
})

test('what an order and its molecules say never sets it off', async () => {
  await using city = await new OrderCity(
    [order('a', { trigger: onEvent('order.*'), action: FORMULA }), order('b', {})],
    NOON,
  ).start()
  await city.store.db.write((tx) => city.orders.run(tx, city.orders.need('b'), { force: false, actor: 'api' }))
  await city.rest()
  assert.equal(city.runs('a').length, 1)
  const [run] = city.runs('a')
  await city.store.db.write((tx) => city.orders.moleculeEnded(tx, run?.id ?? '', { outcome: 'pass' }))
  await city.rest()
  assert.equal(city.runs('a').length, 1)
  await city.say([order('a', { trigger: onEvent('bead.*'), action: FORMULA }), order('b', {})])
  const bead = { id: 'al-1', metadata: { 'svc.root_bead_id': run?.molecule_id } }
  await city.emit('bead.closed', { bead })
  await city.store.db.write((tx) =>
    city.store.log.appendCustom(tx, {
      type: 'bead.closed',
      actor: 'x',
      subject: run?.molecule_id ?? '',
      payload: {},
    }),
  )
  await city.store.db.write((tx) =>
    city.store.log.appendCustom(tx, { type: 'bead.closed', actor: 'x', subject: 'al-1', payload: { bead } }),
  )
  await city.rest()
  const handed = city.runs('a').map(({ events }) => events)
  // The first has no subject: nobody can say that it is about a bead.
  assert.deepEqual(handed, [1, 1])
})

test('failures in a row of an event order make it wait longer, up to ten minutes; a success ends that', async () => {
  await using city = await new OrderCity([order('a', { trigger: onEvent('x.y', false) })], NOON).start()
  await city.emit('x.y', ...Array.from({ length: 13 }, (_, n) => ({ n })))
  const times: number[] = []
  for (let round = 0; round < 12; round++) {
    while (city.execs.size === 0) await city.advance(SECOND)
    times.push(city.clock.now())
    await city.endOnly('order', { exit_code: round === 10 ? 0 : 3 })
  }
  const waits = times.slice(1).map((at, index) => (at - (times[index] ?? 0)) / SECOND)
  assert.deepEqual(waits, [0, 10, 20, 40, 80, 160, 320, 600, 600, 600, 0])
})

test('an order that is disabled while events come is not told of them later', async () => {
  await using city = await new OrderCity([order('a', { trigger: onEvent('x.y') })], NOON).start()
  const toggle = (enabled: boolean) =>
    city.store.db.write((tx) => city.orders.setEnabled(tx, city.orders.need('a'), enabled, 'api'))
  await toggle(false)
  await city.emit('x.y', { n: 1 })
  await toggle(true)
  await city.rest()
  await city.emit('x.y', { n: 2 })
  const { stdin } = await city.endOnly('order')
  assert.match(JSON.stringify(stdin), /"n":2/)
  assert.doesNotMatch(JSON.stringify(stdin), /"n":1/)
})

test('retention waits for an event that a run has still to be handed', async () => {
  await using city = await new OrderCity([order('a', { trigger: onEvent('x.y', false) })], NOON).start()
  await city.emit('x.y', { n: 1 }, { n: 2 })
  await city.emit('noise', ...Array.from({ length: 50 }, () => ({})))
  await city.store.db.write((tx) => city.store.log.prune(tx, { maxAgeMs: 10 * DAY, maxBytes: 1 }))
  await city.endOnly('order')
  assert.match(JSON.stringify((await city.endOnly('order')).stdin), /"n":2/)
})

test('what refuses to be started is a run that failed, and the next time tries again', async () => {
  await using city = await new OrderCity(
    [order('a', { trigger: cron('0 * * * *'), action: FORMULA })],
    NOON - SECOND,
  ).start()
  city.refuses = 'the formula tidy is not valid'
  await city.advance(SECOND)
  assert.deepEqual(statuses(city), ['failed'])
  assert.equal(city.runs()[0]?.error, 'the formula tidy is not valid')
  assert.deepEqual(types(city), ['order.fired a', 'order.failed a'])
  city.refuses = undefined
  await city.advance(HOUR)
  assert.deepEqual(statuses(city), ['failed', 'running'])
  assert.equal(city.molecules.size, 1)
})

test('how a molecule ends is how its run ends, once', async () => {
  await using city = await new OrderCity([order('a', { action: { ...FORMULA, title: 'T' } })], NOON).start()
  const ends = [
    [{ outcome: 'pass' }, 'succeeded', 'order.completed'],
    [{ outcome: 'fail', reason: 'check_failed' }, 'failed', 'order.failed'],
    [{ outcome: 'fail', reason: 'its time is over', timed_out: true }, 'timed_out', 'order.failed'],
    [{ outcome: 'canceled' }, 'canceled', 'order.failed'],
  ] as const
  for (const [end, status, type] of ends) {
    const input = { force: false, actor: 'api' }
    const run = await city.store.db.write((tx) => city.orders.run(tx, city.orders.need('a'), input))
    assert.throws(() => city.orders.run(never(), city.orders.need('a'), input))
    await city.store.db.write((tx) => city.orders.moleculeEnded(tx, run.id, end))
    await city.store.db.write((tx) => city.orders.moleculeEnded(tx, run.id, { outcome: 'pass' }))
    assert.equal(city.runs()[0]?.status, status)
    assert.equal(city.events('order.completed', 'order.failed').at(-1)?.type, type)
  }
  assert.equal(city.events('order.completed', 'order.failed').length, 4)
})

test('of each order ten runs stay however old they are, and a thousand at most', async () => {
  await using city = await new OrderCity([order('a', {}), order('b', {})], NOON).start()
  const run = async (name: string) => {
    await city.store.db.write((tx) => city.orders.run(tx, city.orders.need(name), { force: true, actor: 'api' }))
    for (const { id } of [...city.execs.values()]) await city.end(id)
  }
  for (let n = 0; n < 15; n++) await run('a')
  for (let n = 0; n < 40; n++) {
    city.clock.step(DAY)
    city.store.log.agesCount()
  }
  await city.orders.sweep()
  assert.equal(city.runs('a').length, 10)
  await city.store.db.write((tx) => {
    for (let n = 0; n < 1_200; n++)
      tx.run(
        `INSERT INTO order_runs (id, scoped, name, action, trigger, source, reason, status, started_at, finished_at)
          VALUES (?, 'b', 'b', 'exec', 'manual', 'api', 'x', 'succeeded', ?, ?)`,
        `run-${n}`,
        city.clock.now(),
        city.clock.now(),
      )
  })
  await run('b')
  assert.equal(city.runs('b').length, 1_000)
})

test('a run of which nothing is left has failed, and a check that was lost is made again', async () => {
  const files = [order('a', { trigger: { kind: 'cooldown', interval: DAY } }), order('c', { trigger: condition() })]
  await using city = await new OrderCity(files, NOON).start()
  city.execs.clear()
  await city.restart(MINUTE)
  assert.deepEqual(statuses(city, 'a'), ['failed'])
  assert.match(city.runs('a')[0]?.error ?? '', /gone/)
  assert.equal(city.execs.size, 1)
})

test('a thousand orders that wait have one timer, and nothing is looked at before its time', async () => {
  const files = Array.from({ length: 1_000 }, (_, n) =>
    order(`o${n}`, { trigger: n % 2 === 0 ? cron(`${n % 60} 3 1 1 *`) : onEvent(`none.of-${n}`) }),
  )
  await using city = await new OrderCity(files, NOON).start()
  while (city.clock.pending !== 1) await city.rest()
  const { head } = city.store.log
  await city.advance(HOUR)
  assert.equal(city.clock.pending, 1)
  assert.equal(city.store.log.head, head)
  assert.equal(city.runs().length, 0)
})

test('a missed time that is too old is let go of, also where more would be caught up later', async () => {
  const schedule = '0 * * * *'
  await using city = await new OrderCity([order('a', { trigger: cron(schedule, MINUTE) })], NOON + SECOND).start()
  await city.restart(90 * MINUTE)
  assert.equal(city.runs().length, 0)
  assert.equal(city.see('a').state.since, NOON + HOUR)
  await city.say([order('a', { trigger: cron(schedule, DAY) })])
  assert.equal(city.runs().length, 0)
})

test('a check that passed right before the supervisor died has its run when it is back', async () => {
  await using city = await new OrderCity([order('a', { trigger: condition() })], NOON).start()
  const [check] = city.execs.values()
  assert.equal(check?.owner, 'condition')
  const passed = { kind: 'exited', exit_code: 0, output: '', truncated: false } as const
  await city.store.db.write((tx) => {
    city.execs.clear()
    city.orders.checkEnded(tx, check.id, check.ref, passed)
  })
  assert.deepEqual([city.see('a').state.holds, city.runs().length], [true, 0], 'in between')
  await city.restart()
  assert.deepEqual(
    city.runs().map(({ status, reason }) => [status, reason]),
    [['running', 'condition: its check passed (exit 0)']],
  )
  await city.endOnly('order')
  await city.restart()
  assert.equal(city.runs().length, 1)
})

test('a name that several rigs have is ambiguous; with the rig, or the whole name, it is not', async () => {
  const files = [order('a', {}, 'shop'), order('a', {}, 'bank'), order('b', {}, 'shop')]
  await using city = await new OrderCity(files, NOON).start()
  assert.throws(() => city.orders.need('a'), /a:rig:shop, a:rig:bank/)
  assert.equal(city.orders.need('a', 'shop').scoped, 'a:rig:shop')
  assert.equal(city.orders.need('a:rig:bank').file.rig, 'bank')
  assert.equal(city.orders.need('b').scoped, 'b:rig:shop')
  assert.throws(() => city.orders.need('b', 'bank'), /no order b for the rig bank/)
})

test('an order whose run never ends says that the log keeps events for it', async () => {
  await using city = await new OrderCity([order('a', { trigger: onEvent('note.made', false) })], NOON).start()
  await city.emit('note.made', { n: 1 })
  await city.emit('note.made', { n: 2 }, { n: 3 })
  const keep = { maxAgeMs: HOUR, maxBytes: 1e9 }
  await tidy(city.store, keep)
  assert.equal(city.see('a').holdsLog, false)
  await city.advance(2 * HOUR)
  await city.emit('other.thing', {})
  await tidy(city.store, keep)
  assert.equal(city.see('a').holdsLog, true)
  const { log } = city.store
  const left = () => log.scan({ types: ['note.made'] }, { after: 0, upTo: log.head }, 'asc', 10).events.length
  assert.equal(left(), 2, 'what waits for it is there')
  for (let run = 0; run < 3; run++) await city.endOnly('order')
  await tidy(city.store, keep)
  assert.deepEqual([city.see('a').holdsLog, left()], [false, 0])
})

test('what runs wrote is kept up to a number of bytes, of an order and of the city; the runs stay', async () => {
  await using city = await new OrderCity([order('a', {}), order('b', {})], NOON).start()
  const { db } = city.store
  const written = async (name: string, output: string) => {
    const run = await db.write((tx) => city.orders.run(tx, city.orders.need(name), { force: false, actor: 'test' }))
    await city.endOnly('order', { output })
    return run.id
  }
  const big = 'ä'.repeat(32 * 1024)
  const ids: string[] = []
  for (let n = 0; n < 70; n++) ids.push(await written('a', big))
  const kept = () => ids.map((id) => outputOf(db, id).output !== undefined)
  assert.deepEqual(kept(), [...Array(6).fill(false), ...Array(64).fill(true)], '4 MiB of the newest')
  assert.deepEqual(outputOf(db, ids[0] ?? ''), { output_truncated: true })
  assert.equal(city.runs('a').length, 70)
  ids.push(await written('b', 'few'))
  const bytes = () =>
    db.get('SELECT bytes, (SELECT sum(octet_length(output)) FROM order_runs) AS real FROM order_outputs')
  assert.deepEqual(bytes(), { bytes: 4 * 1024 * 1024 + 3, real: 4 * 1024 * 1024 + 3 })
  await db.write((tx) => pruneOutputs(tx, 'b', 1e9, 65_536 + 3))
  assert.deepEqual(bytes(), { bytes: 65_539, real: 65_539 }, 'the oldest go first, whose ever they are')
})

test('the list of orders has what each of them is, also where nothing of it was made anew', async () => {
  const many = Array.from({ length: 20 }, (_, n) => order(`o-${n}`, { trigger: { kind: 'cooldown', interval: HOUR } }))
  await using city = await new OrderCity(many, NOON).start()
  const texts = new OrderTexts()
  const { db } = city.store
  const same = () => {
    const seen = city.orders.all()
    const fresh = new OrderTexts().of(db, seen)
    assert.deepEqual(texts.of(db, seen), fresh)
    return fresh
  }
  const begun = same()
  assert.ok(begun.every((text) => text.includes('"status":"running"')))
  for (const { id } of [...city.execs.values()].slice(0, 7)) await city.end(id, { exit_code: 3 })
  assert.equal(same().filter((text) => text.includes('"status":"failed"')).length, 7)
  await db.write((tx) => city.orders.setEnabled(tx, city.orders.need('o-3'), false, 'test'))
  assert.match(same()[3] ?? '', /"enabled":false/)
  city.suspended = true
  assert.ok(same().every((text) => text.includes('"suspended":true')))
  city.suspended = false
  await city.advance(2 * HOUR)
  same()
  await city.say(many.map((one) => ({ ...one, revision: 'another' })))
  assert.ok(same().every((text) => text.includes('"revision":"another"')))
})

const never = (): never => {
  throw new Error('nothing is written')
}
