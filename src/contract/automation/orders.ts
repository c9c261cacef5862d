/** Orders: what a city does by itself, when, and what came of it (decisions 110–115, 124, 125). Their files: `documents.ts`. */

import type { EventTypes } from '../base/event-type.ts'
import { family } from '../base/family.ts'
import { CityNameParam, Seq, Timestamp } from '../base/names.ts'
import { BlockingQuery, listBody, listFields, PageQuery } from '../base/paging.ts'
import {
  anything,
  array,
  boolean,
  choice,
  component,
  integer,
  object,
  optional,
  record,
  type Static,
  string,
} from '../base/schema.ts'
import { DocumentPlace, RigQuery } from './documents.ts'

export const ORDER_ACTIONS = ['formula', 'exec'] as const
export const ORDER_TRIGGERS = ['cron', 'cooldown', 'condition', 'event', 'manual'] as const
export type OrderTrigger = (typeof ORDER_TRIGGERS)[number]
export const ORDER_RUN_STATUSES = [
  'queued',
  'running',
  'succeeded',
  'failed',
  'timed_out',
  'canceled',
  'skipped',
] as const
export type OrderRunStatus = (typeof ORDER_RUN_STATUSES)[number]
export const ORDER_SOURCES = ['tick', 'api'] as const
export type OrderSource = (typeof ORDER_SOURCES)[number]
/** Events that are handed to one run. */
export const MAX_BATCH = 100

const text = (maxLength: number, description: string) => string({ minLength: 1, maxLength, description })
const name = string({ description: 'Name: that of its file.' })
const scopedName = string({ description: '`<name>`, or `<name>:rig:<rig>` of one that runs for a rig.' })
const rig = optional(string({ description: 'Rig that it runs for; absent: the city.' }))
const action = choice(ORDER_ACTIONS, { description: 'Whether it starts a molecule or runs a command.' })
const source = choice(ORDER_SOURCES, { description: '`tick`: by itself. `api`: by hand.' })

const about = {
  run_id: string(),
  name,
  scoped_name: scopedName,
  rig,
  action,
  trigger: choice(ORDER_TRIGGERS, { description: 'What sets the order off.' }),
  source,
  reason: string({ description: 'Why it was started, or skipped.' }),
  scheduled_for: optional({ ...Timestamp, description: 'Of cron: the time that it was due at.' }),
}
const result = {
  queued_at: optional({ ...Timestamp, description: 'Of a command that had to wait for a free slot: since when.' }),
  started_at: optional({ ...Timestamp, description: 'When it began to run; absent while it is queued.' }),
  finished_at: optional(Timestamp),
  duration_ms: optional(integer({ minimum: 0 })),
  exit_code: optional(integer({ description: 'Of a command that ended by itself.' })),
  signal: optional(string({ description: 'Signal that ended its command.' })),
  error: optional(string({ description: 'Why it failed.' })),
}

const runFields = {
  id: string(),
  name,
  scoped_name: scopedName,
  rig,
  action,
  trigger: about.trigger,
  source,
  reason: about.reason,
  status: choice(ORDER_RUN_STATUSES, {
    description:
      '`queued`: its command waits for a free slot. `succeeded`: what it started is done, not only begun. `timed_out`: it was ended at its time limit. `skipped`: it was due while a run was under way.',
  }),
  scheduled_for: about.scheduled_for,
  molecule_id: optional(string({ description: 'Molecule that it started.' })),
  event_seq_from: optional({ ...Seq, description: 'First event that it was handed.' }),
  event_seq_to: optional({ ...Seq, description: 'Last event that it was handed.' }),
  event_count: optional(integer({ minimum: 1, maximum: MAX_BATCH, description: 'Events that it was handed.' })),
  vars: optional(record(anything(), { description: 'Variables that it was given.' })),
  ...result,
}
export const OrderRun = component('OrderRun', runFields)
export type OrderRun = Static<typeof OrderRun>

export const OrderRunDetail = component('OrderRunDetail', {
  ...runFields,
  output: optional(string({ description: 'End of what its command wrote: at most 64 KiB, without secrets.' })),
  output_truncated: optional(boolean({ description: 'True: there was more of it.' })),
})
export type OrderRunDetail = Static<typeof OrderRunDetail>

