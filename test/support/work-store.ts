/** The beads of a city in a real file, without a supervisor around them. */

import { join } from 'node:path'
import { migrationsOf } from '../../src/kernel/database.ts'
import { openStore, STORE_SCHEMA, type Store } from '../../src/kernel/store.ts'
import { BEADS_SCHEMA } from '../../src/modules/beads/store/schema.ts'
import { BeadStore } from '../../src/modules/beads/store/store.ts'
import type { WorkCity, WorkConfig } from '../../src/modules/beads/work/city.ts'
import { Claims } from '../../src/modules/beads/work/claim.ts'
import { seededIds } from './bead-ids.ts'
import { asMap } from './document.ts'
import { ManualClock } from './manual-clock.ts'
import { temporaryDirectory } from './temporary.ts'

export const LEASE_MS = 900_000

export interface WorkStore extends WorkCity, Disposable {
  readonly clock: ManualClock
  readonly store: Store
  readonly path: string
  /** Creates an open bead with this id. */
  bead(id: string, more?: object): Promise<string>
  /** `[type, subject, changed]` of what was appended after `seq`. */
  events(after?: number): readonly (readonly [string, string, (readonly string[])?])[]
}

const CONFIG: WorkConfig = {
  prefix: 'al',
  rigs: [{ name: 'shop', prefix: 'sh' }],
  agents: [{ identity: 'mayor' }],
  named_sessions: [],
  beads: {},
}

export function openWorkStore(
  leased: (expiresAt: number) => void = () => {},
  lives: (sessionId: string) => boolean = () => false,
): WorkStore {
  const directory = temporaryDirectory()
  const clock = new ManualClock()
  const path = join(directory.path, 'city.db')
  const migrations = migrationsOf('test', STORE_SCHEMA, ...BEADS_SCHEMA)
  const store = openStore({ path, migrations, owner: 'a test', clock })
  const beads = new BeadStore({ db: store.db, log: store.log, clock, ids: seededIds() })
  const alone = (name: string) => [name]
  const people = { canonical: (name: string) => name, identities: alone, routes: alone }
  const claims = new Claims({
    beads,
    db: store.db,
    log: store.log,
    clock,
    people,
    leaseMs: () => LEASE_MS,
    lives,
    leased,
  })
  return {
    name: 'alpha',
    steps: { of: () => undefined, ties: () => [], cancel: () => {} },
    clock,
    store,
    path,
    beads,
    claims,
    people,
    launch: () => Promise.reject(new Error('nothing is launched here')),
    ended: () => false,
    config: () => CONFIG,
    async bead(id, more = {}) {
      await store.db.write((tx) => beads.insert(tx, { title: id, id, ...more }, 'test'))
      return id
    },
    events(after = 0) {
      const { events } = store.log.scan({}, { after, upTo: store.log.head }, 'asc', 10_000)
      return events.map(({ type, subject, envelope }) => {
        const { changed } = asMap(asMap(JSON.parse(envelope)).payload)
        return Array.isArray(changed) ? [type, subject ?? '', changed] : [type, subject ?? '']
      })
    },
    [Symbol.dispose]() {
      store.db.close()
      directory[Symbol.dispose]()
    },
  }
}
