import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createMetrics } from './metrics.ts'

const idle = { citiesByStatus: () => ({}), requestsPending: () => 0 }
const linesOf = (text: string, name: string) => text.split('\n').filter((line) => line.startsWith(name))

test('requests are counted by method, operation and status, also over several scrapes', async () => {
  const metrics = createMetrics(idle)
  const get = metrics.http.requestMeter('GET', 'get-health')
  const post = metrics.http.requestMeter('POST', 'create-city')
  get(200, 0.0004)
  get(200, 2)
  get(503, 0.1)
  await metrics.scrape()
  post(202, 0.01)
  const text = await metrics.scrape()
  assert.deepEqual(linesOf(text, 'svc_http_requests_total'), [
    'svc_http_requests_total{method="GET",operation="get-health",status="200"} 2',
    'svc_http_requests_total{method="GET",operation="get-health",status="503"} 1',
    'svc_http_requests_total{method="POST",operation="create-city",status="202"} 1',
  ])
  assert.ok(text.includes('svc_http_request_duration_seconds_bucket{le="0.0005",operation="get-health"} 1'))
  assert.ok(text.includes('svc_http_request_duration_seconds_count{operation="get-health"} 3'))
})

test('logs count their events and are forgotten when closed for good', async () => {
  const { logs, scrape } = createMetrics(idle)
  const append = logs.appendMeter('01A')
  append(3)
  logs.appendMeter('01A')(2)
  logs.appendMeter('01B')(1)
  logs.forgetLog('01B')
  logs.committed(0.002)
  const text = await scrape()
  assert.deepEqual(linesOf(text, 'svc_events_appended_total'), ['svc_events_appended_total{log="01A"} 5'])
  assert.ok(text.includes('svc_commit_seconds_bucket{le="0.0025"} 1'))
})

test('gauges are read at the scrape, and a status that nobody has any more disappears', async () => {
  let cities: Record<string, number> = { running: 2, starting: 1 }
  const metrics = createMetrics({ citiesByStatus: () => cities, requestsPending: () => 7 })
  await metrics.scrape()
  cities = { running: 3 }
  metrics.http.streamOpened()
  metrics.http.streamOpened()
  metrics.http.streamClosed()
  const text = await metrics.scrape()
  assert.deepEqual(linesOf(text, 'svc_cities'), ['svc_cities{status="running"} 3'])
  assert.deepEqual(linesOf(text, 'svc_requests_pending'), ['svc_requests_pending 7'])
  assert.deepEqual(linesOf(text, 'svc_sse_streams'), ['svc_sse_streams 1'])
})

test('the process has its own metrics, the type is that of Prometheus, and two servers do not share counts', async () => {
  const [one, two] = [createMetrics(idle), createMetrics(idle)]
  one.http.requestMeter('GET', 'get-health')(200, 0.1)
  assert.match(one.contentType, /^text\/plain; version=0\.0\.4/)
  const text = await two.scrape()
  assert.ok(text.includes('process_cpu_seconds_total') && text.includes('nodejs_eventloop_lag_p99_seconds'))
  assert.deepEqual(linesOf(text, 'svc_http_requests_total'), [])
})
