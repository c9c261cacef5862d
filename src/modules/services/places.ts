/**
 * The directories of a service. Its state is its own to write, so nothing there is believed: what is a link, or somebody
 * else's, is refused wherever we write or read.
 */
import { chmodSync, mkdirSync, type Stats } from 'node:fs'
import { join, relative, sep } from 'node:path'
import { lookAtEntry } from '../../kernel/look.ts'

/** Directories below `.svc/services` that are no directories of ours. */
export class PlaceRefused extends Error {
  override readonly name = 'PlaceRefused'
}

const SHARED = ['data', 'run', 'logs'] as const
const SECRETS = 'secrets'

const root = (city: string): string => join(city, '.svc', 'services')

/** Directory of the runs of a service; those of its starts are in it, by their numbers. */
export const runsDirectory = (city: string, name: string): string => join(city, '.svc', 'runtime', 'services', name)

/** As deep in the city as the runs of sessions: hosts find their city by it. */
export const runDirectory = (city: string, name: string, generation: number): string =>
  join(runsDirectory(city, name), String(generation))

/** Makes what is missing of its state root, and answers the directory of its secrets. */
export function prepareState(city: string, stateRoot: string): string {
  const secrets = prepareSecrets(city, stateRoot)
  for (const part of SHARED) own(join(stateRoot, part), 0o750)
  return secrets
}

/** Makes the directory of its secrets where it is missing. */
export function prepareSecrets(city: string, stateRoot: string): string {
  mkdirSync(root(city), { recursive: true, mode: 0o700 })
  for (const path of pathsDown(city, stateRoot)) own(path, path === stateRoot ? 0o750 : 0o700)
  const secrets = join(stateRoot, SECRETS)
  own(secrets, 0o700)
  return secrets
}

/** The directory of its secrets; undefined where there is none yet. */
export function secretsIn(city: string, stateRoot: string): string | undefined {
  for (const path of [...pathsDown(city, stateRoot), join(stateRoot, SECRETS)]) {
    if (lookAtEntry(path).is === 'missing') return undefined
    requireOwn(path)
  }
  return join(stateRoot, SECRETS)
}

/** From `.svc/services` down to the state root. */
function pathsDown(city: string, stateRoot: string): readonly string[] {
  const parts = relative(root(city), stateRoot).split(sep)
  return [root(city), ...parts.map((_, index) => join(root(city), ...parts.slice(0, index + 1)))]
}

function own(path: string, mode: number): void {
  if (lookAtEntry(path).is === 'missing') mkdirSync(path, { mode })
  if ((requireOwn(path).mode & 0o777) !== mode) chmodSync(path, mode)
}

function requireOwn(path: string): Stats {
  const found = lookAtEntry(path)
  if (found.is === 'unknown') throw new PlaceRefused(`${path} cannot be looked at: ${found.code}`)
  if (found.is !== 'directory') throw new PlaceRefused(`${path} is not a directory of its own`)
  const { uid } = found.stats
  if (uid !== (process.getuid?.() ?? uid)) throw new PlaceRefused(`${path} belongs to uid ${uid}`)
  return found.stats
}
