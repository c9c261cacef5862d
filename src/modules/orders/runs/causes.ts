/**
 * What set an event off: the run of an order that it reports, or whose molecule or beads it is about. An order is never set off
 * by itself, and a chain of orders that set each other off ends.
 */
import type { Database, Tx } from '../../../kernel/database.ts'
import type { StoredEvent } from '../../../kernel/event-log.ts'
import type { OrderMolecules } from './ports.ts'
import { type RunPlace, runOfId, runOfMolecule } from './rows.ts'

/** Runs that one may lead to, each by an event of the one before. */
export const MAX_CHAIN = 8

const OF_MOLECULES = /^(?:molecule|execution|gate|bead)\./
const ROOT_KEY = 'svc.root_bead_id'

export interface CauseDeps {
  readonly molecules: Pick<OrderMolecules, 'rootOf'>
}

/** The run that an event comes from; undefined where it comes from none. */
export function causeOf(
  db: Pick<Database, 'get' | 'all'> | Tx,
  { molecules }: CauseDeps,
  { type, subject, envelope }: StoredEvent,
): RunPlace | undefined {
  if (subject === undefined) return undefined
  if (type.startsWith('order.')) return runOfId(db, runIdIn(envelope)) ?? { scoped: subject, depth: 0 }
  if (!OF_MOLECULES.test(type)) return undefined
  return runOfMolecule(db, rootIn(envelope) ?? molecules.rootOf(subject) ?? subject)
}

interface Envelope {
  readonly payload: {
    readonly run_id?: unknown
    readonly bead?: { readonly metadata?: Readonly<Record<string, unknown>> }
  }
}

function runIdIn(envelope: string): string {
  const { payload }: Envelope = JSON.parse(envelope)
  return typeof payload.run_id === 'string' ? payload.run_id : ''
}

/** A bead that is gone is in its event still. */
function rootIn(envelope: string): string | undefined {
  if (!envelope.includes(ROOT_KEY)) return undefined
  const { payload }: Envelope = JSON.parse(envelope)
  const root = payload.bead?.metadata?.[ROOT_KEY]
  return typeof root === 'string' ? root : undefined
}
