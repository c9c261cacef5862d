import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { ManualClock } from '../../../../test/support/manual-clock.ts'
import { HUMAN, type Mailbox } from '../../../messaging/address.ts'
import { normalConversation } from '../../../messaging/conversation.ts'
import type { EntryDraft } from '../entries/rows.ts'
import { DEFAULT_FANOUT } from '../routing/groups.ts'
import { opened, SAID } from '../testing.ts'
import { type Called, Notices } from './notices.ts'

const ROOM = { provider: 'irc', account_id: 'libera', conversation_id: '#builds', kind: 'room' }
const MAYOR: Mailbox = 'agent:mayor'
const OPS: Mailbox = 'agent:rig/ops'
const CALLED: Readonly<Record<string, Mailbox>> = { mayor: MAYOR }

/** A room that the mayor and ops read. */
async function room(t: TestContext, bounds: Partial<typeof DEFAULT_FANOUT> = {}, hearsBots = false) {
  const clock = new ManualClock()
  const store = opened(t, clock)
  const { db, log, transcripts, members } = store
  const wishes: string[] = []
  const notices = new Notices({
    city: 'alpha',
    clock,
    log,
    transcripts,
    members,
    callings: {
      bounds: () => ({ ...DEFAULT_FANOUT, ...bounds }),
      handles: (_, __, mailbox) => Object.keys(CALLED).filter((handle) => CALLED[handle] === mailbox),
      whose: (_, __, handle) => CALLED[handle],
    },
    hearsBots: () => hearsBots,
    digests: {
      wish: (_, { mailbox }, { wakes }) => void wishes.push(`${mailbox}${wakes ? '!' : ''}`),
    },
    nameOf: (mailbox) => mailbox.split(':').at(-1) ?? '',
    fileOf: (_, id) => `/files/${id}`,
  })
  const id = await db.write((tx) => {
    const { id } = transcripts.ensure(tx, normalConversation(ROOM, 'alpha'))
    for (let n = 0; n < 3; n++) transcripts.append(tx, id, { ...SAID, text: `before ${n}` })
    for (const mailbox of [MAYOR, OPS, HUMAN]) members.join(tx, id, mailbox, { owner: 'manual', actor: 'api' })
    return id
  })
  const heard = () => wishes.splice(0)
  const said = async (draft: Partial<EntryDraft> = {}, route: Called = { match: 'unrouted' }) => {
    await db.write((tx) => {
      const entry = transcripts.append(tx, id, { ...SAID, ...draft })
      notices.inbound(tx, transcripts.need(id, tx), entry, route)
    })
    return heard()
  }
  const publish = (mailbox: Mailbox | undefined, draft: Partial<EntryDraft> = {}) =>
    db.write((tx) =>
      transcripts.append(tx, id, {
        ...SAID,
        kind: 'outbound',
        deliveryStatus: 'pending',
        root: transcripts.rootOf(tx, id),
        ...(mailbox === undefined ? {} : { mailbox }),
        ...draft,
      }),
    )
  const arrived = async (sequence: number) => {
    await db.write((tx) => {
      const entry = transcripts.settle(tx, id, sequence, { status: 'delivered' })
      if (entry !== undefined) notices.published(tx, transcripts.need(id, tx), entry)
    })
    return heard()
  }
  const told = (mailbox: Mailbox, conversation = 'one', delivered: boolean | 'later' = true) =>
    db.write((tx) => {
      const text = notices.begin(tx, { mailbox, conversation, sessionId: 's-1', delivery: `d-${mailbox}` }, id)
      if (text !== undefined && delivered !== 'later') notices.ended(tx, `d-${mailbox}`, delivered)
      return text === undefined ? undefined : [...text.matchAll(/^\[(\d+)\]/gm)].map(([, sequence]) => Number(sequence))
    })
  const ended = (mailbox: Mailbox, delivered: boolean) => db.write((tx) => notices.ended(tx, `d-${mailbox}`, delivered))
  return { ...store, clock, notices, id, said, publish, arrived, told, ended }
}

