/** `svcctl service …`: programs of a city that serve HTTP. */
import { isUtf8 } from 'node:buffer'
import { delay } from '../../client/clock.ts'
import type { ServiceLog, ServiceSecret, ServiceStatus } from '../../contract/services.ts'
import type { CommandSpec } from '../base/command.ts'
import type { Context } from '../base/context.ts'
import { isCityGone, isRegistered } from '../base/discovery.ts'
import { EXIT, Failure, mayPass, toFailure, usageError } from '../base/failure.ts'
import { readNamedFile } from '../base/named-files.ts'
import type { AnswerOf, Call } from '../framework/declaration.ts'
import { commandsOf } from '../framework/declare.ts'
import { printItem } from '../framework/run.ts'
import { view } from '../print/view.ts'
import { SERVICES as TABLE } from '../tables/services.ts'

const WIDE =
  'mount_path pid listen allow_websockets sandbox health_path state_root pack started_at next_start_at observed_at'
const SHOWN = {
  wide: WIDE,
  as: {
    NAME: 'service_name',
    MODE: 'publish_mode',
    WHY: ({ state, reason, message }: ServiceStatus) => (state === 'ready' ? undefined : (message ?? reason)),
    SINCE: 'updated_at',
  },
  name: 'service_name',
} as const
const SERVICES = view<ServiceStatus>()('NAME state WHY MODE restarts SINCE url', SHOWN)
const SERVICE = view<ServiceStatus>()(
  'NAME state WHY MODE url pid started_at next_start_at restarts listen health_path allow_websockets sandbox state_root pack log_size SINCE observed_at',
  { as: SHOWN.as, name: SHOWN.name },
)
const SECRET = view<ServiceSecret>()('key updated_at', { name: 'key' })
const DELETED = view<AnswerOf<'delete-service-secret'>>()('status key', { name: 'key' })
const LOG = view<ServiceLog>()('text', { name: 'text' })

/** To finish what runs, to end, to be ready again; and the way back. */
const ACTION_MS = 75_000
/** One look at a log; the next one goes on from there. */
const LOOK = '30s'
const LOOK_MS = 45_000
const AGAIN_MS = 1_000
const PAGE = 1024 * 1024

/** What it wrote, as it stands there; with --follow what comes too, until it is stopped. */
async function logs(call: Call<'get-service-log'>): Promise<number> {
  const { context, input, client, cityName, said } = call
  const params = { cityName, name: String(said.name) }
  let { offset } = said
  let more = true
  let isAway = false
  const follows = input.on('follow')
  const signal = follows ? context.io.reading() : context.io.signal
  let atLineStart = true
  while (more) {
    using limit = context.within(LOOK_MS)
    const either = AbortSignal.any([signal, limit.signal])
    const query =
      offset === undefined
        ? { limit: said.limit }
        : { offset, limit: said.limit ?? PAGE, ...(follows ? { wait: LOOK } : {}) }
    const look = await client
      .call('get-service-log', { params, query, signal: either })
      .catch(async (error: unknown) => {
        // It runs on while its server is away.
        if (!follows || offset === undefined || !(await comesBack(call, error))) throw error
        if (!isAway) await context.note(`${toFailure(error).message}; connecting again`)
        isAway = true
        await delay(client.clock, AGAIN_MS, signal)
      })
    if (look === undefined) continue
    isAway = false
    const { body, text } = look
    // It comes in pieces, and not by the line.
    if (context.print.isForPeople) await context.print.raw(body.text)
    else if (body.text !== '' || !follows) await context.print.records([text])
    if (body.text !== '') atLineStart = body.text.endsWith('\n')
    more = follows || (said.limit === undefined && offset !== undefined && body.next_offset < body.end_offset)
    offset = body.next_offset
  }
  if (context.print.isForPeople && !atLineStart) await context.print.raw('\n')
  return EXIT.ok
}

async function comesBack({ context, client, cityName }: Call<'get-service-log'>, error: unknown): Promise<boolean> {
  if (!mayPass(error)) return false
  if (!isCityGone(error)) return true
  using limit = context.within()
  return isRegistered(client, cityName, limit.signal)
}

/** Not as an argument: everybody on the machine sees those. */
async function setSecret(call: Call<'put-service-secret'>): Promise<number> {
  const { context, input, said } = call
  const { io } = context
  const source = input.text('fromFile')
  const value =
    source !== undefined
      ? textOf(await readNamedFile(io, source), '--from-file')
      : io.terminal !== undefined && io.stdin.isTerminal
        ? await asked(context, String(said.key))
        : withoutEnd(textOf(Buffer.concat(await Array.fromAsync(io.stdin.chunks(io.signal))), 'stdin'))
  if (value === '')
    throw usageError('the value is empty', 'give it on stdin: svcctl service secret set NAME KEY < FILE')
  return printItem(context, SECRET, await call.send({ value }))
}

