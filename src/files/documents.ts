/** Files of one kind that lie in a directory by their names: formulas, orders, fragments. */
import { join } from 'node:path'
import { type ConfigFiles, listable } from './files.ts'

/** A place of a city that may bring formulas and orders: a pack, the city, a rig. Directories are absolute, and may be missing. */
export interface DocumentHome {
  readonly layer: 'pack' | 'city' | 'rig'
  /** Empty: the city. */
  readonly rig: string
  /** Import that brings it. */
  readonly pack?: string
  /** False: nothing of it is started. */
  readonly trusted: boolean
  /** What its files must not lead out of. */
  readonly root: string
  readonly formulas: string
  readonly orders?: string
  readonly fragments?: string
}

export interface FoundFile {
  /** Of the file, without its ending. */
  readonly name: string
  /** Absolute. */
  readonly path: string
}

export const TOML_FILE = '.toml'
export const FRAGMENT_FILE = '.template.md'

/** The files of `dir` with this ending, by name. Those that begin with `.` or `_` are somebody's notes. */
export function filesOf(files: ConfigFiles, dir: string, root: string, ending: string): readonly FoundFile[] {
  return listable(files, dir, root).flatMap(({ name, directory }) => {
    const isOurs = !directory && name.endsWith(ending) && name.length > ending.length && !/^[._]/.test(name)
    return isOurs ? [{ name: name.slice(0, -ending.length), path: join(dir, name) }] : []
  })
}
