/** Molecules of one store without a supervisor around them, and the same rows in a bare database. */
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import BetterSqlite3 from 'better-sqlite3'
import { pino } from 'pino'
import type { Plan, PlanStep } from '../src/automation/plan.ts'
import { systemClock } from '../src/kernel/clock.ts'
import { migrationsOf } from '../src/kernel/database.ts'
import { REACTIONS_SCHEMA, Reactions } from '../src/kernel/reactions.ts'
import { openStore, STORE_SCHEMA, type Store } from '../src/kernel/store.ts'
import { BEADS_SCHEMA } from '../src/modules/beads/store/schema.ts'
import { BeadStore } from '../src/modules/beads/store/store.ts'
import { MOLECULES_SCHEMA } from '../src/modules/molecules/engine/base/schema.ts'
import { Molecules } from '../src/modules/molecules/engine/molecules.ts'
import { engineBeads } from '../src/supervisor/views/molecule-engine.ts'

const migrations = migrationsOf('bench', STORE_SCHEMA, REACTIONS_SCHEMA, ...BEADS_SCHEMA, ...MOLECULES_SCHEMA)
const config = () => ({ prefix: 'al', rigs: [], agents: [], named_sessions: [], beads: {} })

/** `count` steps that wait for nothing. */
export function wideOf(count: number): Plan {
  const plan = chainOf(count)
  return { ...plan, formula: `wide-${count}`, steps: plan.steps.map((step) => ({ ...step, needs: [] })) }
}

/** `count` steps, each after the one before it. */
export function chainOf(count: number): Plan {
  const steps = Array.from({ length: count }, (_, at): PlanStep => {
    const needs = at === 0 ? [] : [`s${at - 1}`]
    const nothing = { tags: [], metadata: {}, output: [], always: false, on_fail: 'fail' } as const
    return { id: `s${at}`, title: `Step ${at}`, description: 'Do it.', needs, ...nothing, body: { kind: 'work' } }
  })
  return { version: 1, formula: `chain-${count}`, title: 'Chain', target: 'worker', vars: {}, fragments: {}, steps }
}

export class MoleculeStore implements AsyncDisposable {
  readonly store: Store
  readonly beads: BeadStore
  readonly molecules: Molecules
  readonly #reactions: Reactions

  constructor(dir: string) {
    const clock = systemClock
    const logger = pino({ level: 'silent' })
    this.store = openStore({ path: join(dir, 'city.db'), migrations, owner: 'a benchmark', clock })
    const { db, log } = this.store
    this.beads = new BeadStore({ db, log, clock })
    this.molecules = new Molecules({
      db,
      log,
      clock,
      logger,
      random: () => 0.5,
      beads: engineBeads({ store: { db }, beads: this.beads, config }, clock),
      execs: { begin: () => ({ id: 'ex-1', isQueued: false }), cancel: () => {} },
      city: {
        city: { name: 'alpha', path: dir },
        rig: () => undefined,
        workPlace: () => undefined,
        resolveTarget: (target) => ({ target, known: true }),
        canonical: (name) => name,
        interrupt: () => {},
        orderEnded: () => {},
      },
    })
    this.#reactions = new Reactions({
      db,
      log,
      clock,
      logger,
      reactions: [this.molecules.reaction()],
      skipped: () => {},
    })
  }

  async run(): Promise<void> {
    await this.#reactions.start()
    await this.molecules.open()
  }

  start(plan: Plan): Promise<{ readonly id: string; readonly n: number }> {
    const input = { plan, formula_hash: 'bench', vars: {}, rig: '', actor: 'bench' }
    return this.store.db.write((tx) => this.molecules.start(tx, input))
  }

  /** Closes the bead that is open in a molecule; resolves when the next one is there. */
  async close(molecule: number): Promise<void> {
    const bead = this.#openBead(molecule)
    await this.store.db.write((tx) => this.beads.change(tx, bead, { status: 'closed', outcome: 'pass' }, 'bench'))
    await new Promise<void>((resolve) => {
      const look = () => {
        if (this.#openBead(molecule) === bead) return
        leave()
        resolve()
      }
      const leave = this.store.log.onCommit(look)
      look()
    })
  }

  /** Starts one whose steps wait for nothing; resolves when all their beads are open. */
  async startWide(steps: number): Promise<string> {
    const { id } = await this.start(wideOf(steps))
    const open = 'SELECT count(*) AS beads FROM beads WHERE root_bead_id = ?'
    while (Number(this.store.db.get(open, id)?.beads) < steps) await delay(5)
    return id
  }

  /** Ends one; how long the write took that decided it. */
  async cancel(id: string): Promise<number> {
    let taken = 0
    await this.store.db.write((tx) => {
      const began = performance.now()
      this.molecules.cancel(tx, id, 'enough', 'bench')
      taken = performance.now() - began
    })
    await this.molecules.stopped(id)
    return taken
  }

  #openBead(molecule: number): string {
    const row = this.store.db.get(
      `SELECT bead FROM molecule_steps WHERE id > ? AND id < ? AND phase = 'work' LIMIT 1`,
      molecule * 16_384,
      molecule * 16_384 + 16_384,
    )
    return String(row?.bead)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#reactions.stop()
    await this.molecules.close()
    this.store.db.close()
  }
}

