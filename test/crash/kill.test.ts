/**
 * `kill -9` at any moment, again and again: what was acknowledged is there, what was accepted ends once, nothing blocks.
 *
 *   SVC_SEED=123 n26 --test test/crash/kill.test.ts     the same run again
 *   SVC_SOAK=1                                          100 rounds instead of 12
 */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import BetterSqlite3 from 'better-sqlite3'
import { call, eventually, type Fields, fieldsOf, listAll } from '../support/crash-client.ts'
import {
  emitEvents,
  type LoadDeps,
  logOf,
  operateCities,
  Promises,
  settleBrokenCreates,
  Witness,
} from '../support/crash-load.ts'
import { type Random, seededRandom } from '../support/random.ts'
import { type RunningSupervisor, startSupervisor } from '../support/supervisor.ts'

const ROUNDS = process.env['SVC_SOAK'] === '1' ? 100 : 12
const MAIN = resolve(import.meta.dirname, '..', '..', 'src', 'main.ts')

test(`nothing acknowledged is lost over ${ROUNDS} kills under load`, { timeout: ROUNDS * 30_000 }, async (t) => {
  const random = seededRandom()
  t.diagnostic(`SVC_SEED=${random.seed}`)
  await using first = await startSupervisor()
  await using run = new Run(first, random)
  await run.prepare()
  for (let round = 0; round < ROUNDS; round++) await run.round()
  const summary = await run.finish()
  t.diagnostic(JSON.stringify(summary))
  assert.ok(summary.emitted > ROUNDS && summary.accepted > ROUNDS, 'the load was no load')
})

