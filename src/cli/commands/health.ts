/** `svcctl health`, `readiness`, `provider-readiness`. */
import type { ReadinessItem } from '../../contract/health.ts'
import type { CommandSpec } from '../base/command.ts'
import type { Context } from '../base/context.ts'
import { EXIT } from '../base/failure.ts'
import type { Column } from '../base/output.ts'
import type { AnswerOf, Call } from '../framework/declaration.ts'
import { commandsOf } from '../framework/declare.ts'
import { HEALTH_AND_READINESS as TABLE } from '../tables/health-and-readiness.ts'

function showHealth(context: Context, body: AnswerOf<'get-health'>, text: string): Promise<void> {
  return context.print.item({
    item: body,
    columns: [
      { header: 'STATUS', value: (item) => item.status, kind: 'state' },
      { header: 'VERSION', value: (item) => item.version },
      { header: 'UPTIME_SEC', value: (item) => item.uptime_sec },
      {
        header: 'CITIES',
        value: (item) =>
          `${item.cities_running} of ${item.cities_total} running, ${item.cities_failed} failed${item.cities_rejected === 0 ? '' : `, ${item.cities_rejected} with a rejected configuration`}`,
      },
      ...body.checks.map(({ name, status, value, unit, detail }) => ({
        header: name.toUpperCase(),
        value: () =>
          [status, value === undefined ? undefined : `(${value}${unit === undefined ? '' : ` ${unit}`})`, detail]
            .filter(Boolean)
            .join(' '),
      })),
    ],
    name: (item) => item.status,
    json: text,
  })
}

type ProbeRow = Pick<ReadinessItem, 'name' | 'status' | 'detail' | 'observed_at'> & {
  readonly kind?: string
  readonly display_name: string
}

const COLUMNS: readonly Column<ProbeRow>[] = [
  { header: 'NAME', value: (row) => row.name },
  { header: 'KIND', value: (row) => row.kind },
  { header: 'STATUS', value: (row) => row.status, kind: 'state' },
  { header: 'DETAIL', value: (row) => row.detail },
  { header: 'OBSERVED_AT', value: (row) => row.observed_at, kind: 'time' },
  { header: 'DISPLAY_NAME', value: (row) => row.display_name, wide: true },
]
const name = (row: ProbeRow): string => row.name

/** Of a city where one was named, else of this host: a list in the table, and the API's own object in JSON. */
const cityNamed = async (context: Context, signal: AbortSignal): Promise<string | undefined> =>
  context.options.city === undefined ? undefined : context.needCity(undefined, signal)

async function readiness({ context, client, said: query, options, send }: Call<'get-readiness'>): Promise<number> {
  const cityName = await cityNamed(context, options.signal)
  const { body, text } =
    cityName === undefined
      ? await send()
      : await client.call('get-city-readiness', { params: { cityName }, query, ...options })
  await context.print.list({ items: Object.values(body.items), columns: COLUMNS, name, json: text })
  if (body.callers === 'machine')
    await context.note('warning: every user of this machine may use the API; svcctl serve --auth asks for a token')
  return EXIT.ok
}

async function ofProviders(call: Call<'get-provider-readiness'>): Promise<number> {
  const { context, client, said: query, options, send } = call
  const cityName = await cityNamed(context, options.signal)
  const { body, text } =
    cityName === undefined
      ? await send()
      : await client.call('get-city-provider-readiness', { params: { cityName }, query, ...options })
  const items = Object.entries(body.providers).map(([provider, probe]) => ({ name: provider, ...probe }))
  await context.print.list({ items, columns: COLUMNS.filter((column) => column.header !== 'KIND'), name, json: text })
  return EXIT.ok
}

const command = commandsOf(TABLE)
/** The words of a command are one text with commas. */
const commas = (words: string | undefined) => words?.trim().replaceAll(/[\s,]+/g, ',')

export const providerReadiness = (path: CommandSpec['path']): CommandSpec =>
  command({
    path,
    operation: 'get-provider-readiness',
    also: ['get-city-provider-readiness'],
    arguments: ['[providers...]'],
    called: { providers: 'items' },
    says: { providers: 'Providers (default: all).' },
    completes: { providers: 'provider' },
    change: ({ providers }) => ({ providers: commas(providers) }),
    run: ofProviders,
    examples: { [`svcctl ${path.join(' ')} claude --fresh`]: 'can it be used on this host, now' },
  })

export const commands: readonly CommandSpec[] = [
  command({
    path: ['health'],
    operation: 'get-health',
    retries: 0,
    print: (context, { body, text }) => showHealth(context, body, text),
    examples: { 'svcctl health': 'is it well', 'svcctl health -o json': 'for a monitor' },
  }),
  command({
    path: ['readiness'],
    operation: 'get-readiness',
    also: ['get-city-readiness'],
    arguments: ['[items...]'],
    says: { items: 'Providers and tools (default: all).' },
    change: ({ items }) => ({ items: commas(items) }),
    run: readiness,
    examples: { 'svcctl readiness claude git --fresh': 'look again, now' },
  }),
  providerReadiness(['provider-readiness']),
]
