/** The state directory: made where it is missing, refused where somebody else could have a hand in it. */
import { chmodSync, existsSync, lstatSync, mkdirSync, type Stats, statSync } from 'node:fs'
import { dirname } from 'node:path'
import { SettingsError } from './settings.ts'

/** `uid`: ours; undefined where the system has none. */
export function openHome(home: string, uid: number | undefined): void {
  // One after the other: `recursive` tries for ever below a directory that lets nobody make anything, as /proc does.
  const missing: string[] = []
  for (let at = home; !existsSync(at); at = dirname(at)) missing.unshift(at)
  for (const path of missing) mkdirSync(path, { mode: 0o700 })
  if (uid === undefined) return
  // A link of somebody else leads where he wants, also into directories of ours.
  refuseForeign(home, lstatSync(home), uid)
  const found = statSync(home)
  refuseForeign(home, found, uid)
  if (found.isDirectory() && (found.mode & 0o077) !== 0) chmodSync(home, 0o700)
}

function refuseForeign(home: string, { uid: owner }: Stats, uid: number): void {
  if (owner === uid) return
  throw new SettingsError(
    `the state directory ${home} belongs to uid ${owner}, not to uid ${uid} that runs this; choose another with --home`,
  )
}
