/**
 * Reminders against a model, whatever happens in whatever order: letters come, tries begin and end in every way, sessions
 * close and come back, time passes.
 *
 *   SVC_SEED=123 n26 --test src/modules/sessions/queue/digests-model.test.ts     the same order again
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ManualClock } from '../../../../test/support/manual-clock.ts'
import { seededRandom } from '../../../../test/support/random.ts'
import { AGENT, SessionCity } from '../../../../test/support/session-city.ts'
import type { Tx } from '../../../kernel/database.ts'
import { type Mailbox, mailboxOfAgent } from '../../../messaging/address.ts'
import type { DigestReader, DigestSource } from '../../../messaging/digest.ts'

const STEPS = process.env['SVC_SOAK'] === '1' ? 5_000 : 500
const BOXES = ['a', 'b', 'c'] as const
const WORKER = mailboxOfAgent('worker')
const LONGEST_RETRY_MS = 600_000

/** Letters by box: in which conversation each was told. */
class Model implements DigestSource {
  readonly letters = new Map<string, Map<number, string | undefined>>(BOXES.map((box) => [box, new Map()]))
  readonly tries = new Map<string, { readonly box: string; readonly conversation: string; readonly told: number[] }>()
  #count = 0

  write(box: string): void {
    this.letters.get(box)?.set(++this.#count, undefined)
  }

  untold(box: string, conversation: string): readonly number[] {
    return [...(this.letters.get(box) ?? [])].filter(([, told]) => told !== conversation).map(([letter]) => letter)
  }

  unread(_: Tx, mailbox: Mailbox): readonly string[] {
    return mailbox === WORKER ? BOXES.filter((box) => (this.letters.get(box)?.size ?? 0) > 0) : []
  }

  begin(_: Tx, { delivery, conversation }: DigestReader, box: string): string | undefined {
    assert.ok(!this.tries.has(delivery), 'its last try has ended')
    const told = [...this.untold(box, conversation)]
    if (told.length === 0) return undefined
    this.tries.set(delivery, { box, conversation, told })
    return told.join(' ')
  }

  ended(_: Tx, delivery: string, delivered: boolean): void {
    const tried = this.tries.get(delivery) ?? assert.fail('what ends has begun')
    this.tries.delete(delivery)
    for (const letter of delivered ? tried.told : []) this.letters.get(tried.box)?.set(letter, tried.conversation)
  }
}

test('no letter is forgotten and none waits twice, whatever happens in whatever order', async (t) => {
  const random = seededRandom()
  t.diagnostic(`SVC_SEED=${random.seed}`)
  const clock = new ManualClock()
  const mail = new Model()
  const agent = { ...AGENT, provider: 'cat' }
  await using city = new SessionCity({
    clock,
    config: {
      agents: [agent],
      named_sessions: [{ identity: 'worker', rig: '', mode: 'on_demand', agent: 'worker', disabled: false }],
    },
    providers: { cat: { command: '/bin/cat', prompt_mode: 'none', delivery: 'line' } },
    digests: { mail },
  })
  const { deliveries, digests, store } = city.sessions
  const write = <T>(change: (tx: Tx) => T) => city.store.db.write(change)
  const worker = () => store.byNamed('worker')
  const queued = () => (worker() === undefined ? [] : deliveries.waiting(worker()?.id ?? ''))

  const steps: readonly (() => Promise<unknown>)[] = [
    // A letter comes.
    () =>
      write((tx) => {
        const box = random.pick(BOXES) ?? 'a'
        mail.write(box)
        digests.wish(tx, { mailbox: WORKER }, { source: 'mail', reference: box, wakes: false })
      }),
    // What is first is tried.
    () => write((tx) => queued()[0]?.state === 'queued' && deliveries.begin(tx, queued()[0]?.id ?? '', 1)),
    // What is tried ends.
    () =>
      write((tx) => {
        const one = queued().find(({ state }) => state === 'delivering')
        if (one === undefined) return
        const end = random.pick(['delivered', 'delivered', 'failed', 'requeue'] as const)
        if (end === 'requeue') deliveries.requeue(tx, one.id)
        else deliveries.end(tx, one.id, { state: end ?? 'failed' }, 'supervisor')
      }),
    () => clock.advance(random.between(0, 20_000)).then(() => digests.look()),
    // Its session closes, or comes, and begins a conversation.
    async () => {
      if (!random.chance(0.1)) return
      const session = worker()
      if (session !== undefined) return write((tx) => city.sessions.close(tx, session.id, 'api', 'requested'))
      const { id } = await city.create({
        kind: 'agent',
        template: 'worker',
        origin: 'named',
        named: 'worker',
        owner: 'worker',
        state: 'asleep',
      })
      return write((tx) => {
        store.move(tx, id, 'suspend', { actor: 'api', fields: { desired: 'suspended' } })
        digests.sessionStarts(tx, store.need(tx, id), { isNew: true })
      })
    },
    async () => {
      const session = worker()
      if (session === undefined || !random.chance(0.1)) return
      await write((tx) => {
        if (queued().some(({ state }) => state === 'delivering')) return
        const epoch = { continuation_epoch: session.continuation_epoch + 1 }
        digests.sessionStarts(tx, store.change(tx, session.id, epoch, { actor: 'supervisor' }), { isNew: true })
      })
    },
  ]
  for (let n = 0; n < STEPS; n++) {
    await (random.pick(steps) ?? assert.fail())()
    check()
  }

  /** What somebody reads and was not told is queued, being told, or waits for its time. */
  function check(): void {
    const waiting = queued()
    const rows = city.store.db.all('SELECT * FROM session_digests')
    assert.equal(new Set(rows.map(({ reference }) => reference)).size, rows.length)
    assert.equal(waiting.length, rows.filter(({ delivery_id: id }) => id !== null).length, 'each has its own')
    assert.equal(worker()?.queued ?? 0, waiting.length)
    assert.equal(mail.tries.size, waiting.filter(({ state }) => state === 'delivering').length)
    const session = worker()
    const conversation = session === undefined ? '' : `${session.id}.${session.continuation_epoch}`
    for (const box of BOXES) {
      if (session === undefined || mail.untold(box, conversation).length === 0) continue
      const row = rows.find(({ reference }) => reference === box)
      assert.ok(row !== undefined, `nobody will tell of ${box}`)
      const isDue = row.delivery_id !== null || Number(row.retry_at) <= clock.now() + LONGEST_RETRY_MS
      assert.ok(isDue && (row.delivery_id !== null || row.retry_at !== null), `${box} waits for its time`)
    }
  }
})
