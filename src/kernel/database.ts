/**
 * One SQLite file with one write path. The only file that names the storage driver.
 *
 * I1  State and events of one `write` commit together or not at all.
 * I2  A resolved `write` is on disk (WAL, synchronous=FULL) and visible to every later read.
 * I3  Writes of one tick share one transaction and one fsync; one that throws undoes only itself.
 * I4  Nothing is written to a file that is no longer the one at its path.
 * I5  A change does nothing but through its transaction: it may run twice, where another of its group was refused.
 * I6  What follows a commit cannot undo it: a hook or a listener that throws is reported, and neither its neighbours nor
 *     the process notice.
 */
import { statSync } from 'node:fs'
import BetterSqlite3 from 'better-sqlite3'
import { keepPrivate } from './file-modes.ts'
import { createSchema, type Migrations, refuseMutilated, stateOf, upgrade } from './migrations.ts'
import { type Problem, problem } from './problem.ts'

export type SqlValue = string | number | bigint | null | Buffer
export type Row = { readonly [column: string]: unknown }

export { type Migrations, migrationsOf } from './migrations.ts'

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

/** Told what goes on in a store: for metrics and the log. */
export interface StoreWatch {
  committed(seconds: number): void
  /** A hook or a listener threw (I6). */
  hookFailed(error: unknown): void
  /** Work on rows that became due ended so; `name` says which rows. */
  due(name: string, outcome: 'done' | 'failed'): void
}

/** One `write` on its way to its commit. */
interface PendingWrite {
  run(tx: Tx): void
  settle(): void
  fail(error: unknown): void
}

class Write<T> implements PendingWrite {
  readonly #change: (tx: Tx) => T
  readonly #resolve: (result: T) => void
  readonly fail: (error: unknown) => void
  #result: { readonly value: T } | undefined

  constructor(change: (tx: Tx) => T, resolve: (result: T) => void, reject: (error: unknown) => void) {
    this.#change = change
    this.#resolve = resolve
    this.fail = reject
  }

  run(tx: Tx): void {
    this.#result = { value: this.#change(tx) }
  }

  settle(): void {
    if (this.#result !== undefined) this.#resolve(this.#result.value)
  }
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
  readonly watch?: StoreWatch
}

const MAX_PENDING_WRITES = 20_000
const NOT_IN_PLACE = 'its file was removed or replaced'
/** Of those that say how large they are. */
const MAX_PENDING_BYTES = 64 * 1024 * 1024
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
  #pendingBytes = 0
  /** True once the change that runs has written. */
  #wrote = false
  /** True while each change has a savepoint before its first statement that writes. */
  #guarded = false
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
      run: (sql, ...values) => this.#forChange(sql).run(...values).changes,
      get: (sql, ...values) => asRow(this.#forChange(sql).get(...values)),
      all: (sql, ...values) => asRows(this.#forChange(sql).all(...values)),
      afterCommit: (work) => this.#afterCommit.push(work),
    }
  }

