/** What a declared command does: reads what was said, calls its operation once or for each of several, shows the answer. */

import type { CallOptions, Reply } from '../../client/client.ts'
import { isRecord } from '../../client/problems.ts'
import type { AsyncAcceptedResponse } from '../../contract/base/accepted.ts'
import type { OperationId } from '../../contract/index.ts'
import type { CommandSpec, Input } from '../base/command.ts'
import type { Context } from '../base/context.ts'
import { listCities } from '../base/discovery.ts'
import { EXIT, report, usageError } from '../base/failure.ts'
import { BrokenPipe, Interrupted } from '../base/io.ts'
import { allColumns, type View } from '../print/view.ts'
import { settle } from './accepted.ts'
import type { AnswerOf, Call, Declaration, SaidOf, ShownOf } from './declaration.ts'
import { askEach } from './each-city.ts'
import { type FieldFlag, fieldsFrom, parseValue } from './field-flags.ts'
import { saidAs } from './field-words.ts'
import { bodyOf, type Fields, preconditionOf, readFields, readWords } from './fields.ts'
import { listAll, mostOf, type Page, pageSize, type WholeList } from './paged.ts'
import type { FieldRow, OperationRow } from './table.ts'

/** An argument, and the field that it says. */
export interface Positional {
  readonly field: string
  /** Undefined for the city, which has no row. */
  readonly row: FieldRow | undefined
  readonly name: string
  readonly isVariadic: boolean
  readonly isOptional: boolean
  /** Each of its words is a call of its own. */
  readonly isEach: boolean
}

export interface Plan<Id extends OperationId> {
  /** Those of the command. */
  readonly words: string
  readonly operation: Id
  readonly declared: Declaration<Id>
  readonly row: OperationRow
  readonly positionals: readonly Positional[]
  readonly each: Positional | undefined
  readonly isQueried: boolean
  readonly isFleet: boolean
  readonly fields: readonly FieldFlag[]
  /** How the command line says fields, for errors. */
  readonly spelled: Pick<CommandSpec, 'flags' | 'arguments'>
}

/** Which of several a call is about. */
interface Which {
  readonly field: string
  readonly name: string
}

export function planRun<Id extends OperationId>(plan: Plan<Id>): CommandSpec['run'] {
  return async (context, input) => {
    const names = await namesOf(plan, context, input)
    if (names?.length === 0) return EXIT.ok
    const { declared, row } = plan
    const view = names !== undefined && names.length > 1 ? (declared.rows ?? declared.view) : declared.view
    if (row.method !== 'GET' && (view !== undefined || row.accepts !== undefined))
      await context.print.require<ShownOf<Id>>(view ?? { columns: [], name: String })
    const asked = await declared.asks?.(sentenceOf(names ?? []), input, context)
    if (asked !== undefined) await context.confirm(asked, input.on('yes'))
    else if (row.method !== 'GET' && names !== undefined && input.has('query') && context.canAsk)
      await context.confirm(`${plan.words}: ${names.length} in all, ${sentenceOf(names)}?`, input.on('yes'))
    const { each } = plan
    if (each === undefined || names === undefined) return runOnce(plan, context, input, undefined)
    const [first] = names
    if (first !== undefined && names.length === 1)
      return runOnce(plan, context, input, { field: each.field, name: first })
    return runEach(
      plan,
      context,
      input,
      names.map((name) => ({ field: each.field, name })),
    )
  }
}

/** At most so many are named in a question. */
const MOST_NAMED = 5
function sentenceOf(names: readonly string[]): string {
  if (names.length > MOST_NAMED) return `${names.slice(0, MOST_NAMED).join(', ')} and ${names.length - MOST_NAMED} more`
  return names.length < 2 ? names.join() : `${names.slice(0, -1).join(', ')} and ${names.at(-1)}`
}

