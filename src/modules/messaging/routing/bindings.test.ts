import assert from 'node:assert/strict'
import { test } from 'node:test'
import { chats, ROOM, ROOM_ID, THREAD, THREAD_ID } from '../../../../test/support/chat-store.ts'
import { HUMAN } from '../../../messaging/address.ts'
import { sweepsOfRows } from '../sweeps.ts'
import { bindingExpiry } from './expiry.ts'
import { targetOf, wordTarget } from './targets.ts'

const MAYOR = { mailbox: 'agent:mayor' } as const
const WORKER = { mailbox: 'session:s2', session_id: 's2', session_name: 'runtime-s2' } as const

test('a binding is made, refreshed, refused to others, handed over and ended, each told once', async (t) => {
  const { db, routing, bind, events, readers, clock } = chats(t)
  const first = await bind(ROOM, MAYOR)
  assert.deepEqual([first.generation, first.mailbox, readers(ROOM_ID)], [1, 'agent:mayor', ['agent:mayor']])
  const again = await bind(ROOM, MAYOR)
  assert.deepEqual([again.id, again.generation], [first.id, 1])
  await assert.rejects(bind(ROOM, WORKER), /bound to mayor \(bd-1, generation 1\); `replace` takes it over/)

  const { bindings } = routing
  const draft = { conversation: ROOM, reason: 'bound' } as const
  const metadata = { note: 'a' }
  const renewed = await db.write((tx) =>
    bindings.bind(tx, { ...draft, target: MAYOR, metadata, expires_at: clock.now() + 1_000 }, 'api'),
  )
  assert.deepEqual([renewed.isNew, renewed.binding.metadata], [false, metadata])
  const taken = await db.write((tx) => bindings.bind(tx, { ...draft, target: WORKER, replace: true }, 'api'))
  assert.deepEqual([taken.isNew, taken.binding.generation, readers(ROOM_ID)], [true, 2, ['session:s2']])
  await db.write((tx) => bindings.end(tx, taken.binding, 'requested', 'api'))
  assert.deepEqual(readers(ROOM_ID), [])
  assert.equal((await bind(ROOM, MAYOR)).generation, 3, 'no number is used again')
  assert.deepEqual(events(/bound$/), [
    'extmsg.bound mayor',
    'extmsg.bound mayor',
    'extmsg.unbound mayor',
    'extmsg.bound s2',
    'extmsg.unbound s2',
    'extmsg.bound mayor',
  ])
})

test('one that has expired counts no more, and is ended by whoever touches it', async (t) => {
  const { db, routing, bind, events, clock } = chats(t)
  const { bindings } = routing
  await db.write((tx) =>
    bindings.bind(tx, { conversation: ROOM, target: MAYOR, reason: 'bound', expires_at: clock.now() + 10 }, 'api'),
  )
  assert.ok(bindings.active(db, ROOM_ID))
  await clock.advance(10)
  assert.equal(bindings.active(db, ROOM_ID), undefined)
  assert.equal((await bind(ROOM, WORKER)).generation, 2)
  assert.deepEqual(events(/bound$/), ['extmsg.bound mayor', 'extmsg.unbound mayor', 'extmsg.bound s2'])
})

test('one that nobody touches ends when its time has come', async (t) => {
  const { db, routing, events, clock } = chats(t)
  const { bindings } = routing
  const expiry = bindingExpiry({
    db,
    clock,
    log: { warn: (fields) => assert.fail(JSON.stringify(fields)) },
    bindings,
  })
  t.after(() => expiry.stop())
  void expiry.start()
  const until = (conversation: typeof ROOM, ms: number) =>
    db.write((tx) => bindings.bind(tx, { conversation, target: MAYOR, reason: 'bound', expires_at: ms }, 'api'))
  await until(ROOM, clock.now() + 2_000)
  await until(THREAD, clock.now() + 1_000)
  await clock.advance(1_000)
  assert.deepEqual(events(/unbound/), ['extmsg.unbound mayor'])
  await clock.advance(1_000)
  assert.equal(events(/unbound/).length, 2)
  assert.equal(clock.pending, 0)
})

test('the end of a session ends what is for it alone, and nothing of agents', async (t) => {
  const { db, routing, bind, readers, events, members } = chats(t)
  const other = { ...ROOM, conversation_id: '#other' }
  const mine = { mailbox: 'agent:mayor', session_id: 's1', session_name: 'runtime-s1' } as const
  const ofSession = await bind(ROOM, mine)
  const ofAgent = await bind(other, MAYOR)
  const group = await db.write((tx) => {
    const made = routing.groups.ensure(tx, { conversation: THREAD }, 'api').group
    routing.groups.upsert(tx, { group_id: made.id, handle: 'One', target: mine }, 'api')
    routing.groups.upsert(tx, { group_id: made.id, handle: 'two', target: MAYOR }, 'api')
    routing.groups.upsert(tx, { group_id: made.id, handle: 'worker', target: WORKER }, 'api')
    members.join(tx, ROOM_ID, 'session:s2', { owner: 'manual', actor: 'api' })
    return made
  })
  await db.write((tx) => routing.sessionClosed(tx, 's1', 'agent:mayor'))
  assert.equal(routing.bindings.need(db, ofSession.id).ended_reason, 'session_closed')
  assert.equal(routing.bindings.need(db, ofAgent.id).ended_at, undefined)
  assert.deepEqual(
    routing.groups.participants(db, group.id).map(({ handle }) => handle),
    ['two', 'worker'],
  )
  assert.deepEqual(readers(THREAD_ID), ['agent:mayor', 'session:s2'], 'another handle is the same agent')
  await db.write((tx) => routing.sessionClosed(tx, 's2', 'session:s2'))
  assert.deepEqual([readers(THREAD_ID), readers(ROOM_ID)], [['agent:mayor'], []])
  assert.equal(events(/participant_removed/).length, 2)
})

