/** `endpoint.json`: how clients of this machine find a running supervisor, and its token (architecture §5). */
import { closeSync, fsyncSync, openSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

export interface Endpoint {
  readonly url: string
  readonly pid: number
  readonly started_at: string
  readonly token?: string
}

const endpointPath = (home: string): string => join(home, 'endpoint.json')

/** The token of an earlier start, so that clients that stored it go on working. */
export function earlierToken(home: string): string | undefined {
  try {
    const value: unknown = JSON.parse(readFileSync(endpointPath(home), 'utf8'))
    const token = typeof value === 'object' && value !== null && 'token' in value ? value.token : undefined
    return typeof token === 'string' && token.length >= 32 ? token : undefined
  } catch {
    return undefined
  }
}

/** Written whole or not at all, readable by its owner only. */
export function writeEndpoint(home: string, endpoint: Endpoint): void {
  const path = endpointPath(home)
  const next = `${path}.next`
  writeFileSync(next, `${JSON.stringify(endpoint, null, 2)}\n`, { mode: 0o600 })
  const file = openSync(next, 'r')
  fsyncSync(file)
  closeSync(file)
  renameSync(next, path)
}
