/** The revision of a configuration: a hash over everything it was made from. */
import { createHash } from 'node:crypto'
import { join } from 'node:path'
import { compareText, fileStart } from '../../../files/issues.ts'
import { FileRefused } from '../../../files/read.ts'
import { textOf } from '../../../files/toml.ts'
import { contentHash, TreeRefused } from '../../../files/tree.ts'
import type { Composed } from './compose.ts'
import type { LoadContext } from './context.ts'
import { rigHome } from './documents.ts'

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

/**
 * SHA-256 (hex) over the files read, the lock, every pack's tree and the city's own convention directories. A tree that
 * is too much to be read is an error of the configuration.
 */
export function revisionOf(context: LoadContext, composed: Composed): string {
  const hash = createHash('sha256')
  const add = (name: string, digest: string): void => {
    hash.update(`${name}\0${digest}\n`)
  }
  for (const [file, bytes] of [...context.sources].sort(([a], [b]) => compareText(a, b))) {
    add(file, createHash('sha256').update(bytes).digest('hex'))
  }
  const lock = lockOf(context)
  if (lock !== undefined) add('packs.lock', createHash('sha256').update(lock).digest('hex'))
  const trees = new Map<string, string>()
  for (const { entry } of composed.packs) {
    const { pack } = entry
    if (context.untrusted.has(pack.root)) trees.set(`untrusted ${pack.label}`, pack.commit ?? '')
    if (!trees.has(pack.label))
      trees.set(pack.label, pack.contentHash ?? treeHash(context, pack.dir, pack.root, pack.label))
  }
  for (const name of CONVENTION_DIRS) {
    const dir = join(context.city.dir, name)
    if (context.files.kind(dir) === 'directory') trees.set(`./${name}`, treeHash(context, dir, context.city.dir, name))
  }
  for (const { fields } of composed.rigs) {
    const declared = textOf(fields, 'formulas_dir')
    if (declared === undefined) continue
    const { formulas, orders, fragments } = rigHome(context.city.dir, '', join(context.city.dir, declared))
    for (const dir of [formulas, orders, fragments]) {
      if (dir === undefined || context.files.kind(dir) !== 'directory') continue
      const shown = context.display(dir)
      trees.set(`./${shown}`, treeHash(context, dir, context.city.dir, shown))
    }
  }
  for (const [name, digest] of [...trees].sort(([a], [b]) => compareText(a, b))) add(name, digest)
  return hash.digest('hex')
}

function treeHash(context: LoadContext, dir: string, root: string, shown: string): string {
  try {
    return contentHash(context.files, dir, root)
  } catch (error) {
    if (!(error instanceof TreeRefused)) throw error
    const file = error.path === '' ? shown : `${shown}/${error.path}`
    context.issues.error(fileStart(file), '', `cannot be read: ${error.message}`)
    return ''
  }
}

function lockOf({ files, issues, city }: LoadContext): Buffer | undefined {
  try {
    return files.read(join(city.dir, 'packs.lock'), city.dir)
  } catch (error) {
    if (!(error instanceof FileRefused)) throw error
    issues.error(fileStart('packs.lock'), '', `cannot be read: ${error.message}`)
    return undefined
  }
}
