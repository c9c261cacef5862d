/**
 * Staging what packs bring, where agents and formulas find it: `.svc/runtime/packs/{city,rigs/<rig>,agents/<identity>}/`
 * with `formulas`, `skills`, `mcp` and `overlay`, one winner per name.
 *
 * M1  Only files of the manifest are replaced or removed; whatever else stands there is somebody else's and reported.
 * M2  The manifest names a file before it is written, so a crash leaves nothing without an owner.
 * M3  Nothing is written through a symbolic link, and no link is staged.
 * M4  Doing it again changes nothing: a file with the right bytes is not touched.
 */

import { createHash } from 'node:crypto'
import { chmodSync, mkdirSync, readdirSync, renameSync, rmdirSync, rmSync, utimesSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { ASSET_BYTES, FileRefused, readInside } from '../../../files/read.ts'
import { lookAtEntry } from '../../../kernel/look.ts'

/** What of an effective configuration is staged; packs and layers weakest first. */
export interface StageInput {
  readonly revision: string
  /** Directory of the city. */
  readonly dir: string
  readonly packs: readonly { readonly binding: string; readonly rig: string; readonly dir: string }[]
  readonly formula_layers: {
    readonly city: readonly string[]
    readonly rigs: Readonly<Record<string, readonly string[]>>
  }
  readonly rigs: readonly { readonly name: string }[]
  readonly agents: readonly { readonly identity: string; readonly base_name: string; readonly config_dir: string }[]
}

export interface StageOutcome {
  readonly written: number
  readonly removed: number
  readonly unchanged: number
  /** Relative to the city: not ours, and left alone. */
  readonly foreign: readonly string[]
}

/** Relative path below the stage to the file it is a copy of. */
type Plan = ReadonlyMap<string, Original>

interface Original {
  readonly from: string
  /** The city or pack that it is of: no link leads out of that. */
  readonly root: string
}

const STAGE = join('.svc', 'runtime', 'packs')
const MANIFEST = 'manifest.json'
const MAX_DEPTH = 16

/** Time between two pauses: a large city must not hold up everybody else's requests. */
const TURN_MS = 8

interface Wanted extends Original {
  readonly path: string
}

/**
 * Brings the stage to what the configuration says. One run at a time per city: the caller's to see to. `pause` gives way
 * to others for a moment.
 */
export async function materialise(input: StageInput, pause: () => Promise<void>): Promise<StageOutcome> {
  const stage = join(input.dir, STAGE)
  makeDirectories(input.dir, stage)
  const plan = await planOf(input, pause)
  const owned = readManifest(stage)
  const wanted = [...plan].map(([path, original]) => ({ path, ...original }))
  const looked: Directories = new Map()
  const free: Wanted[] = []
  await inBatches(
    wanted,
    pause,
    (file) => isFree(stage, file.path, owned.has(file.path), looked) && free.push(file) > 0,
  )
  const ours = new Set(free.map(({ path }) => path))
  writeManifest(stage, input.revision, new Set([...owned, ...ours]))
  const written = await inBatches(free, pause, (file) => stageFile(stage, file))
  const removed = await inBatches(
    [...owned].filter((path) => !ours.has(path)),
    pause,
    (path) => removeFile(stage, path),
  )
  writeManifest(stage, input.revision, ours)
  const foreign = wanted.filter(({ path }) => !ours.has(path)).map(({ path }) => join(STAGE, path))
  return { written, removed, unchanged: free.length - written, foreign: foreign.sort() }
}

/** How many items `work` said true for. */
async function inBatches<T>(
  items: readonly T[],
  pause: () => Promise<void>,
  work: (item: T) => boolean,
): Promise<number> {
  let count = 0
  let began = performance.now()
  for (const item of items) {
    if (performance.now() - began > TURN_MS) {
      await pause()
      began = performance.now()
    }
    if (work(item)) count++
  }
  return count
}

// --- What goes where -------------------------------------------------------------------------------------------------

async function planOf(input: StageInput, pause: () => Promise<void>): Promise<Plan> {
  const plan = new Map<string, Original>()
  const city = { binding: '', dir: input.dir }
  const cityPacks = input.packs.filter(({ rig }) => rig === '')
  await stageScope(plan, 'city', input.formula_layers.city, [...cityPacks, city], pause)
  for (const { name } of input.rigs) {
    const own = input.packs.filter(({ rig }) => rig === name)
    const layers = [...input.formula_layers.city, ...(input.formula_layers.rigs[name] ?? [])]
    await stageScope(plan, `rigs/${name}`, layers, [...cityPacks, city, ...own], pause)
  }
  for (const { identity, base_name: name, config_dir: home } of input.agents) {
    const scope = `agents/${identity.replaceAll('/', '~')}`
    const own = join(home, 'agents', name)
    addTree(plan, `${scope}/skills`, { from: join(own, 'skills'), root: own })
    addTree(plan, `${scope}/mcp`, { from: join(own, 'mcp'), root: own }, isMcp)
  }
  return plan
}

async function stageScope(
  plan: Map<string, Original>,
  scope: string,
  layers: readonly string[],
  homes: readonly { readonly binding: string; readonly dir: string }[],
  pause: () => Promise<void>,
): Promise<void> {
  for (const layer of layers) {
    addTree(plan, `${scope}/formulas`, { from: layer, root: dirname(layer) }, (path) => path.endsWith('.toml'))
  }
  for (const { binding, dir } of homes) {
    await pause()
    // Of a pack a skill is `<binding>.<skill>`; the city's own have no prefix.
    for (const skill of directories(join(dir, 'skills'))) {
      const to = `${scope}/skills/${binding === '' ? '' : `${binding}.`}${skill}`
      addTree(plan, to, { from: join(dir, 'skills', skill), root: dir })
    }
    addTree(plan, `${scope}/mcp`, { from: join(dir, 'mcp'), root: dir }, isMcp)
    addTree(plan, `${scope}/overlay`, { from: join(dir, 'overlay'), root: dir })
  }
}

const isMcp = (path: string): boolean => path.endsWith('.toml') && !path.includes('/')

/** Later trees win, file by file. */
function addTree(
  plan: Map<string, Original>,
  to: string,
  { from, root }: Original,
  accepts: (path: string) => boolean = () => true,
  path = '',
  depth = 0,
): void {
  if (depth > MAX_DEPTH) return
  for (const entry of entriesOf(join(from, path))) {
    const next = path === '' ? entry.name : `${path}/${entry.name}`
    if (entry.isDirectory()) addTree(plan, to, { from, root }, accepts, next, depth + 1)
    else if (entry.isFile() && accepts(next)) plan.set(`${to}/${next}`, { from: join(from, next), root })
  }
}

const directories = (dir: string): string[] =>
  entriesOf(dir)
    .filter((entry) => entry.isDirectory() && !/^[._]/.test(entry.name))
    .map(({ name }) => name)

function entriesOf(dir: string) {
  try {
    return readdirSync(dir, { withFileTypes: true })
      .filter(({ name }) => name !== '.git')
      .sort((a, b) => (a.name < b.name ? -1 : 1))
  } catch {
    return []
  }
}

// --- Files -----------------------------------------------------------------------------------------------------------

/** Whether the path is free for us: nothing there, or what we put there, and only real directories above it. */
function isFree(stage: string, path: string, owned: boolean, known: Directories): boolean {
  const above = directoryAt(stage, dirname(path), known)
  if (above !== 'directory') return above === 'free'
  const there = lookAtEntry(join(stage, path)).is
  return there === 'missing' || (owned && (there === 'file' || there === 'link'))
}

type DirectoryState = 'free' | 'directory' | 'taken'
type Directories = Map<string, DirectoryState>

/** What stands at a directory's path below the stage, looked at once in a run. */
function directoryAt(stage: string, path: string, known: Directories): DirectoryState {
  if (path === '.') return 'directory'
  const found = known.get(path)
  if (found !== undefined) return found
  const above = directoryAt(stage, dirname(path), known)
  const state = above === 'directory' ? stateOf(join(stage, path)) : above
  known.set(path, state)
  return state
}

function stateOf(path: string): DirectoryState {
  const there = lookAtEntry(path).is
  if (there === 'missing') return 'free'
  return there === 'directory' ? 'directory' : 'taken'
}

/** True where the file had to be written. Size and time tell that it is the same copy: they are the original's. */
function stageFile(stage: string, { path, from, root }: Wanted): boolean {
  const target = join(stage, path)
  const found = lookAtEntry(from)
  if (!('stats' in found)) return false
  const original = found.stats
  const mode = (original.mode & 0o111) === 0 ? 0o644 : 0o755
  const there = lookAtEntry(target)
  if (there.is === 'file') {
    const { size, mode: itsMode, mtimeMs } = there.stats
    const isAlike = size === original.size && (itsMode & 0o777) === mode
    if (isAlike && Math.abs(mtimeMs - original.mtimeMs) < 1) return false
  }
  const bytes = stagedBytes(from, root)
  if (bytes !== undefined) writeFile(stage, path, { bytes, mode, mtime: original.mtime })
  return bytes !== undefined
}

// The load has said what is wrong with a file of a convention; one that cannot be read is not staged.
function stagedBytes(from: string, root: string): Buffer | undefined {
  try {
    return readInside(from, root, ASSET_BYTES)
  } catch (error) {
    if (error instanceof FileRefused) return undefined
    throw error
  }
}

/** Replaced by renaming, so that a reader has the old file or the new one, and a link is never followed. */
function writeFile(
  stage: string,
  path: string,
  { bytes, mode, mtime }: { bytes: Buffer; mode: number; mtime: Date },
): void {
  const target = join(stage, path)
  const next = join(stage, `.next-${createHash('sha1').update(path).digest('hex')}`)
  mkdirSync(dirname(target), { recursive: true })
  rmSync(next, { force: true })
  writeFileSync(next, bytes, { flag: 'wx' })
  chmodSync(next, mode)
  utimesSync(next, mtime, mtime)
  renameSync(next, target)
}

function removeFile(stage: string, path: string): boolean {
  if (!isFree(stage, path, true, new Map())) return false
  const there = lookAtEntry(join(stage, path)).is !== 'missing'
  rmSync(join(stage, path), { force: true })
  for (let dir = dirname(path); dir !== '.' && dir !== ''; dir = dirname(dir)) {
    try {
      rmdirSync(join(stage, dir))
    } catch {
      // Not empty: somebody still needs it.
      break
    }
  }
  return there
}

/** Every level a real directory of its own: a link here would lead all the writing elsewhere. */
function makeDirectories(city: string, stage: string): void {
  let at = city
  for (const part of stage.slice(city.length + 1).split('/')) {
    at = join(at, part)
    const there = lookAtEntry(at).is
    if (there === 'missing') mkdirSync(at)
    else if (there !== 'directory') throw new Error(`${part} is in the way of what packs bring: it is no directory`)
  }
}

function readManifest(stage: string): ReadonlySet<string> {
  try {
    const found: unknown = JSON.parse(String(readInside(join(stage, MANIFEST), stage, ASSET_BYTES)))
    const files =
      typeof found === 'object' && found !== null && 'files' in found && Array.isArray(found.files) ? found.files : []
    // It is a file that anybody may have written: what it names must be below the stage.
    return new Set(
      files
        .map(String)
        .filter(
          (path) => path !== MANIFEST && path.split('/').every((part) => part !== '' && part !== '.' && part !== '..'),
        ),
    )
  } catch {
    return new Set()
  }
}

function writeManifest(stage: string, revision: string, files: ReadonlySet<string>): void {
  const text = `${JSON.stringify({ schema: 1, revision, files: [...files].sort() }, null, 2)}\n`
  const path = join(stage, MANIFEST)
  try {
    if (readInside(path, stage, ASSET_BYTES)?.toString('utf8') === text) return
  } catch {
    // Not there yet.
  }
  const next = `${path}.next`
  rmSync(next, { force: true })
  writeFileSync(next, text, { flag: 'wx' })
  renameSync(next, path)
}
