/** `svcctl order source|put|delete|validate`: the files of orders. */

import type { StoredOrder } from '../../contract/automation/documents.ts'
import type { CommandSpec } from '../base/command.ts'
import { EXIT } from '../base/failure.ts'
import type { AnswerOf, Call } from '../framework/declaration.ts'
import { commandsOf } from '../framework/declare.ts'
import { printItem } from '../framework/run.ts'
import { view } from '../print/view.ts'
import { ORDERS as TABLE } from '../tables/orders.ts'
import { FILE, FILES, readDocument, validateFiles } from '../views/documents.ts'

const STORED = view<StoredOrder>()('name rig layer file revision')
const DELETED = view<AnswerOf<'delete-order'>>()('status name rig file', { name: 'name' })

async function source({ context, client, cityName, said, options, input }: Call<'get-order-source'>): Promise<number> {
  const name = input.required('name')
  const { body } = await client.call('get-order-source', {
    params: { cityName, name },
    query: { rig: said.rig },
    ...options,
  })
  await context.print.text({ text: body, json: JSON.stringify({ name, source: body }) })
  return EXIT.ok
}

async function put({ context, client, cityName, said, options, input }: Call<'put-order'>): Promise<number> {
  const text = await readDocument(context, input.required('file'))
  const params = { cityName, name: input.required('name') }
  const query = { rig: said.rig, shadow: said.shadow }
  const { body, text: json } = await client.call('put-order', { params, query, body: text, ...options })
  return printItem(context, STORED, { body, text: json })
}

const command = commandsOf(TABLE)
const RIG = { says: { rig: 'Rig that it is of (default: the city).' } } as const

export const fileCommands: readonly CommandSpec[] = [
  command('order source', 'get-order-source', {
    ...RIG,
    arguments: ['<name>'],
    run: source,
    examples: { 'svcctl order source nightly-triage > nightly-triage.toml': 'its file, to look at or to edit' },
  }),
  command('order put', 'put-order', {
    ...RIG,
    arguments: ['<name>'],
    operands: [FILE],
    run: put,
    examples: { 'svcctl order put nightly-triage nightly-triage.toml': 'create it, or put another in its place' },
  }),
  command('order delete', 'delete-order', {
    ...RIG,
    arguments: ['<name...>'],
    asks: (names) => `Delete order ${names}?`,
    view: DELETED,
    examples: { 'svcctl order delete nightly-triage --yes': 'its file; its history stays' },
  }),
  command('order validate', 'validate-order', {
    description:
      'Writes nothing. All that is wrong is named; exit code 1 where a file is not valid. Without files it checks those of the city and its packs.',
    leaves: { source: 'it is in the file', name: 'it is that of the file' },
    operands: [FILES],
    also: ['validate-config'],
    run: validateFiles('orders'),
    examples: {
      'svcctl order validate orders/*.toml': 'before anybody relies on them',
      'svcctl order validate': 'all that the city has now',
    },
  }),
]
