/** `svcctl session …`: conversations with agents. */

import { converse } from '../attach/converse.ts'
import { sitAt } from '../attach/terminal.ts'
import { watchScreen } from '../attach/watch-screen.ts'
import type { ArgumentSpec, CommandSpec, FlagSpec, Input } from '../base/command.ts'
import type { Context } from '../base/context.ts'
import { EXIT, usageError } from '../base/failure.ts'
import type { Call, SaidOf } from '../framework/declaration.ts'
import { commandsOf } from '../framework/declare.ts'
import { bodyOf } from '../framework/fields.ts'
import { printItem } from '../framework/run.ts'
import { attached, attachFlag } from '../live/attached.ts'
import { answerFields, respondTo } from '../live/respond.ts'
import { SESSIONS as TABLE } from '../tables/sessions.ts'
import { printLive, printTranscript } from '../views/live.ts'
import {
  DELETED,
  DELIVERY,
  DRAIN,
  endOf,
  OPTION,
  PENDING,
  PRUNED,
  SESSION,
  STOPPED,
  SUB_AGENT,
  VERDICT,
  WAIT,
} from '../views/session-views.ts'
import { printableLines } from '../views/turn-text.ts'
import { sessionUsage } from './usage.ts'

/** The session that the command runs in. */
const ownSession = ({ env }: Context['io']): string | undefined => env['SVC_SESSION_ID'] || undefined

/** The session that is named, else the one that the command runs in: what agents say of themselves. */
function ownId({ io }: Context, input: Input): { readonly id?: string } {
  if (input.has('session')) return {}
  const id = ownSession(io)
  if (id === undefined)
    throw usageError('which session is missing', 'name one; inside a session it is the one where none is named')
  return { id }
}

/** Inside a session it is this run of it that tells: a hook of one that is over changes nothing. */
function ownRun({ io }: Context, input: Input): { readonly generation?: number; readonly instance_token?: string } {
  const { SVC_RUNTIME_EPOCH: generation, SVC_INSTANCE_TOKEN: token } = io.env
  if (input.has('session') || ownSession(io) === undefined) return {}
  return {
    ...(generation ? { generation: Number(generation) } : {}),
    ...(token ? { instance_token: token } : {}),
  }
}

/** A hook tells of the session that it runs in, unless the command line names another one, a city or a server. */
async function hookEnv(context: Context, input: Input): Promise<Context['io']['env']> {
  const { io, options } = context
  const { SVC_RUNTIME_EPOCH: _run, SVC_INSTANCE_TOKEN: _token, SVC_CITY_RUNTIME_DIR: _runs, ...others } = io.env
  const named = input.text('session')
  using limit = context.within(HOOK_CITY_MS)
  // A hook never fails: where nobody says which city it is, nothing is told.
  const city = await context.city(limit.signal).catch(() => undefined)
  return {
    ...(named === undefined ? io.env : { ...others, SVC_SESSION_ID: named }),
    ...(city === undefined ? {} : { SVC_CITY: city }),
    ...(options.api === undefined ? {} : { SVC_API: options.api }),
    ...(options.token === undefined ? {} : { SVC_TOKEN: options.token }),
  }
}

/** The harness waits meanwhile. */
const HOOK_CITY_MS = 1_000
/** The longest that a server waits for an answer. */
const PERMISSION_MS = 3_630_000

/** Ids of sessions look like nothing else. */
const SESSION_ID = /^s-[0-9a-f]{16}$/

/** Who waits for what: inside a session it is that one that waits, unless the first word or `--session` names another. */
function waiting({ io }: Context, input: Input): SaidOf<'create-session-wait'> {
  const words = input.texts('beads')
  const mode = input.on('any') ? ({ dep_mode: 'any' } as const) : {}
  const own = ownSession(io)
  const named = input.text('session')
  if (named !== undefined) return { id: named, dep_ids: [...words], ...mode }
  const [first = '', ...rest] = words
  const names = [own, io.env['SVC_ALIAS'], io.env['SVC_SESSION_NAME']]
  if (own !== undefined && !SESSION_ID.test(first) && !names.includes(first))
    return { id: own, dep_ids: [...words], ...mode }
  if (rest.length === 0)
    throw usageError('what it waits for is missing', 'name the session, then the beads that it waits for')
  return { id: first, dep_ids: rest, ...mode }
}

