/** Accepted requests, as the supervisor joins them. */
import { requestOperations } from '../../contract/requests.ts'
import { defineFamily } from '../../kernel/family.ts'
import { createRequestHandlers } from './handlers.ts'

export const requests = defineFamily({ operations: requestOperations, handlers: createRequestHandlers })
