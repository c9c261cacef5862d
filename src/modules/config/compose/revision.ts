/** The revision of a configuration: a hash over everything it was made from. */
import { createHash } from 'node:crypto'
import { join } from 'node:path'
import { treeHash } from '../../../files/files.ts'
import { compareText } from '../../../files/issues.ts'
import type { Composed } from './compose.ts'
import type { LoadContext } from './context.ts'

/** Directories of the city whose content belongs to its configuration. */
export const CONVENTION_DIRS = [
  'agents',
  'formulas',
  'orders',
  'skills',
  'mcp',
  'commands',
  'doctor',
  'template-fragments',
  'prompts',
  'overlay',
  'assets',
] as const

/** SHA-256 (hex) over the files read, the lock, every pack's tree and the city's own convention directories. */
export function revisionOf(context: LoadContext, composed: Composed): string {
  const hash = createHash('sha256')
  const add = (name: string, digest: string): void => {
    hash.update(`${name}\0${digest}\n`)
  }
  for (const [file, bytes] of [...context.sources].sort(([a], [b]) => compareText(a, b))) {
    add(file, createHash('sha256').update(bytes).digest('hex'))
  }
  const lock = context.files.read(join(context.city.dir, 'packs.lock'))
  if (lock !== undefined) add('packs.lock', createHash('sha256').update(lock).digest('hex'))
  const trees = new Map<string, string>()
  for (const { entry } of composed.packs) {
    const { pack } = entry
    if (!trees.has(pack.label)) trees.set(pack.label, pack.contentHash ?? treeHash(context.files, pack.dir))
  }
  for (const name of CONVENTION_DIRS) {
    if (context.files.kind(join(context.city.dir, name)) === 'directory')
      trees.set(`./${name}`, treeHash(context.files, join(context.city.dir, name)))
  }
  for (const [name, digest] of [...trees].sort(([a], [b]) => compareText(a, b))) add(name, digest)
  return hash.digest('hex')
}
