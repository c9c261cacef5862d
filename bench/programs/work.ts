/** Fills a city with beads by an import; and the floor of work: the same statements by the bare driver. */
import { randomBytes } from 'node:crypto'
import { request } from 'node:http'
import { finished } from 'node:stream/promises'
import BetterSqlite3 from 'better-sqlite3'
import type { Participant, SqlValue, Tx } from '../../src/kernel/database.ts'
import { STORE_SCHEMA } from '../../src/kernel/store.ts'
import { completed } from '../../src/modules/beads/store/columns.ts'
import { hasLabel } from '../../src/modules/beads/store/labels.ts'
import { READY_SOURCES } from '../../src/modules/beads/store/ready.ts'
import { RECORD_SQL } from '../../src/modules/beads/store/record.ts'
import { BeadRows } from '../../src/modules/beads/store/rows.ts'
import { BEADS_SCHEMA } from '../../src/modules/beads/store/schema.ts'
import { number, type Options, serveCommands, text } from '../child.ts'
import { machineMicros, percentile } from '../numbers.ts'
import { type BenchBead, benchBead, LINES, ROOT } from '../work-data.ts'

/** Lines that an import takes into one transaction. */
const PER_WRITE = 200
const PIECE_LINES = 100

/** Streams `beads` lines of a kind into the import at `url`. */
async function fill(options: Options) {
  const beads = number(options, 'beads')
  const lineOf = LINES[text(options, 'kind')]
  if (lineOf === undefined) throw new Error('no such kind of lines')
  const began = performance.now()
  const upload = request(text(options, 'url'), {
    method: 'POST',
    headers: { 'Content-Type': 'application/x-ndjson', 'X-SVC-Request': 'bench' },
  })
  const answer = new Promise<string>((resolve, reject) => {
    upload.on('error', reject).on('response', (response) => {
      let body = ''
      response.setEncoding('utf8').on('data', (chunk: string) => {
        body += chunk
      })
      response.on('error', reject).on('end', () => resolve(body))
    })
  })
  for (let at = 0; at < beads; at += PIECE_LINES) {
    const lines = Array.from({ length: Math.min(PIECE_LINES, beads - at) }, (_, one) => lineOf(at + one))
    if (!upload.write(lines.join(''))) await new Promise((resolve) => upload.once('drain', resolve))
  }
  upload.end()
  await finished(upload, { readable: false })
  const body = await answer
  if (!body.includes(`"created":${beads}`)) throw new Error(`the import answered ${body.slice(0, 500)}`)
  return { perSecond: (beads * 1000) / (performance.now() - began) }
}

interface Bare {
  readonly db: BetterSqlite3.Database
  readonly tx: Tx
  readonly rows: BeadRows
  /** What every commit writes beside the rows of its changes. */
  readonly finish: () => void
  seq: number
}
let open: Bare | undefined

function bare(): Bare {
  if (open === undefined) throw new Error('make the database first')
  return open
}

function openBare(path: string): Bare {
  const db = new BetterSqlite3(path)
  for (const pragma of ['locking_mode = EXCLUSIVE', 'journal_mode = WAL', 'synchronous = FULL']) db.pragma(pragma)
  db.exec(STORE_SCHEMA)
  for (const step of BEADS_SCHEMA) db.exec(step)
  const statements = new Map<string, BetterSqlite3.Statement<SqlValue[], Record<string, SqlValue>>>()
  const prepared = (sql: string) => {
    const found = statements.get(sql) ?? db.prepare<SqlValue[], Record<string, SqlValue>>(sql)
    statements.set(sql, found)
    return found
  }
  const tx: Tx = {
    run: (sql, ...values) => prepared(sql).run(...values).changes,
    get: (sql, ...values) => prepared(sql).get(...values),
    all: (sql, ...values) => prepared(sql).all(...values),
    afterCommit: () => undefined,
  }
  const participants: Participant[] = []
  const write = () => Promise.reject(new Error('the floor has no queue of writes'))
  const rows = new BeadRows({ get: tx.get, write, join: (one) => void participants.push(one) })
  const finish = () => {
    for (const one of participants) one.beforeCommit(tx)
    for (const one of participants) one.committed()
  }
  return { db, tx, rows, finish, seq: 0 }
}

/** The rows that the import of `beads` beads leaves, events included. */
function make(options: Options) {
  open = openBare(text(options, 'path'))
  const beads = number(options, 'beads')
  const began = performance.now()
  const write = open.db.transaction((from: number) => {
    for (let at = from; at < Math.min(beads, from + PER_WRITE); at++) insertBead(bare(), benchBead(at))
    bare().finish()
  })
  for (let from = 0; from < beads; from += PER_WRITE) write(from)
  return { perSecond: (beads * 1000) / (performance.now() - began) }
}

function insertBead(to: Bare, bead: BenchBead): void {
  const { id, title, description, closed, priority, issue_type, labels, assignee, metadata, created_at, edges } = bead
  const columns = completed({
    title,
    description,
    priority,
    issue_type,
    assignee: assignee ?? null,
    created_at,
    updated_at: created_at,
    status: closed ? 'closed' : 'open',
    ...(closed ? { closed_at: created_at, close_reason: 'done' } : {}),
  })
  const taken = to.tx.get(`${RECORD_SQL} WHERE b.id = ?`, id)
  if (taken !== undefined) throw new Error(`${id} is there already`)
  to.rows.insert(to.tx, id, columns, labels, metadata, created_at)
  for (const { target, type } of edges) {
    to.tx.get('SELECT status FROM beads WHERE id = ?', target)
    to.tx.run(
      'INSERT INTO bead_deps (issue_id, depends_on_id, type, created_at) VALUES (?, ?, ?, ?)',
      id,
      target,
      type,
      created_at,
    )
  }
  const parent = edges.find(({ type }) => type === 'parent-child')?.target ?? null
  if (edges.length > 0)
    to.tx.run('UPDATE beads SET blockers = ?, parent = ? WHERE id = ?', bead.blocked ? 1 : 0, parent, id)
  appendEvent(to, 'bead.created', id)
}

