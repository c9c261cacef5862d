import assert from 'node:assert/strict'
import { Socket } from 'node:net'
import { test } from 'node:test'
import { isMutation, type Operation } from '../contract/base/operation.ts'
import { OPERATIONS } from '../contract/index.ts'
import { OWNER, STRANGER } from '../kernel/caller.ts'
import { Problem, problem } from '../kernel/problem.ts'
import { GATES, type GateDeps, type GateInput, type Security } from './gates.ts'
import { Router } from './router.ts'

const operations: readonly Operation[] = OPERATIONS
const routes = new Router(
  operations.map((operation) => ({ operation })),
  1000,
)
const byId = (id: string) => operations.find((operation) => operation.id === id)
const OPEN: Security = {
  allowedHosts: ['svc.example.org', '[fd00::2]'],
  allowedOrigins: ['https://app.example.org'],
  token: undefined,
  readOnly: false,
}

interface Request {
  readonly method?: string
  readonly path?: string
  readonly id?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly security?: Partial<Security>
  readonly stopping?: boolean
}

function pass({ method = 'GET', path = '/v0/cities', id, headers = {}, security = {}, stopping = false }: Request) {
  const set: Record<string, string> = {}
  const all: Readonly<Record<string, string>> = { host: '127.0.0.1:8372', ...headers }
  const deps: GateDeps = {
    security: { ...OPEN, ...security },
    routes,
    cities: { resolve: (name) => (name === 'up' ? () => ({}) : undefined) },
    isShuttingDown: () => stopping,
  }
  const input: GateInput = {
    method,
    path,
    host: all.host ?? '',
    operation: id === undefined ? undefined : byId(id),
    redirect: undefined,
    city: undefined,
    caller: STRANGER,
    socket: new Socket(),
    header: (name: string) => all[name.toLowerCase()],
    setHeader: (name: string, value: string) => {
      set[name] = value
    },
  }
  try {
    for (const gate of GATES) gate(input, deps)
    return { answer: 'passed', set }
  } catch (error) {
    assert.ok(error instanceof Problem, String(error))
    return { answer: `${error.status} ${error.detail}`, set }
  }
}

const AGENTS = { token: 't', holderOf: (token: string) => (token === 'a'.repeat(64) ? OWNER : undefined) }

const EARLY = { token: 't', holderOf: () => null }