/** The rows that a close and a start write, and nothing that decides about them. */
export class BareRows implements Disposable {
  readonly #db: BetterSqlite3.Database
  #n = 0

  constructor(dir: string) {
    this.#db = new BetterSqlite3(join(dir, 'bare.db'))
    this.#db.pragma('journal_mode = WAL')
    this.#db.pragma('synchronous = FULL')
    this.#db.exec(migrations.map(({ sql }) => sql).join(';'))
  }

  /** A bead closes, with its event; then another is there, with the rows around it and their events. */
  close(): void {
    this.#db.transaction(() => {
      this.#db.prepare("UPDATE beads SET status = 'closed', outcome = 'pass' WHERE n = ?").run(this.#n)
      this.#events(1)
    })()
    this.#db.transaction(() => {
      this.#bead()
      const set = this.#db.prepare("UPDATE molecule_steps SET phase = 'settled', status = 'completed' WHERE id = ?")
      for (const step of [1, 2, 3]) set.run(step)
      this.#db.prepare('UPDATE molecules SET completed = completed + 1, revision = revision + 1 WHERE n = 1').run()
      this.#db.prepare("INSERT OR REPLACE INTO reaction_cursors VALUES ('molecules', ?)").run(this.#n)
      this.#events(4)
    })()
  }

  /** A molecule of so many steps. */
  start(steps: number): void {
    const base = ++this.#n * 16_384
    const row = this.#db.prepare(
      `INSERT INTO molecule_steps (id, parent, node, path, phase, status, unsettled) VALUES (?, ?, ?, ?, 'pending', 'pending', 1)`,
    )
    this.#db.transaction(() => {
      this.#bead()
      this.#bead()
      for (let at = 1; at <= steps; at++) row.run(base + at, base, at, `s${at}`)
      this.#events(4)
    })()
  }

  [Symbol.dispose](): void {
    this.#db.close()
  }

  #bead(): void {
    this.#db
      .prepare('INSERT INTO beads (id, title, status, issue_type, created_at, updated_at) VALUES (?, ?, ?, ?, ?, ?)')
      .run(`b-${++this.#n}`, 'A step', 'open', 'task', this.#n, this.#n)
  }

  #events(count: number): void {
    const insert = this.#db.prepare(
      "INSERT INTO events (type, at, actor, subject, envelope) VALUES (1, 1, 'bench', ?, ?)",
    )
    for (let at = 0; at < count; at++) insert.run(`b-${this.#n}`, ENVELOPE)
  }
}

const ENVELOPE = JSON.stringify({ seq: 1, type: 'bead.updated', payload: { bead: 'x'.repeat(400) } })
