import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Access, AGENT_APIS, type AgentApi, accessOf, adapterAccessOf, speakersOf } from '../contract/access.ts'
import { isMutation, type Operation } from '../contract/base/operation.ts'
import { OPERATIONS } from '../contract/index.ts'
import { type AdapterCaller, type Agent, type Caller, OWNER, refusalOf, STRANGER, spokenBy } from './caller.ts'
import { Problem } from './problem.ts'

const operations: readonly Operation[] = OPERATIONS
const SELF = 's-self'
const OTHER = 's-other'
const agent = (api: AgentApi): Agent => ({
  kind: 'agent',
  city: 'alpha',
  session: SELF,
  name: 'worker',
  api,
  isSelf: (handle) => handle === SELF || handle === 'me',
  goesBy: (name) => name === 'worker' || name === 'me',
})
const token = (role: 'admin' | 'viewer', city?: string): Caller => ({ kind: 'token', name: 'ann', role, city })

const ROLES: Readonly<Record<string, Caller>> = {
  owner: OWNER,
  admin: token('admin'),
  viewer: token('viewer'),
  'admin of alpha': token('admin', 'alpha'),
  'viewer of alpha': token('viewer', 'alpha'),
  ...Object.fromEntries(AGENT_APIS.map((api) => [`agent with api = "${api}"`, agent(api)])),
}

const inCity = (operation: Operation) => operation.path.startsWith('/v0/city/{cityName}')
const may = (caller: Caller, operation: Operation, city = 'alpha', id = OTHER): boolean =>
  refusalOf(caller, { operation, city: inCity(operation) ? city : undefined, part: () => id }) === undefined

/** What each role may do in its city, or without one, about a session that is not its own. */
const RIGHTS: Readonly<Record<string, (access: Access, operation: Operation) => boolean>> = {
  owner: () => true,
  admin: () => true,
  viewer: (access, { method }) =>
    access === 'any' || access === 'read' || (access === 'supervisor' && !isMutation(method)),
  'admin of alpha': (access) => access !== 'supervisor' && access !== 'tokens',
  'viewer of alpha': (access) => access === 'any' || access === 'read',
  'agent with api = "read"': (access) => access === 'any' || access === 'read',
  'agent with api = "work"': (access) => ['any', 'read', 'work'].includes(access),
  'agent with api = "city"': (access) => ['any', 'read', 'work', 'city', 'answer'].includes(access),
}

for (const [role, caller] of Object.entries(ROLES)) {
  test(`of all operations ${role} may do what its role says, and nothing else`, () => {
    const wrong = operations.filter((one) => may(caller, one) !== RIGHTS[role]?.(accessOf(one), one))
    assert.deepEqual(
      wrong.map(({ id }) => id),
      [],
    )
  })

  if (role.includes('alpha') || role.includes('agent'))
    test(`${role} may do nothing in another city`, () => {
      const open = operations.filter((one) => inCity(one) && may(caller, one, 'beta'))
      assert.deepEqual(
        open.map(({ id }) => id),
        [],
      )
    })
}

/** What carries the one account, transcript and file that it knows. */
const adapter: AdapterCaller = {
  kind: 'adapter',
  city: 'alpha',
  name: 'irc/libera',
  isSelf: (provider, accountId) => provider === 'irc' && accountId === 'libera',
  carries: (transcriptId) => transcriptId === 'cv-own',
  carriesFile: (attachmentId) => attachmentId === 'at-own',
}
const OWN: Readonly<Record<string, string>> = {
  provider: 'irc',
  accountId: 'libera',
  transcriptId: 'cv-own',
  attachmentId: 'at-own',
}
/** What an adapter may do where the path names its own account, transcript and file. */
const OF_ADAPTERS = [
  'ack-delivery',
  'claim-deliveries',
  'fail-delivery',
  'get-adapter',
  'get-delivery',
  'get-transcript',
  'get-transcript-attachment',
  'list-deliveries',
  'list-transcript-entries',
  'receive-inbound',
  'register-adapter',
  'stream-transcript',
  'upload-transcript-attachment',
]
/** Their paths name nothing: the handler looks. */
const OF_ANY_ADAPTER = ['register-adapter', 'upload-transcript-attachment']

test('of all operations an adapter may do those of itself and its transcripts, and nothing else', () => {
  const allowed = (city: string, part: (name: string) => string | undefined) =>
    operations
      .filter((operation) => {
        const target = { operation, city: inCity(operation) ? city : undefined, part }
        return refusalOf(adapter, target) === undefined
      })
      .map(({ id }) => id)
      .sort()
  assert.deepEqual(
    allowed('alpha', (name) => OWN[name]),
    OF_ADAPTERS,
  )
  assert.deepEqual(
    allowed('alpha', () => 'of-others'),
    OF_ANY_ADAPTER,
  )
  assert.deepEqual(
    allowed('alpha', () => undefined),
    OF_ANY_ADAPTER,
  )
  assert.deepEqual(
    allowed('beta', (name) => OWN[name]),
    [],
  )
  for (const account of ['other', 'libera/', 'Libera'])
    assert.deepEqual(
      allowed('alpha', (name) => (name === 'accountId' ? account : OWN[name])).filter((id) =>
        operations.some((one) => one.id === id && adapterAccessOf(one) === 'itself'),
      ),
      [],
    )
})

