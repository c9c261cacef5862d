/**
 * `endpoint.json`: how clients of this machine find a running supervisor, and its token (architecture §5). It is there
 * while the supervisor runs: a token that outlived it would be handed to whoever takes its port next.
 */
import { closeSync, constants, fsyncSync, openSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

interface Endpoint {
  readonly url: string
  readonly pid: number
  /** What tells the process from a later one of the same pid: clock ticks since the boot. Linux only. */
  readonly process_start?: string
  readonly started_at: string
  readonly token?: string
}

const endpointPath = (home: string): string => join(home, 'endpoint.json')
const NEW_FILE = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW

/** Written whole or not at all, readable by its owner only, never through a file or link that was there before. */
export function writeEndpoint(home: string, endpoint: Endpoint, random: (bytes: number) => string): void {
  const path = endpointPath(home)
  const next = `${path}.${random(8)}`
  const file = openSync(next, NEW_FILE, 0o600)
  try {
    writeFileSync(file, `${JSON.stringify(endpoint, null, 2)}\n`)
    fsyncSync(file)
  } finally {
    closeSync(file)
  }
  renameSync(next, path)
}

export function removeEndpoint(home: string): void {
  rmSync(endpointPath(home), { force: true })
}