test('bindings end that all of what is said is true of', async (t) => {
  const { db, routing, bind } = chats(t)
  const { bindings } = routing
  const other = { ...ROOM, conversation_id: '#other' }
  const ended = (of: Parameters<typeof bindings.endMatching>[1]) =>
    db.write((tx) =>
      bindings.endMatching(tx, of, 'requested', 'api').map(({ conversation }) => conversation.conversation_id),
    )
  await bind(ROOM, MAYOR)
  await bind(other, WORKER)
  assert.deepEqual(await ended({ transcript: ROOM_ID, session: 's2' }), [])
  assert.deepEqual(await ended({ mailbox: 'agent:mayor', transcript: ROOM_ID }), ['#ops'])
  assert.deepEqual(await ended({ mailbox: 'session:s2' }), [], 'it is for that session alone')
  assert.deepEqual(await ended({ session: 's2' }), ['#other'])
  assert.deepEqual(await ended({ session: 's2' }), [])
})

test('whom a request may name, and how', (t) => {
  const { routing } = chats(t)
  const all = ['session_id', 'agent_name', 'mailbox'] as const
  const named = (words: object) => targetOf(routing.deps, words, all)
  assert.deepEqual(named({ session_id: 'worker' }), WORKER)
  assert.deepEqual(named({ agent_name: 'poet' }), { mailbox: 'agent:poet' })
  assert.deepEqual(named({ mailbox: 'human' }), { mailbox: HUMAN })
  assert.deepEqual(named({ session_id: 's1' }), {
    mailbox: 'agent:mayor',
    session_id: 's1',
    session_name: 'runtime-s1',
  })
  const refusals: readonly [object, RegExp][] = [
    [{}, /exactly one of session_id, agent_name, mailbox, not none/],
    [{ session_id: 's2', agent_name: 'poet' }, /not session_id and agent_name/],
    [{ session_id: 's9' }, /session s9 is closed/],
    [{ session_id: 'nobody' }, /nobody is called nobody/],
    [{ session_id: 'poet' }, /poet has no session at the moment/],
    [{ session_id: 'mute' }, /a chat must not become a shell/],
    [{ agent_name: 'shell' }, /a chat must not become a shell/],
    [{ agent_name: 'worker' }, /no configured named session or agent/],
    [{ agent_name: 'pool' }, /pool is a pool/],
  ]
  for (const [words, says] of refusals) assert.throws(() => named(words), says)
  assert.deepEqual(wordTarget(routing.deps, 'mayor', 'body.target'), MAYOR)
  assert.equal(wordTarget(routing.deps, 's1', 'body.target').session_id, 's1')
  assert.equal(wordTarget(routing.deps, 'worker', 'body.target').session_id, 's2')
  assert.throws(() => wordTarget(routing.deps, 's9', 'body.target'), /session s9 is closed/)
  assert.throws(() => wordTarget(routing.deps, 'human', 'body.target'), /only a binding gives them a conversation/)
})

test('bindings and participants that have ended are kept for 30 days', async (t) => {
  const { db, routing, bind, clock } = chats(t)
  const ended = await bind(ROOM, MAYOR)
  await db.write((tx) => routing.bindings.end(tx, ended, 'requested', 'api'))
  const next = await bind(ROOM, MAYOR)
  const sweep = async () => {
    for (const one of sweepsOfRows(db, clock)) await one.run({ agesCount: true, isOver: false })
  }
  await clock.advance(29 * 86_400_000)
  await sweep()
  assert.ok(routing.bindings.find(db, ended.id))
  await clock.advance(2 * 86_400_000)
  await db.write((tx) => routing.bindings.end(tx, next, 'requested', 'api'))
  await sweep()
  assert.equal(routing.bindings.find(db, ended.id), undefined)
  assert.ok(routing.bindings.find(db, next.id))
})

