/** `svcctl order …`: what a city does by itself, when, and what came of it. */

import type { Client } from '../../client/client.ts'
import { TimedOut } from '../../client/clock.ts'
import type { Order, OrderRun } from '../../contract/automation/orders.ts'
import type { CommandSpec } from '../base/command.ts'
import type { Context } from '../base/context.ts'
import { EXIT, Failure } from '../base/failure.ts'
import { Interrupted } from '../base/io.ts'
import { parseTimeout } from '../framework/accepted.ts'
import type { AnswerOf, Call } from '../framework/declaration.ts'
import { commandsOf } from '../framework/declare.ts'
import { anyOf, type Cell, cellOf } from '../print/columns.ts'
import { allColumns, view } from '../print/view.ts'
import { ORDERS as TABLE } from '../tables/orders.ts'
import { readVars, varFlag, varsFrom } from '../views/formula-vars.ts'
import { fileCommands } from './order-files.ts'

/** What an order does, in a word or two. */
const doesOf = ({ formula, exec }: Order): string | undefined => formula ?? exec
const pairsOf = (values: Readonly<Record<string, unknown>>): Cell =>
  anyOf(Object.entries(values).map(([name, value]) => `${name}=${String(cellOf(value))}`))
const stateOf = ({ valid, enabled, suspended, running }: Order): string =>
  !valid ? 'invalid' : !enabled ? 'disabled' : suspended ? 'suspended' : running > 0 ? 'running' : 'enabled'

const SHOWN = {
  as: {
    STATE: stateOf,
    LAST: ({ last_run: run }: Order) => run?.status,
    AT: ({ last_run: run }: Order) => run?.started_at,
    NEXT: 'next_run_at',
    DOES: doesOf,
    WHY: 'reason',
    VARS: ({ vars = {} }: Order) => pairsOf(vars),
    MATCH: ({ match = {} }: Order) => pairsOf(match),
    WARNINGS: ({ warnings = [] }: Order) => anyOf(warnings),
    ISSUES: ({ issues }: Order) =>
      anyOf(issues.map(({ file, line, key, message }) => `${file}:${line}: ${key} ${message}`)),
  },
  name: 'scoped_name',
} as const
const ORDERS = view<Order>()('scoped_name STATE trigger NEXT LAST AT WHY', {
  ...SHOWN,
  wide: 'due evaluated_at error action DOES schedule tz interval on check target timeout overlap layer file enabled_by description',
})
/** First how it is, then what sets it off, then what it does, then where it comes from. */
const ORDER = view<Order>()(
  'scoped_name STATE trigger WHY NEXT LAST AT error WARNINGS ISSUES description schedule tz catch_up interval check on MATCH action DOES target title bead VARS timeout overlap enabled_by layer pack file',
  SHOWN,
)

const RUN_MORE = {
  wide: 'trigger source scheduled_for reason molecule_id event_count exit_code signal finished_at',
  as: {
    TOOK: ({ duration_ms: ms }: OrderRun) => (ms === undefined ? undefined : `${(ms / 1000).toFixed(1)}s`),
    ORDER: 'scoped_name',
  },
  name: 'id',
} as const
const RUNS = view<OrderRun>()('id ORDER status started_at TOOK error', RUN_MORE)
const RUN = view<OrderRun>()('id ORDER status started_at TOOK error', RUN_MORE)
type Detail = AnswerOf<'get-order-run'>
const DETAIL = view<Detail>()(
  'id ORDER status trigger source reason scheduled_for started_at TOOK molecule_id exit_code signal error OUTPUT',
  {
    wide: 'event_seq_from event_seq_to event_count vars finished_at output_truncated',
    as: {
      TOOK: ({ duration_ms: ms }: Detail) => (ms === undefined ? undefined : `${(ms / 1000).toFixed(1)}s`),
      ORDER: 'scoped_name',
      OUTPUT: 'output',
    },
    name: 'id',
  },
)
const CHECK = view<AnswerOf<'check-order'>>()('scoped_name due reason next_run_at exit_code error evaluated_at', {
  wide: 'output',
  name: 'scoped_name',
})

/** One blocking read; the next one goes on from there. */
const LOOK = '30s'

/** Waits for the end of a run; fails with exit code 9 where it did not succeed. */
async function waitForRun(
  context: Context,
  client: Client,
  cityName: string,
  run: OrderRun,
  timeoutMs: number,
): Promise<number> {
  await context.note(`waiting for ${run.scoped_name} (${run.id})`)
  using limit = context.within(timeoutMs)
  const hint = `svcctl order history ${run.id}`
  try {
    let index: number | undefined
    for (;;) {
      const query = index === undefined ? {} : { index, wait: LOOK }
      const params = { cityName, run_id: run.id }
      const reply = await client.call('get-order-run', { params, query, signal: limit.signal })
      if (reply.body.status !== 'running' && reply.body.status !== 'queued')
        return await showEnd(context, reply.body, reply.text)
      index = Number(reply.headers.get('x-svc-index'))
    }
  } catch (error) {
    if (error instanceof TimedOut && limit.signal.reason === error)
      throw new Failure(EXIT.timedOut, `${run.scoped_name} took longer than ${timeoutMs / 1000} s; it goes on`, {
        hint,
      })
    if (error instanceof Interrupted) await context.note(`it goes on; look again with: ${hint}`)
    throw error
  }
}

