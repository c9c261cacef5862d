/** Files that a process and its descendants hold open, by what the system says. */
import { readdirSync, readFileSync, readlinkSync } from 'node:fs'

const MAX_PROCESSES = 1_000
const MAX_FILES = 4_096

/** Paths below `root`, without repetitions; none where that cannot be seen. */
export function openFiles(pid: number, root: string): readonly string[] {
  const found = new Set<string>()
  const pids = [pid]
  for (let at = 0; at < pids.length && at < MAX_PROCESSES; at++) {
    const one = pids[at]
    if (one === undefined) break
    for (const path of linksOf(one)) if (path.startsWith(`${root}/`)) found.add(path)
    pids.push(...childrenOf(one))
  }
  return [...found]
}

function linksOf(pid: number): readonly string[] {
  const directory = `/proc/${pid}/fd`
  return tried(() => readdirSync(directory))
    .slice(0, MAX_FILES)
    .flatMap((name) => tried(() => [readlinkSync(`${directory}/${name}`)]))
}

const childrenOf = (pid: number): readonly number[] =>
  tried(() => readdirSync(`/proc/${pid}/task`)).flatMap((task) =>
    tried(() => readFileSync(`/proc/${pid}/task/${task}/children`, 'latin1').trim().split(' '))
      .filter((child) => child !== '')
      .map(Number),
  )

/** A process may end while it is looked at, and another user's is closed. */
function tried<T>(look: () => readonly T[]): readonly T[] {
  try {
    return look()
  } catch {
    return []
  }
}
