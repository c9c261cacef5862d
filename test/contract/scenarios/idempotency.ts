/** The two refusals of idempotency keys. */
import assert from 'node:assert/strict'
import type { OperationId } from '../../../src/contract/index.ts'
import { at } from '../../support/document.ts'
import { type Answer, assertProblem } from '../../support/http.ts'
import { type Scenario, scenario, type World } from './scenario.ts'

const ATTEMPTS = 30

/**
 * Sends the same request with the same key many times at once, until one finds another under way. All that succeed must
 * have the same answer: nothing is done twice.
 */
export const inFlight = (
  operation: OperationId,
  sendAtOnce: (world: World, key: string) => Promise<readonly Answer[]>,
): Scenario =>
  scenario(operation, 'idempotency-in-flight', async (world) => {
    for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
      const answers = await sendAtOnce(world, world.unique('key'))
      const bodies = new Set(answers.filter(({ status }) => status < 300).map(({ text }) => text))
      assert.equal(bodies.size, 1, [...bodies].join('\n'))
      const refused = answers.find(({ status, body }) => status === 409 && at(body, 'code') === 'idempotency-in-flight')
      if (refused === undefined) continue
      assertProblem(
        refused,
        'idempotency-in-flight',
        'in_flight: the first request with this Idempotency-Key is still running',
      )
      assert.equal(refused.headers['retry-after'], '1')
      return refused
    }
    assert.fail('no request found another under way')
  })

export const mismatch = (
  operation: OperationId,
  send: (world: World, key: string, second: boolean) => Promise<Answer>,
): Scenario =>
  scenario(operation, 'idempotency-mismatch', async (world) => {
    const key = world.unique('key')
    const first = await send(world, key, false)
    assert.ok(first.status < 300, first.text)
    const again = await send(world, key, false)
    assert.equal(again.status, first.status)
    assert.deepEqual(again.body, first.body)
    const second = await send(world, key, true)
    assertProblem(
      second,
      'idempotency-mismatch',
      'idempotency_mismatch: this Idempotency-Key was used with another body',
    )
    return second
  })
