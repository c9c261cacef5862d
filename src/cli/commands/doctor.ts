/** `svcctl doctor`: everything that is broken or waits, with the command that mends it. */

import type { Client } from '../../client/client.ts'
import type { ReadinessItem } from '../../contract/health.ts'
import type { Need } from '../../contract/needs.ts'
import { type CommandSpec, watchFlag } from '../base/command.ts'
import type { Context } from '../base/context.ts'
import { EXIT } from '../base/failure.ts'
import { view } from '../print/view.ts'
import { needsInScope } from '../views/needs.ts'

/** One thing that was looked at. `act`: a person has to act; `watch`: it is wrong and may mend itself; `ok`: it is well. */
interface Finding {
  readonly severity: 'act' | 'watch' | 'ok'
  readonly check: string
  readonly city?: string
  readonly title: string
  readonly detail?: string
  /** Command that mends it, or that shows more. */
  readonly mend?: string
}

const FINDING = view<Finding>()('severity city check title mend', { wide: 'detail', name: 'check' })

async function doctor(context: Context): Promise<number> {
  using limit = context.within()
  const { signal } = limit
  const client = await context.client()
  const [needs, health, host] = await Promise.all([
    needsInScope(context, { signal, snoozed: true }),
    supervisorFindings(client, signal),
    hostFindings(client, signal),
  ])
  const items = [...needs.map(findingOf), ...health, ...host].toSorted((a, b) => rankOf(a) - rankOf(b))
  const shown = context.print.isForPeople ? items.filter(({ severity }) => severity !== 'ok') : items
  const toAct = items.filter(({ severity }) => severity === 'act').length
  await context.print.list({ items: shown, ...FINDING, json: JSON.stringify({ items, total: items.length }) })
  await context.note(`${items.length} checks: ${toAct} to act on, ${shown.length - toAct} to watch`)
  return toAct === 0 ? EXIT.ok : EXIT.rejected
}

const SEVERITIES: readonly Finding['severity'][] = ['act', 'watch', 'ok']
const rankOf = ({ severity }: Finding): number => SEVERITIES.indexOf(severity)

const findingOf = ({ severity, kind, city, title, detail, operations: [first] }: Need): Finding => ({
  severity,
  check: kind,
  city,
  title,
  ...(detail === undefined ? {} : { detail }),
  ...(first === undefined ? {} : { mend: first.command }),
})

/** What the supervisor says of itself. */
async function supervisorFindings(client: Client, signal: AbortSignal): Promise<readonly Finding[]> {
  const { body } = await client.call('get-health', { signal })
  return body.checks.map(({ name, status, detail }) => ({
    severity: status === 'ok' ? 'ok' : 'act',
    check: name,
    title: status === 'ok' ? 'is well' : (detail ?? status),
    ...(status === 'ok' ? {} : { mend: 'svcctl health' }),
  }))
}

/** Programs of the host: one that is not installed is no fault, one that cannot be used as it is set up is. */
async function hostFindings(client: Client, signal: AbortSignal): Promise<readonly Finding[]> {
  const { body } = await client.call('get-readiness', { query: { fresh: true }, signal })
  return Object.values(body.items).map((item) => ({
    severity: severityOf(item),
    check: `${item.kind} ${item.name}`,
    title: item.status.replaceAll('_', ' '),
    ...(item.detail === undefined ? {} : { detail: item.detail }),
    ...(severityOf(item) === 'ok' ? {} : { mend: `svcctl readiness ${item.name} --fresh` }),
  }))
}

const FAULTY: ReadonlySet<ReadinessItem['status']> = new Set(['needs_auth', 'invalid_configuration', 'probe_error'])
const severityOf = ({ status }: ReadinessItem): Finding['severity'] => (FAULTY.has(status) ? 'watch' : 'ok')

export const commands: readonly CommandSpec[] = [
  {
    path: ['doctor'],
    operations: ['list-needs', 'get-health', 'get-readiness'],
    summary: 'Everything that is broken or waits, and the command that mends it',
    description:
      'Looks at the supervisor, the programs of the host, and every city: what waits for a person, failed molecules, quarantined agents, files that are not valid, failing orders and services. Exit code 6 where a person has to act. `-o json` has the checks that are well too.',
    flags: [watchFlag],
    isWatched: true,
    examples: [
      { line: 'svcctl doctor', does: 'in the city in scope, else in all' },
      { line: 'svcctl doctor -o json', does: 'for a monitor: exit code 6 says that somebody must act' },
    ],
    isFleet: true,
    run: doctor,
  },
]
