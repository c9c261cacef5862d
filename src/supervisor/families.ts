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
import { execs } from '../modules/execs/family.ts'
import { health } from '../modules/health/family.ts'
import { mail } from '../modules/mail/family.ts'
import { messaging } from '../modules/messaging/family.ts'
import { molecules } from '../modules/molecules/family.ts'
import { needs } from '../modules/needs/family.ts'
import { orders } from '../modules/orders/family.ts'
import { packs } from '../modules/packs/family.ts'
import { patchFamily } from '../modules/patches/family.ts'
import { providerFamily } from '../modules/providers/family.ts'
import { requests } from '../modules/requests/family.ts'
import { rigFamily } from '../modules/rigs/family.ts'
import { services } from '../modules/services/family.ts'
import { sessions } from '../modules/sessions/family.ts'
import { slings } from '../modules/sling/family.ts'
import { tokens } from '../modules/tokens/family.ts'
import { usage } from '../modules/usage/family.ts'
import { worktrees } from '../modules/worktrees/family.ts'
import { agentCity, agentHost } from './views/agents.ts'
import { cityHost, cityRoom } from './views/cities.ts'
import { execContext } from './views/execs.ts'
import { formulaContext, formulas } from './views/formulas.ts'
import { mailContext } from './views/mail.ts'
import { messagingContext } from './views/messaging.ts'
import { moleculesContext } from './views/molecules.ts'
import { needContext, needHost } from './views/needs.ts'
import { configured, patchHost, providerHost, rigContext, rigHost } from './views/objects.ts'
import { orderContext } from './views/orders.ts'
import { packRoom, packService } from './views/packs.ts'
import type { Running, Service } from './views/running.ts'
import { healthHost, ledgersOf } from './views/service.ts'
import { serviceContext } from './views/services.ts'
import { sessionContext, worktreeContext } from './views/sessions.ts'
import { configContext, configHost } from './views/settings.ts'
import { slingContext } from './views/sling.ts'
import { usageContext } from './views/usage.ts'
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
  join(execs, nothing, execContext),
  join(formulas, itself<Service>, formulaContext),
  join(providers, providerHost, configured),
  join(rigs, rigHost, rigContext),
  join(patches, patchHost, configured),
  join(agents, agentHost, agentCity),
  join(worktrees, itself<Service>, worktreeContext),
  join(services, itself<Service>, serviceContext),
  join(sessions, itself<Service>, sessionContext),
  join(mail, itself<Service>, mailContext),
  join(messaging, itself<Service>, messagingContext),
  join(molecules, itself<Service>, moleculesContext),
  join(slings, nothing, slingContext),
  join(usage, itself<Service>, usageContext),
  join(orders, itself<Service>, orderContext),
  // Last: it looks at what all others are.
  join(needs, needHost, needContext),
  join(tokens, (service: Service) => service.tokens, nothing),
]

export const CITY_SCHEMA: Migrations = [...CITY_MIGRATIONS, ...FAMILIES.flatMap(({ schema }) => schema)]
export const SUPERVISOR_MIGRATIONS: Migrations = [
  ...migrationsOf('supervisor', `${STORE_SCHEMA}${REGISTRY_SCHEMA}`),
  ...FAMILIES.flatMap(({ supervisorSchema }) => supervisorSchema),
]
