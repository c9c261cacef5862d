/** Handlers of the agents family: definitions in files, what is observed of them (sheet 04 §1). */
import type {
  AgentResponse,
  createAgent,
  deleteAgent,
  getAgent,
  listAgents,
  patchAgent,
  replaceAgent,
  suspendAgent,
} from '../../contract/agents.ts'
import type { PatchBody } from '../../contract/base/merge-patch.ts'
import { DEFAULT_LIMIT } from '../../contract/base/paging.ts'
import type { SessionResponse } from '../../contract/session-model.ts'
import { type Handler, ok, type Reply } from '../../kernel/call.ts'
import { type Clock, isoTime } from '../../kernel/clock.ts'
import { type Configuration, type Edited, plainTable, type TextFiles } from '../../kernel/configuration.ts'
import { formatPageToken, parsePageToken } from '../../kernel/cursor.ts'
import type { Tx } from '../../kernel/database.ts'
import type { EventDraft } from '../../kernel/event-log.ts'
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

export interface AgentCity<View> {
  readonly store: Pick<Store, 'keys' | 'log'>
  readonly config: Configuration<View>
  readonly sessions: AgentSessions
}

export interface AgentHandlersDeps<View> {
  /** The spec's 404 for a city that is not running. */
  readonly city: (name: string) => AgentCity<View>
  readonly files: AgentFiles<View>
  readonly clock: Clock
  /** False: the program is not installed; undefined: not known yet. */
  readonly installed: (command: string) => boolean | undefined
}

interface Named {
  readonly cityName: string
  readonly agent: string
}

/** What a blocking read of agents waits for. */
const isRelevant = ({ type }: { readonly type: string }): boolean =>
  type.startsWith('agent.') || type.startsWith('session.') || type === 'config.reloaded'

