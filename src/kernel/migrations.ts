/**
 * How a store comes to the newest schema, without anything being lost.
 *
 * G1  A store of a newer version, or of one before 0.1.0, is refused before anything is written to it.
 * G2  A store with missing steps is copied, all steps run on the copy in one transaction, and the copy takes the place of
 *     the store in one rename. Whatever fails or is killed before that leaves the store as it was.
 * G3  The store as it was stays beside the new one, under `….before-upgrade`, until the next upgrade.
 * G4  A store gives freed pages back to the disk (`auto_vacuum = INCREMENTAL`).
 */
import { closeSync, fsyncSync, linkSync, openSync, renameSync, rmSync } from 'node:fs'
import { dirname } from 'node:path'
import BetterSqlite3 from 'better-sqlite3'
import { keepPrivate } from './file-modes.ts'

/** One step of a part's tables. Its name is what a store remembers: a released one never changes, in name or text. */
export interface Migration {
  /** `beads/2`. */
  readonly name: string
  readonly sql: string
}

export type Migrations = readonly Migration[]

/** The steps of one part in their order; new ones come at the end. Other parts may come and go before and after it. */
export const migrationsOf = (part: string, ...steps: readonly string[]): Migrations =>
  steps.map((sql, index) => ({ name: `${part}/${index + 1}`, sql }))

type Driver = BetterSqlite3.Database

/** Value of `PRAGMA auto_vacuum` for INCREMENTAL. */
const INCREMENTAL = 2

/** What stands at the path, by what its schema says. */
export type StoreState = 'new' | 'current' | 'older'

/** Looks at a store without writing to it; throws where this version must not touch it (G1). */
export function stateOf(driver: Driver, path: string, migrations: Migrations): StoreState {
  const version = Number(driver.pragma('user_version', { simple: true }))
  const done = namesIn(driver)
  if (done === undefined) {
    if (version === 0 && tablesIn(driver).length === 0) return 'new'
    throw new Error(
      `${path} was written before version 0.1.0, which this svcctl cannot read. It is left as it was. Start the version that wrote it, \`svcctl bead export\` each city there, and \`svcctl bead import\` into a new one here`,
    )
  }
  const unknown = [...done].filter((name) => !migrations.some((known) => known.name === name))
  if (unknown.length > 0 || version > migrations.length)
    throw new Error(
      `${path} has ${unknown.join(', ') || `schema ${version}`}: it was written by a newer version of svcctl. It is left as it was. Install that version again, or put ${path}.before-upgrade in its place`,
    )
  const hasAll = migrations.every(({ name }) => done.has(name))
  return hasAll && givesBack(driver) ? 'current' : 'older'
}

const givesBack = (driver: Driver): boolean => Number(driver.pragma('auto_vacuum', { simple: true })) === INCREMENTAL

/** Makes the tables of a store that has none. */
export function createSchema(driver: Driver, migrations: Migrations): void {
  driver.pragma('auto_vacuum = INCREMENTAL')
  // Whether pages can be given back is decided before the first table is made.
  driver.exec('VACUUM')
  runSteps(driver, migrations)
}

/**
 * Puts a copy with the newest schema in the place of the store (G2). The driver still holds the old file, and with it the
 * right to the path, until the caller closes it.
 */
export function upgrade(driver: Driver, path: string, migrations: Migrations): void {
  const [copy, before] = [`${path}.upgrading`, `${path}.before-upgrade`]
  remove(copy)
  try {
    // Where it is set already the same again would write to the old file.
    if (!givesBack(driver)) driver.pragma('auto_vacuum = INCREMENTAL')
    driver.prepare('VACUUM INTO ?').run(copy)
    keepPrivate(copy)
    const upgraded = new BetterSqlite3(copy)
    try {
      upgraded.pragma('foreign_keys = ON')
      runSteps(upgraded, migrations)
      refuseMutilated(upgraded, path, migrations)
    } finally {
      upgraded.close()
    }
    onDisk(copy)
    // The old file takes in its write-ahead log, which stands at the same path and would be read as that of the new one.
    driver.pragma('journal_mode = DELETE')
    rmSync(before, { force: true })
    linkSync(path, before)
    renameSync(copy, path)
    onDisk(dirname(path))
  } catch (error) {
    remove(copy)
    throw error
  }
}

/** All missing steps in one transaction. */
function runSteps(driver: Driver, migrations: Migrations): void {
  driver.transaction(() => {
    driver.exec('CREATE TABLE IF NOT EXISTS migrations (name TEXT PRIMARY KEY) STRICT, WITHOUT ROWID')
    const done = namesIn(driver) ?? new Set()
    const note = driver.prepare('INSERT INTO migrations (name) VALUES (?)')
    for (const { name, sql } of migrations) {
      if (done.has(name)) continue
      driver.exec(sql)
      note.run(name)
    }
    // How many there are: what looks only at this number still tells a newer store.
    driver.pragma(`user_version = ${migrations.length}`)
  })()
}

/** Names of the steps that a store has had; undefined where it remembers none. */
function namesIn(driver: Driver): ReadonlySet<string> | undefined {
  if (!tablesIn(driver).includes('migrations')) return undefined
  return new Set(driver.prepare('SELECT name FROM migrations').pluck().all().map(String))
}

const tablesIn = (driver: Driver): readonly string[] =>
  driver.prepare("SELECT name FROM sqlite_schema WHERE type = 'table'").pluck().all().map(String)

/** A store that lacks tables would be found out by its first caller, in words that help nobody. */
export function refuseMutilated(driver: Driver, path: string, migrations: Migrations): void {
  const wanted = new Set<string>()
  const text = migrations.map(({ sql }) => sql).join(';')
  for (const [, made, gone, from, to] of text.matchAll(TABLE_CHANGES)) {
    if (made !== undefined) wanted.add(made)
    wanted.delete(gone ?? from ?? '')
    if (to !== undefined) wanted.add(to)
  }
  const there = tablesIn(driver)
  const missing = [...wanted].filter((table) => !there.includes(table))
  if (missing.length > 0)
    throw new Error(`${path} is damaged: it has no table ${missing.join(', ')}; put a backup of it in its place`)
}

const TABLE_CHANGES =
  /\bCREATE TABLE (?:IF NOT EXISTS )?(\w+)|\bDROP TABLE (?:IF EXISTS )?(\w+)|\bALTER TABLE (\w+) RENAME TO (\w+)/gi

const remove = (path: string): void => {
  for (const beside of ['', '-wal', '-shm', '-journal']) rmSync(path + beside, { force: true })
}

function onDisk(path: string): void {
  const file = openSync(path, 'r')
  try {
    fsyncSync(file)
  } finally {
    closeSync(file)
  }
}
