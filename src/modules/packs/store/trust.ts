/**
 * Which packs from elsewhere may start something, and since when (decision 216).
 *
 * T1  It stands in the supervisor's own store, by the directory of the city: no file that came with a city or a pack can
 *     say it.
 * T2  It is about a commit. Another commit that would run the same has it too (runs.ts): an upgrade that changes what is
 *     run is asked about again.
 */
import type { Store } from '../../../kernel/store.ts'

export const PACK_TRUST_SCHEMA = `
CREATE TABLE pack_trust (
  city TEXT NOT NULL,
  repository TEXT NOT NULL,
  commit_id TEXT NOT NULL,
  runs TEXT NOT NULL,
  trusted_at INTEGER NOT NULL,
  PRIMARY KEY (city, repository, commit_id)
) STRICT, WITHOUT ROWID;
`

/** A checkout of a pack from git. */
export interface TrustedThing {
  readonly repository: string
  readonly commit: string
}

export class PackTrust {
  readonly #store: Store
  /** Hashes of what is run, by city, repository and commit: loads ask for them. */
  readonly #known = new Map<string, string>()

  constructor(store: Store) {
    this.#store = store
    for (const row of store.db.all('SELECT city, repository, commit_id, runs FROM pack_trust'))
      this.#known.set(
        keyOf(String(row.city), { repository: String(row.repository), commit: String(row.commit_id) }),
        String(row.runs),
      )
  }

  /** `city`: its directory. */
  has(city: string, thing: TrustedThing): boolean {
    return this.#known.has(keyOf(city, thing))
  }

  /** Whether a commit of the repository that runs the same is trusted. */
  knows(city: string, repository: string, runs: string): boolean {
    const start = keyOf(city, { repository, commit: '' })
    return [...this.#known].some(([key, known]) => known === runs && key.startsWith(start))
  }

  async add(city: string, thing: TrustedThing & { readonly runs: string }, now: number): Promise<void> {
    await this.#store.db.write((tx) => {
      tx.run(
        'INSERT OR REPLACE INTO pack_trust (city, repository, commit_id, runs, trusted_at) VALUES (?, ?, ?, ?, ?)',
        city,
        thing.repository,
        thing.commit,
        thing.runs,
        now,
      )
      tx.afterCommit(() => this.#known.set(keyOf(city, thing), thing.runs))
    })
  }
}

const keyOf = (city: string, { repository, commit }: TrustedThing): string => `${city}\0${repository}\0${commit}`
