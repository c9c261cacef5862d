/** Health, readiness and metrics, as the supervisor joins them. */
import { healthOperations } from '../../contract/health.ts'
import { defineFamily } from '../../kernel/family.ts'
import { createHealthHandlers } from './handlers.ts'

export const health = defineFamily({ operations: healthOperations, handlers: createHealthHandlers })