const CASES: readonly (readonly [string, Request, string | RegExp])[] = [
  ['a known path', { id: 'list-cities' }, 'passed'],
  ['another host', { id: 'list-cities', headers: { host: 'evil.example' } }, /^421 host_not_allowed: /],
  ['no host', { id: 'list-cities', headers: { host: '' } }, /^421 host_not_allowed: /],
  ['a host that only begins like ours', { id: 'list-cities', headers: { host: '127.0.0.1.evil.example' } }, /^421/],
  ['an allowed host, however it is written', { id: 'list-cities', headers: { host: 'SVC.example.org.:80' } }, 'passed'],
  ['this machine by name', { id: 'list-cities', headers: { host: 'localhost:1' } }, 'passed'],
  ['a name below localhost', { id: 'list-cities', headers: { host: 'svc.localhost:1' } }, /^421/],
  ['a path that ends like localhost', { id: 'list-cities', headers: { host: 'evil.example/.localhost' } }, /^421/],
  ['an octal address', { id: 'list-cities', headers: { host: '0177.0.0.1' } }, /^421/],
  ['an address with a leading zero', { id: 'list-cities', headers: { host: '127.0.0.01' } }, /^421/],
  ['a short address', { id: 'list-cities', headers: { host: '127.1' } }, /^421/],
  ['an address as a number', { id: 'list-cities', headers: { host: '2130706433' } }, /^421/],
  ['a name that a public service resolves to us', { id: 'list-cities', headers: { host: '127.0.0.1.nip.io' } }, /^421/],
  ['a name of somebody else that leads here', { id: 'list-cities', headers: { host: 'a@localhost' } }, /^421/],
  ['IPv6 loopback', { id: 'list-cities', headers: { host: '[::1]:8372' } }, 'passed'],
  ['IPv6 loopback in long', { id: 'list-cities', headers: { host: '[0:0:0:0:0:0:0:1]' } }, 'passed'],
  ['an address of IPv6', { id: 'list-cities', headers: { host: '[fd00::2]:8372' } }, 'passed'],
  ['an address of IPv6 in long', { id: 'list-cities', headers: { host: '[FD00:0::0:2]' } }, 'passed'],
  ['what only begins like one', { id: 'list-cities', headers: { host: '[fd00::2]x' } }, /^421/],
  [
    'the host is checked before the token',
    { id: 'list-cities', headers: { host: 'evil.example' }, security: { token: 't' } },
    /^421/,
  ],
  ['a server that stops', { id: 'list-cities', stopping: true }, /^503 unavailable: /],
  ['no token', { id: 'list-cities', security: { token: 't' } }, /^401 unauthorized: /],
  [
    'a signature where the path names no adapter',
    { id: 'list-cities', security: { token: 't' }, headers: { 'webhook-signature': 'v1,x' } },
    /^401 unauthorized: .* shows its secret/,
  ],
  [
    'half a token',
    { id: 'list-cities', security: { token: 'token' }, headers: { authorization: 'Bearer toke' } },
    /^401/,
  ],
  ['the token', { id: 'list-cities', security: { token: 't' }, headers: { authorization: 'Bearer t' } }, 'passed'],
  [
    'the token of an agent whose city is not there yet',
    { id: 'list-cities', security: EARLY, headers: { authorization: `Bearer ${'a'.repeat(64)}` } },
    /^503 unavailable: /,
  ],
  [
    'what cannot be such a token',
    { id: 'list-cities', security: EARLY, headers: { authorization: 'Bearer wrong' } },
    /^401 unauthorized: /,
  ],
  [
    'the token of an agent that runs',
    { id: 'list-cities', security: AGENTS, headers: { authorization: `Bearer ${'a'.repeat(64)}` } },
    'passed',
  ],
  [
    'the token of one that does not',
    { id: 'list-cities', security: AGENTS, headers: { authorization: `Bearer ${'b'.repeat(64)}` } },
    /^401/,
  ],
  [
    'the token is checked before the CSRF header',
    { method: 'POST', path: '/v0/city', id: 'create-city', security: { token: 't' } },
    /^401/,
  ],
  [
    'a mutation without the header',
    { method: 'POST', path: '/v0/city', id: 'create-city' },
    '403 csrf: X-SVC-Request header required on mutation endpoints',
  ],
  [
    'a mutation with an empty header',
    { method: 'POST', path: '/v0/city', id: 'create-city', headers: { 'x-svc-request': ' ' } },
    /^403 csrf: /,
  ],
  [
    'a mutation with any header',
    { method: 'POST', path: '/v0/city', id: 'create-city', headers: { 'x-svc-request': '0' } },
    'passed',
  ],
  [
    'the CSRF header comes before the city',
    { method: 'POST', path: '/v0/city/down/events', id: 'emit-event' },
    /^403 csrf: /,
  ],
  [
    'read-only',
    {
      method: 'POST',
      path: '/v0/city',
      id: 'create-city',
      headers: { 'x-svc-request': '1' },
      security: { readOnly: true },
    },
    '403 read_only: mutations disabled: allow_mutations is false in supervisor.toml',
  ],
  [
    'the CSRF header comes before read-only',
    { method: 'POST', path: '/v0/city', id: 'create-city', security: { readOnly: true } },
    /^403 csrf: /,
  ],
  ['reading while read-only', { id: 'list-cities', security: { readOnly: true } }, 'passed'],
  [
    'a city that does not run',
    { path: '/v0/city/down', id: 'get-city' },
    '404 not_found: city not found or not running: down',
  ],
  [
    'a path that does not exist under a city that does not run',
    { path: '/v0/city/down/nonsense' },
    '404 not_found: city not found or not running: down',
  ],
  [
    'a path that does not exist under a city that runs',
    { path: '/v0/city/up/nonsense' },
    /^404 not_found: no such path/,
  ],
  [
    'a path that only begins like the proxy',
    { path: '/v0/city/down/svcs' },
    '404 not_found: city not found or not running: down',
  ],
  [
    'start of a city that does not run',
    { method: 'POST', path: '/v0/city/down/start', id: 'start-city', headers: { 'x-svc-request': '1' } },
    'passed',
  ],
  ['a wrong method on it', { path: '/v0/city/down/start' }, /^405 method_not_allowed: /],
  [
    'an encoded name',
    { path: '/v0/city/%64own', id: 'get-city' },
    '404 not_found: city not found or not running: down',
  ],
  ['a name that cannot be decoded', { path: '/v0/city/%ff', id: 'get-city' }, /^400 invalid: /],
  ['no such path', { path: '/v1/cities' }, '404 not_found: no such path: /v1/cities'],
  [
    'a wrong method',
    { method: 'DELETE', path: '/v0/cities', headers: { 'x-svc-request': '1' } },
    /^405 method_not_allowed: DELETE is not allowed here; allowed: GET, HEAD, POST$/,
  ],
]
for (const [name, request, expected] of CASES) {
  test(`${name}: ${expected}`, () => {
    const { answer } = pass(request)
    if (typeof expected === 'string') assert.equal(answer, expected)
    else assert.match(answer, expected)
  })
}

