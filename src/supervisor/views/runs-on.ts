/** What goes on when the supervisor ends, for its last line. */
import { services } from '../../modules/services/family.ts'
import { sessions } from '../../modules/sessions/family.ts'
import type { Running } from './running.ts'

export interface RunsOn {
  /** Sessions whose process runs. */
  readonly sessions: number
  /** Services whose process runs. */
  readonly services: number
}

export function runningOn(cities: readonly Running[]): RunsOn {
  const count = { sessions: 0, services: 0 }
  for (const city of cities) {
    const { sessions: all } = sessions.find(city) ?? {}
    count.sessions += all?.open.filter(({ id }) => all.live(id)?.liveness === 'alive').length ?? 0
    count.services += services.find(city)?.services.all.filter(({ state }) => state === 'ready').length ?? 0
  }
  return count
}
