import assert from 'node:assert/strict'
import { test } from 'node:test'
import { forgetting, MailDigests } from './digests.ts'
import { addressOf, openPost, type Post } from './testing.ts'

const MAYOR = 'agent:mayor'
const digests = new MailDigests()

const reader = (delivery: string, conversation = 's-1.1') =>
  ({ mailbox: MAYOR, sessionId: 's-1', conversation, delivery }) as const
const begin = ({ db }: Post, delivery: string, conversation?: string) =>
  db.write((tx) => digests.begin(tx, reader(delivery, conversation), MAYOR))
const end = ({ db }: Post, delivery: string, delivered: boolean) =>
  db.write((tx) => digests.ended(tx, delivery, delivered))
const send = (post: Post, subject: string, more: { notify?: boolean; priority?: number } = {}) =>
  post.db.write((tx) =>
    post.mail.send(tx, { from: addressOf('human'), to: addressOf('mayor'), subject, body: '', ...more }),
  )
const unread = ({ db }: Post) => db.write((tx) => digests.unread(tx, MAYOR))

test('what was told once is not told again in the same conversation, and is in the next one', async (t) => {
  const post = openPost(t)
  assert.deepEqual(await unread(post), [])
  assert.equal(await begin(post, 'd0'), undefined)
  await send(post, 'first')
  assert.deepEqual(await unread(post), [MAYOR])
  assert.match((await begin(post, 'd1')) ?? '', /1 unread message:\n.*\[first\]/)
  await end(post, 'd1', true)
  assert.equal(await begin(post, 'd2'), undefined)
  await send(post, 'second')
  const text = (await begin(post, 'd3')) ?? ''
  assert.match(text, /2 unread messages, 1 of them new:\n.*\[second\]/)
  assert.doesNotMatch(text, /\[first\]/)
  assert.match((await begin(post, 'd4', 's-1.2')) ?? '', /2 unread messages:\n.*\[first\]\n.*\[second\]/)
})

test('what was not delivered is told again, and what came meanwhile is told after it', async (t) => {
  const post = openPost(t)
  await send(post, 'first')
  assert.ok(await begin(post, 'd1'))
  await end(post, 'd1', false)
  assert.match((await begin(post, 'd1')) ?? '', /\[first\]/, 'a second try of the same delivery')
  await send(post, 'second')
  await end(post, 'd1', true)
  assert.match((await begin(post, 'd2')) ?? '', /\[second\]/)
  await end(post, 'd1', true)
  assert.ok(await begin(post, 'd3'), 'an end that is told twice counts once')
})

test('the most urgent comes first, what was read meanwhile is left out, and silent mail is told with other mail only', async (t) => {
  const post = openPost(t)
  await send(post, 'silent', { notify: false })
  assert.deepEqual(await unread(post), [])
  assert.equal(await begin(post, 'd1'), undefined)
  const { id } = await send(post, 'read')
  await send(post, 'plain')
  await send(post, 'urgent', { priority: 9 })
  await post.db.write((tx) => post.mail.move(tx, id, 'read', 'api'))
  const told = [...((await begin(post, 'd2')) ?? '').matchAll(/\[(\w+)\]/g)].map(([, subject]) => subject)
  assert.deepEqual(told, ['urgent', 'silent', 'plain'])
})

test('what a session was told goes with it', async (t) => {
  const post = openPost(t)
  await send(post, 'first')
  await begin(post, 'd1')
  await end(post, 'd1', true)
  await begin(post, 'd2', 'other')
  const event = {
    seq: 1,
    type: 'session.deleted',
    subject: 's-1',
    actor: 'api',
    at: 0,
    city: undefined,
    envelope: '{}',
  }
  await post.db.write((tx) => forgetting.react(tx, event))
  for (const table of ['mail_told', 'mail_digests']) assert.deepEqual(post.db.all(`SELECT * FROM ${table}`), [])
})
