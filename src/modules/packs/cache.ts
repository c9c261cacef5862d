/**
 * Checkouts of packs, shared by all cities: `$SVC_HOME/cache/repos/<sha256(repository, commit)>/checkout`.
 *
 * C1  A checkout is there whole and checked, or not at all: it is made elsewhere and renamed.
 * C2  What was checked is known by its hash; a change on disk shows at the next look (size and time gate the reading).
 */
import { createHash } from 'node:crypto'
import { existsSync, lstatSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { randomHex } from '../../kernel/ids.ts'

export interface Checkout {
  readonly dir: string
  /** Of what is on disk now. */
  readonly contentHash: string
  /** It is what was fetched: nobody has changed it since. */
  readonly sound: boolean
}

/** Beside the checkout: what its content was when git had verified it. */
const SEAL = 'content-hash'

export class PackCache {
  readonly #repos: string
  readonly #temporary: string
  readonly #hashes = new Map<string, { readonly stamp: string; readonly hash: string }>()

  constructor(home: string) {
    this.#repos = join(home, 'cache', 'repos')
    this.#temporary = join(home, 'cache', 'tmp')
  }

  /** Forgets what a crash left half made; once at start, before anything is fetched. */
  sweep(): void {
    rmSync(this.#temporary, { recursive: true, force: true })
  }

  pathOf(repository: string, commit: string): string {
    return join(this.#repos, createHash('sha256').update(`${repository}\0${commit}`).digest('hex'))
  }

  /** The checkout as it is on disk, whatever has become of it; undefined where there is none. */
  find(repository: string, commit: string): Checkout | undefined {
    const entry = this.pathOf(repository, commit)
    const dir = join(entry, 'checkout')
    if (!existsSync(dir)) return undefined
    const contentHash = this.#hashOf(dir)
    return { dir, contentHash, sound: sealOf(entry) === contentHash }
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
      rmSync(join(next, 'checkout', '.git'), { recursive: true, force: true })
      writeFileSync(join(next, SEAL), treeHash(join(next, 'checkout')))
      const entry = this.pathOf(repository, commit)
      // In one tick: no load finds the place empty.
      if (existsSync(entry)) renameSync(entry, old)
      renameSync(next, entry)
      const dir = join(entry, 'checkout')
      return { dir, contentHash: this.#hashOf(dir), sound: true }
    } finally {
      rmSync(next, { recursive: true, force: true })
      rmSync(old, { recursive: true, force: true })
    }
  }

  #hashOf(dir: string): string {
    const stamp = stampOf(dir)
    const known = this.#hashes.get(dir)
    if (known?.stamp === stamp) return known.hash
    const hash = treeHash(dir)
    this.#hashes.set(dir, { stamp, hash })
    return hash
  }
}

function sealOf(entry: string): string | undefined {
  try {
    return readFileSync(join(entry, SEAL), 'utf8').trim()
  } catch {
    return undefined
  }
}

interface TreeFile {
  readonly path: string
  readonly absolute: string
}

/** Files below `dir` in the order of their paths. A link counts by its own name: a checkout of ours has none. */
function filesOf(dir: string): TreeFile[] {
  return readdirSync(dir, { withFileTypes: true, recursive: true })
    .filter((entry) => !entry.isDirectory())
    .map((entry) => {
      const absolute = join(entry.parentPath, entry.name)
      return { path: absolute.slice(dir.length + 1), absolute }
    })
    .sort((a, b) => (a.path < b.path ? -1 : 1))
}

/** What changes whenever a file does: names, sizes, times, inodes. */
function stampOf(dir: string): string {
  const hash = createHash('sha1')
  for (const { path, absolute } of filesOf(dir)) {
    const { size, mtimeMs, ctimeMs, ino, mode } = lstatSync(absolute)
    hash.update(`${path}\0${size}\0${mtimeMs}\0${ctimeMs}\0${ino}\0${mode}\n`)
  }
  return hash.digest('hex')
}

/** Hash over names, bytes and the executable bit: the same on every machine. */
function treeHash(dir: string): string {
  const hash = createHash('sha256')
  for (const { path, absolute } of filesOf(dir)) {
    const stat = lstatSync(absolute)
    const kind = stat.isSymbolicLink() ? 'l' : (stat.mode & 0o111) === 0 ? '-' : 'x'
    const bytes = kind === 'l' ? Buffer.alloc(0) : readFileSync(absolute)
    hash.update(`${path}\0${kind}\0${bytes.length}\0`).update(bytes)
  }
  return `sha256:${hash.digest('hex')}`
}
