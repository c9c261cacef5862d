import assert from 'node:assert/strict'
import { test } from 'node:test'
import { eventually } from '../../../../test/support/eventually.ts'
import { ManualClock } from '../../../../test/support/manual-clock.ts'
import { AGENT, SessionCity, type SessionCityOptions } from '../../../../test/support/session-city.ts'
import type { Tx } from '../../../kernel/database.ts'
import { type Mailbox, mailboxOfAgent, mailboxOfSession } from '../../../messaging/address.ts'
import type { DigestReader, DigestSource } from '../../../messaging/digest.ts'
import type { SessionRecord } from '../record/record.ts'

/** What is unread in a mailbox, and what was told of it. */
class Letters implements DigestSource {
  unreadIn: readonly string[] = []
  readonly letters = new Map<string, string[]>()
  readonly told: [delivery: string, delivered: boolean][] = []
  readonly readers: DigestReader[] = []

  unread(_: Tx, mailbox: Mailbox): readonly string[] {
    return mailbox === 'human' ? [] : this.unreadIn
  }

  begin(_: Tx, reader: DigestReader, reference: string): string | undefined {
    this.readers.push(reader)
    const letters = this.letters.get(reference) ?? []
    return letters.length === 0 ? undefined : letters.join(' ')
  }

  ended(_: Tx, delivery: string, delivered: boolean): void {
    this.told.push([delivery, delivered])
  }
}

const READING = { cat: { command: '/bin/cat', prompt_mode: 'none', delivery: 'line' } } as const

/** A city whose sessions nothing starts. */
function quietCity(options: SessionCityOptions = {}) {
  const mail = new Letters()
  const city = new SessionCity({ providers: READING, digests: { mail }, ...options })
  void city.sessions.digests.start()
  const wish = (mailbox: Mailbox, { reference = 'box', wakes = false } = {}) =>
    city.store.db.write((tx) => city.sessions.digests.wish(tx, { mailbox }, { source: 'mail', reference, wakes }))
  const write = <T>(change: (tx: Tx) => T) => city.store.db.write(change)
  const asleep = async (): Promise<SessionRecord> => {
    const { id } = await city.create({ template: 'cat', state: 'asleep' })
    await write((tx) => city.sessions.store.move(tx, id, 'suspend', { actor: 'api', fields: { desired: 'suspended' } }))
    return city.record(id)
  }
  const queued = (id: string) => city.sessions.deliveries.waiting(id)
  const wishes = () => city.store.db.all('SELECT * FROM session_digests ORDER BY mailbox, source, reference')
  return { city, mail, wish, write, asleep, queued, wishes, [Symbol.asyncDispose]: () => city[Symbol.asyncDispose]() }
}

const begin = (stage: ReturnType<typeof quietCity>, id: string) =>
  stage.write((tx) => stage.city.sessions.deliveries.begin(tx, id, 1))
const end = (stage: ReturnType<typeof quietCity>, id: string, state: 'delivered' | 'failed' | 'expired') =>
  stage.write((tx) => stage.city.sessions.deliveries.end(tx, id, { state }, 'supervisor'))

test('one reminder waits per mailbox and reference, and is put together when it is typed', async () => {
  await using stage = quietCity()
  const { city, mail, wish, asleep, queued, wishes } = stage
  const { id } = await asleep()
  const mailbox = mailboxOfSession(id)
  for (let n = 0; n < 3; n++) await wish(mailbox)
  await wish(mailbox, { reference: 'other' })
  const [first, second, ...more] = queued(id)
  assert.ok(first !== undefined && second !== undefined)
  assert.equal(more.length, 0)
  assert.equal(city.delivery(id, first.id).source, 'mail')
  assert.equal(city.delivery(id, first.id).text_removed, undefined)
  mail.letters.set('box', ['one', 'two'])
  assert.equal(await begin(stage, first.id), true)
  assert.equal(city.delivery(id, first.id).text, 'one two')
  mail.letters.set('box', ['one', 'two', 'three'])
  assert.equal(city.delivery(id, first.id).text, 'one two')
  await end(stage, first.id, 'delivered')
  assert.deepEqual(mail.told, [[first.id, true]])
  assert.deepEqual(
    wishes().map(({ reference }) => reference),
    ['other'],
  )
  assert.equal(city.record(id).last_nudge_delivered_at !== undefined, true)
})

