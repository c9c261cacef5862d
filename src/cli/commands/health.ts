/** `svcctl health`, `readiness`, `provider-readiness`. */

import type { ReadinessItem } from '../../contract/health.ts'
import type { CommandSpec } from '../base/command.ts'
import type { Context } from '../base/context.ts'
import { EXIT } from '../base/failure.ts'
import type { AnswerOf, Call } from '../framework/declaration.ts'
import { commandsOf } from '../framework/declare.ts'
import { view } from '../print/view.ts'
import { HEALTH_AND_READINESS as TABLE } from '../tables/health-and-readiness.ts'

const HEALTH = view<AnswerOf<'get-health'>>()('status version uptime_sec CITIES', {
  as: {
    CITIES: ({ cities_running: running, cities_total: total, cities_failed: failed, cities_rejected: rejected }) =>
      `${running} of ${total} running, ${failed} failed${rejected === 0 ? '' : `, ${rejected} with a rejected configuration`}`,
  },
})

/** What a reading is of; a bare number of milliseconds says nothing. */
const READINGS: Readonly<Record<string, (time: string) => string>> = {
  event_loop: (time) => `${time} late`,
  reconciler: (time) => `last round ${time} ago`,
  log_lag: (time) => `${time} behind`,
}

function readingOf({ name, value, unit }: AnswerOf<'get-health'>['checks'][number]): string | undefined {
  if (value === undefined) return undefined
  const [amount, of] = unit === 'ms' && value >= 1000 ? [Math.round(value / 100) / 10, 's'] : [value, unit]
  const time = of === undefined ? String(amount) : `${amount} ${of}`
  return `(${READINGS[name]?.(time) ?? time})`
}

function showHealth(context: Context, body: AnswerOf<'get-health'>, text: string): Promise<void> {
  return context.print.item({
    item: body,
    ...HEALTH,
    columns: [
      ...HEALTH.columns,
      ...body.checks.map((check) => ({
        header: check.name.toUpperCase(),
        value: () => [check.status, readingOf(check), check.detail].filter(Boolean).join(' '),
      })),
    ],
    json: text,
  })
}

type ProbeRow = Pick<ReadinessItem, 'name' | 'status' | 'detail' | 'observed_at'> & {
  readonly kind?: string
  readonly display_name: string
}

const PROBED = view<ProbeRow>()('name kind status detail observed_at', { wide: 'display_name' })
const PROBED_PROVIDER = view<ProbeRow>()('name status detail observed_at', { wide: 'display_name' })

/** Of a city where one was named, else of this host: a list in the table, and the API's own object in JSON. */
const cityNamed = async (context: Context, signal: AbortSignal): Promise<string | undefined> =>
  context.options.city === undefined ? undefined : context.needCity(undefined, signal)

async function readiness({ context, client, said: query, options, send }: Call<'get-readiness'>): Promise<number> {
  const cityName = await cityNamed(context, options.signal)
  const { body, text } =
    cityName === undefined
      ? await send()
      : await client.call('get-city-readiness', { params: { cityName }, query, ...options })
  await context.print.list({ items: Object.values(body.items), ...PROBED, json: text })
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
  await context.print.list({ items, ...PROBED_PROVIDER, json: text })
  return EXIT.ok
}

const command = commandsOf(TABLE)
/** The words of a command are one text with commas. */
const commas = (words: string | undefined) => words?.trim().replaceAll(/[\s,]+/g, ',')

export const providerReadiness = (words: string): CommandSpec =>
  command(words, 'get-provider-readiness', {
    also: ['get-city-provider-readiness'],
    arguments: ['[providers...]'],
    called: { providers: 'items' },
    says: { providers: 'Providers (default: all).' },
    completes: { providers: 'provider' },
    change: ({ providers }) => ({ providers: commas(providers) }),
    run: ofProviders,
    examples: { [`svcctl ${words} claude --fresh`]: 'can it be used on this host, now' },
  })

export const commands: readonly CommandSpec[] = [
  command('health', 'get-health', {
    retries: 0,
    print: (context, { body, text }) => showHealth(context, body, text),
    examples: { 'svcctl health': 'is it well', 'svcctl health -o json': 'for a monitor' },
  }),
  command('readiness', 'get-readiness', {
    also: ['get-city-readiness'],
    arguments: ['[items...]'],
    says: { items: 'Providers and tools (default: all).' },
    change: ({ items }) => ({ items: commas(items) }),
    run: readiness,
    examples: { 'svcctl readiness claude git --fresh': 'look again, now' },
  }),
  providerReadiness('provider-readiness'),
]
