/** Whatever happens in whatever order, the outbox is what a model says that fits on a page. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { OutboxBench } from '../../../../test/support/outbox-bench.ts'
import { fc } from '../../../../test/support/random.ts'
import { FAILURE_KINDS, type FailureKind } from '../../../contract/messaging/deliveries.ts'
import { reported } from './answers.ts'

const DAY = 24 * 3_600_000
const LEASE = 60_000
const WAITS = [1_000, 5_000, 30_000, 120_000]
const FINAL: readonly FailureKind[] = ['permanent', 'not_found', 'unsupported']

interface Modelled {
  readonly room: string
  state: 'pending' | 'flying' | 'delivered' | 'dead'
  attempts: number
  tries: number
  answered: number
  since: number
  nextAt: number
  leaseUntil: number
}

type Step =
  | { readonly kind: 'say'; readonly room: string }
  | { readonly kind: 'claim'; readonly limit: number }
  | { readonly kind: 'ack' | 'retry'; readonly of: number }
  | {
      readonly kind: 'fail'
      readonly of: number
      readonly stale: boolean
      readonly why: FailureKind
      readonly pause: number
    }
  | { readonly kind: 'wait'; readonly ms: number }

class Model {
  readonly all: Modelled[] = []
  now: number
  pausedUntil = 0

  constructor(now: number) {
    this.now = now
  }

  say(room: string): void {
    const [since, nextAt] = [this.now, this.now]
    this.all.push({ room, state: 'pending', attempts: 0, tries: 0, answered: 0, since, nextAt, leaseUntil: 0 })
  }

  /** The first of each conversation that is not over, unless one of it is out. */
  claim(limit: number): readonly number[] {
    if (this.pausedUntil > this.now) return []
    const rooms = new Set(this.all.map(({ room }) => room))
    const heads = [...rooms].flatMap((room) => {
      const open = this.all.filter((one) => one.room === room && (one.state === 'pending' || one.state === 'flying'))
      const out = open.some(({ state }) => state === 'flying')
      return open[0] === undefined || out || open[0].nextAt > this.now ? [] : [open[0]]
    })
    const taken = heads.sort((a, b) => a.nextAt - b.nextAt || this.all.indexOf(a) - this.all.indexOf(b)).slice(0, limit)
    for (const one of taken) {
      one.state = 'flying'
      one.attempts++
      one.leaseUntil = this.now + LEASE
    }
    return taken.map((one) => this.all.indexOf(one))
  }

  fail(one: Modelled, why: FailureKind, pause: number, at = this.now): void {
    one.answered++
    if (pause > 0) this.pausedUntil = Math.max(this.pausedUntil, at + pause)
    const over = FINAL.includes(why) || one.answered >= 10 || at >= one.since + DAY
    one.state = over ? 'dead' : 'pending'
    one.nextAt = at + Math.max(WAITS[one.tries] ?? 600_000, pause)
    one.tries++
  }

  retry(one: Modelled): void {
    if (one.state === 'dead')
      Object.assign(one, { state: 'pending', tries: 0, answered: 0, since: this.now, nextAt: this.now })
    else if (one.state === 'pending') one.nextAt = this.now
  }

  /** Leases end and days pass in the order of their times. */
  wait(ms: number): void {
    const until = this.now + ms
    for (;;) {
      const moments = this.all.flatMap((one) => {
        if (one.state === 'flying') return [{ at: one.leaseUntil, one }]
        return one.state === 'pending' ? [{ at: one.since + DAY, one }] : []
      })
      const [next] = moments.filter(({ at }) => at <= until).sort((a, b) => a.at - b.at)
      if (next === undefined) break
      if (next.one.state === 'flying') this.fail(next.one, 'transient', 0, next.at)
      else next.one.state = 'dead'
    }
    this.now = until
  }
}

const index = fc.nat(11)
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({ kind: fc.constant('say' as const), room: fc.constantFrom('one', 'two', 'three') }),
  },
  { weight: 5, arbitrary: fc.record({ kind: fc.constant('claim' as const), limit: fc.integer({ min: 1, max: 3 }) }) },
  { weight: 3, arbitrary: fc.record({ kind: fc.constantFrom('ack' as const, 'retry' as const), of: index }) },
  {
    weight: 5,
    arbitrary: fc.record({
      kind: fc.constant('fail' as const),
      of: index,
      stale: fc.boolean(),
      why: fc.constantFrom(...FAILURE_KINDS),
      pause: fc.constantFrom(0, 0, 2_000, 90_000),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constant('wait' as const),
      ms: fc.constantFrom(1_000, 5_000, 61_000, 600_000, DAY / 2),
    }),
  },
)

test('claims, ends, leases, retries and days in any order leave what the model has', async (t) => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 40 }), async (steps) => {
      const ending: (() => void)[] = []
      const bench = new OutboxBench({ after: (work: () => void) => ending.push(work) })
      try {
        await bench.register('pull')
        await bench.outbox.start()
        const model = new Model(bench.clock.now())
        const ids: string[] = []
        for (const one of steps) {
          await take(bench, model, ids, one)
          compare(bench, model, ids)
        }
      } finally {
        for (const work of ending) work()
      }
    }),
    { numRuns: 25 },
  )
  assert.ok(t)
})

async function take(bench: OutboxBench, model: Model, ids: string[], one: Step): Promise<void> {
  if (one.kind === 'say') {
    model.say(one.room)
    ids.push((await bench.say(one.room)).id)
  } else if (one.kind === 'claim') {
    const expected = model.claim(one.limit).map((at) => ids[at])
    assert.deepEqual(
      (await bench.take('a', LEASE, one.limit)).map(({ id }) => id),
      expected,
    )
  } else if (one.kind === 'wait') {
    model.wait(one.ms)
    await bench.clock.advance(one.ms)
  } else await end(bench, model, ids, one)
}

async function end(
  bench: OutboxBench,
  model: Model,
  ids: string[],
  one: Extract<Step, { readonly of: number }>,
): Promise<void> {
  const [id, modelled] = [ids[one.of], model.all[one.of]]
  if (id === undefined || modelled === undefined) return
  const before = bench.get(id)
  if (one.kind === 'ack') {
    modelled.state = 'delivered'
    await bench.write((tx) => bench.outbox.delivered(tx, before, {}))
  } else if (one.kind === 'fail') {
    const attempt = before.attempts - (one.stale ? 1 : 0)
    const failure = reported({ attempt, failure_kind: one.why, retry_after_ms: one.pause })
    const counts = !one.stale && modelled.state === 'flying'
    if (counts) model.fail(modelled, one.why, one.pause)
    const after = await bench.write((tx) => bench.outbox.failed(tx, before, attempt, failure))
    assert.equal(after !== undefined, counts)
  } else if (modelled.state === 'dead' || modelled.state === 'pending') {
    model.retry(modelled)
    await bench.write((tx) => bench.outbox.retry(tx, bench.adapters.need('chat', 'a', tx), before))
  }
}

const SHOWN = { behind: 'pending', ready: 'pending', flying: 'flying', delivered: 'delivered', dead: 'dead' } as const

function compare(bench: OutboxBench, model: Model, ids: readonly string[]): void {
  const stored = ids.map((id) => {
    const { state, attempts, answered } = bench.get(id)
    return [SHOWN[state], attempts, answered]
  })
  assert.deepEqual(
    stored,
    model.all.map(({ state, attempts, answered }) => [state, attempts, answered]),
  )
}
