/** Handlers of the tokens family. */
import type { createToken, deleteToken, listTokens } from '../../contract/tokens.ts'
import { type Handler, ok } from '../../kernel/call.ts'
import type { Tokens } from './tokens.ts'

export function createTokenHandlers(tokens: Tokens) {
  const list: Handler<typeof listTokens> = () => {
    const items = [...tokens.list()]
    return ok({ items, total: items.length })
  }

  const create: Handler<typeof createToken> = async ({ body: { name, role, city } }) => {
    const { token, secret } = await tokens.create({ name, role, city })
    return { status: 201, body: { ...token, token: secret } }
  }

  const remove: Handler<typeof deleteToken> = async ({ params }) =>
    ok({ status: 'deleted' as const, ...(await tokens.delete(params.id)) })

  return { 'list-tokens': list, 'create-token': create, 'delete-token': remove }
}
