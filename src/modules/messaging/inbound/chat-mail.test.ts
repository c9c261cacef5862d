import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { chats, line, ROOM, ROOM_ID, THREAD_ID } from '../../../../test/support/chat-store.ts'
import { MAX_CHAT_TEXT } from '../../../contract/messaging/entries.ts'
import type { Tx } from '../../../kernel/database.ts'
import { HUMAN, type Mailbox } from '../../../messaging/address.ts'
import type { EntryRow, TranscriptRow } from '../entries/rows.ts'
import { HumanChat, type MailedMessage, textOf } from './chat-mail.ts'

const IN_THREAD = { conversation_id: 't-1', parent_conversation_id: '#ops', kind: 'thread' }

/** A room that is bound to people, with mail that remembers its answers. */
async function office(t: TestContext) {
  const mails = new Map<string, MailedMessage>()
  const answers: string[] = []
  const asMail = { reply: (tx: Tx, transcript: TranscriptRow, entry: EntryRow) => human.reply(tx, transcript, entry) }
  const chat = chats(t, { mail: asMail })
  const { transcripts, routing, db } = chat
  const human = new HumanChat({
    transcripts,
    routing,
    mail: {
      find: (_, id) => mails.get(id),
      reply: (_, id, body) => {
        answers.push(`${id}: ${body}`)
        return `answer-${answers.length}`
      },
    },
    voice: {
      say: (tx, { transcript, ...said }) =>
        transcripts.append(tx, transcript.id, {
          kind: 'outbound',
          deliveryId: 'dl',
          deliveryStatus: 'pending',
          ...said,
        }),
    },
  })
  await chat.bind(ROOM, { mailbox: HUMAN })
  const arrive = async (mail: Partial<MailedMessage> & { readonly id: string }, mailbox: Mailbox = HUMAN) => {
    mails.set(mail.id, { from: 'mayor', subject: 'News', body: 'It works.', ...mail })
    const event = { type: 'mail.sent', envelope: JSON.stringify({ payload: { message_id: mail.id, mailbox } }) }
    const reaction = human.reaction()
    const stored = { seq: 1, at: 0, actor: 'mayor', subject: mail.id, city: undefined, ...event }
    if (reaction.concerns?.(stored) === true) await db.write((tx) => reaction.react(tx, stored))
  }
  const said = (id: string) => transcripts.entriesAfter(id, 0, 100).filter(({ kind }) => kind === 'outbound')
  return { ...chat, arrive, answers, said }
}

test('what is mailed to people is said in their chats, and nothing else', async (t) => {
  const { arrive, said, db, routing } = await office(t)
  await arrive({ id: 'ml-1', session_id: 's1', sender: 'agent:mayor' })
  await arrive({ id: 'ml-2' }, 'agent:poet')
  const [entry, ...others] = said(ROOM_ID)
  assert.deepEqual(others, [])
  assert.equal(entry?.text, 'mayor: News (mail ml-1)\nIt works.')
  assert.deepEqual([entry?.mailbox, entry?.sessionId, entry?.actor.is_bot], ['agent:mayor', 's1', true])
  await db.write((tx) => routing.bindings.endMatching(tx, { mailbox: HUMAN }, 'requested', 'api'))
  await arrive({ id: 'ml-3' })
  assert.equal(said(ROOM_ID).length, 1)
})

test('a line answers the mail that it is a reply to, else the newest; what bots say answers nobody', async (t) => {
  const { arrive, say, answers, db, transcripts, said, told } = await office(t)
  assert.equal((await say(line('c-0'))).mail_id, undefined, 'there is nothing to answer yet')
  await arrive({ id: 'ml-1' })
  await arrive({ id: 'ml-2' })
  const [first] = said(ROOM_ID)
  const delivered = { status: 'delivered', providerMessageId: 'out-1' } as const
  await db.write((tx) => transcripts.settle(tx, ROOM_ID, first?.sequence ?? 0, delivered))
  const reply = await say(line('c-1', { text: ' Yes \n', reply_to_message_id: 'out-1' }))
  assert.deepEqual([reply.match, reply.target_mailbox, reply.mail_id], ['binding', 'human', 'answer-1'])
  await say(line('c-2', { text: 'Later', reply_to_message_id: 'unknown' }))
  await say(line('c-1', { text: ' Yes \n', reply_to_message_id: 'out-1' }))
  await say(line('c-3', { actor: { id: 'b', is_bot: true } }))
  await say(line('c-4', { text: '  ' }))
  assert.deepEqual(answers, ['ml-1: Yes', 'ml-2: Later'])
  assert.equal(told.length, 5)
})

test('an answer to what was said in a thread goes to that thread, and a thread answers what it hangs on', async (t) => {
  const { arrive, say, answers, db, transcripts, said } = await office(t)
  await arrive({ id: 'ml-1' })
  await arrive({ id: 'ml-2' })
  const [first] = said(ROOM_ID)
  const delivered = { status: 'delivered', providerMessageId: 't-1' } as const
  await db.write((tx) => transcripts.settle(tx, ROOM_ID, first?.sequence ?? 0, delivered))
  const { mail_id: asked } = await say(line('c-1', { text: 'Why?', conversation: IN_THREAD }))
  assert.deepEqual(answers, ['ml-1: Why?'])
  await arrive({ id: 'ml-3', reply_to: asked ?? '' })
  assert.deepEqual(
    said(THREAD_ID).map(({ text, replyTo }) => [text.split('\n')[0], replyTo]),
    [['mayor: News (mail ml-3)', 'c-1']],
  )
  assert.equal(said(ROOM_ID).length, 2)
  await say(line('c-2', { text: 'I see', conversation: IN_THREAD, reply_to_message_id: 'none' }))
  assert.deepEqual(answers.at(-1), 'ml-1: I see')
})

test('a mail that is too long for a chat is cut between characters; control bytes are left out', () => {
  const text = textOf({ id: 'ml-1', from: 'a\u001b[2J', subject: 's', body: 'ä'.repeat(MAX_CHAT_TEXT) })
  assert.ok(Buffer.byteLength(text) <= MAX_CHAT_TEXT)
  assert.ok(Buffer.byteLength(text) > MAX_CHAT_TEXT - 8)
  assert.ok(text.startsWith('a[2J: s (mail ml-1)\nää') && text.endsWith('ä\n… (the mail goes on)'), text.slice(-40))
})
