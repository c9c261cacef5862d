/**
 * One SQLite file with one write path. The only file that names the storage driver.
 *
 * I1  State and events of one `write` commit together or not at all.
 * I2  A resolved `write` is on disk (WAL, synchronous=FULL) and visible to every later read.
 * I3  Writes of one tick share one transaction and one fsync; one that throws undoes only itself.
 * I4  Nothing is written to a file that is no longer the one at its path.
 * I5  A change does nothing but through its transaction: it may run twice, where another of its group was refused.
 */
import { statSync } from 'node:fs'
import BetterSqlite3 from 'better-sqlite3'
import { keepPrivate } from './file-modes.ts'
import { type Problem, problem } from './problem.ts'

export type SqlValue = string | number | bigint | null | Buffer
export type Row = { readonly [column: string]: unknown }

/** Numbered from 1 by position; only ever appended to. */
export type Migrations = readonly string[]

/** What a write may do; valid only while its function runs. */
export interface Tx {
  run(sql: string, ...values: readonly SqlValue[]): number
  get(sql: string, ...values: readonly SqlValue[]): Row | undefined
  all(sql: string, ...values: readonly SqlValue[]): readonly Row[]
  /** Runs after the commit, before anybody hears of its events and before the promise of the write resolves. */
  afterCommit(work: () => void): void
}

/** Something with memory of its own that has to follow the transaction, such as the event log's head. */
export interface Participant {
  /** Called before each write; the result is given back if that write is undone. */
  mark(): number
  undo(mark: number): void
  beforeCommit(tx: Tx): void
  committed(): void
}

export type Tenure = 'owned' | 'moving' | 'fenced'

interface PendingWrite {
  run(): void
  settle(): void
  fail(error: unknown): void
}

export interface DatabaseOptions {
  readonly path: string
  readonly migrations: Migrations
  /**
   * How long to wait at the opening for another process to let go of the file; 0 where absent. Waiting blocks the whole
   * process, so only who serves nobody yet may ask for it.
   */
  readonly lockWaitMs?: number
  /** For messages: `city "alpha"`, `the supervisor`. */
  readonly owner: string
  readonly onCommit?: (seconds: number) => void
}

const MAX_PENDING_WRITES = 20_000
/** Prepared statements that are kept, of each kind: more than the service has, fewer than callers' filters can make. */
const MAX_STATEMENTS = 500
const STORAGE_ERROR = /^SQLITE_(FULL|IOERR|READONLY|CANTOPEN|CORRUPT|NOTADB|BUSY|LOCKED|PERM|AUTH|PROTOCOL)/

export class Database {
  readonly path: string
  readonly #driver: BetterSqlite3.Database
  readonly #options: DatabaseOptions
  readonly #statements = new Map<string, BetterSqlite3.Statement>()
  /** Those that give rows as arrays. A map of their own: a longer key would have to be put together at each look-up. */
  readonly #rawStatements = new Map<string, BetterSqlite3.Statement>()
  readonly #participants: Participant[] = []
  readonly #tx: Tx
  #pending: PendingWrite[] = []
  #afterCommit: (() => void)[] = []
  #scheduled = false
  #waitingSince: number | undefined
  #closed = false
  readonly #identity: string
  /** Text of the last failed commit; undefined while writes work. */
  #failure: string | undefined
  tenure: Tenure = 'owned'

