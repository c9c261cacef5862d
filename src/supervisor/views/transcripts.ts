/** Where transcripts meet sessions: the logs of their runs, what was said to them, who reads and follows. */

import { toChunk } from '../../http/sse.ts'
import { isoTime } from '../../kernel/clock.ts'
import { endingWith } from '../../kernel/feed.ts'
import { problem } from '../../kernel/problem.ts'
import { config as configuration } from '../../modules/config/family.ts'
import { wirePending } from '../../modules/sessions/actor/journal.ts'
import { sessions } from '../../modules/sessions/family.ts'
import type { Sessions } from '../../modules/sessions/plan/service.ts'
import type { SessionRecord } from '../../modules/sessions/record/record.ts'
import type { Others } from '../../modules/sessions/transcripts/files.ts'
import type { TranscriptCity } from '../../modules/sessions/transcripts/handlers.ts'
import { Insights } from '../../modules/sessions/transcripts/insight.ts'
import { familyOf, isStructured, Transcripts } from '../../modules/sessions/transcripts/service.ts'
import { openFiles } from '../../runtimes/process/open-files.ts'
import { openOutputReader } from '../../runtimes/process/output-log.ts'
import { readableText } from '../../runtimes/terminal/readable.ts'
import type { Host, Running } from './running.ts'

const encode = (frames: readonly string[]) => toChunk(frames.join(''))

/** By the sessions that they belong to: gone with them. */
const made = new WeakMap<Sessions, Transcripts>()

/** For one run of a city; its sessions are looked up when there is something to look at. */
export function insightsOf(city: Running): Insights {
  const { clock, log } = city.host
  return new Insights({
    clock,
    log,
    structured: isStructured,
    transcript: async (id) => {
      const { sessions: all } = sessions.of(city)
      const session = all.store.byId(id)
      return session === undefined || !isStructured(session) ? undefined : transcriptsOf(city, all).of(session)
    },
  })
}

export function saidIn(city: Running, all: Sessions): TranscriptCity {
  const { config } = configuration.of(city)
  const definition = (identity: string) => config.current().agents.find((agent) => agent.identity === identity)
  const isAgent = (identity: string) => definition(identity) !== undefined || all.store.openByAgent(identity).length > 0
  return {
    transcripts: transcriptsOf(city, all),
    resolve: (id) => all.resolve(id),
    find: (id) => all.store.byId(id),
    ofAgent: (identity) => {
      if (!isAgent(identity)) throw problem('agent-not-found', `there is no agent ${identity}`)
      return sessionsOfAgent(all, identity, definition(identity)?.scales === true)
    },
    isAgent,
    running: ({ id }) => all.live(id)?.liveness === 'alive',
    activity: ({ id }) => known(all.live(id)?.activity),
    pending: ({ id }) => all.live(id)?.pending?.requestId,
    attend: ({ id }) => all.attend(id),
    onChange: (wake) => all.listenAll(wake),
    encode,
    openLog: openOutputReader,
    whileRunning: (feed) => endingWith(feed, (end) => all.onEnd(end)),
  }
}

/** What reads the logs of its sessions; undefined before they are opened. */
export function transcriptsIn(city: Running): Transcripts | undefined {
  const all = sessions.find(city)?.sessions
  return all === undefined ? undefined : transcriptsOf(city, all)
}

function transcriptsOf({ host }: Running, all: Sessions): Transcripts {
  const found = made.get(all) ?? makeTranscripts(host, all)
  made.set(all, found)
  return found
}

function makeTranscripts({ clock, userHome }: Host, all: Sessions): Transcripts {
  return new Transcripts({
    clock,
    encode,
    session: (id) => all.store.byId(id),
    observed: ({ id }) => {
      const live = all.live(id)
      return {
        running: live?.liveness === 'alive',
        activity: known(live?.activity),
        pending: live?.pending === undefined ? undefined : wirePending(live.pending),
      }
    },
    listen: (id, wake) => all.listen(id, wake),
    directory: (id) => all.directory(id),
    openLog: openOutputReader,
    render: readableText,
    typed: (id, generation, range) =>
      all.deliveries.typed(id, generation, range).map((one) => ({ ...one, at: isoTime(one.at) })),
    lastTyped: (id, generation, offset) => all.deliveries.lastTyped(id, generation, offset),
    typingSince: (id) => all.deliveries.typingSince(id),
    userHome,
    others: (session) => othersIn(all.store.open(), session),
    held: openFiles,
    foundConversation: (session, conversationId) => all.foundConversation(session, conversationId),
  })
}

/** Those whose logs could be taken for the session's own. */
function othersIn(open: readonly SessionRecord[], session: SessionRecord): Others {
  const others = open.filter(
    (one) => one.id !== session.id && one.work_dir === session.work_dir && familyOf(one) === familyOf(session),
  )
  return {
    untold: others.some((one) => one.process && one.conversation_id === undefined),
    conversations: new Set(others.flatMap(({ conversation_id: id }) => id ?? [])),
  }
}

const known = (activity: 'idle' | 'in-turn' | 'unknown' | undefined): 'idle' | 'in-turn' | undefined =>
  activity === 'unknown' ? undefined : activity

/**
 * Newest first; the output of a template with several instances would be several texts. Those that somebody made by hand
 * count while they run: afterwards they may lie about for long.
 */
function sessionsOfAgent(all: Sessions, identity: string, scales: boolean): readonly SessionRecord[] {
  const found = all.store.ofAgent(identity)
  const counts = ({ state, pool, process }: SessionRecord) =>
    state !== 'closed' && (pool !== undefined || (scales && process))
  const instances = [...new Set(found.filter(counts).map(({ agent }) => agent))]
  if (instances.length > 1)
    throw problem('ambiguous-session', `${identity} has several instances: ${instances.sort().join(', ')}`)
  return found
}
