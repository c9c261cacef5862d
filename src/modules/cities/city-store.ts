/** `city.db`: a city's own store, with its identity and its live overrides (decisions 30, 74). */
import { mkdirSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { FileRefused, requireOwnFile } from '../../files/read.ts'
import type { Clock } from '../../kernel/clock.ts'
import { type Migrations, migrationsOf, type Tx } from '../../kernel/database.ts'
import { keepPrivate } from '../../kernel/file-modes.ts'
import { ulid } from '../../kernel/ids.ts'
import { lookAtEntry } from '../../kernel/look.ts'
import { openStore, readMeta, STORE_SCHEMA, type Store, type StoreObserver } from '../../kernel/store.ts'

export const CITY_MIGRATIONS = migrationsOf(
  'city',
  `${STORE_SCHEMA}
CREATE TABLE overrides (key TEXT PRIMARY KEY, value TEXT NOT NULL, updated_at INTEGER NOT NULL) STRICT, WITHOUT ROWID;
`,
)

export interface CityStore extends Store {
  readonly uid: string
}

export const cityDatabasePath = (directory: string): string => join(directory, '.svc', 'city.db')

/** Opens the store, made where it is missing; the directory itself must exist. */
export async function openCityStore(
  directory: string,
  name: string,
  clock: Clock,
  migrations: Migrations,
  watch?: StoreObserver,
): Promise<CityStore> {
  const path = cityDatabasePath(directory)
  // What a link leads to may be of another city, and packs write nothing through one.
  const { is } = lookAtEntry(dirname(path))
  if (is === 'file' || is === 'link' || is === 'special') throw new FileRefused('.svc is no directory')
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
  keepPrivate(dirname(path))
  // SQLite would wait for the other end of a pipe, and write through a link.
  for (const side of ['', '-wal', '-shm', '-journal']) requireOwnFile(path + side)
  const store = openStore({
    path,
    migrations,
    owner: `city "${name}"`,
    clock,
    ...(watch === undefined ? {} : { watch }),
  })
  try {
    const uid = readMeta(store, 'uid') ?? (await makeIdentity(store, clock))
    return { ...store, uid }
  } catch (error) {
    store.db.close()
    throw error
  }
}

async function makeIdentity(store: Store, clock: Clock): Promise<string> {
  const uid = ulid(clock.now())
  await store.db.write((tx) => {
    tx.run("INSERT INTO meta (key, value) VALUES ('uid', ?), ('epoch', '1'), ('tenure', 'owned')", uid)
  })
  return uid
}

/** The live suspension override; undefined: what the configuration says. */
export function readSuspension(db: Pick<Tx, 'get'>): boolean | undefined {
  const value = db.get("SELECT value FROM overrides WHERE key = 'suspended'")?.value
  return value === undefined ? undefined : value === 'true'
}

export function writeSuspension(tx: Tx, suspended: boolean, now: number): void {
  tx.run("INSERT OR REPLACE INTO overrides (key, value, updated_at) VALUES ('suspended', ?, ?)", String(suspended), now)
}