/** What the words or `--query` name; undefined where the command is about one thing, or about the city in scope. */
async function namesOf<Id extends OperationId>(
  { each, isQueried, words }: Plan<Id>,
  context: Context,
  input: Input,
): Promise<readonly string[] | undefined> {
  if (each === undefined) return undefined
  const names = [...new Set(input.texts(each.name))]
  const expression = isQueried ? input.text('query') : undefined
  if (expression !== undefined) {
    if (names.length > 0) throw usageError('ids and --query are mutually exclusive')
    return queried(context, expression)
  }
  if (names.length === 0 && !each.isOptional) {
    const other = isQueried ? ', or --query for all that satisfy an expression' : ''
    throw usageError(`missing required argument '${each.name}'${other}`, `see: svcctl ${words} --help`)
  }
  if (names.length > 1 && (input.has('ifMatch') || input.has('idempotencyKey')))
    throw usageError('--if-match and --idempotency-key go with one thing only')
  return names.length === 0 ? undefined : names
}

async function queried(context: Context, expression: string): Promise<readonly string[]> {
  using limit = context.within()
  const { signal } = limit
  const params = { cityName: await context.needCity(undefined, signal) }
  const client = await context.client()
  const { items } = await listAll((cursor) =>
    client.call('query-beads', { params, query: { q: expression, limit: 1000, cursor }, signal }),
  )
  if (items.length === 0) await context.note('no bead satisfies the query')
  return items.map(({ id }) => id)
}

async function runOnce<Id extends OperationId>(
  plan: Plan<Id>,
  context: Context,
  input: Input,
  which: Which | undefined,
): Promise<number> {
  const { declared, isFleet } = plan
  const said = await saidOf(plan, context, input, which)
  if (isFleet && context.options.allCities) return listFleet(plan, context, input, said)
  return withCall(plan, context, input, said, which, (call) => declared.run?.(call) ?? call.show())
}

async function showAnswer<Id extends OperationId>(plan: Plan<Id>, call: Call<Id>): Promise<number> {
  const { context, input } = call
  const { print, view } = plan.declared
  if (print !== undefined) {
    await print(context, await call.send(), input)
    return EXIT.ok
  }
  if (plan.row.lists === true) return showList(context, view, await listOf(plan, call))
  return showItem(plan, call, await sent<Id, ShownOf<Id>>(plan, call, {}))
}

/** Those that can be done are done; each that cannot is told of. */
async function runEach<Id extends OperationId>(
  plan: Plan<Id>,
  context: Context,
  input: Input,
  all: readonly Which[],
): Promise<number> {
  const { declared, row, spelled } = plan
  const view = declared.rows ?? declared.view
  const json = ['json', 'jsonl'].includes(context.print.format)
  const fieldNames = (location: string) => saidAs(location, spelled, input)
  const done: ShownOf<Id>[] = []
  let exitCode: number = EXIT.ok
  for (const which of all) {
    try {
      if (view === undefined) exitCode = worse(exitCode, await runOnce(plan, context, input, which))
      else {
        const said = await saidOf(plan, context, input, which)
        const ended = await withCall(plan, context, input, said, which, async (call) => {
          const reply = await sent<Id, ShownOf<Id>>(plan, call, {})
          if (row.accepts !== undefined && isAccepted(reply.body)) return showItem(plan, call, reply)
          done.push(reply.body)
          return EXIT.ok
        })
        exitCode = worse(exitCode, ended)
      }
    } catch (error) {
      if (error instanceof BrokenPipe || error instanceof Interrupted) throw error
      exitCode = worse(exitCode, await report(error, context.io, { prefix: `${which.name}: `, json, fieldNames }))
    }
  }
  if (view !== undefined && done.length > 0) {
    const text = JSON.stringify({ items: done, total: done.length })
    await showList(context, view, { items: done, json: text, more: false })
  }
  return exitCode
}

/** The first refusal says how it ended. */
const worse = (before: number, now: number): number => (before === EXIT.ok ? now : before)

