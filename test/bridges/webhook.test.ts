/** Webhooks over real HTTP: who is believed, what is refused, and what agents get to read. */
import assert from 'node:assert/strict'
import { createHmac } from 'node:crypto'
import { after, suite, test } from 'node:test'
import { Webhook } from 'standardwebhooks'
import { Journal } from '../../src/bridges/library/journal.ts'
import { Posting } from '../../src/bridges/library/posting.ts'
import { Listener } from '../../src/bridges/webhook/listener.ts'
import { type Style, verifierOf } from '../../src/bridges/webhook/signatures.ts'
import { RememberingSupervisor, testWorld } from '../support/bridge-life.ts'
import { eventually } from '../support/http.ts'
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

const hmac = (text: string) => createHmac('sha256', SECRET).update(text).digest('hex')
const github = (body: string, event: string, id: string) => ({
  'x-github-event': event,
  'x-github-delivery': id,
  'x-hub-signature-256': `sha256=${hmac(body)}`,
})
const slack = (body: string, now = Math.floor(Date.now() / 1000)) => ({
  'x-slack-request-timestamp': `${now}`,
  'x-slack-signature': `v0=${hmac(`v0:${now}:${body}`)}`,
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
    const ping = JSON.stringify({ zen: 'x', repository })
    assert.deepEqual(await hooks.post(ping, github(ping, 'ping', 'id-4')), {
      status: 200,
      text: '{"status":"ignored"}',
    })
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
})