  /** Opens or makes the file and brings it to the newest schema; throws a Problem where that is impossible. */
  static open(options: DatabaseOptions): Database {
    try {
      const driver = openDriver(options)
      return new Database(options, driver)
    } catch (error) {
      throw storageProblem(error, options)
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

  /** Pages that hold nothing: disk that the file does not need. */
  get freePages(): number {
    return Number(this.get('PRAGMA freelist_count')?.freelist_count ?? 0)
  }

  /** Gives at most so many of them back to the disk. */
  giveBackPages(pages: number): Promise<void> {
    return this.write(() => {
      this.#wrote = true
      // Of a prepared statement only the first page would go.
      this.#driver.exec(`PRAGMA incremental_vacuum(${pages})`)
    })
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
   * What `change` means outside the database belongs into `afterCommit` (I5). `bytes`: what it holds in memory, where that
   * may be much.
   */
  write<T>(change: (tx: Tx) => T, bytes = 0): Promise<T> {
    const refused = this.#refusal(bytes)
    if (refused !== undefined) return Promise.reject(refused)
    return new Promise<T>((resolve, reject) => {
      this.#pending.push(new Write(change, resolve, reject))
      this.#pendingBytes += bytes
      this.#schedule()
    })
  }

  /** Does what follows from a commit (I6). */
  afterwards(work: () => void): void {
    try {
      work()
    } catch (error) {
      if (this.#options.watch === undefined) process.emitWarning(error instanceof Error ? error : String(error))
      else this.#options.watch.hookFailed(error)
    }
  }

  /** Counts a piece of work on rows that became due. */
  countDue(name: string, outcome: 'done' | 'failed'): void {
    this.#options.watch?.due(name, outcome)
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

  /** Notes it where the open file is no longer the one at its path: nothing else shows it before the next write. */
  checkPlace(): void {
    if (!this.#closed && !this.inPlace) this.#failure ??= NOT_IN_PLACE
  }

  /** True where the open file is what stands at `path`. */
  isAt(path: string): boolean {
    return !this.#closed && identityOf(path) === this.#identity
  }

  #refusal(bytes: number): Problem | undefined {
    if (this.#closed) return this.#unavailable('it is closed')
    if (this.tenure !== 'owned') return this.#unavailable(`this host does not own it (${this.tenure})`)
    const full = this.#pendingBytes > 0 && this.#pendingBytes + bytes > MAX_PENDING_BYTES
    return full || this.#pending.length >= MAX_PENDING_WRITES
      ? this.#unavailable('too many writes are waiting')
      : undefined
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
    this.#pendingBytes = 0
    const started = performance.now()
    const refused = new Map<PendingWrite, unknown>()
    const groupMarks = this.#marks()
    try {
      if (!this.inPlace) throw new Error(NOT_IN_PLACE)
      this.#exec('BEGIN IMMEDIATE')
      if (!this.#runTogether(batch, refused)) for (const write of batch) this.#runOne(write, refused)
      for (const one of this.#participants) one.beforeCommit(this.#tx)
      this.#exec('COMMIT')
    } catch (error) {
      this.#abandon(groupMarks)
      this.#failure = error instanceof Error ? error.message : String(error)
      const refusal = storageProblem(error, this.#options)
      for (const write of batch) write.fail(refusal)
      return
    }
    this.#failure = undefined
    const after = this.#afterCommit
    this.#afterCommit = []
    const seconds = (performance.now() - started) / 1000
    this.afterwards(() => this.#options.watch?.committed(seconds))
    // First what the changes mean in memory, then their events: who hears of a change finds it made.
    for (const work of after) this.afterwards(work)
    for (const one of this.#participants) this.afterwards(() => one.committed())
    for (const write of batch) {
      if (refused.has(write)) write.fail(refused.get(write))
      else write.settle()
    }
  }

  /**
   * Runs a group without savepoints: one costs as much as a whole write. A change that is refused before it has written, as
   * most are, has nothing to undo. False, with nothing done, where one has to be undone and others are in its way.
   */
  #runTogether(batch: readonly PendingWrite[], refused: Map<PendingWrite, unknown>): boolean {
    const groupMarks = this.#marks()
    for (const write of batch) {
      const marks = this.#marks()
      const hooks = this.#afterCommit.length
      this.#wrote = false
      try {
        write.run(this.#tx)
      } catch (error) {
        this.#throwIfFatal(error)
        if (this.#wrote && batch.length > 1) {
          this.#startAnew(groupMarks)
          refused.clear()
          return false
        }
        if (this.#wrote) this.#startAnew(groupMarks)
        this.#refuse(write, error, refused, marks, hooks)
      }
    }
    return true
  }

  /** Everything of the transaction so far is undone. */
  #startAnew(marks: readonly number[]): void {
    this.#exec('ROLLBACK')
    this.#undo(marks)
    this.#afterCommit = []
    this.#exec('BEGIN IMMEDIATE')
  }

  #runOne(write: PendingWrite, refused: Map<PendingWrite, unknown>): void {
    const marks = this.#marks()
    const hooks = this.#afterCommit.length
    this.#wrote = false
    this.#guarded = true
    try {
      write.run(this.#tx)
      if (this.#wrote) this.#exec('RELEASE one')
    } catch (error) {
      this.#throwIfFatal(error)
      if (this.#wrote) {
        this.#exec('ROLLBACK TO one')
        this.#exec('RELEASE one')
      }
      this.#refuse(write, error, refused, marks, hooks)
    } finally {
      this.#guarded = false
    }
  }

  /** A full disk ends the whole transaction: there is no savepoint left, and nobody's change may count. */
  #throwIfFatal(error: unknown): void {
    if (isStorageError(error) || !this.#driver.inTransaction) throw error
  }

  #refuse(
    write: PendingWrite,
    error: unknown,
    refused: Map<PendingWrite, unknown>,
    marks: readonly number[],
    hooks: number,
  ): void {
    this.#undo(marks)
    this.#afterCommit.length = Math.min(hooks, this.#afterCommit.length)
    refused.set(write, error)
  }

  #marks(): readonly number[] {
    return this.#participants.map((one) => one.mark())
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

  /** A statement of the change that runs; one that writes makes its savepoint, where changes have one. */
  #forChange(sql: string): BetterSqlite3.Statement {
    const statement = this.#prepare(sql)
    if (!this.#wrote && !statement.readonly) {
      if (this.#guarded) this.#exec('SAVEPOINT one')
      this.#wrote = true
    }
    return statement
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
      throw isStorageError(error) ? storageProblem(error, this.#options) : error
    }
  }

  #unavailable(why: string): Problem {
    return problem('unavailable', `the store of ${this.#options.owner} takes no writes: ${why}`, { retryAfterSec: 1 })
  }
}

/** An open store with the newest schema. */
function openDriver(options: DatabaseOptions): BetterSqlite3.Database {
  const { path, migrations } = options
  const driver = openAsItIs(options)
  try {
    const state = stateOf(driver, path, migrations)
    if (state !== 'older') {
      setUp(driver)
      if (state === 'new') createSchema(driver, migrations)
      refuseMutilated(driver, path, migrations)
      return keptPrivate(driver, path)
    }
    upgrade(driver, path, migrations)
  } catch (error) {
    // Locked or damaged: whoever tries again does not pile up open files.
    driver.close()
    throw error
  }
  driver.close()
  const upgraded = openAsItIs(options)
  setUp(upgraded)
  return keptPrivate(upgraded, path)
}

/** Opens the file, which is made where it is missing, and writes nothing to what is there. */
function openAsItIs({ path, lockWaitMs = 0 }: DatabaseOptions): BetterSqlite3.Database {
  const driver = new BetterSqlite3(path, { timeout: lockWaitMs })
  try {
    keepPrivate(path)
    // One process writes a store: a second supervisor on the same home or city is refused here, by the operating system.
    driver.pragma('locking_mode = EXCLUSIVE')
    return driver
  } catch (error) {
    driver.close()
    throw error
  }
}

/** SQLite gives them the mode of the database; those of an earlier version may be open to everybody. */
function keptPrivate(driver: BetterSqlite3.Database, path: string): BetterSqlite3.Database {
  for (const beside of ['-wal', '-shm']) keepPrivate(`${path}${beside}`)
  return driver
}

function setUp(driver: BetterSqlite3.Database): void {
  driver.pragma('journal_mode = WAL')
  driver.pragma('synchronous = FULL')
  driver.pragma('foreign_keys = ON')
  driver.pragma('temp_store = MEMORY')
  // Per store, and there may be many; the operating system caches the files a second time anyway.
  driver.pragma('cache_size = -4000')
  driver.pragma('journal_size_limit = 67108864')
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

function storageProblem(error: unknown, { owner, path }: DatabaseOptions): Problem {
  const message = error instanceof Error ? error.message : String(error)
  const full = error instanceof BetterSqlite3.SqliteError && error.code === 'SQLITE_FULL'
  const why = isLocked(error) ? 'another process has it open' : full ? `the disk of ${path} is full` : message
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
