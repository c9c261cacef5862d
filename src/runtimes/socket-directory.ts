/**
 * Where the sockets of a city's agents are: `$XDG_RUNTIME_DIR/svc/<hash of the city's path>/`, else
 * `/tmp/svc-<uid>/…`. Not in the city: a Unix socket's path is limited to about 108 bytes (decision 54).
 *
 * S1  Whoever can write there can talk to agents: every level is ours alone, and checked every time.
 * S2  Somebody else can make `/tmp/svc-<uid>` first. Then the sockets are in the supervisor's home, reached by a short
 *     link where its path is too long: a squatted name stops no session.
 */
import { createHash } from 'node:crypto'
import {
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmdirSync,
  type Stats,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { cut } from '../contract/base/text.ts'
import { keepPrivate } from '../kernel/file-modes.ts'
import { randomHex } from '../kernel/ids.ts'
import { lookAtEntry } from '../kernel/look.ts'
import type { Environment } from '../kernel/processes.ts'

/** Longer ones than this fail on some systems. */
const MAX_SOCKET_PATH_BYTES = 100
/** Room for the longest name of a socket, slash included. */
const NAME_BYTES = 40
const MOST_TRIES = 100

export interface SocketPlaces {
  /** For `XDG_RUNTIME_DIR`. */
  readonly env: Environment
  /** The supervisor's, which is ours alone. */
  readonly home: string
}

export interface SocketDirectory {
  readonly path: string
  /** Why it is in the home, for people; undefined where it is in its usual place. */
  readonly instead?: string
}

/** Makes and checks the directory. Throws where neither the usual place nor the home will do. */
export function openSocketDirectory(cityPath: string, places: SocketPlaces): SocketDirectory {
  const hash = socketNameOf(cityPath)
  const usual = usualParent(places.env, hash)
  try {
    return { path: opened(usual, hash) }
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error)
    const path = openedAtHome(places.home, hash)
    return { path, instead: `${why}; the sockets of agents are in ${path} instead` }
  }
}

/**
 * The city ends, or this supervisor: where no host has a socket there the directory goes, and its parent with the last one. What
 * servers that were killed have left goes with it once it is old enough that nobody is about to use it.
 */
export function leaveSocketDirectory(cityPath: string, { env, home }: SocketPlaces, now: number): void {
  const hash = socketNameOf(cityPath)
  for (const parent of [usualParent(env, hash), join(home, 'run')]) {
    removeEmpty(join(parent, hash))
    for (const name of namesIn(parent)) {
      const path = join(parent, name)
      const found = lookAtEntry(path)
      const isForgotten = found.is === 'directory' && now - found.stats.mtimeMs > FORGOTTEN_MS
      if (isForgotten && SOCKET_NAME.test(name)) removeEmpty(path)
    }
    removeEmpty(parent)
  }
}

/** By then whoever has made it has a socket in it. */
const FORGOTTEN_MS = 3_600_000
const SOCKET_NAME = /^[0-9a-f]{16}$/

/** The system refuses it where something is in there. */
function removeEmpty(path: string): void {
  try {
    rmdirSync(path)
  } catch {
    // In use, or gone already.
  }
}

function namesIn(path: string): readonly string[] {
  try {
    return readdirSync(path)
  } catch {
    return []
  }
}

/** The directory of a city's sockets is called so, wherever it is. */
export const socketNameOf = (cityPath: string): string => cut(createHash('sha256').update(cityPath).digest('hex'), 16)

/** Why the usual place will not do, without making anything; undefined where it will. */
export function squatterOf({ env }: Pick<SocketPlaces, 'env'>): string | undefined {
  const parent = usualParent(env, 'x'.repeat(16))
  const found = lookAtEntry(parent)
  if (found.is === 'missing') return undefined
  if (found.is === 'unknown') return `${parent} cannot be looked at: ${found.code}`
  return found.is === 'directory' && found.stats.uid === ownUid() ? undefined : notOurs(parent, found.stats)
}

function usualParent(env: Environment, hash: string): string {
  const runtimeDir = env['XDG_RUNTIME_DIR'] ?? ''
  const own = join(runtimeDir, 'svc')
  return runtimeDir !== '' && fits(join(own, hash)) ? own : `/tmp/svc-${ownUid()}`
}

const fits = (directory: string) => Buffer.byteLength(directory) + NAME_BYTES <= MAX_SOCKET_PATH_BYTES
const ownUid = (): number => process.getuid?.() ?? 0

function opened(parent: string, hash: string): string {
  const directory = join(parent, hash)
  for (let tries = 1; ; tries++)
    try {
      for (const path of [parent, directory]) {
        mkdirSync(path, { recursive: true, mode: 0o700 })
        assertPrivate(path)
      }
      return directory
    } catch (error) {
      // The last host there takes the directory along as it leaves, also while we look at it.
      if (tries === MOST_TRIES || !isMissing(error)) throw error
    }
}

/** S1. */
function assertPrivate(path: string): void {
  if (lstatSync(path).uid === ownUid()) keepPrivate(path)
  const found = lstatSync(path)
  if (found.isDirectory() && found.uid === ownUid() && (found.mode & 0o077) === 0) return
  throw new Error(notOurs(path, found))
}

const notOurs = (path: string, { uid, mode }: Stats): string =>
  `${path} must be a directory that is ours alone; it belongs to uid ${uid}, mode ${(mode & 0o7777).toString(8)}`

/** S2. */
function openedAtHome(home: string, hash: string): string {
  const parent = join(home, 'run')
  const directory = opened(parent, hash)
  return fits(directory) ? directory : join(shortLinkTo(parent), hash)
}

/** The link of an earlier start, as long as it still is ours and leads here; its name cannot be guessed beforehand. */
function shortLinkTo(parent: string): string {
  const note = join(parent, 'link')
  const known = readIfThere(note)
  if (known !== undefined && leadsTo(known, parent)) return known
  const link = `/tmp/svc-${ownUid()}-${randomHex(8)}`
  symlinkSync(parent, link)
  writeFileSync(note, link, { mode: 0o600 })
  return link
}

function leadsTo(link: string, parent: string): boolean {
  const found = lookAtEntry(link)
  return found.is === 'link' && found.stats.uid === ownUid() && readlinkSync(link) === parent
}

const isMissing = (error: unknown): boolean => error instanceof Error && 'code' in error && error.code === 'ENOENT'

function readIfThere(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return undefined
  }
}
