/**
 * Sessions: each success and each refusal of their own, with real programs. All scenarios share one city; what only
 * reads shares sessions too. What sessions do over time is in test/e2e/sessions.
 */
import assert from 'node:assert/strict'
import type { Operation } from '../../../src/contract/base/operation.ts'
import { OPERATIONS, type OperationId } from '../../../src/contract/index.ts'
import { sessionReportOperations } from '../../../src/contract/sessions/reports.ts'
import type { SessionResponse } from '../../../src/contract/sessions/session-model.ts'
import { sessionOperations } from '../../../src/contract/sessions/sessions.ts'
import { terminalOperations } from '../../../src/contract/sessions/terminal.ts'
import { getSessionUsage } from '../../../src/contract/sessions/usage.ts'
import { at } from '../../support/document.ts'
import { type Answer, eventually } from '../../support/http.ts'
import { LOGGING_HARNESS } from '../../support/logging-harness.ts'
import { newSessionCity, type SessionApi, sessionPath } from '../../support/session-api.ts'
import { openStream } from '../../support/sse.ts'
import { STALE } from './edited-city.ts'
import { inFlight, mismatch } from './idempotency.ts'
import { type Scenario, scenario, scenariosOn, type World } from './scenario.ts'

const AGENTS = `[[agent]]
name = "lead"
provider = "bash"
[[agent]]
name = "held"
provider = "bash"
suspended = true
[[agent]]
name = "none"
provider = "bash"
max_active_sessions = 0
[[named_session]]
template = "lead"
name = "front"
[[named_session]]
template = "lead"
name = "watch"
mode = "always"
[providers.harness]
base = "builtin:claude"
command = "./harness.sh"
ready_prompt_prefix = ""
ready_delay_ms = 0
`
/** By then somebody has a session of that name. */
const STOLEN = `[[named_session]]
template = "lead"
name = "stolen"
`

const MISSING = 's-ffffffffffffffff'
const CLOSED_TWICE = 'twin'

/** What scenarios share; each thing is made when the first of them wants it. */
class Stage {
  readonly city: SessionApi
  readonly #made = new Map<string, Promise<string>>()

  constructor(city: SessionApi) {
    this.city = city
  }

  send = (method: string, path: string, body?: unknown, headers: Record<string, string> = {}): Promise<Answer> =>
    this.city.send(method, path, body, headers)
  /** As `send`, at a path below the session. */
  to = async (method: string, session: Promise<string> | string, rest: string, body?: unknown): Promise<Answer> =>
    this.send(method, `${sessionPath(await session)}${rest}`, body)

  /** Runs, and is left alone. */
  bash = (): Promise<string> => this.#once('bash', () => this.city.start({ alias: 'shared' }))
  /** Runs behind ACP and asks nothing. */
  talker = (): Promise<string> => this.#once('talker', () => this.city.startTalker())
  /** Has no terminal. */
  piped = (): Promise<string> => this.#once('piped', () => this.city.start({ name: 'piped' }))
  /** Waits for an answer. */
  asking = (): Promise<string> =>
    this.#once('asking', async () => {
      const id = await this.city.startTalker()
      await this.city.ask(id)
      return id
    })
  /** Does not run, and is woken by nobody. */
  resting = (): Promise<string> =>
    this.#once('resting', async () => {
      const id = await this.city.start()
      await this.city.done('POST', `${sessionPath(id)}/suspend`)
      return id
    })
  closed = (): Promise<string> =>
    this.#once('closed', async () => {
      const id = await this.city.start()
      await this.city.close(id)
      return id
    })
  /** Has as much in its queue as it may. */
  full = (): Promise<string> =>
    this.#once('full', async () => {
      const id = await this.city.start()
      await this.city.done('POST', `${sessionPath(id)}/suspend`)
      const nudge = { message: 'wait', delivery: 'queue' }
      for (let sent = 0; sent < 1000; sent += 50)
        await Promise.all(Array.from({ length: 50 }, () => this.city.done('POST', `${sessionPath(id)}/nudge`, nudge)))
      return id
    })
  harness = (): Promise<string> =>
    this.#once('harness', async () => {
      const id = await this.city.start({ name: 'harness' })
      await eventually('its sub-agent is on disk', async () => {
        const { body } = await this.send('GET', `${sessionPath(id)}/agents`)
        const agents = at(body, 'agents')
        return Array.isArray(agents) && agents.length > 0 ? true : undefined
      })
      return id
    })
  /** Id of an open bead. */
  bead = (): Promise<string> =>
    this.#once('bead', async () => String((await this.city.done('POST', '/beads', { title: 'wanted' })).id))

  /** Two closed sessions had this alias. */
  twins = (): Promise<string> =>
    this.#once('twins', async () => {
      for (const _ of [1, 2]) await this.city.close(await this.city.start({ alias: CLOSED_TWICE }))
      return CLOSED_TWICE
    })

  /** A session for one scenario, gone after it. */
  async own(use: (id: string) => Promise<Answer>, make = (): Promise<string> => this.city.start()): Promise<Answer> {
    const id = await make()
    try {
      return await use(id)
    } finally {
      await this.send('POST', `${sessionPath(id)}/close?delete=true`)
    }
  }

  /** While the host of the session does nothing: what waits for it runs into its deadline. */
  async stalled(id: string, use: () => Promise<Answer>): Promise<Answer> {
    const host = this.city.hostOf(id)
    process.kill(host, 'SIGSTOP')
    try {
      return await use()
    } finally {
      process.kill(host, 'SIGCONT')
    }
  }

  #once(key: string, make: () => Promise<string>): Promise<string> {
    const known = this.#made.get(key) ?? make()
    this.#made.set(key, known)
    return known
  }
}

