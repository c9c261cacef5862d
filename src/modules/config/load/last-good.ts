/**
 * The last good configuration of a city, kept in its store as the bytes of its files (decision 31): a start on files that
 * cannot be used comes up with these.
 */
import { join, relative, sep } from 'node:path'
import { type ConfigFiles, listable, overlayFiles } from '../../../files/files.ts'
import type { Tx } from '../../../kernel/database.ts'
import type { Store } from '../../../kernel/store.ts'
import { hashOf, hideEmptyAgents } from './own-files.ts'

/** Deeper than this nothing of a configuration lies. */
const MAX_DEPTH = 16

export class LastGood {
  readonly #store: Store
  readonly #dir: string
  readonly #hashes = new Map<string, string>()

  constructor(store: Store, dir: string) {
    this.#store = store
    this.#dir = dir
    for (const row of store.db.all('SELECT path, hash FROM config_good'))
      this.#hashes.set(String(row.path), String(row.hash))
  }

  /** Keeps what a load has read (absolute path to bytes); writes only what differs from what is kept. */
  save(tx: Tx, content: ReadonlyMap<string, Buffer>): void {
    const wanted = new Map([...content].flatMap(([path, bytes]) => this.#kept(path, bytes)))
    const gone = [...this.#hashes.keys()].filter((path) => !wanted.has(path))
    const changed = [...wanted].filter(([path, { hash }]) => this.#hashes.get(path) !== hash)
    for (const path of gone) tx.run('DELETE FROM config_good WHERE path = ?', path)
    for (const [path, { hash, bytes }] of changed) {
      tx.run('INSERT OR REPLACE INTO config_good (path, hash, bytes) VALUES (?, ?, ?)', path, hash, bytes)
    }
    tx.afterCommit(() => {
      for (const path of gone) this.#hashes.delete(path)
      for (const [path, { hash }] of changed) this.#hashes.set(path, hash)
    })
  }

  /** `disk` as it was when the configuration was good; undefined for a city that never had one. */
  files(disk: ConfigFiles): ConfigFiles | undefined {
    if (this.#hashes.size === 0) return undefined
    const edits = new Map<string, Buffer | null>()
    for (const path of this.#newSince(disk)) edits.set(path, null)
    for (const row of this.#store.db.all('SELECT path, bytes FROM config_good')) {
      if (Buffer.isBuffer(row.bytes)) edits.set(join(this.#dir, String(row.path)), row.bytes)
    }
    return hideEmptyAgents(this.#dir, overlayFiles(disk, edits))
  }

  // Packs outside the city come from the cache or from this package: they do not change under a city.
  #kept(path: string, bytes: Buffer): [string, { hash: string; bytes: Buffer }][] {
    const local = this.#local(path)
    return local === undefined ? [] : [[local, { hash: hashOf(bytes), bytes }]]
  }

  #local(path: string): string | undefined {
    const local = relative(this.#dir, path).split(sep).join('/')
    const outside =
      local.startsWith('../') || local === '..' || (local.startsWith('.svc/') && local !== '.svc/site.toml')
    return outside ? undefined : local
  }

  /** Text files beside kept ones that were not there then: what made the configuration invalid may be among them. */
  #newSince(disk: ConfigFiles): readonly string[] {
    const tops = new Set([
      'agents',
      'formulas',
      'orders',
      'template-fragments',
      'prompts',
      'mcp',
      'commands',
      'doctor',
      'skills',
    ])
    const found: string[] = []
    const walk = (dir: string, depth: number): void => {
      for (const { name, directory, link } of listable(disk, dir, this.#dir)) {
        const path = join(dir, name)
        if (link === true) continue
        if (directory && depth < MAX_DEPTH) walk(path, depth + 1)
        else if (/\.(?:toml|md|txt)$/.test(name) && !this.#hashes.has(this.#local(path) ?? '')) found.push(path)
      }
    }
    for (const top of tops) walk(join(this.#dir, top), 0)
    for (const name of ['city.toml', 'pack.toml', 'packs.lock', '.svc/site.toml']) {
      if (!this.#hashes.has(name)) found.push(join(this.#dir, name))
    }
    return found
  }
}
