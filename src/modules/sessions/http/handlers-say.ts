/** Starting sessions and saying something to them (sheet 04 §§4.2–4.4; decisions 57–59, 72). */

import { isAbsolute, normalize, relative, resolve } from 'node:path'
import type { DeliveryInfo, MessageSender, SubmitIntent } from '../../../contract/sessions/session-model.ts'
import type {
  MessageAttachment,
  SessionAcceptedResponse,
  SessionCreateRequest,
  sessionOperations,
} from '../../../contract/sessions/sessions.ts'
import { type Handlers, ok, type Reply } from '../../../kernel/call.ts'
import type { Caller } from '../../../kernel/caller.ts'
import type { Tx } from '../../../kernel/database.ts'
import type { IdempotencyClaim } from '../../../kernel/idempotency.ts'
import { isDirectory } from '../../../kernel/look.ts'
import { unknownName } from '../../../kernel/near-names.ts'
import { invalidField, problem } from '../../../kernel/problem.ts'
import { findBinary } from '../../../kernel/processes.ts'
import { programOf, refusedTransport, workDirOf } from '../launch/launch.ts'
import { DEFAULT_RUNTIME, type NewSession } from '../launch/new-session.ts'
import { checkOptions } from '../launch/options.ts'
import { baseRefOf, worktreeRigOf } from '../launch/worktree-wish.ts'
import { canInterrupt } from '../plan/views.ts'
import { type Attachment, parseAttachments, refuseUntaken } from '../queue/attachments.ts'
import { checkMessage, type DeliveryDraft, type DeliveryRecord } from '../queue/deliveries.ts'
import { frameOf, isPerson, senderOf } from '../queue/sender.ts'
import { type AgentView, findAgent, isUnbound, type ProviderView, untrusted } from '../record/config-view.ts'
import { checkAlias } from '../record/names.ts'
import type { SessionRecord } from '../record/record.ts'
import { refuseHeld, refuseOver, type SessionCity, wakeUp } from './handlers.ts'

interface SayCall {
  readonly params: { readonly id: string }
  readonly body: { readonly message: string; readonly attachments?: readonly MessageAttachment[] }
  readonly claim: IdempotencyClaim | undefined
  readonly city: SessionCity
  readonly actor: string
  readonly caller: Caller
}

