/** The files of a city that packs are about: its imports, its lock, and where in them an import stands. */
import { mkdirSync, renameSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { TextFiles } from '../../../files/configuration.ts'
import { diskFiles, readable } from '../../../files/files.ts'
import { parseConstraint } from '../../../files/pack-version.ts'
import { withoutMark } from '../../../files/read.ts'
import { asCaller } from '../../../kernel/file-modes.ts'
import { formatLock, LOCK_FILE, LockError, type Pin, parseLock, samePin, sortPins } from '../store/lock.ts'
import { type RootImports, rootImports, type Scope } from './imports.ts'

export const readRoot = (dir: string): RootImports => rootImports((path) => readText(dir, path))
export const readLock = (dir: string): string | undefined => readText(dir, LOCK_FILE)

// The loader says what is wrong with a file that cannot be read.
function readText(dir: string, path: string): string | undefined {
  const text = readable(diskFiles(), join(dir, path), dir)?.toString('utf8')
  return text === undefined ? undefined : withoutMark(text)
}

/** Whole or not at all; only before the city's configuration is open, which writes everything else. */
export function writeLock(dir: string, text: string): void {
  const next = join(dir, '.svc', 'packs.lock.next')
  mkdirSync(dirname(next), { recursive: true })
  asCaller(() => writeFileSync(next, text, { flush: true }))
  renameSync(next, join(dir, LOCK_FILE))
}

export function tryLock(text: string | undefined): { readonly pins: readonly Pin[]; readonly error?: string } {
  try {
    return { pins: text === undefined ? [] : parseLock(text) }
  } catch (error) {
    if (error instanceof LockError) return { pins: [], error: error.message }
    throw error
  }
}

/** The text stays as it is where it says the same. */
export function lockTextFor(
  pins: readonly Pin[],
  before: readonly Pin[],
  text: string | undefined,
): string | undefined {
  const kept = sortPins(pins).map((pin) => before.find((old) => samePin(old, pin)) ?? pin)
  const same = text !== undefined && kept.length === before.length && kept.every((pin) => before.includes(pin))
  return same && kept.length > 0 ? text : formatLock(kept)
}

export const isPack = (dir: string): boolean => readText(dir, 'pack.toml') !== undefined

/** Path of the table in a file; undefined where the file has no such rig. */
export function tablePath(text: string, scope: Scope, name: string): readonly (string | number)[] | undefined {
  if (scope === 'city') return ['imports', name]
  if (scope === 'default-rig') return ['defaults', 'rig', 'imports', name]
  const index = rigNames(text).indexOf(scope.slice('rig:'.length))
  return index < 0 ? undefined : ['rigs', index, 'imports', name]
}

/** As `tablePath`, where the file has the import. */
export function pathOf(
  file: string,
  text: string,
  scope: Scope,
  name: string,
): readonly (string | number)[] | undefined {
  const own = rootImports((path) => (path === (file === 'pack.toml' ? 'pack.toml' : 'city.toml') ? text : undefined))
  return own.entries.some((entry) => entry.name === name && entry.scope === scope)
    ? tablePath(text, scope, name)
    : undefined
}

/** Names of the rigs that one file declares, in its order. */
const rigNames = (text: string): readonly string[] =>
  rootImports((path) => (path === 'city.toml' ? text : undefined)).rigs

/** The file that declares the rig: `city.toml`, else the fragment that does. */
function rigFile(files: TextFiles, scope: Scope): string {
  const { texts } = rootImports((path) => files.get(path))
  const rig = scope.slice('rig:'.length)
  return (
    [...texts].find(
      ([path, text]) => path !== 'pack.toml' && text !== undefined && rigNames(text).includes(rig),
    )?.[0] ?? 'city.toml'
  )
}

/** The file for a new import: `pack.toml` for the city's own, else where the rig is declared. */
export function fileFor(files: TextFiles, scope: Scope): string {
  if (scope === 'city' && files.get('pack.toml') !== undefined) return 'pack.toml'
  return scope.startsWith('rig:') ? rigFile(files, scope) : 'city.toml'
}

export function hasConstraint({ constraint }: { readonly constraint: string }): boolean {
  try {
    parseConstraint(constraint)
    return true
  } catch {
    return false
  }
}
