/**
 * Every operation × every answer that it declares, over real HTTP. A success without a scenario fails, and so does a
 * problem with neither a scenario nor a reason in `ELSEWHERE`.
 */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { isMutation, LINES_TYPE, type Operation, problemsOf } from '../../src/contract/base/operation.ts'
import type { ProblemCode } from '../../src/contract/base/problems.ts'
import { OPERATIONS } from '../../src/contract/index.ts'
import { systemClock } from '../../src/kernel/clock.ts'
import { createProbes } from '../../src/modules/health/probes.ts'
import { recording, writeRecorded } from '../support/answers.ts'
import { at } from '../support/document.ts'
import { assertProblem, checked, eventually, parseAnswers, RawConnection } from '../support/http.ts'
import { emit, newCity, run, runHere } from '../support/running.ts'
import { adapterScenarios } from './scenarios/adapters.ts'
import { agentScenarios } from './scenarios/agents.ts'
import { beadScenarios } from './scenarios/beads.ts'
import { interchangeScenarios } from './scenarios/beads-interchange.ts'
import { readingScenarios } from './scenarios/beads-reading.ts'
import { cityScenarios } from './scenarios/cities.ts'
import { configScenarios } from './scenarios/config.ts'
import { convoyScenarios } from './scenarios/convoys.ts'
import { documentScenarios } from './scenarios/documents.ts'
import { eventScenarios } from './scenarios/events.ts'
import { refusalsOfEveryOperation } from './scenarios/every-operation.ts'
import { formulaScenarios } from './scenarios/formulas.ts'
import { healthScenarios } from './scenarios/health.ts'
import { mailScenarios } from './scenarios/mail.ts'
import { moleculeScenarios } from './scenarios/molecules.ts'
import { needScenarios } from './scenarios/needs.ts'
import { orderScenarios } from './scenarios/orders.ts'
import { packScenarios } from './scenarios/packs.ts'
import { participantScenarios } from './scenarios/participants.ts'
import { patchScenarios } from './scenarios/patches.ts'
import { providerScenarios } from './scenarios/providers.ts'
import { requestScenarios } from './scenarios/requests.ts'
import { rigScenarios } from './scenarios/rigs.ts'
import { pathOf, type Scenario, type World } from './scenarios/scenario.ts'
import { serviceScenarios } from './scenarios/services.ts'
import { endSessions, sessionScenarios } from './scenarios/sessions.ts'
import { tokenScenarios } from './scenarios/tokens.ts'
import { transcriptScenarios } from './scenarios/transcripts.ts'
import { usageScenarios } from './scenarios/usage.ts'
import { worktreeScenarios } from './scenarios/worktrees.ts'

const SCENARIOS: readonly Scenario[] = [
  ...refusalsOfEveryOperation,
  ...adapterScenarios,
  ...agentScenarios,
  ...beadScenarios,
  ...interchangeScenarios,
  ...readingScenarios,
  ...cityScenarios,
  ...configScenarios,
  ...convoyScenarios,
  ...worktreeScenarios,
  ...formulaScenarios,
  ...eventScenarios,
  ...needScenarios,
  ...packScenarios,
  ...participantScenarios,
  ...patchScenarios,
  ...providerScenarios,
  ...rigScenarios,
  ...requestScenarios,
  ...serviceScenarios,
  ...sessionScenarios,
  ...tokenScenarios,
  ...transcriptScenarios,
  ...usageScenarios,
  ...orderScenarios,
  ...mailScenarios,
  ...moleculeScenarios,
  ...healthScenarios,
  ...documentScenarios,
]

/** Provoked by tests of their own, below or elsewhere: for all operations at once, or for one. */
const ELSEWHERE: { readonly [Key in ProblemCode | `${string} ${ProblemCode}`]?: string } = {
  'request-timeout': 'takes 10 s of silence: below, for all operations at once',
  unavailable: 'while the supervisor shuts down: below, for all operations at once',
  internal: 'no request provokes a defect: below, in-process, for one operation; the rest of the pipeline is the same',
  'too-many-streams': 'takes 10,000 streams: test/contract/streams.test.ts, in-process with a lower limit',
  'session-forbidden':
    'takes the token of a session on a server that asks for one: test/e2e/messaging/transcripts.test.ts',
  'kill-session gateway-timeout': 'takes a process that survives SIGKILL, as one in a dead mount does',
  'act-on-rig gateway-timeout': 'takes a process that survives SIGKILL, as one in a dead mount does',
  'restart-service gateway-timeout': 'takes a process that survives SIGKILL, as one in a dead mount does',
  'suspend-service gateway-timeout': 'takes a process that survives SIGKILL, as one in a dead mount does',
  'resume-service gateway-timeout': 'takes a process that survives SIGKILL, as one in a dead mount does',
}
const isElsewhere = (operation: string, answer: number | string) =>
  Object.hasOwn(ELSEWHERE, answer) || Object.hasOwn(ELSEWHERE, keyOf(operation, answer))

