/** How a city is, in a few lines. */

import type { ConfigRejection, StatusBody } from '../../contract/cities.ts'
import { size } from '../base/progress.ts'
import { view } from '../print/view.ts'
import { todayOf } from './usage-views.ts'

/** Where everything else looks as it should: that the files of the city are not what it runs on. */
export const rejectedText = (rejection: ConfigRejection | undefined): string | undefined =>
  rejection === undefined
    ? undefined
    : `config: rejected since ${rejection.since}: ${rejection.error}${rejection.count === 1 ? '' : ` (and ${rejection.count - 1} more)`}`

export const CITY_STATUS = view<StatusBody>()(
  'name path uptime_sec suspended RUNNING AGENTS RIGS WORK MAIL SERVICES EVENTS RUNS TODAY observed_at ERROR',
  {
    as: {
      RUNNING: ({ running }) => (running === 1 ? '1 session' : `${running} sessions`),
      AGENTS: ({ agents }) =>
        `${agents.running} of ${agents.total} defined run, ${agents.suspended} suspended, ${agents.quarantined} quarantined`,
      RIGS: ({ rigs }) => `${rigs.total}, ${rigs.suspended} suspended`,
      WORK: ({ work }) => `${work.ready} ready, ${work.in_progress} in progress, ${work.open} open`,
      MAIL: ({ mail }) => `${mail.unread} unread of ${mail.total}`,
      SERVICES: ({ services }) =>
        services && `${services.ready} of ${services.total} ready, ${services.degraded} degraded`,
      EVENTS: ({ events }) => `head ${events.head_seq}, oldest ${events.oldest_seq}, ${size(events.bytes)}`,
      RUNS: ({ runs }) => runs && `${runs.total}, ${size(runs.bytes)} of output`,
      TODAY: ({ budget }) => budget && todayOf(budget),
      ERROR: (status) => rejectedText(status.config_rejected),
    },
  },
)
