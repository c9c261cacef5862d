/** `svcctl event emit`. */
import { isRecord } from '../../client/problems.ts'
import { type CommandSpec, type Input, keyFlag } from '../base/command.ts'
import type { Context } from '../base/context.ts'
import { readData } from '../base/data.ts'
import { EXIT, usageError } from '../base/failure.ts'

async function emit(context: Context, input: Input): Promise<number> {
  const payload = await readPayload(context, input.text('payload'))
  const { env } = context.io
  const actor = input.text('actor') ?? (env['SVC_ALIAS'] || env['SVC_AGENT'] || env['SVC_SESSION_ID'] || 'human')
  using limit = context.within()
  const cityName = await context.needCity(undefined, limit.signal)
  const client = await context.client()
  const [subject, message] = [input.text('subject'), input.text('message')]
  const { body, text } = await client.call('emit-event', {
    params: { cityName },
    body: {
      type: input.required('type'),
      actor,
      ...(subject === undefined ? {} : { subject }),
      ...(message === undefined ? {} : { message }),
      ...(payload === undefined ? {} : { payload }),
    },
    idempotencyKey: input.text('idempotencyKey'),
    signal: limit.signal,
  })
  await context.print.item({
    item: body,
    columns: [
      { header: 'STATUS', value: (item) => item.status },
      { header: 'SEQ', value: (item) => item.seq },
    ],
    name: (item) => String(item.seq),
    json: text,
  })
  return EXIT.ok
}

async function readPayload(
  context: Context,
  source: string | undefined,
): Promise<{ [key: string]: unknown } | undefined> {
  if (source === undefined) return undefined
  const text = await readData(context.io, source, '--payload')
  const value = parseJson(text)
  if (!isRecord(value)) throw usageError('invalid --payload: expected a JSON object, @FILE or -')
  return value
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch (error) {
    throw usageError(`invalid --payload: ${error instanceof Error ? error.message : 'not JSON'}`)
  }
}

export const commands: readonly CommandSpec[] = [
  {
    path: ['event', 'emit'],
    operations: ['emit-event'],
    arguments: [{ name: '<type>' }],
    flags: [
      {
        flags: '--actor <actor>',
        description: 'Who does it; SVC_ALIAS, SVC_AGENT or SVC_SESSION_ID, else `human`, where absent.',
      },
      { flags: '--subject <id>', description: 'What it is about.' },
      { flags: '--message <text>', description: 'For people.' },
      { flags: '--payload <json>', description: 'A JSON object, @FILE, or - for stdin.' },
      keyFlag,
    ],
    examples: [
      {
        line: `svcctl event emit deploy.done --city alpha --subject web --payload '{"env":"prod"}'`,
        does: 'append an event',
      },
      { line: 'svcctl event emit report.ready --payload @report.json', does: 'its payload from a file' },
    ],
    run: emit,
  },
]
