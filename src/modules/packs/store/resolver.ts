/** Where a pack from git is, answered from lock and cache alone: what the loader asks on every load. No network. */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import compare from 'semver/functions/compare.js'
import type { RemoteSource } from '../../../files/pack-source.ts'
import { parseConstraint, satisfies, tagVersion, VersionError } from '../../../files/pack-version.ts'
import type { PackCache } from './cache.ts'
import { LockError, type Pin, parseLock } from './lock.ts'
import type { PackTrust } from './trust.ts'

export interface PackQuestion {
  readonly remote: RemoteSource
  readonly version: string
  /** Text of the city's `packs.lock`; undefined where there is none. */
  readonly lock: string | undefined
  /** Directory of the city that asks. */
  readonly city: string
}

export type PackAnswer =
  | {
      readonly ok: true
      readonly dir: string
      readonly root: string
      readonly commit: string
      readonly version: string
      readonly contentHash: string
      readonly untrusted?: true
    }
  | { readonly ok: false; readonly message: string; readonly hint?: string }

export type PackState = 'installed' | 'missing' | 'stale' | 'drifted'

const INSTALL_HINT = 'run `svcctl pack install` (POST /v0/city/{cityName}/packs/install)'

/** The pin that an import means: of several that fit, the highest version. */
export function pinFor(pins: readonly Pin[], source: string, constraint: string): Pin | undefined {
  const wanted = parseConstraint(constraint)
  return pins.filter((pin) => pin.source === source && satisfies(pin, wanted)).sort(byVersion)[0]
}

function byVersion(a: Pin, b: Pin): number {
  const [left, right] = [tagVersion(a.version), tagVersion(b.version)]
  return left === undefined || right === undefined ? 0 : compare(right, left)
}

export function createResolver(cache: PackCache, trust: PackTrust): (question: PackQuestion) => PackAnswer {
  // A load asks once per import, always with the same lock.
  let last: { readonly text: string | undefined; readonly pins: readonly Pin[] } | undefined
  const pinsOf = (text: string | undefined): readonly Pin[] => {
    if (last === undefined || last.text !== text) last = { text, pins: text === undefined ? [] : parseLock(text) }
    return last.pins
  }
  return (question) => {
    try {
      return answer({ cache, trust }, question, pinsOf(question.lock))
    } catch (error) {
      if (error instanceof VersionError) return { ok: false, message: error.message, hint: '' }
      if (error instanceof LockError)
        return {
          ok: false,
          message: error.message,
          hint: 'restore it from version control, or remove it and run `svcctl pack install`',
        }
      throw error
    }
  }
}

function answer(
  { cache, trust }: { cache: PackCache; trust: PackTrust },
  { remote, version, lock, city }: PackQuestion,
  pins: readonly Pin[],
): PackAnswer {
  const pin = pinFor(pins, remote.source, version)
  if (pin === undefined) {
    const stale = pins.some((one) => one.source === remote.source)
    if (stale)
      return {
        ok: false,
        message: `packs.lock pins this pack to a version that does not fit \`${version}\``,
        hint: 'run `svcctl pack upgrade`',
      }
    return {
      ok: false,
      message:
        lock === undefined ? 'the pack is not installed: there is no packs.lock' : 'the pack is not in packs.lock',
      hint: INSTALL_HINT,
    }
  }
  const found = cache.find(remote.repository, pin.commit)
  if (found === undefined)
    return { ok: false, message: 'the pack is not in the cache of this machine', hint: INSTALL_HINT }
  if (found.contentHash !== pin.contentHash)
    return {
      ok: false,
      message: 'the cached pack was changed: its content is not what packs.lock pins',
      hint: INSTALL_HINT,
    }
  const dir = join(found.dir, remote.subpath)
  if (!existsSync(join(dir, 'pack.toml')))
    return {
      ok: false,
      message: 'the repository has no `pack.toml` there',
      hint: 'give the directory of the pack after `//`',
    }
  const { commit, contentHash } = pin
  cache.noteUse(remote.repository, commit)
  const held = trust.has(city, { repository: remote.repository, commit }) ? {} : { untrusted: true as const }
  return { ok: true, dir, root: found.dir, commit, version: pin.version, contentHash, ...held }
}

/** What has become of an import, for lists. */
export function stateOf(
  cache: PackCache,
  pins: readonly Pin[],
  remote: { readonly source: string; readonly repository: string },
  constraint: string,
): { readonly state: PackState; readonly pin?: Pin } {
  let pin: Pin | undefined
  try {
    pin = pinFor(pins, remote.source, constraint)
  } catch {
    return { state: 'stale' }
  }
  if (pin === undefined) return { state: pins.some(({ source }) => source === remote.source) ? 'stale' : 'missing' }
  const found = cache.find(remote.repository, pin.commit)
  if (found === undefined) return { state: 'missing', pin }
  return { state: found.contentHash === pin.contentHash ? 'installed' : 'drifted', pin }
}
