/** The state directory: made where it is missing, refused where somebody else could have a hand in it. */
import { chmodSync, existsSync, lstatSync, mkdirSync, readdirSync, type Stats, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { look } from '../kernel/look.ts'
import { SettingsError } from './settings.ts'

/** `uid`: ours; undefined where the system has none. */
export function openHome(home: string, uid: number | undefined): void {
  try {
    makeHome(home, uid)
  } catch (error) {
    // A full disk is told of as such.
    if (error instanceof SettingsError || !(error instanceof Error) || ('code' in error && error.code === 'ENOSPC'))
      throw error
    throw new SettingsError(`the state directory ${home} cannot be used: ${error.message}; choose another with --home`)
  }
}

function makeHome(home: string, uid: number | undefined): void {
  // One after the other: `recursive` tries for ever below a directory that lets nobody make anything, as /proc does.
  const missing: string[] = []
  for (let at = home; !existsSync(at); at = dirname(at)) missing.unshift(at)
  for (const path of missing) mkdirSync(path, { mode: 0o700 })
  if (uid === undefined) return
  // A link of somebody else leads where he wants, also into directories of ours.
  refuseForeign(home, lstatSync(home), uid)
  const found = statSync(home)
  refuseForeign(home, found, uid)
  // One like /tmp is everybody's on purpose: closing it would take it from the whole machine.
  if ((found.mode & STICKY) !== 0)
    throw new SettingsError(
      `the state directory ${home} is shared by everybody (mode ${(found.mode & 0o7777).toString(8)}); choose another with --home`,
    )
  if (found.isDirectory() && (found.mode & 0o077) !== 0) chmodSync(home, 0o700)
  for (const name of readdirSync(home)) if (OURS.test(name)) refusePlanted(join(home, name), uid)
}

/** An emptied store is not a new one: to start with it would be to forget every city without a word. */
export function refuseEmptiedStore(home: string): void {
  const sizeOf = (name: string) => {
    const found = look(join(home, name))
    return 'stats' in found ? found.stats.size : undefined
  }
  // A supervisor that was killed while it made its first store leaves an empty one, and no trace of having run.
  const traces = ['supervisor.log', 'supervisor.db-wal', 'endpoint.json'].filter((name) => (sizeOf(name) ?? 0) > 0)
  if (sizeOf('supervisor.db') !== 0 || traces.length === 0) return
  throw new Error(
    `${join(home, 'supervisor.db')} is empty, though this home was in use (${traces.join(', ')}): put a backup of it in its place, or remove it to start without any city`,
  )
}

const STICKY = 0o1000
/** What we open in it. */
const OURS = /^(?:supervisor\.|endpoint\.json$|cache$|run$)/

/** Left there by somebody else while he could: he may have it open, or know what is in it. */
function refusePlanted(path: string, uid: number): void {
  const { uid: owner, mode } = lstatSync(path)
  if (owner === uid || owner === 0) return
  throw new SettingsError(
    `${path} belongs to uid ${owner} (mode ${(mode & 0o7777).toString(8)}), not to uid ${uid} that runs this; remove it, or choose another directory with --home`,
  )
}

function refuseForeign(home: string, { uid: owner }: Stats, uid: number): void {
  if (owner === uid) return
  throw new SettingsError(
    `the state directory ${home} belongs to uid ${owner}, not to uid ${uid} that runs this; choose another with --home`,
  )
}
