/**
 * Reading a city's files: from disk, or from disk with some files replaced in memory (a candidate that is not written
 * yet). Everything is synchronous, so that one load sees one moment, and bounded, so that no load takes long (read.ts).
 */

import { type Dirent, opendirSync, statSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { lookAtEntry } from '../kernel/look.ts'
import { compareText } from './issues.ts'
import {
  contains,
  FileRefused,
  insideOrMissing,
  isMissing,
  readInside,
  realPath,
  TEXT_BYTES,
  tooLarge,
} from './read.ts'

export type DirEntry = {
  readonly name: string
  /** Also of a link to one. */
  readonly directory: boolean
  readonly link?: true
  /** A pipe, socket or device. */
  readonly special?: true
}

/** Most entries that one directory may have. */
const MAX_ENTRIES = 20_000

/**
 * Access to files. What is missing is `undefined`; what is there and cannot be read throws: `FileRefused` where it is
 * outside `root`, no regular file, or too large.
 */
export type ConfigFiles = {
  read(path: string, root: string, limit?: number): Buffer | undefined
  /** Throws `FileRefused` also for a directory with more entries than anybody makes by hand. */
  list(path: string, root: string): readonly DirEntry[] | undefined
  /** What the path is after following links; undefined when it does not exist. */
  kind(path: string): 'file' | 'directory' | 'special' | undefined
  isExecutable(path: string): boolean
  /** The path without symbolic links; of a missing path, that of its deepest existing directory with the rest. */
  real(path: string): string
}

/** The files on disk. */
export function diskFiles(): ConfigFiles {
  return { read: readInside, list: listInside, kind: kindOnDisk, isExecutable: isExecutableOnDisk, real: realPath }
}

/** `base` with the files of `edits` (absolute path to content) in place of its own; `null` removes one. */
export function overlayFiles(base: ConfigFiles, edits: ReadonlyMap<string, string | Buffer | null>): ConfigFiles {
  const added = new Map<string, Map<string, boolean>>()
  for (const [path, text] of edits) if (text !== null) addParents(added, path)
  return {
    ...base,
    read(path, root, limit = TEXT_BYTES) {
      const text = edits.get(path)
      if (text === undefined) return base.read(path, root, limit)
      if (text === null) return undefined
      const bytes = Buffer.from(text)
      if (bytes.length > limit) throw tooLarge(limit)
      return bytes
    },
    list(path, root) {
      const there = base.list(path, root)
      const children = new Map((there ?? []).map((entry) => [entry.name, entry]))
      for (const [name, directory] of added.get(path) ?? []) {
        // A link that the edit goes through stays what it is: the hash of a tree does not depend on who reads it.
        if (children.get(name)?.directory !== directory) children.set(name, { name, directory })
      }
      for (const [edited, text] of edits)
        if (text === null && dirname(edited) === path) children.delete(basename(edited))
      if (children.size === 0 && there === undefined) return undefined
      return [...children.values()].sort((a, b) => compareText(a.name, b.name))
    },
    kind(path) {
      const text = edits.get(path)
      if (text !== undefined) return text === null ? undefined : 'file'
      return added.has(path) ? 'directory' : base.kind(path)
    },
  }
}

/** The bytes of a regular file; undefined also where it cannot be read, which is somebody else's to report. */
export function readable(files: ConfigFiles, path: string, root: string): Buffer | undefined {
  try {
    return files.kind(path) === 'file' ? files.read(path, root) : undefined
  } catch {
    return undefined
  }
}

/** As `readable`, of a directory: none where it cannot be listed. */
export function listable(files: ConfigFiles, path: string, root: string): readonly DirEntry[] {
  try {
    return files.list(path, root) ?? []
  } catch {
    return []
  }
}

/** Whether `path` is `root` or inside it, after following every link. */
export function isInside(files: ConfigFiles, root: string, path: string): boolean {
  return contains(files.real(root), files.real(path))
}

function listInside(path: string, root: string): DirEntry[] | undefined {
  const real = insideOrMissing(path, root)
  if (real === undefined) return undefined
  try {
    return entriesOf(real).sort((a, b) => compareText(a.name, b.name))
  } catch (error) {
    if (isMissing(error)) return undefined
    throw error
  }
}

function entriesOf(path: string): DirEntry[] {
  const entries: DirEntry[] = []
  const directory = opendirSync(path, { bufferSize: 256 })
  try {
    for (let entry = directory.readSync(); entry !== null; entry = directory.readSync()) {
      if (entries.length >= MAX_ENTRIES) throw new FileRefused(`it has more than ${MAX_ENTRIES} entries`)
      entries.push(entryOf(path, entry))
    }
  } finally {
    directory.closeSync()
  }
  return entries
}

function entryOf(parent: string, entry: Dirent): DirEntry {
  const { name } = entry
  if (entry.isDirectory() || entry.isFile()) return { name, directory: entry.isDirectory() }
  if (!entry.isSymbolicLink()) return { name, directory: false, special: true }
  return { name, directory: kindOnDisk(join(parent, name)) === 'directory', link: true }
}

function kindOnDisk(path: string): 'file' | 'directory' | 'special' | undefined {
  try {
    const facts = statSync(path)
    return facts.isDirectory() ? 'directory' : facts.isFile() ? 'file' : 'special'
  } catch (error) {
    if (isMissing(error)) return undefined
    throw error
  }
}

function isExecutableOnDisk(path: string): boolean {
  const found = lookAtEntry(path)
  return 'stats' in found && (found.stats.mode & 0o111) !== 0
}

function addParents(added: Map<string, Map<string, boolean>>, path: string): void {
  let child = path
  let directory = false
  for (let parent = dirname(child); parent !== child; parent = dirname(child)) {
    const children = added.get(parent) ?? new Map<string, boolean>()
    children.set(basename(child), directory)
    added.set(parent, children)
    child = parent
    directory = true
  }
}
