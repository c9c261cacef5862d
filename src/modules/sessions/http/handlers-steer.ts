/** Steering sessions: their turns, their processes, their names, what they wait for (sheet 04 §§4.5, 4.6, 4.11, 4.12). */
import type { BodyOf } from '../../../contract/base/operation.ts'
import type { SessionResponse } from '../../../contract/sessions/session-model.ts'
import type { respondSession, sessionOperations } from '../../../contract/sessions/sessions.ts'
import { type Handlers, ok } from '../../../kernel/call.ts'
import type { Clock } from '../../../kernel/clock.ts'
import type { Tx } from '../../../kernel/database.ts'
import { deadline } from '../../../kernel/deadline.ts'
import { checkPrecondition } from '../../../kernel/etag.ts'
import type { IdempotencyClaim } from '../../../kernel/idempotency.ts'
import { durationMs, invalidField, problem } from '../../../kernel/problem.ts'
import { optionFor } from '../../../runtimes/process/answers.ts'
import { type Answer, type Pending, TypingRefused } from '../../../runtimes/process/runtime.ts'
import type { Interrupted } from '../actor/interrupts.ts'
import { canAsk } from '../plan/views.ts'
import { findAgent } from '../record/config-view.ts'
import { agePolicyOf } from '../record/policy.ts'
import type { SessionRecord } from '../record/record.ts'
import {
  answer,
  isOver,
  type Note,
  refuseHeld,
  refuseOver,
  type SessionCity,
  settled,
  tagged,
  wakeUp,
} from './handlers.ts'

/** The parts of a call about one session. */
interface SteerCall {
  readonly params: { readonly id: string }
  readonly city: SessionCity
  readonly actor: string
}

/** One write about one session. */
type Change = (tx: Tx, session: SessionRecord, city: SessionCity, note: Note) => void

const ANSWER_MS = 10_000
const BY_LINES =
  'its program reads lines, and no line is known that means this; type one by `session keys`, or at its terminal by `session attach`'
const DAY_MS = 86_400_000
const PRUNE_BATCH = 100
const MAX_PRUNED = 10_000

