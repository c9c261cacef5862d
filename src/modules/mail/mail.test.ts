import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { SqlValue } from '../../kernel/database.ts'
import { Page } from '../../kernel/page.ts'
import { Problem } from '../../kernel/problem.ts'
import type { MailDraft } from './mail.ts'
import { type MailFilter, mailList, mailTotal, threadPage } from './query.ts'
import { countMails, findMail } from './store.ts'
import { replySubject } from './subject.ts'
import { addressOf, openPost, type Post } from './testing.ts'

const draft = (to: string, said: Partial<MailDraft> = {}): MailDraft => ({
  from: addressOf('human'),
  to: addressOf(to),
  subject: 'Hello',
  body: 'How are you?',
  ...said,
})
const send = ({ db, mail }: Post, to: string, said?: Partial<MailDraft>) =>
  db.write((tx) => mail.send(tx, draft(to, said)))
const idsOf = (items: readonly { readonly id: string }[]) => items.map(({ id }) => id)
const isCode = (code: string) => (error: unknown) => error instanceof Problem && error.code === code

const pageOf = (limit: number, cursor?: string) => new Page('mail', ['number'], { limit, cursor })

test('a message is in one mailbox, unread, in a thread of its own; its rig is that of its recipient, else of its sender', async (t) => {
  const post = openPost(t)
  const message = await send(post, 'shop/clerk')
  assert.match(message.id, /^ml-[0-9a-f]{16}$/)
  assert.match(message.thread_id, /^thread-[0-9a-f]{12}$/)
  assert.equal(message.rig, 'shop')
  assert.deepEqual(findMail(post.db, message.id), message)
  const answer = await send(post, 'mayor', { from: addressOf('shop/clerk') })
  assert.equal(answer.rig, 'shop')
  assert.deepEqual(post.events(), [`mail.sent ${message.id}`, `mail.sent ${answer.id}`])
  assert.deepEqual(countMails(post.db, 'agent:mayor', undefined), { unread: 1, read: 0, archived: 0 })
  assert.deepEqual(countMails(post.db, undefined, 'shop'), { unread: 2, read: 0, archived: 0 })
})

test('each move changes a message once, tells of it once, and a second time does nothing', async (t) => {
  const { db, mail, events, ...post } = openPost(t)
  const { id } = await send({ db, mail, events, ...post }, 'mayor')
  const move = (name: 'read' | 'mark-unread' | 'archive' | 'unarchive') =>
    db.write((tx) => mail.move(tx, id, name, 'api'))
  for (const name of ['read', 'mark-unread', 'read', 'archive', 'unarchive'] as const) {
    const once = await move(name)
    assert.deepEqual(await move(name), once)
  }
  assert.equal(findMail(db, id)?.status, 'read', 'what was read is read again after its time in the archive')
  await move('archive')
  for (const name of ['read', 'mark-unread'] as const) await assert.rejects(move(name), isCode('conflict-wrong-state'))
  const told = ['sent', 'marked_read', 'marked_unread', 'marked_read', 'archived', 'unarchived', 'archived']
  assert.deepEqual(
    events(),
    told.map((type) => `mail.${type} ${id}`),
  )
  assert.deepEqual(countMails(db, undefined, undefined), { unread: 0, read: 0, archived: 1 })
})

test('what is deleted is in no table and no index, and its id is remembered', async (t) => {
  const post = openPost(t)
  const { id } = await send(post, 'mayor', { subject: 'zebracrossing', body: `${'x '.repeat(1500)} quaggasecret` })
  const remove = () => post.db.write((tx) => post.mail.delete(tx, id, 'api'))
  assert.equal(mailList(post.db, { match: '"quaggasecret"' }, pageOf(10)).items.length, 1)
  await remove()
  await remove()
  assert.equal(post.events().filter((event) => event.startsWith('mail.deleted')).length, 1)
  assert.equal(findMail(post.db, id), undefined)
  assert.equal(mailList(post.db, { match: '"quaggasecret"' }, pageOf(10)).items.length, 0)
  assert.deepEqual(post.db.all('SELECT * FROM mail_texts'), [])
  await post.db.write((tx) => tx.run('CREATE VIRTUAL TABLE mail_words USING fts5vocab (mail_search, row)'))
  assert.deepEqual(post.db.all("SELECT term FROM mail_words WHERE term LIKE 'quagga%'"), [])
  await assert.rejects(
    post.db.write((tx) => post.mail.delete(tx, 'ml-0', 'api')),
    isCode('mail-not-found'),
  )
})

