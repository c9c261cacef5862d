/** What stands before a private service, in its order, and what before a direct one: nothing. */
import assert from 'node:assert/strict'
import { after, before as beforeAll, describe, test } from 'node:test'
import { problem } from '../../../src/kernel/problem.ts'
import type { Setting } from '../../support/proxied.ts'
import { httpUpstream, OPEN, type ProxiedWorld, proxied } from '../../support/proxied.ts'

const P = '/v0/city/alpha/svc/web/x'
const TOKEN = 'ab'.repeat(32)
const VIEWER = 'cd'.repeat(32)
const TOKENED: Setting['security'] = {
  ...OPEN,
  token: TOKEN,
  holderOf: (token) => (token === VIEWER ? { kind: 'token', name: 'ann', role: 'viewer', city: undefined } : undefined),
}
const ALLOWED: Setting['security'] = { ...OPEN, allowedOrigins: ['https://app.example.org'] }
const READ_ONLY: Setting['security'] = { ...OPEN, readOnly: true }

interface Asked {
  readonly method?: string
  readonly path?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly security?: Setting['security']
}

const page = () =>
  httpUpstream((request, response) => {
    response.writeHead(
      200,
      [
        ['Content-Type', new URL(request.url ?? '', 'http://page').searchParams.get('type') ?? 'text/html'],
        ['Access-Control-Allow-Origin', '*'],
        ['access-control-allow-headers', 'x-svc-request'],
        ['Service-Worker-Allowed', '/'],
        ['Clear-Site-Data', '"*"'],
        ['Alt-Svc', 'h2="evil.example:443"'],
        ['Strict-Transport-Security', 'max-age=9'],
        ['Set-Cookie', 'a=1'],
        ['set-cookie', 'b=2'],
        ['X-SVC-Request-Id', 'forged'],
      ].flat(),
    )
    response.end('page')
  })

async function ask(world: ProxiedWorld, { method = 'GET', path = P, headers = {} }: Asked): Promise<string> {
  const fields = Object.entries({ Host: '127.0.0.1:8372', Connection: 'close', ...headers })
  return await world.ask(`${method} ${path} HTTP/1.1\r\n${fields.map(([k, v]) => `${k}: ${v}\r\n`).join('')}\r\n`)
}

const answerOf = (text: string) => {
  const [head = '', body = ''] = text.split('\r\n\r\n')
  const status = head.split(' ')[1] ?? ''
  assert.match(head, /\r\nX-SVC-Request-Id: [0-9a-f]{16}(\r\n|$)/, text)
  return body.startsWith('{') ? `${status} ${JSON.parse(body).detail}` : status
}

const CSRF = '403 csrf: X-SVC-Request header required on mutation endpoints'
const FOREIGN = /^403 forbidden: pages of .* may not use this service/
const UPGRADE = { Connection: 'Upgrade', Upgrade: 'websocket' }

