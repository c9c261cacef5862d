/** The whole contract, collected. */
import { cityOperations } from './cities.ts'
import { configOperations } from './config.ts'
import { documentOperations } from './documents.ts'
import { eventOperations } from './events.ts'
import { healthOperations } from './health.ts'
import type { Operation } from './operation.ts'
import { packOperations } from './packs.ts'
import { patchOperations } from './patches.ts'
import { providerOperations } from './providers.ts'
import { requestOperations } from './requests.ts'
import { rigOperations } from './rigs.ts'

const operations = [
  ...cityOperations,
  ...healthOperations,
  ...eventOperations,
  ...packOperations,
  ...requestOperations,
  ...configOperations,
  ...patchOperations,
  ...rigOperations,
  ...providerOperations,
  ...documentOperations,
] as const

/** Every operation by its literal type, for typed clients and handlers. */
export type AnyOperation = (typeof operations)[number]
export type OperationId = AnyOperation['id']
export type OperationById<Id extends OperationId> = Extract<AnyOperation, { readonly id: Id }>

export const OPERATIONS: readonly Operation[] = operations
