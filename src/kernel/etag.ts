/** ETags of stored definitions (decision 4). */
import { createHash } from 'node:crypto'
import { cut } from '../contract/base/text.ts'
import { problem } from './problem.ts'

/** 32 hex digits over the definition; the same for the same values, whatever the order of keys. */
export function definitionHash(definition: object): string {
  const sorted = Object.entries(definition)
    .filter(([, value]) => value !== undefined)
    .sort(([a], [b]) => (a < b ? -1 : 1))
  return cut(createHash('sha256').update(JSON.stringify(sorted)).digest('hex'), 32)
}

/** 412 where `If-Match` names another version; no header, no condition. */
export function checkPrecondition(ifMatch: string | undefined, revision: string): void {
  if (ifMatch === undefined || ifMatch.trim() === '*') return
  const tags = ifMatch.split(',').map((tag) => tag.trim().replace(/^W\//, '').replaceAll('"', ''))
  if (tags.includes(revision)) return
  throw problem('precondition-failed', `the item has changed: its ETag is "${revision}"`)
}
