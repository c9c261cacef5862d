/** `svcctl event emit`. */

import type { CommandSpec } from '../base/command.ts'
import type { AnswerOf } from '../framework/declaration.ts'
import { commandsOf } from '../framework/declare.ts'
import { view } from '../print/view.ts'
import { EVENT_BUS as TABLE } from '../tables/event-bus.ts'

export const commands: readonly CommandSpec[] = [
  commandsOf(TABLE)('event emit', 'emit-event', {
    arguments: ['<type>'],
    says: {
      actor: 'Who does it (default: SVC_ALIAS, SVC_AGENT or SVC_SESSION_ID, else `human`).',
      subject: 'What it is about.',
      message: 'For people.',
      payload: 'An object.',
    },
    completes: { type: 'event-type' },
    fill: ({ io: { env } }) => ({
      actor: env['SVC_ALIAS'] || env['SVC_AGENT'] || env['SVC_SESSION_ID'] || 'human',
    }),
    view: view<AnswerOf<'emit-event'>>()('status seq', { name: 'seq' }),
    examples: {
      [`svcctl event emit deploy.done --city alpha --subject web --payload '{"env":"prod"}'`]: 'append an event',
      'svcctl event emit report.ready --payload @report.json': 'its payload from a file',
    },
  }),
]
