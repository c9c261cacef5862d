/** Transcripts of the sessions of a city: where each one's log is, and what reads it. */
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { usageLogOf } from '../../../harnesses/all.ts'
import { USAGE_LOG } from '../../../harnesses/hooks.ts'
import type { Clock } from '../../../kernel/clock.ts'
import { parseAcpLine } from '../../../runtimes/acp/transcript.ts'
import type { SessionRecord } from '../record/record.ts'
import { acpDialect } from './acp.ts'
import {
  behindReplay,
  type Chapter,
  lineChapter,
  type TerminalSources,
  type Typed,
  type TypedRange,
  terminalChapter,
} from './chapters.ts'
import { claudeLine } from './claude.ts'
import { codexLine } from './codex.ts'
import type { ByteLog, Dialect } from './entries.ts'
import { fileIdentity, fileLog, findHarnessLog, type HarnessQuery, type Others, subAgentPaths } from './files.ts'
import { maskedLog } from './masked-log.ts'
import { acpReader, harnessReader, type Place, readSpent, type SpentStretch } from './spent.ts'
import { type Encode, SessionTail, type StreamState } from './stream.ts'
import { Transcript } from './transcript.ts'

export interface TranscriptDeps {
  readonly clock: Clock
  readonly encode: Encode
  readonly session: (id: string) => SessionRecord | undefined
  /** What is observed of it now. */
  readonly observed: (session: SessionRecord) => Omit<StreamState, 'state' | 'reason'>
  /** Calls when there is more output, or its record or what is observed of it changed. */
  readonly listen: (id: string, wake: () => void) => () => void
  /** Directory of the session; its runs are in `<generation>/`. */
  readonly directory: (id: string) => string
  readonly openLog: (directory: string) => ByteLog
  /** What a person reads of the bytes of a terminal. */
  readonly render: TerminalSources['render']
  readonly typed: (id: string, generation: number, range: TypedRange) => readonly Typed[]
  /** Number of the last message that was typed into this run before that offset; 0: none was. */
  readonly lastTyped: (id: string, generation: number, offset: number) => number
  /** Since when a message is being typed, where one is. */
  readonly typingSince: (id: string) => number | undefined
  /** Home of the user, for a harness whose environment names none. */
  readonly userHome: string
  readonly others: (session: SessionRecord) => Others
  /** Paths below a directory that a process and its descendants hold open. */
  readonly held: (pid: number, root: string) => readonly string[]
  /** Its log has told the key that it can be resumed by. */
  readonly foundConversation: (session: SessionRecord, conversationId: string) => void
}

/** Chapters of harnesses' logs come behind those of runs: a transcript that was text until its log was found goes on. */
const HARNESS_CHAPTERS = 100_000
const DIALECTS: Readonly<Record<string, Dialect>> = { claude: claudeLine, codex: codexLine }
const MAX_TAILS = 10_000
/** Typing takes much less; where it hangs, its output is shown all the same. */
const HELD_MS = 2_000

/** Whether it is known what is said, and not only what a terminal showed. */
export const isStructured = (session: SessionRecord): boolean =>
  session.runtime === 'acp' || Object.hasOwn(DIALECTS, familyOf(session))

/** The harness that it is, whatever its provider is called. */
export const familyOf = ({ launch, provider }: Pick<SessionRecord, 'launch' | 'provider'>): string =>
  launch?.ready.family ?? provider

/** A conversation begins with its session, as clocks go. */
const SLACK_MS = 5_000
const NO_FLOOR = () => Promise.resolve(0)

/** A page of what a terminal wrote, as it is. */
export const RAW_BYTES = 1024 * 1024

export const unseen: TerminalSources['render'] = () => Promise.resolve({ text: '', anew: false })

export class Transcripts {
  readonly #deps: TranscriptDeps
  readonly #tails = new Map<string, SessionTail>()
  /** Where a run's own part begins; it never changes. */
  readonly #floors = new Map<string, Promise<number>>()
  readonly #found = new Map<string, string>()

