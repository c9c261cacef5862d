/**
 * `kill -9` under orders that start molecules, and right behind the checks of conditions: run and molecule are begun together
 * and end together, and each check that passed has one run.
 *
 *   SVC_SEED=123 n26 --test test/crash/order-molecules.test.ts     the same chances again
 *   SVC_SOAK=1                                                     60 deaths
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import type { OrderRun } from '../../src/contract/automation/orders.ts'
import { type ConfigCity, cityAgain, createCity } from '../support/config-city.ts'
import { listAll } from '../support/crash-client.ts'
import { at } from '../support/document.ts'
import { putFormula } from '../support/document-city.ts'
import { eventually } from '../support/http.ts'
import { OrderedCity } from '../support/ordered-city.ts'
import { type Random, seededRandom } from '../support/random.ts'
import { type RunningSupervisor, startSupervisor } from '../support/supervisor.ts'

const ROUNDS = process.env['SVC_SOAK'] === undefined ? 6 : 60
/** No more runs than are kept. */
const MOST = 900
const TIMEOUT = { timeout: 60_000 + ROUNDS * 25_000 }

/** A molecule that needs nobody. */
const FORMULA = `formula = "by-itself"
title = "Number {{ n }}"
[vars]
n = 0
[[steps]]
id = "wait"
gate = { timer = "30ms" }
[[steps]]
id = "wait-again"
needs = ["wait"]
gate = { timer = "30ms" }
`

/** One supervisor after another over one home. */
class Deaths implements AsyncDisposable {
  readonly #home: string
  server: RunningSupervisor
  city: ConfigCity
  orders: OrderedCity

  private constructor(server: RunningSupervisor, city: ConfigCity) {
    this.#home = server.home
    this.server = server
    this.city = city
    this.orders = new OrderedCity(city)
  }

  static async start(): Promise<Deaths> {
    const server = await startSupervisor()
    return new Deaths(server, await createCity(server, 'alpha'))
  }

  async die(): Promise<void> {
    await this.server.kill('SIGKILL')
  }

