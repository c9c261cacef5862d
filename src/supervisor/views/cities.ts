/** What a city shows of its work and its agents. */
import { isoTime } from '../../kernel/clock.ts'
import { beads } from '../../modules/beads/family.ts'
import type { CityActivity, CityHandlersDeps, CityRoom } from '../../modules/cities/handlers.ts'
import { sessions } from '../../modules/sessions/family.ts'
import type { SessionRecord } from '../../modules/sessions/record/record.ts'
import type { Kept } from '../../modules/sessions/retention/retention.ts'
import { usage } from '../../modules/usage/family.ts'
import { mailCounts } from './mail.ts'
import type { Running, Service } from './running.ts'
import { serviceCounts } from './services.ts'

export const cityHost = ({ cities, store, clock, version, withInitializer }: Service): CityHandlersDeps => ({
  cities,
  supervisor: store,
  clock,
  version,
  initializer: withInitializer ? cities : undefined,
})

export const cityRoom = (city: Running): CityRoom => ({
  record: city.record,
  get store() {
    return city.store
  },
  work: () => beads.of(city).counts.read(city.host.clock.now()),
  mail: () => mailCounts(city),
  services: () => serviceCounts(city),
  activity: () => activityOf(city),
})

function activityOf(city: Running): CityActivity {
  const { sessions: all, deps } = sessions.of(city)
  const { agents, rigs } = deps.config()
  const { open } = all
  // A conversation with a program is no agent's.
  const of = (which: (session: SessionRecord) => boolean) =>
    new Set(open.filter((one) => one.kind === 'agent' && which(one)).map(({ template }) => template)).size
  const isRunning = ({ id }: SessionRecord) => all.live(id)?.liveness === 'alive'
  return {
    running: open.filter(isRunning).length,
    agents: {
      running: of(isRunning),
      suspended: agents.filter(({ suspended }) => suspended).length,
      quarantined: of(({ state }) => state === 'quarantined'),
    },
    rigs: { suspended: rigs.filter((rig) => deps.suspended.rig(rig.name)).length },
    runs: runsOf(all.retention.kept),
    budget: usage.find(city)?.usage.budgets.status(city.host.clock.now()),
  }
}

const runsOf = (kept: Kept | undefined): CityActivity['runs'] =>
  kept === undefined ? undefined : { total: kept.runs, bytes: kept.runBytes, observed_at: isoTime(kept.at) }
