/** `svcctl version`: no network unless JSON is asked for, so that it answers at once. */

import type { CommandSpec, Input } from '../base/command.ts'
import type { Context } from '../base/context.ts'
import { EXIT } from '../base/failure.ts'
import { packageVersion } from '../base/package-files.ts'

/** How long the server may take to tell its version. */
const SERVER_PATIENCE_MS = 1_000

async function run(context: Context, input: Input): Promise<number> {
  const client = await packageVersion()
  const server =
    context.print.format === 'table' || context.print.format === 'name' || input.on('client')
      ? undefined
      : await serverVersion(context)
  if (context.print.format === 'table' || context.print.format === 'name') {
    await context.print.lines([client])
    return EXIT.ok
  }
  const item = server === undefined ? { client } : { client, server }
  await context.print.item({
    item,
    columns: [
      { header: 'CLIENT', value: () => client },
      { header: 'SERVER', value: () => server },
    ],
    name: () => client,
    json: JSON.stringify(item),
  })
  return EXIT.ok
}

async function serverVersion(context: Context): Promise<string | undefined> {
  using limit = context.within(SERVER_PATIENCE_MS)
  try {
    const client = await context.client()
    const { body } = await client.call('get-health', { signal: limit.signal, retries: 0 })
    return body.version
  } catch {
    context.io.signal.throwIfAborted()
    return undefined
  }
}

export const commands: readonly CommandSpec[] = [
  {
    path: ['version'],
    operations: [],
    summary: 'Print the version',
    description: 'With -o json or -o wide also that of the server, where it answers.',
    flags: [{ flags: '--client', description: 'Of this program only: do not ask the server.' }],
    examples: [
      { line: 'svcctl version', does: 'of this program' },
      { line: 'svcctl version -o json', does: 'of both' },
    ],
    run,
  },
]
