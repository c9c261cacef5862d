/**
 * `fs/read_text_file` and `fs/write_text_file`: the client's files as the agent sees them, inside the work directory.
 *
 * AF1  Nothing outside the work directory is read or written: paths are resolved to what they really are, links and the
 *      parents of files that do not exist yet included.
 * AF2  Only ordinary files of a bounded size: a FIFO or a device would block the host, a huge file would fill it.
 */

import { constants } from 'node:fs'
import { type FileHandle, lstat, mkdir, open, realpath } from 'node:fs/promises'
import { basename, dirname, join, relative, resolve, sep } from 'node:path'
import { RequestError } from '@agentclientprotocol/sdk'

const MAX_FILE_BYTES = 8 * 1024 * 1024

export interface FileRequests {
  /** `line` is 1-based, `limit` a number of lines. */
  read(path: string, line?: number | null, limit?: number | null): Promise<string>
  write(path: string, content: string): Promise<void>
}

export function fileRequests(workDir: string): FileRequests {
  return {
    async read(path, line, limit) {
      const target = await resolveInside(workDir, path)
      const content = await readBounded(target, path)
      return line == null && limit == null ? content : cut(content, line ?? 1, limit ?? undefined)
    },
    async write(path, content) {
      if (Buffer.byteLength(content) > MAX_FILE_BYTES) throw refused(`more than ${MAX_FILE_BYTES} bytes`, path)
      const target = await resolveInside(workDir, path)
      await overwrite(target, content, path)
    },
  }
}

/** What `path` really is, or would be: of the parts that exist every link is followed, the rest is appended. */
async function resolveInside(workDir: string, path: string): Promise<string> {
  if (path === '' || path.includes('\0')) throw refused('not a path', path)
  const root = await realpath(workDir)
  const missing: string[] = []
  let existing = resolve(root, path)
  // Ends at the latest at the root of the file system, which exists.
  while (!(await exists(existing))) {
    missing.unshift(basename(existing))
    existing = dirname(existing)
  }
  const real = await realpath(existing).catch(() => {
    // It is there and resolves to nothing: a dangling link, whose target could be anywhere, or a loop.
    throw refused('a link that leads nowhere', path)
  })
  const target = join(real, ...missing)
  if (!isInside(root, target)) throw refused('outside the work directory', path)
  return target
}

async function exists(path: string): Promise<boolean> {
  try {
    await lstat(path)
    return true
  } catch (error) {
    if (hasCode(error, 'ENOENT', 'ENOTDIR')) return false
    throw failed(error, path)
  }
}

function isInside(root: string, path: string): boolean {
  const way = relative(root, path)
  return way !== '..' && !way.startsWith(`..${sep}`)
}

// Never waits for the other end of a FIFO, never follows a link that appeared after the check (AF1, AF2).
const CAREFULLY = constants.O_NOFOLLOW | constants.O_NONBLOCK

async function readBounded(target: string, path: string): Promise<string> {
  await using file = await openFile(target, constants.O_RDONLY | CAREFULLY, path)
  const size = await ordinarySize(file, path)
  if (size > MAX_FILE_BYTES) throw refused(`more than ${MAX_FILE_BYTES} bytes`, path)
  // By the size that was checked, not to the end: the file may grow meanwhile.
  const bytes = Buffer.alloc(size)
  let length = 0
  while (length < size) {
    const { bytesRead } = await file.read(bytes, length, size - length, length)
    if (bytesRead === 0) break
    length += bytesRead
  }
  return bytes.toString('utf8', 0, length)
}

async function overwrite(target: string, content: string, path: string): Promise<void> {
  try {
    await mkdir(dirname(target), { recursive: true })
  } catch (error) {
    throw failed(error, path)
  }
  // Not truncated by opening: first it must turn out to be an ordinary file.
  await using file = await openFile(target, constants.O_WRONLY | constants.O_CREAT | CAREFULLY, path)
  await ordinarySize(file, path)
  await file.truncate(0)
  await file.writeFile(content)
}

async function openFile(target: string, flags: number, path: string): Promise<FileHandle> {
  try {
    return await open(target, flags, 0o666)
  } catch (error) {
    throw failed(error, path)
  }
}

async function ordinarySize(file: FileHandle, path: string): Promise<number> {
  const stats = await file.stat()
  if (!stats.isFile()) throw refused('not an ordinary file', path)
  return stats.size
}

function cut(content: string, line: number, limit: number | undefined): string {
  const lines = content.split('\n')
  const from = Math.max(0, line - 1)
  return lines.slice(from, limit === undefined ? undefined : from + limit).join('\n')
}

const refused = (why: string, path: string) => RequestError.invalidParams({ path }, `${why}: ${path}`)

function failed(error: unknown, path: string): RequestError {
  if (hasCode(error, 'ENOENT')) return RequestError.resourceNotFound(path)
  const why = error instanceof Error ? error.message : String(error)
  return RequestError.internalError({ path }, why)
}

const hasCode = (error: unknown, ...codes: readonly string[]) =>
  error instanceof Error && 'code' in error && codes.some((code) => code === error.code)
