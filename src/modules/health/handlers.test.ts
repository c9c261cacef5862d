import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Ajv2020 } from 'ajv/dist/2020.js'
import addFormats from 'ajv-formats'
import type { Operation, ParamsOf, QueryOf } from '../../contract/base/operation.ts'
import type { Schema, Static } from '../../contract/base/schema.ts'
import {
  getCityReadiness,
  getHealth,
  getMetrics,
  getProviderReadiness,
  getReadiness,
  HealthBody,
  ProviderReadinessResponse,
  ReadinessResponse,
} from '../../contract/health.ts'
import { type Call, RawBody } from '../../kernel/call.ts'
import { OWNER } from '../../kernel/caller.ts'
import { Problem } from '../../kernel/problem.ts'
import { createHealthHandlers, type HealthDeps } from './handlers.ts'
import type { Observation } from './logins.ts'
import { createMetrics } from './metrics.ts'
import type { Probe } from './probes.ts'
import { createReadiness } from './readiness.ts'

const clock = { now: () => 0, monotonic: () => 12_345, after: () => () => {} }
const NAMES = ['claude', 'codex', 'gemini', 'grok', 'shell', 'github_cli', 'git']
const probes: Probe[] = NAMES.map((name, at) => ({
  name,
  kind: at < 5 ? 'provider' : 'tool',
  display_name: name,
  run: async (): Promise<Observation> => ({ status: 'configured', detail: `looked at ${name}` }),
}))

function handlers(change: Partial<HealthDeps> = {}) {
  return createHealthHandlers({
    clock,
    version: '1.2.3',
    startedAtMonotonic: 345,
    readiness: createReadiness({ clock, probes }),
    metrics: createMetrics({
      citiesByStatus: () => ({ running: 1 }),
      execs: () => ({}),
      requestsPending: () => 0,
      heads: () => ({}),
    }),
    vitals: { eventLoopMs: () => 1, reconcilerAgeMs: () => 1, logLagMs: () => 0, storageFault: () => undefined },
    cities: { counts: () => ({ total: 3, running: 1, failed: 1, rejected: 1 }) },
    draining: () => false,
    callers: 'owner',
    ...change,
  })
}

function call<O extends Operation>(
  operation: O,
  params: ParamsOf<O>,
  query: QueryOf<O>,
  body: Call<O>['body'],
): Call<O, undefined> {
  const signal = new AbortController().signal
  const none = { header: () => undefined, city: undefined, claim: undefined, caller: OWNER, actor: 'api' }
  return { operation, params, query, body, ...none, requestId: 'r', signal }
}

/** The body of an answer, which its schema must allow. */
function valid<S extends Schema>(schema: S, { body }: { body: unknown }): Static<S> {
  const check = addFormats.default(new Ajv2020()).compile<Static<S>>(schema)
  assert.ok(check(body), JSON.stringify(check.errors))
  return body
}

test('health tells version, whole seconds of uptime, cities and checks', async () => {
  const reply = await handlers()['get-health'](call(getHealth, {}, {}, undefined))
  const body = valid(HealthBody, reply)
  assert.equal(reply.status, 200)
  assert.deepEqual(
    [body.status, body.version, body.uptime_sec, body.cities_total, body.cities_failed, body.cities_rejected],
    ['ok', '1.2.3', 12, 3, 1, 1],
  )
  assert.deepEqual(
    body.checks.map((check) => check.name),
    ['event_loop', 'reconciler', 'log_lag', 'storage'],
  )
})

test('health is degraded but 200 when something is stuck, and 503 only while draining', async () => {
  const vitals = { eventLoopMs: () => 1, reconcilerAgeMs: () => 1e6, logLagMs: () => 0, storageFault: () => undefined }
  const reply = await handlers({ vitals })['get-health'](call(getHealth, {}, {}, undefined))
  assert.deepEqual([reply.status, valid(HealthBody, reply).status], [200, 'degraded'])
  const draining = async () => handlers({ draining: () => true })['get-health'](call(getHealth, {}, {}, undefined))
  await assert.rejects(draining, (error) => error instanceof Problem && error.code === 'unavailable')
})

test('readiness answers the defaults as unknown before anything was probed, and what it saw with fresh', async () => {
  const all = handlers()
  const first = valid(ReadinessResponse, await all['get-readiness'](call(getReadiness, {}, {}, undefined)))
  assert.deepEqual(
    Object.entries(first.items).map(([name, item]) => [name, item.status]),
    [
      ['claude', 'unknown'],
      ['codex', 'unknown'],
      ['gemini', 'unknown'],
      ['github_cli', 'unknown'],
    ],
  )
  const fresh = valid(
    ReadinessResponse,
    await all['get-readiness'](call(getReadiness, {}, { items: 'git, grok', fresh: true }, undefined)),
  )
  assert.deepEqual(fresh.items['grok'], {
    name: 'grok',
    kind: 'provider',
    display_name: 'grok',
    status: 'configured',
    detail: 'looked at grok',
    observed_at: '1970-01-01T00:00:00.000Z',
  })
  assert.equal(fresh.items['git']?.kind, 'tool')
})

test('the readiness of a city is that of its host', async () => {
  const asked = call(getCityReadiness, { cityName: 'a' }, { items: 'git', fresh: true }, undefined)
  const body = valid(ReadinessResponse, await handlers()['get-city-readiness'](asked))
  assert.equal(body.items['git']?.status, 'configured')
})

test('provider readiness takes providers only and leaves name and kind out', async () => {
  const all = handlers()
  const fresh = call(getProviderReadiness, {}, { providers: 'shell', fresh: true }, undefined)
  const body = valid(ProviderReadinessResponse, await all['get-provider-readiness'](fresh))
  assert.deepEqual(body.providers['shell'], {
    display_name: 'shell',
    status: 'configured',
    detail: 'looked at shell',
    observed_at: '1970-01-01T00:00:00.000Z',
  })
  const asked = async () =>
    all['get-provider-readiness'](call(getProviderReadiness, {}, { providers: 'git' }, undefined))
  await assert.rejects(asked, { message: 'unsupported providers value "git"' })
  const defaults = valid(
    ProviderReadinessResponse,
    await all['get-provider-readiness'](call(getProviderReadiness, {}, {}, undefined)),
  )
  assert.deepEqual(Object.keys(defaults.providers), ['claude', 'codex', 'gemini'])
})

test('metrics are text of Prometheus', async () => {
  const { body } = await handlers()['get-metrics'](call(getMetrics, {}, {}, undefined))
  assert.ok(body instanceof RawBody)
  assert.match(String(body.bytes), /^svc_cities\{status="running"\} 1$/m)
  assert.match(body.type, /^text\/plain; version=/)
})