export function createSessionSayHandlers() {
  const say = async (
    { params, body, claim, city, actor, caller }: SayCall,
    source: 'message' | 'submit',
    intent: SubmitIntent,
  ): Promise<Reply<SessionAcceptedResponse>> => {
    const text = checkMessage(body.message, 'body.message')
    const sender = senderOf(caller, actor)
    const { id, work_dir: workDir } = await city.sessions.resolveOrMake(params.id)
    const attachments = parseAttachments(body.attachments ?? [], workDir)
    return city.launch<SessionAcceptedResponse>({
      operation: source === 'message' ? 'session.message' : 'session.submit',
      subject: id,
      input: { session_id: id },
      claim,
      accept: (tx, accepted) => {
        const session = city.sessions.store.need(tx, id)
        refuseSaying(city, session, intent)
        refuseAttached(session, attachments)
        // Who runs finishes in its own time, and may be told something meanwhile.
        if (!session.process) refuseHeld(session, city)
        if (isPerson(sender) || session.desired !== 'suspended') lift(tx, city, session, actor)
        const ttlMs = city.sessions.policy.deliveryTtlMs
        const said = { text, sender, frame: frameOf(sender, text, hearing(city, session)) }
        const draft = { ...said, source, intent, attachments, requestId: accepted.request_id, ttlMs }
        const delivery = city.sessions.deliveries.add(tx, city.sessions.store.need(tx, id), draft, actor)
        return { status: 'accepted', ...accepted, session_id: id, delivery_id: delivery.id }
      },
    })
  }

  return {
    'create-session': async ({ body, claim, city, actor, caller }) => {
      const draft = await checked(city, body)
      const { message } = body
      const id = city.sessions.newId()
      return city.launch<SessionAcceptedResponse>({
        operation: 'session.create',
        subject: id,
        input: { session_id: id },
        claim,
        accept: (tx, accepted) => {
          refuseLimit(city, draft.template)
          const session = city.sessions.insert(tx, draft, actor, id)
          const attachments = parseAttachments(body.attachments ?? [], session.work_dir)
          refuseAttached(session, attachments)
          const first = message === undefined ? undefined : { message, attachments, sender: senderOf(caller, actor) }
          const delivery = first === undefined ? undefined : firstMessage(tx, city, session, first, actor)
          return {
            status: 'accepted',
            ...accepted,
            session_id: session.id,
            ...(delivery === undefined ? {} : { delivery_id: delivery.id }),
          }
        },
      })
    },

    'send-session-message': (call) => say(call, 'message', 'default'),

    'prompt-session': (call) => say(call, 'message', 'default'),

    'submit-session': (call) => say(call, 'submit', call.body.intent ?? 'default'),

    'nudge-session': async ({ params, body, claim, city, actor, caller }) => {
      const { sessions, store } = city
      const text = checkMessage(body.message, 'body.message')
      const { id } = sessions.resolve(params.id)
      const how = body.delivery ?? 'wait_idle'
      const sender = senderOf(caller, actor)
      const draft: DeliveryDraft = {
        source: 'nudge',
        intent: 'default',
        text,
        sender,
        ttlMs: sessions.policy.deliveryTtlMs,
        eager: how === 'immediate',
        wakes: how !== 'queue',
      }
      return store.keys.once(claim, () =>
        store.db.write((tx) => {
          const session = sessions.store.need(tx, id)
          refuseOver(session)
          const frame = frameOf(sender, text, hearing(city, session))
          const delivery = sessions.deliveries.add(tx, session, { ...draft, frame }, actor)
          return store.keys.remember(tx, claim, { status: 201, body: shown(sessions.deliveries.info(id, delivery.id)) })
        }),
      )
    },

    'cancel-session-delivery': async ({ params, city, actor }) => {
      const { sessions, store } = city
      const { id } = sessions.resolve(params.id)
      await store.db.write((tx) => sessions.deliveries.cancel(tx, id, params.deliveryId, actor))
      return ok(shown(sessions.deliveries.info(id, params.deliveryId)))
    },
  } satisfies Partial<Handlers<typeof sessionOperations, SessionCity>>
}

function shown(info: DeliveryInfo | undefined): DeliveryInfo {
  if (info === undefined) throw problem('delivery-not-found', 'the delivery is gone')
  return info
}

/** Said with the creation: part of an agent's first prompt, or the first message to a program. */
function firstMessage(
  tx: Tx,
  city: SessionCity,
  session: SessionRecord,
  {
    message,
    attachments,
    sender,
  }: { readonly message: string; readonly attachments: readonly Attachment[]; readonly sender: MessageSender },
  actor: string,
): DeliveryRecord {
  const { sessions } = city
  const text = checkMessage(message, 'body.message')
  const ttlMs = sessions.policy.deliveryTtlMs
  const withLaunch = session.kind === 'agent'
  const said = { text, attachments, sender, frame: frameOf(sender, text, hearing(city, session)) }
  const draft = { ...said, source: 'message', intent: 'default', ttlMs, withLaunch } as const
  return sessions.deliveries.add(tx, session, draft, actor)
}

/** What can be refused is refused before the 202 (decisions 59, 72). */
function refuseSaying({ sessions, deps }: SessionCity, session: SessionRecord, intent: SubmitIntent): void {
  refuseOver(session)
  if (intent === 'default' && sessions.live(session.id)?.pending !== undefined)
    throw problem('pending-interaction', `session ${session.id} waits for an answer: respond to it first`)
  if (intent === 'interrupt_now' && !canInterrupt(session, deps.runtimes.get(session.runtime)))
    throw problem('unsupported', `a turn of session ${session.id} cannot be interrupted`)
}

