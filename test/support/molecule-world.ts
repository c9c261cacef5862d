/** Molecules in a real store with real beads and a clock of their own, without a supervisor around them. */
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { pino } from 'pino'
import type { Plan, PlanStep, Value } from '../../src/automation/plan.ts'
import { migrationsOf } from '../../src/kernel/database.ts'
import { REACTIONS_SCHEMA, Reactions } from '../../src/kernel/reactions.ts'
import { openStore, STORE_SCHEMA, type Store } from '../../src/kernel/store.ts'
import type { BeadRecord } from '../../src/modules/beads/store/record.ts'
import { BEADS_SCHEMA } from '../../src/modules/beads/store/schema.ts'
import { type BeadDraft, BeadStore } from '../../src/modules/beads/store/store.ts'
import type { ExecEnd, ExecStart, WorkPlace } from '../../src/modules/molecules/engine/base/ports.ts'
import {
  type MoleculeRow,
  parseMolecule,
  parseStep,
  type StepRow,
} from '../../src/modules/molecules/engine/base/rows.ts'
import { MOLECULES_SCHEMA } from '../../src/modules/molecules/engine/base/schema.ts'
import type { StartInput } from '../../src/modules/molecules/engine/life/start.ts'
import { Molecules } from '../../src/modules/molecules/engine/molecules.ts'
import { engineBeads } from '../../src/supervisor/views/molecule-engine.ts'
import { seededIds } from './bead-ids.ts'
import { ManualClock } from './manual-clock.ts'
import { seededRandom } from './random.ts'
import { temporaryDirectory } from './temporary.ts'

const NOTHING = {
  needs: [],
  tags: [],
  metadata: {},
  output: [],
  always: false,
  on_fail: 'fail',
  body: { kind: 'work' },
} as const

/** A step of a plan of which only some is said. */
export const step = (id: string, said: Partial<PlanStep> = {}): PlanStep => ({ id, title: id, ...NOTHING, ...said })

export const group = (id: string, steps: readonly PlanStep[], said: Partial<PlanStep> = {}): PlanStep => ({
  id,
  ...NOTHING,
  body: { kind: 'group', steps },
  ...said,
})

export const planOf = (steps: readonly PlanStep[], said: Partial<Plan> = {}): Plan => ({
  version: 1,
  formula: 'tried',
  title: 'Tried',
  target: 'worker',
  vars: {},
  fragments: {},
  steps,
  ...said,
})

interface RunningCheck extends ExecStart {
  readonly id: string
}

const migrations = migrationsOf('test', STORE_SCHEMA, REACTIONS_SCHEMA, ...BEADS_SCHEMA, ...MOLECULES_SCHEMA)

export class MoleculeWorld implements AsyncDisposable {
  readonly clock: ManualClock
  readonly path: string
  /** Checks that run, in the order of their start. */
  readonly checks: RunningCheck[] = []
  /** Who was interrupted, and why. */
  readonly interrupted: { readonly assignee: string | null; readonly why: string }[] = []
  /** Whether checks wait for a slot until `free` gives them one. */
  queues = false
  readonly ordersEnded: (readonly [string, string])[] = []
  /** Where sessions work. */
  readonly places = new Map<string, WorkPlace>()
  /** Names of rigs that are configured; beads of another one cannot be made. */
  rigs: readonly string[] = ['shop']
  /** Whoever asks for this person by name gets an error that nobody expects. */
  static readonly UNKNOWABLE = 'unknowable'
  /** It takes 20 ms to find out who this is. */
  static readonly SLOW = 'slow'
  /** What the random source says; in the middle by default, so that delays are as written. */
  random = 0.5
  readonly #directory = temporaryDirectory()
  readonly #chance = seededRandom()
  #store: Store
  #beads: BeadStore
  #molecules: Molecules
  #reactions: Reactions
  #execs = 0