/** What flags, arguments and the surroundings say, as fields. */
async function saidOf<Id extends OperationId>(
  { declared, positionals, fields }: Plan<Id>,
  context: Context,
  input: Input,
  which: Which | undefined,
): Promise<Fields> {
  const given = {
    ...(await fieldsFrom(context, input, fields)),
    ...(await operandsOf(context, input, positionals)),
    ...(which === undefined ? {} : { [which.field]: which.name }),
  }
  const filled = { ...(await declared.fill?.(context, input)), ...given }
  const changed = { ...filled, ...declared.change?.(bodyOf<SaidOf<Id>>(filled), context) }
  return declared.json === true ? readFields(context, input, changed) : changed
}

async function operandsOf(context: Context, input: Input, positionals: readonly Positional[]): Promise<Fields> {
  const fields: [string, unknown][] = []
  for (const { field, row, name, isVariadic, isEach } of positionals) {
    if (isEach || row === undefined) continue
    const words = isVariadic ? input.texts(name) : [input.text(name)].filter((text) => text !== undefined)
    if (words.length === 0) continue
    if (row.many === true) fields.push([field, words])
    else if (isVariadic)
      fields.push([field, row.kind === 'words' ? await readWords(context.io, words) : words.join(' ')])
    else fields.push([field, await parseValue(context, `<${name}>`, words.join(' '), row)])
  }
  return Object.fromEntries(fields)
}

async function withCall<Id extends OperationId, T>(
  plan: Plan<Id>,
  context: Context,
  input: Input,
  said: Fields,
  which: Which | undefined,
  work: (call: Call<Id>) => Promise<T>,
): Promise<T> {
  const { declared, row } = plan
  using limit = context.within(await declared.timeoutMs?.(input))
  const { signal } = limit
  const named = which?.field === 'cityName' ? which.name : undefined
  const cityName = row.city === true ? await context.needCity(named, signal) : ''
  return await work(await callOf(plan, context, input, said, cityName, signal))
}

async function callOf<Id extends OperationId>(
  plan: Plan<Id>,
  context: Context,
  input: Input,
  said: Fields,
  cityName: string,
  signal: AbortSignal,
): Promise<Call<Id>> {
  const options: CallOptions & { readonly signal: AbortSignal } = {
    signal,
    headers: preconditionOf(input),
    idempotencyKey: input.text('idempotencyKey'),
    ...(plan.declared.retries === undefined ? {} : { retries: plan.declared.retries }),
  }
  const client = await context.client()
  const call: Call<Id> = {
    context,
    input,
    client,
    cityName,
    said: bodyOf<SaidOf<Id>>(said),
    options,
    show: () => showAnswer(plan, call),
    send: (more = {}) => sent<Id, AnswerOf<Id>>(plan, call, more),
  }
  return call
}

/** The operation, with every field at its place. */
async function sent<Id extends OperationId, T>(
  { operation, row }: Plan<Id>,
  call: Call<Id>,
  more: object,
): Promise<Reply<T>> {
  const { client, cityName, said, options } = call
  const places = {
    params: new Map<string, unknown>(),
    query: new Map<string, unknown>(),
    body: new Map<string, unknown>(),
  }
  if (row.city === true) places.params.set('cityName', cityName)
  for (const [field, value] of Object.entries({ ...said, ...more })) {
    if (field === 'cityName') continue
    places[row.fields[field]?.at ?? (hasBody(row) && row.asks?.includes(field) !== true ? 'body' : 'query')].set(
      field,
      value,
    )
  }
  const reply = await client.request<T>(operation, {
    ...options,
    params: Object.fromEntries(places.params),
    query: Object.fromEntries(places.query),
    ...(hasBody(row) ? { body: Object.fromEntries(places.body) } : {}),
  })
  if (row.method !== 'GET') for (const warning of warningsOf(reply.body)) await call.context.note(`warning: ${warning}`)
  const waitsFor = reply.headers.get('x-svc-config-rejected')
  if (waitsFor !== null)
    await call.context.note(`written, not in force yet: the configuration is rejected: ${waitsFor}`)
  return reply
}

