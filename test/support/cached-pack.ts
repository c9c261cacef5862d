/** A pack from git as it is after its download: in the cache of a supervisor, and pinned and imported by a city. */
import { appendFileSync, mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { systemClock } from '../../src/kernel/clock.ts'
import { PackCache } from '../../src/modules/packs/store/cache.ts'
import { formatLock } from '../../src/modules/packs/store/lock.ts'

export interface CachedPack {
  readonly name: string
  readonly commit: string
  readonly files: Readonly<Record<string, string>>
}

/** Writes the files of the city; whoever loads them next finds the pack. */
export async function importCached(home: string, city: string, { name, commit, files }: CachedPack): Promise<void> {
  const source = `https://git.example.org/${name}.git`
  const { contentHash } = await new PackCache(home, systemClock, async () => {}).put(source, commit, async (dir) => {
    for (const [path, text] of Object.entries(files)) {
      mkdirSync(dirname(join(dir, path)), { recursive: true })
      writeFileSync(join(dir, path), text)
    }
  })
  const version = `sha:${commit}`
  const pin = { source, version, commit, contentHash, subpath: '', fetched: '2026-01-01T00:00:00Z' }
  writeFileSync(join(city, 'packs.lock'), formatLock([pin]) ?? '')
  appendFileSync(join(city, 'pack.toml'), `\n[imports.${name}]\nsource = "${source}"\nversion = "${version}"\n`)
}
