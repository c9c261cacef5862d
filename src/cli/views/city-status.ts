/** How a city is, in a few lines. */
import type { ConfigRejection, StatusBody } from '../../contract/cities.ts'
import type { View } from '../framework/declaration.ts'

/** Where everything else looks as it should: that the files of the city are not what it runs on. */
export const rejectedText = (rejection: ConfigRejection | undefined): string | undefined =>
  rejection === undefined
    ? undefined
    : `config: rejected since ${rejection.since}: ${rejection.error}${rejection.count === 1 ? '' : ` (and ${rejection.count - 1} more)`}`

export const CITY_STATUS: View<StatusBody> = {
  columns: [
    { header: 'NAME', value: (status) => status.name },
    { header: 'PATH', value: (status) => status.path },
    { header: 'UPTIME_SEC', value: (status) => status.uptime_sec },
    { header: 'SUSPENDED', value: (status) => status.suspended },
    { header: 'RUNNING', value: ({ running }) => (running === 1 ? '1 session' : `${running} sessions`) },
    {
      header: 'AGENTS',
      value: ({ agents }) =>
        `${agents.running} of ${agents.total} defined run, ${agents.suspended} suspended, ${agents.quarantined} quarantined`,
    },
    { header: 'RIGS', value: ({ rigs }) => `${rigs.total}, ${rigs.suspended} suspended` },
    { header: 'WORK', value: ({ work }) => `${work.ready} ready, ${work.in_progress} in progress, ${work.open} open` },
    { header: 'MAIL', value: ({ mail }) => `${mail.unread} unread of ${mail.total}` },
    {
      header: 'EVENTS',
      value: ({ events }) => `head ${events.head_seq}, oldest ${events.oldest_seq}, ${events.bytes} bytes`,
    },
    { header: 'OBSERVED_AT', value: (status) => status.observed_at, kind: 'time' },
    { header: 'ERROR', value: (status) => rejectedText(status.config_rejected) },
  ],
  name: ({ name }) => name,
}
