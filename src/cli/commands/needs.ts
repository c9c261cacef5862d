/** `svcctl needs`: everything that waits for a person, in all cities or one. */

import { isNeedKind, NEED_KINDS } from '../../contract/needs.ts'
import { type CommandSpec, type Input, watchFlag } from '../base/command.ts'
import type { Context } from '../base/context.ts'
import { EXIT } from '../base/failure.ts'
import { commandsOf } from '../framework/declare.ts'
import { askNeeds } from '../live/ask-needs.ts'
import { NEEDS as TABLE } from '../tables/needs.ts'
import { NEED, type NeedQuery, needsInScope } from '../views/needs.ts'

const command = commandsOf(TABLE)

async function needs(context: Context, input: Input): Promise<number> {
  using limit = context.within()
  const kinds = input.texts('kind').filter(isNeedKind)
  const query: NeedQuery = {
    // A kind that is asked for by name is shown whatever its severity.
    ...(input.on('all') || kinds.length > 0 ? {} : { severity: 'act' }),
    ...(kinds.length === 0 ? {} : { kind: kinds }),
    ...(input.on('snoozed') ? { snoozed: true } : {}),
  }
  const items = await needsInScope(context, { ...query, signal: limit.signal })
  const { terminal } = context.io
  if (terminal !== undefined && items.length > 0 && context.print.isForPeople && !input.on('watch')) {
    await askNeeds(context, terminal, query)
    return EXIT.ok
  }
  await context.print.list({ items, ...NEED, json: JSON.stringify({ items, total: items.length }) })
  if (items.length === 0) await context.note('nothing waits for you')
  return EXIT.ok
}

export const commands: readonly CommandSpec[] = [
  {
    path: ['needs'],
    operations: [
      'list-needs',
      'get-session-pending',
      'close-bead',
      'retry-molecule',
      'wake-session',
      'restart-service',
    ],
    summary: 'Everything that waits for a person',
    description:
      'Questions and permission requests of agents, gates and checks of molecules, failures, files that are not valid. What holds up most comes first. In a terminal each is answered in place, by number; elsewhere COMMANDS of `-o wide` says how. With --watch it goes on: a terminal shows what waits now, elsewhere each need is a line when it comes.',
    flags: [
      watchFlag,
      { flags: '--all', description: 'Also what may mend itself (severity watch).', field: 'severity' },
      { flags: '--kind <kind>', description: 'Only needs of this kind.', choices: NEED_KINDS, repeatable: true },
      { flags: '--snoozed', description: 'Snoozed needs too.' },
    ],
    isWatched: true,
    examples: [
      { line: 'svcctl needs', does: 'see and answer them: in the city in scope, else in all' },
      { line: 'svcctl needs --all-cities --all', does: 'in all cities, with what may mend itself' },
      { line: 'svcctl needs --watch', does: 'keep an eye on it' },
    ],
    isFleet: true,
    run: needs,
  },
  command('needs snooze', 'snooze-need', {
    arguments: ['<need_id>'],
    view: NEED,
    examples: {
      'svcctl needs snooze nd-0123456789abcdef --for 2h': 'leave it out of lists for two hours',
    },
  }),
]
