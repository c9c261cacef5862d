/**
 * What one member is told of a conversation, against a model: people and others speak, words become public late and out of
 * order, tries fail, it reads, speaks and begins anew.
 *
 *   SVC_SEED=123 n26 --test src/modules/messaging/notices/notices-model.test.ts     the same order again
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { seededRandom } from '../../../../test/support/random.ts'
import { systemClock } from '../../../kernel/clock.ts'
import type { Tx } from '../../../kernel/database.ts'
import type { Mailbox } from '../../../messaging/address.ts'
import { normalConversation } from '../../../messaging/conversation.ts'
import { DEFAULT_FANOUT } from '../routing/groups.ts'
import { opened, SAID } from '../testing.ts'
import { Notices } from './notices.ts'

const STEPS = process.env['SVC_SOAK'] === '1' ? 5_000 : 300
const MAYOR: Mailbox = 'agent:mayor'
const OPS: Mailbox = 'agent:ops'
const ROOM = { provider: 'irc', account_id: 'libera', conversation_id: '#builds', kind: 'room' }

test('a member is told of everything that others say, once in each conversation of its agent', async (t) => {
  const random = seededRandom()
  t.diagnostic(`SVC_SEED=${random.seed}`)
  const { db, log, transcripts, members } = opened(t)
  let wished = false
  const notices = new Notices({
    city: 'alpha',
    clock: systemClock,
    log,
    transcripts,
    members,
    callings: {
      bounds: () => ({ ...DEFAULT_FANOUT, max_total_peer_deliveries: 0, max_peer_triggered_publishes: 0 }),
      handles: () => [],
      whose: () => undefined,
    },
    hearsBots: () => false,
    digests: {
      wish: (_, { mailbox }) => {
        if (mailbox === MAYOR) wished = true
      },
    },
    nameOf: (mailbox) => mailbox,
    fileOf: () => undefined,
  })
  const id = await db.write((tx) => {
    const { id } = transcripts.ensure(tx, normalConversation(ROOM, 'alpha'))
    for (const mailbox of [MAYOR, OPS]) members.join(tx, id, mailbox, { owner: 'manual', actor: 'api' })
    return id
  })
  const write = <T>(change: (tx: Tx) => T) => db.write(change)
  const pending: number[] = []
  /** What others have said for all to see. */
  const spoken = new Set<number>()
  /** What it was told in its present conversation, and what it need not be told there. */
  const told = new Set<number>()
  let read = 0
  /** The last that an earlier conversation was told, and the last that it said itself: up to there it is done. */
  let before = 0
  let published = 0
  let done = 0
  let conversation = 0
  let trying: readonly number[] | undefined

  const speak = (tx: Tx, mailbox: Mailbox) => {
    const { sequence } = transcripts.append(tx, id, {
      ...SAID,
      kind: 'outbound',
      deliveryStatus: 'pending',
      mailbox,
      root: 0,
    })
    pending.push(sequence)
  }
  const steps: readonly ((tx: Tx) => void)[] = [
    (tx) => {
      const entry = transcripts.append(tx, id, SAID)
      spoken.add(entry.sequence)
      notices.inbound(tx, transcripts.need(id, tx), entry, { match: 'unrouted' })
    },
    (tx) => speak(tx, random.chance(0.8) ? OPS : MAYOR),
    // One of what is pending is in the chat, not always the first.
    (tx) => {
      const [sequence] = pending.splice(random.between(0, Math.max(pending.length - 1, 0)), 1)
      if (sequence === undefined) return
      const entry = transcripts.settle(tx, id, sequence, { status: 'delivered' }) ?? assert.fail()
      notices.published(tx, transcripts.need(id, tx), entry)
      if (entry.mailbox === MAYOR) published = Math.max(published, sequence)
      else spoken.add(sequence)
    },
    (tx) => begin(tx),
    (tx) => end(tx, random.chance(0.7)),
    (tx) => {
      if (!random.chance(0.1)) return
      const sequence = random.between(0, transcripts.need(id, tx).next - 1)
      read = members.ack(tx, id, MAYOR, sequence) ?? assert.fail()
    },
    () => {
      if (!random.chance(0.1) || trying !== undefined) return
      conversation++
      before = Math.max(before, ...told)
      done = 0
      told.clear()
      wished = true
    },
  ]

  function begin(tx: Tx): void {
    if (trying !== undefined || !wished) return
    wished = false
    if (told.size === 0) done = Math.min(before, published)
    const reader = { mailbox: MAYOR, conversation: `c${conversation}`, sessionId: 's-1', delivery: 'd' }
    const text = notices.begin(tx, reader, id)
    if (text === undefined) return
    trying = [...text.matchAll(/^\[(\d+)\]/gm)].map(([, sequence]) => Number(sequence))
    const from = /after_sequence=(\d+)&before_sequence=(\d+)$/m.exec(text)
    const [after, shown] = [Number(from?.[1] ?? 0), Number(from?.[2] ?? 0)]
    trying = [...trying, ...[...spoken].filter((one) => one > after && one < shown && !told.has(one))]
    for (const sequence of trying) {
      assert.ok(spoken.has(sequence), `${sequence} is no word of others`)
      assert.ok(!told.has(sequence), `${sequence} was told before`)
    }
    assert.equal(new Set(trying).size, trying.length)
  }

  function end(tx: Tx, delivered: boolean): void {
    if (trying === undefined) return
    notices.ended(tx, 'd', delivered)
    for (const sequence of delivered ? trying : []) told.add(sequence)
    if (!delivered) wished = true
    trying = undefined
  }

  for (let n = 0; n < STEPS; n++) {
    await write(random.pick(steps) ?? assert.fail())
    if (n % 50 !== 49) continue
    await write((tx) => {
      end(tx, true)
      while (wished) {
        begin(tx)
        end(tx, true)
      }
    })
    const missed = [...spoken].filter((one) => !told.has(one) && one > read && one > done)
    assert.deepEqual(missed, [], `at step ${n} of conversation ${conversation}`)
  }
})