  private constructor(options: DatabaseOptions, driver: BetterSqlite3.Database) {
    this.#options = options
    this.path = options.path
    this.#driver = driver
    this.#identity = identityOf(options.path)
    this.#tx = {
      run: (sql, ...values) => this.#prepare(sql).run(...values).changes,
      get: (sql, ...values) => asRow(this.#prepare(sql).get(...values)),
      all: (sql, ...values) => asRows(this.#prepare(sql).all(...values)),
      afterCommit: (work) => this.#afterCommit.push(work),
    }
  }

  /** Opens or makes the file and brings it to the newest schema; throws a Problem where that is impossible. */
  static open(options: DatabaseOptions): Database {
    try {
      const driver = openDriver(options)
      try {
        migrate(driver, options)
      } catch (error) {
        driver.close()
        throw error
      }
      return new Database(options, driver)
    } catch (error) {
      throw storageProblem(error, options.owner)
    }
  }

  /** Why the last commit failed; undefined while the store takes writes. */
  get failure(): string | undefined {
    return this.#failure
  }

  /** Milliseconds that the oldest write has been waiting for its commit. */
  get waitingMs(): number {
    return this.#waitingSince === undefined ? 0 : performance.now() - this.#waitingSince
  }

  join(participant: Participant): void {
    this.#participants.push(participant)
  }

  get(sql: string, ...values: readonly SqlValue[]): Row | undefined {
    return this.#reading(() => asRow(this.#prepare(sql).get(...values)))
  }

  all(sql: string, ...values: readonly SqlValue[]): readonly Row[] {
    return this.#reading(() => asRows(this.#prepare(sql).all(...values)))
  }

  /** Calls `take` with one row after the other, as arrays, until it says false: the way through many. Do not nest it. */
  each(sql: string, values: readonly SqlValue[], take: (row: readonly unknown[]) => boolean): void {
    this.#reading(() => {
      for (const row of this.#prepare(sql, true).iterate(...values)) {
        if (Array.isArray(row) && !take(row)) break
      }
    })
  }

  /** All rows as arrays: for pages, which are small. */
  rows(sql: string, ...values: readonly SqlValue[]): readonly (readonly unknown[])[] {
    return this.#reading(() => {
      const rows: unknown[] = this.#prepare(sql, true).all(...values)
      return rows.filter((row): row is unknown[] => Array.isArray(row))
    })
  }

  /**
   * The one write path: runs `change` in the next group commit; resolves with its result once that is on disk.
   * Rejects with what `change` threw (only its own changes are undone), or with `unavailable` where the disk refused.
   * What `change` means outside the database belongs into `afterCommit` (I5).
   */
  write<T>(change: (tx: Tx) => T): Promise<T> {
    if (this.#closed) return Promise.reject(this.#unavailable('it is closed'))
    if (this.tenure !== 'owned') return Promise.reject(this.#unavailable(`this host does not own it (${this.tenure})`))
    if (this.#pending.length >= MAX_PENDING_WRITES)
      return Promise.reject(this.#unavailable('too many writes are waiting'))
    return new Promise<T>((resolve, reject) => {
      let result: T
      this.#pending.push({
        run: () => {
          result = change(this.#tx)
        },
        settle: () => resolve(result),
        fail: reject,
      })
      this.#schedule()
    })
  }

  /** Commits what is waiting, then closes the file. Safe to call twice. */
  close(): void {
    if (this.#closed) return
    this.#flush()
    this.#closed = true
    try {
      this.#driver.close()
    } catch {
      // A file that vanished cannot be closed cleanly; everything acknowledged was committed before.
    }
  }

  /** For good: nothing is read or written any more. */
  get closed(): boolean {
    return this.#closed
  }

  /** True while the open file is the one at its path. */
  get inPlace(): boolean {
    return !this.#closed && identityOf(this.path) === this.#identity
  }

  /** True where the open file is what stands at `path`. */
  isAt(path: string): boolean {
    return !this.#closed && identityOf(path) === this.#identity
  }

  #schedule(): void {
    if (this.#scheduled) return
    this.#scheduled = true
    this.#waitingSince = performance.now()
    setImmediate(() => {
      this.#scheduled = false
      this.#waitingSince = undefined
      this.#flush()
    })
  }

  #flush(): void {
    const batch = this.#pending
    if (batch.length === 0) return
    this.#pending = []
    const started = performance.now()
    const refused = new Map<PendingWrite, unknown>()
    const groupMarks = this.#participants.map((one) => one.mark())
    try {
      if (!this.inPlace) throw new Error('its file was removed or replaced')
      this.#exec('BEGIN IMMEDIATE')
      if (!this.#runTogether(batch)) for (const write of batch) this.#runOne(write, refused)
      for (const one of this.#participants) one.beforeCommit(this.#tx)
      this.#exec('COMMIT')
    } catch (error) {
      this.#abandon(groupMarks)
      this.#failure = error instanceof Error ? error.message : String(error)
      const refusal = storageProblem(error, this.#options.owner)
      for (const write of batch) write.fail(refusal)
      return
    }
    this.#failure = undefined
    const after = this.#afterCommit
    this.#afterCommit = []
    try {
      this.#options.onCommit?.((performance.now() - started) / 1000)
      // First what the changes mean in memory, then their events: who hears of a change finds it made.
      for (const work of after) work()
      for (const one of this.#participants) one.committed()
    } finally {
      // On disk is on disk: whoever fails to hear of it, no writer waits for ever.
      for (const write of batch) {
        if (refused.has(write)) write.fail(refused.get(write))
        else write.settle()
      }
    }
  }

  /**
   * Runs a group without a savepoint for each: a savepoint costs as much as a whole write, and refusals are rare. False,
   * with nothing done, where one of them throws, or where it is alone and gains nothing.
   */
  #runTogether(batch: readonly PendingWrite[]): boolean {
    if (batch.length === 1) return false
    const marks = this.#participants.map((one) => one.mark())
    try {
      for (const write of batch) write.run()
      return true
    } catch (error) {
      if (isStorageError(error) || !this.#driver.inTransaction) throw error
      this.#exec('ROLLBACK')
      this.#undo(marks)
      this.#afterCommit = []
      this.#exec('BEGIN IMMEDIATE')
      return false
    }
  }

  #runOne(write: PendingWrite, refused: Map<PendingWrite, unknown>): void {
    const marks = this.#participants.map((one) => one.mark())
    const hooks = this.#afterCommit.length
    this.#exec('SAVEPOINT one')
    try {
      write.run()
      this.#exec('RELEASE one')
    } catch (error) {
      // A full disk ends the whole transaction: there is no savepoint left, and nobody's change may count.
      if (isStorageError(error) || !this.#driver.inTransaction) throw error
      this.#exec('ROLLBACK TO one')
      this.#exec('RELEASE one')
      this.#undo(marks)
      this.#afterCommit.length = hooks
      refused.set(write, error)
    }
  }

  #abandon(marks: readonly number[]): void {
    this.#afterCommit = []
    this.#undo(marks)
    try {
      if (this.#driver.inTransaction) this.#exec('ROLLBACK')
    } catch {
      // The driver has rolled back by itself.
    }
  }

  #undo(marks: readonly number[]): void {
    for (const [index, one] of this.#participants.entries()) one.undo(marks[index] ?? 0)
  }

  #exec(sql: string): void {
    this.#prepare(sql).run()
  }

  #prepare(sql: string, raw = false): BetterSqlite3.Statement {
    const statements = raw ? this.#rawStatements : this.#statements
    const known = statements.get(sql)
    if (known !== undefined) return known
    const statement = raw ? this.#driver.prepare(sql).raw(true) : this.#driver.prepare(sql)
    const [oldest] = statements.size >= MAX_STATEMENTS ? statements.keys() : []
    if (oldest !== undefined) statements.delete(oldest)
    statements.set(sql, statement)
    return statement
  }

  #reading<T>(read: () => T): T {
    if (this.#closed) throw this.#unavailable('it is closed')
    try {
      return read()
    } catch (error) {
      throw isStorageError(error) ? storageProblem(error, this.#options.owner) : error
    }
  }

  #unavailable(why: string): Problem {
    return problem('unavailable', `the store of ${this.#options.owner} takes no writes: ${why}`, { retryAfterSec: 1 })
  }
}

function openDriver({ path, lockWaitMs = 0 }: DatabaseOptions): BetterSqlite3.Database {
  const driver = new BetterSqlite3(path, { timeout: lockWaitMs })
  try {
    keepPrivate(path)
    setUp(driver)
    // SQLite gives them the mode of the database; those of an earlier version may be open to everybody.
    for (const beside of ['-wal', '-shm']) keepPrivate(`${path}${beside}`)
    return driver
  } catch (error) {
    // Locked or damaged: whoever tries again does not pile up open files.
    driver.close()
    throw error
  }
}

function setUp(driver: BetterSqlite3.Database): void {
  // One process writes a store: a second supervisor on the same home or city is refused here, by the operating system.
  driver.pragma('locking_mode = EXCLUSIVE')
  driver.pragma('journal_mode = WAL')
  driver.pragma('synchronous = FULL')
  driver.pragma('foreign_keys = ON')
  driver.pragma('temp_store = MEMORY')
  // Per store, and there may be many; the operating system caches the files a second time anyway.
  driver.pragma('cache_size = -4000')
  driver.pragma('journal_size_limit = 67108864')
}

function migrate(driver: BetterSqlite3.Database, { migrations, path }: DatabaseOptions): void {
  const at = Number(driver.pragma('user_version', { simple: true }))
  if (at > migrations.length) {
    throw new Error(
      `${path} has schema ${at}, this svcctl knows up to ${migrations.length}: it was written by a newer version`,
    )
  }
  for (let version = at; version < migrations.length; version++) {
    driver.transaction(() => {
      driver.exec(migrations[version] ?? '')
      driver.pragma(`user_version = ${version + 1}`)
    })()
  }
}

/** Device and inode of the file, or '' where it cannot be seen. */
function identityOf(path: string): string {
  try {
    const stat = statSync(path)
    return `${stat.dev}:${stat.ino}`
  } catch {
    return ''
  }
}

const isLocked = (error: unknown): boolean =>
  error instanceof BetterSqlite3.SqliteError && error.code.startsWith('SQLITE_BUSY')

function isStorageError(error: unknown): boolean {
  return error instanceof BetterSqlite3.SqliteError && STORAGE_ERROR.test(error.code)
}

function storageProblem(error: unknown, owner: string): Problem {
  const why = isLocked(error) ? 'another process has it open' : error instanceof Error ? error.message : String(error)
  return problem('unavailable', `the store of ${owner} is not available: ${why}`, { cause: error, retryAfterSec: 1 })
}

function asRow(row: unknown): Row | undefined {
  return isRow(row) ? row : undefined
}
function asRows(rows: readonly unknown[]): readonly Row[] {
  return rows.filter(isRow)
}
function isRow(row: unknown): row is Row {
  return typeof row === 'object' && row !== null
}
