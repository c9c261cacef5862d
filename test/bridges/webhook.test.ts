/** Webhooks over real HTTP: who is believed, what is refused, and what agents get to read. */
import assert from 'node:assert/strict'
import { createHmac } from 'node:crypto'
import { after, suite, test } from 'node:test'
import { Webhook } from 'standardwebhooks'
import { acceptable } from '../../src/bridges/library/acceptable.ts'
import { Journal } from '../../src/bridges/library/journal.ts'
import { Posting } from '../../src/bridges/library/posting.ts'
import { Listener } from '../../src/bridges/webhook/listener.ts'
import { readWebhook } from '../../src/bridges/webhook/messages.ts'
import { type Style, verifierOf } from '../../src/bridges/webhook/signatures.ts'
import { ExternalInboundMessage } from '../../src/contract/messaging/inbound.ts'
import { validate } from '../../src/http/input/validation.ts'
import { refuseHalfPairs } from '../../src/http/input/well-formed.ts'
import { messagesOf } from '../../src/modules/messaging/inbound/message.ts'
import { RememberingSupervisor, testWorld } from '../support/bridge-life.ts'
import { eventually } from '../support/http.ts'
import { seededRandom } from '../support/random.ts'
import { temporaryDirectory } from '../support/temporary.ts'

const SECRET = 'it is a secret'
const WHSEC = `whsec_${Buffer.from('0123456789abcdef0123456789abcdef').toString('base64')}`

async function listening(style: Style) {
  const root = temporaryDirectory()
  const journal = new Journal(root.path)
  const supervisor = new RememberingSupervisor()
  const ending = new AbortController()
  const world = { ...testWorld(), clock: { now: () => Date.now(), after: testWorld().clock.after } }
  const posting = new Posting({ supervisor, journal, world, onUnknown: async () => undefined })
  const listener = new Listener(
    { style, account: 'acme', verify: verifierOf(style, style === 'standard' ? WHSEC : SECRET) },
    posting,
    world,
  )
  const at = await listener.listen({ host: '127.0.0.1', port: 0 })
  const over = posting.run(ending.signal)
  return {
    supervisor,
    url: `http://${at}/`,
    post: async (body: string | Uint8Array<ArrayBuffer>, headers: Record<string, string>) => {
      const response = await fetch(`http://${at}/hook`, { method: 'POST', body, headers })
      return { status: response.status, text: await response.text() }
    },
    async [Symbol.asyncDispose]() {
      await listener.close()
      ending.abort(new Error('the test ends'))
      await over
      journal[Symbol.dispose]()
      root[Symbol.dispose]()
    },
  }
}

const hmac = (text: string | Uint8Array) => createHmac('sha256', SECRET).update(text).digest('hex')
const github = (body: string | Uint8Array, event: string, id: string) => ({
  'x-github-event': event,
  'x-github-delivery': id,
  'x-hub-signature-256': `sha256=${hmac(body)}`,
})
const slack = (body: string, now = Math.floor(Date.now() / 1000)) => ({
  'x-slack-request-timestamp': `${now}`,
  'x-slack-signature': `v0=${hmac(`v0:${now}:${body}`)}`,
})

const slackOf = (body: Uint8Array, now = Math.floor(Date.now() / 1000)) => ({
  'x-slack-request-timestamp': `${now}`,
  'x-slack-signature': `v0=${hmac(Buffer.concat([Buffer.from(`v0:${now}:`), body]))}`,
})

