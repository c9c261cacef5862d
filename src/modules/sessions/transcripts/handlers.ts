/** Handlers of what sessions and agents said: pages and streams (sheet 04 §§1.6, 5). */

import type { agentOutputOperations } from '../../../contract/agents.ts'
import { cut } from '../../../contract/base/text.ts'
import type {
  AgentOutputResponse,
  SessionTranscriptResponse,
  TranscriptHistory,
} from '../../../contract/sessions/session-transcript.ts'
import type { sessionOperations } from '../../../contract/sessions/sessions.ts'
import { type Handlers, ok } from '../../../kernel/call.ts'
import { type Clock, isoTime } from '../../../kernel/clock.ts'
import type { Feed } from '../../../kernel/feed.ts'
import { problem } from '../../../kernel/problem.ts'
import { frame } from '../../../kernel/streams/frame.ts'
import type { SessionRecord } from '../record/record.ts'
import { agentFeed } from './agent-stream.ts'
import type { ByteLog } from './entries.ts'
import { fileLog, findSubAgents, readSubAgent } from './files.ts'
import { maskedLog } from './masked-log.ts'
import { type PageQuery, readPage } from './pages.ts'
import type { Transcripts } from './service.ts'
import { type Encode, type FollowOptions, type FrameInput, type StreamFormat, sessionFeed } from './stream.ts'
import { formatPlace, type Page, type Place, parsePlace, splitResume, type Transcript } from './transcript.ts'
import { type About, bodyOf, historyOf, isShown, pagination, turnsOf, type ViewOptions } from './views.ts'

export interface TranscriptCity {
  readonly transcripts: Transcripts
  /** The session that `{id}` in a path means, closed ones too. */
  readonly resolve: (id: string) => SessionRecord
  readonly find: (id: string) => SessionRecord | undefined
  /** Sessions of the agent, newest first, closed ones too; refuses what is no agent, and a template with several instances. */
  readonly ofAgent: (identity: string) => readonly SessionRecord[]
  /** True while the agent is defined. */
  readonly isAgent: (identity: string) => boolean
  readonly running: (session: SessionRecord) => boolean
  readonly activity: (session: SessionRecord) => 'idle' | 'in-turn' | undefined
  readonly pending: (session: SessionRecord) => string | undefined
  readonly attend: (session: SessionRecord) => () => void
  /** Calls when sessions of the city come, go or change, or the city's agents do. */
  readonly onChange: (wake: () => void) => () => void
  /** Frames as they go onto the socket. */
  readonly encode: Encode
  /** What the terminal of a run wrote, by its directory. */
  readonly openLog: (directory: string) => ByteLog
  /** The feed, which ends with this run of the city. */
  readonly whileRunning: (feed: Feed) => Feed
}

const aboutOf = ({ id, template, provider }: SessionRecord): About => ({ id, template, provider })

type SpokenOperations = readonly [...typeof sessionOperations, ...typeof agentOutputOperations]

interface OutputCall {
  readonly params: { readonly agent: string }
  readonly query: PageQuery
  readonly city: TranscriptCity
}

interface FollowCall {
  readonly params: { readonly agent: string }
  readonly query: { readonly after_cursor?: string }
  readonly header: (name: string) => string | undefined
  readonly city: TranscriptCity
}

