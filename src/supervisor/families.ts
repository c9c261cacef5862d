/**
 * The families of this service. A new one is its folder, its contract, its commands, and one line in the list.
 */
import { documents } from '../http/documents.ts'
import { type Migrations, migrationsOf } from '../kernel/database.ts'
import { type Joined, join } from '../kernel/family.ts'
import { STORE_SCHEMA } from '../kernel/store.ts'
import { agentFamily } from '../modules/agents/family.ts'
import { beads } from '../modules/beads/family.ts'
import { CITY_MIGRATIONS } from '../modules/cities/city-store.ts'
import { cities } from '../modules/cities/family.ts'
import { REGISTRY_SCHEMA } from '../modules/cities/registry.ts'
import type { EffectiveConfig } from '../modules/config/compose/effective.ts'
import { config } from '../modules/config/family.ts'
import { convoys } from '../modules/convoys/family.ts'
import { events } from '../modules/events/family.ts'
import { health } from '../modules/health/family.ts'
import { packs } from '../modules/packs/family.ts'
import { patchFamily } from '../modules/patches/family.ts'
import { providerFamily } from '../modules/providers/family.ts'
import { requests } from '../modules/requests/family.ts'
import { rigFamily } from '../modules/rigs/family.ts'
import { sessions } from '../modules/sessions/family.ts'
import { tokens } from '../modules/tokens/family.ts'
import { agentCity, agentHost } from './views/agents.ts'
import { cityHost, cityRoom } from './views/cities.ts'
import { configured, patchHost, providerHost, rigContext, rigHost } from './views/objects.ts'
import { packRoom, packService } from './views/packs.ts'
import type { Running, Service } from './views/running.ts'
import { healthHost, ledgersOf } from './views/service.ts'
import { sessionContext } from './views/sessions.ts'
import { configContext, configHost } from './views/settings.ts'
import { convoyCity, workContext } from './views/work.ts'

const rigs = rigFamily<EffectiveConfig>()
const providers = providerFamily<EffectiveConfig>()
const patches = patchFamily<EffectiveConfig>()
const agents = agentFamily<EffectiveConfig>()

const itself = <T>(it: T): T => it
const nothing = (): undefined => undefined

/** Each with what it needs of the supervisor, and of a city. They are opened in this order, and closed in the opposite one. */
export const FAMILIES: readonly Joined<Service, Running>[] = [
  join(config, configHost, configContext),
  join(documents, nothing, nothing),
  join(health, healthHost, nothing),
  join(requests, ledgersOf, nothing),
  join(events, itself<Service>, itself<Running>),
  join(cities, cityHost, cityRoom),
  join(packs, packService, packRoom),
  join(beads, itself<Service>, workContext),
  join(convoys, itself<Service>, convoyCity),
  join(providers, providerHost, configured),
  join(rigs, rigHost, rigContext),
  join(patches, patchHost, configured),
  join(agents, agentHost, agentCity),
  join(sessions, itself<Service>, sessionContext),
  join(tokens, (service: Service) => service.tokens, nothing),
]

export const CITY_SCHEMA: Migrations = [...CITY_MIGRATIONS, ...FAMILIES.flatMap(({ schema }) => schema)]
export const SUPERVISOR_MIGRATIONS: Migrations = [
  ...migrationsOf('supervisor', `${STORE_SCHEMA}${REGISTRY_SCHEMA}`),
  ...FAMILIES.flatMap(({ supervisorSchema }) => supervisorSchema),
]