test('copies are messages of their own in the same thread, one for each mailbox, and share a text', async (t) => {
  const post = openPost(t)
  const names = ['ann', 'mayor', 'shop/clerk', 'ann']
  const message = await send(post, 'mayor', { cc: names.map(addressOf), notify: true })
  assert.deepEqual(message.cc, ['ann', 'shop/clerk'])
  const thread = { thread: message.thread_id }
  const all = threadPage(post.db, thread, pageOf(10)).items
  assert.deepEqual(
    all.map(({ to, copy_of }) => [to, copy_of]),
    [
      ['mayor', undefined],
      ['ann', message.id],
      ['shop/clerk', message.id],
    ],
  )
  assert.deepEqual(idsOf(threadPage(post.db, { ...thread, originals: true }, pageOf(10)).items), [message.id])
  assert.deepEqual(
    threadPage(post.db, { ...thread, party: 'agent:ann' }, pageOf(10)).items.map(({ to }) => to),
    ['ann'],
  )
  assert.deepEqual(idsOf(threadPage(post.db, { ...thread, party: 'human' }, pageOf(10)).items), [message.id])
  assert.deepEqual(
    post.wishes.map(({ to, wakes }) => [to, wakes]),
    [
      ['agent:mayor', true],
      ['agent:ann', true],
      ['agent:shop/clerk', true],
    ],
  )

  for (const { id } of all.slice(0, 2)) await post.db.write((tx) => post.mail.delete(tx, id, 'api'))
  assert.deepEqual(
    mailList(post.db, { match: '"how"' }, pageOf(10)).items.map(({ to }) => to),
    ['shop/clerk'],
  )
  assert.equal(mailList(post.db, { match: '"how"', mailbox: 'agent:ann' }, pageOf(10)).items.length, 0)
})

test('an answer goes to the mailbox of the sender, in its thread, also of archived mail; a label cannot be answered', async (t) => {
  const post = openPost(t)
  const { id, thread_id } = await send(post, 'mayor', { from: addressOf('ann') })
  await post.db.write((tx) => post.mail.move(tx, id, 'archive', 'api'))
  const answer = await post.db.write((tx) => post.mail.reply(tx, id, { from: addressOf('mayor'), body: 'Well' }))
  assert.deepEqual(
    [answer.mailbox, answer.thread_id, answer.reply_to, answer.subject],
    ['agent:ann', thread_id, id, 'Re: Hello'],
  )
  assert.equal(post.events().at(-1), `mail.replied ${answer.id}`)
  const odd = await send(post, 'mayor', { from: { display: 'the weather', rig: '' } })
  await assert.rejects(
    post.db.write((tx) => post.mail.reply(tx, odd.id, { from: addressOf('mayor'), body: '' })),
    isCode('conflict-wrong-state'),
  )
  const late = await send(post, 'mayor', { from: { display: 'ann', rig: '' } })
  const found = await post.db.write((tx) => post.mail.reply(tx, late.id, { from: addressOf('mayor'), body: '' }))
  assert.equal(found.mailbox, 'agent:ann', 'the label has become a name')
})

test('subjects of answers', () => {
  assert.equal(replySubject('Given', 'Hello', 'x'), 'Given')
  assert.equal(replySubject(undefined, '  rE: Hello', 'x'), '  rE: Hello')
  assert.equal(replySubject(undefined, ' ', '\n first line \n second'), 'first line')
  assert.equal(replySubject(undefined, ' ', ' '), '(reply)')
  assert.equal(replySubject(undefined, ' ', 'y'.repeat(100)).length, 80)
  const long = replySubject(undefined, '😀'.repeat(499), '')
  assert.ok(long.length <= 998 && long.endsWith('😀...') && long.isWellFormed())
})

test('who is told of what: nobody of silent mail, people never, and who writes to himself only if he asks for it', async (t) => {
  const post = openPost(t)
  await send(post, 'mayor', { notify: false })
  await send(post, 'human')
  await send(post, 'mayor', { from: addressOf('mayor') })
  assert.deepEqual(post.wishes, [])
  await send(post, 'mayor')
  await send(post, 'mayor', { from: addressOf('mayor'), notify: true })
  const wish = { source: 'mail', reference: 'agent:mayor', to: 'agent:mayor' }
  assert.deepEqual(post.wishes, [
    { ...wish, wakes: false },
    { ...wish, wakes: true },
  ])
})

