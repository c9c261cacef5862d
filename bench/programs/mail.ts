/** A mailbox for every agent of a city, full of old mail; and the same questions to a bare database of the same file. */
import { copyFileSync } from 'node:fs'
import BetterSqlite3 from 'better-sqlite3'
import { systemClock } from '../../src/kernel/clock.ts'
import { randomHex } from '../../src/kernel/ids.ts'
import { openStore } from '../../src/kernel/store.ts'
import { mailboxOfAgent } from '../../src/messaging/address.ts'
import { insertMails } from '../../src/modules/mail/store.ts'
import { CITY_SCHEMA } from '../../src/supervisor/families.ts'
import { number, type Options, serveCommands, text } from '../child.ts'
import { machineMicros, percentile } from '../numbers.ts'

const PER_WRITE = 500
const MAILBOXES = 50
const WORDS = 5_000
const BEGAN = Date.parse('2026-01-01T00:00:00Z')

/** Few words are in very many messages, and most in few. */
const wordOf = (seed: number): string => `word${Math.floor(WORDS * ((seed % 9_973) / 9_973) ** 3)}`
const bodyOf = (at: number): string =>
  ['deploy', ...Array.from({ length: 40 }, (_, index) => wordOf(at * 41 + index * 7_919)), `number${at}`].join(' ')

/** Into the database of a city that does not run. */
async function fill(options: Options) {
  const path = text(options, 'path')
  const store = openStore({ path, migrations: CITY_SCHEMA, owner: 'the benchmark', clock: systemClock })
  const count = number(options, 'messages')
  for (let from = 0; from < count; from += PER_WRITE) {
    await store.db.write((tx) => {
      for (let at = from; at < Math.min(count, from + PER_WRITE); at++) {
        const agent = `agent${at % MAILBOXES}`
        const draft = {
          id: `ml-${randomHex(8)}`,
          mailbox: mailboxOfAgent(agent),
          sender: 'human',
          from: 'human',
          to: agent,
          subject: `About the ${wordOf(at)}`,
          thread_id: `thread-${at >> 2}`,
          reply_to: undefined,
          copy_of: undefined,
          cc: [],
          priority: at % 50 === 0 ? 1 : 0,
          silent: false,
          rig: '',
          from_session_id: undefined,
          to_session_id: undefined,
          created_at: BEGAN + at * 1_000,
        }
        insertMails(tx, [draft], bodyOf(at))
      }
      // One in ten is unread, three are archived, the others were read.
      tx.run(
        "UPDATE mail SET status = 'read', read = 1, read_at = created_at WHERE seq > ? AND (seq / 50) % 10 BETWEEN 4 AND 9",
        from,
      )
      tx.run(
        "UPDATE mail SET status = 'archived', archived_at = created_at WHERE seq > ? AND (seq / 50) % 10 BETWEEN 1 AND 3",
        from,
      )
    })
  }
  store.db.close()
  copyFileSync(path, `${path}.bare`)
  return {}
}

const READS: Readonly<Record<string, string>> = {
  list: `SELECT m.*, t.body FROM mail AS m CROSS JOIN mail_texts AS t ON t.text = m.text
    WHERE m.mailbox = 'agent:agent7' AND m.status = 'unread' ORDER BY m.seq DESC LIMIT 100`,
  count: "SELECT status, n FROM mail_counts WHERE mailbox = 'agent:agent7'",
  search: `SELECT m.*, t.body FROM (SELECT rowid FROM mail_search WHERE mail_search MATCH 'deploy' ORDER BY rowid DESC LIMIT 100) AS f
    CROSS JOIN mail AS m ON m.text = f.rowid CROSS JOIN mail_texts AS t ON t.text = m.text`,
}

/** Milliseconds of one such statement on the copy. */
async function read(options: Options) {
  const db = new BetterSqlite3(`${text(options, 'path')}.bare`)
  const statement = db.prepare(READS[text(options, 'kind')] ?? '')
  const took: number[] = []
  const until = machineMicros() + number(options, 'ms') * 1000
  for (let now = machineMicros(); now < until; ) {
    statement.all()
    const then = machineMicros()
    took.push((then - now) / 1000)
    now = then
  }
  db.close()
  return { p50: percentile(took, 50) }
}

serveCommands({ fill, read })
