/**
 * Secrets of a service: files in a directory that is its own, and ours to write (decision 167).
 *
 * C1  A secret is there whole, on disk, or not at all; nobody but its owner can read it at any time.
 * C2  No link is followed and no other file is touched: what stands there and is no regular file is no secret.
 */
import {
  closeSync,
  constants,
  fsyncSync,
  lstatSync,
  openSync,
  readdirSync,
  renameSync,
  rmSync,
  writeSync,
} from 'node:fs'
import { join } from 'node:path'
import { MAX_SECRET_KEY, SECRET_KEY } from '../../contract/services.ts'
import { FileRefused, readInside } from '../../files/read.ts'
import { lookAtEntry } from '../../kernel/look.ts'
import { problem } from '../../kernel/problem.ts'
import { PlaceRefused, prepareSecrets, secretsIn } from './places.ts'

const MOST_SECRETS = 100
/** In UTF-8 a character takes four bytes at most. */
const MOST_BYTES = 4 * 65_536
const KEY = new RegExp(SECRET_KEY)

export interface Secret {
  readonly key: string
  readonly updatedAt: number
}

interface Place {
  readonly city: string
  readonly stateRoot: string
}

export function list({ city, stateRoot }: Place): readonly Secret[] {
  const directory = refusing(() => secretsIn(city, stateRoot))
  if (directory === undefined) return []
  return readdirSync(directory)
    .filter((key) => KEY.test(key) && key.length <= MAX_SECRET_KEY)
    .sort()
    .flatMap((key) => {
      const found = lookAtEntry(join(directory, key))
      return found.is === 'file' ? [{ key, updatedAt: found.stats.mtimeMs }] : []
    })
}

export function put(place: Place, key: string, value: string, random: (bytes: number) => string): Secret {
  const known = list(place)
  if (known.length >= MOST_SECRETS && !known.some((one) => one.key === key))
    throw problem('conflict-wrong-state', `it has ${MOST_SECRETS} secrets already`)
  const directory = refusing(() => prepareSecrets(place.city, place.stateRoot))
  const path = join(directory, key)
  const there = lookAtEntry(path)
  if (there.is !== 'missing' && there.is !== 'file') throw notASecret(key)
  // No key begins with a dot.
  const fresh = join(directory, `.${random(8)}.new`)
  try {
    write(fresh, value)
    renameSync(fresh, path)
  } catch (error) {
    rmSync(fresh, { force: true })
    throw error
  }
  syncDirectory(directory)
  return { key, updatedAt: lstatSync(path).mtimeMs }
}

export function remove(place: Place, key: string): void {
  if (!list(place).some((one) => one.key === key)) throw problem('secret-not-found', `there is no secret ${key}`)
  const directory = refusing(() => prepareSecrets(place.city, place.stateRoot))
  rmSync(join(directory, key), { force: true })
  syncDirectory(directory)
}

/** What must not be shown: each secret, and each of its lines. None where a link stands in the way: that has none of ours. */
export function valuesOf(place: Place): readonly Buffer[] {
  const directory = orNothing(() => secretsIn(place.city, place.stateRoot))
  if (directory === undefined) return []
  const texts = list(place).flatMap(({ key }) => {
    try {
      return readInside(join(directory, key), directory, MOST_BYTES)?.toString('utf8') ?? []
    } catch (error) {
      if (error instanceof FileRefused) return []
      throw error
    }
  })
  const values = texts.flatMap((text) => [text.trim(), ...text.split('\n').map((line) => line.trim())])

  return [...new Set(values)]
    .map((value) => Buffer.from(value))
    .filter(({ length }) => length > 0)
    .sort((a, b) => b.length - a.length)
}

function write(path: string, value: string): void {
  const { O_CREAT, O_EXCL, O_NOFOLLOW, O_WRONLY } = constants
  const file = openSync(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0o600)
  try {
    const bytes = Buffer.from(value)
    for (let at = 0; at < bytes.length; ) at += writeSync(file, bytes, at)
    fsyncSync(file)
  } finally {
    closeSync(file)
  }
}

function syncDirectory(path: string): void {
  const directory = openSync(path, constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW)
  try {
    fsyncSync(directory)
  } finally {
    closeSync(directory)
  }
}

const notASecret = (key: string) =>
  problem('conflict-wrong-state', `what stands at the place of the secret ${key} is no file`)

function orNothing<T>(work: () => T): T | undefined {
  try {
    return work()
  } catch (error) {
    if (error instanceof PlaceRefused) return undefined
    throw error
  }
}

function refusing<T>(work: () => T): T {
  try {
    return work()
  } catch (error) {
    if (error instanceof PlaceRefused) throw problem('conflict-wrong-state', error.message, { cause: error })
    throw error
  }
}
