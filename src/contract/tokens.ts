/** Tokens that people give to programs and other machines (decision 212). */

import type { EventTypes } from './base/event-type.ts'
import { family } from './base/family.ts'
import { CityName, Timestamp } from './base/names.ts'
import { listBody } from './base/paging.ts'
import { choice, component, literal, optional, type Static, string } from './base/schema.ts'

export const TOKEN_ROLES = ['admin', 'viewer'] as const

const role = choice(TOKEN_ROLES, { description: '`viewer` may only read.' })
const name = string({
  minLength: 1,
  maxLength: 100,
  pattern: '^[\\w.@+-]+$',
  description: 'What it is for: letters, digits, `.`, `_`, `@`, `+` and `-`. One token has it.',
  examples: ['board'],
})
const city = optional({ ...CityName, description: 'The only city that it is for; without one it is for all.' })

const INFO = {
  id: string({ pattern: '^tok-[0-9a-f]{16}$' }),
  name,
  role,
  city,
  created_at: Timestamp,
  last_used_at: optional({ ...Timestamp, description: 'To within an hour.' }),
}
export const Token = component('Token', INFO, { description: 'Without its secret, which is kept as a hash.' })
export type Token = Static<typeof Token>

export const TokenCreateRequest = component('TokenCreateRequest', { name, role, city })

export const CreatedToken = component('CreatedToken', {
  ...INFO,
  token: string({ description: 'Shown this once: `Authorization: Bearer <token>`.' }),
})
export type CreatedToken = Static<typeof CreatedToken>

export const TokenPayload = component('TokenPayload', { id: INFO.id, name, role, city })

const tokens = family(
  { name: 'Tokens', about: 'What programs and other machines are let in with.' },
  '/v0/tokens',
  { id: string({ minLength: 1, description: 'Id or name.', examples: ['tok-0123456789abcdef'] }) },
  {},
)

export const listTokens = tokens.get('list-tokens', '', {
  summary: 'List tokens',
  description: 'By name; secrets are nowhere. Tokens of sessions and that of `endpoint.json` are not among them.',
  replies: { 200: listBody('ListBodyToken', Token) },
})

export const createToken = tokens.post('create-token', '', {
  summary: 'Make a token',
  description:
    'The answer shows its secret, and nothing else ever does. Where the answer was lost, delete the token and make another.',
  body: TokenCreateRequest,
  replies: { 201: CreatedToken },
  problems: ['name-taken'],
  emits: ['token.created'],
})

const tokensLog = { payload: TokenPayload, log: 'supervisor', emittedBy: 'tokens' } as const
export const TOKEN_EVENT_TYPES = {
  'token.created': { ...tokensLog, when: 'a token was made' },
  'token.deleted': { ...tokensLog, when: 'a token was revoked' },
} as const satisfies EventTypes

export const tokenOperations = [
  listTokens,
  createToken,
  tokens.delete('delete-token', '/{id}', {
    summary: 'Revoke a token',
    description: 'From the next request on; streams that were opened with it end.',
    replies: { 200: component('DeletedToken', { status: literal('deleted'), id: INFO.id, name }) },
    problems: ['token-not-found'],
    emits: ['token.deleted'],
  }),
] as const
