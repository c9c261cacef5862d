/**
 * Files that are put into the work directory before a start: the agent's own, then those of its packs (sheet 07 §5.2).
 *
 * V1  What is there stays as it is, whoever put it there: the first source that has a file wins, and no start overwrites.
 *     Settings of harnesses are merged in the same order, so nothing in them is changed or taken away either.
 * V2  Nothing is read from outside an overlay and nothing is written outside the work directory, whatever links say.
 * V3  A file appears whole: a crash leaves at most one that is named after its session and is written anew.
 */
import { mkdirSync } from 'node:fs'
import { chmod, lstat, readdir, realpath, rename, writeFile } from 'node:fs/promises'
import { dirname, isAbsolute, join, relative } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import { ASSET_BYTES, FileRefused, readRegularLater } from '../../../files/read.ts'
import { asCaller, callersMode } from '../../../kernel/file-modes.ts'
import { isSettingsFile, mergeSettings, parseSettings, type Settings } from './settings-files.ts'

/** Where an overlay lies; its `per-provider/<provider>/` is for the harnesses of that name only, and comes first. */
export interface Overlay {
  readonly directory: string
  readonly providers: readonly string[]
  /** Declared: it is a mistake where it is not there. */
  readonly needed: boolean
}

const PER_PROVIDER = 'per-provider'
const MAX_FILES = 10_000
const MAX_DEPTH = 16

/** Relative path to the files that are meant, the first one on top; one but for settings. */
type Plan = Map<string, string[]>

/**
 * Lays the overlays over a directory, the first one on top, and tells which files of it were written; rejects with a
 * sentence for people. `owner` names its traces.
 */
export async function layOverlays(
  overlays: readonly Overlay[],
  workDir: string,
  owner: string,
  signal: AbortSignal,
): Promise<readonly string[]> {
  const written: string[] = []
  const plan: Plan = new Map()
  for (const { directory, providers, needed } of overlays) {
    for (const provider of providers) await collect(plan, join(directory, PER_PROVIDER, provider), false)
    await collect(plan, directory, needed)
  }
  const root = await realpath(workDir)
  for (const [path, from] of plan) {
    signal.throwIfAborted()
    const laid = isSettingsFile(path)
      ? await merge(root, path, from, owner)
      : await place(root, path, from[0] ?? '', owner)
    if (laid) written.push(path)
  }
  return written
}

/** What is known stays (V1). */
async function collect(plan: Plan, root: string, needed: boolean): Promise<void> {
  const real = await realpath(root).catch(() => undefined)
  if (real === undefined) {
    if (needed) throw new Error(`there is no overlay ${root}`)
    return
  }
  const walk = async (below: string, depth: number): Promise<void> => {
    if (depth > MAX_DEPTH) throw new Error(`the overlay ${root} is nested too deeply at ${below}`)
    for (const entry of await readdir(join(real, below), { withFileTypes: true })) {
      const path = join(below, entry.name)
      if (entry.name === '.git' || path === PER_PROVIDER) continue
      if (entry.isDirectory()) await walk(path, depth + 1)
      else if (entry.isFile()) add(plan, path, join(real, path))
      else if (entry.isSymbolicLink()) add(plan, path, await linked(real, path))
    }
  }
  await walk('', 0)
}

function add(plan: Plan, path: string, from: string): void {
  const known = plan.get(path)
  if (known !== undefined) {
    if (isSettingsFile(path)) known.push(from)
    return
  }
  if (plan.size >= MAX_FILES) throw new Error(`the overlays have more than ${MAX_FILES} files`)
  plan.set(path, [from])
}

/** The file that a link of an overlay means; it is copied as a file (V2). */
async function linked(root: string, path: string): Promise<string> {
  const target = await realpath(join(root, path)).catch(() => undefined)
  if (target === undefined || !isInside(root, target) || !(await lstat(target)).isFile())
    throw new Error(`the link ${path} of the overlay ${root} leads to no file of it`)
  return target
}

async function place(root: string, path: string, from: string, owner: string): Promise<boolean> {
  const target = join(root, path)
  if (await exists(target)) return false
  const directory = dirname(target)
  await makeDirectory(root, dirname(path))
  const next = join(directory, `.svc-overlay-${owner}`)
  await writeFile(next, await assetBytes(from))
  await chmod(next, callersMode((await lstat(from)).mode & 0o111 ? 0o777 : 0o666))
  await rename(next, target)
  return true
}

async function assetBytes(from: string): Promise<Buffer> {
  try {
    return (await readRegularLater(from, ASSET_BYTES)) ?? Buffer.alloc(0)
  } catch (error) {
    if (error instanceof FileRefused) throw new Error(`the file ${from} of an overlay cannot be read: ${error.message}`)
    throw error
  }
}

/** What is there has the first word; a link, and what we cannot read, is somebody's own and stays. */
async function merge(root: string, path: string, from: readonly string[], owner: string): Promise<boolean> {
  const target = join(root, path)
  const there = (await exists(target)) ? await lstat(target) : undefined
  const own = there === undefined ? {} : there.isFile() ? await readSettings(target) : undefined
  if (own === undefined) return false
  let merged: Settings = own
  for (const file of from) {
    const settings = await readSettings(file)
    if (settings === undefined) throw new Error(`the settings ${file} of an overlay are no JSON object`)
    merged = mergeSettings(merged, settings)
  }
  if (there !== undefined && isDeepStrictEqual(merged, own)) return false
  await makeDirectory(root, dirname(path))
  const next = join(dirname(target), `.svc-overlay-${owner}`)
  await writeFile(next, `${JSON.stringify(merged, null, 2)}\n`)
  await chmod(next, there === undefined ? callersMode(0o666) : there.mode & 0o777)
  await rename(next, target)
  return true
}

async function readSettings(file: string): Promise<Settings | undefined> {
  const bytes = await readRegularLater(file).catch((error: unknown) => {
    if (!(error instanceof FileRefused)) throw error
  })
  return bytes === undefined ? undefined : parseSettings(bytes.toString('utf8'))
}

/** Every directory on the way is one of the work directory's, by whatever link it was reached. */
async function makeDirectory(root: string, path: string): Promise<void> {
  let at = root
  for (const name of path === '.' ? [] : path.split('/')) {
    at = join(at, name)
    if (!(await exists(at))) asCaller(() => mkdirSync(at))
    const real = await realpath(at).catch(() => undefined)
    if (real === undefined || !isInside(root, real) || !(await lstat(real)).isDirectory())
      throw new Error(`an overlay has files for ${at}, which is no directory inside ${root}`)
  }
}

const exists = (path: string): Promise<boolean> =>
  lstat(path).then(
    () => true,
    (error: NodeJS.ErrnoException) => {
      // A file stands where a directory is wanted: that is told when the directory is made.
      if (error.code === 'ENOENT' || error.code === 'ENOTDIR') return false
      throw error
    },
  )

export function isInside(root: string, path: string): boolean {
  const below = relative(root, path)
  return below === '' || (below !== '..' && !below.startsWith('../') && !isAbsolute(below))
}
