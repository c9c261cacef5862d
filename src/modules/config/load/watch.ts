/**
 * Watching a city's files. It says only that something may have changed: the load that follows finds out what.
 *
 * - A storm of changes is one call: 200 ms after the last one, and at the latest 2 s after the first.
 * - Where watching is impossible, or misses something, the patrol's slow look finds it.
 */
import { join, relative, sep } from 'node:path'
import { type FSWatcher, watch } from 'chokidar'
import type { Clock } from '../../../kernel/clock.ts'
import { CONVENTION_DIRS } from '../compose/revision.ts'

const QUIET_MS = 200
const LONGEST_MS = 2_000

export interface WatchDeps {
  readonly dir: string
  readonly clock: Clock
  /** Absolute paths beside the usual ones that count: fragments, local packs. Asked for whenever a path is looked at. */
  readonly extra: () => readonly string[]
  /** Something may have changed: at one of these paths. */
  readonly changed: (paths: ReadonlySet<string>) => void
  readonly failed: (error: unknown) => void
}

export interface CityWatch {
  /** Resolves when every change from now on is seen. */
  readonly ready: Promise<void>
  close(): Promise<void>
}

const TOP_FILES: ReadonlySet<string> = new Set(['city.toml', 'pack.toml', 'packs.lock'])
const TOP_DIRECTORIES: ReadonlySet<string> = new Set(CONVENTION_DIRS)
/** `.svc` holds the database, whose every write would wake a watch of that directory; its one file that counts has its own. */
const IGNORED = /^\.svc(?:\/|$)|(?:^|\/)(?:\.git|\.beads|node_modules|__pycache__)(?:\/|$)|\.svc-next$/

export function watchCity({ dir, clock, extra, changed, failed }: WatchDeps): CityWatch {
  let paths = new Set<string>()
  const bell = quietBell(clock, () => {
    const seen = paths
    paths = new Set()
    changed(seen)
  })
  const counts = (path: string): boolean => {
    const local = relative(dir, path).split(sep).join('/')
    if (local === '') return true
    if (IGNORED.test(local)) return false
    const top = local.split('/')[0] ?? ''
    if (TOP_FILES.has(local) || TOP_DIRECTORIES.has(top)) return true
    return extra().some((wanted) => path === wanted || path.startsWith(wanted + sep) || wanted.startsWith(path + sep))
  }
  const options = {
    ignoreInitial: true,
    ignored: (path: string) => !counts(path),
    followSymlinks: false,
    persistent: true,
  }
  const watcher = watch(dir, options)
  const site = watch(join(dir, '.svc', 'site.toml'), { ignoreInitial: true, persistent: true })
  const opened = [watcher, site]
  const ring = (path: string): void => {
    paths.add(path)
    bell.ring()
  }
  for (const one of opened) one.on('all', (_event, path) => ring(path)).on('error', failed)
  return {
    ready: Promise.all(opened.map(readiness)).then(() => {}),
    async close() {
      bell.stop()
      await Promise.all(opened.map((one) => one.close()))
    },
  }
}

const readiness = (watcher: FSWatcher): Promise<void> =>
  new Promise((resolve) => watcher.once('ready', () => resolve()))

/** Calls `work` once things are quiet, and from time to time where they never are. */
export function quietBell(clock: Clock, work: () => void): { ring(): void; stop(): void } {
  let cancel: (() => void) | undefined
  let first: number | undefined
  let stopped = false
  const act = () => {
    cancel = undefined
    first = undefined
    if (!stopped) work()
  }
  return {
    ring() {
      if (stopped) return
      const now = clock.monotonic()
      first ??= now
      cancel?.()
      cancel = clock.after(Math.max(0, Math.min(QUIET_MS, first + LONGEST_MS - now)), act)
    },
    stop() {
      stopped = true
      cancel?.()
    },
  }
}
