/** The write path without HTTP, and the bare driver doing the same inserts in transactions of the same size. */

import { join } from 'node:path'
import BetterSqlite3 from 'better-sqlite3'
import { systemClock } from '../../src/kernel/clock.ts'
import { migrationsOf } from '../../src/kernel/database.ts'
import { openStore, STORE_SCHEMA } from '../../src/kernel/store.ts'
import { number, type Options, serveCommands, text } from '../child.ts'

const OWNER = 'the benchmark'

/** `writers` that each append an event and wait for it to be on disk, for `ms`. */
async function ours(options: Options) {
  const store = openStore({
    path: join(text(options, 'dir'), 'ours.db'),
    migrations: migrationsOf('store', STORE_SCHEMA),
    owner: OWNER,
    clock: systemClock,
  })
  const until = performance.now() + number(options, 'ms')
  const started = performance.now()
  let count = 0
  const writer = async () => {
    while (performance.now() < until) {
      await store.db.write((tx) =>
        store.log.appendCustom(tx, {
          type: 'bench.append',
          actor: 'bench',
          subject: 's-1',
          payload: { fill: 'x'.repeat(64) },
        }),
      )
      count++
    }
  }
  await Promise.all(Array.from({ length: number(options, 'writers') }, writer))
  const seconds = (performance.now() - started) / 1000
  store.db.close()
  return { perSecond: count / seconds }
}

function bare(options: Options) {
  const db = new BetterSqlite3(join(text(options, 'dir'), 'bare.db'))
  for (const pragma of ['locking_mode = EXCLUSIVE', 'journal_mode = WAL', 'synchronous = FULL']) db.pragma(pragma)
  if (db.pragma('user_version', { simple: true }) === 0) {
    db.exec(STORE_SCHEMA)
    db.pragma('user_version = 1')
  }
  const insert = db.prepare(
    'INSERT INTO events (seq, type, at, actor, subject, city, envelope) VALUES (?, ?, ?, ?, ?, ?, ?)',
  )
  const size = number(options, 'writers')
  let seq = Number(db.prepare('SELECT coalesce(max(seq), 0) FROM events').pluck().get())
  let count = 0
  const started = performance.now()
  const until = started + number(options, 'ms')
  const envelope = JSON.stringify({
    seq: 1_000,
    type: 'bench.append',
    ts: new Date().toISOString(),
    actor: 'bench',
    subject: 's-1',
    payload: { fill: 'x'.repeat(64) },
  })
  const group = db.transaction(() => {
    for (let i = 0; i < size; i++) insert.run(++seq, 1, Date.now(), 'bench', 's-1', null, envelope)
  })
  while (performance.now() < until) {
    group()
    count += size
  }
  const seconds = (performance.now() - started) / 1000
  db.close()
  return { perSecond: count / seconds }
}

serveCommands({ ours, bare })
