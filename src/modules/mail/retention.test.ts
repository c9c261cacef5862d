import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ManualClock } from '../../../test/support/manual-clock.ts'
import { sweepsOfMail } from './retention.ts'
import { addressOf, openPost } from './testing.ts'

const DAY = 86_400_000

test('mail goes the set time after it was read or archived, unread mail never, and deleted ids after 30 days', async (t) => {
  const clock = new ManualClock()
  const post = openPost(t, clock)
  const { db, mail } = post
  let keepMs: number | undefined
  const sweeps = sweepsOfMail({ store: post, clock, mail, keepMs: () => keepMs, isGone: () => false })
  const retention = {
    sweep: async () => {
      for (const one of sweeps) await one.run({ agesCount: true, isOver: false })
    },
  }
  const send = (subject: string) =>
    db.write((tx) => mail.send(tx, { from: addressOf('human'), to: addressOf('mayor'), subject, body: '' }))
  const left = () => db.all('SELECT subject FROM mail ORDER BY seq').map(({ subject }) => subject)

  const [, read, archived] = [await send('unread'), await send('read'), await send('archived')]
  for (let index = 0; index < 120; index++) {
    const { id } = await send('many')
    await db.write((tx) => mail.move(tx, id, 'read', 'api'))
  }
  await db.write((tx) => mail.move(tx, read.id, 'read', 'api'))
  await clock.advance(DAY / 2)
  await db.write((tx) => mail.move(tx, archived.id, 'archive', 'api'))
  await clock.advance(DAY / 2 + 1)
  await retention.sweep()
  assert.equal(left().length, 123, 'nothing says that it may go')

  keepMs = DAY
  await retention.sweep()
  assert.deepEqual(left(), ['unread', 'archived'])
  assert.equal(post.events().filter((event) => event.startsWith('mail.deleted')).length, 121)
  await clock.advance(DAY)
  await retention.sweep()
  assert.deepEqual(left(), ['unread'])

  assert.equal(db.all('SELECT id FROM mail_deleted').length, 122)
  for (let day = 0; day < 31; day++) await clock.advance(DAY)
  await retention.sweep()
  assert.deepEqual(db.all('SELECT id FROM mail_deleted'), [])
  assert.deepEqual(left(), ['unread'])
})

test('retention: unread mail of a deleted session goes, that of one that is there stays', async (t) => {
  const clock = new ManualClock()
  const post = openPost(t, clock)
  const { db, mail } = post
  const sweeps = sweepsOfMail({
    store: post,
    clock,
    mail,
    keepMs: () => undefined,
    isGone: (mailbox) => mailbox === 'session:s-gone',
  })
  const sweep = async () => {
    for (const one of sweeps) await one.run({ agesCount: true, isOver: false })
  }
  const to = (id: string) => ({ mailbox: `session:${id}`, display: id, rig: '' }) as const
  for (const one of [to('s-gone'), to('s-here'), addressOf('mayor')])
    await db.write((tx) => mail.send(tx, { from: addressOf('human'), to: one, subject: 'unread', body: '' }))
  const left = () => db.all('SELECT mailbox FROM mail ORDER BY seq').map(({ mailbox }) => mailbox)
  await clock.advance(30 * DAY)
  await sweep()
  assert.equal(left().length, 3, 'it stays for 30 days')
  await clock.advance(1)
  await sweep()
  assert.deepEqual(left(), ['session:s-here', 'agent:mayor'])
  const counts = db.all("SELECT sum(n) AS n FROM mail_counts WHERE mailbox = 'session:s-gone'")
  assert.equal(Number(counts[0]?.n ?? 0), 0, 'nothing is unread there')
})
