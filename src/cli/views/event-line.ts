/** An event as one line for people: when, what, about which thing by its name, and what is new about it. */

import type { AnyEvent } from '../../client/events.ts'
import { isRecord } from '../../client/problems.ts'
import { cut } from '../../contract/base/text.ts'
import { printable } from '../base/failure.ts'

const MAX_FACT = 80
/** Fields that say what is new, in the order in which they are worth reading. */
const FACTS = [
  'status',
  'state',
  'outcome',
  'reason',
  'code',
  'error_code',
  'error_message',
  'assignee',
  'routed_to',
  'agent_name',
  'template',
  'operation',
  'result',
  'changed',
  'step_id',
  'attempt',
  'from',
  'to',
] as const
/** Objects of payloads that describe the thing itself. */
const THINGS = ['bead', 'session', 'message', 'molecule', 'pending'] as const
const NAMES = ['title', 'alias', 'name', 'subject', 'prompt', 'agent'] as const

type Fields = Readonly<Record<string, unknown>>

/** `2026-05-01 10:00:01  alpha  bead.closed  al-a1b "Fix login"  by calc/alice  outcome pass` */
export function eventLine({ ts, city, type, subject, message, actor, payload }: AnyEvent): string {
  const fields: Fields = isRecord(payload) ? payload : {}
  const name = nameIn(fields)
  const about = [subject, name === undefined || name === subject ? undefined : JSON.stringify(name)]
  const parts = [
    cut(ts, 19).replace('T', ' '),
    city,
    type,
    about.filter((part) => part !== undefined).join(' '),
    message ?? factsOf(fields),
    actor === 'supervisor' ? undefined : `by ${actor}`,
  ]
  const line = parts.filter((part) => part !== undefined && part !== '').join('  ')
  return printable(line.replaceAll(/\s*\n\s*/g, ' '))
}

function nameIn(fields: Fields): string | undefined {
  const thing = THINGS.map((key) => fields[key]).find(isRecord)
  const found = [thing ?? {}, fields].flatMap((from) => NAMES.map((key) => from[key]))
  const name = found.find((value) => typeof value === 'string' && value !== '')
  return typeof name === 'string' ? cut(name, MAX_FACT, '…') : undefined
}

function factsOf(fields: Fields): string {
  const { from, to } = fields
  if (typeof from === 'string' && typeof to === 'string')
    return [`${from} → ${to}`, ...wordsOf(fields, ['reason'])].join(', ')
  return wordsOf(fields, FACTS).join(', ')
}

function wordsOf(fields: Fields, keys: readonly string[]): readonly string[] {
  const bead = isRecord(fields['bead']) ? fields['bead'] : {}
  return keys.flatMap((key) => {
    const value = fields[key] ?? bead[key]
    const text = Array.isArray(value) ? value.join(' ') : value
    const isPlain = typeof text === 'string' || typeof text === 'number' || typeof text === 'boolean'
    return isPlain && text !== '' ? [`${key.replaceAll('_', ' ')} ${cut(String(text), MAX_FACT, '…')}`] : []
  })
}