async function asked(context: Context, key: string): Promise<string> {
  const { terminal } = context.io
  if (terminal === undefined) throw usageError('nobody can be asked for the value', 'give it on stdin')
  const { askLine } = await import('../live/prompt.ts')
  return (await askLine(context.io, terminal, `Value of ${key} (not shown): `, { hidden: true })) ?? ''
}

/** What stands for bytes that are no text would be another secret, and nobody can look at it to see that. */
function textOf(bytes: Buffer, source: string): string {
  if (isUtf8(bytes)) return bytes.toString('utf8')
  throw usageError(`a secret is UTF-8 text, which ${source} is not`, 'write it as text, in base64 for instance')
}

/** What `echo` adds is none of it. */
const withoutEnd = (text: string): string => text.replace(/\r?\n$/, '')

async function act<Id extends 'restart-service' | 'resume-service'>(
  call: Call<Id>,
  send: () => Promise<{ readonly body: ServiceStatus; readonly text: string }>,
): Promise<number> {
  const reply = await send()
  const { service_name: name, state, reason, message } = reply.body
  if (state === 'ready') return printItem(call.context, SERVICE, reply)
  throw new Failure(EXIT.operationFailed, `${name} is ${state}: ${message ?? reason ?? 'nobody knows why'}`, {
    body: reply.body,
    hint: `svcctl service logs ${name}`,
  })
}

const command = commandsOf(TABLE)

export const commands: readonly CommandSpec[] = [
  command('service list', 'list-services', {
    view: SERVICES,
    examples: {
      'svcctl service list': 'which there are, and how they are',
      'svcctl service list --watch': 'as they change',
    },
  }),
  command('service get', 'get-service', {
    arguments: ['<name...>'],
    view: SERVICE,
    rows: SERVICES,
    examples: { 'svcctl service get page': 'its process, its address, and what is wrong with it' },
  }),
  command('service logs', 'get-service-log', {
    arguments: ['<name>'],
    says: { limit: 'Bytes at most.', offset: 'First byte; without it the last of what it wrote.' },
    leaves: { wait: '--follow waits' },
    more: [{ flags: '-f, --follow', description: 'Go on with what comes, until it is stopped.' }],
    view: LOG,
    run: logs,
    examples: {
      'svcctl service logs page': 'the last of what it wrote',
      'svcctl service logs page -f': 'and what comes',
      'svcctl service logs page --offset 0 -o json': 'from the first byte that is kept, with offsets',
    },
  }),
  command('service restart', 'restart-service', {
    arguments: ['<name>'],
    view: SERVICE,
    timeoutMs: async () => ACTION_MS,
    run: (call) => act(call, call.send),
    examples: { 'svcctl service restart page': 'without a request lost; exit code 9 where it does not become ready' },
  }),
  command('service suspend', 'suspend-service', {
    arguments: ['<name...>'],
    view: SERVICE,
    rows: SERVICES,
    timeoutMs: async () => ACTION_MS,
    examples: { 'svcctl service suspend page': 'until it is resumed' },
  }),
  command('service resume', 'resume-service', {
    arguments: ['<name>'],
    view: SERVICE,
    timeoutMs: async () => ACTION_MS,
    run: (call) => act(call, call.send),
    examples: { 'svcctl service resume page': 'and wait until it is ready' },
  }),
  command('service secret list', 'list-service-secrets', {
    arguments: ['<name>'],
    view: SECRET,
    completes: { name: 'service' },
    examples: { 'svcctl service secret list irc': 'their names' },
  }),
  command('service secret set', 'put-service-secret', {
    arguments: ['<name>', '<key>'],
    view: SECRET,
    completes: { name: 'service', key: 'none' },
    leaves: { value: 'it comes from stdin, a file or a prompt' },
    more: [{ flags: '--from-file <path>', description: 'The value is what stands in this file.', complete: 'file' }],
    run: setSecret,
    description: 'The value is read from stdin, without the end of its line, or asked for; it is never an argument.',
    examples: {
      'svcctl service secret set irc password': 'asked for, and not shown',
      'pass irc/bay | svcctl service secret set irc password': 'from another program',
    },
  }),
  command('service secret delete', 'delete-service-secret', {
    arguments: ['<name>', '<key>'],
    view: DELETED,
    completes: { name: 'service', key: 'none' },
    examples: { 'svcctl service secret delete irc password': 'its process may still know it: restart it' },
  }),
]