/** The bead as it is now, in an event. */
function appendEvent(to: Bare, type: string, id: string): void {
  const bead = to.tx.get(`${RECORD_SQL} WHERE b.id = ?`, id)
  to.seq += 1
  to.tx.run(
    'INSERT INTO events (seq, type, at, actor, subject, city, envelope) VALUES (?, ?, ?, ?, ?, ?, ?)',
    to.seq,
    1,
    Date.now(),
    'api',
    id,
    null,
    JSON.stringify({ seq: to.seq, type, actor: 'api', subject: id, payload: { bead } }),
  )
}

/** New beads, `group` in each transaction. */
function create(options: Options) {
  const to = bare()
  const count = number(options, 'count')
  const group = to.db.transaction(() => {
    for (let one = 0; one < number(options, 'group'); one++) {
      const id = `al-x${randomBytes(6).toString('hex')}`
      insertBead(to, { ...benchBead(1), id, closed: false, edges: [], created_at: Date.now() })
    }
    to.finish()
  })
  const began = performance.now()
  let made = 0
  for (; made < count; made += number(options, 'group')) group()
  return { perSecond: (made * 1000) / (performance.now() - began) }
}

const CLAIM = `UPDATE beads SET updated_at = ?, assignee = ?, status = ?, lease_ms = ?, lease_expires_at = ?, revision = revision + 1
  WHERE id = ? AND revision = ?`

/** Beads are claimed and released in turn, all of them in each transaction, as waiting writes are. */
function claim(options: Options) {
  const to = bare()
  const ids = text(options, 'ids').split(',')
  const change = to.db.transaction((assignee: string | null) => {
    for (const id of ids) {
      const before = to.tx.get(`${RECORD_SQL} WHERE b.id = ?`, id)
      const lease = assignee === null ? null : 900_000
      const now = Date.now()
      const status = assignee === null ? 'open' : 'in_progress'
      to.tx.run(CLAIM, now, assignee, status, lease, lease && now + lease, id, Number(before?.['revision']))
      appendEvent(to, 'bead.updated', id)
      appendEvent(to, assignee === null ? 'bead.released' : 'bead.claimed', id)
    }
  })
  const began = performance.now()
  let count = 0
  while (performance.now() - began < number(options, 'ms')) {
    change('bench')
    change(null)
    count += ids.length
  }
  return { perSecond: (count * 1000) / (performance.now() - began) }
}

const LOAD = `${RECORD_SQL} WHERE b.id IN (SELECT value FROM json_each(?))`
const LIVE = `FROM beads b INDEXED BY beads_live WHERE b.status <> 'closed'`
const READY = `FROM ${READY_SOURCES[0].replace('?', `${Date.now()}`)}`
const URGENT = `${LIVE} AND b.priority IS NOT NULL AND b.priority < 2 AND ${hasLabel('area-0')}`
const FACTS = 'FROM beads b INDEXED BY beads_facts'
const COUNTS = 'SELECT sum(beads) AS n FROM bead_counts'
const NEWEST = 'ORDER BY b.created_at DESC, b.id DESC LIMIT 101'

/** Ids of a page, and how many there are in all. */
const PAGES: Readonly<Record<string, readonly [ids: string, total: string]>> = {
  list: [`SELECT b.id ${LIVE} ${NEWEST}`, `${COUNTS} WHERE status <> 'closed'`],
  all: [`SELECT b.id ${FACTS} ${NEWEST}`, COUNTS],
  ready: [
    `SELECT b.id ${READY} ORDER BY coalesce(b.priority, 2), b.created_at, b.id LIMIT 101`,
    `SELECT count(*) AS n ${READY}`,
  ],
  query: [`SELECT b.id ${URGENT} ${NEWEST}`, `SELECT count(*) AS n ${URGENT}`],
}
const MEMBERS = `WITH RECURSIVE members (id) AS (
  SELECT * FROM (SELECT ? UNION SELECT id FROM beads WHERE root_bead_id = ?)
  UNION SELECT b.id FROM members m JOIN beads b ON b.parent = m.id) SELECT id FROM members`
const EDGES = 'SELECT issue_id, depends_on_id, type FROM bead_deps WHERE issue_id IN (SELECT value FROM json_each(?))'

/** One kind of read over and over, rows as they are turned into text. */
function read(options: Options) {
  const { tx } = bare()
  const kind = text(options, 'kind')
  const once = kind === 'graph' ? () => readGraph(tx) : () => readPage(tx, kind)
  const until = performance.now() + number(options, 'ms')
  const micros: number[] = []
  while (performance.now() < until) {
    const began = machineMicros()
    once()
    micros.push(machineMicros() - began)
  }
  return { p50: percentile(micros, 50) / 1000, p99: percentile(micros, 99) / 1000 }
}

function readPage(tx: Tx, kind: string): number {
  const [page, total] = PAGES[kind] ?? ['', '']
  const ids = tx.all(page).map((row) => String(row['id']))
  const items = tx.all(LOAD, JSON.stringify(ids.slice(0, 100)))
  return JSON.stringify({ items, total: tx.get(total)?.['n'] }).length
}

function readGraph(tx: Tx): number {
  const ids = JSON.stringify(tx.all(MEMBERS, ROOT, ROOT).map((row) => String(row['id'])))
  return JSON.stringify({ beads: tx.all(LOAD, ids), deps: tx.all(EDGES, ids) }).length
}

serveCommands({ fill, make, create, claim, read })
