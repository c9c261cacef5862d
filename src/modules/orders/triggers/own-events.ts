/** Which events come from an order itself: what it says, and what its molecules and their beads say. They never set it off. */
import type { Database } from '../../../kernel/database.ts'
import type { StoredEvent } from '../../../kernel/event-log.ts'
import type { OrderMolecules } from '../runs/ports.ts'
import { orderOfMolecule } from '../runs/rows.ts'

const OF_MOLECULES = /^(?:molecule|execution|gate|bead)\./
const ROOT_KEY = 'svc.root_bead_id'

export function isOwnEvent(
  db: Database,
  molecules: Pick<OrderMolecules, 'rootOf'>,
  scoped: string,
  { type, subject, envelope }: StoredEvent,
): boolean {
  if (subject === undefined) return false
  if (type.startsWith('order.')) return subject === scoped
  if (!OF_MOLECULES.test(type)) return false
  const root = saidRoot(envelope) ?? molecules.rootOf(subject) ?? subject
  return orderOfMolecule(db, root) === scoped
}

/** A bead that is gone is in its event still. */
function saidRoot(envelope: string): string | undefined {
  if (!envelope.includes(ROOT_KEY)) return undefined
  const {
    payload,
  }: { readonly payload: { readonly bead?: { readonly metadata?: Readonly<Record<string, unknown>> } } } =
    JSON.parse(envelope)
  const root = payload.bead?.metadata?.[ROOT_KEY]
  return typeof root === 'string' ? root : undefined
}