const stages = new WeakMap<World, Promise<Stage>>()

function stageOf(world: World): Promise<Stage> {
  const known = stages.get(world) ?? openStage(world)
  stages.set(world, known)
  return known
}

/** Ends what runs: agents outlive a supervisor that is killed. */
export async function endSessions(world: World): Promise<void> {
  const stage = await stages.get(world)
  await stage?.city.done('POST', '/stop', { force: true })
}

async function openStage(world: World): Promise<Stage> {
  const city = await newSessionCity(world.main, world.unique('sessions'), AGENTS)
  city.write('harness.sh', LOGGING_HARNESS, 0o755)
  await city.start({ alias: 'stolen' })
  await city.configure(`${AGENTS}${STOLEN}`)
  return new Stage(city)
}

const on = scenariosOn(stageOf)

// --- Which session an `{id}` means -----------------------------------------------------------------------------------

/** Right bodies, of operations that take one. */
const BODIES: { readonly [Id in OperationId]?: object } = {
  'report-session': {},
  'ask-session-permission': { tool: 'Bash', timeout: '0s' },
  'patch-session': { title: 'new' },
  'send-session-message': { message: 'hello' },
  'prompt-session': { message: 'hello' },
  'submit-session': { message: 'hello' },
  'nudge-session': { message: 'hello' },
  'respond-session': { action: 'approve' },
  'create-session-wait': { dep_ids: ['none'] },
  'type-into-session': { viewer: 'one', seq: 1, text: 'true' },
  'resize-session-terminal': { cols: 100, rows: 30 },
  'send-session-keys': { keys: ['Enter'] },
}

const isOperationId = (id: string): id is OperationId => OPERATIONS.some((operation) => operation.id === id)
/** Below the city. */
const pathFor = ({ path }: Operation, session: string): string =>
  path
    .replace('/v0/city/{cityName}', '')
    .replace('{id}', encodeURIComponent(session))
    .replaceAll(/\{\w+\}/g, 'none')

function resolutionsOf(operation: Operation): Scenario[] {
  const { id, method, path } = operation
  if (!path.includes('/sessions/{id}')) return []
  assert.ok(isOperationId(id))
  const call = ({ send }: Stage, session: string) => send(method, pathFor(operation, session), BODIES[id])
  return [
    on(
      id,
      'session-not-found',
      (stage) => call(stage, MISSING),
      ({ body }) => assert.equal(at(body, 'detail'), `not_found: there is no session ${MISSING}`),
    ),
    on(
      id,
      'ambiguous-session',
      async (stage) => call(stage, await stage.twins()),
      ({ body }) => assert.match(String(at(body, 'detail')), /^ambiguous: twin means s-[0-9a-f]{16}, s-[0-9a-f]{16}$/),
    ),
    on(
      id,
      'name-taken',
      (stage) => call(stage, 'stolen'),
      ({ body }) => assert.match(String(at(body, 'detail')), /^conflict: stolen is a configured session, and s-/),
    ),
  ]
}

