// Who may ask for what, where the server asks for a token: every operation, by every kind of caller, over HTTP.
import assert from 'node:assert/strict'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { type Access, accessOf } from '../../src/contract/access.ts'
import { isMutation, type Operation } from '../../src/contract/base/operation.ts'
import { OPERATIONS } from '../../src/contract/index.ts'
import { createToken } from '../../src/contract/tokens.ts'
import { asMap } from '../support/document.ts'
import { Api, eventually } from '../support/http.ts'
import { type Running, run } from '../support/running.ts'
import { newSessionCity, type SessionApi } from '../support/session-api.ts'

const operations: readonly Operation[] = OPERATIONS
const SHOWS_TOKEN = `
require('node:fs').writeFileSync('service-token', process.env.SVC_TOKEN)
require('node:http').createServer((_, response) => response.end()).listen(process.env.SVC_SERVICE_SOCKET)
`
const DECLARED = `[[agent]]
name = "worker"
[[agent]]
name = "reader"
api = "read"
[[agent]]
name = "mayor"
api = "city"
[[service]]
name = "web"
[service.process]
command = [${JSON.stringify(process.execPath)}, "-e", ${JSON.stringify(SHOWS_TOKEN)}]
`

/** What each kind of caller may ask for in its city, about a session that is not its own. */
const RIGHTS = {
  owner: (): boolean => true,
  admin: () => true,
  viewer: (right, reads) => right === 'any' || right === 'read' || (right === 'supervisor' && reads),
  'admin of alpha': (right) => right !== 'supervisor' && right !== 'tokens',
  'viewer of alpha': (right) => right === 'any' || right === 'read',
  reader: (right) => right === 'any' || right === 'read',
  worker: (right) => right === 'any' || right === 'read' || right === 'work',
  mayor: (right) => ['any', 'read', 'work', 'city', 'answer'].includes(right),
  service: (right, _, id) => right === 'any' || right === 'read' || right === 'work' || FOR_ADAPTERS.has(id),
} as const satisfies Readonly<Record<string, (right: Access, reads: boolean, id: string) => boolean>>
type Role = keyof typeof RIGHTS
const ROLES = Object.keys(RIGHTS).filter((name): name is Role => name in RIGHTS)
/** Callers that belong to a city. */
const BOUND: readonly Role[] = ['admin of alpha', 'viewer of alpha', 'reader', 'worker', 'mayor', 'service']
/** A service carries messages of chats, as an adapter does. */
const FOR_ADAPTERS: ReadonlySet<string> = new Set([
  'register-adapter',
  'receive-inbound',
  'claim-deliveries',
  'ack-delivery',
  'fail-delivery',
])

const pathOf = ({ path }: Operation, city: string) => path.replace('{cityName}', city).replaceAll(/\{\w+\}/g, 'x')
const inCity = ({ path }: Operation) => path.startsWith('/v0/city/{cityName}')

