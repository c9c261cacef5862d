/**
 * Following imports, from what a city declares to every pack that this leads to. The configuration composes the packs
 * that are found, `pack` lists and pins them: both walk here, so that neither knows of an import that the other does not.
 *
 * I1  A pack is looked up and read once in a walk, however many import it.
 * I2  What may be followed is bounded, in number, bytes and depth: a load happens while everybody waits.
 * I3  An import that leads nowhere is told with the reason, and the walk goes on behind it.
 */
import { type ConfigFiles, isInside } from './files.ts'
import { compareText } from './issues.ts'
import {
  type BuiltinSource,
  localPlace,
  type PackPlace,
  type PackSource,
  type RemoteSource,
  SourceError,
  sourceOrError,
} from './pack-source.ts'
import { type TableNode, tablesOf, textOf } from './toml.ts'

/** A set of packs with more imports, more to read, or a longer chain is a mistake. */
const MAX_IMPORTS = 2_000
const MAX_BYTES = 1024 * 1024
const MAX_DEPTH = 40

/** What an `[imports.<name>]` asks for. */
export interface Asked {
  readonly name: string
  readonly source: string
  readonly version: string
}

/** Where a pack is, and of one from git what is known of its checkout. */
export interface Located extends PackPlace {
  readonly commit?: string
  readonly version?: string | undefined
  readonly contentHash?: string | undefined
}

/** A pack that was read. */
export interface FoundPack extends PackPlace {
  /** Of its `pack.toml`. */
  readonly bytes: number
}

/** Why an import leads nowhere. */
export interface Obstacle {
  /**
   * `source`: it is not one; `outside`: it leaves the importer's root; `absent`: the pack was not fetched, or is not
   * built in; `missing`: no `pack.toml` there; `broken`: it cannot be read; `circle`: it leads back; `bounds`: too many.
   */
  readonly kind: 'source' | 'outside' | 'absent' | 'missing' | 'broken' | 'circle' | 'bounds'
  readonly message: string
  readonly hint?: string | undefined
}

/** One import, of the city or of a pack. */
export interface ImportLink<E extends Asked, P extends FoundPack> {
  readonly entry: E
  /** Bindings from the outermost inwards; of several ways to the importing pack the first. */
  readonly way: readonly string[]
  /** The pack that imports; undefined for the city. */
  readonly from: P | undefined
  /** Undefined where it cannot be read. */
  readonly source: PackSource | undefined
  /** The pack that it leads to, also where that is on the way to it. */
  readonly to: P | undefined
  readonly obstacle: Obstacle | undefined
}

/** What a walk needs of whoever walks. */
export interface ImportReader<E extends Asked, P extends FoundPack> {
  /** Where a pack is that does not lie beside its importer. */
  locate(source: RemoteSource | BuiltinSource, version: string): Located | Obstacle
  /** `broken`: its file is there and cannot be read, which the reader has told. */
  read(place: Located, source: PackSource): P | 'missing' | 'broken'
  /** What a pack imports, told from the entry that led to it. */
  importsOf(pack: P, entry: E): readonly E[]
  /** An import was looked at; outer ones come before what they lead to. */
  linked(link: ImportLink<E, P>): void
}

/** What walks that belong together may follow. */
export class ImportBounds {
  #imports = 0
  #bytes = 0
  #depth = 0

  /** `depth`: of how many imports in a row it is the last. */
  addImport(depth: number): void {
    this.#imports += 1
    this.#depth = Math.max(this.#depth, depth)
  }

  addBytes(bytes: number): void {
    this.#bytes += bytes
  }

  get exceeded(): boolean {
    return this.#imports > MAX_IMPORTS || this.#bytes > MAX_BYTES || this.#depth > MAX_DEPTH
  }
}

export class ImportWalk<E extends Asked, P extends FoundPack> {
  readonly #city: PackPlace
  readonly #files: ConfigFiles
  readonly #reader: ImportReader<E, P>
  readonly #bounds: ImportBounds
  readonly #places = new Map<string, Located | Obstacle>()
  readonly #packs = new Map<string, P | 'missing' | 'broken'>()
  /** The packs between the city and where the walk is. */
  readonly #open = new Set<P>()

