/** What all bridges have in common: nothing is lost or said twice, whatever the supervisor answers, and whoever is killed. */
import assert from 'node:assert/strict'
import { suite, type TestContext, test } from 'node:test'
import { Carrying, type Chat } from '../../src/bridges/library/carrying.ts'
import { Journal } from '../../src/bridges/library/journal.ts'
import { Posting } from '../../src/bridges/library/posting.ts'
import type { InboundMessage, Outcome } from '../../src/bridges/library/shapes.ts'
import { ApiProblem } from '../../src/client/problems.ts'
import { deliveryOf, RememberingSupervisor, testWorld } from '../support/bridge-life.ts'
import { eventually } from '../support/http.ts'
import { temporaryDirectory } from '../support/temporary.ts'

const refusal = (status: number, code: string): ApiProblem =>
  new ApiProblem(status, { get: () => null }, JSON.stringify({ code, detail: code }))

/** Says whatever it is told to, and remembers it. */
class Mouth implements Chat {
  readonly said: string[] = []
  outcome: Outcome = { delivered: true, message_id: 'm1' }

  async ready(): Promise<void> {}

  async say({ delivery_id: id }: { readonly delivery_id: string }): Promise<Outcome> {
    this.said.push(id)
    return this.outcome
  }

  health(): Record<string, never> {
    return {}
  }
}

function bridge(t: TestContext, supervisor = new RememberingSupervisor()) {
  const root = temporaryDirectory()
  const journal = new Journal(root.path)
  const world = testWorld()
  const chat = new Mouth()
  const ending = new AbortController()
  let registered = 0
  const onUnknown = async () => {
    registered += 1
  }
  t.after(() => {
    ending.abort(new Error('the test ends'))
    journal[Symbol.dispose]()
    root[Symbol.dispose]()
  })
  return {
    journal,
    chat,
    supervisor,
    carrying: new Carrying({ chat, supervisor, journal, world }),
    posting: new Posting({ supervisor, journal, world, onUnknown }),
    signal: ending.signal,
    registrations: () => registered,
  }
}

const line = (id: string, place = '#c'): InboundMessage => ({
  provider_message_id: id,
  conversation: { provider: 'irc', account_id: 'a', conversation_id: place, kind: 'room' },
  actor: { id: 'nick:ana', display_name: 'ana', is_bot: false },
  text: id,
  received_at: '2026-01-01T00:00:00.000Z',
})

suite('out', () => {
  test('what is done is acknowledged again and not said again', async (t) => {
    const { journal, chat, carrying, supervisor, signal } = bridge(t)
    journal.begin(deliveryOf('dl-1', '#c', 'x'))
    journal.done('dl-1', 'm7')
    carrying.resume(signal)
    void carrying.claim(signal, signal)
    await eventually('it is acknowledged', () => supervisor.acked.get('dl-1'))
    await carrying.idle()
    supervisor.acked.clear()
    supervisor.give(deliveryOf('dl-1', '#c', 'x', { attempt: 2 }))
    assert.equal(await eventually('it is acknowledged again', () => supervisor.acked.get('dl-1')), 'm7')
    assert.deepEqual(chat.said, [])
  })

  test('what was begun goes on while its lease lasts, and not after', async (t) => {
    const { journal, chat, carrying, supervisor, signal } = bridge(t)
    journal.begin(deliveryOf('dl-late', '#c', 'x', { lease_expires_at: 0 }))
    journal.begin(deliveryOf('dl-in-time', '#c', 'x'))
    carrying.resume(signal)
    await eventually('it is acknowledged', () => supervisor.acked.get('dl-in-time'))
    await carrying.idle()
    assert.deepEqual(chat.said, ['dl-in-time'])
    assert.deepEqual(journal.open(), [])
  })

  test('an acknowledgement is repeated until it is answered, whatever the answer is', async (t) => {
    const answers = [new Error('no answer'), refusal(503, 'shutting-down'), refusal(404, 'delivery-not-found')]
    const supervisor = new RememberingSupervisor()
    supervisor.ack = async () => {
      const next = answers.shift()
      if (next !== undefined) throw next
    }
    const { journal, chat, carrying, signal } = bridge(t, supervisor)
    void carrying.claim(signal, signal)
    supervisor.give(deliveryOf('dl-1', '#c', 'x'))
    await eventually('it was told thrice', () => (answers.length === 0 ? true : undefined))
    await carrying.idle()
    assert.deepEqual(chat.said, ['dl-1'])
    assert.deepEqual(journal.open(), [])
  })

  test('a failure is reported, and the next attempt is said', async (t) => {
    const { chat, carrying, supervisor, signal } = bridge(t)
    chat.outcome = { delivered: false, kind: 'transient', error: 'not now' }
    void carrying.claim(signal, signal)
    supervisor.give(deliveryOf('dl-1', '#c', 'x'))
    assert.deepEqual(await eventually('it fails', () => supervisor.failed.get('dl-1')), chat.outcome)
    chat.outcome = { delivered: true, message_id: 'm2' }
    supervisor.give(deliveryOf('dl-1', '#c', 'x', { attempt: 2 }))
    assert.equal(await eventually('it is said', () => supervisor.acked.get('dl-1')), 'm2')
  })
})

suite('in', () => {
  test('the order of a conversation is kept over answers that never come', async (t) => {
    const supervisor = new RememberingSupervisor()
    const post = supervisor.post.bind(supervisor)
    let failures = 3
    supervisor.post = async (message) => {
      failures -= 1
      if (failures >= 0) throw new Error('no answer')
      await post(message)
    }
    const { posting, signal } = bridge(t, supervisor)
    void posting.run(signal)
    for (const id of ['1', '2', '3', '2']) posting.take(line(id))
    await eventually('all are posted', () => (supervisor.posted.length === 3 ? true : undefined))
    assert.deepEqual(
      supervisor.posted.map(({ text }) => text),
      ['1', '2', '3'],
    )
  })

  test('what is refused for good keeps nobody back, in a batch of the past neither', async (t) => {
    const supervisor = new RememberingSupervisor()
    const isBad = ({ text }: InboundMessage) => text.startsWith('bad')
    const [post, postPast] = [supervisor.post.bind(supervisor), supervisor.postPast.bind(supervisor)]
    supervisor.post = async (message) => {
      if (isBad(message)) throw refusal(422, 'validation-failed')
      await post(message)
    }
    supervisor.postPast = async (messages) => {
      if (messages.some(isBad)) throw refusal(422, 'validation-failed')
      await postPast(messages)
    }
    const { posting, journal, signal } = bridge(t, supervisor)
    for (const id of ['1', 'bad 2', '3']) posting.take(line(id), { past: true })
    for (const id of ['bad 4', '5']) posting.take(line(id))
    void posting.run(signal)
    await eventually('nothing waits', () => (journal.waiting() === 0 ? true : undefined))
    assert.deepEqual(
      [supervisor.past, supervisor.posted].map((all) => all.map(({ text }) => text)),
      [['1', '3'], ['5']],
    )
  })

  test('a supervisor that does not know the adapter is told of it, and the message comes again', async (t) => {
    const supervisor = new RememberingSupervisor()
    const post = supervisor.post.bind(supervisor)
    const parts = bridge(t, supervisor)
    supervisor.post = async (message) => {
      if (parts.registrations() === 0) throw refusal(404, 'adapter-not-found')
      await post(message)
    }
    parts.posting.take(line('1'))
    void parts.posting.run(parts.signal)
    await eventually('it is posted', () => supervisor.posted[0])
    assert.equal(parts.registrations(), 1)
  })
})
