/** A directory of a test's own. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

export function temporaryDirectory(): Disposable & { readonly path: string } {
  const path = mkdtempSync(join(tmpdir(), 'svc-unit-'))
  return { path, [Symbol.dispose]: () => removeTree(path) }
}

/** All of it, also while processes that were killed, or are leaving, write their last files there. */
export const removeTree = (path: string): void => rmSync(path, { recursive: true, force: true, maxRetries: 5 })
