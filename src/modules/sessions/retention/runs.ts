/** Runs on the disk: a directory per start of a session, `<session>/<generation>`, and which of them are to go. */
import { lstat, readdir } from 'node:fs/promises'
import { join } from 'node:path'

export interface Run {
  readonly session: string
  readonly generation: number
  readonly directory: string
  readonly bytes: number
  /** When something was written last: its end, or the last that was said of it. */
  readonly at: number
  /** A process may write there. */
  readonly live: boolean
}

export interface RunLimits {
  /** Undefined: however old. */
  readonly olderThan: number | undefined
  /** Undefined: however many. */
  readonly bytes: number | undefined
}

/** What the limits do not let stay: what is too old, then the oldest while all of them together are too large. Never a live one. */
export function runsToRemove(runs: readonly Run[], { olderThan, bytes }: RunLimits): readonly Run[] {
  const ended = runs.filter(({ live }) => !live).sort((a, b) => a.at - b.at)
  let left = runs.reduce((sum, run) => sum + run.bytes, 0)
  return ended.filter((run) => {
    const goes = (olderThan !== undefined && run.at < olderThan) || (bytes !== undefined && left > bytes)
    if (goes) left -= run.bytes
    return goes
  })
}

/** Every run below `root`; `isLive` is asked once it has been measured. */
export async function listRuns(
  root: string,
  isLive: (session: string, generation: number) => boolean,
): Promise<readonly Run[]> {
  const runs: Run[] = []
  for (const session of await names(root)) {
    for (const name of await names(join(root, session))) {
      if (!/^\d+$/.test(name)) continue
      const generation = Number(name)
      const directory = join(root, session, name)
      const measured = await measure(directory)
      runs.push({ session, generation, directory, ...measured, live: isLive(session, generation) })
    }
  }
  return runs
}

async function measure(directory: string): Promise<{ readonly bytes: number; readonly at: number }> {
  let [bytes, at] = [0, 0]
  for (const path of [directory, ...(await names(directory)).map((name) => join(directory, name))]) {
    const stat = await lstat(path).catch(() => undefined)
    if (stat === undefined) continue
    bytes += stat.size
    at = Math.max(at, stat.mtimeMs)
  }
  return { bytes, at }
}

/** Of what is not there, nothing. */
const names = (directory: string): Promise<readonly string[]> => readdir(directory).catch(() => [])