const HOST = '127.0.0.1:8372'
const LOCAL_PAGES = { allowedOrigins: ['https://app.example.org', 'http://localhost:*'] }

test('only our own pages and allowed origins may read answers', () => {
  const origin = (given: string, security: Partial<Security> = {}) =>
    pass({ id: 'list-cities', headers: { origin: given }, security }).set['Access-Control-Allow-Origin']
  for (const good of [`http://${HOST}`, `https://${HOST}`, 'https://app.example.org']) assert.equal(origin(good), good)
  for (const bad of [
    'https://evil.example',
    'http://localhost:5173',
    'https://127.0.0.1',
    'http://127.0.0.1:8373',
    'http://[::1]:1',
    'http://localhost.evil.example',
    'null',
    'https://app.example.org:444',
    'http://app.example.org',
    'http://127.0.0.1:8372@evil.example',
  ])
    assert.equal(origin(bad), undefined, bad)
  for (const good of ['http://localhost', 'http://localhost:5173']) assert.equal(origin(good, LOCAL_PAGES), good)
  for (const bad of [
    'https://localhost:5173',
    'http://localhost:5173.evil.example',
    'http://127.0.0.1:5173',
    'http://localhost:*',
  ])
    assert.equal(origin(bad, { allowedOrigins: ['http://localhost:*'] }), bad.endsWith('*') ? bad : undefined, bad)
})

const FOREIGN = /^403 forbidden: pages of .* may not use this API; \[supervisor\] allowed_origins/
const EMIT = { method: 'POST', path: '/v0/city/up/events', id: 'emit-event' }
for (const [name, request, headers, expected] of [
  ['a page of another port changes nothing, whatever it sends', EMIT, { origin: 'http://127.0.0.1:3000' }, FOREIGN],
  ['a page without an origin neither', EMIT, { origin: 'null' }, FOREIGN],
  [
    'a form of another site neither',
    EMIT,
    { origin: 'https://evil.example', 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'navigate' },
    FOREIGN,
  ],
  ['our own page does', EMIT, { origin: `http://${HOST}`, 'sec-fetch-site': 'same-origin' }, 'passed'],
  ['an allowed one too', EMIT, { origin: 'https://app.example.org', 'sec-fetch-site': 'cross-site' }, 'passed'],
  [
    'an image of another site reads nothing',
    {},
    { 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'no-cors' },
    FOREIGN,
  ],
  [
    'a script of another port reads nothing',
    {},
    { 'sec-fetch-site': 'same-site', 'sec-fetch-mode': 'cors', origin: 'http://localhost:3000' },
    FOREIGN,
  ],
  [
    'a link of another site is followed',
    {},
    { 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'navigate' },
    'passed',
  ],
  [
    'but not into a frame',
    {},
    { 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'iframe' },
    FOREIGN,
  ],
  ['an address that was typed is read', {}, { 'sec-fetch-site': 'none', 'sec-fetch-mode': 'navigate' }, 'passed'],
  ['our own script reads', {}, { 'sec-fetch-site': 'same-origin', 'sec-fetch-mode': 'cors' }, 'passed'],
] as const satisfies readonly (readonly [string, Request, Readonly<Record<string, string>>, string | RegExp])[]) {
  test(name, () => {
    const { answer, set } = pass({ id: 'list-cities', ...request, headers: { 'x-svc-request': '1', ...headers } })
    if (typeof expected === 'string') return assert.equal(answer, expected)
    assert.match(answer, expected)
    assert.equal(set['Access-Control-Allow-Origin'], undefined)
  })
}

test('another user of the machine is told before anything else is looked at', () => {
  const users = { refusal: () => problem('forbidden', 'not for you') }
  const { answer } = pass({ id: 'list-cities', headers: { host: 'evil.example' }, security: { users } })
  assert.equal(answer, '403 forbidden: not for you')
})

const concrete = ({ path }: Operation) => path.replace('{cityName}', 'up').replaceAll(/\{\w+\}/g, 'x')

test('of all operations every one that changes something needs the header, and a supervisor that may be changed', () => {
  for (const operation of operations) {
    const { id, method } = operation
    const request = { id, method, path: concrete(operation) }
    const headers = { 'x-svc-request': '1' }
    const [bare, refused] = [pass(request).answer, pass({ ...request, headers, security: { readOnly: true } }).answer]
    if (isMutation(method)) {
      assert.match(bare, /^403 csrf: /, id)
      assert.match(refused, /^403 read_only: /, id)
    } else assert.deepEqual([bare, refused], ['passed', 'passed'], id)
    assert.equal(pass({ ...request, headers }).answer, 'passed', id)
  }
})
