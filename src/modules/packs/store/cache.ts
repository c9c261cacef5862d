/**
 * Checkouts of packs, shared by all cities: `$SVC_HOME/cache/repos/<sha256(repository, commit)>/checkout`.
 *
 * C1  A checkout is there whole and checked, or not at all: it is made elsewhere and renamed, and so it goes.
 * C2  What was checked is known by its seal, and looked at without reading the tree: loads ask for it all the time.
 *     `verify` reads the tree, with pauses for others; a change that it finds is known from then on.
 * C3  What was looked at while an install runs is not taken away before that ends: the lock may not say yet that it is
 *     needed.
 */

import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readdirSync, renameSync, utimesSync, writeFileSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { dirname, join, relative, sep } from 'node:path'
import { readRegular } from '../../../files/read.ts'
import { measureTree, TreeRefused } from '../../../files/tree.ts'
import type { Clock } from '../../../kernel/clock.ts'
import { randomHex } from '../../../kernel/ids.ts'
import { look } from '../../../kernel/look.ts'

export interface Checkout {
  readonly dir: string
  /** Of what is on disk, as far as that was looked at. */
  readonly contentHash: string
  /** It is what was fetched: nobody has been seen to change it since. */
  readonly sound: boolean
}

/** A directory of the cache. */
export interface CacheEntry {
  readonly path: string
  readonly id: string
  readonly repository?: string
  readonly commit?: string
  readonly bytes: number
  readonly lastUsed: number
}

/** Beside the checkout: what its content was when git had verified it; its time is that of the last use. */
const SEAL = 'content-hash'
/** Beside the checkout: what it is of, for people who look at the cache. */
const LABEL = 'label.json'
/** The hash of a tree that is too much to be read: of nothing that anybody pins. */
const UNREADABLE = 'sha256:'
/** How exact the time of the last use is. */
const USE_MS = 3_600_000

export class PackCache {
  readonly #repos: string
  readonly #temporary: string
  readonly #pause: () => Promise<void>
  readonly #clock: Clock
  /** By directory of a checkout: what it holds since somebody has changed it. */
  readonly #changed = new Map<string, string>()
  readonly #verified = new Set<string>()
  /** When this process has last noted a use, by directory of the cache. */
  readonly #used = new Map<string, number>()
  #installs = 0
  /** What anybody has looked at since the first of the installs that run began. */
  readonly #held = new Set<string>()

  /** `pause` gives way to others for a moment. */
  constructor(home: string, clock: Clock, pause: () => Promise<void>) {
    this.#repos = join(home, 'cache', 'repos')
    this.#temporary = join(home, 'cache', 'tmp')
    this.#clock = clock
    this.#pause = pause
  }

