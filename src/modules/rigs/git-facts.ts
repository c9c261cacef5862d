/**
 * What git says about the directories of rigs, observed off the request path.
 *
 * G1  No read waits for git: it gets what was observed last, and asks for another look where that is old.
 * G2  At most `CONCURRENT` looks at a time, at most one per directory, each over after 3 s.
 */
import type { RigGit } from '../../contract/rigs.ts'
import { placeAt } from '../../files/git/place.ts'
import type { StandInGit } from '../../files/git/stand-in.ts'
import { type Clock, isoTime } from '../../kernel/clock.ts'

const BUDGET_MS = 3_000
const FRESH_MS = 5_000
const CONCURRENT = 2
const MAX_REMEMBERED = 5_000

interface Observation {
  /** Undefined: not a repository, or git did not answer in time. */
  readonly facts: RigGit | undefined
  readonly at: number
}

export interface GitFactsDeps {
  readonly clock: Clock
  readonly git: Pick<StandInGit, 'ask'>
}

export class GitFacts {
  readonly #deps: GitFactsDeps
  readonly #seen = new Map<string, Observation>()
  readonly #waiting = new Set<string>()
  readonly #closing = new AbortController()
  #looking = 0

  constructor(deps: GitFactsDeps) {
    this.#deps = deps
  }

  /** What was seen last; asks for another look where that is old. */
  of(directory: string): RigGit | undefined {
    const seen = this.#seen.get(directory)
    if (seen === undefined || this.#deps.clock.now() - seen.at > FRESH_MS) this.look(directory)
    return seen?.facts
  }

  /** Looks as soon as it is its turn. */
  look(directory: string): void {
    this.#waiting.add(directory)
    this.#next()
  }

  /** Looks now; for those who have time. */
  async observe(directory: string): Promise<RigGit | undefined> {
    const { clock, git } = this.#deps
    const facts = await readGit(directory, git, clock, this.#closing.signal)
    this.#seen.delete(directory)
    this.#seen.set(directory, { facts, at: clock.now() })
    const oldest = this.#seen.keys().next().value
    if (this.#seen.size > MAX_REMEMBERED && oldest !== undefined) this.#seen.delete(oldest)
    return facts
  }

  close(): void {
    this.#waiting.clear()
    this.#closing.abort()
  }

  #next(): void {
    if (this.#looking >= CONCURRENT || this.#closing.signal.aborted) return
    const directory = this.#waiting.values().next().value
    if (directory === undefined) return
    this.#waiting.delete(directory)
    this.#looking++
    void this.observe(directory).finally(() => {
      this.#looking--
      this.#next()
    })
  }
}

// Submodules are compared by their commit: git would look into them with their own configuration.
const STATUS = ['status', '--porcelain=v2', '--branch', '-z', '--ignore-submodules=dirty'] as const

async function readGit(
  directory: string,
  git: GitFactsDeps['git'],
  clock: Clock,
  signal: AbortSignal,
): Promise<RigGit | undefined> {
  // Of the directory itself: a repository around it, such as the city's own, is another one.
  const place = placeAt(directory)
  if (place?.workTree === undefined || signal.aborted) return undefined
  try {
    const { code, stdout } = await git.ask(place, STATUS, { timeoutMs: BUDGET_MS, signal })
    return code === 0 ? parseStatus(stdout, isoTime(clock.now())) : undefined
  } catch {
    return undefined
  }
}

/** Reads `git status --porcelain=v2 --branch -z`. */
export function parseStatus(text: string, observedAt: string): RigGit {
  let [branch, ahead, behind, changed] = ['', 0, 0, 0]
  const records = text.split('\0')
  for (let at = 0; at < records.length; at++) {
    const record = records[at] ?? ''
    const [, head] = /^# branch\.head (.*)$/s.exec(record) ?? []
    const [, more, less] = /^# branch\.ab \+(\d+) -(\d+)$/.exec(record) ?? []
    if (head !== undefined && head !== '(detached)') branch = head
    if (more !== undefined) [ahead, behind] = [Number(more), Number(less)]
    if (/^[12u?] /.test(record)) changed++
    // A renamed file is followed by a record with its old path.
    if (record.startsWith('2 ')) at++
  }
  return { branch, clean: changed === 0, changed_files: changed, ahead, behind, observed_at: observedAt }
}