// --- Saying something ------------------------------------------------------------------------------------------------

const SAYING = [
  { id: 'send-session-message', rest: '/messages' },
  { id: 'prompt-session', rest: '/prompt' },
  { id: 'submit-session', rest: '/submit' },
] as const

const saying = SAYING.flatMap(({ id, rest }): Scenario[] => [
  on(
    id,
    202,
    (stage) => stage.to('POST', stage.talker(), rest, { message: 'hello' }),
    ({ body }) => assert.match(String(at(body, 'delivery_id')), /^dlv-/),
  ),
  on(id, 'pending-interaction', (stage) => stage.to('POST', stage.asking(), rest, { message: 'hello' })),
  on(id, 'session-conflict', (stage) => stage.to('POST', stage.closed(), rest, { message: 'hello' })),
  on(id, 'conflict-config', (stage) =>
    ofSuspendedAgent(stage, `held-${rest.slice(1)}`, (one) => stage.to('POST', one, rest, { message: 'hello' })),
  ),
  on(id, 'queue-full', (stage) => stage.to('POST', stage.full(), rest, { message: 'hello' })),
  ...keyed(id, async (stage) => ({
    path: `${sessionPath(await stage.talker())}${rest}`,
    one: { message: 'hello' },
    other: { message: 'goodbye' },
  })),
])

interface Keyed {
  readonly path: string
  readonly one: object
  readonly other: object
}

/** The two refusals of idempotency keys; `end` tidies up after what was made. */
function keyed(
  id: OperationId,
  what: (stage: Stage) => Promise<Keyed>,
  end: (stage: Stage, answer: Answer) => Promise<unknown> = async () => {},
): Scenario[] {
  return [
    inFlight(id, async (world, key) => {
      const stage = await stageOf(world)
      const { path, one } = await what(stage)
      const answers = await Promise.all(
        Array.from({ length: 8 }, () => stage.send('POST', path, one, { 'idempotency-key': key })),
      )
      const made = answers.find(({ status }) => status < 300)
      if (made !== undefined) await end(stage, made)
      return answers
    }),
    mismatch(id, async (world, key, second) => {
      const stage = await stageOf(world)
      const { path, one, other } = await what(stage)
      return stage.send('POST', path, second ? other : one, { 'idempotency-key': key })
    }),
  ]
}

/** Without a body: that the same request is not done twice at once. */
const onlyOnce = (['kill', 'reset', 'request-restart'] as const).map((verb) => {
  const id: OperationId = verb === 'request-restart' ? 'request-session-restart' : `${verb}-session`
  return inFlight(id, async (world, key) => {
    const stage = await stageOf(world)
    const session = await stage.city.start()
    const path = `${sessionPath(session)}/${verb}`
    const answers = await Promise.all(
      Array.from({ length: 8 }, () => stage.send('POST', path, undefined, { 'idempotency-key': key })),
    )
    await stage.city.forget(session)
    return answers
  })
})

// --- All -------------------------------------------------------------------------------------------------------------

const BASH = { kind: 'provider', name: 'bash' } as const
const create = (stage: Stage, body: object): Promise<Answer> => stage.send('POST', '/sessions', { ...BASH, ...body })
const forget = (stage: Stage, { body }: Answer) => stage.city.forget(String(at(body, 'session_id')))
const state = (wanted: SessionResponse['state']) => (answer: Answer) => assert.equal(at(answer.body, 'state'), wanted)

/** Operations that change one session and answer with it. */
const changing = [on('heartbeat-session', 200, (stage) => stage.own((id) => stage.to('POST', id, '/heartbeat')))]

const TYPED = { viewer: 'one', seq: 1, text: 'true' }
const SIZE = { cols: 100, rows: 30 }
const KEYS = { keys: [...'true', 'Enter'] }
/** Operations at a terminal, with what they take. */
const AT_TERMINALS = [
  { id: 'get-session-screen', method: 'GET', rest: '/screen' },
  { id: 'stream-session-terminal', method: 'GET', rest: '/terminal' },
  { id: 'type-into-session', method: 'POST', rest: '/terminal/input', body: TYPED },
  { id: 'resize-session-terminal', method: 'POST', rest: '/terminal/size', body: SIZE },
  { id: 'send-session-keys', method: 'POST', rest: '/keys', body: KEYS },
] as const

