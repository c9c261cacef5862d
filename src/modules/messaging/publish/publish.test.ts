// What is said from here is one write, and one message however often it is asked for.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { PublishRequest } from '../../../contract/messaging/transcripts.ts'
import { problem } from '../../../kernel/problem.ts'
import { normalConversation } from '../../../messaging/conversation.ts'
import type { OutboxDraft } from '../outbox/delivery.ts'
import { opened, SAID } from '../testing.ts'
import type { Carrier, Speaker, SpeechRefusal } from './ports.ts'
import { Publisher } from './publish.ts'

const ROOM = normalConversation({ provider: 'irc', account_id: 'a', conversation_id: '#x', kind: 'room' }, 'alpha')
const MAYOR: Speaker = { mailbox: 'agent:mayor', display: 'mayor', session_id: 'ses-1' }

async function publishing(t: Parameters<typeof opened>[0]) {
  const store = opened(t)
  const { transcripts } = store
  const sent: OutboxDraft[] = []
  const state = {
    online: true as boolean | undefined,
    refusal: undefined as SpeechRefusal | undefined,
    waits: [] as number[],
  }
  const carrier: Carrier = {
    way: () =>
      state.online === undefined
        ? undefined
        : {
            online: state.online,
            status: 'pending',
            enqueue: (tx, entry) => tx.afterCommit(() => sent.push(entry)),
          },
    outcome: async (_id, ms) => {
      state.waits.push(ms)
    },
    receipt: () => undefined,
  }
  const of = (mailbox: `agent:${string}` | `session:${string}` | 'human') => ({ mailbox, display: mailbox, rig: '' })
  const addresses = () => ({
    of,
    resolve: () => of('human'),
    find: () => undefined,
    isClosed: () => false,
    ofSession: (id: string) => of(`session:${id}`),
    live: () => [],
  })
  const publisher = new Publisher({ store, transcripts, addresses, carrier, refusalToSpeak: () => state.refusal })
  const transcript = await store.db.write((tx) => transcripts.ensure(tx, ROOM))
  const publish = (request: PublishRequest, key?: string, speaker: Speaker | null = MAYOR) =>
    publisher.publish({
      transcript,
      request,
      speaker: speaker ?? undefined,
      operator: 'operator',
      actor: 'api',
      claim: key === undefined ? undefined : { scope: 'POST /x', key, fingerprint: JSON.stringify(request) },
      waitMs: 5_000,
      signal: new AbortController().signal,
    })
  return { ...store, transcript, state, sent, publish }
}

test('many at once with one key are one message, and all are answered with it', async (t) => {
  const { publish, sent, transcripts, transcript } = await publishing(t)
  const tries = Array.from({ length: 50 }, () => publish({ text: 'once' }, 'k').catch((error: unknown) => error))
  const answers = await Promise.all(tries)
  const again = await publish({ text: 'once' }, 'k')
  for (const answer of answers) {
    if (answer instanceof Error) assert.equal(Reflect.get(answer, 'code'), 'idempotency-in-flight')
    else assert.deepEqual(answer, again)
  }
  assert.equal(sent.length, 1)
  assert.equal(transcripts.need(transcript.id).next, 2)
  assert.equal(sent[0]?.id, again.delivery_id)
  await assert.rejects(publish({ text: 'twice' }, 'k'), { code: 'idempotency-mismatch' })
})

test('a key answers with how far its message is by now', async (t) => {
  const { publish, db, transcripts, transcript } = await publishing(t)
  const first = await publish({ text: 'x' }, 'k')
  assert.equal(first.delivery_status, 'pending')
  await db.write((tx) => transcripts.settle(tx, transcript.id, 1, { status: 'delivered', providerMessageId: 'm-1' }))
  const later = await publish({ text: 'x' }, 'k')
  assert.equal(later.delivery_status, 'delivered')
  assert.equal(later.transcript_entry.provider_message_id, 'm-1')
})

test('what cannot be said is refused, and nothing of it is left', async (t) => {
  const { publish, state, sent, log, transcripts, transcript } = await publishing(t)
  const refused = (code: string, request: PublishRequest) => assert.rejects(publish(request, 'k'), { code })
  await refused('validation-failed', {})
  await refused('validation-failed', { text: ' \n' })
  await refused('validation-failed', { text: '\u00e9'.repeat(32 * 1024 + 1) })
  await refused('validation-failed', { text: 'x', attachments: ['at-none'] })
  state.online = undefined
  await refused('no-adapter', { text: 'x' })
  state.refusal = { problem: problem('session-forbidden', 'not yours'), owner: 'agent:clerk' }
  await refused('session-forbidden', { text: 'x' })
  state.refusal = { problem: problem('conversation-unbound', 'nobody’s') }
  await refused('conversation-unbound', { text: 'x' })
  assert.equal(sent.length, 0)
  assert.equal(transcripts.need(transcript.id).next, 1)
  const [mismatch, ...others] = log.scan(
    { types: ['extmsg.outbound_channel_mismatch'] },
    { after: 0, upTo: log.head },
    'asc',
    10,
  ).events
  assert.equal(others.length, 0)
  assert.deepEqual(JSON.parse(mismatch?.envelope ?? '{}').payload, {
    transcript_id: transcript.id,
    provider: 'irc',
    conversation_id: '#x',
    posting_session: 'ses-1',
    owner_session: 'agent:clerk',
  })
  // The operator speaks everywhere.
  state.online = false
  const said = await publish({ text: 'from above', explicit_target: ' Mayor ' }, undefined, null)
  assert.equal(said.transcript_entry.explicit_target, 'mayor')
  assert.deepEqual(said.transcript_entry.actor, { id: 'operator', display_name: 'operator', is_bot: false })
  assert.deepEqual(state.waits, [], 'nobody waits for an adapter that is not there')
})

test('what is said comes of the last message from outside', async (t) => {
  const { publish, db, transcripts, transcript, sent } = await publishing(t)
  await db.write((tx) => {
    transcripts.append(tx, transcript.id, SAID)
    transcripts.append(tx, transcript.id, SAID)
    transcripts.append(tx, transcript.id, { ...SAID, provenance: 'hydrated' })
  })
  await publish({ text: '\0 64 KiB '.padEnd(64 * 1024, 'x') })
  assert.equal(sent[0]?.root, 2)
  assert.equal(transcripts.entry(transcript.id, 4)?.text.length, 64 * 1024)
})
