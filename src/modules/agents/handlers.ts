/** Handlers of the agents family: definitions in files, what is observed of them (sheet 04 §1). */
import type { AgentResponse, agentOperations } from '../../contract/agents.ts'
import type { PatchBody } from '../../contract/base/merge-patch.ts'
import type { SessionResponse } from '../../contract/sessions/session-model.ts'
import {
  type Configuration,
  type Edited,
  plainTable,
  type TextFiles,
  waitingHeader,
} from '../../files/configuration.ts'
import type { ConfigIssue } from '../../files/issues.ts'
import { defineHandlers, ok, type Reply } from '../../kernel/call.ts'
import { type Clock, isoTime } from '../../kernel/clock.ts'
import type { Tx } from '../../kernel/database.ts'
import type { EventDraft } from '../../kernel/event-log.ts'
import { Page } from '../../kernel/page.ts'
import { invalidField, problem } from '../../kernel/problem.ts'
import type { Store } from '../../kernel/store.ts'
import { waitForChange } from '../../kernel/waiting.ts'
import {
  type AgentFiles,
  type AgentsView,
  addAgent,
  agentRevision,
  identityOf,
  merged,
  needAgent,
  removeAgent,
  replacement,
  rewriteAgent,
  writeSuspended,
} from './definitions.ts'
import { agentDetail, agentInstance, agentRows, isBehind, placeOf, type Surroundings } from './views.ts'

/** What the family needs of the sessions of a city. */
export interface AgentSessions {
  open(options: { readonly peek: boolean }): readonly SessionResponse[]
  demand(identity: string): number | undefined
  /** Closes every session of the agent, in the write that removes it; their ids. */
  closeAll(tx: Tx, identity: string): readonly string[]
}

/** Work that an agent is to do; ids, the newest first. */
export interface AgentWork {
  /** Routed or assigned to it, and not closed. */
  readonly beads: readonly string[]
  /** Live ones that hand it their steps. */
  readonly molecules: readonly string[]
}

export interface AgentCity<View> {
  readonly store: Pick<Store, 'keys' | 'log'>
  readonly config: Configuration<View>
  readonly sessions: AgentSessions
  work(identity: string): AgentWork
}

export interface AgentHandlersDeps<View> {
  readonly files: AgentFiles<View>
  readonly clock: Clock
  /** False: the program is not installed; undefined: not known yet. */
  readonly installed: (command: string) => boolean | undefined
}

/** The parts of a call about one agent. */
interface AgentCall<View, B = unknown> {
  readonly params: { readonly agent: string }
  readonly city: AgentCity<View>
  readonly body: B
  readonly header: (name: string) => string | undefined
  readonly actor: string
}

interface RemovingCall<View> extends AgentCall<View> {
  readonly query: { readonly force?: boolean | undefined }
}

/** What a blocking read of agents waits for. */
const isRelevant = ({ type }: { readonly type: string }): boolean =>
  type.startsWith('agent.') || type.startsWith('session.') || type === 'config.reloaded'

/** Ids in the sentence of a refusal. */
const MAX_SHOWN = 5