  constructor(city: PackPlace, files: ConfigFiles, reader: ImportReader<E, P>, bounds = new ImportBounds()) {
    this.#city = city
    this.#files = files
    this.#reader = reader
    this.#bounds = bounds
  }

  /** Follows the imports of the city, and those of every pack that it has not been at before. */
  follow(entries: readonly E[]): void {
    this.#follow(entries, undefined, [])
  }

  #follow(entries: readonly E[], from: P | undefined, before: readonly string[]): void {
    for (const entry of entries) {
      // Whoever went beyond has told it.
      if (this.#bounds.exceeded) return
      const way = [...before, entry.name]
      this.#bounds.addImport(way.length)
      this.#step(entry, from, way)
    }
  }

  #step(entry: E, from: P | undefined, way: readonly string[]): void {
    const link = { entry, way, from, to: undefined }
    if (this.#bounds.exceeded) {
      this.#reader.linked({ ...link, source: undefined, obstacle: TOO_MUCH })
      return
    }
    const source = sourceOrError(entry.source)
    if (source instanceof SourceError) {
      const obstacle = { kind: 'source', message: source.message } as const
      this.#reader.linked({ ...link, source: undefined, obstacle })
      return
    }
    const place = this.#locate(source, entry.version, from ?? this.#city)
    if ('kind' in place) {
      this.#reader.linked({ ...link, source, obstacle: place })
      return
    }
    const key = `${place.root}\0${place.dir}`
    const known = this.#packs.get(key)
    const to = known ?? this.#read(key, place, source)
    const pack = typeof to === 'string' ? undefined : to
    this.#reader.linked({ ...link, source, to: pack, obstacle: this.#obstacle(to, place) })
    if (pack === undefined || known !== undefined) return
    this.#open.add(pack)
    this.#follow(this.#reader.importsOf(pack, entry), pack, way)
    this.#open.delete(pack)
  }

  #locate(source: PackSource, version: string, importer: PackPlace): Located | Obstacle {
    const place = source.kind === 'local' ? localPlace(this.#city, importer, source) : undefined
    const key = place === undefined ? `${source.source} ${version}` : `${place.root}\0${place.dir}`
    const known = this.#places.get(key)
    if (known !== undefined) return known
    const found = source.kind === 'local' ? this.#inside(place ?? importer) : this.#reader.locate(source, version)
    this.#places.set(key, found)
    return found
  }

  #inside(place: PackPlace): Located | Obstacle {
    if (isInside(this.#files, place.root, place.dir)) return place
    const outside = place.root === this.#city.root ? 'the city' : 'the pack that imports it'
    return { kind: 'outside', message: `a local pack must be inside ${outside}` }
  }

  #read(key: string, place: Located, source: PackSource): P | 'missing' | 'broken' {
    const found = this.#reader.read(place, source)
    this.#packs.set(key, found)
    if (typeof found !== 'string') this.#bounds.addBytes(found.bytes)
    return found
  }

  #obstacle(to: P | 'missing' | 'broken', { label }: PackPlace): Obstacle | undefined {
    if (this.#bounds.exceeded) return TOO_MUCH
    if (to === 'missing')
      return { kind: 'missing', message: `there is no pack at \`${label}\`: \`pack.toml\` is missing` }
    if (to === 'broken') return { kind: 'broken', message: `the pack at \`${label}\` cannot be read` }
    if (!this.#open.has(to)) return undefined
    return {
      kind: 'circle',
      message: `this import leads back to the pack \`${label}\`: imports must not form a circle`,
    }
  }
}

const TOO_MUCH: Obstacle = {
  kind: 'bounds',
  message: `the imports lead to more than ${MAX_IMPORTS} others, ${MAX_DEPTH} in a row, or ${MAX_BYTES / 1024} KiB of \`pack.toml\``,
}

/** The entries of the `[imports]` of a table, by name. */
export function importEntries(table: TableNode): readonly (Asked & { readonly table: TableNode })[] {
  return tablesOf(table, 'imports')
    .sort(([a], [b]) => compareText(a, b))
    .flatMap(([name, entry]) => {
      const source = textOf(entry, 'source')
      return source === undefined ? [] : [{ name, source, version: textOf(entry, 'version') ?? '', table: entry }]
    })
}
