/** Changing a session and what is chosen for it: at once where its agent can be told, else from its next start on. */
import type { BodyOf } from '../../../contract/base/operation.ts'
import type { OptionApplied } from '../../../contract/sessions/session-model.ts'
import type { SessionOption, SessionOptionsBody, sessionOperations } from '../../../contract/sessions/sessions.ts'
import { type Handlers, ok } from '../../../kernel/call.ts'
import type { Clock } from '../../../kernel/clock.ts'
import type { Tx } from '../../../kernel/database.ts'
import { deadline } from '../../../kernel/deadline.ts'
import { checkPrecondition } from '../../../kernel/etag.ts'
import { present } from '../../../kernel/present.ts'
import { invalidField, needVisible, problem } from '../../../kernel/problem.ts'
import type { AgentSetting } from '../../../runtimes/process/runtime.ts'
import { checkOptions, effectiveOptions, findOption, PERMISSION_MODE, settingOf } from '../launch/options.ts'
import { findAgent, type ProviderView } from '../record/config-view.ts'
import { checkAlias } from '../record/names.ts'
import type { SessionChange, SessionRecord } from '../record/record.ts'
import { answer, type Note, refuseOver, type SessionCity, tag } from './handlers.ts'

type Patch = BodyOf<(typeof sessionOperations)[number] & { readonly id: 'patch-session' }>
/** What is chosen anew; null: what it would have without a choice. */
type Choices = Readonly<Record<string, string | null>>
type Applied = Readonly<Record<string, OptionApplied>>

const SETTING_MS = 10_000
const MODEL = 'model'

export function createSessionOptionHandlers({ clock }: { readonly clock: Clock }) {
  return {
    'patch-session': async ({ params, body, header, city, actor, signal }) => {
      const session = city.sessions.resolve(params.id)
      const ifMatch = header('if-match')
      checkPrecondition(ifMatch, String(session.revision))
      const choices = choicesOf(body)
      if (choices !== undefined) checkChoices(city, session, choices)
      checkNames(city, session, body)
      // Before it is written: what the agent refuses is not chosen.
      const applied = choices === undefined ? undefined : await applyNow(city, session, choices, { clock, signal })
      await city.store.db.write((tx) => {
        const current = city.sessions.store.need(tx, session.id)
        checkPrecondition(ifMatch, String(current.revision))
        if (body.pinned === true || choices !== undefined) refuseOver(current)
        city.sessions.store.change(tx, current.id, changeOf(current, body, choices), { actor })
        if (applied !== undefined) sayQueued(tx, city, current, applied.commands, { actor })
      })
      const reply = answer(city, session.id)
      return applied === undefined
        ? reply
        : ok({ ...reply.body, options_applied: applied.applied }, { ETag: tag(reply.body) })
    },

    'get-session-options': async ({ params, city }) => ok(optionsBody(city, city.sessions.resolve(params.id))),
  } satisfies Partial<Handlers<typeof sessionOperations, SessionCity>>
}

/** `model` and `mode` are options under their own names; said twice they must agree. */
function choicesOf({ options, model, mode }: Patch): Choices | undefined {
  const choices = new Map(Object.entries(options ?? {}))
  for (const [key, field, value] of [[MODEL, 'model', model] as const, [PERMISSION_MODE, 'mode', mode] as const]) {
    if (value === undefined) continue
    if (choices.has(key) && choices.get(key) !== value)
      throw invalidField(`body.${field}`, `differs from \`options.${key}\``, value)
    choices.set(key, value)
  }
  return choices.size === 0 ? undefined : Object.fromEntries(choices)
}

/** What the provider has, or its agent offers by a word of its own. */
function checkChoices(city: SessionCity, session: SessionRecord, choices: Choices): void {
  refuseOver(session)
  const provider = needProvider(city, session)
  for (const [key, value] of Object.entries(choices)) {
    const option = findOption(provider, key)
    const setting = offered(session, key)
    if (option === undefined && setting === undefined && (key === PERMISSION_MODE || key === MODEL))
      throw problem(
        'unsupported',
        `${session.provider} has no ${key === MODEL ? 'models' : 'permission modes'} to choose`,
      )
    if (value === null || setting?.choices.some((choice) => choice.value === value)) continue
    if (option !== undefined) checkOptions(provider, { [key]: value }, 'body.options')
    else if (setting === undefined)
      throw invalidField(`body.options.${key}`, 'neither the provider nor its agent has such an option', value)
    else if (key !== MODEL)
      throw invalidField(
        `body.options.${key}`,
        `must be one of ${setting.choices.map((choice) => choice.value).join(', ')}`,
        value,
      )
  }
}

function checkNames({ deps }: SessionCity, { id, named }: SessionRecord, { alias }: Patch): void {
  if (alias === undefined) return
  if (named !== undefined) throw problem('forbidden', `session ${id} is configured: its alias is its name`)
  if (alias === null || alias === '') return
  checkAlias(alias, 'body.alias')
  if (deps.config().named_sessions.some(({ identity }) => identity === alias))
    throw problem('name-taken', `${alias} is a configured session`)
}

function changeOf(session: SessionRecord, body: Patch, choices: Choices | undefined): Omit<SessionChange, 'state'> {
  const { title, alias, metadata, pinned } = body
  needVisible('body.title', title)
  return {
    ...(title === undefined ? {} : { title, titled: true }),
    ...(alias === undefined ? {} : { alias: alias === null || alias === '' ? undefined : alias }),
    ...(metadata === undefined ? {} : { metadata: merged(session.metadata, metadata) }),
    ...(pinned === undefined ? {} : { pinned }),
    ...(choices === undefined ? {} : { options: merged(session.options, choices) }),
  }
}