suite('GitHub', async () => {
  const hooks = await listening('github')
  after(() => hooks[Symbol.asyncDispose]())
  const sender = { login: 'ana', id: 7, type: 'User' }
  const repository = { full_name: 'o/r' }

  test('what is signed is told once, in words', async () => {
    const body = JSON.stringify({
      action: 'opened',
      sender,
      repository,
      issue: {
        number: 12,
        title: 'It breaks',
        html_url: 'https://github.com/o/r/issues/12',
        body: 'When I\npress it.',
      },
    })
    assert.deepEqual(await hooks.post(body, github(body, 'issues', 'id-1')), {
      status: 202,
      text: '{"status":"accepted"}',
    })
    assert.equal((await hooks.post(body, github(body, 'issues', 'id-1'))).status, 200)
    const told = await eventually('it is posted', () => hooks.supervisor.posted[0])
    assert.deepEqual(
      [told.provider_message_id, told.conversation, told.actor, told.text],
      [
        'id-1',
        { provider: 'github', account_id: 'acme', conversation_id: 'o/r', kind: 'room' },
        { id: 'github:7', display_name: 'ana', is_bot: false },
        'ana opened issue #12 in o/r: It breaks\nhttps://github.com/o/r/issues/12\nWhen I\npress it.',
      ],
    )
    assert.equal(hooks.supervisor.posted.length, 1)
    const replay = await hooks.post(body, github(body, 'issues', 'id-2'))
    assert.equal(replay.status, 409)
    assert.match(replay.text, /replay/)
  })

  test('what is not signed, or wrongly, changes nothing', async () => {
    const body = JSON.stringify({ sender, repository })
    const before = hooks.supervisor.posted.length
    for (const signature of [
      '',
      'sha256=',
      `sha256=${'0'.repeat(64)}`,
      `sha1=${hmac(body)}`,
      `sha256=${hmac(`${body} `)}`,
    ]) {
      const answer = await hooks.post(body, { ...github(body, 'push', 'id-9'), 'x-hub-signature-256': signature })
      assert.equal(answer.status, 401, signature)
    }
    assert.equal((await hooks.post(`${body}\n`, github(body, 'push', 'id-9'))).status, 401)
    assert.equal((await fetch(hooks.url)).status, 405)
    assert.equal((await fetch(`${hooks.url}health`)).status, 200)
    assert.equal(hooks.supervisor.posted.length, before)
  })

  test('signed rubbish is refused, and a ping is nothing', async () => {
    for (const body of ['', '[]', 'null', '{', '"x"'])
      assert.equal((await hooks.post(body, github(body, 'push', 'id-3'))).status, 400, body)
    const latin1 = Buffer.from(JSON.stringify({ sender, repository: { full_name: 'o/é' } }), 'latin1')
    assert.equal((await hooks.post(new Uint8Array(latin1), github(latin1, 'push', 'id-3'))).status, 400)
    const ping = JSON.stringify({ zen: 'x', repository })
    assert.deepEqual(await hooks.post(ping, github(ping, 'ping', 'id-4')), {
      status: 200,
      text: '{"status":"ignored"}',
    })
  })

  test('an issue whose text is cut within an emoji still reaches the agent', async () => {
    for (const [length, id] of [
      [3997, 'cut-1'],
      [3998, 'cut-2'],
      [3999, 'cut-3'],
    ] as const) {
      const issue = { number: 1, title: 'T', html_url: 'https://x/1', body: `${'x'.repeat(length)}😀 and more` }
      const body = JSON.stringify({ action: 'opened', sender, repository, issue })
      assert.equal((await hooks.post(body, github(body, 'issues', id))).status, 202)
      const told = await eventually(id, () => hooks.supervisor.posted.find((one) => one.provider_message_id === id))
      assert.ok(told.text.isWellFormed() && told.text.endsWith('…'), id)
    }
  })

  test('a body that is too large is not read', async () => {
    const answer = await hooks.post(new Uint8Array(25 * 1024 * 1024 + 1), {}).catch(() => undefined)
    assert.ok(answer === undefined || answer.status === 413)
  })

  test('each kind of event is a sentence', async () => {
    const comment = { html_url: 'https://x/1', body: 'Looks good', path: 'a.ts', line: 3, state: 'approved' }
    const cases: readonly [string, object, string][] = [
      [
        'push',
        {
          ref: 'refs/heads/main',
          compare: 'https://x/c',
          commits: [{ id: 'a'.repeat(40), message: 'Fix\n\nmore', author: { username: 'ana' } }],
        },
        'ana pushed 1 commit to main in o/r\nhttps://x/c\n- aaaaaaaaaa Fix (ana)',
      ],
      ['push', { ref: 'refs/heads/old', deleted: true, commits: [] }, 'ana deleted old in o/r'],
      [
        'pull_request',
        { action: 'closed', pull_request: { number: 3, title: 'T', html_url: 'https://x/3', merged: true } },
        'ana merged pull request #3 in o/r: T\nhttps://x/3',
      ],
      [
        'pull_request_review',
        { action: 'submitted', review: comment, pull_request: { number: 3, title: 'T' } },
        'ana reviewed pull request #3 in o/r: T (a.ts:3)\nhttps://x/1\nstate: approved\nLooks good',
      ],
      [
        'issue_comment',
        { action: 'created', comment: { html_url: 'https://x/1', body: 'me too' }, issue: { number: 4, title: 'U' } },
        'ana commented on issue #4 in o/r: U\nhttps://x/1\nme too',
      ],
      [
        'workflow_run',
        {
          action: 'completed',
          workflow_run: {
            name: 'CI',
            conclusion: 'failure',
            head_branch: 'main',
            head_sha: 'b'.repeat(40),
            html_url: 'https://x/w',
          },
        },
        'workflow CI in o/r: failure on main (bbbbbbbbbb)\nhttps://x/w',
      ],
      ['create', { ref_type: 'tag', ref: 'v1' }, 'ana created tag v1 in o/r'],
      ['star', { action: 'created' }, 'star created by ana in o/r'],
      [
        'check_run',
        {
          action: 'completed',
          check_run: {
            name: 'lint',
            conclusion: 'failure',
            head_sha: 'c'.repeat(40),
            details_url: 'https://ci/1',
            output: { title: '2 problems', summary: 'a.ts:3 unused', text: null },
          },
        },
        'check lint in o/r: failure (cccccccccc)\nhttps://ci/1\n2 problems\na.ts:3 unused',
      ],
      [
        'workflow_job',
        {
          action: 'completed',
          workflow_job: {
            name: 'build',
            conclusion: 'failure',
            head_branch: 'main',
            html_url: 'https://x/j',
            steps: [
              { name: 'install', conclusion: 'success' },
              { name: 'test', conclusion: 'failure' },
            ],
          },
        },
        'job build in o/r: failure on main\nhttps://x/j\n- step test: failure',
      ],
      [
        'status',
        {
          state: 'error',
          context: 'ci/x',
          sha: 'd'.repeat(40),
          target_url: 'https://ci/2',
          description: 'out of disk',
        },
        'status ci/x in o/r: error (dddddddddd)\nhttps://ci/2\nout of disk',
      ],
      [
        'dependabot_alert',
        {
          action: 'created',
          alert: {
            html_url: 'https://x/a',
            state: 'open',
            security_advisory: { summary: 'Bad left-pad', description: 'It pads.' },
          },
        },
        'dependabot alert created by ana in o/r: Bad left-pad\nhttps://x/a\nstate: open\nIt pads.',
      ],
      [
        'deployment_status',
        {
          action: 'created',
          deployment_status: { state: 'failure', description: 'no quota', target_url: 'https://x/d' },
        },
        'deployment status created by ana in o/r\nhttps://x/d\nstate: failure\nno quota',
      ],
      [
        'commit_comment',
        { action: 'created', comment: { html_url: 'https://x/cc', body: 'why?', path: 'a.ts', line: 1 } },
        'ana commented on a commit in o/r (a.ts:1)\nhttps://x/cc\nwhy?',
      ],
    ]
    for (const [index, [event, payload, expected]] of cases.entries()) {
      const body = JSON.stringify({ sender, repository, ...payload })
      assert.equal((await hooks.post(body, github(body, event, `case-${index}`))).status, 202)
      const told = await eventually(event, () =>
        hooks.supervisor.posted.find((one) => one.provider_message_id === `case-${index}`),
      )
      assert.equal(told.text, expected)
    }
  })
})