/** The same home over all its servers, and everybody who talks to them. */
class Run implements AsyncDisposable {
  readonly #random: Random
  readonly #promises = new Promises()
  readonly #watching = new AbortController()
  readonly #witnesses: {
    readonly witness: Witness
    readonly done: Promise<void>
    readonly start: Map<string, number>
  }[] = []
  readonly #home: string
  readonly #work: string
  #server: RunningSupervisor
  readonly #ended = new Set<string>()
  #broken = 0
  #replayed = 0
  #killedInBoot = 0

  constructor(server: RunningSupervisor, random: Random) {
    this.#server = server
    this.#random = random
    this.#home = server.home
    this.#work = server.work
  }

  async [Symbol.asyncDispose]() {
    this.#watching.abort()
    await this.#server.kill('SIGKILL')
    await Promise.allSettled(this.#witnesses.map(({ done }) => done))
  }

  /** Two cities, so that there is something to watch; their streams and two of everything. */
  async prepare(): Promise<void> {
    for (const name of ['base-a', 'base-b']) {
      const answer = await call(this.#server.url, 'POST', '/v0/city', { body: { dir: join(this.#work, name) } })
      assert.equal(answer.status, 202, JSON.stringify(answer))
      this.#promises.accept('city.create', name, answer.body)
      this.#promises.known.add(name)
    }
    await this.#everythingEnds()
    const cursor = await this.#cursor()
    for (let i = 0; i < 2; i++) this.#watch('/v0/events/stream', cursor)
    for (const name of ['base-a', 'base-b']) this.#watch(`/v0/city/${name}/events/stream`, '0', name)
  }

  async round(): Promise<void> {
    const cursor = await this.#cursor()
    const ending = new AbortController()
    const deps: LoadDeps = {
      random: this.#random,
      promises: this.#promises,
      work: this.#work,
      url: () => this.#server.url,
      signal: ending.signal,
    }
    const load = Promise.all([
      operateCities(deps),
      operateCities(deps),
      emitEvents(deps),
      emitEvents(deps),
      emitEvents(deps),
    ])
    await Promise.race([this.#promises.answers(this.#random.between(3, 150)), pause(10_000)])
    // Between two answers too, not only right after one.
    await pause(this.#random.between(0, 8))
    await this.#server.kill('SIGKILL')
    ending.abort()
    await load
    await this.#restart()
    this.#broken += await settleBrokenCreates(this.#server.url, this.#work, this.#promises)
    await this.#everythingEnds()
    await this.#logsAreWhole(cursor)
    await this.#keysReplay()
  }

  async finish() {
    await this.#nothingIsBlocked()
    // Everybody has seen everything that is in the logs by now; then the server ends as it should.
    const cursor = await this.#cursor()
    for (const { witness } of this.#witnesses) await this.#caughtUp(witness, cursor)
    this.#watching.abort()
    await Promise.all(this.#witnesses.map(({ done }) => done))
    assert.equal(await this.#server.kill('SIGTERM'), 0)
    const logs = this.#filesAreWhole()
    this.#witnessesSawAll(logs)
    return {
      accepted: this.#promises.accepted.size,
      emitted: [...this.#promises.emitted.values()].reduce((sum, log) => sum + log.size, 0),
      cities: this.#promises.known.size,
      creates_cut_off: this.#broken,
      keys_replayed: this.#replayed,
      killed_while_starting: this.#killedInBoot,
      connections: this.#witnesses.reduce((sum, { witness }) => sum + witness.connections, 0),
    }
  }

  #watch(path: string, cursor: string, city?: string): void {
    const witness = new Witness(path, cursor, { url: () => this.#server.url, signal: this.#watching.signal })
    const done = witness.follow(city)
    // Looked at in `finish`; until then a failure must not end the process.
    done.catch(() => {})
    const start = new Map(city === undefined ? positions(cursor) : [[city, 0]])
    this.#witnesses.push({ witness, done, start })
  }

  async #restart(): Promise<void> {
    if (this.#random.chance(0.3)) {
      this.#killedInBoot++
      await killWhileStarting(this.#home, this.#random.between(100, 900))
    }
    this.#server = await startSupervisor({ home: this.#home })
  }

  async #cursor(): Promise<string> {
    return String((await call(this.#server.url, 'GET', '/v0/events?limit=1')).body['event_cursor'])
  }

  async #everythingEnds(): Promise<void> {
    for (const [id, { operation, city }] of this.#promises.accepted) {
      if (this.#ended.has(id)) continue
      await eventually(`the end of ${operation} of ${city} (${id})`, async () => {
        const { status, body } = await call(this.#server.url, 'GET', `/v0/requests/${id}`)
        assert.equal(
          status,
          200,
          `${operation} of ${city} was accepted as ${id} and is not known: ${JSON.stringify(body)}`,
        )
        return body['status'] === 'succeeded' || body['status'] === 'failed' ? true : undefined
      })
      this.#ended.add(id)
    }
    const listed = new Set((await listAll(this.#server.url, '/v0/requests')).map((one) => one['request_id']))
    for (const id of this.#ended) assert.ok(listed.has(id), `${id} is not in GET /v0/requests`)
  }

  /** Everything since a cursor from before the kill: no gap, nothing twice, all that was acknowledged. */
  async #logsAreWhole(cursor: string): Promise<void> {
    const events = await listAll(this.#server.url, `/v0/events?order=asc&after_cursor=${encodeURIComponent(cursor)}`)
    const before = positions(cursor)
    const newest = new Map(before)
    const found = new Map<string, Map<number, string>>()
    for (const event of events) {
      const log = logOf(event)
      const seq = Number(event['seq'])
      const last = newest.get(log)
      if (last !== undefined) assert.equal(seq, last + 1, `${log} has a gap or an event twice after ${last}`)
      newest.set(log, seq)
      found.set(log, (found.get(log) ?? new Map()).set(seq, markerOf(event)))
    }
    for (const [city, log] of this.#promises.emitted) {
      const start = before.get(city)
      if (start === undefined) continue
      for (const [seq, marker] of log) {
        if (seq > start)
          assert.equal(found.get(city)?.get(seq), marker, `${city} ${seq} was acknowledged and is not there`)
      }
    }
  }

  /** A key that was answered answers the same; one whose answer was lost is no second event. */
  async #keysReplay(): Promise<void> {
    for (const { key, path, body, answer } of this.#promises.keyed.splice(0)) {
      const again = await call(this.#server.url, 'POST', path, { key, body })
      // An event can be emitted, or its answer asked for, only while the city runs.
      if (path !== '/v0/city' && again.status === 404) continue
      assert.deepEqual(again, answer, `${key} of ${path}`)
      this.#replayed++
    }
    for (const { key, path, body } of this.#promises.unanswered.splice(0)) {
      const again = await call(this.#server.url, 'POST', path, { key, body })
      if (again.status === 404) continue
      assert.equal(again.status, 201, JSON.stringify(again))
      this.#promises.emit(path.split('/')[3] ?? '', Number(again.body['seq']), markerOf(body))
    }
  }

  /** Every directory can be registered again, and every city runs. */
  async #nothingIsBlocked(): Promise<void> {
    for (const city of this.#promises.known) {
      const answer = await eventually(`adopt ${city}`, async () => {
        const adopted = await call(this.#server.url, 'POST', '/v0/cities', { body: { path: join(this.#work, city) } })
        return adopted.status === 202 || adopted.status === 200 ? adopted : undefined
      })
      if (answer.status === 202) this.#promises.accept('city.create', city, answer.body)
      const started = await call(this.#server.url, 'POST', `/v0/city/${city}/start`)
      assert.ok(started.status === 202 || started.status === 409, JSON.stringify(started))
      if (started.status === 202) this.#promises.accept('city.start', city, started.body)
    }
    await this.#everythingEnds()
    const cities = await listAll(this.#server.url, '/v0/cities')
    assert.deepEqual(
      cities.filter(({ running }) => running !== true),
      [],
      'every city runs in the end',
    )
  }

  async #caughtUp(witness: Witness, cursor: string): Promise<void> {
    const heads = positions(cursor)
    const single = /^\/v0\/city\/([^/]+)/.exec(witness.name)?.[1]
    await eventually(`${witness.name} at ${cursor}, is at ${witness.lastId}`, () => {
      if (single !== undefined) return Number(witness.lastId) >= (heads.get(single) ?? 0) ? true : undefined
      const at = positions(witness.lastId)
      return [...heads].every(([log, seq]) => (at.get(log) ?? 0) >= seq) ? true : undefined
    })
  }

  /** The files themselves, with nobody in between: gap-free, complete, one terminal event per request. */
  #filesAreWhole(): ReadonlyMap<string, readonly Fields[]> {
    const logs = new Map([['__supervisor__', readLog(join(this.#home, 'supervisor.db'))]])
    for (const city of this.#promises.known) logs.set(city, readLog(join(this.#work, city, '.svc', 'city.db')))
    for (const [name, events] of logs) {
      for (const [index, { seq }] of events.entries()) assert.equal(seq, index + 1, `${name} has a gap at ${index + 1}`)
    }
    for (const [city, log] of this.#promises.emitted) {
      for (const [seq, marker] of log) assert.equal(markerOf(logs.get(city)?.[seq - 1]), marker, `${city} ${seq}`)
    }
    const ends = new Map<string, number>()
    const markers = new Set<string>()
    for (const event of [...logs.values()].flat()) {
      const id = String(fieldsOf(event['payload'])['request_id'] ?? '')
      if (String(event['type']).startsWith('request.')) ends.set(id, (ends.get(id) ?? 0) + 1)
      const marker = markerOf(event)
      assert.ok(marker === '' || !markers.has(marker), `${marker} is in the logs twice`)
      markers.add(marker)
    }
    for (const [id, { operation, city }] of this.#promises.accepted)
      assert.equal(ends.get(id), 1, `${operation} of ${city} (${id})`)
    assert.deepEqual(
      [...ends].filter(([, count]) => count !== 1),
      [],
      'one terminal event per request, also where the 202 was lost',
    )
    assert.deepEqual(unfinished(join(this.#home, 'supervisor.db')), [], 'nothing is left unfinished')
    return logs
  }

  /** Every stream, over all its connections: each event of each log since it started. */
  #witnessesSawAll(logs: ReadonlyMap<string, readonly Fields[]>): void {
    for (const { witness, start } of this.#witnesses) {
      const last = Math.max(...[...witness.seen.values()].map((log) => log.size), 0)
      assert.ok(last > 0, `${witness.name} saw nothing`)
      for (const [log, events] of logs) {
        const single = !witness.name.startsWith('/v0/events')
        if (single && !start.has(log)) continue
        const seen = witness.seen.get(log)
        const upTo = Math.max(...(seen?.keys() ?? [0]))
        for (const event of events.slice(start.get(log) ?? 0, upTo)) {
          assert.equal(
            seen?.get(Number(event['seq'])),
            JSON.stringify(event),
            `${witness.name} missed ${log} ${event['seq']}`,
          )
        }
      }
    }
  }
}

function markerOf(event: unknown): string {
  return String(fieldsOf(fieldsOf(event)['payload'])['marker'] ?? '')
}

function positions(cursor: string): Map<string, number> {
  const parts = cursor === '0' ? [] : cursor.split(',')
  return new Map(
    parts.map((part) => [part.slice(0, part.lastIndexOf(':')), Number(part.slice(part.lastIndexOf(':') + 1))]),
  )
}

function readLog(path: string): readonly Fields[] {
  assert.ok(existsSync(path), path)
  const db = new BetterSqlite3(path, { readonly: true })
  try {
    const rows: unknown[] = db.prepare('SELECT envelope FROM events ORDER BY seq').pluck().all()
    return rows.map((text): Fields => fieldsOf(JSON.parse(String(text))))
  } finally {
    db.close()
  }
}

function unfinished(path: string): readonly unknown[] {
  const db = new BetterSqlite3(path, { readonly: true })
  try {
    return db.prepare("SELECT id FROM requests WHERE status NOT IN ('succeeded', 'failed')").pluck().all()
  } finally {
    db.close()
  }
}

/** A server that never gets to its ready line, or hardly past it. */
async function killWhileStarting(home: string, afterMs: number): Promise<void> {
  const child = spawn(process.execPath, [MAIN, 'serve', '--port', '0', '--home', home], {
    stdio: 'ignore',
    env: { ...process.env, HOME: resolve(home, '..') },
  })
  const ended = new Promise((done) => child.once('exit', done))
  await pause(afterMs)
  child.kill('SIGKILL')
  await ended
}