const terminals: Scenario[] = [
  ...AT_TERMINALS.flatMap(({ id, method, rest, ...more }): Scenario[] => {
    const body = 'body' in more ? more.body : undefined
    const call = (stage: Stage, session: Promise<string> | string) => stage.to(method, session, rest, body)
    return [
      on(id, 'unsupported', (stage) => call(stage, stage.talker())),
      on(id, 'unsupported', (stage) => call(stage, stage.piped())),
      on(id, 'session-conflict', (stage) => call(stage, stage.resting())),
      ...(method === 'GET'
        ? []
        : [
            on(id, 200, (stage) => stage.own((session) => call(stage, session))),
            on(id, 'gateway-timeout', (stage) =>
              stage.own((session) => stage.stalled(session, () => call(stage, session))),
            ),
          ]),
    ]
  }),
  on(
    'get-session-screen',
    200,
    (stage) => stage.to('GET', stage.bash(), '/screen?format=ansi'),
    ({ body }) => assert.ok(Array.isArray(at(body, 'lines'))),
  ),
  scenario('stream-session-terminal', 200, async (world) => {
    const stage = await stageOf(world)
    const path = `${stage.city.base}${sessionPath(await stage.bash())}/terminal`
    const stream = await openStream(stage.city.api, path)
    await stream.until(() => stream.frames.length > 0)
    await stream[Symbol.asyncDispose]()
    const { operation, headers } = stream
    assert.equal(stream.frames[0]?.event, 'screen')
    return { operation, status: 200, headers, text: '', bytes: Buffer.of(), body: undefined }
  }),
  on('stream-session-terminal', 'invalid-cursor', (stage) =>
    stage.to('GET', stage.bash(), '/terminal?after_cursor=nonsense'),
  ),
  on('send-session-keys', 'screen-differs', (stage) =>
    stage.to('POST', stage.bash(), '/keys', { ...KEYS, expect_screen: 'nowhere to be seen' }),
  ),
]

const creating: Scenario[] = [
  on('create-session', 202, async (stage) => {
    const answer = await create(stage, { message: 'true', title: 'One', metadata: { ticket: '7' } })
    await forget(stage, answer)
    return answer
  }),
  on('create-session', 'agent-not-found', (stage) => create(stage, { kind: 'agent', name: 'nobody' })),
  on('create-session', 'provider-not-found', (stage) => create(stage, { name: 'nothing' })),
  on('create-session', 'name-taken', async (stage) => {
    await stage.bash()
    return create(stage, { alias: 'shared' })
  }),
  on('create-session', 'conflict-config', (stage) => create(stage, { kind: 'agent', name: 'held' })),
  on('create-session', 'missing-dependency', (stage) => create(stage, { name: 'absent' })),
  on('create-session', 'unsupported', (stage) => create(stage, { name: 'bash', runtime: 'acp' })),
  on('create-session', 'too-many-sessions', (stage) => create(stage, { kind: 'agent', name: 'none' })),
  ...keyed(
    'create-session',
    async () => ({ path: '/sessions', one: BASH, other: { ...BASH, title: 'Other' } }),
    forget,
  ),
]

const turns: Scenario[] = [
  on(
    'stop-session',
    200,
    (stage) => stage.own((id) => stage.to('POST', id, '/stop')),
    ({ body }) => assert.equal(at(body, 'session', 'state'), 'active'),
  ),
  on('stop-session', 'unsupported', (stage) => stage.to('POST', stage.piped(), '/stop')),
  on('stop-session', 'gateway-timeout', (stage) =>
    stage.own((id) => stage.stalled(id, () => stage.to('POST', id, '/stop'))),
  ),
  on('submit-session', 'unsupported', (stage) =>
    stage.to('POST', stage.piped(), '/submit', { message: 'hello', intent: 'interrupt_now' }),
  ),
  on('kill-session', 200, (stage) => stage.own((id) => stage.to('POST', id, '/kill'))),
  on('kill-session', 'session-conflict', (stage) => stage.to('POST', stage.resting(), '/kill')),
  on('suspend-session', 200, (stage) => stage.own((id) => stage.to('POST', id, '/suspend')), state('suspended')),
  on('suspend-session', 'illegal-transition', (stage) => stage.to('POST', stage.closed(), '/suspend')),
]