/** The session, then the last lines of its screen. */
async function showSession({ context, send }: Call<'get-session'>): Promise<number> {
  const reply = await send()
  const { last_output: screen } = reply.body
  await printItem(context, SESSION, reply)
  if (screen !== undefined && context.print.isForPeople) await context.print.lines(['', printableLines(screen)])
  return EXIT.ok
}

async function showTranscript(call: Call<'get-session-transcript'>): Promise<number> {
  const { context, input, client, cityName, said, send } = call
  if (input.on('follow')) {
    const { id, format, include_thinking } = said
    const params = { cityName, id: String(id) }
    const signal = context.io.reading()
    await printLive(context, client, {
      operation: 'stream-session',
      params,
      query: { format, include_thinking },
      signal,
    })
    return EXIT.ok
  }
  const { body, text } = await send()
  if (context.print.isForPeople) {
    await printTranscript(context, body)
    await noteEnd(call)
  } else await context.print.item({ item: body, columns: [], name: ({ id }) => id, json: text })
  return EXIT.ok
}

/** Whoever waits for more of it learns that no more comes. */
async function noteEnd({ context, client, cityName, said, options }: Call<'get-session-transcript'>): Promise<void> {
  const params = { cityName, id: String(said.id) }
  const session = await client.call('get-session', { params, ...options }).catch(() => undefined)
  const end = session === undefined ? undefined : endOf(session.body, context.io.clock.now())
  if (end !== undefined) await context.note(end)
}

/** At its terminal where both have one; else its words, and lines that are typed to it. */
async function attach({ context, cityName, said }: Call<'stream-session-terminal'>): Promise<number> {
  const seat = { cityName, id: String(said.id) }
  const { terminal } = context.io
  if (terminal === undefined || !context.print.isForPeople || !(await sitAt(context, seat, terminal)))
    await converse(context, seat)
  return EXIT.ok
}

async function showScreen(call: Call<'get-session-screen'>): Promise<number> {
  const { context, input, cityName, said, send } = call
  const { print } = context
  const isPainted = said.format === 'ansi'
  if (input.on('watch')) {
    await watchScreen(context, { cityName, id: String(said.id) }, isPainted)
    return EXIT.ok
  }
  const { body, text } = await send()
  if (print.isForPeople) await (isPainted ? print.painted(body.lines) : print.lines(body.lines.map(printableLines)))
  else await print.item({ item: body, columns: [], name: ({ session_id }) => session_id, json: text })
  return EXIT.ok
}

async function showOptions({ context, send }: Call<'get-session-options'>): Promise<number> {
  const { body, text } = await send()
  await context.print.list({ items: body.options, ...OPTION, json: text })
  return EXIT.ok
}

async function showSubAgents(call: Call<'list-session-agents'>): Promise<number> {
  const { context, input, client, cityName, said, options, send } = call
  const agentId = input.text('agent')
  if (agentId === undefined) {
    const { body, text } = await send()
    await context.print.list({ items: body.agents, ...SUB_AGENT, json: text })
    return EXIT.ok
  }
  const params = { cityName, id: String(said.id), agentId }
  const { body, text } = await client.call('get-session-agent', { params, ...options })
  if (context.print.isForPeople) await printTranscript(context, body)
  else await context.print.item({ item: body, columns: [], name: ({ status }) => status, json: text })
  return EXIT.ok
}

