/**
 * Whether a shell has come to its first prompt. What its profile starts runs in the process group of the shell, so the
 * terminal alone does not tell it from a shell that waits for its next line.
 */
import { readFileSync } from 'node:fs'
import type { ChildContext } from '../process/hosted-child.ts'

/** A shell without a prompt and a line editor is taken for ready then. */
const LONGEST_PROFILE_MS = 120_000
const NEWLINE = 10

interface PromptDeps {
  readonly pid: number
  /** Its line editor is on: the terminal passes keys one by one. */
  readonly isRaw: () => boolean
}

export function promptWatch({ spec, clock }: Pick<ChildContext, 'spec' | 'clock'>, { pid, isRaw }: PromptDeps) {
  const startedAt = clock.monotonic()
  let isUp = spec.shell !== true
  let hasOpenLine = false
  return {
    look(bytes: Uint8Array): void {
      if (!isUp && bytes.length > 0) hasOpenLine = bytes.at(-1) !== NEWLINE
    },
    /** From its first prompt on. */
    isUp(): boolean {
      isUp ||= isRaw() || (hasOpenLine && !hasChildren(pid)) || clock.monotonic() - startedAt >= LONGEST_PROFILE_MS
      return isUp
    },
  }
}

/** False where the system does not say. */
function hasChildren(pid: number): boolean {
  try {
    return readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim() !== ''
  } catch {
    return false
  }
}