export function createSessionSteerHandlers({ clock }: { readonly clock: Clock }) {
  /** One write about one session, then the session as it is. */
  const change = async ({ params, city, actor }: SteerCall, work: Change) => {
    const { id } = city.sessions.resolve(params.id)
    await city.store.db.write((tx) => work(tx, city.sessions.store.need(tx, id), city, { actor }))
    return answer(city, id)
  }

  /** The same, done once for a key: who asks again after a lost answer does not end what has just begun. */
  const changeOnce = async (
    { params, claim, city, actor }: SteerCall & { readonly claim: IdempotencyClaim | undefined },
    work: Change,
  ) => {
    const { sessions, store } = city
    const { id } = sessions.resolve(params.id)
    const reply = await store.keys.once(claim, () =>
      store.db.write((tx) => {
        work(tx, sessions.store.need(tx, id), city, { actor })
        return store.keys.remember(tx, claim, ok(sessions.view(sessions.store.need(tx, id))))
      }),
    )
    return tagged(reply)
  }

  const stopTurn = async ({ sessions }: SessionCity, id: string, signal: AbortSignal): Promise<Interrupted> => {
    try {
      return (await sessions.actor(id)?.interrupt(signal)) ?? 'idle'
    } catch (error) {
      throw problem('gateway-timeout', `session ${id} did not take the interrupt`, { cause: error })
    }
  }

  const endNow = async ({ sessions }: SessionCity, id: string): Promise<void> => {
    const { state, process } = sessions.resolve(id)
    if (state === 'closed') return
    if (!process) throw problem('session-conflict', `session ${id} is ${state}: nothing of it runs`)
    if (!(await sessions.kill(id))) throw problem('gateway-timeout', `session ${id} could not be ended`)
  }

  /** What runs is ended by its actor, which finds the wish in the row. */
  const hold: Change = (tx, session, { sessions }, note) => {
    const { id, state } = session
    if (state === 'suspended') {
      sessions.store.change(tx, id, { desired: 'suspended' }, note)
      return
    }
    if (state === 'start-pending' || state === 'creating' || isOver(session))
      throw problem('illegal-transition', `session ${id} is ${state}: it cannot be suspended`)
    const fields = { desired: 'suspended', drain_reason: undefined, quarantined_until: undefined } as const
    if (session.process) sessions.store.change(tx, id, fields, note)
    else sessions.store.move(tx, id, 'suspend', { ...note, reason: 'user-hold', fields })
  }

  const rouse = async ({ params, city, actor }: SteerCall) => {
    const { id } = await city.sessions.resolveOrMake(params.id)
    await city.store.db.write((tx) => {
      const session = city.sessions.store.need(tx, id)
      if (!isOver(session)) refuseHeld(session, city)
      wakeUp(tx, city.sessions, session, 'explicit', { actor })
      city.sessions.liftLimit(tx, id, 'wake')
      city.sessions.waits.cancelAll(tx, id, actor)
    })
    return answer(city, id)
  }
  const end = async (
    { city, actor, signal }: Pick<SteerCall, 'city' | 'actor'> & { readonly signal: AbortSignal },
    id: string,
    ifMatch?: string,
  ): Promise<void> => {
    const { sessions, store } = city
    await store.db.write((tx) => {
      const session = sessions.store.need(tx, id)
      checkPrecondition(ifMatch, String(session.revision))
      if (session.state === 'closed') return
      refuseAlways(session, city)
      sessions.close(tx, id, actor, 'requested')
    })
    const over = (session: SessionRecord | undefined) => session === undefined || session.state === 'closed'
    if (!(await settled(city, id, over, clock, signal)))
      throw problem('session-conflict', `the process of session ${id} has not ended yet; it is being ended`)
  }

  const drainFor =
    (reason: string, acked: boolean): Change =>
    (tx, session, city, note) => {
      const { sessions, deps } = city
      const config = deps.config()
      const { drainMs } = agePolicyOf(config, findAgent(config, session.template), session)
      const fields = { drain_reason: reason, drain_acked: acked }
      if (session.state === 'draining') sessions.store.change(tx, session.id, fields, note)
      else sessions.store.move(tx, session.id, 'drain', { ...note, reason, deadlineMs: drainMs, fields })
    }

  return {
    // --- Turns and processes ---------------------------------------------------------------------------------------

    'stop-session': async ({ params, query, signal, city }) => {
      const { sessions } = city
      const session = sessions.resolve(params.id)
      const { id } = session
      if (sessions.live(id)?.liveness === 'unknown')
        throw problem('gateway-timeout', `session ${id} cannot be observed at the moment`)
      const outcome = await stopTurn(city, id, signal)
      const view = () => sessions.view(sessions.resolve(id))
      if (outcome === 'unsupported') throw problem('unsupported', `a turn of session ${id} cannot be interrupted`)
      if (outcome !== 'deaf') return ok({ session: view(), interrupted: outcome !== 'idle', ended: true })
      if (query.force !== true) throw problem('gateway-timeout', deaf(id, view()))
      await endNow(city, id)
      return ok({ session: view(), interrupted: true, ended: true, forced: true })
    },

    'kill-session': async ({ params, claim, city }) => {
      const { keys, db } = city.store
      const { id } = city.sessions.resolve(params.id)
      const reply = await keys.once(claim, async () => {
        await endNow(city, id)
        const killed = answer(city, id)
        return claim === undefined ? killed : db.write((tx) => keys.remember(tx, claim, killed))
      })
      return tagged(reply)
    },

    'suspend-session': async ({ params, signal, city, actor }) => {
      const { id } = await city.sessions.resolveOrMake(params.id)
      await city.store.db.write((tx) => hold(tx, city.sessions.store.need(tx, id), city, { actor }))
      await settled(city, id, (session) => session?.state !== 'active' && session?.state !== 'draining', clock, signal)
      return answer(city, id)
    },

    'wake-session': rouse,

    'resume-session': rouse,

    'close-session': async (call) => {
      const { params, query, city, actor } = call
      const { id } = city.sessions.resolve(params.id)
      await end(call, id)
      const closed = answer(city, id)
      if (query.delete === true) await city.store.db.write((tx) => city.sessions.remove(tx, id, actor, 'requested'))
      return closed
    },

    'delete-session': async (call) => {
      const { params, header, city, actor } = call
      const { id } = city.sessions.resolve(params.id)
      await end(call, id, header('if-match'))
      await city.store.db.write((tx) => city.sessions.remove(tx, id, actor, 'requested'))
      return ok({ status: 'deleted' as const, id })
    },

    // --- Names and settings ----------------------------------------------------------------------------------------

    'release-session-name': (call) =>
      change(call, (tx, session, { sessions }, note) => {
        if (session.state !== 'closed')
          throw problem(
            'session-conflict',
            `session ${session.id} is ${session.state}: only a closed one gives up its alias`,
          )
        sessions.store.change(tx, session.id, { alias: undefined }, note)
      }),

    // --- Drains and restarts ---------------------------------------------------------------------------------------

    'drain-session': (call) => change(call, drainFor('requested', false)),

    'undrain-session': (call) =>
      change(call, (tx, { id }, { sessions }, note) => {
        const fields = { drain_reason: undefined, drain_acked: false }
        sessions.store.move(tx, id, 'undrain', { ...note, reason: 'requested', fields })
      }),

    'ack-session-drain': async ({ params, signal, city, actor }) => {
      const { id } = city.sessions.resolve(params.id)
      await city.store.db.write((tx) => {
        const session = city.sessions.store.need(tx, id)
        if (session.state !== 'draining')
          throw problem('illegal-transition', `session ${id} is ${session.state}: it was not asked to finish`)
        city.sessions.store.change(tx, id, { drain_acked: true }, { actor })
      })
      await settled(city, id, (session) => session?.state !== 'draining', clock, signal)
      return answer(city, id)
    },

    'reset-session': (call) =>
      changeOnce(call, (tx, session, city, note) => {
        refuseOver(session)
        if (session.state === 'active' || session.state === 'draining')
          return drainFor('reset', true)(tx, session, city, note)
        if (session.process) throw problem('session-conflict', `session ${session.id} is being started`)
        city.sessions.store.change(
          tx,
          session.id,
          { fresh: true, conversation_id: undefined, fork_of: undefined },
          note,
        )
        const woken = wakeUp(tx, city.sessions, session, 'reset', note)
        city.sessions.store.tell(tx, woken, 'session.reset', { ...note, reason: 'reset' })
      }),

    'request-session-restart': (call) =>
      changeOnce(call, (tx, session, city, note) => {
        if (session.state !== 'active' && session.state !== 'draining')
          throw problem('session-conflict', `session ${session.id} is ${session.state}: there is nothing to restart`)
        drainFor('restart-requested', false)(tx, session, city, note)
      }),

    'heartbeat-session': async ({ params, city, actor }) => {
      const session = city.sessions.resolve(params.id)
      refuseOver(session)
      await city.store.db.write((tx) => {
        city.sessions.store.change(tx, session.id, { heartbeat_at: clock.now() }, { actor })
      })
      await city.deps.work.renew([session])
      return answer(city, session.id)
    },

    // --- Answers, waits, tidying up --------------------------------------------------------------------------------

    'respond-session': async ({ params, body, signal, city, actor }) => {
      const { sessions, deps } = city
      const session = sessions.resolve(params.id)
      const pending = sessions.live(session.id)?.pending
      if (pending === undefined) {
        if (!canAsk(session, deps.runtimes.get(session.runtime)))
          throw problem('unsupported', `what session ${session.id} asks cannot be seen`)
        throw problem('no-pending', `session ${session.id} waits for nothing`)
      }
      if (body.request_id !== undefined && body.request_id !== pending.requestId)
        throw problem('invalid-interaction', `session ${session.id} waits for an answer to ${pending.requestId}`)
      using limit = deadline(clock, ANSWER_MS, 'the session does not answer', signal)
      const taken = await sessions
        .answer(session.id, pending.requestId, { ...answerOf(body, pending), by: actor }, limit.signal)
        .catch((error: unknown) => {
          if (error instanceof TypingRefused && error.code === 'lines') throw problem('invalid-interaction', BY_LINES)
          throw problem('gateway-timeout', `session ${session.id} did not take the answer`, { cause: error })
        })
      if (!taken) throw problem('no-pending', `session ${session.id} does not wait for ${pending.requestId} any more`)
      await sessions.noted()
      return answer(city, session.id)
    },

    'create-session-wait': ({ params, body, claim, city, actor }) => {
      const { sessions, store, deps } = city
      const { id } = sessions.resolve(params.id)
      const timeoutMs = body.timeout === undefined ? DAY_MS : durationMs('body.timeout', body.timeout)
      if (timeoutMs <= 0) throw invalidField('body.timeout', 'must be more than 0', body.timeout)
      const { unknown } = deps.work.beads(body.dep_ids)
      if (unknown.length > 0) throw problem('bead-not-found', `there is no bead ${unknown.join(', ')}`)
      return store.keys.once(claim, () =>
        store.db.write((tx) => {
          refuseOver(sessions.store.need(tx, id))
          const draft = {
            sessionId: id,
            depIds: body.dep_ids,
            mode: body.dep_mode ?? 'all',
            note: body.note,
            timeoutMs,
          }
          const wait = sessions.waits.create(tx, draft, actor)
          // What it waits for may be closed already.
          sessions.waits.check(tx, wait.id)
          return store.keys.remember(tx, claim, { status: 201, body: sessions.waits.get(wait.id) })
        }),
      )
    },

    'cancel-wait': async ({ params, city, actor }) => {
      const { sessions, store } = city
      return ok(await store.db.write((tx) => sessions.waits.cancel(tx, params.id, actor)))
    },

    'prune-sessions': async ({ body, city, actor }) => {
      const { sessions, store } = city
      const before = clock.now() - durationMs('body.closed_before', body.closed_before)
      const deleted: string[] = []
      while (deleted.length < MAX_PRUNED) {
        const ids = sessions.store.closedBefore(before, PRUNE_BATCH)
        if (ids.length === 0) break
        await store.db.write((tx) => {
          for (const id of ids) sessions.remove(tx, id, actor, 'pruned')
        })
        deleted.push(...ids)
      }
      return ok({ deleted, count: deleted.length })
    },
  } satisfies Partial<Handlers<typeof sessionOperations, SessionCity>>
}