test('where nothing is left it is cancelled as superseded, and its source hears of no try', async () => {
  await using stage = quietCity()
  const { city, mail, wish, asleep, queued, wishes } = stage
  const { id } = await asleep()
  await wish(mailboxOfSession(id))
  const [one] = queued(id)
  assert.ok(one !== undefined)
  assert.equal(await begin(stage, one.id), false)
  const { state, error_code: code } = city.delivery(id, one.id)
  assert.deepEqual([state, code], ['cancelled', 'superseded'])
  assert.deepEqual([mail.told, wishes(), city.record(id).queued], [[], [], 0])
})

test('what comes while one is being typed makes one more', async () => {
  await using stage = quietCity()
  const { mail, wish, asleep, queued } = stage
  const { id } = await asleep()
  mail.letters.set('box', ['one'])
  await wish(mailboxOfSession(id))
  const [one] = queued(id)
  assert.ok(one !== undefined)
  await begin(stage, one.id)
  for (let n = 0; n < 3; n++) await wish(mailboxOfSession(id))
  assert.equal(queued(id).length, 1)
  await end(stage, one.id, 'delivered')
  const [next, ...more] = queued(id)
  assert.ok(next !== undefined && next.id !== one.id)
  assert.equal(more.length, 0)
})

test('what failed is told again, later each time, and its text is made anew', async () => {
  const clock = new ManualClock()
  await using stage = quietCity({ clock })
  const { city, mail, wish, asleep, queued } = stage
  const { id } = await asleep()
  mail.letters.set('box', ['one'])
  await wish(mailboxOfSession(id))
  const tried: string[] = []
  for (const after of [5_000, 10_000, 20_000]) {
    const [one] = queued(id)
    assert.ok(one !== undefined)
    tried.push(one.id)
    await begin(stage, one.id)
    await end(stage, one.id, 'failed')
    assert.equal(queued(id).length, 0)
    await wish(mailboxOfSession(id))
    assert.equal(queued(id).length, 0, 'a new letter does not hurry it')
    await clock.advance(after - 1)
    await city.sessions.digests.look()
    assert.equal(queued(id).length, 0)
    await clock.advance(1)
    await city.sessions.digests.look()
    assert.equal(queued(id).length, 1)
  }
  assert.deepEqual(
    mail.told,
    tried.map((one) => [one, false]),
  )
})

test('a try that typed nothing is undone with its source, and made anew at its place', async () => {
  await using stage = quietCity()
  const { city, mail, wish, write, asleep, queued } = stage
  const { id } = await asleep()
  mail.letters.set('box', ['one'])
  await wish(mailboxOfSession(id))
  const [one] = queued(id)
  assert.ok(one !== undefined)
  await begin(stage, one.id)
  await write((tx) => city.sessions.deliveries.requeue(tx, one.id))
  mail.letters.set('box', ['two'])
  await begin(stage, one.id)
  assert.equal(city.delivery(id, one.id).text, 'two')
  assert.deepEqual(mail.told, [[one.id, false]])
})

