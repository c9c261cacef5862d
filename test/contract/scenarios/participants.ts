/** Bindings, groups, participants, and what comes in: each success and each refusal of their own. What they do is in test/e2e/chats. */
import assert from 'node:assert/strict'
import { at } from '../../support/document.ts'
import type { Answer } from '../../support/http.ts'
import { newSessionCity, type SessionApi } from '../../support/session-api.ts'
import { inFlight, mismatch } from './idempotency.ts'
import { type Scenario, scenariosOn, type World } from './scenario.ts'

const AGENTS = `[[agent]]
name = "mayor"
provider = "talker"
[[agent]]
name = "poet"
provider = "talker"
[[agent]]
name = "crowd"
provider = "talker"
max_active_sessions = 3
`
const BASE = '/participants'

/** What scenarios share: a city with agents, none of which runs. */
class Stage {
  readonly city: SessionApi
  readonly #world: World
  #closed: Promise<string> | undefined

  constructor(city: SessionApi, world: World) {
    this.city = city
    this.#world = world
  }

  send = (method: string, path: string, body?: unknown, headers: Record<string, string> = {}): Promise<Answer> =>
    this.city.send(method, `${BASE}${path}`, body, headers)

  /** One that nobody has spoken in. */
  room = () => ({ provider: 'irc', account_id: 'a', conversation_id: this.#world.unique('#room'), kind: 'room' })

  async idOf(answer: Promise<Answer>): Promise<string> {
    const { status, body, text } = await answer
    assert.ok(status < 300, text)
    return String(at(body, 'id'))
  }

  binding = (conversation: object = this.room()): Promise<string> =>
    this.idOf(this.send('POST', '/bindings', { conversation, agent_name: 'mayor' }))
  group = (): Promise<string> => this.idOf(this.send('POST', '/groups', { root_conversation: this.room() }))
  join = async (group: string, handle = 'mayor'): Promise<string> =>
    this.idOf(this.send('POST', '', { group_id: group, handle, agent_name: 'mayor' }))

  /** Brings a message by an adapter of its own: none is brought too often. */
  async bring(more: object = {}, conversation: object = { conversation_id: '#ops', kind: 'room' }): Promise<Answer> {
    const account = this.#world.unique('account')
    await this.city.done('POST', '/adapters', { provider: 'irc', account_id: account, transport: 'pull' })
    const message = { provider_message_id: 'm-1', conversation, actor: { id: 'ada' }, text: 'hello' }
    return this.city.send('POST', `/adapters/irc/${account}/inbound`, { message, ...more })
  }

  closed = (): Promise<string> => {
    this.#closed ??= (async () => {
      const id = await this.city.start({ name: 'piped' })
      await this.city.close(id)
      return id
    })()
    return this.#closed
  }
}

const stages = new WeakMap<World, Promise<Stage>>()
function stageOf(world: World): Promise<Stage> {
  const known =
    stages.get(world) ??
    newSessionCity(world.main, world.unique('chats'), AGENTS).then((city) => new Stage(city, world))
  stages.set(world, known)
  return known
}

const on = scenariosOn(stageOf)

const NOWHERE = { provider: ' ', account_id: 'a', conversation_id: 'c', kind: 'room' }

/** What a list of this family has in common with the others. */
const lists = (operation: Scenario['operation'], path: string): readonly Scenario[] => [
  on(operation, 'invalid-cursor', (stage) => stage.send('GET', `${path}?cursor=nonsense`)),
  on(operation, 'invalid-conversation', (stage) => stage.send('GET', `${path}?kind=hall`)),
]

/** Whom a request may not name; `send` sends it with these fields. */
const targets = (
  operation: Scenario['operation'],
  send: (stage: Stage, who: object) => Promise<Answer>,
): readonly Scenario[] => [
  on(operation, 'session-not-found', (stage) => send(stage, { session_id: 'nobody' })),
  on(operation, 'agent-not-found', (stage) => send(stage, { agent_name: 'nobody' })),
  on(operation, 'ambiguous-recipient', (stage) => send(stage, { agent_name: 'crowd' })),
  on(operation, 'session-conflict', async (stage) => send(stage, { session_id: await stage.closed() })),
]