const waking = (['wake', 'resume'] as const).flatMap((verb): Scenario[] => [
  on(`${verb}-session`, 200, (stage) =>
    stage.own(async (id) => {
      await stage.to('POST', id, '/suspend')
      return stage.to('POST', id, `/${verb}`)
    }),
  ),
  on(`${verb}-session`, 'illegal-transition', (stage) => stage.to('POST', stage.closed(), `/${verb}`)),
  on(`${verb}-session`, 'conflict-config', (stage) =>
    ofSuspendedAgent(stage, `${verb}r`, (id) => stage.to('POST', id, `/${verb}`)),
  ),
])

/** With a session that rests, of an agent that is suspended. */
async function ofSuspendedAgent(stage: Stage, name: string, act: (id: string) => Promise<Answer>): Promise<Answer> {
  await stage.city.done('POST', '/agents', { name, provider: 'bash' })
  return stage.own(
    async (id) => {
      await stage.to('POST', id, '/suspend')
      await stage.city.done('POST', `/agents/${name}/suspend`)
      return act(id)
    },
    () => stage.city.start({ kind: 'agent', name }),
  )
}

const ending: Scenario[] = [
  on('close-session', 200, (stage) => stage.own((id) => stage.to('POST', id, '/close')), state('closed')),
  on('close-session', 'session-conflict', (stage) => alwaysOn(stage, 'POST', '/close')),
  on(
    'delete-session',
    200,
    (stage) => stage.own((id) => stage.to('DELETE', id, '')),
    ({ body }) => assert.equal(at(body, 'status'), 'deleted'),
  ),
  on('delete-session', 'session-conflict', (stage) => alwaysOn(stage, 'DELETE', '')),
  on('delete-session', 'precondition-failed', async (stage) =>
    stage.send('DELETE', sessionPath(await stage.bash()), undefined, STALE),
  ),
  on('prune-sessions', 200, (stage) => stage.send('POST', '/sessions/prune', { closed_before: '1h' })),
  on('release-session-name', 200, (stage) =>
    stage.own(
      async (id) => {
        await stage.city.close(id)
        return stage.to('POST', id, '/release-name')
      },
      () => stage.city.start({ alias: 'spent' }),
    ),
  ),
  on('release-session-name', 'session-conflict', (stage) => stage.to('POST', stage.bash(), '/release-name')),
]

/** The configured session that always runs. */
async function alwaysOn(stage: Stage, method: string, rest: string): Promise<Answer> {
  await stage.city.is('watch', 'active')
  return stage.to(method, 'watch', rest)
}

const naming: Scenario[] = [
  on('patch-session', 200, (stage) =>
    stage.own((id) => stage.to('PATCH', id, '', { title: 'New', alias: 'newest', metadata: { a: '1' } })),
  ),
  on('patch-session', 'name-taken', async (stage) => {
    await stage.bash()
    return stage.to('PATCH', stage.talker(), '', { alias: 'shared' })
  }),
  on('patch-session', 'forbidden', async (stage) => {
    await stage.city.is('watch', 'active')
    return stage.to('PATCH', 'watch', '', { alias: 'other' })
  }),
  on('patch-session', 'precondition-failed', async (stage) =>
    stage.send('PATCH', sessionPath(await stage.bash()), { title: 'New' }, STALE),
  ),
  on(
    'patch-session',
    200,
    (stage) =>
      stage.own(
        (id) => stage.to('PATCH', id, '', { mode: 'never' }),
        () => stage.city.start({ name: 'modal' }),
      ),
    ({ body }) => {
      assert.equal(at(body, 'options', 'permission_mode'), 'never')
      assert.equal(at(body, 'options_applied', 'permission_mode'), 'next_start')
    },
  ),
  on('patch-session', 'unsupported', (stage) => stage.to('PATCH', stage.resting(), '', { mode: 'ask' })),
  on('get-session-options', 200, (stage) => stage.to('GET', stage.bash(), '/options')),
  on('patch-session', 'session-conflict', (stage) => stage.to('PATCH', stage.closed(), '', { pinned: true })),
  on('heartbeat-session', 'session-conflict', (stage) => stage.to('POST', stage.closed(), '/heartbeat')),
]

