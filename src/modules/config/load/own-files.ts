/** The city's own configuration files: which they are, what stands in them, and reading them so that one load sees one moment. */
import { createHash } from 'node:crypto'
import { dirname, join, relative, resolve, sep } from 'node:path'
import { type ConfigFiles, isInside, listable, readable } from '../../../files/files.ts'
import { compareText } from '../../../files/issues.ts'
import { CONVENTION_DIRS } from '../compose/revision.ts'

export const OWN_FILE_KINDS = ['city', 'pack', 'lock', 'site', 'agent', 'fragment'] as const
export type OwnFileKind = (typeof OWN_FILE_KINDS)[number]

const FIXED: ReadonlyMap<string, OwnFileKind> = new Map([
  ['city.toml', 'city'],
  ['pack.toml', 'pack'],
  ['packs.lock', 'lock'],
  ['.svc/site.toml', 'site'],
])
const AGENT_FILE = /^agents\/[a-zA-Z0-9][a-zA-Z0-9_-]*\/agent\.toml$/
const FRAGMENT = /^(?:[A-Za-z0-9_][A-Za-z0-9._-]*\/)*[A-Za-z0-9_][A-Za-z0-9._-]*\.toml$/
/** Directories whose files belong to another part of the city: no fragment is kept there. */
const NOT_FOR_FRAGMENTS: ReadonlySet<string> = new Set([...CONVENTION_DIRS, 'packs', 'rigs', 'orders', 'overlays'])

/** What kind of configuration file of the city the relative path is; undefined for every other file. */
export function ownFileKind(path: string): OwnFileKind | undefined {
  const fixed = FIXED.get(path)
  if (fixed !== undefined) return fixed
  if (AGENT_FILE.test(path)) return 'agent'
  return FRAGMENT.test(path) && !NOT_FOR_FRAGMENTS.has(path.split('/')[0] ?? '') ? 'fragment' : undefined
}

export type OwnFiles = ReadonlyMap<string, Buffer>

/** The city's own configuration files as `files` has them; `included` are absolute paths of its fragments. */
export function readOwnFiles(dir: string, files: ConfigFiles, included: readonly string[]): OwnFiles {
  const agents = listable(files, join(dir, 'agents'), dir).filter(({ directory }) => directory)
  const paths = new Set([
    ...FIXED.keys(),
    ...agents.map(({ name }) => `agents/${name}/agent.toml`),
    ...included.map((path) => relative(dir, path).split(sep).join('/')),
  ])
  const found = [...paths].sort(compareText).map((path) => [path, readable(files, join(dir, path), dir)] as const)
  return new Map(found.filter((entry): entry is readonly [string, Buffer] => entry[1] !== undefined))
}

/** Paths whose content differs between the two, also where one has no such file. */
export function differing(a: OwnFiles, b: OwnFiles): readonly string[] {
  const paths = new Set([...a.keys(), ...b.keys()])
  return [...paths].filter((path) => !sameBytes(a.get(path), b.get(path))).sort(compareText)
}

const sameBytes = (a: Buffer | undefined, b: Buffer | undefined): boolean =>
  a === undefined || b === undefined ? a === b : a.equals(b)

export const hashOf = (bytes: Buffer | string): string => createHash('sha256').update(bytes).digest('hex')

/** One hash over all of them: what an invalid state, which has no revision of its own, is told apart by. */
export function ownHash(own: OwnFiles): string {
  const hash = createHash('sha256')
  for (const [path, bytes] of own) hash.update(`${path}\0${bytes.length}\0`).update(bytes)
  return hash.digest('hex')
}

/** The absolute path to write to, links followed; undefined where it leads out of the city. */
export function safePath(dir: string, files: ConfigFiles, path: string): string | undefined {
  const absolute = resolve(dir, path)
  if (!absolute.startsWith(dir + sep) || !isInside(files, dir, absolute)) return undefined
  return files.kind(absolute) === undefined
    ? join(files.real(dirname(absolute)), absolute.slice(dirname(absolute).length + 1))
    : files.real(absolute)
}

const KEPT_FILE_BYTES = 256 * 1024
const KEPT_BYTES = 16 * 1024 * 1024

export interface RecordedFiles extends ConfigFiles {
  /** What has been read, by absolute path; large files are not kept. */
  readonly content: ReadonlyMap<string, Buffer>
}

/** `base`, where every file is read once: later reads see the same bytes, whatever happens on disk meanwhile. */
export function recordFiles(base: ConfigFiles): RecordedFiles {
  const content = new Map<string, Buffer>()
  let kept = 0
  return {
    ...base,
    content,
    read(path, root, limit) {
      const known = content.get(path)
      if (known !== undefined) return known
      const bytes = base.read(path, root, limit)
      if (bytes === undefined || bytes.length > KEPT_FILE_BYTES || kept + bytes.length > KEPT_BYTES) return bytes
      kept += bytes.length
      content.set(path, bytes)
      return bytes
    },
  }
}

/** `base` without the directories of agents of the city that have no file any more: deleting the last one deletes the agent. */
export function hideEmptyAgents(dir: string, base: ConfigFiles): ConfigFiles {
  const agents = join(dir, 'agents')
  return {
    ...base,
    list(path, root) {
      const entries = base.list(path, root)
      if (path !== agents) return entries
      // A link is no directory that an edit has emptied.
      return entries?.filter(
        ({ name, directory, link }) =>
          !directory || link === true || (base.list(join(agents, name), root) ?? []).length > 0,
      )
    },
  }
}
