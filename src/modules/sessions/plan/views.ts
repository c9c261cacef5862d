/** A session as clients see it: its record, and what is observed of it. */

import type { SessionResponse } from '../../../contract/sessions/session-model.ts'
import { isoTime } from '../../../kernel/clock.ts'
import { present } from '../../../kernel/present.ts'
import { crashCount } from '../actor/crash.ts'
import { effectiveOptions } from '../launch/options.ts'
import { findAgent, type SessionsView } from '../record/config-view.ts'
import { policyOf } from '../record/policy.ts'
import type { LiveFacts, SessionsDeps } from '../record/ports.ts'
import type { SessionRecord } from '../record/record.ts'

export type ViewDeps = Pick<
  SessionsDeps,
  'config' | 'provider' | 'runtimes' | 'work' | 'worktrees' | 'insight' | 'usage' | 'clock'
>

export function sessionView(
  session: SessionRecord,
  live: LiveFacts | undefined,
  deps: ViewDeps,
  lastOutput?: string,
): SessionResponse {
  const config = deps.config()
  const agent = session.kind === 'agent' ? findAgent(config, session.template) : undefined
  const provider = deps.provider(session.provider)
  const now = deps.clock.now()
  const runtime = deps.runtimes.get(session.runtime)
  const liveness = live?.liveness ?? (session.process ? 'unknown' : 'dead')
  const lastActive = live?.lastActive ?? session.last_active
  const bead = session.process ? deps.work.active(session) : undefined
  return present({
    id: session.id,
    kind: session.kind,
    template: session.template,
    // A record that says active while nothing runs any more: the look at it is on its way.
    state: session.state,
    desired: session.desired,
    reason: session.reason,
    agent: session.agent,
    title: session.title,
    alias: session.alias,
    provider: session.provider,
    display_name: provider?.spec.display_name,
    session_name: session.session_name,
    runtime: session.runtime,
    work_dir: session.work_dir,
    worktree: deps.worktrees.ofSession(session.id)?.name,
    origin: session.origin,
    created_at: isoTime(session.created_at),
    updated_at: isoTime(session.updated_at),
    state_since: isoTime(session.state_since),
    last_active: time(lastActive),
    last_nudge_delivered_at: time(session.last_nudge_delivered_at),
    running: liveness === 'alive',
    liveness,
    observed_at: isoTime(live?.observedAt ?? now),
    attached: live?.attached ?? false,
    pinned: session.pinned,
    rig: session.rig,
    pool: session.pool,
    agent_kind: kindOf(session, config),
    active_bead: bead,
    last_output: lastOutput,
    ...deps.insight.known(session),
    ...(session.reported_model === undefined ? {} : { model: session.reported_model }),
    activity: live === undefined || live.activity === 'unknown' ? undefined : live.activity,
    ...(live?.liveness === 'alive' ? { activity_source: live.source, activity_since: isoTime(live.since) } : {}),
    mode: liveness === 'alive' ? session.offers?.settings.find(({ key }) => key === 'mode')?.current : undefined,
    pending: live?.pending?.requestId,
    queued: session.queued,
    submission_capabilities: { supports_follow_up: true, supports_interrupt_now: canInterrupt(session, runtime) },
    ...(session.named === undefined ? {} : { configured_named_session: true }),
    ...(provider?.spec.options_schema === undefined
      ? {}
      : { options: { ...effectiveOptions(provider.spec, agent, session.options) } }),
    ...(Object.keys(session.metadata).length === 0 ? {} : { metadata: { ...session.metadata } }),
    project_id: session.project_id,
    generation: session.generation,
    pid: liveness === 'alive' ? session.pid : undefined,
    last_exit: session.last_exit,
    crash_count: crashCount(session, now, policyOf(config).crash.restartWindowMs),
    ...(session.limited_until === undefined
      ? {}
      : {
          limited_until: time(session.limited_until),
          limit_source: session.limit_source,
          limit_message: session.limit_message,
        }),
    usage: deps.usage.of(session.id),
    quarantined_until: session.state === 'quarantined' ? time(session.quarantined_until) : undefined,
    revision: session.revision,
  })
}

/** Whether `interrupt_now` and `stop` can work: pipes have nobody to interrupt. */
export const canInterrupt = (
  session: SessionRecord,
  runtime: { readonly abilities: { readonly interrupt: boolean } } | undefined,
): boolean => runtime?.abilities.interrupt === true && (session.runtime === 'acp' || session.launch?.io !== 'pipes')

/** Whether it has a screen to look at: pipes have none. */
export const hasScreen = (
  session: SessionRecord,
  runtime: { readonly abilities: { readonly screen: boolean } } | undefined,
): boolean => runtime?.abilities.screen === true && session.launch?.io !== 'pipes'

/** Whether a question of it can be seen, and answered: over its protocol, or on its screen. */
export const canAsk = (
  session: SessionRecord,
  runtime: { readonly abilities: { readonly pending: boolean; readonly screen: boolean } } | undefined,
): boolean => runtime?.abilities.pending === true || hasScreen(session, runtime)

function kindOf(session: SessionRecord, config: SessionsView): SessionResponse['agent_kind'] {
  if (session.kind === 'provider') return undefined
  if (session.named !== undefined) return 'role'
  const agent = findAgent(config, session.template)
  return agent?.scales === true ? 'pool' : 'crew'
}

const time = (ms: number | undefined): string | undefined => (ms === undefined ? undefined : isoTime(ms))
