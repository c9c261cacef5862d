/** Orders: each success and each refusal of its own. What orders do is in test/e2e/orders. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { importCached } from '../../support/cached-pack.ts'
import { type Answer, assertProblem, eventually } from '../../support/http.ts'
import { orderFile } from '../../support/ordered-city.ts'
import { newCity, succeeds } from '../../support/running.ts'
import { type EditedCity, onEditedCity } from './edited-city.ts'
import { inFlight, mismatch } from './idempotency.ts'
import { type Scenario, scenario, type World } from './scenario.ts'

const rig = (name: string): string =>
  `[[rigs]]\nname = "${name}"\npath = "${name}"\nformulas_dir = "${name}-files/formulas"\n`
const RIGS = `${rig('shop')}${rig('bank')}`
const on = onEditedCity('orders', '')

const GOOD = orderFile('trigger = "manual"', 'exec = "true"')
const FILES = {
  'orders/good.toml': GOOD,
  'orders/slow.toml': orderFile('trigger = "manual"', `exec = 'sleep 20'`),
  'orders/often.toml': orderFile('trigger = "manual"', 'overlap = "allow"', 'exec = "true"'),
  'orders/broken.toml': orderFile('trigger = "manual"'),
  'shop-files/formulas/.keep': '',
  'bank-files/formulas/.keep': '',
  'shop-files/orders/both.toml': GOOD,
  'bank-files/orders/both.toml': GOOD,
}

/** The files are there, and known. */
async function laid(city: EditedCity): Promise<EditedCity> {
  await city.say(RIGS, FILES)
  await eventually('the orders are known', async () => {
    const { status } = await city.send('GET', '/orders/both?rig=bank')
    return status === 200 ? true : undefined
  })
  return city
}
const send = async (city: EditedCity, method: string, path: string, body?: unknown): Promise<Answer> =>
  (await laid(city)).send(method, `/orders${path}`, body)

/** Operations on one order refuse a name alike. */
const refused = (operation: Scenario['operation'], method: string, path: string): readonly Scenario[] => [
  on(operation, 'order-not-found', (city) => send(city, method, `/none${path}`)),
  on(operation, 'ambiguous-order', (city) => send(city, method, `/both${path}`)),
]

const PACK = {
  name: 'tools',
  commit: 'e'.repeat(40),
  files: { 'pack.toml': '[pack]\nname = "tools"\nschema = 2\n', 'orders/theirs.toml': GOOD },
}
/** An order of a pack that nobody has trusted. */
const untrusted = (operation: Scenario['operation'], path: string): Scenario =>
  scenario(operation, 'untrusted-pack', async (world: World) => {
    const { api, server, work } = world.main
    const name = world.unique('untrusted')
    await newCity(api, work, name)
    await importCached(server.home, join(work, name), PACK)
    const base = `/v0/city/${name}`
    const reload = await api.post(`${base}/config/reload`)
    const { body } = reload
    if (typeof body === 'object' && body !== null && 'request_id' in body)
      await succeeds(api, { request_id: String(body.request_id) })
    await eventually('it is known', async () =>
      (await api.get(`${base}/orders/theirs`)).status === 200 ? true : undefined,
    )
    const answer = await api.post(`${base}/orders/theirs${path}`)
    assertProblem(answer, 'untrusted-pack')
    return answer
  })

const runOften = ({ main }: World, key: string, body: object): Promise<Answer> =>
  main.api.post('/v0/city/alpha/orders/often/run', body, { headers: { 'idempotency-key': key } })

/** The city `alpha` has an order whose runs may overlap. */
async function oftenThere({ main }: World): Promise<void> {
  const directory = join(main.work, 'alpha', 'orders')
  mkdirSync(directory, { recursive: true })
  writeFileSync(join(directory, 'often.toml'), FILES['orders/often.toml'])
  await eventually('it is known', async () =>
    (await main.api.get('/v0/city/alpha/orders/often')).status === 200 ? true : undefined,
  )
}

export const orderScenarios: readonly Scenario[] = [
  on('list-orders', 200, (city) => send(city, 'GET', '?valid=false')),
  on('list-orders', 'invalid-cursor', (city) => send(city, 'GET', '?cursor=v1:AAAA')),
  on('list-orders', 'rig-not-found', (city) => send(city, 'GET', '?rig=none')),
  on('get-order', 200, (city) => send(city, 'GET', '/good')),
  ...refused('get-order', 'GET', ''),

  on('run-order', 201, (city) => send(city, 'POST', '/good/run', { force: true })),
  ...refused('run-order', 'POST', '/run'),
  on('run-order', 'conflict-config', (city) => send(city, 'POST', '/broken/run')),
  on('run-order', 'conflict-wrong-state', async (city) => {
    await send(city, 'POST', '/slow/run')
    return city.send('POST', '/orders/slow/run')
  }),
  untrusted('run-order', '/run'),
  inFlight('run-order', async (world, key) => {
    await oftenThere(world)
    return Promise.all(Array.from({ length: 8 }, () => runOften(world, key, {})))
  }),
  mismatch('run-order', async (world, key, second) => {
    await oftenThere(world)
    return runOften(world, key, { force: second })
  }),

  on('check-order', 200, (city) => send(city, 'POST', '/good/check')),
  ...refused('check-order', 'POST', '/check'),
  on('check-order', 'conflict-config', (city) => send(city, 'POST', '/broken/check')),
  untrusted('check-order', '/check'),

  on('enable-order', 200, (city) => send(city, 'POST', '/good/enable')),
  ...refused('enable-order', 'POST', '/enable'),
  on('disable-order', 200, (city) => send(city, 'POST', '/good/disable')),
  ...refused('disable-order', 'POST', '/disable'),

  on('list-order-history', 200, async (city) => {
    await send(city, 'POST', '/good/run', { force: true })
    return city.send('GET', '/orders/history?name=good')
  }),
  on('list-order-history', 'invalid-cursor', (city) => send(city, 'GET', '/history?cursor=v1:AAAA')),
  on('get-order-run', 200, async (city) => {
    const { body } = await send(city, 'POST', '/good/run', { force: true })
    const id = typeof body === 'object' && body !== null && 'id' in body ? String(body.id) : ''
    return city.send('GET', `/orders/history/${id}`)
  }),
  on('get-order-run', 'order-run-not-found', (city) => send(city, 'GET', '/history/run-none')),
]