test('whom it is for is woken, others are told when they are idle, people are not told here', async (t) => {
  const { said, told, db, notices } = await room(t)
  assert.deepEqual(
    await said({ explicitTarget: 'mayor' }, { match: 'explicit_target', target: MAYOR, handle: 'mayor' }),
    ['agent:mayor!', 'agent:rig/ops'],
  )
  assert.deepEqual(await said(), ['agent:mayor', 'agent:rig/ops'])
  assert.deepEqual(await told(MAYOR), [4, 5], 'not what was said before it read along')
  assert.equal(await told(MAYOR), undefined)
  assert.deepEqual(await told(OPS), [4, 5])
  const text = await db.write((tx) =>
    notices.begin(
      tx,
      { mailbox: OPS, conversation: 'two', sessionId: 's', delivery: 'd' },
      notices.unread(tx, OPS)[0] ?? '',
    ),
  )
  assert.match(text ?? '', /Ada to mayor:\n\| hello\n\(Not for you/)
})

test('a bot is heard by whom it calls, by handle or by name, and by nobody else', async (t) => {
  const { said, told } = await room(t)
  const bot = { actor: { id: 'b', display_name: 'build', is_bot: true } }
  assert.deepEqual(await said(bot, { match: 'binding', target: MAYOR }), [])
  assert.deepEqual(await said({ ...bot, explicitTarget: 'mayor' }, { match: 'explicit_target', target: MAYOR }), [
    'agent:mayor!',
  ])
  assert.deepEqual(await said({ ...bot, explicitTarget: 'OPS' }, { match: 'no_match' }), ['agent:rig/ops'])
  assert.deepEqual(await told(OPS), [6])
})

test('a bot of an adapter without a way out notifies like a person: nothing can answer it', async (t) => {
  const { said, told } = await room(t, {}, true)
  const bot = { actor: { id: 'github:1', display_name: 'dependabot[bot]', is_bot: true } }
  assert.deepEqual(await said(bot, { match: 'binding', target: MAYOR }), ['agent:mayor!', 'agent:rig/ops'])
  assert.deepEqual(await told(MAYOR), [4])
  assert.deepEqual(await said({ ...bot, explicitTarget: 'mayor' }, { match: 'binding', target: OPS }), [
    'agent:mayor',
    'agent:rig/ops!',
  ])
  assert.deepEqual(await told(OPS), [4, 5])
})

test('what was not delivered is told again, and what was read is not told', async (t) => {
  const { said, told, db, members, id } = await room(t)
  await said()
  assert.deepEqual(await told(MAYOR, 'one', false), [4])
  await said()
  assert.deepEqual(await told(MAYOR), [4, 5])
  await said()
  await said()
  await db.write((tx) => members.ack(tx, id, MAYOR, 6))
  assert.deepEqual(await told(MAYOR), [7])
  await said()
  await db.write((tx) => members.ack(tx, id, MAYOR, 8))
  assert.equal(await told(MAYOR), undefined)
})

test('a new conversation of an agent is told again of what was not answered', async (t) => {
  const { said, publish, arrived, told, notices, db, id } = await room(t)
  await said()
  await told(MAYOR)
  assert.deepEqual(await told(MAYOR, 'two'), [4])
  const { sequence } = await publish(MAYOR)
  await arrived(sequence)
  assert.equal(await told(MAYOR, 'three'), undefined)
  await said()
  const unread = () => db.write((tx) => notices.unread(tx, MAYOR))
  assert.deepEqual(await unread(), [id])
  assert.deepEqual(await told(MAYOR, 'four'), [6])
  assert.deepEqual(await unread(), [id], 'a fifth one would not know')
  assert.deepEqual(await db.write((tx) => notices.unread(tx, 'agent:nobody')), [])
})

test('words of a session are told to others once they are said, also behind later ones', async (t) => {
  const { said, publish, arrived, told, ended } = await room(t)
  await said()
  const first = await publish(MAYOR)
  const second = await publish(MAYOR)
  await said()
  assert.deepEqual(await told(OPS), [4, 7])
  assert.deepEqual(await arrived(first.sequence), ['agent:rig/ops'])
  assert.deepEqual(await told(OPS, 'one', 'later'), [5])
  assert.deepEqual(await arrived(second.sequence), ['agent:rig/ops'])
  await ended(OPS, true)
  assert.deepEqual(await told(OPS), [6], 'what was said while it was told of another')
  assert.equal(await told(OPS), undefined)
  assert.deepEqual(await told(MAYOR), [4, 7], 'not of its own words')
})

test('an argument among sessions ends, and whoever is called is told first', async (t) => {
  const { said, publish, arrived, log } = await room(t, { max_total_peer_deliveries: 0 })
  await said()
  const exchange = async (count: number, ...speakers: readonly Mailbox[]) => {
    const heard: (readonly string[])[] = []
    for (let n = 0; n < count; n++) {
      const speaker = speakers[n % speakers.length]
      heard.push(await arrived((await publish(speaker)).sequence))
    }
    return heard.map(({ length }) => length)
  }
  assert.deepEqual(await exchange(7, MAYOR, OPS), [1, 1, 1, 1, 1, 0, 0])
  const { events } = log.scan({ types: ['extmsg.fanout_suppressed'] }, { after: 0, upTo: log.head }, 'asc', 100)
  assert.deepEqual(
    events.map(({ envelope }) => {
      const { limit, suppressed, root } = Object(JSON.parse(envelope).payload)
      return [limit, suppressed, root]
    }),
    [
      ['peer_triggered_publishes', 1, 4],
      ['peer_triggered_publishes', 1, 4],
    ],
  )
  assert.deepEqual(await arrived((await publish(undefined)).sequence), ['agent:mayor', 'agent:rig/ops'], 'the operator')
  await said({ actor: { id: 'b', display_name: 'build', is_bot: true } })
  assert.deepEqual(await exchange(1, OPS), [0], 'a bot begins nothing')
  await said()
  assert.deepEqual(await exchange(1, OPS), [1], 'a word from outside begins anew')
})

test('where nobody outside spoke, an exchange is over when it has been quiet for a while', async (t) => {
  const { publish, arrived, clock, db, id } = await room(t, { max_total_peer_deliveries: 2 })
  await db.write((tx) => tx.run('DELETE FROM transcript_entries WHERE transcript_id = ?', id))
  const speak = async (target?: string) =>
    arrived((await publish(MAYOR, { root: 0, ...(target === undefined ? {} : { explicitTarget: target }) })).sequence)
  assert.deepEqual([await speak(), await speak('ops'), await speak()], [['agent:rig/ops'], ['agent:rig/ops!'], []])
  await clock.advance(600_001)
  assert.deepEqual(await speak(), ['agent:rig/ops'])
})

test('who leaves is told no more, and begins anew when it comes back', async (t) => {
  const { said, told, db, members, id } = await room(t)
  await said()
  await db.write((tx) => members.leave(tx, id, OPS, 'manual', 'api'))
  assert.equal(await told(OPS), undefined)
  await said()
  await db.write((tx) => members.join(tx, id, OPS, { owner: 'manual', actor: 'api' }))
  await said()
  assert.deepEqual(await told(OPS), [6])
})

test('more than twenty are the newest twenty, and where the others are', async (t) => {
  const { said, db, notices, id } = await room(t)
  for (let n = 0; n < 25; n++) await said()
  const text = await db.write((tx) =>
    notices.begin(tx, { mailbox: MAYOR, conversation: 'one', sessionId: 's-1', delivery: 'd' }, id),
  )
  assert.match(text ?? '', /^Chat: 20 new messages/)
  assert.match(text ?? '', /after_sequence=3&before_sequence=9$/m)
})