  async comeBack(): Promise<void> {
    this.city.api.close()
    this.server = await startSupervisor({ home: this.#home })
    this.city = await cityAgain(this.server, 'alpha')
    this.orders = new OrderedCity(this.city)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.city.api.close()
    await this.server[Symbol.asyncDispose]()
  }
}

test('a run and its molecule begin in one write and end in one, whenever the supervisor dies', TIMEOUT, async (t) => {
  const random = seededRandom()
  t.diagnostic(`SVC_SEED=${random.seed}`)
  await using deaths = await Deaths.start()
  const written = await putFormula(deaths.city, 'by-itself', FORMULA)
  assert.equal(written.status, 201, written.text)
  const each = ['trigger = "event"', 'on = "job.come"', 'batch = false', 'overlap = "allow"', 'formula = "by-itself"']
  await deaths.orders.save('each', ...each, '[order.vars]', 'n = "{{ event.payload.n }}"')
  for (let round = 0; round < ROUNDS; round++) {
    await pour(deaths, random)
    await deaths.comeBack()
  }
  const { orders, city } = deaths
  const came = (await told(deaths, 'job.come')).map((event) => Number(at(event, 'payload', 'n')))
  assert.ok(came.length > ROUNDS, 'the load was no load')
  const runs = await eventually(
    'every run has ended',
    async () => {
      const all = await orders.runs('each')
      return all.length >= came.length && all.every(({ status }) => status !== 'running') ? all : undefined
    },
    120_000,
  )
  t.diagnostic(`${came.length} events, ${runs.length} runs`)
  assert.deepEqual(byNumber(runs.map(({ vars }) => Number(vars?.['n']))), byNumber(came), 'each event had one run')
  const molecules = await listAll(deaths.server.url, `${city.base}/molecules?formula=by-itself`)
  const pairs = molecules.map(({ id, order_run_id: run, status }) =>
    [String(run), String(id), String(status)].join(' '),
  )
  const wanted = runs.map(({ id, molecule_id: molecule, status }) => `${id} ${molecule} ${endOf(status)}`)
  assert.deepEqual(pairs.toSorted(), wanted.toSorted(), 'no molecule without its run, no run without its molecule')
  await assertTogether(deaths, runs)
})

/** Events until the supervisor dies, which it does soon. */
async function pour({ orders, server }: Deaths, random: Random): Promise<void> {
  let isDead = false
  let left = MOST / ROUNDS
  const pouring = Array.from({ length: 4 }, async () => {
    while (!isDead && left-- > 0) {
      await orders.emit('job.come', { n: random.between(0, 1_000_000) }).catch(() => sleep(20))
      await sleep(random.between(10, 60))
    }
  })
  await sleep(random.between(100, 1_200))
  await server.kill('SIGKILL')
  isDead = true
  await Promise.all(pouring)
}

const byNumber = (numbers: readonly number[]): readonly number[] => numbers.toSorted((a, b) => a - b)
const endOf = (status: OrderRun['status']): string => (status === 'succeeded' ? 'completed' : status)

const told = ({ server, city }: Deaths, type: string) =>
  listAll(server.url, `${city.base}/events?type=${type}&order=asc`)

/** Each is told once, and what belongs to one write follows one another. */
async function assertTogether(deaths: Deaths, runs: readonly OrderRun[]): Promise<void> {
  const seqs = async (type: string, key: string) => {
    const events = await told(deaths, type)
    const found = new Map(events.map((event) => [String(at(event, 'payload', key)), Number(event['seq'])]))
    assert.equal(found.size, events.length, `${type} is told once of each`)
    return found
  }
  const fired = await seqs('order.fired', 'run_id')
  const completed = await seqs('order.completed', 'run_id')
  const resolved = await seqs('molecule.resolved', 'issue_id')
  for (const { id, molecule_id: molecule, status } of runs) {
    assert.equal(status, 'succeeded')
    const end = completed.get(id) ?? 0
    assert.ok((fired.get(id) ?? Number.POSITIVE_INFINITY) < end, `${id} began before it ended`)
    assert.equal(end - (resolved.get(molecule ?? '') ?? 0), 1, `${id} ended with its molecule`)
  }
}

test('a check that passed has one run, also where the supervisor dies in between', TIMEOUT, async (t) => {
  const random = seededRandom()
  t.diagnostic(`SVC_SEED=${random.seed}`)
  await using deaths = await Deaths.start()
  await deaths.orders.save(
    'when',
    'trigger = "condition"',
    'interval = "1s"',
    `check = '[ ! -e "$SVC_CITY_PATH/stop" ] && echo "$SVC_EXEC_ID" >> "$SVC_CITY_PATH/checks"'`,
    `exec = 'echo "$SVC_RUN_ID" >> "$SVC_CITY_PATH/ran"'`,
  )
  for (let round = 0; round < ROUNDS; round++) {
    const before = deaths.orders.lines('checks').length
    await eventually('the check has passed', () => (deaths.orders.lines('checks').length > before ? true : undefined))
    await sleep(random.between(0, 60))
    await deaths.die()
    await deaths.comeBack()
  }
  deaths.city.write('stop', '')
  const { orders } = deaths
  await eventually('as many runs have ended as checks have passed', async () => {
    const runs = await orders.runs('when')
    const isOver = runs.every(({ status }) => status !== 'running')
    return isOver && runs.length === orders.lines('checks').length ? true : undefined
  })
  // A check that began before the file was there would have passed by now; those that follow do not.
  const after = (await orders.get('when')).evaluated_at ?? ''
  await eventually('it was checked again', async () =>
    ((await orders.get('when')).evaluated_at ?? '') > after ? true : undefined,
  )
  const [checks, ran, runs] = [orders.lines('checks'), orders.lines('ran'), await orders.runs('when')]
  t.diagnostic(`${checks.length} checks passed`)
  assert.ok(checks.length >= ROUNDS)
  assert.equal(new Set(checks).size, checks.length, 'no check ran twice')
  assert.equal(runs.length, checks.length)
  assert.deepEqual(ran.toSorted(), runs.map(({ id }) => id).toSorted(), 'each run has one line')
  assert.ok(runs.every(({ status }) => status === 'succeeded'))
})
