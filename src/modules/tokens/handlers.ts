/** Handlers of the tokens family. */
import type { tokenOperations } from '../../contract/tokens.ts'
import { defineHandlers, ok } from '../../kernel/call.ts'
import type { Tokens } from './tokens.ts'

export function createTokenHandlers(tokens: Tokens) {
  return defineHandlers<typeof tokenOperations>({
    'list-tokens': () => {
      const items = [...tokens.list()]
      return ok({ items, total: items.length })
    },

    'create-token': async ({ body: { name, role, city } }) => {
      const { token, secret } = await tokens.create({ name, role, city })
      return { status: 201, body: { ...token, token: secret } }
    },

    'delete-token': async ({ params }) => ok({ status: 'deleted' as const, ...(await tokens.delete(params.id)) }),
  })
}