const duration = (description: string) => optional(string({ description, examples: ['5m'] }))
/** What its file and the overrides of the city say, as far as it is said or has a default. */
const definition = {
  description: optional(string()),
  scope: optional(
    choice(['city', 'rig'], { description: 'Of one of a pack that rigs import: once, or for each rig.' }),
  ),
  action: optional(action),
  formula: optional(string({ description: 'Formula that a run starts a molecule of.' })),
  target: optional(string({ description: 'Agent or pool for steps that name none.' })),
  title: optional(string({ description: 'Title of the molecule: a template.' })),
  bead: optional(string({ description: 'Bead that the molecule is about: a template.' })),
  keep: duration('The molecule is deleted that long after its end.'),
  exec: optional(string({ description: 'Command that a run is, for `sh -c`.' })),
  env: optional(record(string(), { description: 'Variables of the command; values are masked.' })),
  inherit_env: optional(array(string(), { description: 'Variables of the supervisor that the command gets too.' })),
  idempotent: optional(boolean({ description: 'A command that was cut off is run again.' })),
  vars: optional(record(anything(), { description: 'Variables of the formula or command; texts are templates.' })),
  timeout: duration('How long a run may take; of a molecule absent: as its formula says.'),
  overlap: optional(choice(['skip', 'allow'], { description: 'Whether a run may begin while another is under way.' })),
  trigger: optional(about.trigger),
  schedule: optional(string({ description: 'Of cron: five fields, or `@daily` and the like.' })),
  tz: optional(string({ description: 'Of cron: the time zone, also where it is that of the city or the machine.' })),
  catch_up: duration('Of cron: how old a missed time may be that is still run, the latest only.'),
  interval: duration('Of a cooldown: from start to start. Of a condition: between two checks.'),
  check: optional(string({ description: 'Of a condition: command that says with exit 0 that it is due.' })),
  check_timeout: duration('Of a condition: how long the check may take.'),
  on: optional(string({ description: 'Type of event that sets it off, or `x.*`.' })),
  match: optional(record(string(), { description: 'What has to be in the payload of the event.' })),
  max_per_hour: optional(integer({ description: 'Runs within an hour; when there were as many, events wait.' })),
  batch: optional(boolean({ description: `False: a run for each event. True: a run has up to ${MAX_BATCH}.` })),
}

export const Order = component('Order', {
  ...DocumentPlace,
  scoped_name: scopedName,
  ...definition,
  enabled: boolean(),
  enabled_by: choice(['file', 'override', 'api'], {
    description: 'Who says so: its file, an override of the city, or `enable` and `disable`.',
  }),
  overridden: array(string(), { description: 'Keys of its file that the city says otherwise.' }),
  suspended: boolean({ description: 'The city or its rig is suspended: it does not run by itself until then.' }),
  running: integer({ minimum: 0, description: 'Runs under way.' }),
  due: boolean({ description: 'It would start now; nothing was run to know that.' }),
  reason: string({ description: 'Why it is due, or what it waits for.' }),
  next_run_at: optional({
    ...Timestamp,
    description: 'When it is due next, as far as time decides; of a condition: when it is checked next.',
  }),
  last_run: optional(OrderRun),
  evaluated_at: optional({
    ...Timestamp,
    description: 'When its trigger was last looked at: of a condition, checked.',
  }),
  error: optional(string({ description: 'Why the last look came to nothing.' })),
  warnings: optional(
    array(string(), { description: 'What it does to the city: such as events that the log has to keep for it.' }),
  ),
})
export type Order = Static<typeof Order>

export const OrderCheck = component('OrderCheck', {
  name,
  scoped_name: scopedName,
  rig,
  due: boolean(),
  reason: string(),
  next_run_at: optional(Timestamp),
  evaluated_at: Timestamp,
  exit_code: optional(integer({ description: 'Of the check of a condition.' })),
  output: optional(string({ description: 'End of what the check wrote.' })),
  error: optional(string({ description: 'Why it came to nothing.' })),
})
export type OrderCheck = Static<typeof OrderCheck>

export const OrderRunRequest = component('OrderRunRequest', {
  vars: optional(
    record(anything(), {
      maxProperties: 500,
      propertyNames: { minLength: 1, maxLength: 64 },
      description: 'Variables; they win over those of the order.',
    }),
  ),
  force: optional(boolean({ description: 'True: also while a run is under way.' })),
})
export type OrderRunRequest = Static<typeof OrderRunRequest>

const orders = family(
  { name: 'Orders', about: 'What a city does by itself, and when.' },
  '/v0/city/{cityName}/orders',
  {
    cityName: CityNameParam,
    name: string({
      minLength: 1,
      maxLength: 512,
      description: 'Name, or scoped name, which is needed where several rigs have one of the name.',
      examples: ['nightly-triage'],
    }),
    run_id: string({ minLength: 1, maxLength: 64, description: 'Id of the run.', examples: ['run-01JD3X'] }),
  },
  {},
)
const one = orders.at('/{name}', {
  query: object(RigQuery),
  problems: ['order-not-found', 'ambiguous-order'],
})