export function createAgentHandlers<View extends AgentsView>(deps: AgentHandlersDeps<View>) {
  const { files, clock } = deps

  const around = (city: AgentCity<View>, config: View, peek = false): Surroundings<View> => ({
    files,
    config,
    sessions: city.sessions.open({ peek }),
    demand: (identity) => city.sessions.demand(identity),
    installed: deps.installed,
    now: clock.now(),
    observedAt: isoTime(clock.now()),
  })

  const answer = (
    city: AgentCity<View>,
    config: View,
    identity: string,
    status = 200,
    rejected: readonly ConfigIssue[] = [],
  ): Reply<AgentResponse> => {
    const body = agentDetail(around(city, config), needAgent(config, identity))
    return { status, body, headers: { ...headers(city, body.revision), ...waitingHeader(rejected) } }
  }
  const headers = ({ store }: AgentCity<View>, tag: string) => ({
    ETag: `"${tag}"`,
    'X-SVC-Index': String(store.log.head),
  })

  const get = ({ params, city }: AgentCall<View>): Reply<AgentResponse> => {
    const config = city.config.current()
    const instance = agentInstance(around(city, config), params.agent)
    if (instance === undefined) return answer(city, config, params.agent)
    return ok(instance, headers(city, instance.revision))
  }

  const edit = async (
    { params, city, header, actor }: AgentCall<View>,
    change: (edited: TextFiles, config: View, identity: string) => void,
    events: (outcome: Edited<View, void>, identity: string) => readonly EventDraft[],
    waits?: 'drafted',
  ): Promise<Reply<AgentResponse>> => {
    const identity = params.agent
    const outcome = await city.config.edit({
      ifMatch: header('if-match'),
      etag: (config) => agentRevision(files, config, identity),
      actor,
      change: (edited, config) => change(edited, config, identity),
      events: (result) => events(result, identity),
      ...(waits === undefined ? {} : { waits }),
    })
    return answer(city, outcome.config, identity, 200, outcome.rejected)
  }

  const updated = ({ config, previous }: Edited<View, void>, identity: string): readonly EventDraft[] => {
    const changed = changedFields(
      files.declaration(previous, identity)?.fields,
      files.declaration(config, identity)?.fields,
    )
    return changed.length === 0 ? [] : [agentEvent('agent.updated', identity, changed)]
  }

  const replace = (call: AgentCall<View, object>) =>
    edit(
      call,
      (edited, config, identity) => rewriteAgent(files, config, edited, identity, replacement(plainTable(call.body))),
      updated,
      'drafted',
    )

  const patch = (call: AgentCall<View, PatchBody>) =>
    edit(
      call,
      (edited, config, identity) => rewriteAgent(files, config, edited, identity, merged(call.body)),
      updated,
      'drafted',
    )

  const setSuspended = async (call: AgentCall<View>, suspended: boolean) => {
    const { city } = call
    const current = city.config.current()
    const identity = call.params.agent
    if (needAgent(current, identity).suspended === suspended) return answer(city, current, identity)
    return edit(
      call,
      (edited, config) => writeSuspended(files, config, edited, identity, suspended),
      ({ previous, config }) =>
        needAgent(previous, identity).suspended === needAgent(config, identity).suspended
          ? []
          : [agentEvent(suspended ? 'agent.suspended' : 'agent.resumed', identity, ['suspended'])],
    )
  }

  const remove = async ({ params, query, city, header, actor }: RemovingCall<View>) => {
    const identity = params.agent
    let closed: readonly string[] = []
    const { config } = await city.config.edit({
      ifMatch: header('if-match'),
      etag: (current) => agentRevision(files, current, identity),
      actor,
      referrers: (current) => files.referrers(current, identity),
      change: (edited, current) => {
        removeAgent(files, current, edited, identity)
        if (query.force !== true) refuseAwaited(identity, city.work(identity))
      },
      events: () => [agentEvent('agent.deleted', identity)],
      alsoWrite: (tx) => {
        closed = city.sessions.closeAll(tx, identity)
      },
    })
    return ok(
      { status: 'deleted' as const, name: identity, closed: [...closed], revision: config.revision },
      headers(city, config.revision),
    )
  }

  return defineHandlers<typeof agentOperations, AgentCity<View>>({
    'list-agents': async (call) => {
      const { query, signal } = call
      await waitForChange(call.city.store.log, query, clock, signal, isRelevant)
      const { city } = call
      const index = String(city.store.log.head)
      const config = city.config.current()
      if (query.rig !== undefined && !config.rigs.some(({ name }) => name === query.rig))
        throw problem('rig-not-found', `there is no rig ${query.rig}`)
      const surroundings = around(city, config, query.peek === true)
      const items = [...config.agents]
        .sort((a, b) => (a.identity < b.identity ? -1 : 1))
        .flatMap((agent) => agentRows(surroundings, agent))
        .filter((row) => query.rig === undefined || row.rig === query.rig)
        .filter((row) => query.pool === undefined || row.pool === query.pool)
        .filter((row) => query.running === undefined || row.running === query.running)
      const headers = { ETag: `"${config.revision}"`, 'X-SVC-Index': index }
      const page = new Page('agents', ['string', 'string'], query)
      const { after } = page
      const rest = after === undefined ? items : items.filter((row) => isBehind(row, after))
      return ok({ ...page.of(rest, placeOf), total: items.length }, headers)
    },

    'create-agent': async ({ body, header, claim, city, actor }) => {
      const { name, dir = '', ...fields } = body
      const identity = identityOf({ name, dir })
      if (body.scope === 'rig' && dir === '' && city.config.current().rigs.length === 0)
        throw invalidField('body.scope', 'the city has no rig that it could be in', 'rig')
      // By its whole identity: a pack may bring an agent whose own name is the same.
      const made = (config: View) =>
        config.agents.find(
          (agent) => agent.identity === identityOf({ name, dir: agent.dir }) && placed(agent, dir, body.scope),
        )
      let rejected: readonly ConfigIssue[] = []
      const created = await city.store.keys.once(claim, async () => {
        // Who repeats the request gets this very answer, with the time at which it was true.
        let reply: Reply<AgentResponse> | undefined
        const { config, rejected: left } = await city.config.edit({
          waits: 'drafted',
          ifMatch: header('if-match'),
          actor,
          claim,
          reply: (outcome) => {
            reply = answer(city, outcome.config, made(outcome.config)?.identity ?? identity, 201)
            return reply
          },
          change: (edited, config) => addAgent(files, config, edited, { name, dir }, plainTable(fields)),
          events: (outcome) => [agentEvent('agent.created', made(outcome.config)?.identity ?? identity)],
        })
        rejected = left
        return reply ?? answer(city, config, made(config)?.identity ?? identity, 201)
      })
      // A stored answer is a body without its headers.
      return {
        status: created.status,
        body: created.body,
        headers: { ...headers(city, created.body.revision), ...waitingHeader(rejected) },
      }
    },

    'get-agent': get,
    'replace-agent': replace,
    'patch-agent': patch,
    'delete-agent': remove,
    'suspend-agent': (call) => setSuspended(call, true),
    'resume-agent': (call) => setSuspended(call, false),
  })
}