const command = commandsOf(TABLE)
const ID = {
  called: { id: 'session' },
  says: { id: 'Id, alias or name of the session.' },
  completes: { id: 'session' },
} as const
const OWN = {
  ...ID,
  says: { id: 'Id, alias or name of the session; inside a session the one that it runs in.' },
  fill: ownId,
} as const
const SAYING = { ...ID, says: { ...ID.says, message: 'What to say; - for stdin.' } } as const
/** Messages that files can go with. */
const ATTACHING = {
  ...SAYING,
  leaves: { attachments: '--attach' },
  more: [attachFlag],
  fill: attached,
} as const
const CREATED = {
  flags: { options: '--option', metadata: '--meta', message: '-m', env: '--env' },
  says: {
    message: 'First message.',
    options: 'An option of the provider.',
    metadata: 'Metadata.',
    env: 'A variable of its environment, over all others; shown nowhere.',
  },
} as const
const followFlag: FlagSpec = { flags: '-f, --follow', description: 'Go on with what comes.' }
const cancelFlag = (what: string, field: string): FlagSpec => ({
  flags: `--cancel <${what}>`,
  field,
  description: 'Cancel this one.',
})
const beads: ArgumentSpec = {
  name: '<beads...>',
  description: 'The session, then the beads that it waits for; inside a session only the beads.',
  complete: 'session',
}

type Plain =
  | 'kill-session'
  | 'suspend-session'
  | 'wake-session'
  | 'resume-session'
  | 'reset-session'
  | 'drain-session'
  | 'undrain-session'
  | 'release-session-name'

/** Operations that take an id, and answer with the session. */
const simple = (verb: string, operation: Plain, does: string): CommandSpec =>
  command(`session ${verb}`, operation, {
    ...ID,
    arguments: ['<id...>'],
    view: SESSION,
    examples: { [`svcctl session ${verb} helper`]: does },
  })

const byUpdate = 'session update'
const CHANGED_BY_UPDATE = {
  leaves: { alias: byUpdate, metadata: byUpdate, pinned: byUpdate, options: byUpdate, model: byUpdate, mode: byUpdate },
}

const pinning = (verb: string, pinned: boolean, summary: string): CommandSpec =>
  command(`session ${verb}`, 'patch-session', {
    summary,
    ...ID,
    leaves: { ...CHANGED_BY_UPDATE.leaves, title: byUpdate },
    arguments: ['<id...>'],
    fill: () => ({ pinned }),
    view: SESSION,
    examples: { [`svcctl session ${verb} helper`]: pinned ? 'it stays awake' : 'it may fall asleep again' },
  })

/** What agents say of themselves. */
const ofOneself = (
  verb: string,
  operation: 'ack-session-drain' | 'request-session-restart' | 'heartbeat-session',
  does: string,
): CommandSpec =>
  command(`session ${verb}`, operation, {
    ...OWN,
    arguments: ['[id]'],
    view: SESSION,
    examples: { [`svcctl session ${verb}`]: does },
  })

const reading = (verb: string, summary: string | undefined, examples: Readonly<Record<string, string>>): CommandSpec =>
  command(`session ${verb}`, 'get-session-transcript', {
    ...ID,
    also: ['stream-session'],
    ...(summary === undefined ? {} : { summary }),
    arguments: ['<id>'],
    flags: { include_thinking: '--thinking' },
    more: [followFlag],
    run: showTranscript,
    examples,
  })