const keyed = (
  operation: Scenario['operation'],
  path: string,
  body: (stage: Stage, second: boolean) => Promise<object>,
): readonly Scenario[] => [
  inFlight(operation, async (world, key) => {
    const stage = await stageOf(world)
    const sent = await body(stage, false)
    return Promise.all(Array.from({ length: 8 }, () => stage.send('POST', path, sent, { 'idempotency-key': key })))
  }),
  mismatch(operation, async (world, key, second) => {
    const stage = await stageOf(world)
    const known = bodies.get(key) ?? (await body(stage, false))
    bodies.set(key, known)
    return stage.send('POST', path, second ? await body(stage, true) : known, { 'idempotency-key': key })
  }),
]
/** The same body for the same key: each room is another one. */
const bodies = new Map<string, object>()

export const participantScenarios: readonly Scenario[] = [
  on('list-participants', 200, async (stage) => {
    const group = await stage.group()
    const id = await stage.join(group)
    const answer = await stage.send('GET', `?group_id=${group}&handle=%20MAYOR`)
    assert.deepEqual([at(answer.body, 'total'), at(answer.body, 'items', 0, 'id')], [1, id])
    return answer
  }),
  ...lists('list-participants', ''),
  on('upsert-participant', 201, async (stage) =>
    stage.send('POST', '', { group_id: await stage.group(), handle: 'Mayor', agent_name: 'mayor' }),
  ),
  on('upsert-participant', 200, async (stage) => {
    const group = await stage.group()
    await stage.join(group, 'boss')
    const answer = await stage.send('POST', '', { group_id: group, handle: 'boss', agent_name: 'poet' })
    assert.equal(at(answer.body, 'agent_name'), 'poet')
    return answer
  }),
  on('upsert-participant', 'extmsg-group-not-found', (stage) =>
    stage.send('POST', '', { group_id: 'gr-none', handle: 'x', agent_name: 'mayor' }),
  ),
  ...targets('upsert-participant', async (stage, who) =>
    stage.send('POST', '', { group_id: await stage.group(), handle: 'x', ...who }),
  ),
  ...keyed('upsert-participant', '', async (stage) => ({
    group_id: await stage.group(),
    handle: 'mayor',
    agent_name: 'mayor',
  })),
  on('remove-participant-by-handle', 200, async (stage) => {
    const group = await stage.group()
    await stage.join(group, 'boss')
    return stage.send('DELETE', `?group_id=${group}&handle=Boss`)
  }),
  on('remove-participant-by-handle', 'extmsg-group-not-found', (stage) =>
    stage.send('DELETE', '?group_id=gr-none&handle=x'),
  ),
  on('remove-participant-by-handle', 'participant-not-found', async (stage) =>
    stage.send('DELETE', `?group_id=${await stage.group()}&handle=x`),
  ),
  on('get-participant', 200, async (stage) => stage.send('GET', `/${await stage.join(await stage.group())}`)),
  on('get-participant', 'participant-not-found', (stage) => stage.send('GET', '/pt-none')),
  on('remove-participant', 200, async (stage) => {
    const path = `/${await stage.join(await stage.group())}`
    const answer = await stage.send('DELETE', path)
    assert.equal(at((await stage.send('GET', path)).body, 'status'), 'removed')
    return answer
  }),
  on('remove-participant', 'participant-not-found', (stage) => stage.send('DELETE', '/pt-none')),

  on('list-groups', 200, async (stage) => {
    await stage.group()
    return stage.send('GET', '/groups?provider=IRC&limit=2')
  }),
  ...lists('list-groups', '/groups'),
  on('ensure-group', 201, (stage) => stage.send('POST', '/groups', { root_conversation: stage.room() })),
  on('ensure-group', 200, async (stage) => {
    const root_conversation = stage.room()
    await stage.send('POST', '/groups', { root_conversation, default_handle: 'a' })
    const answer = await stage.send('POST', '/groups', { root_conversation, metadata: { k: 'v' } })
    assert.equal(at(answer.body, 'default_handle'), 'a')
    return answer
  }),
  on('ensure-group', 'invalid-conversation', (stage) => stage.send('POST', '/groups', { root_conversation: NOWHERE })),
  ...keyed('ensure-group', '/groups', async (stage) => ({ root_conversation: stage.room() })),
  on('get-group', 200, async (stage) => stage.send('GET', `/groups/${await stage.group()}`)),
  on('get-group', 'extmsg-group-not-found', (stage) => stage.send('GET', '/groups/gr-none')),
  on('patch-group', 200, async (stage) => {
    const group = await stage.group()
    await stage.join(group)
    const answer = await stage.send('PATCH', `/groups/${group}`, { default_handle: 'MAYOR', fanout_policy: null })
    assert.equal(at(answer.body, 'default_handle'), 'mayor')
    return answer
  }),
  on('patch-group', 'precondition-failed', async (stage) => {
    const path = `/groups/${await stage.group()}`
    const etag = String((await stage.send('GET', path)).headers['etag'])
    const change = (team: string) => stage.send('PATCH', path, { metadata: { team } }, { 'if-match': etag })
    assert.equal((await change('a')).status, 200)
    return change('b')
  }),
  on('patch-group', 'extmsg-group-not-found', (stage) => stage.send('PATCH', '/groups/gr-none', {})),
  on('delete-group', 200, async (stage) => {
    const group = await stage.group()
    await stage.join(group)
    return stage.send('DELETE', `/groups/${group}`)
  }),
  on('delete-group', 'extmsg-group-not-found', (stage) => stage.send('DELETE', '/groups/gr-none')),

  on('receive-inbound', 200, async (stage) => {
    const answer = await stage.bring({ target: 'mayor' })
    assert.deepEqual([at(answer.body, 'match'), at(answer.body, 'binding', 'agent_name')], ['target', 'mayor'])
    return answer
  }),
  on('receive-inbound', 'invalid-conversation', (stage) => stage.bring({}, { conversation_id: 'x', kind: 'hall' })),
  on('receive-inbound', 'recipient-not-found', (stage) => stage.bring({ target: 'nobody' })),
  on('receive-inbound', 'ambiguous-recipient', (stage) => stage.bring({ target: 'crowd' })),
  on('receive-inbound', 'session-conflict', async (stage) => stage.bring({ target: await stage.closed() })),

  on('list-bindings', 200, async (stage) => {
    const conversation = stage.room()
    const id = await stage.binding(conversation)
    const room = encodeURIComponent(conversation.conversation_id)
    const answer = await stage.send('GET', `/bindings?agent_name=mayor&conversation_id=${room}`)
    assert.deepEqual([at(answer.body, 'total'), at(answer.body, 'items', 0, 'id')], [1, id])
    return answer
  }),
  ...lists('list-bindings', '/bindings'),
  on('bind-conversation', 201, (stage) =>
    stage.send('POST', '/bindings', { conversation: stage.room(), mailbox: 'human' }),
  ),
  on('bind-conversation', 200, async (stage) => {
    const conversation = stage.room()
    await stage.binding(conversation)
    return stage.send('POST', '/bindings', { conversation, agent_name: 'mayor', metadata: { k: 'v' } })
  }),
  on('bind-conversation', 'invalid-conversation', (stage) =>
    stage.send('POST', '/bindings', { conversation: NOWHERE, agent_name: 'mayor' }),
  ),
  on('bind-conversation', 'binding-conflict', async (stage) => {
    const conversation = stage.room()
    await stage.binding(conversation)
    return stage.send('POST', '/bindings', { conversation, agent_name: 'poet' })
  }),
  ...targets('bind-conversation', (stage, who) =>
    stage.send('POST', '/bindings', { conversation: stage.room(), ...who }),
  ),
  ...keyed('bind-conversation', '/bindings', async (stage) => ({ conversation: stage.room(), agent_name: 'mayor' })),
  on('unbind-conversations', 200, async (stage) => {
    const conversation = stage.room()
    const id = await stage.binding(conversation)
    const answer = await stage.send('POST', '/bindings/unbind', { conversation, agent_name: 'mayor' })
    assert.equal(at(answer.body, 'unbound', 0, 'id'), id)
    return answer
  }),
  on('unbind-conversations', 'invalid-conversation', (stage) =>
    stage.send('POST', '/bindings/unbind', { conversation: NOWHERE }),
  ),
  on('get-binding', 200, async (stage) => stage.send('GET', `/bindings/${await stage.binding()}`)),
  on('get-binding', 'binding-not-found', (stage) => stage.send('GET', '/bindings/bd-none')),
  on('end-binding', 200, async (stage) => {
    const answer = await stage.send('DELETE', `/bindings/${await stage.binding()}?if_generation=1`)
    assert.deepEqual([at(answer.body, 'status'), at(answer.body, 'ended_reason')], ['ended', 'requested'])
    return answer
  }),
  on('end-binding', 'binding-not-found', (stage) => stage.send('DELETE', '/bindings/bd-none')),
  on('end-binding', 'binding-conflict', async (stage) =>
    stage.send('DELETE', `/bindings/${await stage.binding()}?if_generation=7`),
  ),
]
