import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createMetrics } from './metrics.ts'

const idle = { citiesByStatus: () => ({}), requestsPending: () => 0, execs: () => ({}), heads: () => ({}) }
const linesOf = (text: string, name: string) => text.split('\n').filter((line) => line.startsWith(name))

test('requests are counted by method, operation and status, also over several scrapes', () => {
  const metrics = createMetrics(idle)
  const get = metrics.http.requestMeter('GET', 'get-health')
  const post = metrics.http.requestMeter('POST', 'create-city')
  get(200, 0.0004)
  get(200, 2)
  get(503, 0.1)
  metrics.scrape()
  post(202, 0.01)
  const text = metrics.scrape()
  assert.deepEqual(linesOf(text, 'svc_http_requests_total'), [
    'svc_http_requests_total{method="GET",operation="get-health",status="200"} 2',
    'svc_http_requests_total{method="GET",operation="get-health",status="503"} 1',
    'svc_http_requests_total{method="POST",operation="create-city",status="202"} 1',
  ])
  assert.ok(text.includes('svc_http_request_duration_seconds_bucket{le="0.0005",operation="get-health"} 1'))
  assert.ok(text.includes('svc_http_request_duration_seconds_count{operation="get-health"} 3'))
})

test('the events of each open log and the durations of commits are counted', () => {
  const metrics = createMetrics({ ...idle, heads: () => ({ alpha: 5, supervisor: 2 }) })
  metrics.committed(0.002)
  const text = metrics.scrape()
  assert.deepEqual(linesOf(text, 'svc_events_appended_total'), [
    'svc_events_appended_total{log="alpha"} 5',
    'svc_events_appended_total{log="supervisor"} 2',
  ])
  assert.ok(text.includes('svc_commit_seconds_bucket{le="0.0025"} 1'))
})

test('gauges are read at the scrape, and a status that nobody has any more disappears', () => {
  let cities: Record<string, number> = { running: 2, starting: 1 }
  const metrics = createMetrics({ ...idle, citiesByStatus: () => cities, requestsPending: () => 7 })
  metrics.scrape()
  cities = { running: 3 }
  metrics.http.streamOpened()
  metrics.http.streamOpened()
  metrics.http.streamClosed()
  const text = metrics.scrape()
  assert.deepEqual(linesOf(text, 'svc_cities'), ['svc_cities{status="running"} 3'])
  assert.deepEqual(linesOf(text, 'svc_requests_pending'), ['svc_requests_pending 7'])
  assert.deepEqual(linesOf(text, 'svc_sse_streams'), ['svc_sse_streams 1'])
})

test('commands are counted by city while they are there, and by how they ended', () => {
  const metrics = createMetrics({ ...idle, execs: () => ({ alpha: { running: 16, queued: 3 } }) })
  metrics.execEnded('exited')
  metrics.execEnded('exited')
  metrics.execEnded('timed_out')
  const text = metrics.scrape()
  assert.deepEqual(linesOf(text, 'svc_execs'), [
    'svc_execs_running{city="alpha"} 16',
    'svc_execs_queued{city="alpha"} 3',
    'svc_execs_ended_total{kind="exited"} 2',
    'svc_execs_ended_total{kind="timed_out"} 1',
  ])
})

test('the process has its own metrics, the type is that of Prometheus, and two servers do not share counts', () => {
  const [one, two] = [createMetrics(idle), createMetrics(idle)]
  one.http.requestMeter('GET', 'get-health')(200, 0.1)
  assert.match(one.contentType, /^text\/plain; version=0\.0\.4/)
  const text = two.scrape()
  assert.ok(text.includes('process_cpu_seconds_total') && text.includes('nodejs_eventloop_lag_p99_seconds'))
  assert.deepEqual(linesOf(text, 'svc_http_requests_total'), [])
})

test('every line is one that Prometheus reads: families are told once, values are numbers, labels are quoted', () => {
  const metrics = createMetrics({ ...idle, citiesByStatus: () => ({ 'a "b"\\\n': 1 }) })
  metrics.http.requestMeter('GET', 'get-health')(200, 0.1)
  metrics.reactionSkipped('orders')
  metrics.scrape()
  const lines = metrics
    .scrape()
    .split('\n')
    .filter((line) => line !== '')
  const told = lines.filter((line) => line.startsWith('# TYPE'))
  assert.equal(new Set(told).size, told.length)
  const sample = /^[a-z_0-9]+(\{[a-z]+="(?:[^"\\]|\\.)*"(,[a-z]+="(?:[^"\\]|\\.)*")*\})? ([-+.e0-9]+|NaN|[-+]Inf)$/
  for (const line of lines) assert.match(line, line.startsWith('#') ? /^# (HELP|TYPE) [a-z_0-9]+ \S/ : sample)
  assert.ok(lines.includes('svc_cities{status="a \\"b\\"\\\\\\n"} 1'))
  assert.ok(lines.includes('svc_reaction_events_skipped_total{reaction="orders"} 1'))
})
