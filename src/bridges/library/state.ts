/** The directory in which a bridge keeps what must outlive it: the secret of its adapter, and its journal. */
import { createHash } from 'node:crypto'
import { chmodSync, closeSync, fsyncSync, mkdirSync, openSync, readFileSync, statSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { Unusable, type World } from './world.ts'

const SECRET = /^whsec_[A-Za-z0-9+/]{32,}={0,2}$/

/** Makes it where it is missing; nobody else may look inside. */
export function openStateRoot(directory: string): string {
  mkdirSync(directory, { recursive: true, mode: 0o700 })
  const { uid } = statSync(directory)
  if (process.getuid !== undefined && uid !== process.getuid())
    throw new Unusable(`the state root ${directory} belongs to another user (uid ${uid})`)
  chmodSync(directory, 0o700)
  return directory
}

/**
 * The secret by which the adapter is known. It is made here and is on disk before the supervisor hears of it: one that only
 * an answer had brought would be lost with the answer, and the adapter with it.
 */
export function readSecret(root: string, world: Pick<World, 'newKey'>): string {
  const path = join(root, 'secret')
  const found = readIfThere(path)
  if (found !== undefined) {
    if (!SECRET.test(found))
      throw new Unusable(
        `${path} holds no secret of the form whsec_…`,
        'remove it, and rotate the secret of the adapter',
      )
    chmodSync(path, 0o600)
    return found
  }
  const bytes = createHash('sha256').update(world.newKey()).update(world.newKey()).digest('base64')
  const secret = `whsec_${bytes}`
  writeDurably(path, root, `${secret}\n`)
  return secret
}

function readIfThere(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8').trim()
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined
    throw error
  }
}

function writeDurably(path: string, directory: string, text: string): void {
  const file = openSync(path, 'wx', 0o600)
  try {
    writeSync(file, text)
    fsyncSync(file)
  } finally {
    closeSync(file)
  }
  const folder = openSync(directory, 'r')
  try {
    fsyncSync(folder)
  } finally {
    closeSync(folder)
  }
}
