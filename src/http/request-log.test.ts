import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ManualClock } from '../../test/support/manual-clock.ts'
import type { LogLevel } from '../kernel/log.ts'
import { problem } from '../kernel/problem.ts'
import { RequestLog } from './request-log.ts'

type Line = readonly [level: string, message: string, fields: Readonly<Record<string, unknown>>]

function logAt(level: LogLevel) {
  const clock = new ManualClock()
  const lines: Line[] = []
  const levels: readonly LogLevel[] = ['error', 'warn', 'info', 'debug']
  const isLevelEnabled = (one: LogLevel) => levels.indexOf(one) <= levels.indexOf(level)
  const writer = (one: LogLevel) => (fields: Readonly<Record<string, unknown>>, message: string) => {
    if (isLevelEnabled(one)) lines.push([one, message, fields])
  }
  const log = new RequestLog(
    { error: writer('error'), warn: writer('warn'), info: writer('info'), debug: writer('debug'), isLevelEnabled },
    clock,
  )
  return { clock, lines, log }
}

const request = (n: number) => ({ requestId: `r${n}`, method: 'GET', path: '/x' })
const missing = problem('route-not-found', 'no such path: /x')

test('a flood of refused requests is ten lines a second of each code and one that counts the rest', async () => {
  const { clock, lines, log } = logAt('info')
  for (let n = 0; n < 1_000; n++) log.refused(request(n), missing)
  for (let n = 0; n < 3; n++) log.refused(request(n), problem('csrf-required', 'X-SVC-Request header required'))
  assert.equal(lines.length, 13)
  assert.deepEqual(lines[0], [
    'info',
    'request refused',
    {
      request_id: 'r0',
      method: 'GET',
      path: '/x',
      status: 404,
      code: 'route-not-found',
      detail: 'not_found: no such path: /x',
    },
  ])
  await clock.advance(1_000)
  assert.deepEqual(lines.slice(13), [['info', 'more requests refused', { code: 'route-not-found', count: 990 }]])
  log.refused(request(1), missing)
  assert.equal(lines.length, 15)
})

test('at debug the id of every request is in the log, whatever became of it', () => {
  const { lines, log } = logAt('debug')
  for (let n = 0; n < 50; n++) log.refused(request(n), missing)
  log.answered(request(50), 200, 1, false)
  assert.deepEqual(
    lines.map(([, , fields]) => fields.request_id),
    Array.from({ length: 51 }, (_, n) => `r${n}`),
  )
})

test('at the default level only answers to mutations have a line', () => {
  const { lines, log } = logAt('info')
  log.answered(request(0), 200, 1, false)
  log.answered(request(1), 201, 1, true)
  assert.deepEqual(
    lines.map(([, message, fields]) => [message, fields.request_id, fields.status]),
    [['http request', 'r1', 201]],
  )
})

test('what was counted is said when the server ends', () => {
  const { lines, log } = logAt('info')
  for (let n = 0; n < 12; n++) log.refused({ requestId: `r${n}` }, missing)
  log.close()
  assert.deepEqual(lines.at(-1), ['info', 'more requests refused', { code: 'route-not-found', count: 2 }])
})