/** Text alone can be typed; and of what a protocol carries, an agent takes what it says. */
function refuseAttached(session: SessionRecord, attachments: readonly Attachment[]): void {
  if (attachments.length === 0) return
  if (session.runtime !== 'acp')
    throw problem('unsupported', `session ${session.id} runs on a terminal: nothing can be attached to what is typed`)
  refuseUntaken(attachments, session.offers)
}

/** A program that reads lines runs them; what speaks the agent protocol, or draws its own screen, has a model behind it. */
const hearing = ({ deps }: SessionCity, { runtime, provider }: SessionRecord) => ({
  readsCommands: runtime !== 'acp' && (deps.provider(provider)?.spec.delivery ?? 'line') === 'line',
  onTerminal: runtime !== 'acp',
})

/** A caller's message lifts every hold, and a person's also that of a person or a budget. */
function lift(tx: Tx, { sessions }: SessionCity, session: SessionRecord, actor: string): void {
  const { state, desired } = session
  if (state === 'active' || state === 'draining' || state === 'creating') {
    if (desired !== 'running')
      sessions.store.change(tx, session.id, { desired: 'running', drain_reason: undefined }, { actor })
  } else wakeUp(tx, sessions, session, 'message', { actor })
}

async function checked(city: SessionCity, body: SessionCreateRequest): Promise<NewSession> {
  const { kind, name, alias, options = {} } = body
  const { agent, provider } = template(city, kind, name)
  const forkOf = body.fork_of === undefined ? undefined : conversationOf(city, body.fork_of, agent?.identity ?? name)
  if (body.attachments !== undefined && body.message === undefined)
    throw invalidField('body.attachments', 'go with a message: say something, too')
  checkVariables(body.env ?? {})
  checkOptions(provider, options, 'body.options')
  if (body.message !== undefined) checkMessage(body.message, 'body.message')
  if (alias !== undefined) {
    checkAlias(alias, 'body.alias')
    if (city.deps.config().named_sessions.some(({ identity }) => identity === alias))
      throw problem('name-taken', `${alias} is a configured session`)
  }
  const runtime =
    body.runtime ?? forkOf?.runtime ?? agent?.session ?? (city.deps.config().session.provider || DEFAULT_RUNTIME)
  await refuseMissing(city, runtime, agent, provider)
  const workDir = body.work_dir === undefined ? undefined : placeOf(city, body.work_dir)
  await refuseIsolation(city, agent, body.isolation, workDir)
  return {
    kind,
    template: agent?.identity ?? name,
    origin: 'manual',
    cause: 'explicit',
    runtime,
    options,
    ...(alias === undefined ? {} : { alias }),
    ...(body.title === undefined ? {} : { title: body.title }),
    ...(body.message === undefined ? {} : { message: body.message }),
    ...(body.env === undefined ? {} : { env: body.env }),
    ...(forkOf === undefined ? {} : { forkOf: forkOf.conversation }),
    ...(workDir === undefined ? {} : { workDir }),
    ...(body.isolation === undefined ? {} : { isolation: body.isolation }),
    ...(body.project_id === undefined ? {} : { projectId: body.project_id }),
    ...(body.metadata === undefined ? {} : { metadata: body.metadata }),
  }
}

const VARIABLE = /^[A-Za-z_][A-Za-z0-9_]*$/

function checkVariables(env: Readonly<Record<string, string>>): void {
  for (const [name, value] of Object.entries(env)) {
    if (!VARIABLE.test(name)) throw invalidField(`body.env.${name}`, 'is no name of a variable')
    if (name.startsWith('SVC_')) throw invalidField(`body.env.${name}`, '`SVC_*` are set by the service')
    if (value.includes('\0')) throw invalidField(`body.env.${name}`, 'has a NUL')
  }
}

