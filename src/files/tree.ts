/**
 * Trees of files that a city or a pack brings: walks that follow no link and end, and the hash over one.
 *
 * T1  No link is followed and no special file is opened.
 * T2  A tree with more entries, levels or bytes than allowed is refused, and says where.
 */
import { createHash, type Hash } from 'node:crypto'
import { join } from 'node:path'
import { type ConfigFiles, diskFiles } from './files.ts'
import { compareText } from './issues.ts'
import { ASSET_BYTES, FileRefused } from './read.ts'

export interface TreeLimits {
  readonly entries: number
  readonly depth: number
  readonly bytes: number
}

const MIB = 1024 * 1024
/** What a pack from elsewhere may bring. */
export const PACK_LIMITS: TreeLimits = { entries: 20_000, depth: 64, bytes: 512 * MIB }
/** A directory of a city, or of a pack in it, that is read at every load. */
const CITY_LIMITS: TreeLimits = { entries: 10_000, depth: 64, bytes: 64 * MIB }
/** How long a hash may hold up everybody else before it makes a pause. */
const TURN_MS = 8

/** A tree that cannot be taken as it is; `path` is the file or directory of it that is in the way. */
export class TreeRefused extends Error {
  override readonly name = 'TreeRefused'
  readonly path: string

  constructor(path: string, message: string) {
    super(message)
    this.path = path
  }
}

/** Names that never count as content of a pack: at its top, and anywhere. */
const IGNORED_AT_TOP = new Set(['.beads', '.cache', '.svc', '.git', 'state', 'tmp'])
const IGNORED_ANYWHERE = new Set(['node_modules', '__pycache__'])

const isContent = (name: string, depth: number): boolean =>
  !IGNORED_ANYWHERE.has(name) && !(depth === 0 && IGNORED_AT_TOP.has(name))

/** SHA-256 (hex) over names and bytes of the content below `dir`; throws `TreeRefused` where it is too much. */
export function contentHash(files: ConfigFiles, dir: string, root: string): string {
  const tree: Tree = { files, dir, root, limits: CITY_LIMITS, accepts: isContent, strict: false }
  const steps = hashSteps(tree)
  for (;;) {
    const { done, value } = steps.next()
    if (done === true) return value.hash
  }
}

/** The regular files of a checkout, in the order of their paths, with pauses for others. */
export async function treeFiles(dir: string, pause: () => Promise<void>): Promise<TreeFile[]> {
  const files = diskFiles()
  const tree: Tree = { files, dir, root: dir, limits: PACK_LIMITS, accepts: () => true, strict: false }
  const found = await inTurns(walkSteps(tree), pause)
  return found.map(({ path }) => ({ path, executable: files.isExecutable(join(dir, path)) }))
}

export interface TreeFile {
  /** Relative to the tree. */
  readonly path: string
  readonly executable: boolean
}

export interface Measured {
  readonly hash: string
  readonly bytes: number
}

/** `sha256:` over names, kinds, executable bits and bytes of all that is below `dir` on disk, with pauses for others. */
export async function measureTree(dir: string, pause: () => Promise<void>): Promise<Measured> {
  const tree: Tree = { files: diskFiles(), dir, root: dir, limits: PACK_LIMITS, accepts: () => true, strict: true }
  const { hash, bytes } = await inTurns(hashSteps(tree), pause)
  return { hash: `sha256:${hash}`, bytes }
}

/** Goes through the steps; others have their turn between two of them. */
export async function inTurns<T>(steps: Generator<undefined, T>, pause: () => Promise<void>): Promise<T> {
  let began = performance.now()
  for (;;) {
    const { done, value } = steps.next()
    if (done === true) return value
    if (performance.now() - began < TURN_MS) continue
    await pause()
    began = performance.now()
  }
}

interface Tree {
  readonly files: ConfigFiles
  readonly dir: string
  readonly root: string
  readonly limits: TreeLimits
  readonly accepts: (name: string, depth: number) => boolean
  /** Links, special files and executable bits count too: nothing may be slipped in. */
  readonly strict: boolean
}

type Kind = 'file' | 'executable' | 'link' | 'special'

interface Found {
  readonly path: string
  readonly kind: Kind
}

/** As checkouts of packs were always hashed: their pins are in files of people. */
const LETTERS: Readonly<Record<Kind, string>> = { file: '-', executable: 'x', link: 'l', special: 's' }

/** Yields wherever a pause is possible. */
function* hashSteps(tree: Tree): Generator<undefined, Measured> {
  const found = yield* walkSteps(tree)
  const hash = createHash('sha256')
  let room = tree.limits.bytes
  for (const file of found) {
    room -= addFile(hash, tree, file)
    if (room < 0) throw new TreeRefused('', `it holds more than ${tree.limits.bytes / MIB} MiB`)
    yield
  }
  return { hash: hash.digest('hex'), bytes: tree.limits.bytes - room }
}

function* walkSteps({ files, dir, root, limits, accepts, strict }: Tree): Generator<undefined, Found[]> {
  const found: Found[] = []
  const open: { path: string; depth: number }[] = [{ path: '', depth: 0 }]
  let entries = 0
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    const { path: below, depth } = next
    if (depth > limits.depth) throw new TreeRefused(below, `it is nested more than ${limits.depth} levels deep`)
    for (const entry of listed(files, join(dir, below), root, below)) {
      entries += 1
      if (entries > limits.entries) throw new TreeRefused('', `it has more than ${limits.entries} entries`)
      if (!accepts(entry.name, depth)) continue
      const path = below === '' ? entry.name : `${below}/${entry.name}`
      const kind = entry.link === true ? 'link' : entry.special === true ? 'special' : 'file'
      if (kind === 'file' && entry.directory) open.push({ path, depth: depth + 1 })
      else if (kind === 'file' || strict) found.push({ path, kind })
    }
    yield
  }
  return found.sort((a, b) => compareText(a.path, b.path))
}

/** Adds the file to the hash; how many bytes it has. */
function addFile(hash: Hash, { files, dir, root, strict }: Tree, { path, kind }: Found): number {
  const absolute = join(dir, path)
  const bytes = kind === 'file' ? bytesOf(files, absolute, root, path) : Buffer.alloc(0)
  const letter = strict && kind === 'file' && files.isExecutable(absolute) ? LETTERS.executable : LETTERS[kind]
  hash.update(`${path}\0${letter}\0${bytes.length}\0`).update(bytes)
  return bytes.length
}

// A file that went away since it was listed is one that is not there.
function bytesOf(files: ConfigFiles, absolute: string, root: string, path: string): Buffer {
  return refusing(path, () => files.read(absolute, root, ASSET_BYTES)) ?? Buffer.alloc(0)
}

const listed = (files: ConfigFiles, absolute: string, root: string, path: string) =>
  refusing(path, () => files.list(absolute, root)) ?? []

function refusing<T>(path: string, read: () => T): T {
  try {
    return read()
  } catch (error) {
    if (error instanceof FileRefused) throw new TreeRefused(path, error.message)
    const code = error instanceof Error && 'code' in error ? String(error.code) : undefined
    if (code === 'EACCES' || code === 'EPERM') throw new TreeRefused(path, 'permission denied')
    throw error
  }
}
