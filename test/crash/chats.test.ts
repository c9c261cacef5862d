/** `kill -9` while adapters bring in messages, all at once and each more than once: each is kept once, in its order. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { registerAdapter } from '../../src/contract/messaging/adapters.ts'
import { listTranscriptEntries } from '../../src/contract/messaging/transcripts.ts'
import { type ConfigCity, cityAgain, createCity } from '../support/config-city.ts'
import { at } from '../support/document.ts'
import { type RunningSupervisor, startSupervisor } from '../support/supervisor.ts'

const ACCOUNTS = 10
const ROOMS_OF_EACH = 4
const MESSAGES = 25
/** Answers after which the supervisor dies. */
const DEATHS = [150, 900]

interface Room {
  readonly account: string
  readonly room: string
}

const ROOMS: readonly Room[] = Array.from({ length: ACCOUNTS * ROOMS_OF_EACH }, (_, index) => ({
  account: `acct-${index % ACCOUNTS}`,
  room: `#room-${index}`,
}))

test('a thousand messages at once, each twice, with deaths in between: one entry each, in order', {
  timeout: 120_000,
}, async (t) => {
  await using first = await startSupervisor()
  let server: RunningSupervisor = first
  let city = await createCity(server, 'alpha')
  let answers = 0
  let died: (() => void) | undefined
  const deaths = [...DEATHS]
  /** Resolves when a supervisor is there again. */
  let alive: Promise<void> = Promise.resolve()

  const answered = () => {
    answers++
    if (answers === deaths[0]) {
      deaths.shift()
      died?.()
    }
  }
  /** Again and again until it is taken, as a bridge does. */
  const bring = async ({ account, room }: Room, id: string): Promise<unknown> => {
    for (;;) {
      await alive
      const message = {
        provider_message_id: id,
        conversation: { conversation_id: room, kind: 'room' },
        actor: { id: 'ada' },
        text: `${room} ${id}`,
      }
      const answer = await city.post(`/adapters/irc/${account}/inbound`, { message }).catch(() => undefined)
      if (answer?.status === 200) {
        answered()
        return at(answer.body, 'transcript_entry', 'sequence')
      }
      // A city that starts is not there yet.
      assert.ok(answer === undefined || [404, 429, 503].includes(answer.status), answer?.text ?? '')
      await new Promise((resolve) => setTimeout(resolve, 20))
    }
  }
  const bringAll = async (room: Room) => {
    for (let id = 1; id <= MESSAGES; id++) {
      const [one, other] = await Promise.all([bring(room, `m-${id}`), bring(room, `m-${id}`)])
      assert.deepEqual([one, other], [id, id], 'both are answered with the same place')
    }
  }
  const dieAndComeBack = async () => {
    for (let left = DEATHS.length; left > 0; left--) {
      await new Promise<void>((resolve) => {
        died = resolve
      })
      alive = (async () => {
        t.diagnostic(`the supervisor dies after ${answers} answers`)
        await server.kill('SIGKILL')
        city.api.close()
        server = await startSupervisor({ home: first.home })
        city = await cityAgain(server, 'alpha')
      })()
      await alive
    }
  }

  try {
    for (let index = 0; index < ACCOUNTS; index++)
      await city.api.ask(registerAdapter, `${city.base}/adapters`, {
        body: { provider: 'irc', account_id: `acct-${index}`, transport: 'pull' },
      })
    await Promise.all([dieAndComeBack(), ...ROOMS.map(bringAll)])
    await assertKept(city)
  } finally {
    city.api.close()
    await server.kill('SIGKILL')
  }
})

async function assertKept(city: ConfigCity): Promise<void> {
  const expected = Array.from({ length: MESSAGES }, (_, index) => `m-${index + 1}`)
  const transcripts = at((await city.get('/transcripts?limit=1000')).body, 'items')
  assert.ok(Array.isArray(transcripts))
  assert.equal(transcripts.length, ROOMS.length)
  for (const transcript of transcripts) {
    const path = `${city.base}/transcripts/${String(at(transcript, 'transcript_id'))}/entries?limit=1000`
    const { items } = await city.api.ask(listTranscriptEntries, path)
    assert.deepEqual(
      items.map(({ provider_message_id: id }) => id),
      expected,
    )
    assert.deepEqual(
      items.map(({ sequence }) => sequence),
      expected.map((_, index) => index + 1),
    )
  }
  const told = await city.events('extmsg.inbound')
  const places = told.map(({ payload }) => `${String(payload['transcript_id'])} ${String(payload['sequence'])}`)
  assert.equal(places.length, 1_000)
  assert.equal(new Set(places).size, 1_000, 'each is told of once')
}