test('whatever a webhook says, the supervisor accepts the message that is made of it', () => {
  const random = seededRandom()
  const one = <T>(items: readonly T[]): T =>
    items[random.between(0, items.length - 1)] ?? assert.fail('nothing to pick')
  const words = [
    '',
    ' ',
    'x'.repeat(3998),
    '\ud83d',
    '\ude00',
    '😀',
    '\u0000',
    '\n',
    'a',
    '\u2028',
    '</',
    'é',
    'x'.repeat(511),
  ]
  const someText = () => Array.from({ length: random.between(0, 4) }, () => one(words)).join('')
  const someValue = (depth: number): unknown =>
    one<() => unknown>([
      someText,
      someText,
      () => random.between(0, 1e9),
      () => null,
      () => (depth > 3 ? [] : Array.from({ length: 3 }, () => someValue(depth + 1))),
      () => (depth > 3 ? {} : someObject(depth + 1)),
    ])()
  const someObject = (depth: number): object =>
    Object.fromEntries(
      FIELDS.filter(() => random.chance(1 / 3)).map((field) => [field, depth > 3 ? someText() : someValue(depth)]),
    )
  let messages = 0
  for (let round = 0; round < 600; round++) {
    const style = one<Style>(['github', 'slack', 'standard'])
    const payload = {
      ...someObject(0),
      ...(style === 'slack'
        ? { type: 'event_callback', event: { type: 'message', channel: 'C', ts: '1.0', ...someObject(1) } }
        : {}),
    }
    const event = one(['issues', 'push', 'check_run', 'workflow_job', 'issue_comment', 'status', 'fork'])
    const read = readWebhook({
      style,
      account: 'acme',
      headers: { 'x-github-event': event },
      body: Buffer.from(JSON.stringify(payload)),
      id: someText() || undefined,
      now: 0,
    })
    if (read.kind !== 'message') continue
    messages += 1
    const message: ExternalInboundMessage = JSON.parse(JSON.stringify(acceptable(read.message)))
    assert.doesNotThrow(() => {
      validate(ExternalInboundMessage, message, 'body.message')
      refuseHalfPairs(JSON.stringify(message), message)
      messagesOf({ message }, { source: read.message.conversation, city: 'shop', now: 1 })
    }, JSON.stringify(payload))
  }
  assert.ok(messages > 200, `only ${messages} messages`)
})