const draining: Scenario[] = [
  on('drain-session', 200, (stage) => stage.own((id) => stage.to('POST', id, '/drain')), state('draining')),
  on('drain-session', 'illegal-transition', (stage) => stage.to('POST', stage.resting(), '/drain')),
  on(
    'undrain-session',
    200,
    (stage) =>
      stage.own(async (id) => {
        await stage.to('POST', id, '/drain')
        return stage.to('POST', id, '/undrain')
      }),
    state('active'),
  ),
  on('undrain-session', 'illegal-transition', (stage) => stage.to('POST', stage.bash(), '/undrain')),
  on(
    'ack-session-drain',
    200,
    (stage) =>
      stage.own(async (id) => {
        await stage.to('POST', id, '/drain')
        return stage.to('POST', id, '/drain-ack')
      }),
    state('asleep'),
  ),
  on('ack-session-drain', 'illegal-transition', (stage) => stage.to('POST', stage.bash(), '/drain-ack')),
  on(
    'get-session-drain',
    200,
    (stage) => stage.to('GET', stage.bash(), '/drain'),
    ({ body }) => assert.deepEqual(body, { draining: false, acknowledged: false }),
  ),
  on('reset-session', 200, (stage) => stage.own((id) => stage.to('POST', id, '/reset'))),
  on('reset-session', 'session-conflict', (stage) => stage.to('POST', stage.closed(), '/reset')),
  on(
    'request-session-restart',
    200,
    (stage) => stage.own((id) => stage.to('POST', id, '/request-restart')),
    state('draining'),
  ),
  on('request-session-restart', 'session-conflict', (stage) => stage.to('POST', stage.resting(), '/request-restart')),
]

const answering: Scenario[] = [
  on(
    'get-session-pending',
    200,
    (stage) => stage.to('GET', stage.asking(), '/pending'),
    ({ body }) => assert.equal(at(body, 'pending', 'kind'), 'approval'),
  ),
  on(
    'list-pending',
    200,
    async (stage) => {
      await stage.asking()
      return stage.send('GET', '/pending')
    },
    ({ body }) => assert.ok(Number(at(body, 'total')) > 0),
  ),
  on('respond-session', 200, (stage) =>
    stage.own(
      async (id) => {
        await stage.city.ask(id)
        return stage.to('POST', id, '/respond', { action: 'approve' })
      },
      () => stage.city.startTalker(),
    ),
  ),
  on('respond-session', 'no-pending', (stage) => stage.to('POST', stage.talker(), '/respond', { action: 'approve' })),
  on('respond-session', 'invalid-interaction', (stage) =>
    stage.to('POST', stage.asking(), '/respond', { action: 'approve', request_id: 'another' }),
  ),
  on('respond-session', 'unsupported', (stage) => stage.to('POST', stage.piped(), '/respond', { action: 'approve' })),
  on('respond-session', 'gateway-timeout', (stage) =>
    stage.own(
      async (id) => {
        await stage.city.ask(id)
        return stage.stalled(id, () => stage.to('POST', id, '/respond', { action: 'approve' }))
      },
      () => stage.city.startTalker(),
    ),
  ),
]

const reporting: Scenario[] = [
  on(
    'report-session',
    200,
    (stage) => stage.to('POST', stage.bash(), '/report', { model: 'a-model' }),
    ({ body }) => assert.equal(at(body, 'model'), 'a-model'),
  ),
  on('report-session', 'session-conflict', (stage) =>
    stage.to('POST', stage.bash(), '/report', { activity: 'idle', generation: 99 }),
  ),
  on(
    'ask-session-permission',
    200,
    (stage) => stage.to('POST', stage.bash(), '/permission', { tool: 'Bash', timeout: '0s' }),
    ({ body }) => assert.equal(at(body, 'decision'), 'none'),
  ),
  on('ask-session-permission', 'session-conflict', (stage) =>
    stage.to('POST', stage.closed(), '/permission', { tool: 'Bash', timeout: '0s' }),
  ),
  on('ask-session-permission', 'queue-full', (stage) => stage.own((id) => askedTooMuch(id, stage))),
]

/** Twenty hooks ask; they are let go with the process of their session. */
async function askedTooMuch(id: string, stage: Stage): Promise<Answer> {
  const ask = (timeout: string) => stage.to('POST', id, '/permission', { tool: 'Bash', timeout })
  const asked = Array.from({ length: 20 }, () => ask('60s'))
  const refused = await eventually('the line is full', async () => {
    const answer = await ask('0s')
    return answer.status === 429 ? answer : undefined
  })
  await stage.to('POST', id, '/kill')
  await Promise.all(asked)
  return refused
}

