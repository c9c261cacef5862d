/** The bead store without HTTP: what a create costs, in pages that a commit writes and in processor time. */
import { statSync } from 'node:fs'
import { systemClock } from '../../src/kernel/clock.ts'
import { migrationsOf } from '../../src/kernel/database.ts'
import { openStore, STORE_SCHEMA, type Store } from '../../src/kernel/store.ts'
import { spokenQuery } from '../../src/modules/beads/query/filters.ts'
import { READY, readPage } from '../../src/modules/beads/query/pages.ts'
import { BEADS_SCHEMA } from '../../src/modules/beads/store/schema.ts'
import { BeadStore } from '../../src/modules/beads/store/store.ts'
import { CONVOYS_SCHEMA } from '../../src/modules/convoys/schema.ts'
import { number, type Options, serveCommands, text } from '../child.ts'
import { machineMicros, percentile } from '../numbers.ts'
import { BEAD_TEXT, benchBead } from '../work-data.ts'

const FRAME_BYTES = 4_096 + 24
const PER_WRITE = 200

interface Opened {
  readonly store: Store
  readonly beads: BeadStore
  readonly path: string
}
let opened: Opened | undefined

/** Makes a store of so many beads; the beads that are created later come behind them. */
async function make(options: Options) {
  const path = text(options, 'path')
  const migrations = migrationsOf('bench', STORE_SCHEMA, ...BEADS_SCHEMA, CONVOYS_SCHEMA)
  const store = openStore({ path, migrations, owner: 'the benchmark', clock: systemClock })
  const beads = new BeadStore({ db: store.db, log: store.log, clock: systemClock })
  opened = { store, beads, path }
  const count = number(options, 'beads')
  for (let from = 0; from < count; from += PER_WRITE) {
    await store.db.write((tx) => {
      for (let at = from; at < Math.min(count, from + PER_WRITE); at++) {
        const { edges, closed, blocked: _, id: __, ...bead } = benchBead(at)
        beads.insert(
          tx,
          { ...bead, prefix: 'al', ...(closed ? { status: 'closed', closed_at: bead.created_at } : {}) },
          'bench',
        )
      }
    })
  }
  return {}
}

const MINIMAL = { prefix: 'al', title: 'Something that is to be done' }
const FULL = (at: number) => ({
  ...MINIMAL,
  title: `Number ${at} of what is to be done`,
  description: BEAD_TEXT,
  labels: [`area-${at % 7}`, `label-${at % 50}`, `team-${at % 13}`],
  assignee: `worker-${at % 20}`,
  routed_to: `pool-${at % 5}`,
  metadata: { team: `team-${at % 13}`, ticket: `t-${at}` },
  priority: at % 5,
})

/** `count` beads, 64 in a commit, as clients on 64 connections would make them. */
async function create(options: Options) {
  if (opened === undefined) throw new Error('make the store first')
  const { store, beads, path } = opened
  const full = number(options, 'full') === 1
  const group = 64
  const commits = Math.ceil(number(options, 'count') / group)
  store.db.get('PRAGMA wal_checkpoint(TRUNCATE)')
  store.db.get('PRAGMA wal_autocheckpoint = 0')
  const before = walBytes(path)
  const cpu = process.cpuUsage()
  const began = performance.now()
  for (let commit = 0; commit < commits; commit++) {
    await Promise.all(
      Array.from({ length: group }, (_, at) =>
        store.db.write((tx) => beads.insert(tx, full ? FULL(commit * group + at) : MINIMAL, 'bench')),
      ),
    )
  }
  const seconds = (performance.now() - began) / 1_000
  const used = process.cpuUsage(cpu)
  const pages = (walBytes(path) - before) / FRAME_BYTES
  store.db.get('PRAGMA wal_autocheckpoint = 1000')
  return {
    perSecond: (commits * group) / seconds,
    pages: pages / commits,
    cpuMs: (used.user + used.system) / 1_000 / commits,
  }
}

const walBytes = (path: string): number => statSync(`${path}-wal`).size

/** One query over and over, as the handler asks it, without the beads of its page. */
async function query(options: Options) {
  if (opened === undefined) throw new Error('make the store first')
  const { store, beads } = opened
  await beads.words.settle()
  const meaning = { now: Date.now(), identities: (name: string) => [name] }
  const asked = text(options, 'q') === '' ? READY : spokenQuery(text(options, 'q'), false)
  const order = text(options, 'q') === '' ? 'ready' : 'newest'
  const until = performance.now() + number(options, 'ms')
  const micros: number[] = []
  let found = 0
  const before = process.cpuUsage()
  while (performance.now() < until) {
    const start = machineMicros()
    found = readPage(store.db, asked, order, { limit: 100 }, meaning).ids.length
    micros.push(machineMicros() - start)
  }
  const { user, system } = process.cpuUsage(before)
  return {
    p50: percentile(micros, 50) / 1_000,
    p99: percentile(micros, 99) / 1_000,
    cpuMs: (user + system) / 1_000 / micros.length,
    found,
  }
}

serveCommands({ make, create, query })
