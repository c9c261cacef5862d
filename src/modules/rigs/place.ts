/** Where a rig's directory may be, and which file says so (decision 32). */

import { mkdirSync, realpathSync, rmdirSync } from 'node:fs'
import { basename, dirname, isAbsolute, join, normalize, relative, resolve, sep } from 'node:path'
import { cut } from '../../contract/base/text.ts'
import { asCaller } from '../../kernel/file-modes.ts'
import { look, lookAtEntry } from '../../kernel/look.ts'
import { invalidField } from '../../kernel/problem.ts'

export interface RigPlace {
  /** Absolute. */
  readonly directory: string
  /** What `city.toml` says: relative; undefined where the path belongs to this machine and to `.svc/site.toml`. */
  readonly inCity: string | undefined
}

const LOCATION = 'body.path'

/** The place that `path` names for a rig of the city in `dir`; 422 where there can be none. */
export function placeRig(dir: string, path: string): RigPlace {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is refused.
  if (/[\u0000-\u001f\u007f]/.test(path)) throw invalidField(LOCATION, 'must not contain control characters')
  const directory = isAbsolute(path) ? normalize(path).replace(/(.)\/$/, '$1') : resolve(dir, path)
  const local = relative(dir, directory)
  const inside = local !== '' && local !== '..' && !local.startsWith(`..${sep}`) && !isAbsolute(local)
  if (!inside && !isAbsolute(path)) throw invalidField(LOCATION, 'must be a directory inside the city', path)
  const kind = kindOf(directory, path)
  if (kind === 'file') throw invalidField(LOCATION, 'is not a directory', path)
  if (!inside) {
    if (kind === undefined)
      throw invalidField(LOCATION, 'does not exist; only directories inside the city are made', path)
    if (local === '') throw invalidField(LOCATION, 'is the directory of the city itself', path)
    return { directory, inCity: undefined }
  }
  if (local.split(sep)[0] === '.svc') throw invalidField(LOCATION, 'must not be inside .svc', path)
  const real = realOf(directory)
  const root = realOf(dir)
  if (!real.startsWith(root + sep)) throw invalidField(LOCATION, 'leads out of the city by a link', path)
  return { directory, inCity: local.split(sep).join('/') }
}

/** Makes the directory where it is missing; the answer takes back what was made, as far as it is still empty. */
export function makeDirectory(directory: string): () => void {
  let first: string | undefined
  try {
    first = asCaller(() => mkdirSync(directory, { recursive: true }))
  } catch (error) {
    throw invalidField(LOCATION, `cannot be made: ${codeOf(error)}`)
  }
  return () => {
    if (first === undefined) return
    try {
      for (let at = directory; at.startsWith(first); at = dirname(at)) rmdirSync(at)
    } catch {
      // Somebody has put something into it: then it is theirs.
    }
  }
}

/** True for anything of that name, also a link that leads nowhere. */
export const isThere = (path: string): boolean => lookAtEntry(path).is !== 'missing'

function kindOf(directory: string, path: string): 'file' | 'directory' | undefined {
  const found = look(directory)
  if (found.is === 'unknown') throw invalidField(LOCATION, `cannot be used: ${found.code}`, cut(path, 200))
  if (found.is === 'missing') return undefined
  return found.is === 'directory' ? 'directory' : 'file'
}

/** Links followed, as far as the path exists. */
function realOf(path: string): string {
  try {
    return realpathSync(path)
  } catch {
    const parent = dirname(path)
    return parent === path ? path : join(realOf(parent), basename(path))
  }
}

const codeOf = (error: unknown): string => (error instanceof Error && 'code' in error ? String(error.code) : 'unknown')
