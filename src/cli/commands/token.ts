/** `svcctl token …`: what programs and other machines are let in with. */
import type { CreatedToken, TOKEN_ROLES, Token } from '../../contract/tokens.ts'
import type { CommandSpec, Input } from '../base/command.ts'
import type { Context } from '../base/context.ts'
import { EXIT, usageError } from '../base/failure.ts'
import { allColumns, type View } from '../base/in-city.ts'
import type { Column } from '../base/output.ts'

const ROLES = ['admin', 'viewer'] as const satisfies typeof TOKEN_ROLES

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

async function list(context: Context): Promise<number> {
  using limit = context.within()
  const client = await context.client()
  const { body, text } = await client.call('list-tokens', { signal: limit.signal })
  await context.print.list({ items: body.items, ...TOKEN, json: text })
  return EXIT.ok
}

async function create(context: Context, input: Input): Promise<number> {
  const role = ROLES.find((one) => one === (input.text('role') ?? 'viewer'))
  if (role === undefined) throw usageError(`invalid --role "${input.text('role')}": expected ${ROLES.join(' or ')}`)
  using limit = context.within()
  const client = await context.client()
  // Only where it is said: a token for everything must not come of standing in another directory.
  const { city } = context.options
  const body = { name: input.required('name'), role, ...(city === undefined ? {} : { city }) }
  const { body: created, text } = await client.call('create-token', { body, signal: limit.signal })
  await context.print.item({ item: created, ...allColumns(CREATED), json: text })
  await context.note('this is the only time that the token is shown; use it as SVC_TOKEN or with --token')
  return EXIT.ok
}

async function remove(context: Context, input: Input): Promise<number> {
  using limit = context.within()
  const client = await context.client()
  const params = { id: input.required('id') }
  const { body, text } = await client.call('delete-token', { params, signal: limit.signal })
  const columns = [
    { header: 'STATUS', value: () => body.status },
    { header: 'NAME', value: () => body.name },
    { header: 'ID', value: () => body.id },
  ]
  await context.print.item({ item: body, columns, name: () => body.name, json: text })
  return EXIT.ok
}

export const commands: readonly CommandSpec[] = [
  {
    path: ['token', 'list'],
    operations: ['list-tokens'],
    examples: [{ line: 'svcctl token list', does: 'who else is let in' }],
    isFleet: true,
    run: list,
  },
  {
    path: ['token', 'create'],
    operations: ['create-token'],
    arguments: [{ name: '<name>' }],
    flags: [{ flags: '--role <role>', description: 'What it lets do: viewer where absent.', choices: ROLES }],
    examples: [
      { line: 'svcctl token create laptop --role admin', does: 'for a client on another machine' },
      { line: 'svcctl token create board --city alpha', does: 'to read one city' },
    ],
    run: create,
  },
  {
    path: ['token', 'delete'],
    operations: ['delete-token'],
    arguments: [{ name: '<id>', description: 'Its name or id.' }],
    examples: [{ line: 'svcctl token delete laptop', does: 'let it in no more' }],
    run: remove,
  },
]
