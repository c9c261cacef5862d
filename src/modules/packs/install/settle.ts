/** The edit at the end of network work: what it found goes into the city's files, unless those are others by then. */
import type { TextFiles } from '../../../files/configuration.ts'
import type { EventDraft } from '../../../kernel/event-log.ts'
import { JobFailure } from '../../../kernel/jobs.ts'
import { Problem } from '../../../kernel/problem.ts'
import type { PackCity } from '../city/city.ts'
import { lockTextFor, readLock, readRoot } from '../city/city-files.ts'
import type { Declared, RootImports } from '../city/imports.ts'
import { LOCK_FILE, type Pin, parseLock } from '../store/lock.ts'
import type { Consent } from './consent.ts'
import { Stale } from './failures.ts'
import type { Installation } from './installer.ts'

const MAX_ATTEMPTS = 5

/** What a change does with what is declared, once everything that it leads to is there. */
interface Plan {
  /** What is trusted with it. */
  readonly trusts?: readonly Declared[]
  readonly entries: (declared: readonly Declared[]) => readonly Declared[]
  readonly write: (files: TextFiles, declared: readonly Declared[]) => void
  readonly events: (
    declared: readonly Declared[],
    pins: readonly Pin[],
    before: readonly Pin[],
  ) => readonly EventDraft[]
  readonly mends?: boolean
}

/** What a run looked at, and what it came to. */
interface Seen {
  readonly root: RootImports
  readonly lockText: string | undefined
  readonly before: readonly Pin[]
  readonly pins: readonly Pin[]
}

interface Settled {
  readonly pins: readonly Pin[]
  readonly before: readonly Pin[]
  readonly revision: string
}

/** Pins what the files of a city lead to, fetches it, and writes files and lock in one edit, or does nothing. */
export async function settle(
  consent: Consent,
  city: PackCity,
  installation: Installation,
  signal: AbortSignal,
  plan: Plan,
): Promise<Settled> {
  for (let attempt = 1; ; attempt++) {
    const root = readRoot(city.dir)
    const lockText = readLock(city.dir)
    const before = lockText === undefined ? [] : parseLock(lockText)
    if (root.complaints[0] !== undefined) throw new JobFailure('invalid_config', root.complaints[0].message)
    const entries = plan.entries(root.entries)
    const pins = await installation.pins(entries, before)
    // Before the files change: whoever loads them asks what may be started.
    await consent.give(city.dir, plan.trusts ?? [], pins)
    await consent.carryOver(city.dir, entries, pins)
    signal.throwIfAborted()
    try {
      return { pins, before, revision: await write(city, { root, lockText, before, pins }, plan) }
    } catch (error) {
      const moved =
        error instanceof Stale ||
        (error instanceof Problem && error.code === 'conflict-config' && error.options.retryAfterSec !== undefined)
      if (!moved || attempt >= MAX_ATTEMPTS) throw error
    }
  }
}

async function write(city: PackCity, seen: Seen, plan: Plan): Promise<string> {
  const { root, lockText, before, pins } = seen
  let touched = false
  const { revision } = await city.edit({
    actor: 'api',
    ...(plan.mends === undefined ? {} : { mends: plan.mends }),
    change: (files) => {
      for (const [path, text] of root.texts) if (files.get(path) !== text) throw new Stale()
      if (files.get(LOCK_FILE) !== lockText) throw new Stale()
      plan.write(files, root.entries)
      const next = lockTextFor(pins, before, lockText)
      if (next === undefined) files.delete(LOCK_FILE)
      else files.set(LOCK_FILE, next)
      touched = next !== lockText || [...root.texts].some(([path, text]) => files.get(path) !== text)
    },
    events: () => plan.events(root.entries, pins, before),
  })
  if (touched) return revision
  // The files say the same, but the cache may now have what they ask for.
  const reloaded = await city.reload()
  if (reloaded.refused !== undefined) throw reloaded.refused
  return reloaded.revision
}
