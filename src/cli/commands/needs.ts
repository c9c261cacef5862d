/** `svcctl needs`: everything that waits for a person, in all cities or one. */
import type { CommandSpec, Input } from '../base/command.ts'
import type { Context } from '../base/context.ts'
import { EXIT } from '../base/failure.ts'
import { askNeeds } from '../live/ask-needs.ts'
import { watchOnScreen } from '../live/watch-screen.ts'
import { isForPeople } from '../views/live.ts'
import { NEED, type Need, needsInScope } from '../views/needs.ts'
import { watchNeeds } from '../views/watch-needs.ts'

const NOTHING = 'nothing waits for you'

async function needs(context: Context, input: Input): Promise<number> {
  using limit = context.within()
  // Also before watching: what is wrong with the server or the city is said at once.
  const items = await needsInScope(context, limit.signal)
  const { terminal } = context.io
  if (input.on('watch')) {
    const city = await context.city(limit.signal)
    if (terminal === undefined || !isForPeople(context)) return await watchNeeds(context, city, printsNew(context))
    return await watchOnScreen<Need>(context, terminal, (show) =>
      watchNeeds(context, city, (all) => show({ items: all, ...NEED }, NOTHING)),
    )
  }
  if (terminal !== undefined && items.length > 0 && isForPeople(context)) {
    await askNeeds(context, terminal)
    return EXIT.ok
  }
  await context.print.list({ items, ...NEED, json: JSON.stringify({ items, total: items.length }) })
  if (items.length === 0) await context.note(NOTHING)
  return EXIT.ok
}

/** A line for each one as it comes. */
function printsNew(context: Context): (items: readonly Need[]) => Promise<void> {
  let known: ReadonlySet<string> = new Set()
  return async (items) => {
    const fresh = items.filter((item) => !known.has(keyOf(item)))
    known = new Set(items.map(keyOf))
    if (isForPeople(context) || context.print.format === 'name')
      await context.print.list({ items: fresh, ...NEED, json: '' })
    else await context.print.records(fresh.map((item) => JSON.stringify(item)))
  }
}

const keyOf = ({ city, session_id, request_id }: Need): string => `${city} ${session_id} ${request_id}`

export const commands: readonly CommandSpec[] = [
  {
    path: ['needs'],
    operations: ['list-pending', 'list-cities'],
    summary: 'Everything that waits for a person',
    description:
      'Questions of agents, oldest first. In a terminal they are answered in place, by number; elsewhere with `svcctl session respond`. With --watch it goes on: a terminal shows what waits now, elsewhere each one is a line when it comes.',
    flags: [{ flags: '-w, --watch', description: 'Go on until stopped.' }],
    examples: [
      { line: 'svcctl needs', does: 'see and answer them: in the city in scope, else in all' },
      { line: 'svcctl needs --all-cities', does: 'in all cities' },
      { line: 'svcctl needs --watch', does: 'keep an eye on it' },
    ],
    isFleet: true,
    run: needs,
  },
]