test('reminders are outside of the bound of 1,000 messages, and have their own', async () => {
  await using stage = quietCity()
  const { city, wish, write, asleep, queued } = stage
  const { id } = await asleep()
  const add = (tx: Tx) =>
    city.sessions.deliveries.add(
      tx,
      city.sessions.store.need(tx, id),
      { source: 'nudge', intent: 'default', text: 'x', ttlMs: 60_000 },
      'api',
    )
  for (let n = 0; n < 120; n++) await wish(mailboxOfSession(id), { reference: `room ${n}` })
  assert.equal(queued(id).length, 100)
  await write((tx) => {
    for (let n = 0; n < 1_000; n++) add(tx)
  })
  await assert.rejects(write(add), /1000 messages wait/)
  const [one] = queued(id)
  assert.ok(one !== undefined)
  await begin(stage, one.id)
  assert.equal(queued(id).filter(({ source }) => source === 'mail').length, 100, 'another one has its place')
})

test('a session that closes drops what was for itself; what was for its agent waits for the next one', async () => {
  const agent = { ...AGENT, provider: 'cat' }
  const named = { identity: 'worker', rig: '', mode: 'on_demand', agent: 'worker', disabled: false } as const
  await using stage = quietCity({ config: { agents: [agent], named_sessions: [named] } })
  const { city, mail, wish, write, queued, wishes } = stage
  const mailbox = mailboxOfAgent('worker')
  await wish(mailbox)
  assert.equal(city.sessions.store.open().length, 0, 'nobody is made for what wakes nobody')
  await wish(mailbox, { wakes: true })
  const [first] = city.sessions.store.open()
  assert.ok(first !== undefined)
  assert.deepEqual([first.named, first.state], ['worker', 'asleep'])
  const [one] = queued(first.id)
  assert.ok(one?.wakes)
  await write((tx) =>
    city.sessions.digests.wish(
      tx,
      { mailbox: mailboxOfSession(first.id) },
      {
        source: 'chat',
        reference: 'room',
        wakes: true,
      },
    ),
  )
  mail.letters.set('box', ['one'])
  await begin(stage, one.id)
  await write((tx) => city.sessions.close(tx, first.id, 'api', 'requested'))
  assert.equal(city.delivery(first.id, one.id).error_code, 'delivery_uncertain')
  assert.deepEqual(mail.told, [[one.id, false]])
  assert.deepEqual(
    wishes().map((row) => [row.mailbox, row.wakes, row.delivery_id]),
    [['agent:worker', 0, null]],
  )
  await city.sessions.digests.look()
  assert.equal(city.sessions.store.open().length, 0, 'who was closed is not brought back')
  const second = await city.create({
    kind: 'agent',
    template: 'worker',
    origin: 'named',
    named: 'worker',
    owner: 'worker',
    alias: 'worker',
    state: 'asleep',
  })
  await write((tx) =>
    city.sessions.digests.sessionStarts(tx, city.sessions.store.need(tx, second.id), { isNew: false }),
  )
  assert.equal(queued(second.id).length, 1)
})

test('an agent whose session ended by itself is made again for what it has to be told, later each time', async () => {
  const clock = new ManualClock()
  const agent = { ...AGENT, provider: 'cat' }
  const named = { identity: 'worker', rig: '', mode: 'on_demand', agent: 'worker', disabled: false } as const
  await using stage = quietCity({ clock, config: { agents: [agent], named_sessions: [named] } })
  const { city, wish, write, queued, wishes } = stage
  const ended = async (wait: number) => {
    const [open] = city.sessions.store.open()
    assert.ok(open !== undefined, 'it was made')
    assert.ok(queued(open.id)[0]?.wakes)
    await write((tx) =>
      city.sessions.closeOut(
        tx,
        city.sessions.store.move(tx, open.id, 'close', { actor: 'supervisor', reason: 'no-wake-reason' }),
      ),
    )
    assert.deepEqual(
      wishes().map((row) => [row.mailbox, row.wakes, row.delivery_id]),
      [['agent:worker', 1, null]],
    )
    await clock.advance(wait - 1)
    assert.equal(city.sessions.store.open().length, 0, 'not a moment earlier')
    await clock.advance(1)
    await eventually('it is made again', () => city.sessions.store.open()[0])
  }
  await wish(mailboxOfAgent('worker'), { wakes: true })
  await ended(5_000)
  await ended(10_000)
})

