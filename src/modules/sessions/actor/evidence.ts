/**
 * What an agent does, of all that says so: its protocol, its own reports, its screen, in this order (decision 224). Pure;
 * `Watch` feeds it.
 *
 * V1  Who has a question on its screen, or one that waits for its answer, is never idle, whatever else says so.
 * V2  A report holds until something later contradicts it: what was typed, an interrupt, a screen that goes on moving in
 *     a turn, a screen that has come to rest. What follows then is what the screen says.
 * V3  One question at a time (a harness that asks by a hook draws its own dialog too, and sooner than the hook is heard): that of a report which takes its answer hides the one on the screen, which cannot be the
 *     same request; any other report leaves the screen to say what can be answered.
 * V4  A terminal tells of a program that reads lines only whether another one stands in front of it: at work, or asking, it
 *     looks as if it rested. What it reports of itself is believed instead, where that is the safe side.
 */
import type { Activity, Evidence, Pending } from '../../../runtimes/process/runtime.ts'
import type { SessionRecord } from '../record/record.ts'
import type { Report, TakeAnswer } from '../record/report.ts'

interface Question extends Pick<Report, 'overtaken'> {
  readonly pending: Pending
  readonly at: number
  readonly answer: TakeAnswer | undefined
}

/** What of all reports so far still counts. */
export interface Reported {
  readonly activity?: { readonly is: 'idle' | 'in-turn'; readonly at: number }
  readonly question?: Question
  /** When a question that takes its answer was answered last. */
  readonly answeredAt?: number
}

export interface Sources {
  readonly protocol: { readonly activity: Activity; readonly pending: Pending | undefined }
  readonly reported: Reported
  /** Absent for agents without a screen. */
  readonly screen:
    | {
        readonly activity: Activity
        readonly since: number
        readonly asks: boolean
        readonly pending: Pending | undefined
      }
    | undefined
  /** Until when a hook may still ask by itself what the screen asks. */
  readonly hookUntil?: number | undefined
  /** When there was output last. */
  readonly outputAt: number
  /** When it was typed into, and interrupted, last. */
  readonly typedAt: number | undefined
  readonly interruptedAt: number | undefined
  readonly now: number
}

export interface Weighed extends Omit<Evidence, 'since'> {
  /** When time alone will change it. */
  readonly until: number | undefined
}

/** A hook runs before the harness draws what it means: for so long a screen that moves on says nothing against it. */
const SETTLE_MS = 2_000
/** A screen that rests for so long at its prompt has no turn, whatever was reported: some ends are not told by hooks. */
const REST_MS = 10_000

const NOTHING = { activity: 'unknown', pending: undefined, source: 'none', until: undefined } as const

export function weigh(sources: Sources): Weighed {
  const { screen, hookUntil = 0, reported, now } = sources
  // A dialog is drawn before its hook is heard, and taken off after that was answered: it is the same request.
  const until = Math.max(hookUntil, (reported.answeredAt ?? -SETTLE_MS) + SETTLE_MS)
  if (screen?.pending === undefined || until <= now) return weighAll(sources)
  const weighed = weighAll({ ...sources, screen: { ...screen, pending: undefined } })
  return { ...weighed, until: Math.min(weighed.until ?? until, until) }
}

function weighAll(sources: Sources): Weighed {
  return guarded(byProtocol(sources) ?? byReport(sources) ?? byScreen(sources) ?? NOTHING, sources)
}

/** V2, V3: what is left of the reports after one more. An older one than is known changes nothing. */
export function afterReport(before: Reported, { at, activity, pending, answer, overtaken, outcome }: Report): Reported {
  const said = activity !== undefined && at >= (before.activity?.at ?? 0) ? { is: activity, at } : before.activity
  const question = pending
    ? { pending, at, answer, ...(overtaken && { overtaken }) }
    : pending === null
      ? undefined
      : stillAsked(before, said, at)
  const answeredAt = outcome === 'answered' || outcome === 'dismissed' ? at : before.answeredAt
  return {
    ...(said && { activity: said }),
    ...(question && { question }),
    ...(answeredAt !== undefined && { answeredAt }),
  }
}

