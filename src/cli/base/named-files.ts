/** Files that somebody names on the command line. */
import { isUtf8 } from 'node:buffer'
import { readFile } from 'node:fs/promises'
import { resolve } from 'node:path'
import { type Failure, usageError } from './failure.ts'
import type { Io } from './io.ts'

const WORDS: Readonly<Record<string, string>> = {
  ENOENT: 'there is no such file',
  ENOTDIR: 'there is no such file',
  EISDIR: 'it is a directory',
  EACCES: 'it may not be read',
}

/** `path` as it was named. */
export function unreadable(path: string, error: unknown): Failure {
  const code = error instanceof Error && 'code' in error ? String(error.code) : ''
  return usageError(`cannot read ${path}: ${WORDS[code] ?? (error instanceof Error ? error.message : String(error))}`)
}

export async function readNamedFile({ cwd }: Pick<Io, 'cwd'>, path: string): Promise<Buffer> {
  try {
    return await readFile(resolve(cwd, path))
  } catch (error) {
    throw unreadable(path, error)
  }
}

/** What stands for bytes that are no text would be checked, and written, in their place: such a file is refused. */
export async function readNamedText(io: Pick<Io, 'cwd'>, path: string): Promise<string> {
  const bytes = await readNamedFile(io, path)
  if (!isUtf8(bytes)) throw usageError(`cannot read ${path}: it is not UTF-8 text`)
  return bytes.toString('utf8')
}