export function createTranscriptHandlers({ clock }: { readonly clock: Clock }) {
  const history = (found: TranscriptCity, session: SessionRecord, page: Page, place: Place) =>
    historyOf(page, {
      session: session.id,
      conversation: session.conversation_id,
      generation: session.generation,
      observedAt: isoTime(clock.now()),
      activity: found.activity(session),
      pending: found.pending(session),
      token: formatPlace(place),
    })

  const output = async ({ params, query, city }: OutputCall) => {
    const { transcripts, ofAgent } = city
    const identity = params.agent
    const [session] = ofAgent(identity)
    if (session === undefined) return ok({ agent: identity, format: 'text' as const, turns: [] })
    const found = await transcripts.of(session)
    const page = await readPage(found, query, (item) => turnsOf(item, false).length > 0)
    return ok({
      ...agentBody(identity, session, page.items, found.text),
      pagination: pagination(page, await found.dropped(page)),
    })
  }

  const follow = async ({ params, query, header, city }: FollowCall) => {
    const { transcripts, ofAgent, isAgent, running, onChange, whileRunning } = city
    const identity = params.agent
    const [session] = ofAgent(identity)
    const parsed = parseAgentCursor(header('last-event-id') || query.after_cursor)
    const resumed = parsed === undefined ? undefined : ofAgent(identity).find(({ id }) => id === parsed.session)
    // Where the place is gone, its session is told anew.
    const there =
      resumed !== undefined && parsed !== undefined && (await (await transcripts.of(resumed)).has(parsed.place))
    const feed = agentFeed({
      current: () => (isAgent(identity) ? ofAgent(identity)[0] : undefined),
      exists: () => isAgent(identity),
      tail: (one) => transcripts.tail(one),
      format: (one) => agentFormat(identity, one),
      onChange,
      clock,
      resume:
        resumed === undefined
          ? undefined
          : { session: resumed, place: there ? parsed?.place : undefined, question: parsed?.question },
      headers: session !== undefined && running(session) ? {} : { 'SVC-Agent-Status': 'stopped' },
    })
    return whileRunning(feed)
  }

  const subAgents = (transcripts: Transcripts, session: SessionRecord) =>
    findSubAgents(transcripts.harnessQuery(session))

  return {
    'get-session-transcript': async ({ params, query, city: inCity }) => {
      const session = inCity.resolve(params.id)
      const options: ViewOptions = { format: query.format ?? 'conversation', thinking: query.include_thinking === true }
      const found = await inCity.transcripts.of(session, options.format === 'raw')
      const page = await readPage(found, query, (item) => isShown(item, options))
      const body: SessionTranscriptResponse = {
        ...aboutOf(session),
        ...bodyOf(page.items, options, found.text),
        pagination: pagination(page, await found.dropped(page)),
      }
      if (options.format !== 'structured') return ok(body)
      const place = page.place ?? { chapter: 0, offset: 0, sub: 0 }
      return ok({
        ...body,
        schema_version: 'session.structured.v1',
        operation: 'snapshot',
        history: history(inCity, session, page, place),
      })
    },

    'stream-session': async ({ params, query, header, city: found }) => {
      const { transcripts, resolve, running, attend, whileRunning } = found
      const session = resolve(params.id)
      const resumed = await resumePoint(header('last-event-id') || query.after_cursor, () => transcripts.of(session))
      const options: ViewOptions = { format: query.format ?? 'conversation', thinking: query.include_thinking === true }
      const feed = sessionFeed(transcripts.tail(session), {
        format: formatOf(aboutOf(session), options, ({ page, place }) =>
          history(found, found.find(session.id) ?? session, page, place),
        ),
        ...resumed,
        attend: query.attended === true ? () => attend(session) : undefined,
        headers: {
          'SVC-Session-State': session.state,
          ...(running(session) ? {} : { 'SVC-Session-Status': 'stopped' }),
        },
      })
      return whileRunning(feed)
    },

    'get-agent-output': output,
    'stream-agent-output': follow,

    'list-session-agents': async ({ params, city }) => {
      const { transcripts, resolve } = city
      const found = await subAgents(transcripts, resolve(params.id))
      return ok({ agents: found.map(({ agent_id, parent_tool_use_id }) => ({ agent_id, parent_tool_use_id })) })
    },

    'get-session-agent': async ({ params, city }) => {
      const { transcripts, resolve, running } = city
      const session = resolve(params.id)
      const found = (await subAgents(transcripts, session)).find(({ agent_id }) => agent_id === params.agentId)
      if (found === undefined)
        throw problem('agent-not-found', `session ${session.id} has no sub-agent ${params.agentId}`)
      const { messages, ended } = await readSubAgent(maskedLog(fileLog(found.path), session))
      return ok({
        messages,
        status: ended ? ('completed' as const) : running(session) ? ('running' as const) : ('failed' as const),
      })
    },
  } satisfies Partial<Handlers<SpokenOperations, TranscriptCity>>
}

