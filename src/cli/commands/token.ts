/** `svcctl token …`: what programs and other machines are let in with. */

import type { CreatedToken, Token } from '../../contract/tokens.ts'
import type { CommandSpec } from '../base/command.ts'
import type { AnswerOf, SaidOf } from '../framework/declaration.ts'
import { commandsOf } from '../framework/declare.ts'
import { printItem } from '../framework/run.ts'
import { around, type View, view } from '../print/view.ts'
import { TOKENS as TABLE } from '../tables/tokens.ts'

const TOKEN = view<Token>()('name role city created_at last_used_at', { wide: 'id' })
const SECRET = view<CreatedToken>()('token')
const CREATED: View<CreatedToken> = { ...around([], TOKEN, SECRET.columns), name: SECRET.name }

const DELETED = view<AnswerOf<'delete-token'>>()('status name id', { name: 'name' })

const command = commandsOf(TABLE)

export const commands: readonly CommandSpec[] = [
  command('token list', 'list-tokens', {
    view: TOKEN,
    examples: { 'svcctl token list': 'who else is let in' },
  }),
  command('token create', 'create-token', {
    arguments: ['<name>'],
    says: { role: 'What it lets do (default: viewer).' },
    leaves: { city: '--city says it' },
    // A city only where it is said: a token for everything must not come of standing in another directory.
    fill: ({ options: { city } }): SaidOf<'create-token'> => ({
      role: 'viewer',
      ...(city === undefined ? {} : { city }),
    }),
    view: CREATED,
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
  command('token delete', 'delete-token', {
    arguments: ['<id...>'],
    says: { id: 'Its name or id.' },
    view: DELETED,
    examples: { 'svcctl token delete laptop': 'let it in no more' },
  }),
]
