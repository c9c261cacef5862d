/** `svcctl health`, `readiness`, `provider-readiness`. */
import type { ReadinessItem } from '../../contract/health.ts'
import type { CommandSpec, Input } from '../base/command.ts'
import type { Context } from '../base/context.ts'
import { EXIT } from '../base/failure.ts'
import type { Column } from '../base/output.ts'

async function health(context: Context): Promise<number> {
  const client = await context.client()
  using limit = context.within()
  const { body, text } = await client.call('get-health', { signal: limit.signal, retries: 0 })
  await context.print.item({
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
  return EXIT.ok
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

/** Of this host, or of a city where one was named: every form is a list in the table and the API's own object in JSON. */
async function readiness(context: Context, input: Input): Promise<number> {
  using limit = context.within()
  const client = await context.client()
  const query = { items: wanted(input), fresh: input.on('fresh') ? true : undefined }
  const cityName = context.options.city === undefined ? undefined : await context.needCity(undefined, limit.signal)
  const { body, text } =
    cityName === undefined
      ? await client.call('get-readiness', { query, signal: limit.signal })
      : await client.call('get-city-readiness', { params: { cityName }, query, signal: limit.signal })
  await context.print.list({ items: Object.values(body.items), columns: COLUMNS, name, json: text })
  if (body.callers === 'machine')
    await context.note('warning: every user of this machine may use the API; svcctl serve --auth asks for a token')
  return EXIT.ok
}

export async function providerReadiness(context: Context, input: Input): Promise<number> {
  using limit = context.within()
  const client = await context.client()
  const query = { providers: wanted(input), fresh: input.on('fresh') ? true : undefined }
  const cityName = context.options.city === undefined ? undefined : await context.needCity(undefined, limit.signal)
  const { body, text } =
    cityName === undefined
      ? await client.call('get-provider-readiness', { query, signal: limit.signal })
      : await client.call('get-city-provider-readiness', { params: { cityName }, query, signal: limit.signal })
  const items = Object.entries(body.providers).map(([provider, probe]) => ({ name: provider, ...probe }))
  await context.print.list({ items, columns: COLUMNS.filter((column) => column.header !== 'KIND'), name, json: text })
  return EXIT.ok
}

function wanted(input: Input): string | undefined {
  const items = input.texts('items').flatMap((text) => text.split(','))
  return items.length === 0 ? undefined : items.join(',')
}

const fresh = { flags: '--fresh' } as const

export const commands: readonly CommandSpec[] = [
  {
    path: ['health'],
    operations: ['get-health'],
    examples: [
      { line: 'svcctl health', does: 'is it well' },
      { line: 'svcctl health -o json', does: 'for a monitor' },
    ],
    run: health,
  },
  {
    path: ['readiness'],
    operations: ['get-readiness', 'get-city-readiness'],
    arguments: [{ name: '[items...]', description: 'Providers and tools; all where absent.' }],
    flags: [fresh],
    examples: [{ line: 'svcctl readiness claude git --fresh', does: 'look again, now' }],
    run: readiness,
  },
  {
    path: ['provider-readiness'],
    operations: ['get-provider-readiness', 'get-city-provider-readiness'],
    arguments: [{ name: '[items...]', description: 'Providers; all where absent.' }],
    flags: [fresh],
    examples: [{ line: 'svcctl provider-readiness claude shell', does: 'can these two be used' }],
    run: providerReadiness,
  },
]
