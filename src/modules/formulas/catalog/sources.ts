/**
 * The files of formulas, orders and fragments of a city, layer by layer, as they were at one moment.
 *
 * L1  The highest layer that has a name wins with its whole file: packs of the city, the city, packs of a rig, the rig.
 * L2  Of a pack that nobody has trusted nothing wins. Its files are known, so that people are told what they wait for.
 * L3  A file that cannot be read is one all the same: it says why.
 */
import { createHash } from 'node:crypto'
import { dirname } from 'node:path'
import { type DocumentHome, type FoundFile, FRAGMENT_FILE, filesOf, TOML_FILE } from '../../../files/documents.ts'
import type { ConfigFiles } from '../../../files/files.ts'
import { type ConfigIssue, compareText, type Layer } from '../../../files/issues.ts'
import { FileRefused, textOfBytes } from '../../../files/read.ts'

/** Where the files are, weakest first: what the configuration in force says of it. */
export interface DocumentLayout {
  readonly homes: readonly DocumentHome[]
  readonly rigs: readonly string[]
  /** A path as issues show it. */
  readonly display: (path: string) => string
}

export interface SourceFile {
  readonly name: string
  readonly home: DocumentHome
  readonly layer: Layer
  readonly path: string
  /** As issues show it. */
  readonly file: string
  readonly dir: string
  /** SHA-256 (hex) of its bytes. */
  readonly revision: string
  readonly text: string
  /** Why it cannot be read; its text is empty then. */
  readonly unreadable?: ConfigIssue
}

/** All files of one name in one scope, weakest first. */
export interface Stack {
  readonly files: readonly SourceFile[]
  readonly held: readonly SourceFile[]
}

export type Stacks = ReadonlyMap<string, Stack>

export const winnerOf = (stack: Stack | undefined): SourceFile | undefined => stack?.files.at(-1)

/** What one scope, the city or a rig, has of its own. */
export interface ScopeFiles {
  readonly formulas: Stacks
  readonly orders: Stacks
  readonly fragments: ReadonlyMap<string, SourceFile>
}

export interface Sources {
  readonly city: ScopeFiles
  readonly rigs: ReadonlyMap<string, ScopeFiles>
}

export function readSources(layout: DocumentLayout, files: ConfigFiles): Sources {
  const reader = new Reader(layout, files)
  return {
    city: reader.scope(''),
    rigs: new Map(layout.rigs.map((rig) => [rig, reader.scope(rig)])),
  }
}

class Reader {
  readonly #layout: DocumentLayout
  readonly #files: ConfigFiles
  /** Several rigs may import one pack. */
  readonly #read = new Map<string, SourceFile>()

  constructor(layout: DocumentLayout, files: ConfigFiles) {
    this.#layout = layout
    this.#files = files
  }

  scope(rig: string): ScopeFiles {
    const homes = this.#layout.homes.filter((home) => home.rig === rig)
    const fragments = homes
      .filter(({ trusted }) => trusted)
      .flatMap((home) => this.#all(home, home.fragments, FRAGMENT_FILE))
    return {
      formulas: this.#stacks(homes, 'formulas'),
      orders: this.#stacks(homes, 'orders'),
      fragments: new Map(fragments.map((file) => [file.name, file])),
    }
  }

  #stacks(homes: readonly DocumentHome[], kind: 'formulas' | 'orders'): Stacks {
    // A pack that is imported twice is in the way of nobody.
    const once = homes.filter((home, index) => homes.findIndex((other) => other[kind] === home[kind]) === index)
    const found = once.flatMap((home) => this.#all(home, home[kind], TOML_FILE))
    const named = [...Map.groupBy(found, ({ name }) => name)].sort(([a], [b]) => compareText(a, b))
    return new Map(
      named.map(([name, all]) => [
        name,
        { files: all.filter(({ home }) => home.trusted), held: all.filter(({ home }) => !home.trusted) },
      ]),
    )
  }

  #all(home: DocumentHome, dir: string | undefined, ending: string): readonly SourceFile[] {
    if (dir === undefined) return []
    return filesOf(this.#files, dir, home.root, ending).map((found) => {
      const id = `${home.rig}\0${found.path}`
      const file = this.#read.get(id) ?? this.#source(home, found)
      this.#read.set(id, file)
      return file
    })
  }

  #source(home: DocumentHome, { name, path }: FoundFile): SourceFile {
    const file = this.#layout.display(path)
    const layer: Layer = home.layer === 'pack' ? 'pack' : 'city'
    const known = { name, home, layer, path, file, dir: dirname(path) }
    try {
      const bytes = this.#files.read(path, home.root) ?? Buffer.alloc(0)
      const revision = createHash('sha256').update(bytes).digest('hex')
      try {
        return { ...known, revision, text: textOfBytes(bytes) }
      } catch {
        return { ...known, revision, text: '', unreadable: unreadable(file, 'it is not UTF-8 text') }
      }
    } catch (error) {
      return { ...known, revision: NO_BYTES, text: '', unreadable: unreadable(file, reasonOf(error)) }
    }
  }
}

const NO_BYTES = createHash('sha256').digest('hex')

const unreadable = (file: string, why: string): ConfigIssue => ({
  file,
  line: 1,
  column: 1,
  key: '',
  message: `cannot be read: ${why}`,
})

function reasonOf(error: unknown): string {
  if (error instanceof FileRefused) return error.message
  if (error instanceof Error && 'code' in error)
    return error.code === 'EACCES' || error.code === 'EPERM' ? 'permission denied' : String(error.code)
  return String(error)
}
