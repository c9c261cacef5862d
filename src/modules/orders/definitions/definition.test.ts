/** What a city says otherwise of its orders, and what is wrong with it. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { order } from '../../../../test/support/order-city.ts'
import { type OrderSettings, resolveOrders } from './definition.ts'

const at = { file: 'city.toml', line: 7, column: 1, layer: 'city' } as const
const settings = (overrides: readonly object[], more: Partial<OrderSettings> = {}): OrderSettings => ({
  skip: [],
  maxTimeoutMs: undefined,
  zone: 'UTC',
  overrides: overrides.map((said, index) => ({ name: 'a', ...said, at, key: `orders.overrides[${index}]` })),
  ...more,
})
const CRON = { kind: 'cron', schedule: '0 0 * * *', catch_up: 60_000 } as const
const resolved = (overrides: readonly object[], more: Partial<OrderSettings> = {}) => {
  const { byScoped } = resolveOrders([order('a', { trigger: CRON, timeout: 300_000 })], settings(overrides, more))
  return byScoped.get('a') ?? assert.fail('it is not there')
}

test('keys of the trigger are changed one by one; another trigger comes with its own', () => {
  assert.deepEqual(resolved([{ schedule: '@hourly' }, { tz: 'Asia/Tokyo' }]).definition?.trigger, {
    kind: 'cron',
    schedule: '@hourly',
    catch_up: 60_000,
    tz: 'Asia/Tokyo',
  })
  const { definition, overridden, issues } = resolved([{ trigger: 'cooldown', interval: '2h' }])
  assert.deepEqual(definition?.trigger, { kind: 'cooldown', interval: 7_200_000 })
  assert.deepEqual([overridden, issues], [['interval', 'trigger'], []])
})

test('what makes no order is an issue where it stands, and the order does not run', () => {
  const said = (override: object) => resolved([override]).issues.map(({ file, line, key }) => `${file}:${line} ${key}`)
  assert.deepEqual(said({ interval: '1h' }), ['city.toml:7 orders.overrides[0].interval'])
  assert.deepEqual(said({ trigger: 'event' }), ['city.toml:7 orders.overrides[0].on'])
  assert.deepEqual(said({ schedule: '0 0 30 2 *' }), ['city.toml:7 orders.overrides[0].schedule'])
  assert.deepEqual(said({ target: 'worker' }), ['city.toml:7 orders.overrides[0].target'])
})

test('no order takes longer than the city allows, whoever says how long', () => {
  const most = { maxTimeoutMs: 60_000 }
  assert.equal(resolved([], most).definition?.timeout, 60_000)
  assert.equal(resolved([{ timeout: '5m' }], most).definition?.timeout, 60_000)
  assert.equal(resolved([{ timeout: '5s' }], most).definition?.timeout, 5_000)
})

test('an override means the order of the city, that of a rig, or all; one that fits none is told', () => {
  const files = [
    order('a', { trigger: CRON }),
    order('a', { trigger: CRON }, 'shop'),
    order('b', { trigger: CRON }, 'shop'),
  ]
  const enabled = (override: object) =>
    [...resolveOrders(files, settings([{ enabled: false, ...override }])).byScoped.values()].map((one) => one.enabled)
  assert.deepEqual(enabled({}), [false, true, true])
  assert.deepEqual(enabled({ rig: 'shop' }), [true, false, true])
  assert.deepEqual(enabled({ rig: '*' }), [false, false, true])
  const { warnings } = resolveOrders(files, settings([{ name: 'b', enabled: false }]))
  assert.equal(warnings.length, 1)
  assert.match(warnings[0] ?? '', /^city\.toml:7: the city has no order b .*it is one of shop/)
  assert.deepEqual([...resolveOrders(files, settings([], { skip: ['a'] })).byScoped.keys()], ['b:rig:shop'])
})