/** Refuses to remove an agent that work waits for: nobody else would take it. */
function refuseAwaited(identity: string, { beads, molecules }: AgentWork): void {
  const waiting = [
    ...molecules.map((id) => ({ id, message: `the molecule ${id} hands it its steps` })),
    ...beads.map((id) => ({ id, message: `${id} is routed or assigned to it and is not closed` })),
  ]
  if (waiting.length === 0) return
  const named = waiting.slice(0, MAX_SHOWN).map(({ id }) => id)
  const more = waiting.length > named.length ? ' and more' : ''
  throw problem(
    'still-referenced',
    `work waits for the agent ${identity}: ${named.join(', ')}${more}; \`svcctl agent delete ${identity} --force\` removes it all the same, and the work stays`,
    { errors: waiting.map(({ id, message }) => ({ location: 'path.agent', message, value: id })) },
  )
}

const placed = (agent: { readonly dir: string }, dir: string, scope: string | undefined): boolean =>
  scope === 'rig' && dir === '' ? agent.dir !== '' : agent.dir === dir

const agentEvent = (
  type: 'agent.created' | 'agent.updated' | 'agent.deleted' | 'agent.suspended' | 'agent.resumed',
  identity: string,
  changed: readonly string[] = [],
): EventDraft => ({ type, actor: 'api', subject: identity, payload: { agent: identity, changed: [...changed] } })

/** Fields that differ, sorted. */
function changedFields(before: object = {}, after: object = {}): string[] {
  const old = new Map<string, unknown>(Object.entries(before))
  const fresh = new Map<string, unknown>(Object.entries(after))
  return [...new Set([...old.keys(), ...fresh.keys()])]
    .filter((key) => JSON.stringify(old.get(key)) !== JSON.stringify(fresh.get(key)))
    .sort()
}