const keyOf = (operation: string, answer: number | string) => `${operation} ${answer}`
const answersOf = (operation: Operation): (number | string)[] => [
  ...(operation.frames === undefined ? Object.keys(operation.replies).map(Number) : [200]),
  ...problemsOf(operation),
]

test('every declared answer has a scenario, and every scenario is of a declared answer', () => {
  const covered = new Set(SCENARIOS.map(({ operation, answer }) => keyOf(operation, answer)))
  const declared = OPERATIONS.flatMap((operation) => answersOf(operation).map((answer) => ({ operation, answer })))
  const missing = declared.filter(
    ({ operation, answer }) => !covered.has(keyOf(operation.id, answer)) && !isElsewhere(operation.id, answer),
  )
  assert.deepEqual(
    missing.map(({ operation, answer }) => keyOf(operation.id, answer)),
    [],
  )
  const known = new Set(declared.map(({ operation, answer }) => keyOf(operation.id, answer)))
  assert.deepEqual(
    [...covered].filter((key) => !known.has(key)),
    [],
  )
  assert.deepEqual(
    Object.keys(ELSEWHERE).filter((key) => !known.has(key) && !declared.some(({ answer }) => answer === key)),
    [],
  )
})

describe('every operation gives every answer that it declares', { concurrency: 6 }, () => {
  const stack = new AsyncDisposableStack()
  let world: World | undefined
  let armed = false
  const brokenClock = {
    ...systemClock,
    now() {
      if (armed) throw new Error('a defect')
      return systemClock.now()
    },
  }

  before(async () => {
    const use = <T extends AsyncDisposable>(promise: Promise<T>): Promise<T> =>
      promise.then((value) => stack.use(value))
    const [main, closed, readOnly, empty, forgetful, unwired, gitless, broken, foreign] = await Promise.all([
      use(run()),
      use(run({ args: ['--auth'] })),
      use(run({ toml: '[supervisor]\nallow_mutations = false\n' })),
      use(run({ env: { SHELL: '/nonexistent/shell' } })),
      use(run({ toml: '[events.retention]\nmax_bytes = 600\n' })),
      use(runHere({ withInitializer: false })),
      use(
        runHere({
          probes: createProbes([], { env: {} }).map((probe) => ({
            ...probe,
            run: async () => ({ status: 'not_installed' }),
          })),
        }),
      ),
      use(runHere({ clock: brokenClock })),
      use(
        runHere({
          sockets: { holders: (sides) => sides.map(() => ({ uid: 12_345, inode: 1, open: true, established: true })) },
        }),
      ),
    ])
    await Promise.all([main, forgetful].map(({ api, work }) => newCity(api, work, 'alpha')))
    for (let count = 0; count < 10; count++) await emit(forgetful.api, 'alpha', 'scenario.old')
    let names = 0
    const unique = (prefix = 'city') => `${prefix}-${++names}`
    world = { main, closed, readOnly, empty, forgetful, unwired, gitless, broken, foreign, unique }
  })
  after(async () => {
    if (world !== undefined) await endSessions(world)
    await stack.disposeAsync()
    writeRecorded()
  })

  // First: they wait, and the scenarios have the time.
  test('a request whose head does not come within 10 s is 408, on every path', { timeout: 30_000 }, async () => {
    assert.ok(world)
    const { url } = world.main.api
    await Promise.all(
      OPERATIONS.map(async (operation) => {
        using connection = new RawConnection(url)
        await connection.send(`${operation.method} ${pathOf(operation)} HTTP/1.1\r\nHost: localhost\r\nX-Slow: `)
        assertProblem(
          await connection.answer(operation.method, pathOf(operation)),
          'request-timeout',
          'timeout: the headers did not arrive within 10 s',
        )
        await connection.closed
      }),
    )
  })

  test('a body of which no byte comes for 5 s, or 15 s for lines, is 408, on every mutation', {
    timeout: 30_000,
  }, async () => {
    assert.ok(world)
    const { url } = world.main.api
    await Promise.all(
      OPERATIONS.filter(({ method }) => isMutation(method)).map(async (operation) => {
        using connection = new RawConnection(url)
        const lines = operation.bodyStream !== undefined
        const type = lines ? LINES_TYPE : (operation.bodyType ?? 'application/json')
        const head = `${operation.method} ${pathOf(operation)} HTTP/1.1\r\nHost: localhost\r\nX-SVC-Request: 1\r\nContent-Type: ${type}\r\nContent-Length: 10\r\n\r\n{`
        await connection.send(head)
        assertProblem(
          await connection.answer(operation.method, pathOf(operation), 25_000),
          'request-timeout',
          lines ? 'timeout: no byte of the body came for 15 s' : 'timeout: no byte of the body came for 5 s',
        )
        await connection.closed
      }),
    )
  })

  for (const { operation, answer, run: provoke } of SCENARIOS) {
    test(`${operation} answers ${answer}`, async () => {
      assert.ok(world)
      const here = world
      const got = await recording(keyOf(operation, answer), () => provoke(here))
      assert.equal(got.operation?.id, operation)
      if (typeof answer === 'number') assert.equal(got.status, answer)
      else assertProblem(got, answer)
    })
  }

  test('a defect is 500 internal and tells the client nothing of itself', async () => {
    assert.ok(world)
    armed = true
    try {
      assertProblem(
        await world.broken.api.get('/v0/cities'),
        'internal',
        'internal: unexpected failure; the server log has it under this request id',
      )
    } finally {
      armed = false
    }
    assert.equal((await world.broken.api.get('/v0/cities')).status, 200)
  })
})

