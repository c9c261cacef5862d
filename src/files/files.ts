/**
 * Reading a city's files: from disk, or from disk with some files replaced in memory (a candidate that is not written
 * yet). Everything is synchronous, so that one load sees one moment.
 */
import { createHash } from 'node:crypto'
import { readdirSync, readFileSync, realpathSync, statSync } from 'node:fs'
import { basename, dirname, join, relative, resolve, sep } from 'node:path'
import { compareText } from './issues.ts'

export type DirEntry = { readonly name: string; readonly directory: boolean; readonly link?: boolean }

/** Access to files. Missing files are `undefined`; a file that exists and cannot be read throws. */
export type ConfigFiles = {
  read(path: string): Buffer | undefined
  list(path: string): readonly DirEntry[] | undefined
  /** What the path is after following links; undefined when it does not exist. */
  kind(path: string): 'file' | 'directory' | undefined
  /** The path without symbolic links; of a missing path, that of its deepest existing directory with the rest. */
  real(path: string): string
}

/** The files on disk. */
export function diskFiles(): ConfigFiles {
  return { read: readDisk, list: listDisk, kind: kindOnDisk, real: realOnDisk }
}

/** `base` with the files of `edits` (absolute path to content) in place of its own; `null` removes one. */
export function overlayFiles(base: ConfigFiles, edits: ReadonlyMap<string, string | Buffer | null>): ConfigFiles {
  const added = new Map<string, Map<string, boolean>>()
  for (const [path, text] of edits) if (text !== null) addParents(added, path)
  return {
    read(path) {
      const text = edits.get(path)
      if (text === undefined) return base.read(path)
      return text === null ? undefined : Buffer.from(text)
    },
    list(path) {
      const children = new Map((base.list(path) ?? []).map((entry) => [entry.name, entry.directory]))
      for (const [name, directory] of added.get(path) ?? []) children.set(name, directory)
      for (const [edited, text] of edits)
        if (text === null && dirname(edited) === path) children.delete(basename(edited))
      if (children.size === 0 && base.list(path) === undefined) return undefined
      return [...children].map(([name, directory]) => ({ name, directory })).sort((a, b) => compareText(a.name, b.name))
    },
    kind(path) {
      const text = edits.get(path)
      if (text !== undefined) return text === null ? undefined : 'file'
      return added.has(path) ? 'directory' : base.kind(path)
    },
    real: base.real,
  }
}

/** Whether `path` is `root` or inside it, after following every link. */
export function isInside(files: ConfigFiles, root: string, path: string): boolean {
  const from = files.real(root)
  const to = files.real(path)
  return to === from || to.startsWith(from.endsWith(sep) ? from : from + sep)
}

/** Names that never count as content of a pack: at its top, and anywhere. */
const IGNORED_AT_TOP = new Set(['.beads', '.cache', '.svc', '.git', 'state', 'tmp'])
const IGNORED_ANYWHERE = new Set(['node_modules', '__pycache__'])

/** Every file below `dir` with its bytes, in the order of relative paths. */
function walkTree(files: ConfigFiles, dir: string): { path: string; bytes: Buffer }[] {
  const found: { path: string; bytes: Buffer }[] = []
  const walk = (at: string): void => {
    for (const entry of files.list(at) ?? []) {
      const path = join(at, entry.name)
      // Links could lead in circles or out of the pack; what they point at is no content of it.
      if (entry.link === true) continue
      if (IGNORED_ANYWHERE.has(entry.name) || (at === dir && IGNORED_AT_TOP.has(entry.name))) continue
      if (entry.directory) {
        walk(path)
        continue
      }
      const bytes = files.read(path)
      if (bytes !== undefined) found.push({ path: relative(dir, path), bytes })
    }
  }
  walk(dir)
  return found.sort((a, b) => compareText(a.path, b.path))
}

/** SHA-256 (hex) over the names and bytes of a tree: what a lock entry pins. */
export function treeHash(files: ConfigFiles, dir: string): string {
  const hash = createHash('sha256')
  for (const { path, bytes } of walkTree(files, dir)) hash.update(`${path}\0${bytes.length}\0`).update(bytes)
  return hash.digest('hex')
}

function readDisk(path: string): Buffer | undefined {
  try {
    return readFileSync(path)
  } catch (error) {
    if (isMissing(error)) return undefined
    throw error
  }
}

function listDisk(path: string): DirEntry[] | undefined {
  try {
    return readdirSync(path, { withFileTypes: true })
      .map((entry) => ({
        name: entry.name,
        directory: entry.isSymbolicLink() ? kindOnDisk(join(path, entry.name)) === 'directory' : entry.isDirectory(),
        link: entry.isSymbolicLink(),
      }))
      .sort((a, b) => compareText(a.name, b.name))
  } catch (error) {
    if (isMissing(error)) return undefined
    throw error
  }
}

function kindOnDisk(path: string): 'file' | 'directory' | undefined {
  try {
    return statSync(path).isDirectory() ? 'directory' : 'file'
  } catch (error) {
    if (isMissing(error)) return undefined
    throw error
  }
}

function realOnDisk(path: string): string {
  const absolute = resolve(path)
  try {
    return realpathSync.native(absolute)
  } catch (error) {
    const parent = dirname(absolute)
    if (parent === absolute || !isMissing(error)) return absolute
    return join(realOnDisk(parent), basename(absolute))
  }
}

/** Not there, and what can never be: a name that is too long or holds a NUL, links in a circle. */
const MISSING: ReadonlySet<unknown> = new Set(['ENOENT', 'ENOTDIR', 'ENAMETOOLONG', 'ELOOP', 'ERR_INVALID_ARG_VALUE'])

function isMissing(error: unknown): boolean {
  return error instanceof Error && 'code' in error && MISSING.has(error.code)
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
