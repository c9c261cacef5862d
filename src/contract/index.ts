/** The whole contract, collected. */
import { agentOperations, agentOutputOperations } from './agents.ts'
import { orderDocumentOperations } from './automation/documents.ts'
import { formulaOperations } from './automation/formulas.ts'
import { moleculeOperations } from './automation/molecules.ts'
import { orderOperations } from './automation/orders.ts'
import { slingOperations } from './automation/sling.ts'
import type { Operation } from './base/operation.ts'
import { beadOperations } from './beads.ts'
import { cityOperations } from './cities.ts'
import { configOperations } from './config.ts'
import { convoyOperations } from './convoys.ts'
import { documentOperations } from './documents.ts'
import type { EventType, RequestOperation } from './event-types.ts'
import { eventOperations } from './events.ts'
import { healthOperations } from './health.ts'
import { adapterOperations } from './messaging/adapters.ts'
import { mailOperations } from './messaging/mail.ts'
import { participantOperations } from './messaging/participants.ts'
import { transcriptOperations } from './messaging/transcripts.ts'
import { needOperations } from './needs.ts'
import { packOperations } from './packs.ts'
import { patchOperations } from './patches.ts'
import { providerOperations } from './providers.ts'
import { requestOperations } from './requests.ts'
import { rigOperations } from './rigs.ts'
import { serviceOperations } from './services.ts'
import { sessionReportOperations } from './sessions/reports.ts'
import { sessionOperations } from './sessions/sessions.ts'
import { terminalOperations } from './sessions/terminal.ts'
import { usageOperations } from './sessions/usage.ts'
import { tokenOperations } from './tokens.ts'
import { worktreeOperations } from './worktrees.ts'

const operations = [
  ...cityOperations,
  ...healthOperations,
  ...eventOperations,
  ...packOperations,
  ...needOperations,
  ...requestOperations,
  ...configOperations,
  ...patchOperations,
  ...rigOperations,
  ...beadOperations,
  ...convoyOperations,
  ...mailOperations,
  ...moleculeOperations,
  ...slingOperations,
  ...agentOperations,
  ...agentOutputOperations,
  ...sessionOperations,
  ...sessionReportOperations,
  ...terminalOperations,
  ...worktreeOperations,
  ...serviceOperations,
  ...providerOperations,
  ...tokenOperations,
  ...usageOperations,
  ...formulaOperations,
  ...orderDocumentOperations,
  ...orderOperations,
  ...transcriptOperations,
  ...participantOperations,
  ...adapterOperations,
  ...documentOperations,
] as const

/** Every operation by its literal type, for typed clients and handlers. */
export type AnyOperation = (typeof operations)[number]
export type OperationId = AnyOperation['id']
/** Looked up by name: an `Extract` would compare every operation with what is wanted, each time. */
type OperationsById = { readonly [O in AnyOperation as O['id']]: O }
export type OperationById<Id extends OperationId> = OperationsById[Id]

/** The families name events and requests by text; here the compiler looks whether they exist. */
interface Collected extends Operation {
  readonly emits?: readonly EventType[]
  readonly accepts?: RequestOperation
}
export const OPERATIONS: readonly Collected[] = operations
