/** Orders as they are in force: what the file says, what the city says otherwise, and what is wrong with that. */
import type { CatalogOrder } from '../../../automation/catalog.ts'
import type { OrderDefinition, OrderTrigger } from '../../../automation/order.ts'
import type { ConfigIssue } from '../../../files/issues.ts'
import { localZone } from '../../../kernel/clock.ts'
import { applyOverrides, type PlacedOverride } from './overrides.ts'

/** What the city says of its orders (`[orders]` and `timezone`). */
export interface OrderSettings {
  readonly skip: readonly string[]
  readonly maxTimeoutMs: number | undefined
  readonly overrides: readonly PlacedOverride[]
  readonly zone: string | undefined
}

/** One order in its place: of the city, or for a rig. */
export interface ResolvedOrder {
  /** `<name>`, or `<name>:rig:<rig>`: what state, runs and events call it. */
  readonly scoped: string
  readonly file: CatalogOrder
  /** Absent where the file is not valid. */
  readonly definition: OrderDefinition | undefined
  readonly issues: readonly ConfigIssue[]
  /** As the files say it. */
  readonly enabled: boolean
  readonly enabledBy: 'file' | 'override'
  readonly overridden: readonly string[]
  /** Of a cron: where its clocks are. */
  readonly zone: string
}

export interface ResolvedOrders {
  readonly byScoped: ReadonlyMap<string, ResolvedOrder>
  /** Overrides that fit no order. */
  readonly warnings: readonly string[]
}

const scopedName = (name: string, rig: string | undefined): string => (rig === undefined ? name : `${name}:rig:${rig}`)

/** True where it could run: nothing is wrong with it, and nobody has still to trust it. */
export const isRunnable = ({ file, definition, issues }: ResolvedOrder): boolean =>
  definition !== undefined && issues.length === 0 && file.untrusted === undefined

export function resolveOrders(files: readonly CatalogOrder[], settings: OrderSettings): ResolvedOrders {
  const kept = files.filter(({ name }) => !settings.skip.includes(name))
  const orders = kept.map((file) => resolve(file, settings))
  return {
    byScoped: new Map(orders.map((order) => [order.scoped, order])),
    warnings: settings.overrides.flatMap((override) => unfit(override, kept)),
  }
}

function resolve(file: CatalogOrder, settings: OrderSettings): ResolvedOrder {
  const { order } = file
  const fitting = settings.overrides.filter((override) => fits(override, file))
  const own = order === undefined ? undefined : { ...order, ...capped(order, settings.maxTimeoutMs) }
  const { definition, issues, keys } = applyOverrides(own, fitting, settings.maxTimeoutMs)
  const said = fitting.findLast(({ enabled }) => enabled !== undefined)
  return {
    scoped: scopedName(file.name, file.rig),
    file,
    definition,
    issues: [...file.issues, ...issues],
    enabled: said?.enabled ?? order?.enabled ?? true,
    enabledBy: said === undefined ? 'file' : 'override',
    overridden: keys,
    zone: zoneOf(definition?.trigger) ?? settings.zone ?? localZone(),
  }
}

const zoneOf = (trigger: OrderTrigger | undefined): string | undefined =>
  trigger?.kind === 'cron' ? trigger.tz : undefined

const capped = ({ timeout }: OrderDefinition, most: number | undefined): { readonly timeout?: number } =>
  most === undefined ? {} : { timeout: Math.min(timeout ?? most, most) }

const fits = ({ name, rig }: PlacedOverride, file: CatalogOrder): boolean =>
  name === file.name && (rig === '*' || rig === file.rig)

/** Without a rig it means the order of the city alone; `*` means every one. */
function unfit(override: PlacedOverride, files: readonly CatalogOrder[]): readonly string[] {
  if (files.some((file) => fits(override, file))) return []
  const { name, rig, at } = override
  const rigs = files.filter((file) => file.name === name).flatMap((file) => (file.rig === undefined ? [] : [file.rig]))
  const place = at.line === 0 ? at.file : `${at.file}:${at.line}`
  const of = rig === undefined ? 'the city' : `the rig ${rig}`
  const hint = rigs.length === 0 ? '' : `; it is one of ${rigs.join(', ')}: say which with \`rig\`, or \`rig = "*"\``
  return [`${place}: ${of} has no order ${name} that the override could change${hint}`]
}