export const listOrders = orders.get('list-orders', '', {
  summary: 'List orders',
  description: 'By name, also those that are off or not valid, with what they wait for. Runs no command.',
  query: object({
    enabled: optional(boolean({ description: 'Only those that are, or are not.' })),
    trigger: optional(array(about.trigger, { maxItems: 5, description: 'Any of these.' })),
    action: optional(choice(ORDER_ACTIONS, { description: 'Only those.' })),
    rig: optional(array(text(64, ''), { maxItems: 50, description: 'Any of these rigs.' })),
    due: optional(boolean({ description: 'Only those that are, or are not.' })),
    valid: optional(boolean({ description: 'Only those that are, or are not.' })),
    ...BlockingQuery,
    ...PageQuery,
  }),
  replies: {
    200: component('ListBodyOrder', {
      ...listFields(Order),
      warnings: optional(array(string(), { description: 'Overrides of the city that fit no order, and why.' })),
    }),
  },
  replyHeaders: ['X-SVC-Index'],
  problems: ['invalid-cursor', 'rig-not-found'],
})

export const getOrder = one.get('get-order', '', {
  summary: 'Get an order',
  description: 'As it is in force, with what it waits for. Runs no command.',
  query: object({ ...RigQuery, ...BlockingQuery }),
  replies: { 200: Order },
  replyHeaders: ['X-SVC-Index'],
})

export const runOrder = one.post('run-order', '/run', {
  summary: 'Run an order now',
  description:
    'Whatever its trigger says, also one that is disabled or suspended. Answers with the run once it is under way; `GET …/orders/history/{run_id}` tells its end.',
  body: OrderRunRequest,
  bodyOptional: true,
  headers: ['Idempotency-Key'],
  replies: { 201: OrderRun },
  problems: ['conflict-wrong-state', 'conflict-config', 'untrusted-pack'],
  emits: ['order.fired', 'order.completed', 'order.failed'],
})

export const checkOrder = one.post('check-order', '/check', {
  summary: 'Look now whether an order is due',
  description: 'Of a condition its check is run, and waited for. Starts nothing.',
  replies: { 200: OrderCheck },
  problems: ['conflict-config', 'untrusted-pack'],
})

export const enableOrder = one.post('enable-order', '/enable', {
  summary: 'Enable an order',
  description: 'Times and events from now on count. It outlives edits of the file.',
  replies: { 200: Order },
  emits: ['order.enabled'],
})

export const disableOrder = one.post('disable-order', '/disable', {
  summary: 'Disable an order',
  description: 'What runs goes on. It outlives edits of the file.',
  replies: { 200: Order },
  emits: ['order.disabled'],
})

export const listOrderHistory = orders.get('list-order-history', '/history', {
  summary: 'List runs of orders',
  description: 'Newest first. Kept for 30 days: of each order at least 10 and at most 1,000.',
  query: object({
    name: optional(array(text(512, ''), { maxItems: 50, description: 'Any of these orders: names or scoped names.' })),
    status: optional(array(choice(ORDER_RUN_STATUSES), { maxItems: 6, description: 'Any of these.' })),
    ...BlockingQuery,
    ...PageQuery,
  }),
  replies: { 200: listBody('ListBodyOrderRun', OrderRun) },
  replyHeaders: ['X-SVC-Index'],
  problems: ['invalid-cursor'],
})

export const getOrderRun = orders.get('get-order-run', '/history/{run_id}', {
  summary: 'Get a run of an order',
  description: 'With the end of what it wrote.',
  query: object({ ...BlockingQuery }),
  replies: { 200: OrderRunDetail },
  replyHeaders: ['X-SVC-Index'],
  problems: ['order-run-not-found'],
})

export const orderOperations = [
  listOrders,
  listOrderHistory,
  getOrderRun,
  getOrder,
  runOrder,
  checkOrder,
  enableOrder,
  disableOrder,
] as const

export const OrderRunPayload = component('OrderRunPayload', {
  ...about,
  status: runFields.status,
  root_bead_id: optional(string({ description: 'Root bead of the molecule that it started: also the id of that.' })),
  event_seq: optional({ ...Seq, description: 'Last event that it was handed.' }),
  ...result,
})
export type OrderRunPayload = Static<typeof OrderRunPayload>
export const OrderPayload = component('OrderPayload', { name, scoped_name: scopedName, rig })

const inLog = { log: 'city', emittedBy: 'orders', subject: 'its scoped name' } as const
export const ORDER_EVENT_TYPES = {
  'order.fired': { payload: OrderRunPayload, ...inLog, when: 'a run of it began; its end follows' },
  'order.completed': { payload: OrderRunPayload, ...inLog, when: 'a run of it succeeded: its work is done' },
  'order.failed': {
    payload: OrderRunPayload,
    ...inLog,
    when: 'a run of it failed, took too long, or was canceled',
  },
  'order.skipped': { payload: OrderRunPayload, ...inLog, when: 'a time of it came while a run was under way' },
  'order.enabled': { payload: OrderPayload, ...inLog, when: 'somebody enabled it' },
  'order.disabled': { payload: OrderPayload, ...inLog, when: 'somebody disabled it' },
} as const satisfies EventTypes
