/** `svcctl token …`: what programs and other machines are let in with. */
import type { CreatedToken, Token } from '../../contract/tokens.ts'
import type { CommandSpec } from '../base/command.ts'
import type { Column } from '../base/output.ts'
import type { AnswerOf, SaidOf, View } from '../framework/declaration.ts'
import { commandsOf } from '../framework/declare.ts'
import { printItem } from '../framework/run.ts'
import { TOKENS as TABLE } from '../tables/tokens.ts'

const COLUMNS: readonly Column<Token>[] = [
  { header: 'NAME', value: (token) => token.name },
  { header: 'ROLE', value: (token) => token.role },
  { header: 'CITY', value: (token) => token.city },
  { header: 'CREATED_AT', value: (token) => token.created_at, kind: 'time' },
  { header: 'LAST_USED_AT', value: (token) => token.last_used_at, kind: 'time' },
  { header: 'ID', value: (token) => token.id, wide: true },
]
const TOKEN: View<Token> = { columns: COLUMNS, name: ({ name }) => name }
const CREATED: View<CreatedToken> = {
  columns: [...COLUMNS, { header: 'TOKEN', value: ({ token }) => token }],
  name: ({ token }) => token,
}

const DELETED: View<AnswerOf<'delete-token'>> = {
  columns: [
    { header: 'STATUS', value: ({ status }) => status },
    { header: 'NAME', value: ({ name }) => name },
    { header: 'ID', value: ({ id }) => id },
  ],
  name: ({ name }) => name,
}

const command = commandsOf(TABLE)

export const commands: readonly CommandSpec[] = [
  command({
    path: ['token', 'list'],
    operation: 'list-tokens',
    view: TOKEN,
    examples: { 'svcctl token list': 'who else is let in' },
  }),
  command({
    path: ['token', 'create'],
    operation: 'create-token',
    arguments: ['<name>'],
    says: { role: 'What it lets do (default: viewer).' },
    leaves: { city: '--city says it' },
    // A city only where it is said: a token for everything must not come of standing in another directory.
    fill: ({ options: { city } }): SaidOf<'create-token'> => ({
      role: 'viewer',
      ...(city === undefined ? {} : { city }),
    }),
    run: async ({ context, send }) => {
      const exitCode = await printItem(context, CREATED, await send())
      await context.note('this is the only time that the token is shown; use it as SVC_TOKEN or with --token')
      return exitCode
    },
    examples: {
      'svcctl token create laptop --role admin': 'for a client on another machine',
      'svcctl token create board --city alpha': 'to read one city',
    },
  }),
  command({
    path: ['token', 'delete'],
    operation: 'delete-token',
    arguments: ['<id...>'],
    says: { id: 'Its name or id.' },
    view: DELETED,
    examples: { 'svcctl token delete laptop': 'let it in no more' },
  }),
]
