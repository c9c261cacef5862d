/** Where sessions meet cities: runtimes, screens, configuration, prompts and work of one city each. */
import { join } from 'node:path'
import type { RuntimeName } from '../../contract/sessions/session-model.ts'
import { findPreset, interruptOf } from '../../harnesses/all.ts'
import type { Agent } from '../../kernel/caller.ts'
import type { Clock } from '../../kernel/clock.ts'
import { randomHex } from '../../kernel/ids.ts'
import { beads } from '../../modules/beads/family.ts'
import { beadInProgress, holdsWork, openAmong } from '../../modules/beads/store/held.ts'
import { countDemand } from '../../modules/beads/store/ready.ts'
import { candidates } from '../../modules/beads/work/hook.ts'
import { fingerprintsOf } from '../../modules/config/compose/drift.ts'
import type { EffectiveConfig } from '../../modules/config/compose/effective.ts'
import type { ConfigService } from '../../modules/config/edit/service.ts'
import { config as configuration } from '../../modules/config/family.ts'
import { renderPrompt } from '../../modules/config/prompt/prompt.ts'
import { filterFacts, promptData } from '../../modules/config/prompt/prompt-data.ts'
import { renderTemplate } from '../../modules/config/prompt/templates.ts'
import { messaging } from '../../modules/messaging/family.ts'
import { type SessionContext, sessions } from '../../modules/sessions/family.ts'
import type { Sessions } from '../../modules/sessions/plan/service.ts'
import { accessHash } from '../../modules/sessions/record/access.ts'
import type { AgentView, ProviderView } from '../../modules/sessions/record/config-view.ts'
import type { WorkPort } from '../../modules/sessions/record/ports.ts'
import type { Fingerprints, SessionRecord } from '../../modules/sessions/record/record.ts'
import { worktrees } from '../../modules/worktrees/family.ts'
import { createAcpRuntime } from '../../runtimes/acp.ts'
import { killTree, listTokens, tokensIn } from '../../runtimes/process/process-tree.ts'
import type { Runtime } from '../../runtimes/process/runtime.ts'
import { openSocketDirectory } from '../../runtimes/socket-directory.ts'
import { createSubprocessRuntime } from '../../runtimes/subprocess.ts'
import { mailboxOf } from './addresses.ts'
import { digestPort } from './digests.ts'
import { isRigSuspended } from './objects.ts'
import { endOldTerminals } from './old-terminals.ts'
import type { Running } from './running.ts'
import { lastOutput, observeTerminal } from './terminals.ts'
import { insightsOf, saidIn } from './transcripts.ts'
import { usagePort } from './usage.ts'

/** `svcctl` of the package that runs here: `bin` of its package.json, or the script of a checkout. */
export const BIN = join(import.meta.dirname, '..', '..', '..')

export function sessionContext(city: Running): SessionContext {
  const { name, path, store, record, launchAnswering, host } = city
  const { clock, log, ids, env, settings, random } = host
  const { home, auth } = settings
  const { config } = configuration.of(city)
  const subprocess = createSubprocessRuntime({ clock, env, home })
  const acp = createAcpRuntime({ clock, env, home })
  const sockets = openSocketDirectory(path, { env, home })
  if (sockets.instead !== undefined) log.warn({ city: name, why: sockets.instead }, 'sockets of agents moved')
  endOldTerminals(store.db, path)
  const facts = () => filterFacts(config.current())
  return {
    city: { name, path },
    store,
    clock,
    log,
    ids,
    random: randomHex,
    chance: random,
    env,
    home,
    bin: BIN,
    auth,
    accessEnded: (id) => host.revoked((one) => one.kind === 'agent' && one.city === name && one.session === id),
    config: () => config.current(),
    provider: (provider) => providerOf(config, provider),
    interruptOf,
    prompt: (agent, workDir) => promptOf(config, agent, workDir),
    fingerprints: (agent) => fingerprintsIn(config, agent),
    render: (template, values) => renderTemplate(template, values, new Map(), facts()),
    runtimes: new Map<RuntimeName, Runtime>([
      ['subprocess', subprocess],
      ['acp', acp],
    ]),
    terminal: (process, session, launch) => observeTerminal(process, session, launch, clock),
    lastOutput,
    work: workOf(city),
    worktrees: worktrees.of(city).worktrees,
    chat: {
      closed: (tx, session) => messaging.find(city)?.routing.sessionClosed(tx, session.id, mailboxOf(session)),
    },
    suspended: {
      city: () => record.suspended,
      rig: (rig) => isRigSuspended(city, rig),
    },
    orphans: {
      list: async () => tokensOf(path).map(({ session_id: sessionId, token }) => ({ sessionId, token })),
      kill: (token) => endAll(token, clock),
    },
    insight: insightsOf(city),
    usage: usagePort(city),
    digests: digestPort(city),
    opened: [subprocess, acp],
    launch: launchAnswering,
    said: (all) => saidIn(city, all),
    onReconfigured: (listener) => config.onChange(({ soft }) => listener(soft)),
  }
}