function stillAsked({ question }: Reported, said: Reported['activity'], at: number): Reported['question'] {
  if (question === undefined || said?.at !== at || at < question.at) return question
  // Of two tools in one turn one may ask while the other works on.
  return said.is === 'in-turn' && question.answer !== undefined ? question : undefined
}

function byProtocol(sources: Sources): Weighed | undefined {
  const { activity, pending } = sources.protocol
  // A harness that somebody started in a shell asks by its hook, of which the shell knows nothing.
  if (pending === undefined && sources.reported.question?.answer !== undefined) return undefined
  if (activity === 'unknown' && pending === undefined) return undefined
  if (reportsMore(sources)) return undefined
  return { activity, pending, source: 'protocol', until: undefined }
}

/** V4. */
function reportsMore(sources: Sources): boolean {
  const { protocol, screen, reported, interruptedAt = Number.NEGATIVE_INFINITY } = sources
  if (screen === undefined || protocol.pending !== undefined) return false
  const { activity, question } = reported
  if (question !== undefined && screen.pending === undefined && !contradictsQuestion(sources, question)) return true
  return protocol.activity === 'idle' && activity?.is === 'in-turn' && interruptedAt < activity.at
}

function byReport(sources: Sources): Weighed | undefined {
  const { reported, screen } = sources
  const { activity: said, question } = reported
  const asked = question !== undefined && !contradictsQuestion(sources, question) ? question : undefined
  if (asked !== undefined && (asked.answer !== undefined || screen?.pending === undefined))
    return { activity: 'in-turn', pending: asked.pending, source: 'report', until: undefined }
  if (said === undefined) return undefined
  if (said.is === 'idle') {
    if (contradictsIdle(sources, said.at)) return undefined
    return { activity: 'idle', pending: undefined, source: 'report', until: undefined }
  }
  const until = sources.protocol.activity === 'idle' ? undefined : endOfTurn(sources, said.at)
  if (until !== undefined && until <= sources.now) return undefined
  return { activity: 'in-turn', pending: undefined, source: 'report', until }
}

function contradictsIdle({ screen, outputAt, typedAt = 0 }: Sources, at: number): boolean {
  return typedAt > at || (screen?.activity === 'in-turn' && outputAt > at + SETTLE_MS)
}

/** When a turn that was reported is over without a report of its end: a person's Escape has no hook. */
function endOfTurn({ screen, outputAt, interruptedAt }: Sources, at: number): number | undefined {
  if (screen === undefined) return undefined
  if (interruptedAt !== undefined && interruptedAt >= at && screen.activity !== 'in-turn') return interruptedAt
  if (screen.activity !== 'idle' || screen.since <= at) return undefined
  return Math.max(screen.since, outputAt) + REST_MS
}

/** Somebody answered at the terminal: it was interrupted, or its prompt is there again. Who takes the answer knows better. */
function contradictsQuestion(sources: Sources, { at, answer }: NonNullable<Reported['question']>): boolean {
  const { screen, interruptedAt = Number.NEGATIVE_INFINITY } = sources
  if (answer !== undefined) return false
  return interruptedAt >= at || (screen?.activity === 'idle' && screen.since > at + SETTLE_MS)
}

function byScreen({ screen }: Sources): Weighed | undefined {
  if (screen === undefined || (screen.activity === 'unknown' && screen.pending === undefined)) return undefined
  return { activity: screen.activity, pending: screen.pending, source: 'screen', until: undefined }
}

/** V1. */
function guarded(said: Weighed, { screen }: Sources): Weighed {
  if (screen === undefined || said.pending !== undefined || !screen.asks) return said
  if (said.activity === 'in-turn') return { ...said, pending: screen.pending }
  return { activity: 'in-turn', pending: screen.pending, source: 'screen', until: undefined }
}

/** Who is read by a screen alone takes messages only when that says so; of others silence is no reason to wait. */
export function takesMessages(activity: Activity, { runtime, launch }: Pick<SessionRecord, 'runtime' | 'launch'>) {
  const byScreen = runtime !== 'acp' && launch?.delivery === 'tui' && launch.io === 'pty'
  return activity === 'idle' || (activity === 'unknown' && !byScreen)
}