const FIELDS = [
  ...['action', 'sender', 'login', 'id', 'repository', 'full_name', 'issue', 'title', 'body', 'comment', 'check_run'],
  ...['output', 'summary', 'text', 'channel', 'ts', 'thread_ts', 'user', 'files', 'url_private', 'mimetype', 'blocks'],
  ...['attachments', 'elements', 'fields', 'rows', 'fallback', 'pretext', 'head_sha', 'commits', 'data', 'username'],
]

suite('Slack', async () => {
  const hooks = await listening('slack')
  after(() => hooks[Symbol.asyncDispose]())
  const event = (more: object) =>
    JSON.stringify({
      type: 'event_callback',
      event_id: 'Ev1',
      event: { type: 'message', channel: 'C1', user: 'U1', ts: '1767323045.000100', text: 'hello', ...more },
    })

  test('it is told that we are there, but only if it is Slack', async () => {
    const body = JSON.stringify({ type: 'url_verification', challenge: 'abc' })
    assert.deepEqual(await hooks.post(body, slack(body)), { status: 200, text: '{"challenge":"abc"}' })
    assert.equal((await hooks.post(body, {})).status, 401)
  })

  test('messages, threads, files, bots and markup', async () => {
    for (const body of [
      event({ text: 'see <https://x.org|x> &amp; <@U2|bo> in <#C2|ops> <!here>' }),
      event({ ts: '1767323046.0', thread_ts: '1767323045.000100' }),
      event({ ts: '1767323047.0', channel: 'D1', channel_type: 'im', bot_id: 'B1' }),
      event({
        ts: '1767323048.0',
        subtype: 'file_share',
        files: [{ id: 'F1', url_private: 'https://f', mimetype: 'text/plain' }],
      }),
    ])
      assert.equal((await hooks.post(body, slack(body))).status, 202)
    for (const body of [
      event({ type: 'app_mention', text: 'again' }),
      event({ ts: '1767323046.0', thread_ts: '1767323045.000100' }),
    ])
      assert.equal((await hooks.post(body, slack(body))).status, 200, 'known')
    for (const body of [event({ subtype: 'message_changed' }), event({ type: 'reaction_added' }), event({ ts: '' })])
      assert.equal((await hooks.post(body, slack(body))).text, '{"status":"ignored"}')
    await eventually('all four are posted', () => (hooks.supervisor.posted.length === 4 ? true : undefined))
    const [first, thread, direct, file] = hooks.supervisor.posted
    assert.equal(first?.text, 'see x (https://x.org) & @bo in #ops @here')
    assert.equal(first?.received_at, '2026-01-02T03:04:05.000Z')
    assert.deepEqual(
      [thread?.conversation.kind, thread?.conversation.parent_conversation_id, thread?.reply_to_message_id],
      ['thread', 'C1', 'C1:1767323045.000100'],
    )
    assert.deepEqual([direct?.conversation.kind, direct?.actor.is_bot], ['dm', true])
    assert.deepEqual(file?.attachments, [{ provider_id: 'F1', url: 'https://f', mime_type: 'text/plain' }])
  })

  test('alerts of programs are heard: attachments, blocks and fallbacks', async () => {
    const cases: readonly [object, string][] = [
      [
        { attachments: [{ fallback: 'disk is full', title: 'Alert', title_link: 'https://g/1', text: 'at 99 %' }] },
        'Alert (https://g/1)\nat 99 %',
      ],
      [{ attachments: [{ fallback: '[FIRING:1] DiskFull' }] }, '[FIRING:1] DiskFull'],
      [
        { text: null, blocks: [{ type: 'section', text: { type: 'mrkdwn', text: '*disk* <https://g|graph>' } }] },
        '*disk* graph (https://g)',
      ],
      [
        {
          blocks: [
            { type: 'header', text: { type: 'plain_text', text: 'Incident 7' } },
            { type: 'divider' },
            {
              type: 'section',
              fields: [
                { type: 'mrkdwn', text: 'sev 1' },
                { type: 'mrkdwn', text: 'db' },
              ],
            },
            {
              type: 'context',
              elements: [
                { type: 'image', alt_text: 'logo' },
                { type: 'mrkdwn', text: 'by ops' },
              ],
            },
            {
              type: 'actions',
              elements: [{ type: 'button', text: { type: 'plain_text', text: 'Ack' }, url: 'https://a' }],
            },
          ],
        },
        'Incident 7\nsev 1\ndb\nlogo\nby ops\nAck\nhttps://a',
      ],
      [
        {
          blocks: [
            {
              type: 'rich_text',
              elements: [
                {
                  type: 'rich_text_list',
                  elements: [
                    {
                      type: 'rich_text_section',
                      elements: [
                        { type: 'text', text: 'see ' },
                        { type: 'link', url: 'https://l' },
                      ],
                    },
                    {
                      type: 'rich_text_section',
                      elements: [
                        { type: 'user', user_id: 'U9' },
                        { type: 'text', text: ' owns it' },
                      ],
                    },
                  ],
                },
              ],
            },
          ],
        },
        'see https://l\n@U9 owns it',
      ],
      [
        { text: 'Deploy failed', attachments: [{ text: 'exit 1', fields: [{ title: 'env', value: 'prod' }] }] },
        'Deploy failed\nexit 1\nenv: prod',
      ],
      // What a person types comes twice: as text and as rich text.
      [
        {
          text: 'a *bold* word',
          blocks: [
            {
              type: 'rich_text',
              elements: [
                {
                  type: 'rich_text_section',
                  elements: [
                    { type: 'text', text: 'a ' },
                    { type: 'text', text: 'bold' },
                    { type: 'text', text: ' word' },
                  ],
                },
              ],
            },
          ],
        },
        'a *bold* word',
      ],
      [
        {
          blocks: [
            {
              type: 'table',
              rows: [
                [
                  { type: 'raw_text', text: 'cpu' },
                  { type: 'raw_text', text: '98 %' },
                ],
              ],
            },
          ],
        },
        'cpu\n98 %',
      ],
      [{ blocks: [{ type: 'markdown', text: '**down**' }] }, '**down**'],
    ]
    for (const [index, [more, expected]] of cases.entries()) {
      const ts = `17673240${index}0.0001`
      const body = event({ ts, subtype: 'bot_message', bot_id: 'B1', text: '', ...more })
      assert.equal((await hooks.post(body, slack(body))).status, 202, body)
      const told = await eventually(expected, () =>
        hooks.supervisor.posted.find((one) => one.provider_message_id === `C1:${ts}`),
      )
      assert.equal(told.text, expected)
    }
  })

  test('a message of nothing but deep or endless blocks costs a bounded time', async () => {
    const deep = `${'{"type":"x","elements":['.repeat(5_000)}${']}'.repeat(5_000)}`
    const wide = JSON.stringify(
      Array.from({ length: 9_000 }, (_, index) => ({ type: 'section', text: `line ${index}` })),
    )
    for (const [ts, blocks] of [
      ['1767324900.1', `[${deep}]`],
      ['1767324900.2', wide],
      ['1767324900.3', JSON.stringify([{ type: 'section', text: '<'.repeat(300_000) }])],
    ] as const) {
      const body = event({ ts, text: 'first' }).replace('"text":"first"', `"text":"first","blocks":${blocks}`)
      const startedAt = performance.now()
      assert.equal((await hooks.post(body, slack(body))).status, 202)
      assert.ok(performance.now() - startedAt < 5_000, ts)
    }
  })

  test('a body that is no UTF-8, or no object, is refused', async () => {
    for (const body of [Buffer.from(event({ text: 'é' }), 'latin1'), Buffer.from('[]')])
      assert.equal((await hooks.post(new Uint8Array(body), slackOf(body))).status, 400)
  })

  test('a signature counts for five minutes, with its time and for its body', async () => {
    const body = event({ ts: '1767323099.0' })
    const now = Math.floor(Date.now() / 1000)
    for (const headers of [
      slack(body, now - 301),
      slack(body, now + 400),
      { ...slack(body, now - 600), 'x-slack-request-timestamp': `${now}` },
      { ...slack(body), 'x-slack-request-timestamp': 'now' },
      { ...slack(body), 'x-slack-signature': `v0=${'0'.repeat(64)}` },
      slack(`${body} `),
    ])
      assert.equal((await hooks.post(body, headers)).status, 401, JSON.stringify(headers))
    assert.equal((await hooks.post(body, slack(body, now - 200))).status, 202)
  })
})