  constructor(deps: TranscriptDeps) {
    this.#deps = deps
  }

  /** `raw`: nobody asks what a terminal showed, so that nothing is drawn. */
  async of(session: SessionRecord, raw = false): Promise<Transcript> {
    const { id, runtime, provider } = session
    if (runtime === 'acp') {
      const dialect = acpDialect(provider)
      return transcriptOf(session, await this.#runs(id, (number, log) => this.#acpChapter(id, number, log, dialect)))
    }
    const family = familyOf(session)
    const dialect = DIALECTS[family]
    const found = dialect === undefined ? undefined : await this.#harnessLog(session)
    if (dialect !== undefined && found !== undefined) {
      const number = HARNESS_CHAPTERS + session.continuation_epoch
      return new Transcript([lineChapter(number, maskedLog(fileLog(found.path), session), dialect, NO_FLOOR)], {
        source: found.identity,
      })
    }
    const { typed, lastTyped } = this.#deps
    const render = raw ? unseen : this.#deps.render
    return transcriptOf(
      session,
      await this.#runs(id, (number, log) =>
        terminalChapter(number, {
          provider,
          log,
          render,
          typed: (range) => typed(id, number, range),
          lastTyped: (offset) => lastTyped(id, number, offset),
        }),
      ),
      raw ? { room: RAW_BYTES } : {},
    )
  }

  /** What its logs say of usage behind what was read of them; undefined: nothing new. `settled`: its last turn has ended. */
  async spent(
    id: string,
    reached: ReadonlyMap<string, Place>,
    settled: boolean,
  ): Promise<(SpentStretch & { readonly log: string }) | undefined> {
    const session = this.#deps.session(id)
    if (session === undefined || session.generation === 0) return undefined
    for (const { name, log, reader } of await this.#spentLogs(session, reached)) {
      const found = await readSpent(log, reader, reached.get(name), settled)
      if (found !== undefined) return { ...found, log: name }
    }
    return undefined
  }