/** Where the client goes on; a cursor of ours whose place is gone begins anew. */
async function resumePoint(
  cursor: string | undefined,
  open: () => Promise<Transcript>,
): Promise<Pick<FollowOptions, 'after' | 'lost' | 'question'>> {
  if (cursor === undefined || cursor === '') return { after: undefined, lost: undefined, question: undefined }
  const { place: at, question } = splitResume(cursor)
  const place = parsePlace(at)
  if (place === undefined) throw problem('invalid-cursor', `not a place in a transcript: ${cut(cursor, 100)}`)
  const there = await (await open()).has(place)
  return there
    ? { after: place, lost: undefined, question }
    : { after: undefined, lost: 'cursor_invalidated', question }
}

const EVENTS = { conversation: 'turn', raw: 'message', structured: 'structured' } as const

type HistoryAt = (at: { readonly page: Page; readonly place: Place }) => TranscriptHistory

function formatOf(about: About, options: ViewOptions, history: HistoryAt): StreamFormat {
  const { format, thinking } = options
  return {
    key: `${format} ${thinking}`,
    id: formatPlace,
    upsert: format === 'structured',
    shows: (item) => isShown(item, options),
    frame: (input) => {
      const { items, place, text, snapshot } = input
      const body: SessionTranscriptResponse = {
        ...about,
        ...bodyOf(items, options, text),
        ...(format === 'structured' ? structuredParts(input, history) : {}),
        ...(snapshot === undefined ? {} : { pagination: pagination(snapshot.page, snapshot.droppedBytes) }),
      }
      return frame(EVENTS[format], body, formatPlace(place))
    },
  }
}

/** What the structured format says beside its messages; of the whole only where it tells the whole. */
function structuredParts({ place, snapshot }: FrameInput, history: HistoryAt): Partial<SessionTranscriptResponse> {
  const schema = { schema_version: 'session.structured.v1' } as const
  if (snapshot === undefined) return { ...schema, operation: 'upsert' }
  const told = { ...schema, history: history({ page: snapshot.page, place }) }
  if (snapshot.reset === undefined) return { ...told, operation: 'snapshot' }
  return { ...told, operation: 'reset', reset_reason: snapshot.reset }
}

function agentBody(agent: string, session: SessionRecord, items: Page['items'], text: boolean): AgentOutputResponse {
  return {
    agent,
    session_id: session.id,
    format: text ? 'text' : 'conversation',
    turns: items.flatMap((item) => turnsOf(item, false)),
  }
}

function agentFormat(agent: string, session: SessionRecord): StreamFormat {
  const id = (place: Place) => `${session.id}/${formatPlace(place)}`
  return {
    key: `agent ${agent}`,
    id,
    upsert: false,
    shows: (item) => turnsOf(item, false).length > 0,
    frame: ({ items, place, text, snapshot }) => {
      const paged = snapshot === undefined ? {} : { pagination: pagination(snapshot.page, snapshot.droppedBytes) }
      const body = { ...agentBody(agent, session, items, text), ...paged }
      return frame('turn', body, id(place))
    },
  }
}

interface AgentCursor {
  readonly session: string
  readonly place: Place
  readonly question: string | undefined
}

function parseAgentCursor(cursor: string | undefined): AgentCursor | undefined {
  if (cursor === undefined || cursor === '') return undefined
  const { place: named, question } = splitResume(cursor)
  const [session = '', at = ''] = named.split('/')
  const place = parsePlace(at)
  if (place === undefined) throw problem('invalid-cursor', `not a place in the output of an agent: ${cut(cursor, 100)}`)
  return { session, place, question }
}