  private constructor(clock = new ManualClock()) {
    this.clock = clock
    this.path = join(this.#directory.path, 'city.db')
    this.#store = this.#openStore()
    this.#beads = this.#openBeads()
    this.#molecules = this.#makeMolecules()
    this.#reactions = this.#makeReactions()
  }

  static async open(clock?: ManualClock): Promise<MoleculeWorld> {
    const world = new MoleculeWorld(clock)
    await world.#run()
    return world
  }

  get store(): Store {
    return this.#store
  }
  get beads(): BeadStore {
    return this.#beads
  }
  get molecules(): Molecules {
    return this.#molecules
  }

  /** As after a crash that nobody noticed for a while: everything in memory is gone. */
  async restart(downMs = 0): Promise<void> {
    await this.#end()
    this.clock.step(downMs)
    this.#store = this.#openStore()
    this.#beads = this.#openBeads()
    this.#molecules = this.#makeMolecules()
    this.#reactions = this.#makeReactions()
    await this.#run()
  }

  #openBeads(): BeadStore {
    const { db, log } = this.#store
    return new BeadStore({ db, log, clock: this.clock, ids: seededIds(this.#chance) })
  }

  /** Stops looking, as between a crash and the next start. */
  async #end(): Promise<void> {
    await this.#reactions.stop()
    await this.#molecules.close()
    this.#store.db.close()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#end()
    this.#directory[Symbol.dispose]()
  }

  async start(plan: Plan, said: Partial<StartInput> = {}): Promise<MoleculeRow> {
    const input = { plan, formula_hash: 'hash', vars: {}, rig: '', actor: 'test', ...said }
    const started = await this.#store.db.write((tx) => this.#molecules.start(tx, input))
    await this.quiet()
    return this.molecule(started.id)
  }

  bead(title: string, said: Partial<BeadDraft> = {}): Promise<BeadRecord> {
    return this.#store.db.write((tx) => this.#beads.insert(tx, { prefix: 'al', ...said, title }, 'test'))
  }

  molecule(id: string): MoleculeRow {
    const row = this.#store.db.get('SELECT * FROM molecules WHERE id = ?', id)
    assert.ok(row, `no molecule ${id}`)
    return parseMolecule(row)
  }

  /** Its rows that are not superseded, by path. */
  steps(id: string): ReadonlyMap<string, StepRow> {
    return new Map(
      this.rows(id)
        .filter(({ superseded }) => !superseded)
        .map((row) => [row.path, row]),
    )
  }

  rows(id: string): readonly StepRow[] {
    const { n } = this.molecule(id)
    return this.#store.db
      .all('SELECT * FROM molecule_steps WHERE id > ? AND id < ? ORDER BY id', n * 16_384, (n + 1) * 16_384)
      .map(parseStep)
  }

  at(id: string, path: string): StepRow {
    const row = this.steps(id).get(path)
    assert.ok(row, `no step ${path}`)
    return row
  }

  /** `path: status` of all its rows. */
  statuses(id: string): Record<string, string> {
    return Object.fromEntries([...this.steps(id)].map(([path, { status }]) => [path, status]))
  }

  async claim(id: string, path: string, assignee = 'worker'): Promise<void> {
    const { bead } = this.at(id, path)
    assert.ok(bead)
    const payload = { bead_id: bead, assignee, lease_expires_at: new Date(this.clock.now()).toISOString() }
    await this.#store.db.write((tx) =>
      this.#beads.change(tx, bead, { status: 'in_progress', assignee, session_id: 'se-1' }, assignee, {
        also: () => [{ type: 'bead.claimed', actor: assignee, subject: bead, payload }],
      }),
    )
    await this.quiet()
  }

  async close(id: string, path: string, said: CloseOf = {}): Promise<void> {
    const { bead } = this.at(id, path)
    assert.ok(bead, `${path} has no bead`)
    await this.closeBead(bead, said)
  }

  async closeBead(bead: string, { outcome = 'pass', output, failure_class, reason }: CloseOf = {}): Promise<void> {
    await this.#store.db.write((tx) =>
      this.#beads.change(
        tx,
        bead,
        {
          status: 'closed',
          outcome,
          ...(output === undefined ? {} : { output_json: JSON.stringify(output) }),
          ...(failure_class === undefined ? {} : { failure_class }),
          ...(reason === undefined ? {} : { close_reason: reason }),
        },
        'worker',
      ),
    )
    await this.quiet()
  }

  async loseLease(id: string, path: string): Promise<void> {
    const { bead } = this.at(id, path)
    assert.ok(bead)
    await this.#store.db.write((tx) =>
      this.#beads.change(tx, bead, { status: 'open', assignee: null }, 'supervisor', {
        also: () => [{ type: 'bead.lease_expired', actor: 'supervisor', subject: bead, payload: { bead_id: bead } }],
      }),
    )
    await this.quiet()
  }

  /** The check of a step gets the slot that it has waited for. */
  async free(path: string): Promise<void> {
    const check = this.checks.find(({ step_id }) => step_id === path)
    assert.ok(check, `no check of ${path}`)
    await this.#store.db.write((tx) => this.#molecules.checkStarted(tx, check.id))
    await this.quiet()
  }

  async checked(path: string, end: number | ExecEnd['kind']): Promise<void> {
    const check = this.checks.findIndex(({ step_id }) => step_id === path)
    const [run] = check < 0 ? [] : this.checks.splice(check, 1)
    assert.ok(run, `no check of ${path} runs`)
    const said = typeof end === 'number' ? { kind: 'exited' as const, exit_code: end } : { kind: end }
    await this.#store.db.write((tx) => this.#molecules.checkEnded(tx, run.id, { ...said, output: 'what it said' }))
    await this.quiet()
  }

  /** An event of somebody else. */
  async emit(type: string, payload: object = {}): Promise<void> {
    await this.#store.db.write((tx) => this.#store.log.appendCustom(tx, { type, actor: 'test', payload }))
    await this.quiet()
  }

  async advance(ms: number): Promise<void> {
    await this.clock.advance(ms)
    await this.quiet()
  }

  /** Resolves when nothing happens any more without somebody, or time. */
  async quiet(): Promise<void> {
    for (let calm = 0; calm < 4; ) {
      const { head } = this.#store.log
      const due = this.#due()
      await this.clock.advance(0)
      for (let turn = 0; turn < 3; turn++) await new Promise((resolve) => setImmediate(resolve))
      calm = head === this.#store.log.head && due === 0 && this.#due() === 0 ? calm + 1 : 0
    }
  }

  /** Types and statuses of what the log says about steps and molecules, oldest first. */
  events(pattern: string): readonly { readonly type: string; readonly payload: Record<string, Value> }[] {
    const { events } = this.#store.log.scan(
      { types: [pattern] },
      { after: 0, upTo: this.#store.log.head },
      'asc',
      100_000,
    )
    return events.map(({ type, envelope }) => ({ type, payload: JSON.parse(envelope).payload }))
  }

  #due(): number {
    const row = this.#store.db.get('SELECT count(*) AS n FROM molecule_timers WHERE due_at <= ?', this.clock.now())
    return Number(row?.n)
  }

  #openStore(): Store {
    return openStore({ path: this.path, migrations, owner: 'a test', clock: this.clock })
  }

  #makeMolecules(): Molecules {
    const { clock } = this
    const { db, log } = this.#store
    const config = () => ({
      prefix: 'al',
      rigs: this.rigs.map((name) => ({ name, prefix: 'sh' })),
      agents: [],
      named_sessions: [],
      beads: {},
    })
    return new Molecules({
      db,
      log,
      clock,
      logger: pino({ level: 'silent' }),
      random: () => this.random,
      beads: engineBeads({ store: { db }, beads: this.#beads, config }, clock),
      execs: {
        begin: (_tx, start) => {
          const id = `ex-${this.#execs++}`
          this.checks.push({ ...start, id })
          return { id, isQueued: this.queues }
        },
        cancel: (_tx, id) => {
          const at = this.checks.findIndex((check) => check.id === id)
          if (at >= 0) this.checks.splice(at, 1)
        },
      },
      city: {
        city: { name: 'alpha', path: '/alpha' },
        rig: (name) => (name === 'shop' ? { name, path: '/shop' } : undefined),
        workPlace: (session) => this.places.get(session),
        resolveTarget: (target) => ({ target, known: target !== 'nobody' }),
        canonical(name) {
          if (name === MoleculeWorld.UNKNOWABLE) throw new TypeError('nobody can be looked up')
          if (name === MoleculeWorld.SLOW) clock.pass(20)
          return name
        },
        interrupt: ({ assignee }, why) => void this.interrupted.push({ assignee, why }),
        orderEnded: (_tx, runId, { outcome }) => void this.ordersEnded.push([runId, outcome]),
      },
    })
  }

  #makeReactions(): Reactions {
    const { db, log } = this.#store
    return new Reactions({
      db,
      log,
      clock: this.clock,
      logger: pino({ level: 'silent' }),
      reactions: [this.#molecules.reaction()],
      skipped: (reaction) => assert.fail(`${reaction} passed over an event`),
    })
  }

  async #run(): Promise<void> {
    await this.#reactions.start()
    await this.#molecules.open()
    await this.quiet()
  }
}

interface CloseOf {
  readonly outcome?: 'pass' | 'fail'
  readonly output?: Value
  readonly failure_class?: 'transient' | 'hard'
  readonly reason?: string
}