/** What is done all the same, and may not be what was meant. */
const warningsOf = (body: unknown): readonly string[] =>
  isRecord(body) && Array.isArray(body['warnings']) ? body['warnings'].filter((one) => typeof one === 'string') : []

const hasBody = ({ fields }: OperationRow): boolean => Object.values(fields).some(({ at }) => at === 'body')

/** As much of a list as was asked for. */
async function listOf<Id extends OperationId>(plan: Plan<Id>, call: Call<Id>): Promise<WholeList<ShownOf<Id>>> {
  const { context, input } = call
  type Answer = Page<ShownOf<Id>> & { readonly partial_errors?: readonly string[] }
  if (plan.row.paged === true) {
    const most = plan.declared.whole === true && !input.has('limit') ? Number.POSITIVE_INFINITY : mostOf(input)
    return listAll((cursor) => sent<Id, Answer>(plan, call, { limit: pageSize(most), cursor }), most)
  }
  const { body, text } = await sent<Id, Answer>(plan, call, {})
  for (const failure of body.partial_errors ?? []) await context.note(`warning: ${failure}`)
  return { items: body.items, json: text, more: false }
}

async function showList<T>(context: Context, view: View<T> | undefined, list: WholeList<T>): Promise<number> {
  if (view === undefined) throw new TypeError('a list needs a view')
  await context.print.list({ ...list, ...view })
  if (list.items.length === 0 && context.print.isForPeople && context.io.stdout.isTerminal)
    await context.note('nothing to show')
  if (list.more) await context.note(`showing the first ${list.items.length}; --limit N or --paginate gets more`)
  return EXIT.ok
}

/** The same list of every city that runs, each item with its city. */
async function listFleet<Id extends OperationId>(
  plan: Plan<Id>,
  context: Context,
  input: Input,
  said: Fields,
): Promise<number> {
  const { view } = plan.declared
  if (view === undefined) throw new TypeError('a list needs a view')
  using limit = context.within()
  const { signal } = limit
  const cities = (await listCities(await context.client(), signal)).filter(({ running }) => running)
  const { answers, exitCode } = await askEach(context, cities, async ({ name }) => {
    const { items, more } = await listOf(plan, await callOf(plan, context, input, said, name, signal))
    return { items: items.map((item) => ({ ...item, city: name })), more }
  })
  const items = answers.flatMap((one) => one.items)
  const columns = [{ header: 'CITY', value: ({ city }: { readonly city: string }) => city }, ...view.columns]
  const json = JSON.stringify({ items, total: items.length })
  await showList(context, { ...view, columns }, { items, json, more: answers.some(({ more }) => more) })
  return exitCode
}

async function showItem<Id extends OperationId>(
  { declared, row }: Plan<Id>,
  { context, input, cityName }: Call<Id>,
  { body, text }: Reply<ShownOf<Id>>,
): Promise<number> {
  if (row.accepts !== undefined && isAccepted(body)) {
    // The end of what a supervisor does with a city is in its own log.
    const city = row.accepts.startsWith('city.') ? undefined : cityName
    return settle(context, input, row.accepts, { ...body, city }, text)
  }
  if (declared.view === undefined) throw new TypeError('an answer needs a view')
  return printItem(context, declared.view, { body, text })
}

/** One thing, with everything that can be told of it. */
export async function printItem<T>(
  context: Context,
  view: View<T>,
  { body, text }: Pick<Reply<T>, 'body' | 'text'>,
): Promise<number> {
  await context.print.item({ item: body, ...allColumns(view), json: text })
  return EXIT.ok
}

const isAccepted = (body: object): body is AsyncAcceptedResponse => 'request_id' in body && 'event_cursor' in body
