/** Data given on the command line: itself, `@FILE`, or `-` for stdin. */
import { readFile } from 'node:fs/promises'
import { resolve } from 'node:path'
import { usageError } from './failure.ts'
import type { Io } from './io.ts'

export async function readData(io: Io, source: string, flag: string): Promise<string> {
  if (source === '-' || source === '@-') return io.stdin.readAll()
  if (!source.startsWith('@')) return source
  try {
    return await readFile(resolve(io.cwd, source.slice(1)), 'utf8')
  } catch (error) {
    throw usageError(`invalid ${flag} "${source}": ${error instanceof Error ? error.message : 'unreadable'}`)
  }
}

/** Words of a sentence, or `-` for stdin. */
export const readWords = async (io: Io, words: readonly string[]): Promise<string> =>
  words.length === 1 && words[0] === '-' ? io.stdin.readAll() : words.join(' ')
