/** The whole contract, collected. */
import { cityOperations } from './cities.ts'
import { documentOperations } from './documents.ts'
import { eventOperations } from './events.ts'
import { healthOperations } from './health.ts'
import type { Operation } from './operation.ts'
import { requestOperations } from './requests.ts'

const operations = [
  ...cityOperations,
  ...healthOperations,
  ...eventOperations,
  ...requestOperations,
  ...documentOperations,
] as const

/** Every operation by its literal type, for typed clients and handlers. */
export type AnyOperation = (typeof operations)[number]
export type OperationId = AnyOperation['id']
export type OperationById<Id extends OperationId> = Extract<AnyOperation, { readonly id: Id }>

export const OPERATIONS: readonly Operation[] = operations
