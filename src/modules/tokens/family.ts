/** Tokens, as the supervisor joins them. */

import { tokenOperations } from '../../contract/tokens.ts'
import { migrationsOf } from '../../kernel/database.ts'
import { defineFamily } from '../../kernel/family.ts'
import { createTokenHandlers } from './handlers.ts'
import { TOKENS_SCHEMA } from './tokens.ts'

export const tokens = defineFamily({
  operations: tokenOperations,
  supervisorSchema: migrationsOf('tokens', TOKENS_SCHEMA),
  handlers: createTokenHandlers,
})
