/** `svcctl needs`: everything that waits for a person, in all cities or one. */

import { type CommandSpec, type Input, watchFlag } from '../base/command.ts'
import type { Context } from '../base/context.ts'
import { EXIT } from '../base/failure.ts'
import { askNeeds } from '../live/ask-needs.ts'
import { NEED, needsInScope } from '../views/needs.ts'

async function needs(context: Context, input: Input): Promise<number> {
  using limit = context.within()
  const { items, exitCode } = await needsInScope(context, limit.signal)
  const { terminal } = context.io
  if (terminal !== undefined && items.length > 0 && context.print.isForPeople && !input.on('watch')) {
    await askNeeds(context, terminal)
    return EXIT.ok
  }
  await context.print.list({ items, ...NEED, json: JSON.stringify({ items, total: items.length }) })
  if (items.length === 0) await context.note('nothing waits for you')
  return exitCode
}

export const commands: readonly CommandSpec[] = [
  {
    path: ['needs'],
    operations: ['list-pending', 'list-cities'],
    summary: 'Everything that waits for a person',
    description:
      'Questions of agents, oldest first. In a terminal they are answered in place, by number; elsewhere with `svcctl session respond`. With --watch it goes on: a terminal shows what waits now, elsewhere each one is a line when it comes.',
    flags: [watchFlag],
    isWatched: true,
    examples: [
      { line: 'svcctl needs', does: 'see and answer them: in the city in scope, else in all' },
      { line: 'svcctl needs --all-cities', does: 'in all cities' },
      { line: 'svcctl needs --watch', does: 'keep an eye on it' },
    ],
    isFleet: true,
    run: needs,
  },
]