export const commands: readonly CommandSpec[] = [
  command('session list', 'list-sessions', {
    view: SESSION,
    examples: {
      'svcctl session list': 'all open sessions',
      'svcctl session list -A': 'those of all cities',
      'svcctl session list --state active,draining': 'those whose process runs',
    },
  }),
  command('session get', 'get-session', {
    ...ID,
    arguments: ['<id...>'],
    view: SESSION,
    run: showSession,
    examples: { 'svcctl session get helper': 'one session' },
  }),
  sessionUsage,
  command('session create', 'create-session', {
    ...CREATED,
    arguments: ['<name>'],
    says: { ...CREATED.says, name: 'Agent, or provider with --provider.' },
    completes: { name: 'agent' },
    leaves: { kind: '--provider says it', attachments: '--attach' },
    more: [{ flags: '--provider', description: 'NAME is a provider: a conversation without an agent.' }, attachFlag],
    fill: async (context, input): Promise<SaidOf<'create-session'>> => ({
      kind: input.on('provider') ? 'provider' : 'agent',
      ...(await attached(context, input)),
    }),
    examples: {
      'svcctl session create worker': 'start a session of an agent',
      'svcctl session create shell --provider --alias sh': 'a shell to talk to',
    },
  }),
  command('session update', 'patch-session', {
    ...ID,
    arguments: ['<id...>'],
    flags: { metadata: '--meta', options: '--option' },
    says: {
      ...ID.says,
      alias: "Another handle; '' for none.",
      metadata: 'Metadata.',
      options: 'An option of the provider, or of its agent.',
    },
    view: SESSION,
    examples: {
      'svcctl session update helper --title "Avatars"': 'another title',
      'svcctl session update helper --model opus --mode plan': 'at once where its agent can be told',
    },
  }),
  command('session options', 'get-session-options', {
    ...ID,
    arguments: ['<id>'],
    run: showOptions,
    examples: { 'svcctl session options helper': 'what can be chosen for it' },
  }),
  command('session delete', 'delete-session', {
    ...ID,
    arguments: ['<id...>'],
    asks: (names) => `Close session ${names} and delete its record?`,
    view: DELETED,
    examples: { 'svcctl session delete helper --yes': 'end it and forget it' },
  }),
  command('session message', 'send-session-message', {
    ...ATTACHING,
    arguments: ['<id>', '<message...>'],
    examples: { 'svcctl session message helper run the tests': 'say something' },
  }),
  command('session prompt', 'prompt-session', {
    ...ATTACHING,
    arguments: ['<id>', '<message...>'],
    examples: { 'svcctl session prompt helper - < task.md': 'say what a file says' },
  }),
  command('session submit', 'submit-session', {
    ...ATTACHING,
    arguments: ['<id>', '<message...>'],
    examples: { 'svcctl session submit helper --intent interrupt_now stop that': 'interrupt, then say it' },
  }),
  command('session nudge', 'nudge-session', {
    ...SAYING,
    arguments: ['<id>', '<message...>'],
    view: DELIVERY,
    examples: { 'svcctl session nudge helper mail is waiting': 'remind it once it is idle' },
  }),
  command('session deliveries', 'list-session-deliveries', {
    ...ID,
    also: ['cancel-session-delivery'],
    arguments: ['<id>'],
    more: [cancelFlag('delivery', 'deliveryId')],
    view: DELIVERY,
    run: async ({ context, input, client, cityName, said, options, show }) => {
      const deliveryId = input.text('cancel')
      if (deliveryId === undefined) return show()
      const params = { cityName, id: String(said.id), deliveryId }
      await context.print.require(DELIVERY)
      return printItem(context, DELIVERY, await client.call('cancel-session-delivery', { params, ...options }))
    },
    examples: { 'svcctl session deliveries helper': 'what was and will be said to it' },
  }),
  command('session stop', 'stop-session', {
    ...ID,
    arguments: ['<id...>'],
    view: STOPPED,
    examples: { 'svcctl session stop helper': 'interrupt what it is doing' },
  }),
  simple('kill', 'kill-session', 'end its processes; it starts again'),
  simple('suspend', 'suspend-session', 'stop it until somebody wakes it'),
  simple('wake', 'wake-session', 'start it'),
  simple('resume', 'resume-session', 'start it'),
  command('session close', 'close-session', {
    ...ID,
    arguments: ['<id...>'],
    view: SESSION,
    examples: { 'svcctl session close helper': 'end it for good' },
  }),
  command('session rename', 'patch-session', {
    summary: 'Give a session another title',
    ...ID,
    ...CHANGED_BY_UPDATE,
    arguments: ['<id>', '<title>'],
    view: SESSION,
    examples: { 'svcctl session rename helper "Avatars"': 'another title' },
  }),
  command('session pending', 'get-session-pending', {
    ...ID,
    arguments: ['<id>'],
    view: PENDING,
    examples: { 'svcctl session pending helper': 'what it waits for' },
  }),
  command('session respond', 'respond-session', {
    ...ID,
    also: ['get-session-pending'],
    arguments: ['<id>'],
    operands: [
      {
        name: '[choice]',
        description:
          'Number, label or id of a choice; or approve, approve-always, deny, cancel (default: asked for in a terminal).',
        complete: 'none',
      },
    ],
    flags: { request_id: '--request' },
    says: { ...ID.says, request_id: 'Only where this one is pending.' },
    leaves: { action: 'the choice says it', option_id: 'the choice says it' },
    fill: async (context, input) => bodyOf<SaidOf<'respond-session'>>(await answerFields(context, input)),
    view: SESSION,
    run: async (call) => {
      const { id: _, ...answer } = call.said
      return printItem(call.context, SESSION, await respondTo(call, answer))
    },
    examples: {
      'svcctl session respond helper': 'see what it asks, and choose',
      'svcctl session respond helper 1': 'the first choice',
      'svcctl session respond helper deny': 'say no',
    },
  }),
  reading('transcript', undefined, { 'svcctl session transcript helper --limit 20': 'the last entries' }),
  reading('logs', 'See what a session said and did', {
    'svcctl session logs -f helper': 'what it says, as it says it',
  }),
  command('session screen', 'get-session-screen', {
    ...ID,
    also: ['stream-session-terminal'],
    arguments: ['<id>'],
    says: { ...ID.says, format: 'text, or ansi: with colours.' },
    more: [{ flags: '-w, --watch', description: 'Again whenever it changes.' }],
    run: showScreen,
    examples: {
      'svcctl session screen helper': 'what its terminal shows',
      'svcctl session screen helper --format ansi --watch': 'as it changes, with colours',
    },
  }),
  command('session keys', 'send-session-keys', {
    ...ID,
    arguments: ['<id>', '<keys...>'],
    says: {
      ...ID.says,
      keys: 'Names of keys, such as Enter, Escape, Up, C-c, or single characters.',
      expect_screen: 'Types only where the screen shows this.',
    },
    print: async ({ print }, { body, text }) =>
      print.isForPeople
        ? undefined
        : print.item({ item: body, columns: [], name: ({ session_id }) => session_id, json: text }),
    examples: {
      'svcctl session keys helper C-c': 'interrupt what it runs',
      'svcctl session keys helper Down Enter --expect-screen "Do you trust"': 'answer a dialog, only that one',
    },
  }),
  command('session attach', 'stream-session-terminal', {
    ...ID,
    also: [
      'get-session',
      'type-into-session',
      'resize-session-terminal',
      'stream-session',
      'submit-session',
      'respond-session',
    ],
    summary: 'Sit at the terminal of a session',
    description:
      'Everything it shows, every key; ctrl-], or ~. at the start of a line, leaves, and the session goes on. Where there is no terminal, at either end, it is what the session says and lines that are typed to it; ctrl-], a line that is only ~., or the end of the input (ctrl-D) leaves.',
    arguments: ['<id>'],
    leaves: { viewer: 'every stream has its own', after_cursor: 'the command resumes by itself' },
    examples: { 'svcctl session attach helper': 'as if one sat there' },
    run: attach,
  }),
  command('session agents', 'list-session-agents', {
    ...ID,
    also: ['get-session-agent'],
    arguments: ['<id>'],
    operands: [{ name: '[agent]', field: 'agentId', description: 'Id of a sub-agent: what it said.' }],
    run: showSubAgents,
    examples: { 'svcctl session agents helper': 'its sub-agents' },
  }),
  command('session wait', 'create-session-wait', {
    operands: [beads],
    leaves: { id: 'the first word or --session', dep_ids: 'the words', dep_mode: '--any says it' },
    says: { note: 'Said to it when the wait is over.' },
    more: [
      { flags: '--session <session>', description: 'Who waits; all words are beads then.', complete: 'session' },
      { flags: '--any', description: 'One of them is enough.' },
    ],
    fill: waiting,
    view: WAIT,
    examples: {
      'svcctl session wait helper de-a1b de-c2d': 'wake it when both are closed',
      'svcctl session wait de-a1b': 'from inside the session',
    },
  }),
  command('session waits', 'list-waits', {
    also: ['cancel-wait'],
    arguments: ['[session]'],
    says: { session: 'Whose waits (default: those of all).' },
    completes: { session: 'session' },
    more: [cancelFlag('wait', 'id')],
    view: WAIT,
    run: async ({ context, input, client, cityName, options, show }) => {
      const id = input.text('cancel')
      if (id === undefined) return show()
      await context.print.require(WAIT)
      return printItem(context, WAIT, await client.call('cancel-wait', { params: { cityName, id }, ...options }))
    },
    examples: { 'svcctl session waits --state pending': 'who waits for what' },
  }),
  command('session prune', 'prune-sessions', {
    says: { closed_before: 'Closed at least this long ago (default: 7d).' },
    fill: () => ({ closed_before: '7d' }),
    view: PRUNED,
    examples: { 'svcctl session prune --closed-before 30d': 'forget old ones' },
  }),
  pinning('pin', true, 'Keep a session awake'),
  pinning('unpin', false, 'No longer keep a session awake'),
  simple('reset', 'reset-session', 'start again with a fresh conversation'),
  simple('drain', 'drain-session', 'let it finish, then sleep'),
  simple('undrain', 'undrain-session', 'take that back'),
  command('session drain-status', 'get-session-drain', {
    ...OWN,
    arguments: ['[id]'],
    view: DRAIN,
    examples: { 'svcctl session drain-status -o name': 'says draining where it is to finish' },
  }),
  ofOneself('drain-ack', 'ack-session-drain', 'an agent says that it has finished'),
  ofOneself('request-restart', 'request-session-restart', 'restart once its turn has ended'),
  ofOneself('heartbeat', 'heartbeat-session', 'an agent says that it is at work'),
  command('session report', 'report-session', {
    ...OWN,
    arguments: ['[id]'],
    description: 'With --from it is a hook of that harness: it reads what that tells from stdin, and never fails.',
    more: [
      {
        flags: '--from <harness>',
        description: 'Whose hook it is: claude, codex, gemini or qwen.',
        complete: 'provider-base',
      },
    ],
    fill: (context, input) => ({ ...ownId(context, input), ...ownRun(context, input) }),
    run: async (call) => {
      const from = call.input.text('from')
      if (from === undefined) return call.show()
      const { runHook } = await import('../hooks/run.ts')
      const { cwd, home, stdin, stdout, clock } = call.context.io
      await runHook(from, {
        env: await hookEnv(call.context, call.input),
        cwd,
        home,
        input: () => stdin.readAll(),
        print: (text) => stdout.write(text),
        now: () => clock.now(),
      })
      return EXIT.ok
    },
    view: SESSION,
    examples: {
      'svcctl session report --activity idle': 'an agent says that its turn is over',
      'svcctl session report --from claude': 'a hook of Claude Code',
    },
  }),
  command('session permission', 'ask-session-permission', {
    ...OWN,
    arguments: ['<tool>', '[id]'],
    description: 'Waits until somebody has answered, or a rule has.',
    fill: (context, input) => ({ ...ownId(context, input), ...ownRun(context, input) }),
    timeoutMs: async () => PERMISSION_MS,
    view: VERDICT,
    examples: { 'svcctl session permission Bash --input command="rm -rf build"': 'may it?' },
  }),
  simple('release-name', 'release-session-name', 'free the alias of a closed session'),
]
