/** Needs: one list of everything that a person must act on or should know of, over all cities. */

import type { EventTypes } from './base/event-type.ts'
import { family } from './base/family.ts'
import { CityNameParam, durationSchema, Timestamp } from './base/names.ts'
import { BlockingQuery, listBody, PageQuery } from './base/paging.ts'
import {
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
} from './base/schema.ts'

export const NEED_SEVERITIES = ['act', 'watch'] as const
export const NeedSeverity = choice(NEED_SEVERITIES, {
  $id: 'NeedSeverity',
  description: '`act`: work stands still until a person acts. `watch`: something is wrong, and may mend itself.',
})
export type NeedSeverity = Static<typeof NeedSeverity>

/** Every kind with its severity and what it means. */
export const NEED_KIND_WORDS = {
  approval: ['act', 'An agent asks for permission.'],
  question: ['act', 'An agent asks a question.'],
  gate: ['act', 'A gate of a molecule waits for a person.'],
  manual_check: ['act', 'A check of a molecule waits for a person.'],
  molecule_failed: ['act', 'A molecule failed and was not retried.'],
  step_stuck: ['act', 'A step waits for an agent that nobody is called, or that is suspended.'],
  agent_quarantined: ['act', 'A session failed too often and is not started again for now.'],
  agent_failed_start: ['watch', 'The last start of a session failed; it is tried again.'],
  rate_limited: ['watch', 'The provider of a session limits it.'],
  budget_suspended: ['act', 'A budget suspended a session.'],
  config_rejected: ['act', 'The configuration on disk is not valid; an older one is in force.'],
  formula_invalid: ['act', 'The file of a formula is not valid.'],
  order_invalid: ['act', 'The file of an order is not valid: it never runs.'],
  order_failing: ['watch', 'The last runs of an order failed.'],
  service_failed: ['act', 'A workspace service does not run.'],
  mail: ['watch', 'Mail for people is unread.'],
  city_failed: ['act', 'A city could not start.'],
  disk: ['act', 'A store refuses writes.'],
} as const satisfies Record<string, readonly [NeedSeverity, string]>
export type NeedKind = keyof typeof NEED_KIND_WORDS
export const isNeedKind = (word: string): word is NeedKind => Object.hasOwn(NEED_KIND_WORDS, word)
export const NEED_KINDS: readonly NeedKind[] = Object.keys(NEED_KIND_WORDS).filter(isNeedKind)
export const NeedKind = choice(NEED_KINDS, { $id: 'NeedKind', description: 'Why a person is needed.' })

/** Bytes of `content` at most; what is longer is cut, and `content_cut` is true. */
export const MAX_NEED_CONTENT = 64 * 1024

const NeedSubject = component('NeedSubject', {
  kind: choice(['session', 'molecule', 'bead', 'order', 'formula', 'service', 'config', 'mailbox', 'city', 'store'], {
    description: 'Kind of the thing.',
  }),
  id: string({ description: 'Its id, as the operations on it take it.' }),
  name: string({ description: 'What people call it.' }),
})

const NeedOperation = component('NeedOperation', {
  operation: string({ description: 'Operation of this API that acts on the need.' }),
  params: record(string(), { description: 'Parameters of its path, and fields of its body.' }),
  label: string({ description: 'Word for a button: `Approve`.' }),
  command: string({ description: 'The same as a command line, ready to paste.' }),
})

const about = {
  id: string({ description: 'Id of the need.', examples: ['nd-0123456789abcdef'] }),
  kind: NeedKind,
  severity: NeedSeverity,
  city: string({ description: 'City that it is of.' }),
  subject: NeedSubject,
  since: Timestamp,
  title: string({ description: 'What is the matter, in one line.' }),
  detail: optional(string({ description: 'More of it: the reason, the place, the last words.' })),
  holds_up: integer({ minimum: 0, description: 'Steps and beads that wait for it.' }),
  operations: array(NeedOperation, { description: 'What a person can do about it; the usual one first.' }),
  snoozed_until: optional(Timestamp),
}

export const Need = component('Need', {
  ...about,
  content: optional(
    string({
      description: `What is decided: the whole command, question or output; at most ${MAX_NEED_CONTENT} bytes.`,
    }),
  ),
  content_cut: optional(boolean({ description: 'True: `content` is the beginning only.' })),
})
export type Need = Static<typeof Need>

/** As events carry it: a reader gets `content` from the list. */
export const NeedPayload = component('NeedPayload', about)
export const NeedClearedPayload = component('NeedClearedPayload', {
  id: string(),
  kind: NeedKind,
  subject: NeedSubject,
})

export const NeedSnoozeRequest = component('NeedSnoozeRequest', {
  until: optional(Timestamp),
  for: optional(durationSchema('How long, instead of `until`; at most 30 days.')),
})

const filters = {
  severity: optional(NeedSeverity),
  kind: optional(array(NeedKind, { maxItems: NEED_KINDS.length, description: 'Any of these.' })),
  snoozed: optional(boolean({ description: 'Snoozed needs too.', default: false })),
}

const NEEDS = { name: 'Needs', about: 'What a person must act on, and what is broken.' }
const everywhere = family(NEEDS, '/v0/needs', {}, {})
const needs = family(
  NEEDS,
  '/v0/city/{cityName}/needs',
  {
    cityName: CityNameParam,
    need_id: string({ minLength: 1, maxLength: 64, description: 'Id of the need.', examples: ['nd-0123456789abcdef'] }),
  },
  {},
)
const ListBodyNeed = listBody('ListBodyNeed', Need)
const ORDERED = 'Needs with severity `act` first, then by what they hold up, then the oldest first.'

export const needOperations = [
  everywhere.get('list-needs', '', {
    summary: 'List what needs a person, in all cities',
    description: `${ORDERED} Cities that could not start are needs too.`,
    query: object({
      ...filters,
      city: optional(string({ minLength: 1, description: 'Needs of this city.' })),
      ...PageQuery,
    }),
    replies: { 200: ListBodyNeed },
    problems: ['invalid-cursor'],
  }),
  needs.get('list-city-needs', '', {
    summary: 'List what needs a person in a city',
    description: ORDERED,
    query: object({ ...filters, ...BlockingQuery, ...PageQuery }),
    replies: { 200: ListBodyNeed },
    replyHeaders: ['X-SVC-Index'],
    problems: ['invalid-cursor'],
  }),
  needs.post('snooze-need', '/{need_id}/snooze', {
    summary: 'Snooze a need',
    description: 'Lists leave it out until then, unless it changes. A time that is over ends the snooze.',
    body: NeedSnoozeRequest,
    replies: { 200: Need },
    problems: ['need-not-found'],
    emits: ['need.changed'],
  }),
] as const

const inLog = { log: 'city', emittedBy: 'needs', subject: 'the id of the need' } as const

export const NEED_EVENT_TYPES = {
  'need.opened': { payload: NeedPayload, ...inLog, when: 'something began to need a person' },
  'need.changed': {
    payload: NeedPayload,
    ...inLog,
    when: 'a need became another one: its title, detail, weight or snooze',
  },
  'need.cleared': { payload: NeedClearedPayload, ...inLog, when: 'a need is over: it was acted on, or mended itself' },
} as const satisfies EventTypes