async function showEnd(context: Context, run: Detail, json: string): Promise<number> {
  if (run.status !== 'succeeded')
    throw new Failure(EXIT.operationFailed, `${run.scoped_name}: ${run.status}: ${run.error ?? 'no reason'}`, {
      body: run,
    })
  await context.print.item({ item: run, ...allColumns(DETAIL), json })
  return EXIT.ok
}

/** Of a formula each is read by its type; a command gets texts anyway. */
async function varsOf({ input, client, cityName, said, options }: Call<'run-order'>): Promise<object> {
  const texts = input.texts('var')
  if (texts.length === 0) return {}
  const params = { cityName, name: input.required('name') }
  const { body: order } = await client.call('get-order', { params, query: { rig: said.rig }, ...options })
  const vars =
    order.formula === undefined
      ? await readVars(texts, new Map())
      : await varsFrom(client, texts, { cityName, formula: order.formula, rig: order.rig, options })
  return { vars }
}

async function runOrder(call: Call<'run-order'>): Promise<number> {
  const { context, input, client, cityName, send } = call
  const { body, text } = await send(await varsOf(call))
  if (input.choice('wait') === true) return waitForRun(context, client, cityName, body, await parseTimeout(input))
  await context.print.item({ item: body, ...RUN, json: text })
  return EXIT.ok
}

const command = commandsOf(TABLE)
const RIG = { says: { rig: 'That of this rig, where several have one of the name.' } } as const

export const commands: readonly CommandSpec[] = [
  command('order list', 'list-orders', {
    view: ORDERS,
    examples: {
      'svcctl order list': 'what runs by itself, and when next',
      'svcctl order list --no-valid -o wide': 'what is wrong',
    },
  }),
  command('order get', 'get-order', {
    ...RIG,
    arguments: ['<name...>'],
    view: ORDER,
    rows: ORDERS,
    examples: { 'svcctl order get nightly-triage': 'what it does, and what it waits for' },
  }),
  command('order run', 'run-order', {
    ...RIG,
    arguments: ['<name>'],
    leaves: { vars: '--var says them' },
    more: [
      varFlag,
      { flags: '--wait', description: 'Wait for the end of the run; exit code 9 where it fails.' },
      {
        flags: '--timeout <duration>',
        description: 'How long to wait (default: 5m); exit code 8 when it was not enough.',
      },
    ],
    view: RUN,
    run: runOrder,
    examples: {
      'svcctl order run nightly-triage': 'now, and not only at night',
      'svcctl order run release --var tag=v1.4.0 --wait': 'and tell whether it succeeded',
    },
  }),
  command('order check', 'check-order', {
    ...RIG,
    arguments: ['<name>'],
    view: CHECK,
    run: async ({ context, send }) => {
      const { body, text } = await send()
      await context.print.item({ item: body, ...CHECK, json: text })
      return body.due ? EXIT.ok : EXIT.failure
    },
    description: 'Of a condition its check is run. Starts nothing. Exit code 1: it is not due.',
    examples: { 'svcctl order check disk-full': 'would it run now' },
  }),
  command('order enable', 'enable-order', {
    ...RIG,
    arguments: ['<name...>'],
    view: ORDER,
    rows: ORDERS,
    examples: { 'svcctl order enable nightly-triage': 'from now on' },
  }),
  command('order disable', 'disable-order', {
    ...RIG,
    arguments: ['<name...>'],
    view: ORDER,
    rows: ORDERS,
    examples: { 'svcctl order disable nightly-triage': 'until it is enabled again' },
  }),
  command('order history', 'list-order-history', {
    also: ['get-order-run'],
    summary: 'List runs of orders, or show one',
    arguments: ['[name...]'],
    called: { name: 'name_or_run' },
    flags: { status: '-s' },
    says: { name: 'Orders, or one run by its id.' },
    view: RUNS,
    run: async ({ context, client, cityName, said, options, show }) => {
      const [only, ...others] = said.name ?? []
      if (only === undefined || others.length > 0 || !/^run-[0-9a-f]{24}$/.test(only)) return show()
      const { body, text } = await client.call('get-order-run', { params: { cityName, run_id: only }, ...options })
      await context.print.item({ item: body, ...allColumns(DETAIL), json: text })
      return EXIT.ok
    },
    examples: {
      'svcctl order history': 'what ran, newest first',
      'svcctl order history nightly-triage --status failed': 'when it failed, and why',
      'svcctl order history run-4be1d09a7c2f5e8830bb61f2': 'one run, with the end of its output',
    },
  }),
  ...fileCommands,
]
