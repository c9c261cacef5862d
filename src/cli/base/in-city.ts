/**
 * Commands that are one call in the city in scope, as most are: what differs is the call, its body and what is shown of
 * the answer. The rest is here once: the city, the client, the time limit, `--if-match`, `--idempotency-key`.
 */
import type { CallOptions, Client, Reply } from '../../client/client.ts'
import type { AsyncAcceptedResponse } from '../../contract/base/accepted.ts'
import type { QueryOf } from '../../contract/base/operation.ts'
import type { OperationById, OperationId } from '../../contract/index.ts'
import { settle } from './accepted.ts'
import type { CommandSpec, Input } from './command.ts'
import { type Context, REQUEST_TIMEOUT_MS } from './context.ts'
import { type AnswerOf, allColumns, type View, viewOf } from './declaration.ts'
import { EXIT } from './failure.ts'
import { type Fields, preconditionOf, readFields } from './fields.ts'
import { listAll, mostOf, type Page, pageSize } from './paged.ts'

export type { AnswerOf, View }
export { allColumns, viewOf }

type Run = CommandSpec['run']

export type QueryFor<Id extends OperationId> = QueryOf<OperationById<Id>>

export interface InCity {
  readonly context: Context
  readonly client: Client
  readonly cityName: string
  readonly input: Input
  /** For every call: its time limit, and the headers that flags ask for. */
  readonly options: CallOptions & { readonly signal: AbortSignal }
}

/** Calls within the time limit of an ordinary request, or another one. */
export async function inCity<T>(
  context: Context,
  input: Input,
  work: (city: InCity) => Promise<T>,
  limitMs?: number,
): Promise<T> {
  using limit = context.within(limitMs)
  const cityName = await context.needCity(undefined, limit.signal)
  return await work({
    context,
    client: await context.client(),
    cityName,
    input,
    options: {
      signal: limit.signal,
      headers: preconditionOf(input),
      idempotencyKey: input.text('idempotencyKey'),
    },
  })
}

/** What a command line says of a body or a query. */
export type FieldsOf = (context: Context, input: Input) => Promise<Fields>
const noFields: FieldsOf = async () => ({})

/** What `--data`, `--set` and `--unset` say, over what flags and arguments say. */
export const fieldsOver =
  (base: (context: Context, input: Input) => Fields | Promise<Fields> = () => ({})): FieldsOf =>
  async (context, input) =>
    readFields(context, input, await base(context, input))

/** A command that shows one thing; `fields` are read before the clock runs: somebody may be typing them. */
export function printsItem<T>(
  view: View<T>,
  call: (city: InCity, fields: Fields) => Promise<Reply<T>>,
  fields: FieldsOf = noFields,
): Run {
  const { columns, name } = allColumns(view)
  return async (context, input) => {
    const body = await fields(context, input)
    const reply = await inCity(context, input, (city) => call(city, body))
    await context.print.item({ item: reply.body, columns, name, json: reply.text })
    const waitsFor = reply.headers.get('x-svc-config-rejected')
    if (waitsFor !== null) await context.note(`written, not in force yet: the configuration is rejected: ${waitsFor}`)
    return EXIT.ok
  }
}

/** A command that somebody has to say yes to first. */
export const asking =
  (question: (input: Input) => string, run: Run): Run =>
  async (context, input) => {
    await context.confirm(question(input), input.on('yes'))
    return run(context, input)
  }

/** A command that starts something: it is waited for, or the answer says what to wait for (`settle`). */
export function starts(
  what: string,
  call: (city: InCity, fields: Fields) => Promise<Reply<AsyncAcceptedResponse>>,
  fields: FieldsOf = noFields,
): Run {
  return async (context, input) => {
    const said = await fields(context, input)
    return inCity(context, input, async (city) => {
      const { body, text } = await call(city, said)
      return settle(context, input, what, { ...body, city: city.cityName }, text)
    })
  }
}

/** A command that shows a whole list; sources that could not be read are warned of. */
export function printsList<T>(
  view: View<T>,
  call: (city: InCity, fields: Fields) => Promise<Reply<Page<T> & { readonly partial_errors?: readonly string[] }>>,
  fields: FieldsOf = noFields,
): Run {
  return async (context, input) => {
    const filters = await fields(context, input)
    const { body, text } = await inCity(context, input, (city) => call(city, filters))
    await context.print.list({ items: body.items, ...view, json: text })
    for (const failure of body.partial_errors ?? []) await context.note(`warning: ${failure}`)
    return EXIT.ok
  }
}

interface Paging {
  readonly limit: number
  readonly cursor: string | undefined
}

interface PagesOptions {
  readonly fields?: FieldsOf
  /** What waiting takes on top of the time limit. */
  readonly patienceMs?: (input: Input) => Promise<number>
}

/** A command that shows as much of a list in pages as `pageFlags` say. */
export function printsPages<T>(
  view: View<T>,
  call: (city: InCity, page: Paging, fields: Fields) => Promise<Reply<Page<T>>>,
  { fields = noFields, patienceMs = async () => 0 }: PagesOptions = {},
): Run {
  return async (context, input) => {
    const most = mostOf(input)
    const filters = await fields(context, input)
    const all = await inCity(
      context,
      input,
      (city) => listAll((cursor) => call(city, { limit: pageSize(most), cursor }, filters), most),
      REQUEST_TIMEOUT_MS + (await patienceMs(input)),
    )
    await context.print.list({ ...all, ...view })
    if (all.more) await context.note(`showing the first ${all.items.length}; --limit N or --paginate gets more`)
    return EXIT.ok
  }
}
