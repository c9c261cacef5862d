/**
 * Where the sockets of a city's agents are: `$XDG_RUNTIME_DIR/svc/<hash of the city's path>/`, else
 * `/tmp/svc-<uid>/…`. Not in the city: a Unix socket's path is limited to about 108 bytes (decision 54). Whoever can
 * write there can talk to agents, so both levels are ours alone, and checked every time.
 */
import { createHash } from 'node:crypto'
import { lstatSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'

/** Longer ones than this fail on some systems. */
const MAX_SOCKET_PATH_BYTES = 100
/** Room for the longest name of a socket, slash included. */
const NAME_BYTES = 40

/** Makes and checks the directory. Throws where it is not ours alone. `runtimeDir`: `XDG_RUNTIME_DIR`, where set. */
export function openSocketDirectory(cityPath: string, runtimeDir: string | undefined): string {
  const uid = process.getuid?.() ?? 0
  const hash = createHash('sha256').update(cityPath).digest('hex').slice(0, 16)
  const parent =
    runtimeDir !== undefined && fits(join(runtimeDir, 'svc', hash)) ? join(runtimeDir, 'svc') : `/tmp/svc-${uid}`
  const directory = join(parent, hash)
  for (const path of [parent, directory]) {
    mkdirSync(path, { recursive: true, mode: 0o700 })
    assertPrivate(path, uid)
  }
  return directory
}

const fits = (directory: string) => Buffer.byteLength(directory) + NAME_BYTES <= MAX_SOCKET_PATH_BYTES

function assertPrivate(path: string, uid: number): void {
  const found = lstatSync(path)
  if (!found.isDirectory() || found.uid !== uid || (found.mode & 0o077) !== 0) {
    throw new Error(`${path} must be a directory that only its owner can use`)
  }
}
