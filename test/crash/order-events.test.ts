/** `kill -9` around the beginning and the end of runs: no run is begun twice for one cause, and no cause is lost. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { type ConfigCity, cityAgain, createCity } from '../support/config-city.ts'
import { eventually } from '../support/http.ts'
import { OrderedCity } from '../support/ordered-city.ts'
import { seededRandom } from '../support/random.ts'
import { type RunningSupervisor, startSupervisor } from '../support/supervisor.ts'

const ROUNDS = process.env['SVC_SOAK'] === undefined ? 6 : 100

test('events are each handed to one run, and runs each end once, over deaths of the supervisor', {
  timeout: 60_000 + ROUNDS * 20_000,
}, async (t) => {
  await using first = await startSupervisor()
  let server: RunningSupervisor = first
  let city: ConfigCity = await createCity(server, 'alpha')
  let orders = new OrderedCity(city)
  const random = seededRandom()
  t.diagnostic(`seed ${random.seed}`)
  const promised = new Set<number>()
  try {
    await orders.save(
      'each',
      'trigger = "event"',
      'on = "job.come"',
      'batch = false',
      'overlap = "allow"',
      `exec = 'echo "$SVC_RUN_ID $SVC_VAR_N" >> each'`,
      '[order.vars]',
      'n = "{{ event.payload.n }}"',
    )
    await orders.save('all', 'trigger = "event"', 'on = "job.come"', `exec = 'cat >> all; echo >> all'`)
    await orders.save('tick', 'trigger = "cooldown"', 'interval = "1s"', `exec = 'echo $SVC_RUN_ID >> ticks'`)
    let n = 0
    for (let round = 0; round < ROUNDS; round++) {
      const sent = Array.from({ length: 20 }, async () => {
        const mine = n++
        await orders.emit('job.come', { n: mine })
        promised.add(mine)
      })
      const sending = Promise.allSettled(sent)
      // In every other round it may die before it has promised anything, which a busy machine makes likely.
      if (round % 2 === 0) await Promise.any(sent)
      await pause(random.between(0, 400))
      await server.kill('SIGKILL')
      await sending
      city.api.close()
      server = await startSupervisor({ home: first.home })
      city = await cityAgain(server, 'alpha')
      orders = new OrderedCity(city)
    }
    const came = (await city.events('job.come')).map(({ payload }) => Number(payload['n'])).sort((a, b) => a - b)
    assert.ok(promised.size >= ROUNDS / 2, 'the load was no load')
    for (const one of promised) assert.ok(came.includes(one), `event ${one} was promised`)
    await eventually(
      'everything that came is done',
      async () => {
        const [each, all] = [await orders.runs('each'), await orders.runs('all')]
        const handed = all.reduce((sum, { event_count: count = 0 }) => sum + count, 0)
        const open = [...each, ...all].filter(({ status }) => status === 'running')
        return each.length >= came.length && handed >= came.length && open.length === 0 ? true : undefined
      },
      60_000,
    )
    const each = orders.lines('each').map((line) => line.split(' '))
    assert.deepEqual(
      each.map(([, one]) => Number(one)).sort((a, b) => a - b),
      came,
      'each event was worked on once',
    )
    const all = orders
      .lines('all')
      .flatMap((line): { readonly payload: { readonly n: number } }[] => JSON.parse(line).events)
    assert.deepEqual(
      all.map(({ payload }) => payload.n).sort((a, b) => a - b),
      came,
    )
    const ticks = orders.lines('ticks')
    assert.equal(new Set(ticks).size, ticks.length, 'no run has two lines')
    // Its log and its runs are read one after the other: none may begin or end between.
    await orders.save('tick', 'trigger = "cooldown"', 'interval = "1h"', `exec = 'true'`)
    await eventually('no tick runs any more', async () =>
      (await orders.runs('tick')).every(({ status }) => status !== 'running') ? true : undefined,
    )
    for (const name of ['each', 'all', 'tick']) await endedOnce(orders, name)
  } finally {
    city.api.close()
    await server.kill('SIGKILL')
  }
})

/** One `order.fired` and one end for each run: all of them have ended. */
async function endedOnce(orders: OrderedCity, name: string): Promise<void> {
  const events = await orders.events(name)
  const of = (...types: readonly string[]) =>
    events.filter(({ type }) => types.includes(type)).map(({ payload }) => String(payload['run_id']))
  const fired = of('order.fired')
  const ended = of('order.completed', 'order.failed')
  assert.equal(new Set(fired).size, fired.length)
  assert.equal(new Set(ended).size, ended.length)
  assert.deepEqual(ended.toSorted(), fired.toSorted())
  assert.deepEqual((await orders.runs(name)).map(({ id }) => id).toSorted(), fired.toSorted())
}
