/** What one load carries along: access to files, the issues found, and which files it has read. */

import { dirname, isAbsolute, join, relative } from 'node:path'
import type { Schema } from '../../../contract/base/schema.ts'
import type { ProviderSpec } from '../../../contract/config-schema.ts'
import { checkTable } from '../../../files/check-table.ts'
import { type ConfigFiles, isInside } from '../../../files/files.ts'
import { fileStart, IssueList, type Layer, nearestHint, type Place } from '../../../files/issues.ts'
import type { PackPlace, RemoteSource } from '../../../files/pack-source.ts'
import { textOfBytes } from '../../../files/read.ts'
import { readToml, type TableNode } from '../../../files/toml.ts'
import type { DeepReadonly } from './effective.ts'

/** What the loader asks for a pack in git. It must not use the network: it looks into the lock and the cache. */
export type PackRequest = { readonly remote: RemoteSource; readonly version: string }
export type PackResolution =
  | {
      readonly ok: true
      /** The pack's directory, and the checkout that it must not reach out of. */
      readonly dir: string
      readonly root: string
      readonly commit: string
      readonly version?: string
      /** Nobody has said yet that what it brings may be started. */
      readonly untrusted?: true
      /** Hash of the pack's content, when it is known and checked; the loader hashes otherwise. */
      readonly contentHash?: string
    }
  | { readonly ok: false; readonly message: string; readonly hint?: string }

export type LoadOptions = {
  /** Of this svcctl: packs may need a newer one. */
  readonly version: string
  /** Directory of each built-in pack by name: `builtin:core` is `core`. */
  readonly builtinPacks: ReadonlyMap<string, string>
  /** Built-in provider presets, in the order of the API. */
  readonly presets: Readonly<Record<string, DeepReadonly<ProviderSpec>>>
  /** Answers for packs in git; without it every such import is an error. */
  readonly resolvePack?: (request: PackRequest) => PackResolution
  /** They were good for an earlier version. */
  readonly kept?: boolean
}

/** The city, or a pack. */
export type Home = PackPlace

export class LoadContext {
  readonly files: ConfigFiles
  readonly issues: IssueList
  readonly options: LoadOptions
  readonly city: Home
  /** Bytes of every configuration file read, by the name shown in issues. */
  readonly sources = new Map<string, Buffer>()
  /** Absolute paths of those files that belong to the city itself. */
  readonly cityPaths = new Set<string>()
  /** Checkouts of packs that nobody has trusted yet. */
  readonly untrusted = new Set<string>()
  readonly #imports = new Map<string, Map<string, Home>>()
  #broken = false
  readonly #homes = new Map<string, Home>()
  readonly #labelled = new Map<string, Home>()

  constructor(dir: string, files: ConfigFiles, options: LoadOptions) {
    this.files = files
    this.options = options
    this.issues = new IssueList(options)
    this.city = { dir, root: dir, label: '' }
  }

  /**
   * Whether a file could not be read at all. What it declares is unknown then, so that everything which refers to it
   * would look wrong: only the files themselves are checked.
   */
  get broken(): boolean {
    return this.#broken
  }

  /** Reads and checks one TOML file of `home`; undefined when it is missing or cannot be read at all. */
  readFile(home: Home, path: string, schema: Schema, layer: Layer): TableNode | undefined {
    const file = fileLabel(home, path)
    const text = this.readText(home, path, layer)
    if (text === undefined) return undefined
    const table = readToml(text, file, layer, this.issues)
    this.#broken ||= table === undefined
    return table === undefined ? undefined : checkTable(table, schema, this.issues)
  }

  /** The text of a file of `home`; undefined when missing. One that cannot be read is an error that names it. */
  readText(home: Home, path: string, layer: Layer): string | undefined {
    const file = fileLabel(home, path)
    this.#homes.set(file, home)
    try {
      const bytes = this.files.read(join(home.dir, path), home.root)
      if (bytes === undefined) return undefined
      this.sources.set(file, bytes)
      if (home === this.city) this.cityPaths.add(join(home.dir, path))
      return textOfBytes(bytes)
    } catch (error) {
      this.issues.error(fileStart(file, layer), '', `cannot be read: ${reason(error)}`)
      this.#broken = true
      return undefined
    }
  }

  /** Entries of a directory of `home`; a missing directory has none. */
  list(home: Home, path: string): readonly { name: string; directory: boolean }[] {
    try {
      return this.files.list(join(home.dir, path), home.root) ?? []
    } catch (error) {
      this.issues.error(fileStart(fileLabel(home, path)), '', `cannot be listed: ${reason(error)}`)
      return []
    }
  }

  /** The directory that relative paths of a value at `at` mean. */
  homeOf(at: Place): Home {
    return this.#homes.get(at.file) ?? this.city
  }

  /** Makes `homeOf` answer `home` for a place that is a directory or file not read as configuration. */
  claim(file: string, home: Home): void {
    this.#homes.set(file, home)
  }

  /** Lets files of `home` name files of an imported pack as `<binding>//path`. */
  addImport(home: Home, binding: string, pack: Home): void {
    const known = this.#imports.get(home.dir) ?? new Map<string, Home>()
    known.set(binding, pack)
    this.#imports.set(home.dir, known)
  }

  /**
   * The absolute path of a declared path: relative to its own pack, `//x` from the city, `<binding>//x` from an imported
   * pack. An escape from the allowed directory is an error.
   */
  resolvePath(declared: string, at: Place, key: string): string | undefined {
    const home = this.homeOf(at)
    const [, binding, rest] = /^([a-z0-9_-]*)\/\/(.*)$/s.exec(declared) ?? []
    const base = binding === undefined ? home : binding === '' ? this.city : this.#imports.get(home.dir)?.get(binding)
    const local = rest ?? declared
    if (base === undefined) {
      const known = this.#imports.get(home.dir)?.keys() ?? []
      this.issues.error(at, key, `there is no import \`${binding}\``, nearestHint(binding ?? '', known))
      return undefined
    }
    const root = binding === undefined || binding === '' ? base.root : base.dir
    if (isAbsolute(local) || !isInside(this.files, root, join(base.dir, local))) {
      this.issues.error(at, key, `\`${declared}\` leads out of ${base === this.city ? 'the city' : 'its pack'}`)
      return undefined
    }
    return join(base.dir, local)
  }

  /** Makes the files below `home.dir` be shown under its label. */
  addHome(home: Home): void {
    this.#labelled.set(home.dir, home)
  }

  /** A path as issues and `explain` show it. */
  display(path: string): string {
    for (let dir = dirname(path); dir !== dirname(dir); dir = dirname(dir)) {
      const home = this.#labelled.get(dir)
      if (home !== undefined) return fileLabel(home, relative(dir, path))
    }
    const local = relative(this.city.dir, path)
    return local.startsWith('..') || isAbsolute(local) ? path : local
  }
}

/** How a file of `home` is named. */
export function fileLabel(home: Home, path: string): string {
  return home.label === '' ? path : `${home.label}/${path}`
}

/** Why a file cannot be read, to go behind "cannot be read:". */
export function reason(error: unknown): string {
  if (error instanceof TypeError) return 'it is not UTF-8 text'
  if (error instanceof Error && 'code' in error) {
    if (error.code === 'EACCES' || error.code === 'EPERM') return 'permission denied'
    return String(error.code)
  }
  return error instanceof Error ? error.message : String(error)
}
