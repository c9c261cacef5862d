/**
 * Opening files that a city, a pack or an agent controls: whatever stands there, reading it ends soon.
 *
 * R1  A file is what its path leads to inside its root; where a link leads out of it, the file is refused.
 * R2  Only regular files are opened. Pipes, devices and sockets are refused, and never waited for.
 * R3  At most `limit` bytes are read; a larger file is refused whole, never cut.
 */

import { closeSync, constants, fstatSync, lstatSync, openSync, readSync, realpathSync, type Stats } from 'node:fs'
import { type FileHandle, lstat, open, realpath } from 'node:fs/promises'
import { basename, dirname, join, resolve, sep } from 'node:path'
import { lookAtEntry } from '../kernel/look.ts'

const MIB = 1024 * 1024
/** A file of the configuration, a prompt, or any other text of a city that is read whole. */
export const TEXT_BYTES = MIB
/** A file that is only hashed or copied: assets, skills, overlays. */
export const ASSET_BYTES = 16 * MIB

const utf8 = new TextDecoder('utf-8', { fatal: true })

/** Text of a file, without the mark that Windows editors put before it (U+FEFF); throws where it is no UTF-8. */
export const textOfBytes = (bytes: Uint8Array): string => utf8.decode(bytes)

export const withoutMark = (text: string): string => text.replace(/^\uFEFF/, '')

/** A file or directory that is there and is not read; the message says why, to go behind "cannot be read:". */
export class FileRefused extends Error {
  override readonly name = 'FileRefused'
}

/** The bytes of a file; undefined where it is missing. Throws `FileRefused`, or the system's error. */
export function readInside(path: string, root: string, limit = TEXT_BYTES): Buffer | undefined {
  const real = insideOrMissing(path, root)
  return real === undefined ? undefined : readReal(real, limit)
}

/** The bytes of the regular file that a path leads to, wherever that is; undefined where it is missing. */
export function readRegular(path: string, limit = TEXT_BYTES): Buffer | undefined {
  return readInside(path, sep, limit)
}

/** As `readRegular`, without holding up anybody. */
export async function readRegularLater(path: string, limit = TEXT_BYTES): Promise<Buffer | undefined> {
  const file = await openRegular(path)
  if (file === undefined) return undefined
  try {
    const { size } = await file.stat()
    if (size > limit) throw tooLarge(limit)
    const bytes = Buffer.alloc(size)
    const { bytesRead } = await file.read(bytes, 0, size, 0)
    return bytes.subarray(0, bytesRead)
  } finally {
    await file.close()
  }
}

/** A regular file, open for reading, through links; undefined where it is missing. */
export async function openRegular(path: string): Promise<FileHandle | undefined> {
  const real = await realpath(path).catch(missingOnly)
  if (real === undefined) return undefined
  requireRegular(await lstat(real))
  const file = await open(real, OPEN_FLAGS)
  try {
    // Somebody may have put another thing there since.
    requireRegular(await file.stat())
    return file
  } catch (error) {
    await file.close()
    throw error
  }
}

/** A regular file, open for reading; undefined where it is missing. Refuses a link in the place of the file. */
export async function openOwnFile(path: string): Promise<FileHandle | undefined> {
  const found = await lstat(path).catch(missingOnly)
  if (found === undefined) return undefined
  requireRegular(found)
  const file = await open(path, OPEN_FLAGS)
  try {
    requireRegular(await file.stat())
    return file
  } catch (error) {
    await file.close()
    throw error
  }
}

/** Refuses what is there and no regular file of its own: a link, a pipe, a directory. */
export function requireOwnFile(path: string): void {
  const found = lookAtEntry(path)
  if (found.is === 'unknown') throw new FileRefused(`it cannot be looked at: ${found.code}`)
  if ('stats' in found) requireRegular(found.stats)
}

/** The path without symbolic links; of a missing path, that of its deepest existing directory with the rest. */
export function realPath(path: string): string {
  const absolute = resolve(path)
  try {
    return realpathSync.native(absolute)
  } catch (error) {
    const parent = dirname(absolute)
    if (parent === absolute || !isMissing(error)) return absolute
    return join(realPath(parent), basename(absolute))
  }
}

/** Whether `path` is `root` or below it, by their names alone. */
export function contains(root: string, path: string): boolean {
  return path === root || path.startsWith(root.endsWith(sep) ? root : root + sep)
}

/** The real path; undefined where nothing is there. Throws where it leads out of `root`. */
export function insideOrMissing(path: string, root: string): string | undefined {
  let real: string
  try {
    real = realpathSync.native(path)
  } catch (error) {
    if (isMissing(error)) return undefined
    throw error
  }
  if (!contains(realPath(root), real)) throw outside()
  return real
}

/** Not there, and what can never be: a name that is too long or holds a NUL, links in a circle. */
const MISSING: ReadonlySet<unknown> = new Set(['ENOENT', 'ENOTDIR', 'ENAMETOOLONG', 'ELOOP', 'ERR_INVALID_ARG_VALUE'])

export function isMissing(error: unknown): boolean {
  return error instanceof Error && 'code' in error && MISSING.has(error.code)
}

function missingOnly(error: unknown): undefined {
  if (!isMissing(error)) throw error
}

// Without waiting for the other end of a pipe, and not through a link that was put there after the look.
const OPEN_FLAGS = constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOFOLLOW | constants.O_NOCTTY

function readReal(path: string, limit: number): Buffer {
  requireRegular(lstatSync(path))
  const fd = openSync(path, OPEN_FLAGS)
  try {
    const facts = fstatSync(fd)
    requireRegular(facts)
    if (facts.size > limit) throw tooLarge(limit)
    const bytes = Buffer.alloc(facts.size)
    let length = 0
    while (length < bytes.length) {
      const read = readSync(fd, bytes, length, bytes.length - length, length)
      if (read === 0) break
      length += read
    }
    return bytes.subarray(0, length)
  } finally {
    closeSync(fd)
  }
}

function requireRegular(facts: Stats): void {
  if (facts.isDirectory()) throw new FileRefused('it is a directory')
  if (!facts.isFile()) throw new FileRefused('it is no regular file')
}

export const tooLarge = (limit: number): FileRefused => new FileRefused(`it is larger than ${limit / MIB} MiB`)
const outside = (): FileRefused => new FileRefused('it leads out of its directory')
