/**
 * What a new city's directory gets, and how it is taken back (sheet 01 §3, decision 21).
 *
 * F1  Nothing that exists is overwritten; only what a scaffold made, and nobody has changed since, is removed again.
 * F2  The journal names what will be made before the first file is written, so a crash leaves nothing behind.
 * F3  The journal alone is no proof that a file is ours: a mark in the directory says that the scaffold came that far.
 */
import { createHash } from 'node:crypto'
import {
  closeSync,
  existsSync,
  mkdirSync,
  openSync,
  readdirSync,
  realpathSync,
  rmdirSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { basename, dirname, isAbsolute, join, normalize, resolve, sep } from 'node:path'
import { contains, FileRefused, readRegular, realPath } from '../../files/read.ts'
import { asCaller } from '../../kernel/file-modes.ts'
import { lookAtEntry } from '../../kernel/look.ts'
import { invalidField } from '../../kernel/problem.ts'
import { cityDatabasePath } from './city-store.ts'

export interface ScaffoldInput {
  readonly name: string
  readonly provider: string | undefined
  readonly startCommand: string | undefined
  readonly bootstrapProfile: string | undefined
}

export interface ScaffoldPlan {
  /** Stands in the mark of this scaffold and of no other. */
  readonly id: string
  readonly directory: string
  /** Directories that do not exist yet, outermost first. */
  readonly directories: readonly string[]
  readonly files: readonly { readonly path: string; readonly text: string }[]
}

export interface ScaffoldNote {
  readonly id: string
  readonly directories: readonly string[]
  readonly files: readonly { readonly path: string; readonly sha256: string }[]
}

const markPath = (directory: string): string => join(directory, '.svc', 'scaffold')

const CONVENTION_DIRECTORIES = [
  'agents',
  'assets',
  'formulas',
  'orders',
  'overlays',
  'template-fragments',
  '.svc/cache',
  '.svc/runtime',
]

/** Longest name of a file, in bytes, on every file system that matters. */
const MAX_NAME_BYTES = 255

/** An absolute path without `..`, with symbolic links of its existing part resolved; 422 otherwise. */
export function resolveDirectory(text: string, home: string, location: string): string {
  if (text.includes('\0')) throw invalidField(location, 'must not contain a NUL character')
  if (text.split(/[/\\]/).includes('..')) throw invalidField(location, 'must not contain ".."', text)
  const path = normalize(isAbsolute(text) ? text : join(home, text))
  if (path.split(sep).some((name) => Buffer.byteLength(name) > MAX_NAME_BYTES)) {
    throw invalidField(location, `must not have a part of more than ${MAX_NAME_BYTES} bytes`)
  }
  const real = realPathOf(path.length > 1 && path.endsWith(sep) ? path.slice(0, -1) : path, location)
  refuseTooLong(real, location)
  return real
}

/** The directory of the city that the one at `path` lies in. */
export function cityAround(path: string): string | undefined {
  for (let at = dirname(path); at !== dirname(at); at = dirname(at)) if (holdsCity(at)) return at
  return undefined
}

/** What agents of a city may write, and a person may delete with it, is kept apart from the supervisor's own state. */
export function refuseHome(path: string, home: string, location: string, user: string): void {
  const own = realPath(home)
  if (contains(own, path)) throw invalidField(location, 'must not be inside the home of the supervisor', path)
  if (contains(path, own)) throw invalidField(location, 'must not be around the home of the supervisor', path)
  // Its agents would run among everything that the user has, and `~/.svc` would be theirs and the supervisor's.
  if (contains(path, realPath(user)))
    throw invalidField(location, 'must not be your home directory, or around it: make a directory of its own', path)
}

/** The longest path that a city needs must be one that the system can take. */
function refuseTooLong(directory: string, location: string): void {
  const found = lookAtEntry(`${cityDatabasePath(directory)}-wal`)
  if (found.is === 'unknown') throw invalidField(location, `cannot be used: ${found.code}`)
}

function realPathOf(path: string, location: string): string {
  const missing: string[] = []
  for (let at = path; ; at = dirname(at)) {
    try {
      return resolve(realpathSync(at), ...missing)
    } catch (error) {
      if (codeOf(error) !== 'ENOENT')
        throw invalidField(location, `cannot be used: ${codeOf(error) ?? 'unreadable'}`, path)
      if (dirname(at) === at) return path
      missing.unshift(basename(at))
    }
  }
}

export function codeOf(error: unknown): string | undefined {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : undefined
}

/** One rule for "already a city" (decision 21). */
export function holdsCity(directory: string): boolean {
  return existsSync(join(directory, 'city.toml')) || existsSync(cityDatabasePath(directory))
}

export function planScaffold(directory: string, input: ScaffoldInput, id: string): ScaffoldPlan {
  const wanted = ['', ...CONVENTION_DIRECTORIES].map((name) => join(directory, name))
  const directories = [...new Set(wanted.flatMap(withParents))]
    .filter((path) => !exists(path))
    .sort((a, b) => a.length - b.length)
  const files = filesOf(directory, input).filter(({ path }) => !exists(path))
  return { id, directory, directories, files }
}

/** What the journal holds of a plan: enough to tell, after a crash, what is ours from what somebody made since. */
export function noteOf({ id, directories, files }: ScaffoldPlan): ScaffoldNote {
  return { id, directories, files: files.map(({ path, text }) => ({ path, sha256: hashOf(text) })) }
}

/**
 * Makes what was planned; `made` grows with every step, so that whoever catches the error knows how far it came. The
 * mark comes first of all files and `city.toml` last: with our mark and no other `city.toml` the rest is ours too.
 */
export function writeScaffold({ id, directory, directories, files }: ScaffoldPlan, made: string[]): void {
  const state = dirname(markPath(directory))
  const step = (path: string, make: () => void): void => {
    make()
    made.push(path)
  }
  asCaller(() => {
    for (const path of directories.filter((path) => contains(path, state))) step(path, () => mkdirSync(path))
    step(markPath(directory), () => writeNew(markPath(directory), id))
    for (const path of directories.filter((path) => !contains(path, state))) step(path, () => mkdirSync(path))
    for (const { path, text } of files) step(path, () => writeNew(path, text))
  })
}

/** A full disk takes the name of a file and refuses its bytes: then the name goes again. */
function writeNew(path: string, text: string): void {
  const file = openSync(path, 'wx')
  try {
    writeFileSync(file, text)
  } catch (error) {
    rmSync(path, { force: true })
    throw error
  } finally {
    closeSync(file)
  }
}

/** The city is registered, by whomever: nothing in its directory is a scaffold's any more. */
export function forgetScaffold(directory: string): void {
  rmSync(markPath(directory), { force: true })
}

/** Takes back what a plan has made, but what somebody has changed since. */
export function removeMade(
  { directory, files }: Omit<ScaffoldNote, 'id'> & { directory: string },
  made: readonly string[],
): void {
  const database = cityDatabasePath(directory)
  const hashes = new Map(files.map(({ path, sha256 }) => [path, sha256]))
  const stores = made.includes(markPath(directory)) ? SIDES.map((side) => database + side) : []
  for (const path of [...made, ...stores].reverse()) {
    const { is } = lookAtEntry(path)
    if (is === 'missing') continue
    if (is === 'directory') removeEmpty(path)
    else if (!hashes.has(path) || isAsMade(hashOnDisk(path), hashes.get(path))) rmSync(path, { force: true })
  }
}

/** Takes back what a crash has left of a scaffold, and nothing that a person has made in its place. */
export function removeLeftover(directory: string, note: ScaffoldNote): void {
  const mark = markPath(directory)
  const state = dirname(mark)
  const marked = readText(mark)
  if (marked !== note.id) {
    // It came no further than the way to its mark, or to the mark's first byte.
    const above = note.directories.filter((path) => contains(path, state))
    removeMade({ ...note, directory }, marked === '' ? [...above, mark] : above)
    return
  }
  const city = note.files.find(({ path }) => basename(path) === 'city.toml')
  const there = city === undefined ? undefined : hashOnDisk(city.path)
  // Somebody has made a city here by hand: all but our mark may be of use to him.
  if (there !== undefined && !isAsMade(there, city?.sha256)) forgetScaffold(directory)
  else removeMade({ ...note, directory }, [...note.directories, ...note.files.map(({ path }) => path), mark])
}

function removeEmpty(path: string): void {
  if (readdirSync(path).length === 0) rmdirSync(path)
}

/** The files of a store; it is made with a journal, and has a log from then on. */
const SIDES = ['', '-journal', '-wal', '-shm']

/** A crash between the name of a file and its bytes leaves it empty: nobody loses anything with it. */
const isAsMade = (there: string | undefined, made: string | undefined): boolean =>
  there === made || there === hashOf('')

const hashOf = (bytes: string | Buffer): string => createHash('sha256').update(bytes).digest('hex')

/** Hash of a regular file; undefined where nothing is there, and of nothing we would write where it is something else. */
function hashOnDisk(path: string): string | undefined {
  try {
    const bytes = readRegular(path)
    return bytes === undefined ? undefined : hashOf(bytes)
  } catch (error) {
    if (error instanceof FileRefused) return ''
    throw error
  }
}

function readText(path: string): string | undefined {
  try {
    return readRegular(path)?.toString('utf8')
  } catch {
    return undefined
  }
}

/** Nothing is made where there may be something. */
const exists = (path: string): boolean => lookAtEntry(path).is !== 'missing'

function withParents(path: string): string[] {
  const parents: string[] = []
  for (let at = path; dirname(at) !== at && !exists(at); at = dirname(at)) parents.push(at)
  return parents
}

function filesOf(directory: string, input: ScaffoldInput): { path: string; text: string }[] {
  return [
    { path: 'pack.toml', text: packToml(input.name) },
    { path: '.svc/site.toml', text: siteToml(input) },
    { path: '.gitignore', text: '.svc/\n' },
    { path: 'city.toml', text: cityToml(input) },
  ].map(({ path, text }) => ({ path: join(directory, path), text }))
}

/** As a TOML string: JSON's, but for the two things that JSON lets through and TOML does not. */
const quoted = (text: string): string => JSON.stringify(text.toWellFormed()).replaceAll('\u007f', '\\u007F')

function cityToml({ provider, startCommand }: ScaffoldInput): string {
  const workspace =
    startCommand === undefined
      ? `[workspace]\nprovider = ${quoted(provider ?? 'shell')}\n\n[providers.${provider ?? 'shell'}]\nbase = ${quoted(`builtin:${provider ?? 'shell'}`)}\n`
      : `[workspace]\nstart_command = ${quoted(startCommand)}\n`
  return `# How this city is deployed. What it is made of stands in pack.toml; what is particular to this machine in .svc/site.toml.\n\n${workspace}`
}

/** A dot separates the bindings of packs, so that no pack has one in its name. */
const packName = (name: string): string => name.replaceAll('.', '-')

const packToml = (name: string): string => `# What this city is made of; the same on every machine.

[pack]
name = ${quoted(packName(name))}
schema = 2

[imports.core]
source = "builtin:core"
`

function siteToml({ name, bootstrapProfile }: ScaffoldInput): string {
  const profile = bootstrapProfile === undefined ? '' : `bootstrap_profile = ${quoted(bootstrapProfile)}\n`
  return `# This machine only; not for version control.\n\nworkspace_name = ${quoted(name)}\n${profile}`
}