const deaf = (id: string, { activity, pending }: SessionResponse): string =>
  `session ${id} was asked to stop and works on (activity ${activity ?? 'unknown'}${pending === undefined ? '' : ', a question is open'}); \`svcctl session stop ${id} --force\` kills it and starts it again`

/** A session that the files want to run all the time would only come back. */
function refuseAlways({ id, named }: SessionRecord, { deps }: SessionCity): void {
  const wanted = deps.config().named_sessions.find(({ identity }) => identity === named)
  if (named !== undefined && wanted?.mode === 'always' && !wanted.disabled)
    throw problem('session-conflict', `session ${id} is the configured session ${named}, which always runs: suspend it`)
}

type RespondBody = BodyOf<typeof respondSession>

/** Harnesses have several words for one answer. */
const MEANING = {
  approve: 'approve',
  allow: 'approve',
  approve_always: 'approve_always',
  approve_accept_edits: 'approve_always',
  deny: 'deny',
  option: 'option',
  cancel: 'cancel',
} as const satisfies { readonly [Said in RespondBody['action']]: Answer['action'] }

function answerOf({ action: said, option_id: option, text }: RespondBody, pending: Pending): Answer {
  const action = MEANING[said]
  const words = text === undefined ? {} : { text }
  if (action === 'cancel') return { action, ...words }
  if (pending.metadata['source'] === 'report')
    throw problem(
      'invalid-interaction',
      'it was reported, and is answered where it was asked, by keys or at its terminal; `cancel` takes it off here',
    )
  if (action !== 'option') {
    // What a screen shows is words: where they do not say for certain what they mean, whoever answers names the option.
    if (pending.metadata['source'] === 'screen' && optionFor(pending, { action }) === -1)
      throw problem('invalid-interaction', `no option means ${said} for certain; answer with one of ${named(pending)}`)
    return { action, ...words }
  }
  if (option === undefined) throw invalidField('body.option_id', 'is required with `option`')
  const { options } = pending
  const found = options.find(({ id }) => id === option) ?? options.find(({ label }) => label === option)
  if (found === undefined) throw problem('invalid-interaction', `there is no option ${option}: ${named(pending)}`)
  return { action, optionId: found.id, ...words }
}

const named = ({ options }: Pending): string => options.map(({ id, label }) => `${id} (${label})`).join(', ')
