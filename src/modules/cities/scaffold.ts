/**
 * What a new city's directory gets, and how it is taken back (sheet 01 §3, decision 21).
 *
 * F1  Nothing that exists is overwritten; only what a scaffold made is removed again.
 * F2  The journal names what will be made before the first file is written, so a crash leaves nothing behind.
 */
import {
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  realpathSync,
  rmdirSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { basename, dirname, isAbsolute, join, normalize, resolve, sep } from 'node:path'
import { asCaller } from '../../kernel/file-modes.ts'
import { invalidField } from '../../kernel/problem.ts'
import { cityDatabasePath } from './city-store.ts'

export interface ScaffoldInput {
  readonly name: string
  readonly provider: string | undefined
  readonly startCommand: string | undefined
  readonly bootstrapProfile: string | undefined
}

export interface ScaffoldPlan {
  readonly directory: string
  /** Directories that do not exist yet, outermost first. */
  readonly directories: readonly string[]
  readonly files: readonly { readonly path: string; readonly text: string }[]
}

const CONVENTION_DIRECTORIES = [
  'agents',
  'assets',
  'commands',
  'doctor',
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

/** The longest path that a city needs must be one that the system can take. */
function refuseTooLong(directory: string, location: string): void {
  try {
    lstatSync(`${cityDatabasePath(directory)}-wal`, { throwIfNoEntry: false })
  } catch (error) {
    throw invalidField(location, `cannot be used: ${codeOf(error) ?? 'unreadable'}`)
  }
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

export function isDirectory(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() === true
}

export function planScaffold(directory: string, input: ScaffoldInput): ScaffoldPlan {
  const wanted = ['', ...CONVENTION_DIRECTORIES].map((name) => join(directory, name))
  const directories = [...new Set(wanted.flatMap(withParents))]
    .filter((path) => !exists(path))
    .sort((a, b) => a.length - b.length)
  const files = filesOf(directory, input).filter(({ path }) => !exists(path))
  return { directory, directories, files }
}

/** Everything that a plan makes, innermost last; what the journal holds. */
export function pathsOf({ directory, directories, files }: ScaffoldPlan): readonly string[] {
  const database = cityDatabasePath(directory)
  return [...directories, ...files.map(({ path }) => path), database, `${database}-wal`, `${database}-shm`]
}

export function writeScaffold({ directories, files }: ScaffoldPlan): void {
  asCaller(() => {
    for (const path of directories) mkdirSync(path)
    for (const { path, text } of files) writeFileSync(path, text, { flag: 'wx' })
  })
}

/** Takes back what a scaffold made: its files, then its directories as far as they are empty. */
export function removeScaffold(made: readonly string[]): void {
  for (const path of [...made].reverse()) {
    const stat = lstatSync(path, { throwIfNoEntry: false })
    if (stat === undefined) continue
    if (!stat.isDirectory()) rmSync(path, { force: true })
    else if (readdirSync(path).length === 0) rmdirSync(path)
  }
}

const exists = (path: string): boolean => lstatSync(path, { throwIfNoEntry: false }) !== undefined

function withParents(path: string): string[] {
  const parents: string[] = []
  for (let at = path; dirname(at) !== at && !exists(at); at = dirname(at)) parents.push(at)
  return parents
}

function filesOf(directory: string, input: ScaffoldInput): { path: string; text: string }[] {
  return [
    { path: 'city.toml', text: cityToml(input) },
    { path: 'pack.toml', text: packToml(input.name) },
    { path: '.svc/site.toml', text: siteToml(input) },
    { path: '.gitignore', text: '.svc/\n' },
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

const packToml = (name: string): string => `# What this city is made of; the same on every machine.

[pack]
name = ${quoted(name)}
schema = 2

[imports.core]
source = "builtin:core"
`

function siteToml({ name, bootstrapProfile }: ScaffoldInput): string {
  const profile = bootstrapProfile === undefined ? '' : `bootstrap_profile = ${quoted(bootstrapProfile)}\n`
  return `# This machine only; not for version control.\n\nworkspace_name = ${quoted(name)}\n${profile}`
}
