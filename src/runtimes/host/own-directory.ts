/**
 * Watches the directory of a run: who removes it has deleted the session, and the host ends its agent (H4).
 *
 * Only a directory that is certainly gone, or another one under its name, counts, and only where two checks some seconds
 * apart agree. A directory that cannot be read for a moment (EACCES, ELOOP, EIO, ESTALE), or was moved away and back, is
 * not gone.
 */
import { watch } from 'node:fs'
import { dirname } from 'node:path'
import type { Clock } from '../../kernel/clock.ts'
import { type Look, look } from '../../kernel/look.ts'

/** Between two checks where changes are not reported. */
const POLL_MS = 5_000
/** A directory that was moved away with those above it reports no change; the host wakes this rarely for it. */
const SELDOM_MS = 600_000
/** Between the check that misses the directory and the one that confirms it. */
const CONFIRM_MS = 3_000

export interface OwnDirectory {
  readonly directory: string
  readonly clock: Clock
  readonly onGone: () => void
  /** The file system; only tests pass their own. */
  readonly look?: (path: string) => Look
  readonly watch?: (path: string, onChange: () => void, onError: () => void) => void
}

export function watchOwnDirectory({ directory, clock, onGone, ...files }: OwnDirectory): void {
  const see = files.look ?? look
  let own = identityOf(see(directory))
  let cancelConfirmation: (() => void) | undefined

  function isGone(): boolean {
    const found = see(directory)
    own ??= identityOf(found)
    return isAnother(found, own)
  }
  function check(): void {
    if (isGone()) cancelConfirmation ??= clock.after(CONFIRM_MS, confirm)
    else forget()
  }
  function confirm(): void {
    if (isGone()) onGone()
    else forget()
  }
  function forget(): void {
    cancelConfirmation?.()
    cancelConfirmation = undefined
  }

  let polling = false
  function poll(ms: number): void {
    clock.after(ms, () => {
      check()
      poll(ms)
    })
  }
  function pollOften(): void {
    if (polling) return
    polling = true
    poll(POLL_MS)
  }

  try {
    // The parent: in the directory itself every chunk of output is a change.
    const begin = files.watch ?? watchChanges
    begin(dirname(directory), check, pollOften)
    poll(SELDOM_MS)
  } catch {
    // The system has no watches left, or cannot read the parent now.
    pollOften()
  }
}

function watchChanges(path: string, onChange: () => void, onError: () => void): void {
  watch(path, { persistent: false }, onChange).on('error', onError)
}

type DirectoryId = { readonly dev: number; readonly ino: number }

const identityOf = (found: Look): DirectoryId | undefined =>
  found.is === 'missing' || found.is === 'unknown' ? undefined : { dev: found.stats.dev, ino: found.stats.ino }

/** Whether it is certain that `found` is not `own`. */
function isAnother(found: Look, own: DirectoryId | undefined): boolean {
  if (found.is === 'unknown') return false
  if (found.is === 'missing') return true
  return own !== undefined && (found.stats.ino !== own.ino || found.stats.dev !== own.dev)
}
