/** `svcctl top`: the fleet as it lives. */

import type { CommandSpec } from '../base/command.ts'
import type { Context } from '../base/context.ts'
import { printFleet } from '../live/fleet-once.ts'
import { showFleet } from '../live/top.ts'

async function top(context: Context): Promise<number> {
  using limit = context.within()
  const city = await context.city(limit.signal)
  const { terminal } = context.io
  return terminal !== undefined && context.print.isForPeople
    ? await showFleet(context, terminal, city)
    : await printFleet(context, city)
}

export const commands: readonly CommandSpec[] = [
  {
    path: ['top'],
    operations: [
      'stream-events',
      'list-events',
      'list-cities',
      'get-city-status',
      'list-sessions',
      'get-session',
      'list-agents',
      'list-pending',
      'list-city-needs',
      'respond-session',
      'submit-session',
    ],
    summary: 'The fleet as it lives: cities, agents, their work, what they ask',
    description:
      'A screen that follows the fleet, with keys to attach to a session, to speak to it and to answer it; `?` lists them. Where nobody looks at a screen (a pipe, TERM=dumb, -o json) it prints what is, once.',
    examples: [
      { line: 'svcctl top', does: 'the city in scope, else all' },
      { line: 'svcctl top -A', does: 'all cities' },
      { line: 'svcctl top -o json', does: 'once, for a program' },
    ],
    isFleet: true,
    run: top,
  },
]
