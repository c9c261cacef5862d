/** Refusals that every operation has, or every operation of a shape: before its handler, and so the same for all. */
import { strict as assert } from 'node:assert'
import { isMutation, needsRunningCity, type Operation } from '../../../src/contract/base/operation.ts'
import { OPERATIONS, type OperationId } from '../../../src/contract/index.ts'
import { type Answer, assertProblem, RawConnection } from '../../support/http.ts'
import { pathOf, type Scenario, scenario } from './scenario.ts'

const MEBIBYTE = 1024 * 1024

const isOperationId = (id: string): id is OperationId => OPERATIONS.some((operation) => operation.id === id)

function refusalsOf(operation: Operation): Scenario[] {
  const { id, method } = operation
  assert.ok(isOperationId(id))
  const path = pathOf(operation)
  return [
    scenario(id, 'host-not-allowed', async ({ main }) => {
      const answer = await main.api.call(method, path, { headers: { host: 'evil.example' } })
      assertProblem(answer, 'host-not-allowed', /^host_not_allowed: host "evil\.example" is not served here/)
      return answer
    }),
    scenario(id, 'headers-too-large', ({ main }) =>
      main.api.call(method, path, { headers: { 'x-long': 'x'.repeat(66_000) }, alone: true }),
    ),
    scenario(id, 'invalid-request', async ({ main }) => {
      const answer = await main.api.call(method, `${path}?%ff=1`)
      assertProblem(answer, 'invalid-request', 'invalid: the query string cannot be decoded: "%ff"')
      return answer
    }),
    scenario(id, 'validation-failed', async ({ main }) => {
      const answer = await main.api.call(method, `${path}?nope=1`)
      const { errors } = assertProblem(
        answer,
        'validation-failed',
        'validation_failed: query.nope: is not a known query parameter',
      )
      assert.deepEqual(errors, [{ location: 'query.nope', message: 'is not a known query parameter', value: '1' }])
      return answer
    }),
    scenario(id, 'forbidden', async ({ foreign }) => {
      const answer = await foreign.api.call(method, path)
      assertProblem(answer, 'forbidden', /^forbidden: this API is for uid \d+, who runs it, and not for uid 12345; /)
      return answer
    }),
    ...(operation.open === true ? [] : [unauthorized(operation, id)]),
    ...(isMutation(method) ? refusalsOfMutation(operation, id) : []),
    ...(needsRunningCity(operation) ? [cityNotFound(operation, id)] : []),
  ]
}

const unauthorized = (operation: Operation, id: OperationId): Scenario =>
  scenario(id, 'unauthorized', async ({ closed }) => {
    for (const authorization of ['Bearer wrong', 'Basic x', '']) {
      const answer = await closed.api.call(operation.method, pathOf(operation), { headers: { authorization } })
      assertProblem(answer, 'unauthorized', /^unauthorized: this server needs/)
    }
    return closed.api.call(operation.method, pathOf(operation), { headers: { authorization: undefined } })
  })

const cityNotFound = (operation: Operation, id: OperationId): Scenario =>
  scenario(id, 'city-not-found', async ({ main }) => {
    const path = operation.path.replace('{cityName}', 'nowhere')
    const answer = await main.api.call(operation.method, path, isMutation(operation.method) ? { body: {} } : {})
    assertProblem(answer, 'city-not-found', 'not_found: city not found or not running: nowhere')
    return answer
  })

function refusalsOfMutation(operation: Operation, id: OperationId): Scenario[] {
  const { method } = operation
  const path = pathOf(operation)
  return [
    scenario(id, 'csrf-required', async ({ main }) => {
      const detail = 'csrf: X-SVC-Request header required on mutation endpoints'
      for (const value of [undefined, '', ' ']) {
        assertProblem(
          await main.api.call(method, path, { headers: { 'x-svc-request': value } }),
          'csrf-required',
          detail,
        )
      }
      return main.api.call(method, path, { headers: { 'x-svc-request': undefined }, body: {} })
    }),
    scenario(id, 'read-only', async ({ readOnly }) => {
      const answer = await readOnly.api.call(method, path, { body: {} })
      assertProblem(answer, 'read-only', 'read_only: mutations disabled: allow_mutations is false in supervisor.toml')
      return answer
    }),
    scenario(id, 'payload-too-large', async ({ main }) => {
      const limit = operation.bodyLimit ?? MEBIBYTE
      const answer = await declaredTooLarge(main.api.url, operation, limit + 1)
      if (operation.bodyStream !== undefined) return answer
      assertProblem(answer, 'payload-too-large', `too_large: the body is larger than ${limit} bytes`)
      return answer
    }),
    scenario(id, 'unsupported-media-type', async ({ main }) => {
      // Where no body is taken, or bytes of any kind, only a type that is none at all is refused.
      const any = operation.body === undefined || operation.bodyStream === 'bytes'
      const type = any ? 'nonsense' : 'text/plain'
      const answer = await main.api.call(method, path, { bytes: '{}', headers: { 'content-type': type } })
      assertProblem(answer, 'unsupported-media-type', /^unsupported_media_type: /)
      return answer
    }),
  ]
}

/** Said to be too large: a client that goes on sending would find its connection closed, and might miss the answer. */
async function declaredTooLarge(url: string, operation: Operation, size: number): Promise<Answer> {
  const path = pathOf(operation)
  using connection = new RawConnection(url)
  await connection.send(
    `${operation.method} ${path} HTTP/1.1\r\nHost: localhost\r\nX-SVC-Request: 1\r\nContent-Length: ${size}\r\n\r\n{`,
  )
  return await connection.answer(operation.method, path)
}

export const refusalsOfEveryOperation: readonly Scenario[] = OPERATIONS.flatMap(refusalsOf)