  async #spentLogs(session: SessionRecord, reached: ReadonlyMap<string, Place>) {
    const rules = session.runtime === 'acp' ? undefined : usageLogOf(familyOf(session))
    if (session.runtime === 'acp' || rules?.told !== undefined) {
      const directory = this.#deps.directory(session.id)
      // Earlier ones grow no more.
      const from = Math.max(1, ...[...reached.keys()].map((name) => Number(/^run (\d+)$/.exec(name)?.[1] ?? 0)))
      return (await this.#runNumbers(session.id))
        .filter((number) => number >= from)
        .map((number) => {
          const run = join(directory, String(number))
          const own =
            rules === undefined
              ? { log: this.#deps.openLog(run), reader: acpReader(String(number)) }
              : { log: fileLog(join(run, USAGE_LOG)), reader: harnessReader(rules, 0, String(number)) }
          return { name: `run ${number}`, ...own }
        })
    }
    const found = rules === undefined ? undefined : await this.#harnessLog(session)
    if (rules === undefined || found === undefined) return []
    return [found.path, ...(await subAgentPaths(this.harnessQuery(session)))].map((path) => ({
      name: path,
      log: fileLog(path),
      reader: harnessReader(rules, session.created_at - SLACK_MS, path),
    }))
  }

  harnessQuery(session: SessionRecord): HarnessQuery {
    const env = session.launch?.logPlaces ?? {}
    return {
      family: familyOf(session),
      home: env['HOME'] || this.#deps.userHome,
      env,
      logPath: session.log_path,
      held: (root) => (session.pid === undefined ? [] : this.#deps.held(session.pid, root)),
      others: this.#deps.others(session),
      workDir: session.work_dir ?? '',
      conversationId: session.conversation_id ?? session.launch?.conversation,
      since: session.last_woke_at ?? session.created_at,
    }
  }

  /** What the streams of the session share. */
  tail(session: SessionRecord): SessionTail {
    const { id } = session
    const known = this.#tails.get(id)
    if (known !== undefined) return known
    this.#forgetIdle()
    const { session: find, observed, listen, clock, encode, typingSince } = this.#deps
    const tail = new SessionTail(
      {
        id,
        polled: DIALECTS[familyOf(session)] !== undefined,
        listen: (wake) => listen(id, wake),
        held: () => {
          const since = session.runtime === 'acp' ? undefined : typingSince(id)
          return since !== undefined && clock.now() < since + HELD_MS
        },
        transcript: async () => {
          const current = find(id)
          return current === undefined ? new Transcript([]) : this.of(current)
        },
        state: () => {
          const current = find(id)
          if (current === undefined) return undefined
          return { state: current.state, reason: current.reason, ...observed(current) }
        },
      },
      { clock, encode },
    )
    this.#tails.set(id, tail)
    return tail
  }

  #forgetIdle(): void {
    if (this.#tails.size < MAX_TAILS) return
    for (const [id, tail] of this.#tails) if (tail.idle) this.#tails.delete(id)
  }

  /** Where it is, and which file that is now. One that is gone is looked for again. */
  async #harnessLog(session: SessionRecord): Promise<{ readonly path: string; readonly identity: string } | undefined> {
    const key = `${session.id} ${session.continuation_epoch} ${session.conversation_id ?? ''}`
    const path = this.#found.get(key) ?? (await this.#findLog(session))
    const identity = path === undefined ? undefined : await fileIdentity(path)
    this.#found.delete(key)
    if (path === undefined || identity === undefined) return undefined
    if (this.#found.size >= MAX_TAILS) this.#found.clear()
    this.#found.set(key, path)
    return { path, identity }
  }

  async #findLog(session: SessionRecord): Promise<string | undefined> {
    const found = await findHarnessLog(this.harnessQuery(session))
    if (found !== undefined && session.conversation_id === undefined)
      this.#deps.foundConversation(session, found.conversationId)
    return found?.path
  }

  async #runs(id: string, open: (number: number, log: ByteLog) => Chapter): Promise<readonly Chapter[]> {
    const directory = this.#deps.directory(id)
    const numbers = await this.#runNumbers(id)
    return numbers.map((number) => open(number, this.#deps.openLog(join(directory, String(number)))))
  }

  async #runNumbers(id: string): Promise<readonly number[]> {
    const names = await readdir(this.#deps.directory(id)).catch(() => [])
    const numbers = names.filter((name) => /^[1-9]\d{0,8}$/.test(name)).map(Number)
    return numbers.sort((a, b) => a - b)
  }

  #acpChapter(id: string, number: number, log: ByteLog, dialect: Dialect): Chapter {
    return lineChapter(number, log, dialect, () => this.#floor(`${id} ${number}`, log))
  }

  async #floor(key: string, log: ByteLog): Promise<number> {
    const known = this.#floors.get(key)
    if (known !== undefined) return known
    const found = behindReplay(log, replayMark)
    const floor = await found
    // While the agent still repeats, or has said nothing, the answer may change.
    if (floor < (await log.endOffset())) {
      if (this.#floors.size >= MAX_TAILS) this.#floors.clear()
      this.#floors.set(key, found)
    }
    return floor
  }
}

/** Every run has its directory before it begins: where that is missing, it was removed after its time. */
function transcriptOf(
  { generation }: SessionRecord,
  chapters: readonly Chapter[],
  more: { readonly room?: number } = {},
): Transcript {
  const kept = chapters.filter(({ number }) => number <= generation).length
  return new Transcript(chapters, { lostRuns: generation - kept, ...more })
}

function replayMark(line: string): 'begin' | 'end' | undefined {
  const record = parseAcpLine(line, 0)
  return record?.kind === 'replay' ? record.phase : undefined
}