test('while the supervisor shuts down every operation is 503 unavailable, and what was in flight finishes', async () => {
  await using own = await run()
  await newCity(own.api, own.work, 'alpha')
  // Requests that are not complete yet: their connections are not idle, so they outlive the closing of the port. A whole
  // request stands before each: its answer shows that the server has read what came with it.
  const whole = 'GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n'
  const waiting = await Promise.all(
    OPERATIONS.map(async (operation) => {
      const connection = new RawConnection(own.api.url)
      await connection.send(
        `${whole}${operation.method} ${pathOf(operation)} HTTP/1.1\r\nHost: localhost\r\nX-SVC-Request: 1\r\n`,
      )
      await connection.answers(1)
      return { operation, connection }
    }),
  )
  using busy = new RawConnection(own.api.url)
  await busy.send(
    `${whole}POST /v0/city/alpha/events HTTP/1.1\r\nHost: localhost\r\nX-SVC-Request: 1\r\nContent-Type: application/json\r\nContent-Length: 31\r\nConnection: close\r\n\r\n{"type":"a.b",`,
  )
  await busy.answers(1)
  const ended = own.server.kill('SIGTERM')
  await eventually('the port is closed', () =>
    new RawConnection(own.api.url).send('').then(
      () => undefined,
      () => true,
    ),
  )
  // All at once: the server waits three seconds for what is in flight, and 79 answers one by one can take longer.
  await Promise.all([...waiting.map(({ connection }) => connection.send('\r\n')), busy.send('"actor":"test"  }')])
  for (const { operation, connection } of waiting) {
    const [, refused] = await connection.answers(2)
    assert.ok(refused)
    const answer = checked(operation.method, pathOf(operation), refused.status, refused.headers, refused.body)
    assertProblem(answer, 'unavailable', 'unavailable: the supervisor is shutting down')
    assert.equal(answer.headers['retry-after'], '1')
    connection[Symbol.dispose]()
  }
  await busy.closed
  const [, written] = parseAnswers(busy.bytes)
  assert.ok(written)
  const emitted = checked('POST', '/v0/city/alpha/events', written.status, written.headers, written.body)
  assert.equal(emitted.status, 201, emitted.text)
  assert.ok(Number(at(emitted.body, 'seq')) > 0)
  assert.equal(await ended, 0)
})
