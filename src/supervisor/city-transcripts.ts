/** Where transcripts meet sessions: the logs of their runs, what was said to them, who reads and follows. */

import { toChunk } from '../http/sse.ts'
import type { Clock } from '../kernel/clock.ts'
import { isoTime } from '../kernel/clock.ts'
import { endingWith } from '../kernel/feed.ts'
import type { Logger } from '../kernel/log.ts'
import { problem } from '../kernel/problem.ts'
import type { City } from '../modules/cities/city.ts'
import type { CityStore } from '../modules/cities/city-store.ts'
import { wirePending } from '../modules/sessions/actor/journal.ts'
import type { Sessions } from '../modules/sessions/plan/service.ts'
import type { SessionRecord } from '../modules/sessions/record/record.ts'
import type { Others } from '../modules/sessions/transcripts/files.ts'
import { createTranscriptHandlers, type TranscriptCity } from '../modules/sessions/transcripts/handlers.ts'
import { Insights } from '../modules/sessions/transcripts/insight.ts'
import { familyOf, isStructured, Transcripts } from '../modules/sessions/transcripts/service.ts'
import { openOutputReader } from '../runtimes/process/output-log.ts'
import { readableText } from '../runtimes/terminal/readable.ts'

export interface CityTranscriptsDeps {
  readonly clock: Clock
  readonly log: Logger
  readonly userHome: string
  readonly sessions: (city: string) => Sessions
  readonly agents: (city: string) => readonly { readonly identity: string; readonly scales: boolean }[]
}

type RunningCity = City & { readonly store: CityStore }

export class CityTranscripts {
  readonly #deps: CityTranscriptsDeps
  /** By the sessions that they belong to: gone with them. */
  readonly #made = new WeakMap<Sessions, Transcripts>()

  constructor(deps: CityTranscriptsDeps) {
    this.#deps = deps
  }

  handlers(running: (name: string) => RunningCity) {
    return createTranscriptHandlers({
      clock: this.#deps.clock,
      city: (name) => this.#city(name, running(name).store),
    })
  }

  /** For one run of a city; its sessions are looked up when there is something to look at. */
  insights(city: string): Insights {
    const { clock, log } = this.#deps
    return new Insights({
      clock,
      log,
      structured: isStructured,
      transcript: async (id) => {
        const sessions = this.#deps.sessions(city)
        const session = sessions.store.byId(id)
        return session === undefined || !isStructured(session) ? undefined : this.#of(sessions).of(session)
      },
    })
  }

  #city(name: string, store: CityStore): TranscriptCity {
    const sessions = this.#deps.sessions(name)
    const definition = (identity: string) => this.#deps.agents(name).find((agent) => agent.identity === identity)
    const isAgent = (identity: string) =>
      definition(identity) !== undefined || sessions.store.openByAgent(identity).length > 0
    return {
      transcripts: this.#of(sessions),
      resolve: (id) => sessions.resolve(id),
      find: (id) => sessions.store.byId(id),
      ofAgent: (identity) => {
        if (!isAgent(identity)) throw problem('agent-not-found', `there is no agent ${identity}`)
        return sessionsOfAgent(sessions, identity, definition(identity)?.scales === true)
      },
      isAgent,
      running: ({ id }) => sessions.live(id)?.liveness === 'alive',
      activity: ({ id }) => known(sessions.live(id)?.activity),
      pending: ({ id }) => sessions.live(id)?.pending?.requestId,
      attend: ({ id }) => sessions.attend(id),
      onChange: (wake) => sessions.listenAll(wake),
      whileRunning: (feed) => endingWith(feed, (end) => sessions.onEnd(end)),
      log: store.log,
    }
  }

  #of(sessions: Sessions): Transcripts {
    const known = this.#made.get(sessions)
    if (known !== undefined) return known
    const made = this.#make(sessions)
    this.#made.set(sessions, made)
    return made
  }

  #make(sessions: Sessions): Transcripts {
    const { clock, userHome } = this.#deps
    return new Transcripts({
      clock,
      encode: (frames) => toChunk(frames.join('')),
      session: (id) => sessions.store.byId(id),
      observed: ({ id }) => {
        const live = sessions.live(id)
        return {
          running: live?.liveness === 'alive',
          activity: known(live?.activity),
          pending: live?.pending === undefined ? undefined : wirePending(live.pending),
        }
      },
      listen: (id, wake) => sessions.listen(id, wake),
      directory: (id) => sessions.directory(id),
      openLog: openOutputReader,
      render: readableText,
      typed: (id, generation, range) =>
        sessions.deliveries.typed(id, generation, range).map((one) => ({ ...one, at: isoTime(one.at) })),
      lastTyped: (id, generation, offset) => sessions.deliveries.lastTyped(id, generation, offset),
      typingSince: (id) => sessions.deliveries.typingSince(id),
      userHome,
      others: (session) => othersIn(sessions.store.open(), session),
      foundConversation: (session, conversationId) => sessions.foundConversation(session, conversationId),
    })
  }
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
function sessionsOfAgent(sessions: Sessions, identity: string, scales: boolean): readonly SessionRecord[] {
  const found = sessions.store.ofAgent(identity)
  const counts = ({ state, pool, process }: SessionRecord) =>
    state !== 'closed' && (pool !== undefined || (scales && process))
  const instances = [...new Set(found.filter(counts).map(({ agent }) => agent))]
  if (instances.length > 1)
    throw problem('ambiguous-session', `${identity} has several instances: ${instances.sort().join(', ')}`)
  return found
}