test('what is said, bound and registered in chats needs the right of its kind', () => {
  const families = new Set(['Mail', 'Transcripts', 'Participants', 'Adapters'])
  const changing = (wanted: Access) =>
    operations
      .filter(({ family, method }) => families.has(family.name) && isMutation(method))
      .filter((one) => accessOf(one) === wanted)
      .map(({ id }) => id)
      .sort()
  assert.deepEqual(changing('work'), [
    'ack-transcript',
    'archive-mail',
    'archive-mails',
    'broadcast-mail',
    'delete-mail',
    'delete-transcript-membership',
    'ensure-transcript',
    'mark-mail-unread',
    'publish-transcript-entry',
    'read-mail',
    'reply-mail',
    'send-mail',
    'unarchive-mail',
    'upload-transcript-attachment',
  ])
  const city = operations
    .filter(({ family, method }) => isMutation(method) && ['Participants', 'Adapters'].includes(family.name))
    .map(({ id }) => id)
  assert.deepEqual(changing('city'), [...city, 'delete-transcript', 'put-transcript-membership'].sort())
  for (const one of operations.filter(({ family, method }) => families.has(family.name) && !isMutation(method)))
    assert.equal(accessOf(one), 'read', one.id)
})

test('an agent says things of itself only, and answers its own questions never', () => {
  const own = operations.filter((one) => accessOf(one) === 'self').map(({ id }) => id)
  assert.deepEqual(own.sort(), [
    'ack-session-drain',
    'ask-session-permission',
    'create-session-wait',
    'heartbeat-session',
    'report-session',
    'request-session-restart',
  ])
  const answers = operations.filter((one) => accessOf(one) === 'answer').map(({ id }) => id)
  assert.deepEqual(answers.sort(), [
    'patch-session',
    'resize-session-terminal',
    'respond-session',
    'send-session-keys',
    'stream-session-terminal',
    'type-into-session',
  ])
  for (const one of operations)
    for (const api of AGENT_APIS)
      for (const id of [SELF, 'me']) {
        if (accessOf(one) === 'self') assert.ok(may(agent(api), one, 'alpha', id), `${one.id} ${api}`)
        if (accessOf(one) === 'answer') assert.ok(!may(agent(api), one, 'alpha', id), `${one.id} ${api}`)
      }
})

test('an operation that is none of the contract needs the most, and what changes something is open to nobody', () => {
  const one = { id: 'launch-rocket', family: { name: 'Rockets', about: '' }, summary: '', replies: {}, problems: [] }
  assert.equal(accessOf({ ...one, method: 'GET', path: '/v0/city/{cityName}/rockets' }), 'supervisor')
  for (const { id } of operations.filter((each) => isMutation(each.method) && accessOf(each) === 'any'))
    assert.fail(`${id} changes something and is open to whoever has a token`)
  for (const { id, path } of operations.filter((each) => accessOf(each) === 'work' || accessOf(each) === 'self'))
    assert.match(path, /^\/v0\/city\/\{cityName\}\//, `${id} is work of a city, and of no city`)
})

test('an agent speaks for nobody else, and signs what it says', () => {
  const worker = agent('work')
  const as = (id: string, caller: Caller, body: unknown) => {
    const operation = operations.find((one) => one.id === id)
    assert.ok(operation)
    return spokenBy(caller, operation, body)
  }
  assert.deepEqual(as('add-bead-comment', worker, { text: 'x' }), { text: 'x', author: 'worker' })
  assert.deepEqual(as('add-bead-comment', worker, { text: 'x', author: 'me' }), { text: 'x', author: 'me' })
  assert.deepEqual(as('release-bead', worker, undefined), undefined)
  for (const [id, field] of [
    ['emit-event', 'actor'],
    ['add-bead-comment', 'author'],
    ['claim-bead', 'assignee'],
    ['claim-bead', 'session_id'],
    ['claim-hook', 'agent'],
    ['heartbeat-bead', 'assignee'],
    ['release-bead', 'assignee'],
  ] as const) {
    assert.deepEqual(as(id, worker, { [field]: 'worker', author: 'worker' }), { [field]: 'worker', author: 'worker' })
    assert.throws(
      () => as(id, worker, { [field]: 'human' }),
      (error: unknown) =>
        error instanceof Problem && /^forbidden: body\.\w+: .* cannot speak as human/.test(error.detail),
    )
    for (const caller of [OWNER, STRANGER, token('admin')])
      assert.deepEqual(as(id, caller, { [field]: 'human' }), { [field]: 'human' })
  }
})

test('every field that says who speaks is one of its operation', () => {
  for (const operation of operations)
    for (const field of speakersOf(operation).fields)
      assert.ok(field in Object(Reflect.get(operation.body ?? {}, 'properties')), `${operation.id} ${field}`)
})
