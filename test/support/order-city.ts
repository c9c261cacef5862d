/** Orders over a real store, with a clock that the test moves and files and commands that it says. */
import { join } from 'node:path'
import type { CatalogOrder } from '../../src/automation/catalog.ts'
import type { OrderDefinition } from '../../src/automation/order.ts'
import { migrationsOf } from '../../src/kernel/database.ts'
import type { StoredEvent } from '../../src/kernel/event-log.ts'
import type { Logger } from '../../src/kernel/log.ts'
import { problem } from '../../src/kernel/problem.ts'
import { openStore, STORE_SCHEMA, type Store } from '../../src/kernel/store.ts'
import type { OrderSettings } from '../../src/modules/orders/definitions/definition.ts'
import { Orders, type SeenOrder } from '../../src/modules/orders/orders.ts'
import type { ExecEnded, MoleculeStart, OrderExec } from '../../src/modules/orders/runs/ports.ts'
import { historyPage, type RunRow } from '../../src/modules/orders/runs/rows.ts'
import { ORDER_SCHEMAS } from '../../src/modules/orders/schema.ts'
import { ManualClock, settled } from './manual-clock.ts'
import { temporaryDirectory } from './temporary.ts'

const NO_SETTINGS: OrderSettings = { skip: [], maxTimeoutMs: undefined, overrides: [], zone: 'UTC' }

type Said = Partial<Omit<OrderDefinition, 'name'>>
const EXEC = { kind: 'exec', exec: 'true', env: {}, inherit_env: [], idempotent: false } as const

/** An order that is valid, as its file would say it. */
export const order = (name: string, said: Said, rig?: string): CatalogOrder => ({
  name,
  layer: 'city',
  file: `orders/${name}.toml`,
  dir: '/nowhere/orders',
  revision: name,
  issues: [],
  text: '',
  ...(rig === undefined ? {} : { rig }),
  order: { name, enabled: true, vars: {}, action: EXEC, overlap: 'skip', trigger: { kind: 'manual' }, ...said },
})

/** One run of the supervisor after another over the same store. */
export class OrderCity implements AsyncDisposable {
  readonly #directory = temporaryDirectory()
  readonly clock: ManualClock
  files: readonly CatalogOrder[]
  settings: OrderSettings = NO_SETTINGS
  suspended = false
  /** What was begun and has not ended. */
  readonly execs = new Map<string, OrderExec>()
  readonly molecules = new Map<string, MoleculeStart>()
  /** Whether commands wait for a slot. */
  queues = false
  /** What molecules of this formula are refused with. */
  refuses: string | undefined
  store: Store
  orders: Orders
  /** Warnings and errors: a test in which there are any looks at them. */
  readonly logged: unknown[] = []
  readonly #logger: Logger = {
    error: (fields) => this.logged.push(fields),
    warn: (fields) => this.logged.push(fields),
    info: () => {},
    debug: () => {},
    isLevelEnabled: () => true,
  }
  #changed: (() => void)[] = []

  constructor(files: readonly CatalogOrder[], now?: number) {
    this.files = files
    this.clock = new ManualClock(now)
    this.store = this.#open()
    this.orders = this.#make()
  }

  async start(): Promise<this> {
    await this.orders.start()
    await this.rest()
    return this
  }

  /** The supervisor dies, and comes back later. */
  async restart(downMs = 0): Promise<void> {
    await this.orders.stop()
    this.store.db.close()
    this.clock.step(downMs)
    this.#changed = []
    this.store = this.#open()
    this.orders = this.#make()
    await this.start()
  }

  /** Other files, or other settings. */
  async say(files: readonly CatalogOrder[]): Promise<void> {
    this.files = files
    for (const listener of this.#changed) listener()
    await this.rest()
  }

  /** Everything that is under way without time is done. */
  async rest(): Promise<void> {
    for (let round = 0; round < 6; round++) await settled()
  }

  async advance(ms: number): Promise<void> {
    await this.clock.advance(ms)
    await this.rest()
  }

  async end(id: string, end: Partial<ExecEnded> = {}): Promise<void> {
    const exec = this.execs.get(id)
    if (exec === undefined) throw new Error(`${id} does not run`)
    const whole: ExecEnded = { kind: 'exited', exit_code: 0, output: '', truncated: false, ...end }
    await this.store.db.write((tx) => {
      this.execs.delete(id)
      if (exec.owner === 'order') this.orders.execEnded(tx, exec.ref, whole)
      else this.orders.checkEnded(tx, id, exec.ref, whole)
    })
    await this.rest()
  }

  /** Ends the only command of this owner. */
  async endOnly(owner: OrderExec['owner'], end: Partial<ExecEnded> = {}): Promise<OrderExec> {
    const [only, ...more] = [...this.execs.values()].filter((exec) => exec.owner === owner)
    if (only === undefined || more.length > 0) throw new Error(`${more.length + Number(only !== undefined)} run`)
    await this.end(only.id, end)
    return only
  }

  async emit(type: string, ...payloads: readonly object[]): Promise<void> {
    await this.store.db.write((tx) => {
      for (const payload of payloads) this.store.log.appendCustom(tx, { type, actor: 'test', payload })
    })
    await this.rest()
  }

  see(name: string): SeenOrder {
    return this.orders.one(this.orders.need(name))
  }

  runs(name?: string): readonly RunRow[] {
    return historyPage(this.store.db, { names: name === undefined ? undefined : [name] }, undefined, 10_000)
  }

  /** Oldest first. */
  events(...types: readonly string[]): readonly StoredEvent[] {
    const { log } = this.store
    return log.scan({ types }, { after: 0, upTo: log.head }, 'asc', 100_000).events
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.orders.stop()
    this.store.db.close()
    this.#directory[Symbol.dispose]()
  }

  #open(): Store {
    const migrations = migrationsOf('test', STORE_SCHEMA, ...ORDER_SCHEMAS)
    const path = join(this.#directory.path, 'city.db')
    return openStore({ path, migrations, owner: 'a test', clock: this.clock })
  }

  #make(): Orders {
    const listen = (listener: () => void) => {
      this.#changed.push(listener)
      return () => {}
    }
    return new Orders({
      db: this.store.db,
      events: this.store.log,
      clock: this.clock,
      logger: this.#logger,
      catalog: { orders: () => this.files, onChange: listen },
      settings: () => this.settings,
      suspension: { of: () => this.suspended },
      onReconfigured: () => () => {},
      execs: {
        begin: (tx, exec) => {
          tx.afterCommit(() => this.execs.set(exec.id, exec))
          return this.queues
        },
        lives: (id) => this.execs.has(id),
      },
      molecules: {
        start: (tx, start) => {
          if (this.refuses !== undefined) throw problem('formula-invalid', this.refuses)
          const id = `al-${start.order.run_id}`
          tx.afterCommit(() => this.molecules.set(id, start))
          return id
        },
        lives: (id) => this.molecules.has(id),
        rootOf: () => undefined,
      },
    })
  }
}