const CASES: readonly (readonly [string, Asked, string | RegExp])[] = [
  ['a private service', {}, '200'],
  ['a city that does not run', { path: '/v0/city/beta/svc/web/x' }, '404 not_found: city not found or not running'],
  [
    'a city of no service, and none is named',
    { path: '/v0/city/beta/svc' },
    '404 not_found: city not found or not running',
  ],
  ['an unknown service', { path: '/v0/city/alpha/svc/we%20b/x' }, '404 not_found: service not found: we b'],
  ['no service named', { path: '/v0/city/alpha/svc' }, '404 not_found: service not found: '],
  ['no service named, with a slash', { path: '/v0/city/alpha/svc/?x' }, '404 not_found: service not found: '],
  ['a name that cannot be decoded', { path: '/v0/city/alpha/svc/%ff/x' }, /^400 invalid: the path cannot be decoded/],
  [
    'a path that only begins like it',
    { path: '/v0/city/alpha/svcs/web' },
    /^404 not_found: city not found or not running: alpha/,
  ],
  ['another host', { headers: { Host: 'evil.example' } }, /^421 host_not_allowed: /],
  ['another host, before the service', { path: '/v0/city/alpha/svc/nope', headers: { Host: 'evil.example' } }, /^421 /],
  ['no token', { security: TOKENED }, /^401 unauthorized: /],
  ['no token, before the city', { path: '/v0/city/beta/svc/web', security: TOKENED }, /^401 /],
  ['the header alone', { method: 'POST', security: TOKENED, headers: { 'X-SVC-Request': '1' } }, /^401 /],
  ['the token', { security: TOKENED, headers: { Authorization: `Bearer ${TOKEN}` } }, '200'],
  [
    'the token of who may only read',
    { security: TOKENED, headers: { Authorization: `Bearer ${VIEWER}` } },
    '403 forbidden: services of a city need the right "city"',
  ],
  ['a change without the header', { method: 'POST' }, CSRF],
  ['a change with an empty one', { method: 'DELETE', headers: { 'X-SVC-Request': ' ' } }, CSRF],
  ['any verb but three needs it', { method: 'PROPFIND' }, CSRF],
  ['TRACE too', { method: 'TRACE' }, CSRF],
  ['HEAD does not', { method: 'HEAD' }, '200'],
  ['the city before the header', { method: 'POST', path: '/v0/city/beta/svc/web' }, /^404 /],
  ['the service before the header', { method: 'POST', path: '/v0/city/alpha/svc/no' }, /^404 /],
  ['read-only', { method: 'POST', security: READ_ONLY, headers: { 'X-SVC-Request': '1' } }, /^403 read_only: /],
  ['read-only before the header', { method: 'POST', security: READ_ONLY }, /^403 read_only: /],
  ['reading while read-only', { security: READ_ONLY }, '200'],
  ['OPTIONS, which is ours', { method: 'OPTIONS' }, '204'],
  ['OPTIONS of no service', { method: 'OPTIONS', path: '/v0/city/alpha/svc/nope' }, '204'],
  [
    'a page of another origin that changes something',
    { method: 'POST', headers: { Origin: 'https://evil.example', 'X-SVC-Request': '1' } },
    FOREIGN,
  ],
  ['a sandboxed page that does', { method: 'POST', headers: { Origin: 'null', 'X-SVC-Request': '1' } }, FOREIGN],
  ['an image of another site', { headers: { 'Sec-Fetch-Site': 'cross-site', 'Sec-Fetch-Mode': 'no-cors' } }, FOREIGN],
  ['an image of another port', { headers: { 'Sec-Fetch-Site': 'same-site', 'Sec-Fetch-Mode': 'no-cors' } }, FOREIGN],
  [
    'a link',
    { headers: { 'Sec-Fetch-Site': 'cross-site', 'Sec-Fetch-Mode': 'navigate', 'Sec-Fetch-Dest': 'document' } },
    '200',
  ],
  [
    'a frame',
    { headers: { 'Sec-Fetch-Site': 'cross-site', 'Sec-Fetch-Mode': 'navigate', 'Sec-Fetch-Dest': 'iframe' } },
    FOREIGN,
  ],
  [
    'an object',
    { headers: { 'Sec-Fetch-Site': 'cross-site', 'Sec-Fetch-Mode': 'navigate', 'Sec-Fetch-Dest': 'object' } },
    FOREIGN,
  ],
  [
    'a script of another origin',
    { headers: { 'Sec-Fetch-Site': 'cross-site', Origin: 'https://evil.example' } },
    FOREIGN,
  ],
  [
    'one of an allowed origin',
    { security: ALLOWED, headers: { 'Sec-Fetch-Site': 'cross-site', Origin: 'https://app.example.org' } },
    '200',
  ],
  ['our own page', { headers: { 'Sec-Fetch-Site': 'same-origin', Origin: 'http://127.0.0.1:8372' } }, '200'],
  ['a WebSocket of another origin', { headers: { ...UPGRADE, Origin: 'https://evil.example' } }, FOREIGN],
  ['a WebSocket of a sandboxed page', { headers: { ...UPGRADE, Origin: 'null' } }, FOREIGN],
  [
    'a WebSocket that says it is a navigation',
    {
      headers: {
        ...UPGRADE,
        Origin: 'https://evil.example',
        'Sec-Fetch-Site': 'cross-site',
        'Sec-Fetch-Mode': 'navigate',
      },
    },
    FOREIGN,
  ],
  ['a WebSocket of our own page', { headers: { ...UPGRADE, Origin: 'http://127.0.0.1:8372' } }, '200'],
  ['a WebSocket of no page', { headers: UPGRADE }, '200'],
  ['a WebSocket without the token', { security: TOKENED, headers: UPGRADE }, /^401 /],
  ['a WebSocket of another host', { headers: { ...UPGRADE, Host: 'evil.example' } }, /^421 /],
  [
    'a WebSocket to no service',
    { path: '/v0/city/alpha/svc/no', headers: UPGRADE },
    '404 not_found: service not found: no',
  ],
]

describe('a private service', { concurrency: 4 }, () => {
  for (const [name, asked, expected] of CASES)
    test(`${name}: ${expected}`, async () => {
      await using world = await proxied(page(), { security: asked.security ?? OPEN })
      const answer = answerOf(await ask(world, asked))
      if (typeof expected === 'string') assert.equal(answer, expected)
      else assert.match(answer, expected)
    })
})

test('another user of the machine is refused by a private service, and served by a direct one', async () => {
  const users = { refusal: () => problem('forbidden', 'not for you'), admit: () => {} }
  for (const direct of [false, true]) {
    await using world = await proxied(page(), { security: { ...OPEN, users }, service: { direct } })
    assert.equal(answerOf(await ask(world, {})), direct ? '200' : '403 forbidden: not for you')
  }
})