describe('rights', () => {
  const stack = new AsyncDisposableStack()
  const clients = new Map<Role, Api>()
  let running: Running
  let city: SessionApi

  const clientOf = (role: Role): Api => {
    const client = clients.get(role)
    assert.ok(client)
    return client
  }
  /** What stands before the handler says: nothing is changed, for the header of mutations is missing. */
  const verdict = async (role: Role, operation: Operation, name: string): Promise<string> => {
    const headers = isMutation(operation.method) ? { 'x-svc-request': undefined } : {}
    const response = await clientOf(role).open(operation.method, pathOf(operation, name), { headers })
    const isRefused = response.statusCode === 401 || response.statusCode === 403
    if (!isRefused) {
      response.destroy()
      return 'allowed'
    }
    const chunks: Buffer[] = []
    for await (const chunk of response) chunks.push(Buffer.from(chunk))
    const { code } = asMap(JSON.parse(Buffer.concat(chunks).toString()))
    return code === 'csrf-required' ? 'allowed' : String(code)
  }

  before(
    async () => {
      running = stack.use(await run({ args: ['--auth'] }))
      city = await newSessionCity(running, 'alpha', DECLARED)
      await newSessionCity(running, 'beta')
      const token = async (name: string, role: 'admin' | 'viewer', bound?: string) => {
        const body = { name, role, ...(bound === undefined ? {} : { city: bound }) }
        return (await running.api.ask(createToken, '/v0/tokens', { body })).token
      }
      const session = async (name: string) =>
        city.tokenOf(await city.start({ kind: 'agent', name, runtime: 'subprocess' }))
      const file = join(city.dir, 'service-token')
      const secrets: Readonly<Record<Exclude<Role, 'owner'>, string>> = {
        admin: await token('a', 'admin'),
        viewer: await token('b', 'viewer'),
        'admin of alpha': await token('c', 'admin', 'alpha'),
        'viewer of alpha': await token('d', 'viewer', 'alpha'),
        reader: await session('reader'),
        worker: await session('worker'),
        mayor: await session('mayor'),
        service: await eventually('the service is there', () =>
          existsSync(file) ? readFileSync(file, 'utf8') : undefined,
        ),
      }
      clients.set('owner', running.api)
      for (const [role, secret] of Object.entries(secrets)) {
        const client = new Api(running.server.url, secret)
        stack.defer(() => client.close())
        for (const known of ROLES) if (known === role) clients.set(known, client)
      }
    },
    { timeout: 120_000 },
  )
  after(() => stack.disposeAsync())

  for (const role of ROLES)
    test(`rights: ${role} may ask for what its right says of all operations, and for nothing else`, async () => {
      const may = RIGHTS[role]
      for (const operation of operations) {
        const expected = may(accessOf(operation), !isMutation(operation.method), operation.id)
        assert.equal(await verdict(role, operation, 'alpha'), expected ? 'allowed' : 'forbidden', operation.id)
      }
    })

  for (const role of BOUND)
    test(`rights: ${role} may ask for nothing in another city`, async () => {
      for (const operation of operations.filter(inCity))
        assert.equal(await verdict(role, operation, 'beta'), 'forbidden', operation.id)
    })

  test('rights: without a token, or with one that is none, every operation but an open one is 401', async () => {
    for (const secret of [undefined, '0'.repeat(64), 'x']) {
      const client = new Api(running.server.url, secret)
      for (const operation of operations) {
        const response = await client.open(operation.method, pathOf(operation, 'alpha'))
        response.destroy()
        assert.equal(response.statusCode === 401, operation.open !== true, operation.id)
      }
      client.close()
    }
  })

  test('rights: no variable of a built-in formula runs what an agent with the right "work" writes', async () => {
    const marker = join(city.dir, 'marker')
    const shell = `touch ${marker}; true`
    const { items } = asMap((await running.api.get('/v0/city/alpha/formulas?limit=1000')).body)
    assert.ok(Array.isArray(items) && items.length > 0)
    for (const item of items.map(asMap)) {
      const formula = asMap((await running.api.get(`/v0/city/alpha/formulas/${String(item.name)}`)).body)
      const { vars } = formula
      assert.ok(Array.isArray(vars))
      for (const { name } of vars.map(asMap)) {
        const all = Object.fromEntries(vars.map(asMap).map((one) => [String(one.name), 'x']))
        for (const values of [{ [String(name)]: shell }, { ...all, [String(name)]: shell }])
          await clientOf('worker').post('/v0/city/alpha/molecules', { formula: item.name, vars: values })
      }
    }
    await workThrough(clientOf('worker'))
    assert.equal(existsSync(marker), false)
  })

  test('rights: the idempotency keys of one caller are not those of another', async () => {
    const ids = new Set<unknown>()
    for (const role of ['owner', 'admin', 'admin of alpha', 'worker', 'mayor', 'service'] as const)
      for (const times of [1, 2]) {
        const body = { title: `of ${role}` }
        const answer = await clientOf(role).post('/v0/city/alpha/beads', body, {
          headers: { 'idempotency-key': 'same' },
        })
        assert.equal(answer.status, 201, `${role} ${times}: ${answer.text}`)
        ids.add(asMap(answer.body).id)
      }
    assert.equal(ids.size, 6)
  })

  test('rights: a service that a city keeps for itself is reached with the right "city" alone', async () => {
    for (const role of ROLES) {
      const answer = await clientOf(role).open('GET', '/v0/city/alpha/svc/web/')
      answer.destroy()
      const status = answer.statusCode
      const may = ['owner', 'admin', 'admin of alpha', 'mayor'].includes(role)
      assert.equal(status === 403, !may, `${role}: ${status}`)
    }
  })
})

/** Does all work of the city that there is, as an agent would that closes whatever comes. */
async function workThrough(worker: Api): Promise<void> {
  for (let round = 0; round < 100; round++) {
    const { items } = asMap((await worker.get('/v0/city/alpha/beads/ready?limit=100')).body)
    if (!Array.isArray(items) || items.length === 0) return
    for (const { id } of items.map(asMap)) {
      await worker.post(`/v0/city/alpha/beads/${String(id)}/claim`, {})
      await worker.post(`/v0/city/alpha/beads/${String(id)}/close`, { reason: 'done' })
    }
  }
}