/** Worktrees are there before the sessions that work in them. */
export function worktreeContext(city: Running): Parameters<typeof worktrees.open>[1] {
  const { name, path, store, host } = city
  const { clock, log, env } = host
  return {
    city: { name, path },
    store,
    clock,
    log,
    env,
    git: host.repositories,
    disposable: () => configuration.of(city).config.current().worktrees?.disposable ?? [],
    random: randomHex,
    isOpen: (id) => {
      const state = sessions.find(city)?.sessions.store.byId(id)?.state
      return state !== undefined && state !== 'closed'
    },
    kill: (token) => endAll(token, clock),
  }
}

async function endAll(token: string, clock: Clock): Promise<void> {
  const left = await killTree({ token }, clock)
  if (left.length > 0) throw new Error(`processes ${left.join(', ')} could not be ended`)
}

/** The directory of a city is gone, and the record of its agents and commands with it: what still runs is ended. */
export async function endForsaken({ path, host }: Running): Promise<void> {
  await Promise.all([...tokensIn(path)].map((token) => killTree({ token }, host.clock)))
}

const tokensOf = (cityPath: string) => listTokens().filter(({ city_path: of }) => of === cityPath)

/** Whose token it is, of the agents that may run in these cities. */
export function agentWith(cities: readonly Running[], token: string): Agent | undefined {
  const hash = accessHash(token)
  for (const city of cities) {
    const all = sessions.find(city)?.sessions
    const session = all?.store.withAccess(hash)
    if (all !== undefined && session !== undefined) return agentOf(city.name, session, all)
  }
  return undefined
}

const agentOf = (city: string, session: SessionRecord, all: Sessions): Agent => ({
  kind: 'agent',
  city,
  session: session.id,
  name: session.agent,
  api: session.access_api ?? 'work',
  isSelf: (handle) => all.isMeant(handle, session.id),
  goesBy: (name) => name === session.agent || name === session.template || all.isMeant(name, session.id),
})

/** Milliseconds since the slowest of the reconcilers looked at its sessions. */
export const slowestPatrolMs = (cities: readonly Running[]): number =>
  Math.max(0, ...cities.map((city) => sessions.find(city)?.sessions.patrolAgeMs ?? 0))

function workOf(city: Running): WorkPort {
  const { db } = city.store
  const claims = () => beads.of(city).claims
  return {
    assigned: (session) => holdsWork(db, namesOf(session)),
    assignedTo: (owner) => holdsWork(db, [owner]),
    active: ({ id }) => beadInProgress(db, id),
    demand: (agent) => countDemand(db, agent, city.host.clock.now()),
    offered: ({ id, agent }) => candidates(beads.of(city), { agent, session_id: id }, city.host.clock.now()),
    renew: async (sessions) => {
      const held = sessions.filter(({ id }) => beadInProgress(db, id) !== undefined)
      if (held.length === 0) return
      await db.write((tx) => {
        for (const { id } of held) claims().renewForSession(tx, id)
      })
    },
    release: (tx, { id }, reason) => claims().releaseForSession(tx, id, reason),
    beads: (ids) => openAmong(db, ids),
  }
}

const NO_FINGERPRINTS: Fingerprints = { reapply: '', launch: '', provision: '', prompt: '' }
/** They are asked for at every look at a session, and change with the configuration only. */
const fingerprints = new WeakMap<EffectiveConfig, Map<string, Fingerprints>>()

function fingerprintsIn(config: ConfigService, agent: AgentView): Fingerprints {
  const current = config.current()
  const known = fingerprints.get(current) ?? new Map<string, Fingerprints>()
  fingerprints.set(current, known)
  const cached = known.get(agent.identity)
  if (cached !== undefined) return cached
  const found = current.agents.find(({ identity }) => identity === agent.identity)
  if (found === undefined) return NO_FINGERPRINTS
  const made = { ...fingerprintsOf(current, found), prompt: promptOf(config, agent, '').sha256 }
  known.set(agent.identity, made)
  return made
}

/** Every name under which work of a session may be stored. */
export const namesOf = ({ id, agent, alias, session_name: name }: SessionRecord): readonly string[] => [
  ...new Set([agent, id, name, ...(alias === undefined ? [] : [alias])]),
]

/** The provider as composed, else the built-in one; with the preset that it comes from, which knows its screen. */
function providerOf(config: ConfigService, name: string): { spec: ProviderView; family: string } | undefined {
  const { providers } = config.current()
  const declared = Object.hasOwn(providers, name) ? providers[name] : undefined
  if (declared === undefined) {
    const preset = findPreset(name)
    return preset === undefined ? undefined : { spec: preset, family: name }
  }
  const builtin = declared.chain.findLast((link) => link.startsWith('builtin:'))
  return { spec: declared.resolved, family: builtin?.slice('builtin:'.length) ?? name }
}

/** Prompts hang on files that may have changed: what is hashed is what a start would say. */
function promptOf(config: ConfigService, agent: AgentView, workDir: string) {
  const current = config.current()
  const found = current.agents.find(({ identity }) => identity === agent.identity)
  if (found === undefined) return { text: '', sha256: '' }
  const data = promptData(current, found)
  const values = workDir === '' ? data : { ...data, WorkDir: workDir }
  return renderPrompt(current, found, values, filterFacts(current), config.files)
}