  /** Forgets what a crash left half made or half removed; once at start, before anything is fetched. */
  sweep(): void {
    const cache = dirname(this.#temporary)
    if (!existsSync(cache)) return
    if (existsSync(this.#temporary)) renameSync(this.#temporary, `${this.#temporary}-${randomHex(8)}`)
    for (const name of readdirSync(cache)) if (name.startsWith('tmp-')) void discard(join(cache, name))
  }

  pathOf(repository: string, commit: string): string {
    return join(this.#repos, createHash('sha256').update(`${repository}\0${commit}`).digest('hex'))
  }

  /** The directory of the cache that a file or directory is in. */
  entryOf(path: string): string | undefined {
    const [id = ''] = relative(this.#repos, path).split(sep)
    return /^[0-9a-f]{64}$/.test(id) ? join(this.#repos, id) : undefined
  }

  /** While it lasts, nothing goes that is looked at (C3). */
  hold(): Disposable {
    this.#installs += 1
    return {
      [Symbol.dispose]: () => {
        this.#installs -= 1
        if (this.#installs === 0) this.#held.clear()
      },
    }
  }

  /** The checkout, by its seal and what `verify` has found; undefined where there is none. */
  find(repository: string, commit: string): Checkout | undefined {
    const entry = this.pathOf(repository, commit)
    const dir = join(entry, 'checkout')
    if (this.#installs > 0) this.#held.add(entry)
    if (!existsSync(dir)) return undefined
    const seal = sealOf(entry)
    const changed = this.#changed.get(dir)
    return { dir, contentHash: changed ?? seal ?? UNREADABLE, sound: changed === undefined && seal !== undefined }
  }

  /** A city is loaded with it. */
  noteUse(repository: string, commit: string): void {
    const entry = this.pathOf(repository, commit)
    const now = this.#clock.now()
    if (now - (this.#used.get(entry) ?? 0) < USE_MS) return
    this.#used.set(entry, now)
    note(() => utimesSync(join(entry, SEAL), now / 1000, now / 1000))
  }

  /** As `find`, after reading the whole tree again. */
  async verify(repository: string, commit: string): Promise<Checkout | undefined> {
    const found = this.find(repository, commit)
    if (found === undefined) return undefined
    const hash = await this.#hashOf(found.dir)
    if (hash === sealOf(this.pathOf(repository, commit))) this.#changed.delete(found.dir)
    else this.#changed.set(found.dir, hash)
    this.#verified.add(found.dir)
    return this.find(repository, commit)
  }

  /** Reads the tree where this process has not done so yet: once for all who are about to use it. */
  async verifyOnce(repository: string, commit: string): Promise<void> {
    const found = this.find(repository, commit)
    if (found !== undefined && !this.#verified.has(found.dir)) await this.verify(repository, commit)
  }

  /** Puts a checkout there: `fill` makes the given directory, which becomes the cache's own if nothing throws. */
  async put(repository: string, commit: string, fill: (dir: string) => Promise<void>): Promise<Checkout> {
    mkdirSync(this.#temporary, { recursive: true, mode: 0o700 })
    mkdirSync(this.#repos, { recursive: true, mode: 0o700 })
    const next = join(this.#temporary, randomHex(8))
    const old = `${next}-old`
    mkdirSync(next, { mode: 0o700 })
    try {
      await fill(join(next, 'checkout'))
      await rm(join(next, 'checkout', '.git'), { recursive: true, force: true })
      const { hash: contentHash, bytes } = await measureTree(join(next, 'checkout'), this.#pause)
      writeFileSync(join(next, SEAL), contentHash)
      writeFileSync(join(next, LABEL), JSON.stringify({ repository, commit, bytes }))
      const entry = this.pathOf(repository, commit)
      const dir = join(entry, 'checkout')
      // In one tick: no load finds the place empty.
      if (existsSync(entry)) renameSync(entry, old)
      renameSync(next, entry)
      this.#changed.delete(dir)
      this.#verified.add(dir)
      if (this.#installs > 0) this.#held.add(entry)
      return { dir, contentHash, sound: true }
    } finally {
      await discard(next)
      await discard(old)
    }
  }

  /** Everything that is there. */
  async entries(): Promise<readonly CacheEntry[]> {
    const found: CacheEntry[] = []
    for (const id of existsSync(this.#repos) ? readdirSync(this.#repos) : []) {
      const entry = await this.#entry(join(this.#repos, id), id)
      if (entry !== undefined) found.push(entry)
    }
    return found
  }

  /** Bytes of a checkout, where they are known. */
  bytesOf(repository: string, commit: string): number | undefined {
    return labelOf(this.pathOf(repository, commit))?.bytes
  }

  /** Takes those away that `mayGo` names, at once, and removes their files after that; what an install looks at stays. */
  async remove(entries: readonly CacheEntry[], mayGo: () => (path: string) => boolean): Promise<readonly CacheEntry[]> {
    mkdirSync(this.#temporary, { recursive: true, mode: 0o700 })
    const allowed = mayGo()
    const taken = entries
      .filter(({ path }) => allowed(path) && !this.#held.has(path) && existsSync(path))
      .map((entry) => {
        const aside = join(this.#temporary, `gone-${randomHex(8)}`)
        renameSync(entry.path, aside)
        this.#used.delete(entry.path)
        this.#verified.delete(join(entry.path, 'checkout'))
        this.#changed.delete(join(entry.path, 'checkout'))
        return { entry, aside }
      })
    for (const { aside } of taken) await discard(aside)
    return taken.map(({ entry }) => entry)
  }

  async #entry(path: string, id: string): Promise<CacheEntry | undefined> {
    const seal = look(join(path, SEAL))
    const lastUsed = 'stats' in seal ? seal.stats.mtimeMs : undefined
    const label = labelOf(path)
    if (label !== undefined) return { path, id, lastUsed: lastUsed ?? 0, ...label }
    if (!existsSync(path)) return undefined
    const { bytes } = await this.#measured(join(path, 'checkout'))
    // Measured once: it was fetched by a version that wrote no label.
    note(() => writeFileSync(join(path, LABEL), JSON.stringify({ bytes })))
    return { path, id, lastUsed: lastUsed ?? 0, bytes }
  }

  async #hashOf(dir: string): Promise<string> {
    return (await this.#measured(dir)).hash
  }

  async #measured(dir: string): Promise<{ readonly hash: string; readonly bytes: number }> {
    try {
      return await measureTree(dir, this.#pause)
    } catch (error) {
      if (error instanceof TreeRefused) return { hash: UNREADABLE, bytes: 0 }
      throw error
    }
  }
}

/** What cannot be removed now goes with the next sweep. */
async function discard(path: string): Promise<void> {
  await rm(path, { recursive: true, force: true }).catch(() => {})
}

/** What cannot be noted is not known: the checkout is used all the same. */
function note(write: () => void): void {
  try {
    write()
  } catch {
    // Somebody has removed it, or the disk is read-only.
  }
}

function sealOf(entry: string): string | undefined {
  try {
    return readRegular(join(entry, SEAL))?.toString('utf8').trim()
  } catch {
    return undefined
  }
}

type Label = Pick<CacheEntry, 'repository' | 'commit' | 'bytes'>

function labelOf(entry: string): Label | undefined {
  try {
    const found: unknown = JSON.parse(String(readRegular(join(entry, LABEL))))
    if (typeof found !== 'object' || found === null || !('bytes' in found)) return undefined
    const of =
      'repository' in found && 'commit' in found
        ? { repository: String(found.repository), commit: String(found.commit) }
        : {}
    return { ...of, bytes: Number(found.bytes) || 0 }
  } catch {
    return undefined
  }
}