test('lists are the newest first, page by page, and know how large they are', async (t) => {
  const post = openPost(t)
  const sent: string[] = []
  for (let index = 0; index < 7; index++)
    sent.push((await send(post, index % 2 === 0 ? 'mayor' : 'ann', { subject: `Number ${index}` })).id)
  const filter = { mailbox: 'agent:mayor', statuses: ['unread'] } as const
  const first = mailList(post.db, filter, pageOf(3))
  assert.deepEqual(idsOf(first.items), [sent[6], sent[4], sent[2]])
  const second = mailList(post.db, filter, pageOf(3, first.next_cursor))
  assert.deepEqual([idsOf(second.items), second.next_cursor], [[sent[0]], undefined])
  assert.deepEqual(mailTotal(post.db, filter), { total: 4, capped: false })
  assert.deepEqual(mailTotal(post.db, { senders: ['human'] }), { total: 7, capped: false })
  assert.deepEqual(mailList(post.db, { match: '"number" "3"' }, pageOf(1)).total, { total: 1, capped: false })
  await post.db.write((tx) => post.mail.move(tx, sent[6] ?? '', 'read', 'api'))
  assert.deepEqual(idsOf(mailList(post.db, { ...filter, statuses: ['unread', 'read'] }, pageOf(2)).items), [
    sent[6],
    sent[4],
  ])
  assert.deepEqual(idsOf(mailList(post.db, { mailbox: 'agent:mayor', match: '"numb"*' }, pageOf(2)).items), [
    sent[6],
    sent[4],
  ])
})

test('what the index finds and the filter does not take costs two looks, and is gone on with', async (t) => {
  const post = openPost(t)
  const wanted = await send(post, 'ann', { subject: 'The oldest number' })
  await post.db.write((tx) => post.mail.move(tx, wanted.id, 'read', 'api'))
  for (let index = 0; index < 5; index++)
    await Promise.all(Array.from({ length: 500 }, () => send(post, 'mayor', { subject: 'A number' })))
  let looks = 0
  const watched = {
    get: post.db.get.bind(post.db),
    all: post.db.all.bind(post.db),
    rows: (sql: string, ...values: readonly SqlValue[]) => {
      looks += 1
      return post.db.rows(sql, ...values)
    },
  }
  const filter = { match: '"num"*', statuses: ['read'] } as const
  const page = mailList(watched, filter, pageOf(10))
  assert.deepEqual([idsOf(page.items), page.total, looks], [[], { total: 0, capped: true }, 2])
  assert.ok(page.next_cursor !== undefined)
  const next = mailList(watched, filter, pageOf(10, page.next_cursor))
  assert.deepEqual([idsOf(next.items), next.next_cursor], [[wanted.id], undefined])
})

test('a page ends where its answer would be too large', async (t) => {
  const post = openPost(t)
  for (let index = 0; index < 40; index++) await send(post, 'mayor', { body: 'b'.repeat(256 * 1024) })
  const page = mailList(post.db, {}, pageOf(1000))
  assert.ok(page.items.length > 20 && page.items.length < 40, `${page.items.length}`)
  assert.equal(mailList(post.db, {}, pageOf(1000, page.next_cursor)).items.length, 40 - page.items.length)
})

test('a message that is refused leaves nothing behind', async (t) => {
  const post = openPost(t)
  await assert.rejects(
    post.db.write((tx) => {
      post.mail.send(tx, draft('mayor'))
      throw new Error('refused')
    }),
  )
  assert.deepEqual(post.events(), [])
  for (const table of ['mail', 'mail_texts', 'mail_counts']) assert.deepEqual(post.db.all(`SELECT * FROM ${table}`), [])
  assert.equal(mailList(post.db, { match: '"how"' }, pageOf(10)).items.length, 0)
})

test('no list looks through the mail of everybody, and none is sorted', async (t) => {
  const post = openPost(t)
  const { db } = post
  const seen = new Set<string>()
  const look = (sql: string) => {
    for (const { detail } of db.all(`EXPLAIN QUERY PLAN ${sql.replaceAll('?', 'NULL')}`)) seen.add(String(detail))
  }
  const watched = {
    get: (sql: string, ...values: readonly SqlValue[]) => {
      look(sql)
      return db.get(sql, ...values)
    },
    all: (sql: string, ...values: readonly SqlValue[]) => {
      look(sql)
      return db.all(sql, ...values)
    },
    rows: (sql: string, ...values: readonly SqlValue[]) => db.rows(sql, ...values),
  }
  const narrow: readonly MailFilter[] = [
    { mailbox: 'human', statuses: ['unread'] },
    { mailbox: 'human', statuses: ['unread', 'read'] },
    { statuses: ['archived'] },
    { statuses: ['unread', 'read'] },
    { senders: ['human'], statuses: ['unread'] },
    { senders: ['human'] },
    { thread: 'thread-1' },
    { rig: 'shop' },
    { since: 1 },
  ]
  for (const filter of narrow) {
    mailList(watched, filter, pageOf(10))
    mailTotal(watched, filter)
  }
  threadPage(watched, { thread: 'thread-1', originals: true }, pageOf(10))
  const costly = [...seen].filter((step) => /SCAN (?:m|mail|t)\b|TEMP B-TREE FOR ORDER/.test(step))
  assert.deepEqual(costly, [])
})
