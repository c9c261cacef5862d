/** `svcctl schema`: the contract, as the server has it. */
import type { CommandSpec, Input } from '../base/command.ts'
import type { Context } from '../base/context.ts'
import { EXIT } from '../base/failure.ts'

async function run(context: Context, input: Input): Promise<number> {
  const client = await context.client()
  using limit = context.within()
  const operation = input.required('document') === 'events' ? 'get-event-schema' : 'get-openapi'
  const { text } = await client.call(operation, { signal: limit.signal })
  await context.print.lines([text.trimEnd()])
  return EXIT.ok
}

export const commands: readonly CommandSpec[] = [
  {
    path: ['schema'],
    operations: ['get-openapi', 'get-event-schema'],
    summary: 'Print the machine-readable contract',
    description: '`openapi` is the OpenAPI 3.1 document; `events` is the JSON Schema of one line of `svcctl events`.',
    arguments: [{ name: '<document>', description: 'Which one.', choices: ['openapi', 'events'] }],
    examples: [{ line: 'svcctl schema openapi > openapi.json', does: 'for a generator of clients' }],
    run,
  },
]