suite('Standard Webhooks', async () => {
  const hooks = await listening('standard')
  after(() => hooks[Symbol.asyncDispose]())
  const signed = (body: string, id = 'msg_1', at = new Date()) => ({
    'webhook-id': id,
    'webhook-timestamp': `${Math.floor(at.getTime() / 1000)}`,
    'webhook-signature': new Webhook(WHSEC).sign(id, at, body),
  })

  test('what the package signs is taken, once', async () => {
    const body = JSON.stringify({ type: 'deploy.done', timestamp: '2026-01-01T00:00:00Z', data: { env: 'prod' } })
    assert.equal((await hooks.post(body, signed(body))).status, 202)
    assert.equal((await hooks.post(body, signed(body))).status, 200)
    const told = await eventually('it is posted', () => hooks.supervisor.posted[0])
    assert.deepEqual([told.provider_message_id, told.text], ['msg_1', 'deploy.done\n{\n  "env": "prod"\n}'])
    assert.equal((await hooks.post(body, signed(body, 'msg_2', new Date(Date.now() - 400_000)))).status, 401)
    assert.equal((await hooks.post(body, { ...signed(body), 'webhook-id': 'msg_3' })).status, 401)
    assert.equal(hooks.supervisor.posted.length, 1)
  })

  test('bodies of other programs are called by what they call themselves', async () => {
    for (const [payload, name] of [
      [{ object_kind: 'pipeline', object_attributes: { status: 'failed' } }, 'pipeline'],
      [{ event_type: 'alert.fired', note: 'half \ud83d' }, 'alert.fired'],
      [{ status: 'firing', alerts: [{ labels: { alertname: 'DiskFull' } }] }, 'event'],
    ] as const) {
      const body = JSON.stringify(payload)
      assert.equal((await hooks.post(body, signed(body, `other_${name}`))).status, 202)
      const told = await eventually(name, () =>
        hooks.supervisor.posted.find((one) => one.provider_message_id === `other_${name}`),
      )
      assert.equal(told.text.split('\n')[0], name)
      assert.ok(told.text.isWellFormed())
    }
  })
})
