/**
 * Many claimers over HTTP: every piece of work goes to one of them, none to two, and none is lost, also where the
 * supervisor is killed in between.
 *
 *   SVC_SEED=123 n26 --test test/e2e/beads/claimers.test.ts     the same moments of killing again
 */
import assert from 'node:assert/strict'
import { Agent, type IncomingMessage, request } from 'node:http'
import { test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { LINES_TYPE } from '../../../src/contract/base/operation.ts'
import { type ConfigCity, cityAgain, createCity } from '../../support/config-city.ts'
import { asMap } from '../../support/document.ts'
import { eventually } from '../../support/http.ts'
import { seededRandom } from '../../support/random.ts'
import { type RunningSupervisor, startSupervisor } from '../../support/supervisor.ts'

const CLAIMERS = 64
const POOL = 'pool/worker'
type Fields = { readonly [key: string]: unknown }

/** Sends without looking at the contract, which other tests do: here the speed is the point. */
class Caller implements Disposable {
  readonly #agent = new Agent({ keepAlive: true, maxSockets: CLAIMERS })
  readonly #url: () => string

  constructor(url: () => string) {
    this.#url = url
  }

  /** The answer, or undefined where none came. */
  async post(path: string, body: object): Promise<{ readonly status: number; readonly body: Fields } | undefined> {
    try {
      const response = await this.#send(path, JSON.stringify(body))
      let text = ''
      for await (const chunk of response.setEncoding('utf8')) text += String(chunk)
      return { status: response.statusCode ?? 0, body: asMap(JSON.parse(text)) }
    } catch {
      return undefined
    }
  }

  [Symbol.dispose]() {
    this.#agent.destroy()
  }

  #send(path: string, body: string): Promise<IncomingMessage> {
    return new Promise((resolve, reject) => {
      const headers = {
        'x-svc-request': '1',
        'content-type': 'application/json',
        'content-length': Buffer.byteLength(body),
      }
      request(`${this.#url()}/v0/city/alpha/beads${path}`, { method: 'POST', headers, agent: this.#agent })
        .on('response', resolve)
        .on('error', reject)
        .end(body)
    })
  }
}

/** Beads that are routed to the pool, or to nobody. */
async function stock(city: ConfigCity, prefix: string, count: number, routed: boolean): Promise<readonly string[]> {
  const ids = Array.from({ length: count }, (_, n) => `al-${prefix}${n.toString(36)}`)
  const lines = ids.map((id, n) => {
    const created_at = new Date(Date.UTC(2026, 0, 1) + n).toISOString()
    const metadata = routed ? { metadata: { 'svc.routed_to': POOL } } : {}
    return JSON.stringify({
      id,
      title: id,
      status: 'open',
      issue_type: 'task',
      created_at,
      updated_at: created_at,
      ...metadata,
    })
  })
  const answer = await city.post('/beads/import', undefined, {
    bytes: `${lines.join('\n')}\n`,
    headers: { 'content-type': LINES_TYPE },
  })
  assert.equal(asMap(answer.body).created, count, answer.text.slice(0, 500))
  return ids
}

/** Who was told that a bead is theirs. */
class Ledger {
  readonly holders = new Map<string, string>()

  /** Fails where somebody else was told so before. */
  tell(bead: unknown, claimer: string): void {
    const id = String(bead)
    const holder = this.holders.get(id)
    assert.ok(holder === undefined || holder === claimer, `${id} was given to ${holder} and to ${claimer}`)
    this.holders.set(id, claimer)
  }
}

/** `bead → assignee` of each bead.claimed in the log; fails where two of one bead differ. */
async function claimsInLog(
  city: ConfigCity,
): Promise<{ readonly holders: Ledger['holders']; readonly events: number }> {
  const ledger = new Ledger()
  let events = 0
  for (let cursor = ''; ; ) {
    const { body } = await city.get(`/events?type=bead.claimed&order=asc&limit=1000${cursor}`)
    const { items, next_cursor: next } = asMap(body)
    assert.ok(Array.isArray(items))
    for (const item of items) {
      const { bead_id, assignee } = asMap(asMap(item).payload)
      ledger.tell(bead_id, String(assignee))
      events++
    }
    if (next === undefined) return { holders: ledger.holders, events }
    cursor = `&cursor=${encodeURIComponent(String(next))}`
  }
}

const totalOf = async (city: ConfigCity, query: string): Promise<unknown> =>
  asMap((await city.get(`/beads?limit=1&${query}`)).body).total

test('64 claimers on 10,000 beads: each bead is claimed once', { timeout: 120_000 }, async () => {
  await using supervisor = await startSupervisor()
  const city = await createCity(supervisor, 'alpha')
  const routed = await stock(city, 'r', 5_000, true)
  const named = await stock(city, 'n', 5_000, false)
  using caller = new Caller(() => supervisor.url)
  const ledger = new Ledger()

  /** From the hook, until there is nothing left; each claim in the name of a session of its own. */
  const fromHook = async (claimer: string) => {
    for (let n = 0; ; n++) {
      const name = `${claimer}.${n}`
      const answer = await caller.post('/hook/claim', { agent: POOL, session_name: name })
      assert.equal(answer?.status, 200, JSON.stringify(answer))
      if (answer.body['action'] === 'drain') return
      assert.equal(answer.body['reason'], 'claimed')
      ledger.tell(answer.body['bead_id'], name)
    }
  }
  /** By id: every bead is tried by two, at about the same time. */
  const byId = async (claimer: string, mine: readonly string[]) => {
    for (const id of mine) {
      const answer = await caller.post(`/${id}/claim`, { assignee: claimer })
      if (answer?.status === 200) ledger.tell(id, claimer)
      else assert.equal(answer?.status, 409, JSON.stringify(answer))
    }
  }
  const half = CLAIMERS / 2
  await Promise.all(
    Array.from({ length: half }, (_, n) => {
      const pair = Math.floor(n / 2)
      const share = named.filter((_id, index) => index % (half / 2) === pair)
      return Promise.all([fromHook(`h${n}`), byId(`c${n}`, share)])
    }),
  )

  assert.equal(ledger.holders.size, routed.length + named.length)
  const inLog = await claimsInLog(city)
  assert.equal(inLog.events, routed.length + named.length)
  assert.deepEqual(inLog.holders, ledger.holders)
  assert.equal(await totalOf(city, 'status=in_progress'), routed.length + named.length)
  assert.equal(await totalOf(city, 'unassigned=true&all=true'), 0)
  city.api.close()
})

test('claimers whose supervisor is killed again and again: no bead goes to two, none is lost', {
  timeout: 120_000,
}, async (t) => {
  const random = seededRandom()
  t.diagnostic(`SVC_SEED=${random.seed}`)
  const KILLS = 4
  await using stack = new AsyncDisposableStack()
  const first = stack.use(await startSupervisor())
  let supervisor: RunningSupervisor = first
  const city = await createCity(supervisor, 'alpha')
  const ids = await stock(city, 'k', 3_000, true)
  city.api.close()
  using caller = new Caller(() => supervisor.url)
  const ledger = new Ledger()
  const closed = new Set<string>()
  let answers = 0

  /** Until an answer comes that is not of a supervisor that starts or ends. */
  const insist = async (path: string, body: object): Promise<Fields> => {
    for (let attempt = 0; attempt < 2_000; attempt++) {
      const answer = await caller.post(path, body)
      if (answer?.status === 200) {
        answers++
        return answer.body
      }
      assert.ok(answer === undefined || answer.status === 404 || answer.status === 503, JSON.stringify(answer))
      await pause(20)
    }
    return assert.fail(`no answer to ${path}`)
  }
  const work = async (claimer: string) => {
    for (;;) {
      const taken = await insist('/hook/claim', { agent: POOL, session_name: claimer })
      if (taken['action'] === 'drain') return
      const id = String(taken['bead_id'])
      ledger.tell(id, claimer)
      assert.ok(!closed.has(id), `${id} was done, and is offered again`)
      const bead = await insist(`/${id}/close`, { reason: 'done' })
      assert.deepEqual([bead['status'], bead['assignee']], ['closed', claimer])
      closed.add(id)
    }
  }
  const working = Promise.all(Array.from({ length: CLAIMERS }, (_, n) => work(`w${n}`)))
  working.catch(() => {})
  for (let kill = 1; kill <= KILLS; kill++) {
    const enough = answers + random.between(200, 1_000)
    await eventually('some work is done', () => (answers >= enough || closed.size === ids.length ? true : undefined))
    await pause(random.between(0, 8))
    await supervisor.kill('SIGKILL')
    supervisor = stack.use(await startSupervisor({ home: first.home }))
  }
  await working

  const after = await cityAgain(supervisor, 'alpha')
  assert.deepEqual(closed, new Set(ids))
  assert.equal(await totalOf(after, 'status=closed'), ids.length)
  assert.equal(await totalOf(after, ''), 0)
  assert.deepEqual((await claimsInLog(after)).holders, ledger.holders)
  after.api.close()
})