test('a group is made once, and keeps what a request does not say', async (t) => {
  const { db, routing, events } = chats(t)
  const { groups } = routing
  const draft = { conversation: ROOM, default_handle: ' Mayor ', metadata: { a: '1' } }
  const made = await db.write((tx) => groups.ensure(tx, draft, 'api'))
  assert.deepEqual(
    [made.isNew, made.group.default_handle, made.group.fanout.max_total_peer_deliveries],
    [true, 'mayor', 20],
  )
  const same = await db.write((tx) => groups.ensure(tx, { conversation: ROOM }, 'api'))
  assert.deepEqual(same, { isNew: false, group: made.group })
  const change = { conversation: ROOM, fanout: { max_total_peer_deliveries: 5 }, metadata: { b: '2' } }
  const { group } = await db.write((tx) => groups.ensure(tx, change, 'api'))
  assert.deepEqual(group.metadata, { a: '1', b: '2' })
  assert.deepEqual(
    [group.fanout.max_total_peer_deliveries, group.fanout.enabled, group.default_handle],
    [5, true, 'mayor'],
  )
  await assert.rejects(
    db.write((tx) => groups.patch(tx, group, { default_handle: 'ghost' }, 'api')),
    /body.default_handle: is the handle of no participant/,
  )
  const cleared = await db.write((tx) =>
    groups.patch(tx, group, { default_handle: null, metadata: { a: null } }, 'api'),
  )
  assert.deepEqual([cleared.default_handle, cleared.metadata], [undefined, { b: '2' }])
  assert.deepEqual(
    events(/group/).map((event) => event.split(' ')[0]),
    ['extmsg.group_created', 'extmsg.group_updated', 'extmsg.group_updated'],
  )
})

test('who is meant where nobody is called may come later, and is no mistyped name once somebody is there', async (t) => {
  const { db, routing } = chats(t)
  const { groups } = routing
  const ensure = (handle: string) =>
    db.write((tx) => groups.ensure(tx, { conversation: ROOM, default_handle: handle }, 'api'))
  const { group } = await ensure('mayor')
  assert.equal((await ensure('clerk')).group.default_handle, 'clerk')
  await db.write((tx) => groups.upsert(tx, { group_id: group.id, handle: 'mayor', target: MAYOR }, 'api'))
  assert.equal((await ensure('Clerk ')).group.default_handle, 'clerk', 'it is what it was: he is still to come')
  await assert.rejects(ensure('mayro'), /body.default_handle: is the handle of no participant/)
  assert.equal((await ensure('MAYOR')).group.default_handle, 'mayor')
})

test('a handle moves to another, who reads then in place of the first', async (t) => {
  const { db, routing, readers, events } = chats(t)
  const { groups } = routing
  const upsert = (handle: string, target: typeof MAYOR | typeof WORKER, group: string) =>
    db.write((tx) => groups.upsert(tx, { group_id: group, handle, target }, 'api'))
  const { group } = await db.write((tx) => groups.ensure(tx, { conversation: ROOM }, 'api'))
  const first = await upsert('Boss', MAYOR, group.id)
  assert.deepEqual([first.isNew, first.participant.handle, readers(ROOM_ID)], [true, 'boss', ['agent:mayor']])
  const unchanged = await upsert('boss', MAYOR, group.id)
  assert.deepEqual(unchanged, { isNew: false, participant: first.participant })
  const moved = await upsert('boss', WORKER, group.id)
  assert.deepEqual([moved.isNew, moved.participant.id], [false, first.participant.id])
  assert.deepEqual(readers(ROOM_ID), ['session:s2'])
  await assert.rejects(upsert('x', MAYOR, 'gr-none'), /there is no group gr-none/)
  await assert.rejects(upsert('   ', MAYOR, group.id), /nothing but blanks/)
  await db.write((tx) => groups.delete(tx, group, 'api'))
  assert.deepEqual(readers(ROOM_ID), [])
  assert.deepEqual(
    events(/group|participant/).map((event) => event.split(' ')[0]),
    [
      'extmsg.group_created',
      'extmsg.participant_upserted',
      'extmsg.participant_upserted',
      'extmsg.participant_removed',
      'extmsg.group_deleted',
    ],
  )
})

test('who may speak: whoever the conversation belongs to, or has a handle there; in threads too', async (t) => {
  const { db, routing, bind } = chats(t)
  const mayor = { mailbox: 'agent:mayor', display: 'mayor', session_id: 's1' } as const
  const worker = { mailbox: 'session:s2', display: 'worker', session_id: 's2' } as const
  const codeFor = (conversation: typeof ROOM, speaker: typeof mayor | typeof worker) =>
    routing.refusalToSpeak(db, conversation, speaker)?.problem.code
  assert.equal(codeFor(ROOM, mayor), 'conversation-unbound')
  await bind(ROOM, MAYOR)
  for (const place of [ROOM, THREAD]) {
    assert.equal(codeFor(place, mayor), undefined)
    assert.equal(codeFor(place, worker), 'session-forbidden')
    assert.equal(routing.refusalToSpeak(db, place, worker)?.owner, 'agent:mayor')
  }
  await db.write((tx) => {
    const { group } = routing.groups.ensure(tx, { conversation: THREAD }, 'api')
    routing.groups.upsert(tx, { group_id: group.id, handle: 'w', target: WORKER }, 'api')
  })
  assert.deepEqual([codeFor(THREAD, worker), codeFor(THREAD, mayor)], [undefined, 'session-forbidden'])
})
