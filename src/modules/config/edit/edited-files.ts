/** The city's own files during an edit: their text as it is on disk, with the changes that are to be made. */

import { dirname, join, relative, sep } from 'node:path'
import type { TextFiles } from '../../../files/configuration.ts'
import { diskFiles } from '../../../files/files.ts'
import { textOfBytes } from '../../../files/read.ts'
import { EditError } from '../../../files/toml-edit.ts'
import { invalidField, problem } from '../../../kernel/problem.ts'
import { reason } from '../compose/context.ts'
import { hashOf, type OwnFiles, ownFileKind, safePath } from '../load/own-files.ts'
import type { IntendedFile } from './transaction.ts'

export class EditedFiles implements TextFiles {
  readonly #dir: string
  readonly #before: OwnFiles
  readonly #documents: ReadonlySet<string>
  readonly #after = new Map<string, string | null>()
  readonly #disk = diskFiles()

  constructor(dir: string, before: OwnFiles, documents: readonly string[] = []) {
    this.#dir = dir
    this.#before = before
    this.#documents = new Set(documents)
  }

  get(path: string): string | undefined {
    const after = this.#after.get(path)
    if (after !== undefined) return after ?? undefined
    const bytes = this.#before.get(path)
    return bytes === undefined ? this.#readUnlisted(path) : decode(path, bytes)
  }

  set(path: string, text: string): void {
    this.#checked(path)
    this.#refuseObstacle(path)
    this.#after.set(path, text)
  }

  delete(path: string): void {
    this.#checked(path)
    this.#after.set(path, null)
  }

  list(): readonly string[] {
    const paths = new Set(this.#before.keys())
    for (const [path, text] of this.#after) {
      if (text === null) paths.delete(path)
      else paths.add(path)
    }
    return [...paths].sort()
  }

  /** What really changes, with links followed. */
  edits(): readonly IntendedFile[] {
    return [...this.#after].flatMap(([path, text]) => {
      const target = this.#checked(path)
      // What the edit has seen, not what is there now: a file that was saved in between is not written over.
      const bytes = this.#before.get(path) ?? this.#readDisk(path, target)
      const before = bytes === undefined ? null : hashOf(bytes)
      const after = text === null ? null : hashOf(text)
      return before === after
        ? []
        : [{ path: relative(this.#disk.real(this.#dir), target).split(sep).join('/'), before, text }]
    })
  }

  /** The changes by absolute path: under the name they were made by, and under that of a link's target. */
  overlay(): ReadonlyMap<string, string | null> {
    return new Map(
      [...this.#after].flatMap(([path, text]) => [
        [join(this.#dir, path), text] as const,
        [join(this.#dir, relative(this.#disk.real(this.#dir), this.#checked(path))), text] as const,
      ]),
    )
  }

  /** A fragment that no file includes yet. */
  #readUnlisted(path: string): string | undefined {
    const target = this.#checked(path)
    const bytes = this.#readDisk(path, target)
    return bytes === undefined ? undefined : decode(path, bytes)
  }

  /** A file where the path needs a directory. */
  #refuseObstacle(path: string): void {
    for (let parent = dirname(path); parent !== '.'; parent = dirname(parent)) {
      const kind = this.#disk.kind(join(this.#dir, parent))
      if (kind !== undefined && kind !== 'directory')
        throw problem('conflict-config', `${path} cannot be written: ${parent} is no directory`)
    }
  }

  #readDisk(path: string, target: string): Buffer | undefined {
    try {
      return this.#disk.read(target, this.#dir)
    } catch (error) {
      throw problem('conflict-config', `${path} cannot be read: ${reason(error)}`, { cause: error })
    }
  }

  #checked(path: string): string {
    const known = ownFileKind(path) !== undefined || this.#before.has(path) || this.#documents.has(path)
    const target = known ? safePath(this.#dir, this.#disk, path) : undefined
    if (target === undefined)
      throw invalidField('path.path', 'is not a configuration file of the city', path.slice(0, 200))
    return target
  }
}

function decode(path: string, bytes: Buffer): string {
  try {
    return textOfBytes(bytes)
  } catch {
    throw problem('conflict-config', `${path} is not UTF-8 text`)
  }
}

/** What an edit of text cannot do is the caller's to know, in the words of an answer. */
export function changing<T>(change: () => T): T {
  try {
    return change()
  } catch (error) {
    if (error instanceof EditError)
      throw problem('conflict-config', `the file is laid out in a way that cannot be edited here: ${error.message}`)
    throw error
  }
}