describe('a direct service', () => {
  let world: ProxiedWorld | undefined
  const direct = () => world ?? assert.fail('not started')
  beforeAll(async () => {
    const security = { ...TOKENED, readOnly: true }
    world = await proxied(page(), { security, service: { direct: true } })
  })
  after(() => world?.[Symbol.asyncDispose]())

  for (const [name, asked] of [
    ['of any host', { headers: { Host: 'tunnel.example' } }],
    ['that is changed without the header, while the API is read-only', { method: 'POST' }],
    [
      'of a page of any origin',
      { method: 'PUT', headers: { Origin: 'https://evil.example', 'Sec-Fetch-Site': 'cross-site' } },
    ],
    ['by OPTIONS', { method: 'OPTIONS', headers: { Origin: 'https://evil.example' } }],
  ] as const satisfies readonly (readonly [string, Asked])[])
    test(`${name} is asked at once`, async () => {
      const text = await ask(direct(), asked)
      assert.equal(answerOf(text), '200')
    })

  test('what it says to browsers passes, but for the id of the request and what is about all pages of this address', async () => {
    const [head = ''] = (await ask(direct(), { headers: { Host: 'tunnel.example' } })).split('\r\n\r\n')
    const kept = head.split('\r\n').filter((line) => !/^(date|connection|keep-alive|transfer-encoding):/i.test(line))
    assert.deepEqual(kept.slice(0, -1), [
      'HTTP/1.1 200 OK',
      'Content-Type: text/html',
      'Access-Control-Allow-Origin: *',
      'access-control-allow-headers: x-svc-request',
      'Set-Cookie: a=1',
      'set-cookie: b=2',
    ])
    // It speaks for its own path, not for all pages of this address.
    assert.match(kept.at(-1) ?? '', /^X-SVC-Request-Id: [0-9a-f]{16}$/)
  })

  test('opens nothing else of the API', async () => {
    assert.match(answerOf(await ask(direct(), { path: '/health', headers: { Host: 'tunnel.example' } })), /^421/)
    assert.match(
      answerOf(await ask(direct(), { path: '/v0/city/alpha/svc/other', headers: { Host: 'tunnel.example' } })),
      /^421/,
    )
  })
})

test('pages of a private service are sandboxed, and say nothing about what other pages may do', async () => {
  await using world = await proxied(page(), { security: ALLOWED })
  const headOf = async (path: string) => {
    const text = await ask(world, { path, headers: { Origin: 'https://app.example.org' } })
    return (text.split('\r\n\r\n')[0] ?? '')
      .split('\r\n')
      .map((line) => line.replace(/^(Date|X-SVC-Request-Id): .*/, '$1'))
  }
  const ours = [
    'Access-Control-Allow-Origin: https://app.example.org',
    'Access-Control-Allow-Methods: GET, POST, PUT, PATCH, DELETE, OPTIONS',
  ]
  const html = await headOf(P)
  for (const line of [...ours, 'Content-Security-Policy: sandbox allow-scripts allow-forms', 'Vary: Origin'])
    assert.ok(html.includes(line), `${line} in ${html.join('\n')}`)
  for (const gone of [
    /^service-worker-allowed/i,
    /^clear-site-data/i,
    /^alt-svc/i,
    /^strict-transport-security/i,
    /: \*$/,
    /^access-control-allow-headers: x-svc-request$/,
  ])
    assert.ok(!html.some((line) => gone.test(line)), String(gone))
  assert.deepEqual(
    html.filter((line) => /^set-cookie/i.test(line)),
    ['Set-Cookie: a=1', 'set-cookie: b=2'],
  )
  for (const type of ['text/xsl', '*/*', 'text', 'text/plain, text/html', 'image/png']) {
    const head = await headOf(`${P}?type=${encodeURIComponent(type)}`)
    assert.ok(head.includes('Content-Security-Policy: sandbox allow-scripts allow-forms'), type)
  }
})

test('pages of a private service that says so are pages of this server, and still say nothing about other pages', async () => {
  await using world = await proxied(page(), { service: { sandbox: false } })
  const head = (await ask(world, { path: P })).split('\r\n\r\n')[0] ?? ''
  assert.match(head, /content-type: text\/html/i)
  assert.doesNotMatch(head, /content-security-policy|service-worker-allowed|clear-site-data/i)
})

test('a service that takes no WebSockets is asked for none', async () => {
  for (const direct of [false, true]) {
    await using world = await proxied(page(), { service: { websockets: false, direct } })
    assert.match(answerOf(await ask(world, { headers: UPGRADE })), /^403 forbidden: service web takes no WebSockets/)
  }
})

test('more requests than may be on their way at once are refused, and told to come again', async () => {
  const waiting: (() => void)[] = []
  await using world = await proxied(
    httpUpstream((_, response) => void waiting.push(() => response.end('late'))),
    { maxProxied: 1 },
  )
  const first = ask(world, {})
  while (waiting.length === 0) await new Promise((resolve) => setImmediate(resolve))
  const text = await ask(world, {})
  assert.match(answerOf(text), /^503 unavailable: /)
  assert.match(text, /Retry-After: 1/)
  waiting[0]?.()
  assert.equal(answerOf(await first), '200')
})
