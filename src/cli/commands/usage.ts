/** `svcctl usage` and `svcctl budget`: what agents cost. */

import type { CommandSpec } from '../base/command.ts'
import { commandsOf } from '../framework/declare.ts'
import { USAGE as TABLE } from '../tables/usage.ts'
import { BUDGET, TURN, USAGE } from '../views/usage-views.ts'

const command = commandsOf(TABLE)

/** `svcctl session usage`, beside its like. */
export const sessionUsage: CommandSpec = command('session usage', 'get-session-usage', {
  arguments: ['<id>'],
  completes: { id: 'session' },
  view: TURN,
  run: async ({ context, show, send, said }) => {
    const code = await show()
    const { body } = await send({ limit: 1 })
    if (!body.counted) await context.note(`not counted: nothing tells what turns of ${said.id} use`)
    return code
  },
  examples: {
    'svcctl session usage helper': 'what its turns cost, newest first',
    'svcctl session usage helper -o json': 'with its totals',
  },
})

export const commands: readonly CommandSpec[] = [
  command('usage', 'list-usage', {
    flags: { by: '-b' },
    view: USAGE,
    run: async ({ context, show, send }) => {
      const code = await show()
      const { body } = await send({ limit: 1 })
      const { uncounted } = body
      if (uncounted.length > 0)
        await context.note(`not counted, for nothing reports what their turns use: ${uncounted.join(', ')}`)
      return code
    },
    examples: {
      'svcctl usage': 'what each session has used, the dearest first',
      'svcctl usage --by agent --since 24h': 'who cost what since yesterday',
      'svcctl usage --by day -A': 'a row a day, of all cities',
    },
  }),
  command('budget', 'get-budget', {
    view: BUDGET,
    examples: { 'svcctl budget': 'what today cost, and what it may cost' },
  }),
]
