/**
 * Checkouts of packs, shared by all cities: `$SVC_HOME/cache/repos/<sha256(repository, commit)>/checkout`.
 *
 * C1  A checkout is there whole and checked, or not at all: it is made elsewhere and renamed.
 * C2  What was checked is known by its seal, and looked at without reading the tree: loads ask for it all the time.
 *     `verify` reads the tree, with pauses for others; a change that it finds is known from then on.
 */
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readdirSync, renameSync, writeFileSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { readRegular } from '../../files/read.ts'
import { TreeRefused, wholeHash } from '../../files/tree.ts'
import { randomHex } from '../../kernel/ids.ts'

export interface Checkout {
  readonly dir: string
  /** Of what is on disk, as far as that was looked at. */
  readonly contentHash: string
  /** It is what was fetched: nobody has been seen to change it since. */
  readonly sound: boolean
}

/** Beside the checkout: what its content was when git had verified it. */
const SEAL = 'content-hash'
/** The hash of a tree that is too much to be read: of nothing that anybody pins. */
const UNREADABLE = 'sha256:'

export class PackCache {
  readonly #repos: string
  readonly #temporary: string
  readonly #pause: () => Promise<void>
  /** By directory of a checkout: what it holds since somebody has changed it. */
  readonly #changed = new Map<string, string>()
  readonly #verified = new Set<string>()

  /** `pause` gives way to others for a moment. */
  constructor(home: string, pause: () => Promise<void>) {
    this.#repos = join(home, 'cache', 'repos')
    this.#temporary = join(home, 'cache', 'tmp')
    this.#pause = pause
  }

  /** Forgets what a crash left half made; once at start, before anything is fetched. */
  sweep(): void {
    const cache = dirname(this.#temporary)
    if (!existsSync(cache)) return
    if (existsSync(this.#temporary)) renameSync(this.#temporary, `${this.#temporary}-${randomHex(8)}`)
    for (const name of readdirSync(cache)) if (name.startsWith('tmp-')) void discard(join(cache, name))
  }

  pathOf(repository: string, commit: string): string {
    return join(this.#repos, createHash('sha256').update(`${repository}\0${commit}`).digest('hex'))
  }

  /** The checkout, by its seal and what `verify` has found; undefined where there is none. */
  find(repository: string, commit: string): Checkout | undefined {
    const entry = this.pathOf(repository, commit)
    const dir = join(entry, 'checkout')
    if (!existsSync(dir)) return undefined
    const seal = sealOf(entry)
    const changed = this.#changed.get(dir)
    return { dir, contentHash: changed ?? seal ?? UNREADABLE, sound: changed === undefined && seal !== undefined }
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
      const contentHash = await wholeHash(join(next, 'checkout'), this.#pause)
      writeFileSync(join(next, SEAL), contentHash)
      const entry = this.pathOf(repository, commit)
      const dir = join(entry, 'checkout')
      // In one tick: no load finds the place empty.
      if (existsSync(entry)) renameSync(entry, old)
      renameSync(next, entry)
      this.#changed.delete(dir)
      this.#verified.add(dir)
      return { dir, contentHash, sound: true }
    } finally {
      await discard(next)
      await discard(old)
    }
  }

  async #hashOf(dir: string): Promise<string> {
    try {
      return await wholeHash(dir, this.#pause)
    } catch (error) {
      if (error instanceof TreeRefused) return UNREADABLE
      throw error
    }
  }
}

/** What cannot be removed now goes with the next sweep. */
async function discard(path: string): Promise<void> {
  await rm(path, { recursive: true, force: true }).catch(() => {})
}

function sealOf(entry: string): string | undefined {
  try {
    return readRegular(join(entry, SEAL))?.toString('utf8').trim()
  } catch {
    return undefined
  }
}