const queueing: Scenario[] = [
  on(
    'nudge-session',
    201,
    (stage) => stage.to('POST', stage.resting(), '/nudge', { message: 'look', delivery: 'queue' }),
    ({ body }) => assert.equal(at(body, 'state'), 'queued'),
  ),
  on('nudge-session', 'session-conflict', (stage) => stage.to('POST', stage.closed(), '/nudge', { message: 'look' })),
  on('nudge-session', 'queue-full', (stage) =>
    stage.to('POST', stage.full(), '/nudge', { message: 'look', delivery: 'queue' }),
  ),
  ...keyed('nudge-session', async (stage) => ({
    path: `${sessionPath(await stage.resting())}/nudge`,
    one: { message: 'look', delivery: 'queue' },
    other: { message: 'look there', delivery: 'queue' },
  })),
  on(
    'list-session-deliveries',
    200,
    (stage) => stage.to('GET', stage.full(), '/deliveries?state=queued&limit=2'),
    ({ body }) => assert.equal(at(body, 'total'), 1000),
  ),
  on('list-session-deliveries', 'invalid-cursor', (stage) =>
    stage.to('GET', stage.bash(), '/deliveries?cursor=nonsense'),
  ),
  on(
    'get-session-usage',
    200,
    (stage) => stage.to('GET', stage.bash(), '/usage'),
    ({ body }) => assert.deepEqual([at(body, 'totals', 'turns'), at(body, 'items')], [0, []]),
  ),
  on('get-session-usage', 'invalid-cursor', (stage) => stage.to('GET', stage.bash(), '/usage?cursor=nonsense')),
  on('cancel-session-delivery', 200, cancelled, ({ body }) => assert.equal(at(body, 'state'), 'cancelled')),
  on('cancel-session-delivery', 'delivery-not-found', (stage) =>
    stage.to('DELETE', stage.bash(), '/deliveries/dlv-none'),
  ),
  on('cancel-session-delivery', 'conflict-wrong-state', async (stage) => {
    const { body } = await cancelled(stage)
    return stage.to('DELETE', stage.resting(), `/deliveries/${String(at(body, 'id'))}`)
  }),
]

async function cancelled(stage: Stage): Promise<Answer> {
  const nudge = await stage.to('POST', stage.resting(), '/nudge', { message: 'look', delivery: 'queue' })
  return stage.to('DELETE', stage.resting(), `/deliveries/${String(at(nudge.body, 'id'))}`)
}

const reading: Scenario[] = [
  on(
    'list-sessions',
    200,
    async (stage) => {
      await stage.bash()
      return stage.send('GET', '/sessions?state=open&template=bash&peek=true&peek_lines=2')
    },
    ({ body }) => assert.equal(at(body, 'items', 0, 'template'), 'bash'),
  ),
  on('list-sessions', 'invalid-cursor', (stage) => stage.send('GET', '/sessions?cursor=nonsense')),
  on(
    'get-session',
    200,
    (stage) => stage.to('GET', stage.bash(), ''),
    ({ body, headers }) => assert.equal(headers['etag'], `"${String(at(body, 'revision'))}"`),
  ),
  on('get-session-transcript', 200, (stage) => stage.to('GET', stage.bash(), '/transcript?format=structured')),
  on('get-session-transcript', 'transcript-cursor-invalidated', (stage) =>
    stage.to('GET', stage.bash(), '/transcript?before=7-7'),
  ),
  scenario('stream-session', 200, async (world) => {
    const stage = await stageOf(world)
    const path = `${stage.city.base}${sessionPath(await stage.bash())}/stream`
    const stream = await openStream(stage.city.api, path)
    await stream.until(() => stream.frames.length > 0)
    await stream[Symbol.asyncDispose]()
    const { operation, headers } = stream
    assert.equal(headers['svc-session-state'], 'active')
    return { operation, status: 200, headers, text: '', bytes: Buffer.of(), body: undefined }
  }),
  on('stream-session', 'invalid-cursor', (stage) => stage.to('GET', stage.bash(), '/stream?after_cursor=nonsense')),
  on(
    'list-session-agents',
    200,
    (stage) => stage.to('GET', stage.harness(), '/agents'),
    ({ body }) => assert.deepEqual(body, { agents: [{ agent_id: 'helper', parent_tool_use_id: 'tool-1' }] }),
  ),
  on(
    'get-session-agent',
    200,
    (stage) => stage.to('GET', stage.harness(), '/agents/helper'),
    ({ body }) => assert.equal(at(body, 'status'), 'completed'),
  ),
  on('get-session-agent', 'agent-not-found', (stage) => stage.to('GET', stage.harness(), '/agents/nobody')),
]