function merged(before: Readonly<Record<string, string>>, patch: Choices): Readonly<Record<string, string>> {
  const result = new Map(Object.entries(before))
  for (const [key, value] of Object.entries(patch)) {
    if (value === null) result.delete(key)
    else result.set(key, value)
  }
  return Object.fromEntries(result)
}

// ---- telling the agent ----------------------------------------------------------------------------------------------

interface Applying {
  readonly applied: Applied
  /** To be typed into a terminal that has words for it. */
  readonly commands: readonly string[]
}

/** 422 where the agent refuses one; those before it are taken back. */
async function applyNow(
  city: SessionCity,
  session: SessionRecord,
  choices: Choices,
  { clock, signal }: { readonly clock: Clock; readonly signal: AbortSignal },
): Promise<Applying> {
  const provider = needProvider(city, session)
  const applied = new Map<string, OptionApplied>()
  const commands: string[] = []
  const done: AgentSetting[] = []
  using limit = deadline(clock, SETTING_MS, 'the agent does not answer', signal)
  const tell = async (key: string, value: string) =>
    (await city.sessions.actor(session.id)?.set(key, value, limit.signal)) ?? ({ state: 'unsupported' } as const)
  for (const [key, value] of Object.entries(choices)) {
    const how = city.sessions.resolve(session.id).process ? wayOf(session, provider, key, value) : undefined
    if (how === undefined) applied.set(key, 'next_start')
    else if ('command' in how) {
      applied.set(key, 'queued')
      commands.push(how.command)
    } else {
      const before = offered(session, how.key)
      const outcome = await tell(how.key, how.value).catch(() => {
        throw problem('session-conflict', `session ${session.id} did not take it in time`)
      })
      if (outcome.state === 'refused') {
        for (const { key: earlier, current } of done) if (current !== undefined) await tell(earlier, current)
        throw invalidField(`body.options.${key}`, `the agent refused it: ${outcome.message}`, value ?? undefined)
      }
      applied.set(key, outcome.state === 'set' ? 'now' : 'next_start')
      if (before !== undefined) done.push(before)
    }
  }
  return { applied: Object.fromEntries(applied), commands }
}

type Way = { readonly key: string; readonly value: string } | { readonly command: string }

/** How a choice reaches what runs; undefined: not before the next start. */
function wayOf(session: SessionRecord, provider: ProviderView, key: string, value: string | null): Way | undefined {
  if (value === null || value === '') return undefined
  if (session.runtime === 'acp') return settingOf(provider, key, value)
  const command = findOption(provider, key)?.live_command
  return command === undefined ? undefined : { command: command.replaceAll('{value}', () => value) }
}

/** Through the queue, like everything that is typed: when it is idle, and never into a question. */
function sayQueued(
  tx: Tx,
  { sessions }: SessionCity,
  { id }: SessionRecord,
  commands: readonly string[],
  { actor }: Note,
) {
  for (const text of commands) {
    const draft = {
      source: 'option',
      intent: 'default',
      text,
      ttlMs: sessions.policy.deliveryTtlMs,
      wakes: false,
    } as const
    sessions.deliveries.add(tx, sessions.store.need(tx, id), draft, actor)
  }
}

// ---- what there is to choose ----------------------------------------------------------------------------------------

function optionsBody(city: SessionCity, session: SessionRecord): SessionOptionsBody {
  // Of a provider that is gone nothing can be chosen but what its agent offers.
  const provider = city.deps.provider(session.provider)?.spec ?? {}
  const agent = session.kind === 'agent' ? findAgent(city.deps.config(), session.template) : undefined
  const effective = effectiveOptions(provider, agent, session.options)
  const declared = provider.options_schema ?? []
  const own = (session.offers?.settings ?? []).filter(({ key }) => !declared.some((one) => optionKey(key) === one.key))
  const { image = false, audio = false, embedded = false } = session.offers?.accepts ?? {}
  return {
    options: [
      ...declared.map(({ key, label, choices = [], free_args: free }): SessionOption => {
        const setting = offered(session, key)
        const known = choices.map((choice) => ({ value: choice.value, label: choice.label ?? choice.value }))
        const more = (setting?.choices ?? []).filter(({ value }) => !choices.some((one) => one.acp_mode === value))
        return present({
          key,
          label: label ?? key,
          value: effective[key],
          current: setting?.current,
          choices: [...known, ...more.filter(({ value }) => !known.some((one) => one.value === value))],
          free: free !== undefined,
          applies: appliesOf(session, provider, key),
        })
      }),
      ...own.map(
        ({ key, label, current, choices }): SessionOption =>
          present({
            key: optionKey(key),
            label,
            value: effective[optionKey(key)],
            current,
            choices: [...choices],
            free: key === MODEL,
            applies: appliesOf(session, provider, optionKey(key)),
          }),
      ),
    ],
    attachments: { images: image, audio, files: embedded, links: session.runtime === 'acp' },
    forks: session.runtime === 'acp' && session.offers?.forks === true,
  }
}

function appliesOf(session: SessionRecord, provider: ProviderView, key: string): OptionApplied {
  if (session.runtime === 'acp') return offered(session, key) === undefined ? 'next_start' : 'now'
  return findOption(provider, key)?.live_command === undefined ? 'next_start' : 'queued'
}

const optionKey = (setting: string): string => (setting === 'mode' ? PERMISSION_MODE : setting)

/** What its agent says of an option, under the protocol's own word for it. */
const offered = ({ offers }: SessionRecord, key: string): AgentSetting | undefined =>
  offers?.settings.find((one) => optionKey(one.key) === optionKey(key))

function needProvider({ deps }: SessionCity, session: SessionRecord): ProviderView {
  const provider = deps.provider(session.provider)
  if (provider === undefined) throw problem('session-conflict', `there is no provider ${session.provider} any more`)
  return provider.spec
}
