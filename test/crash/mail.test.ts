/** `kill -9` while mail with idempotency keys is sent and answered: each key is one message, and what was answered is there. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Message } from '../../src/contract/messaging/mail.ts'
import { listMail } from '../../src/contract/messaging/mail.ts'
import { type ConfigCity, cityAgain, createCity } from '../support/config-city.ts'
import { at } from '../support/document.ts'
import { type RunningSupervisor, startSupervisor } from '../support/supervisor.ts'

const KEYS = 60
const ROUNDS = 4

test('a message is sent once for each key, however often the supervisor dies meanwhile', {
  timeout: 120_000,
}, async (t) => {
  await using first = await startSupervisor()
  let server: RunningSupervisor = first
  let city = await createCity(server, 'alpha')
  const answered = new Map<string, string>()
  try {
    for (let round = 0; round <= ROUNDS; round++) {
      const sends = Array.from({ length: KEYS }, (_, index) => send(city, `key-${index}`, answered))
      if (round === ROUNDS) {
        await Promise.all(sends)
        break
      }
      await Promise.any(sends)
      await server.kill('SIGKILL')
      await Promise.allSettled(sends)
      t.diagnostic(`round ${round}: ${answered.size} of ${KEYS} were answered when the supervisor died`)
      city.api.close()
      server = await startSupervisor({ home: first.home })
      city = await cityAgain(server, 'alpha')
    }
    assert.equal(answered.size, KEYS)
    const { items, total } = await city.api.ask(listMail, `${city.base}/mail?limit=1000`)
    assert.equal(total, KEYS)
    assert.deepEqual(new Set(items.map(({ id }: Message) => id)), new Set(answered.values()))
    const events = (await city.events('mail.sent')).map(({ payload }) => String(payload['message_id']))
    assert.deepEqual(events.toSorted(), [...answered.values()].sort(), 'each is told of once')
    for (const { subject } of items) {
      const found = await city.api.ask(listMail, `${city.base}/mail?q=${subject}`)
      assert.deepEqual([found.total, found.items[0]?.subject], [1, subject], 'the index knows each once')
    }
    assert.deepEqual(at((await city.get('/status')).body, 'mail'), { total: KEYS, unread: KEYS })
  } finally {
    city.api.close()
    await server.kill('SIGKILL')
  }
})

/** The same answer for the same key, also of an earlier life. */
async function send(city: ConfigCity, key: string, answered: Map<string, string>): Promise<void> {
  const body = { to: 'human', subject: key.replace('-', '') }
  const answer = await city.api.post(`${city.base}/mail`, body, { headers: { 'idempotency-key': key } })
  assert.equal(answer.status, 201, answer.text)
  const id = String(at(answer.body, 'id'))
  assert.equal(answered.get(key) ?? id, id)
  answered.set(key, id)
}
