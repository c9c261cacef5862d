/** `svcctl schema`: what machines read about svcctl. All of it comes with the program, so no server is asked. */
import { isRecord } from '../../client/problems.ts'
import type { CommandSpec, Input } from '../base/command.ts'
import type { Context } from '../base/context.ts'
import { EXIT, usageError } from '../base/failure.ts'
import { type ShippedFile, shippedText } from '../base/package-files.ts'

const printing =
  (file: ShippedFile) =>
  async (context: Context): Promise<number> => {
    const text = await shippedText(file)
    await context.print.text({ text: `${text.trimEnd()}\n`, json: text })
    return EXIT.ok
  }

/** One command, or all that begin with the words. */
async function printCommand(context: Context, input: Input): Promise<number> {
  const wanted = ['svcctl', ...input.texts('words')].join(' ')
  const all: unknown = JSON.parse(await shippedText('commands.json'))
  const found = (Array.isArray(all) ? all : []).filter(
    (one: unknown) => isRecord(one) && `${String(one['command'])} `.startsWith(`${wanted} `),
  )
  if (found.length === 0) throw usageError(`there is no command \`${wanted}\``, 'see: svcctl --help')
  const text = JSON.stringify(found.length === 1 ? found[0] : found, undefined, 2)
  await context.print.text({ text: `${text}\n`, json: text })
  return EXIT.ok
}

export const commands: readonly CommandSpec[] = [
  {
    path: ['schema', 'openapi'],
    operations: [],
    summary: 'Print the OpenAPI 3.1 document of the API',
    description: 'Of this program. A server has its own at `/openapi.json`.',
    examples: [{ line: 'svcctl schema openapi > openapi.json', does: 'for a generator of clients' }],
    run: printing('openapi.json'),
  },
  {
    path: ['schema', 'events'],
    operations: [],
    summary: 'Print the JSON Schema of a line of `svcctl events`',
    description: 'It refers to `openapi.json` beside it.',
    examples: [{ line: 'svcctl schema events > events.json', does: 'for a reader of events' }],
    run: printing('events.json'),
  },
  {
    path: ['schema', 'city'],
    operations: [],
    summary: 'Print the JSON Schema of `city.toml`',
    description: 'For editors. A server has it at `/city.schema.json`.',
    examples: [{ line: 'svcctl schema city > city.schema.json', does: 'for an editor of `city.toml`' }],
    run: printing('city.schema.json'),
  },
  {
    path: ['schema', 'agent'],
    operations: [],
    summary: 'Print the JSON Schema of `agent.toml`',
    description: 'For editors. A server has it at `/agent.schema.json`.',
    examples: [{ line: 'svcctl schema agent > agent.schema.json', does: 'for an editor of `agent.toml`' }],
    run: printing('agent.schema.json'),
  },
  {
    path: ['schema', 'formula'],
    operations: [],
    summary: 'Print the JSON Schema of a formula’s file',
    description: 'For editors. A server has it at `/formula.schema.json`.',
    examples: [{ line: 'svcctl schema formula > formula.schema.json', does: 'for an editor of formulas' }],
    run: printing('formula.schema.json'),
  },
  {
    path: ['schema', 'order'],
    operations: [],
    summary: 'Print the JSON Schema of an order’s file',
    description: 'For editors. A server has it at `/order.schema.json`.',
    examples: [{ line: 'svcctl schema order > order.schema.json', does: 'for an editor of orders' }],
    run: printing('order.schema.json'),
  },
  {
    path: ['schema', 'command'],
    operations: [],
    summary: 'Print what a command takes, as JSON',
    description: 'Of several commands, where the words are those that they begin with: a list.',
    arguments: [{ name: '<words...>', description: 'Words of the command.' }],
    examples: [
      { line: 'svcctl schema command bead create', does: 'its flags, for a program' },
      { line: 'svcctl schema command bead', does: 'all commands of beads' },
    ],
    run: printCommand,
  },
]