/** What a fork begins with; 422 where nothing was said yet, 501 where its agent cannot. */
function conversationOf({ sessions }: SessionCity, handle: string, template: string) {
  const { id, template: of, runtime, conversation_id: conversation, offers } = sessions.resolve(handle)
  if (of !== template) throw invalidField('body.fork_of', `is a session of ${of}, not of ${template}`, handle)
  if (runtime !== 'acp' || offers?.forks === false)
    throw problem('unsupported', `the agent of session ${id} cannot begin a conversation from another one`)
  if (conversation === undefined) throw invalidField('body.fork_of', `session ${id} has no conversation yet`, handle)
  return { conversation, runtime }
}

interface Template {
  readonly agent: AgentView | undefined
  readonly provider: ProviderView
}

function template({ deps }: SessionCity, kind: SessionCreateRequest['kind'], name: string): Template {
  const config = deps.config()
  const agent = kind === 'agent' ? findAgent(config, name) : undefined
  if (kind === 'agent' && agent === undefined)
    throw unknownName(
      'agent-not-found',
      'agent',
      name,
      config.agents.map(({ identity }) => identity),
    )
  if (agent?.suspended === true) throw problem('conflict-config', `the agent ${name} is suspended`)
  if (agent !== undefined && isUnbound(config, agent))
    throw problem('conflict-config', `the rig ${agent.dir} has no directory on this machine`)
  const pack = untrusted(agent ?? config.providers[name])
  if (pack !== undefined) throw problem('untrusted-pack', pack)
  const provider = deps.provider(agent?.provider ?? name)
  if (provider === undefined) throw problem('provider-not-found', `there is no provider ${agent?.provider ?? name}`)
  return { agent, provider: provider.spec }
}

/** 503 for a runtime or a program that this host does not have. */
async function refuseMissing(
  { deps, path }: SessionCity,
  name: NonNullable<SessionCreateRequest['runtime']>,
  agent: AgentView | undefined,
  provider: ProviderView,
): Promise<void> {
  const runtime = deps.runtimes.get(name)
  const why = runtime === undefined ? `there is no runtime ${name}` : await runtime.unavailable()
  if (why !== undefined) throw problem('missing-dependency', why)
  const transport = refusedTransport(name, agent, provider)
  if (transport !== undefined) throw problem('unsupported', transport)
  const program = programOf(name, agent, provider, deps.env)
  const file = program.includes('/') ? resolve(path, program) : program
  if ((await findBinary(file, deps.env)) === undefined)
    throw problem('missing-dependency', `the program ${program} is not on this host`)
}

/** 409 where there can be no worktree of that directory. */
async function refuseIsolation(
  { deps }: SessionCity,
  agent: AgentView | undefined,
  asked: SessionCreateRequest['isolation'],
  workDir: string | undefined,
): Promise<void> {
  if ((asked ?? agent?.isolation) !== 'worktree') return
  const config = deps.config()
  const directory = workDir ?? workDirOf(config, agent?.identity ?? '', agent, deps.render)
  if (!isDirectory(directory)) return
  const rig = worktreeRigOf(config, agent?.dir, directory)
  const why = await deps.worktrees.refusal(directory, baseRefOf(config, agent, rig))
  if (why !== undefined) throw problem('conflict-config', `a worktree was asked for, and ${why}`)
}

function refuseLimit({ sessions }: SessionCity, name: string): void {
  const limit = sessions.limitFor(name)
  if (limit !== undefined)
    throw problem('too-many-sessions', `${limit} runs as many sessions as it may`, { retryAfterSec: 30 })
}

/** Absolute, or inside the city; there already. */
function placeOf({ path }: SessionCity, given: string): string {
  const place = isAbsolute(given) ? normalize(given) : resolve(path, given)
  if (!isAbsolute(given) && relative(path, place).startsWith('..'))
    throw invalidField('body.work_dir', 'must be inside the city, or absolute', given)
  if (!isDirectory(place)) throw invalidField('body.work_dir', 'is not a directory', given)
  return place
}