export function createAgentHandlers<View extends AgentsView>(deps: AgentHandlersDeps<View>) {
  const { city, files, clock } = deps

  const around = (found: AgentCity<View>, config: View, peek = false): Surroundings<View> => ({
    files,
    config,
    sessions: found.sessions.open({ peek }),
    demand: (identity) => found.sessions.demand(identity),
    installed: deps.installed,
    now: clock.now(),
    observedAt: isoTime(clock.now()),
  })

  const answer = (found: AgentCity<View>, config: View, identity: string, status = 200): Reply<AgentResponse> => {
    const body = agentDetail(around(found, config), needAgent(config, identity))
    return { status, body, headers: headers(found, body.revision) }
  }
  const headers = ({ store }: AgentCity<View>, tag: string) => ({
    ETag: `"${tag}"`,
    'X-SVC-Index': String(store.log.head),
  })

  const list: Handler<typeof listAgents> = async ({ params, query, signal }) => {
    await waitForChange(city(params.cityName).store.log, query, clock, signal, isRelevant)
    const found = city(params.cityName)
    const index = String(found.store.log.head)
    const config = found.config.current()
    if (query.rig !== undefined && !config.rigs.some(({ name }) => name === query.rig))
      throw problem('rig-not-found', `there is no rig ${query.rig}`)
    const surroundings = around(found, config, query.peek === true)
    const items = [...config.agents]
      .sort((a, b) => (a.identity < b.identity ? -1 : 1))
      .flatMap((agent) => agentRows(surroundings, agent))
      .filter((row) => query.rig === undefined || row.rig === query.rig)
      .filter((row) => query.pool === undefined || row.pool === query.pool)
      .filter((row) => query.running === undefined || row.running === query.running)
    const headers = { ETag: `"${config.revision}"`, 'X-SVC-Index': index }
    return ok({ ...pageOf(items, query.cursor, query.limit || DEFAULT_LIMIT), total: items.length }, headers)
  }

  const create: Handler<typeof createAgent> = async ({ params, body, header, claim }) => {
    const found = city(params.cityName)
    const { name, dir = '', ...fields } = body
    const identity = identityOf({ name, dir })
    if (body.scope === 'rig' && dir === '' && found.config.current().rigs.length === 0)
      throw invalidField('body.scope', 'the city has no rig that it could be in', 'rig')
    const made = (config: View) =>
      config.agents.find((agent) => agent.base_name === name && placed(agent, dir, body.scope))
    const created = await found.store.keys.once(claim, async () => {
      // Who repeats the request gets this very answer, with the time at which it was true.
      let reply: Reply<AgentResponse> | undefined
      const { config } = await found.config.edit({
        ifMatch: header('if-match'),
        actor: 'api',
        claim,
        reply: (outcome) => {
          reply = answer(found, outcome.config, made(outcome.config)?.identity ?? identity, 201)
          return reply
        },
        change: (edited) => addAgent(files, found.config.current(), edited, { name, dir }, plainTable(fields)),
        events: (outcome) => [agentEvent('agent.created', made(outcome.config)?.identity ?? identity)],
      })
      return reply ?? answer(found, config, made(config)?.identity ?? identity, 201)
    })
    // A stored answer is a body without its headers.
    return { status: created.status, body: created.body, headers: headers(found, created.body.revision) }
  }

  const get = (params: Named): Reply<AgentResponse> => {
    const found = city(params.cityName)
    const config = found.config.current()
    const instance = agentInstance(around(found, config), params.agent)
    if (instance === undefined) return answer(found, config, params.agent)
    return ok(instance, headers(found, instance.revision))
  }

  const edit = async (
    params: Named,
    ifMatch: string | undefined,
    change: (edited: TextFiles, config: View, identity: string) => void,
    events: (outcome: Edited<View, void>, identity: string) => readonly EventDraft[],
  ): Promise<Reply<AgentResponse>> => {
    const found = city(params.cityName)
    const identity = params.agent
    const outcome = await found.config.edit({
      ifMatch,
      etag: (config) => agentRevision(files, config, identity),
      actor: 'api',
      change: (edited) => change(edited, found.config.current(), identity),
      events: (result) => events(result, identity),
    })
    return answer(found, outcome.config, identity)
  }

  const updated = ({ config, previous }: Edited<View, void>, identity: string): readonly EventDraft[] => {
    const changed = changedFields(
      files.declaration(previous, identity)?.fields,
      files.declaration(config, identity)?.fields,
    )
    return changed.length === 0 ? [] : [agentEvent('agent.updated', identity, changed)]
  }

  const replace = (params: Named, body: object, ifMatch: string | undefined) =>
    edit(
      params,
      ifMatch,
      (edited, config, identity) => rewriteAgent(files, config, edited, identity, replacement(plainTable(body))),
      updated,
    )

  const patch = (params: Named, body: PatchBody, ifMatch: string | undefined) =>
    edit(
      params,
      ifMatch,
      (edited, config, identity) => rewriteAgent(files, config, edited, identity, merged(body)),
      updated,
    )

  const setSuspended = async (params: Named, suspended: boolean) => {
    const found = city(params.cityName)
    const current = found.config.current()
    const identity = params.agent
    if (needAgent(current, identity).suspended === suspended) return answer(found, current, identity)
    return edit(
      params,
      undefined,
      (edited, config) => writeSuspended(files, config, edited, identity, suspended),
      ({ previous, config }) =>
        needAgent(previous, identity).suspended === needAgent(config, identity).suspended
          ? []
          : [agentEvent(suspended ? 'agent.suspended' : 'agent.resumed', identity, ['suspended'])],
    )
  }

  const remove = async (params: Named, ifMatch: string | undefined) => {
    const found = city(params.cityName)
    const identity = params.agent
    let closed: readonly string[] = []
    const { config } = await found.config.edit({
      ifMatch,
      etag: (current) => agentRevision(files, current, identity),
      actor: 'api',
      referrers: (current) => files.referrers(current, identity),
      change: (edited) => removeAgent(files, found.config.current(), edited, identity),
      events: () => [agentEvent('agent.deleted', identity)],
      alsoWrite: (tx) => {
        closed = found.sessions.closeAll(tx, identity)
      },
    })
    return ok(
      { status: 'deleted' as const, name: identity, closed: [...closed], revision: config.revision },
      headers(found, config.revision),
    )
  }

  const getOne: Handler<typeof getAgent> = ({ params }) => get(params)
  const replaceOne: Handler<typeof replaceAgent> = ({ params, body, header }) =>
    replace(params, body, header('if-match'))
  const patchOne: Handler<typeof patchAgent> = ({ params, body, header }) => patch(params, body, header('if-match'))
  const removeOne: Handler<typeof deleteAgent> = ({ params, header }) => remove(params, header('if-match'))
  const suspendOne: Handler<typeof suspendAgent> = ({ params }) => setSuspended(params, true)

  return {
    'list-agents': list,
    'create-agent': create,
    'get-agent': getOne,
    'replace-agent': replaceOne,
    'patch-agent': patchOne,
    'delete-agent': removeOne,
    'suspend-agent': suspendOne,
    'resume-agent': ({ params }: { params: Named }) => setSuspended(params, false),
  }
}

/** So many behind the cursor. */
function pageOf(items: readonly AgentResponse[], cursor: string | undefined, limit: number) {
  const place = cursor === undefined ? undefined : parsePageToken('agents', cursor)
  const behind: readonly [string, string] = [String(place?.[0] ?? ''), String(place?.[1] ?? '')]
  const rest = place === undefined ? items : items.filter((row) => isBehind(row, behind))
  const page = rest.slice(0, limit)
  const last = page.at(-1)
  const next = last === undefined || rest.length <= limit ? undefined : formatPageToken('agents', placeOf(last))
  return { items: page, ...(next === undefined ? {} : { next_cursor: next }) }
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
