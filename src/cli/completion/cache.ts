/**
 * Answers to completions, kept for a few seconds: a shell asks again at every key. In a directory of the user's own, with
 * the city and the server in the name, so that nothing of one is offered in another.
 */

import { createHash } from 'node:crypto'
import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { isRecord } from '../../client/problems.ts'
import { cut } from '../../contract/base/text.ts'
import type { Io } from '../base/io.ts'

const FRESH_MS = 5_000

/** What was found less than a few seconds ago for the same `question`, else what `ask` finds. */
export async function remembered(
  io: Io,
  question: readonly unknown[],
  ask: () => Promise<readonly string[]>,
): Promise<readonly string[]> {
  const path = placeOf(io, question)
  const known = read(path, io.clock.now())
  if (known !== undefined) return known
  const found = await ask()
  write(path, { at: io.clock.now(), found })
  return found
}

function placeOf({ env, home }: Io, question: readonly unknown[]): string {
  const caches = env['XDG_CACHE_HOME'] || join(home, '.cache')
  const name = cut(createHash('sha256').update(JSON.stringify(question)).digest('hex'), 32)
  return join(caches, 'svcctl', 'completion', `${name}.json`)
}

function read(path: string, now: number): readonly string[] | undefined {
  try {
    const kept: unknown = JSON.parse(readFileSync(path, 'utf8'))
    if (!isRecord(kept) || typeof kept['at'] !== 'number' || !Array.isArray(kept['found'])) return undefined
    const age = now - kept['at']
    return age >= 0 && age < FRESH_MS ? kept['found'].map(String) : undefined
  } catch {
    return undefined
  }
}

/** Where it cannot be kept, it is asked for again. */
function write(path: string, kept: { readonly at: number; readonly found: readonly string[] }): void {
  try {
    mkdirSync(join(path, '..'), { recursive: true, mode: 0o700 })
    const draft = `${path}.${process.pid}`
    writeFileSync(draft, JSON.stringify(kept), { mode: 0o600 })
    renameSync(draft, path)
  } catch {
    // A home that is read-only, or a disk that is full.
  }
}