const waiting: Scenario[] = [
  on('create-session-wait', 201, newWait, ({ body }) => assert.equal(at(body, 'state'), 'pending')),
  on('create-session-wait', 'bead-not-found', (stage) =>
    stage.to('POST', stage.resting(), '/waits', { dep_ids: ['none-1'] }),
  ),
  on('create-session-wait', 'session-conflict', async (stage) =>
    stage.to('POST', stage.closed(), '/waits', { dep_ids: [await stage.bead()] }),
  ),
  ...keyed('create-session-wait', async (stage) => ({
    path: `${sessionPath(await stage.resting())}/waits`,
    one: { dep_ids: [await stage.bead()] },
    other: { dep_ids: [await stage.bead()], note: 'other' },
  })),
  on(
    'list-waits',
    200,
    async (stage) => {
      await newWait(stage)
      return stage.send('GET', `/waits?state=pending&session=${await stage.resting()}`)
    },
    ({ body }) => assert.equal(at(body, 'items', 0, 'kind'), 'deps'),
  ),
  on('list-waits', 'invalid-cursor', (stage) => stage.send('GET', '/waits?cursor=nonsense')),
  on('list-waits', 'session-not-found', (stage) => stage.send('GET', `/waits?session=${MISSING}`)),
  on('create-session', 'session-not-found', (stage) =>
    stage.send('POST', '/sessions', { kind: 'provider', name: 'bash', fork_of: 'nobody' }),
  ),
  on('create-session', 'ambiguous-session', async (stage) =>
    stage.send('POST', '/sessions', { kind: 'provider', name: 'bash', fork_of: await stage.twins() }),
  ),
  ...(['send-session-message', 'prompt-session'] as const).map((id) =>
    on(id, 'unsupported', (stage) =>
      stage.to('POST', stage.bash(), id === 'prompt-session' ? '/prompt' : '/messages', {
        message: 'look',
        attachments: [{ mime_type: 'image/png', data: 'UE5H' }],
      }),
    ),
  ),
  on('list-waits', 'ambiguous-session', async (stage) => stage.send('GET', `/waits?session=${await stage.twins()}`)),
  on('list-waits', 'name-taken', (stage) => stage.send('GET', '/waits?session=stolen')),
  on('get-wait', 200, async (stage) => stage.send('GET', `/waits/${idOf(await newWait(stage))}`)),
  on('get-wait', 'wait-not-found', (stage) => stage.send('GET', '/waits/wait-none')),
  on(
    'cancel-wait',
    200,
    async (stage) => stage.send('DELETE', `/waits/${idOf(await newWait(stage))}`),
    ({ body }) => assert.equal(at(body, 'state'), 'canceled'),
  ),
  on('cancel-wait', 'wait-not-found', (stage) => stage.send('DELETE', '/waits/wait-none')),
  on('cancel-wait', 'conflict-wrong-state', async (stage) => {
    const wait = idOf(await newWait(stage))
    await stage.send('DELETE', `/waits/${wait}`)
    return stage.send('DELETE', `/waits/${wait}`)
  }),
]

const idOf = ({ body }: Answer): string => String(at(body, 'id'))
async function newWait(stage: Stage): Promise<Answer> {
  return stage.to('POST', stage.resting(), '/waits', { dep_ids: [await stage.bead()], note: 'go on' })
}

export const sessionScenarios: readonly Scenario[] = [
  ...[...sessionOperations, ...terminalOperations, ...sessionReportOperations, getSessionUsage].flatMap(resolutionsOf),
  ...creating,
  ...saying,
  ...turns,
  ...waking,
  ...ending,
  ...naming,
  ...changing,
  ...onlyOnce,
  ...draining,
  ...answering,
  ...reporting,
  ...queueing,
  ...terminals,
  ...reading,
  ...waiting,
]
