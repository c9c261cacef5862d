/** Where agents meet the configuration, their programs and their sessions. */
import type { Clock } from '../kernel/clock.ts'
import type { Tx } from '../kernel/database.ts'
import { type Environment, findBinary } from '../kernel/processes.ts'
import { type AgentSessions, createAgentHandlers } from '../modules/agents/handlers.ts'
import { Programs } from '../modules/agents/programs.ts'
import { countDemand } from '../modules/beads/store/ready.ts'
import type { City } from '../modules/cities/city.ts'
import type { CityStore } from '../modules/cities/city-store.ts'
import { referrersOfAgent } from '../modules/config/compose/references.ts'
import type { ConfigService } from '../modules/config/edit/service.ts'
import type { Sessions } from '../modules/sessions/plan/service.ts'
import { declaredAgent, storedPatches, treeFiles } from './config-views.ts'

export interface CityAgentsDeps {
  readonly clock: Clock
  readonly env: Environment
  readonly config: (city: string) => ConfigService
  readonly sessions: (city: string) => Sessions
}

const PEEK_LINES = 5

export function createCityAgentHandlers(
  { clock, env, config, sessions }: CityAgentsDeps,
  running: (name: string) => City & { readonly store: CityStore },
) {
  const programs = new Programs(clock, (command) => findBinary(command, env))
  return createAgentHandlers({
    clock,
    city: (name) => {
      const { store } = running(name)
      return { store, config: config(name), sessions: agentSessions(sessions(name), store, clock) }
    },
    files: {
      declaration: declaredAgent,
      patches: (current) => storedPatches(current, 'agents'),
      referrers: referrersOfAgent,
      tree: treeFiles,
    },
    installed: (command) => programs.has(command),
  })
}

function agentSessions(sessions: Sessions, { db }: CityStore, clock: Clock): AgentSessions {
  return {
    open: ({ peek }) => sessions.store.open().map((session) => sessions.view(session, peek ? PEEK_LINES : undefined)),
    demand: (identity) => countDemand(db, identity, clock.now()),
    closeAll: (tx: Tx, identity) =>
      sessions.store
        .open()
        .filter(({ template }) => template === identity)
        .map(({ id }) => {
          sessions.close(tx, id, 'api', 'agent-deleted')
          return id
        }),
  }
}