test('a new conversation is told of everything that is unread', async () => {
  await using stage = quietCity()
  const { city, mail, write, asleep, queued } = stage
  const { id } = await asleep()
  mail.unreadIn = ['box', 'other']
  await write((tx) => city.sessions.digests.sessionStarts(tx, city.sessions.store.need(tx, id), { isNew: true }))
  assert.equal(queued(id).length, 2)
  mail.letters.set('box', ['one'])
  for (const one of queued(id)) await begin(stage, one.id)
  await write((tx) => city.sessions.store.change(tx, id, { continuation_epoch: 2 }, { actor: 'supervisor' }))
  await write((tx) => city.sessions.digests.sessionStarts(tx, city.sessions.store.need(tx, id), { isNew: true }))
  for (const one of queued(id)) await end(stage, one.id, 'delivered')
  for (const one of queued(id)) await begin(stage, one.id)
  assert.deepEqual([...new Set(mail.readers.map(({ conversation }) => conversation))], [`${id}.1`, `${id}.2`])
})

test('nobody is told, or made, whose program takes no words of ours, whose agent is held, or whose name is taken', async () => {
  const agents = [
    { ...AGENT, identity: 'shell', provider: 'bash' },
    { ...AGENT, identity: 'held', provider: 'cat', suspended: true },
    { ...AGENT, identity: 'taken', provider: 'cat' },
    { ...AGENT, identity: 'many', provider: 'cat', scales: true },
    { ...AGENT, identity: 'lone', provider: 'cat' },
  ]
  const named_sessions = ['shell', 'held', 'taken'].map(
    (identity) => ({ identity, rig: '', mode: 'on_demand', agent: identity, disabled: false }) as const,
  )
  await using stage = quietCity({ config: { agents, named_sessions } })
  const { city, wish, wishes, queued } = stage
  const other = await city.create({ template: 'cat', alias: 'taken', state: 'asleep' })
  for (const { identity } of agents) await wish(mailboxOfAgent(identity), { wakes: true })
  await wish('human', { wakes: true })
  const made = city.sessions.store.open().filter(({ id }) => id !== other.id)
  assert.deepEqual(
    made.map(({ agent, origin, pool }) => [agent, origin, pool]),
    [['lone', 'ephemeral', 'lone']],
  )
  const bash = await city.create({ state: 'asleep' })
  await wish(mailboxOfSession(bash.id), { wakes: true })
  assert.equal(queued(bash.id).length, 0)
  assert.ok(!wishes().some(({ mailbox }) => mailbox === mailboxOfSession(bash.id) || mailbox === 'human'))
  city.config = { ...city.config, agents: agents.map((agent) => ({ ...agent, suspended: false })) }
  await city.sessions.digests.look()
  assert.ok(city.sessions.store.byNamed('held') !== undefined, 'it is told once the hold is lifted')
})

test('a wish that wakes makes the reminder that waits wake', async () => {
  await using stage = quietCity()
  const { wish, asleep, queued } = stage
  const { id } = await asleep()
  await wish(mailboxOfSession(id))
  assert.equal(queued(id)[0]?.wakes, false)
  await wish(mailboxOfSession(id), { wakes: true })
  await wish(mailboxOfSession(id))
  assert.deepEqual(
    queued(id).map(({ wakes }) => wakes),
    [true],
  )
})

test('somebody who cancels a reminder is not reminded again of the same', async () => {
  await using stage = quietCity()
  const { city, wish, write, asleep, queued, wishes } = stage
  const { id } = await asleep()
  await wish(mailboxOfSession(id))
  const [one] = queued(id)
  assert.ok(one !== undefined)
  await write((tx) => city.sessions.deliveries.cancel(tx, id, one.id, 'api'))
  assert.deepEqual([queued(id), wishes()], [[], []])
})
