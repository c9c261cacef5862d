/** Where agents meet the configuration, their programs and their sessions. */
import type { AgentCity, AgentHandlersDeps, AgentSessions } from '../../modules/agents/handlers.ts'
import { openBeadsOfAgent } from '../../modules/beads/store/counts.ts'
import { countDemand } from '../../modules/beads/store/ready.ts'
import type { EffectiveConfig } from '../../modules/config/compose/effective.ts'
import { referrersOfAgent } from '../../modules/config/compose/references.ts'
import { liveFor } from '../../modules/molecules/read/parts.ts'
import { sessions } from '../../modules/sessions/family.ts'
import { declaredAgent, storedPatches, treeFiles } from './config.ts'
import { configured } from './objects.ts'
import type { Host, Running } from './running.ts'

const PEEK_LINES = 5
/** Beads, and molecules, that a refusal names. */
const MAX_NAMED = 100

export const agentHost = ({ clock, programs }: Host): AgentHandlersDeps<EffectiveConfig> => ({
  clock,
  files: {
    declaration: declaredAgent,
    patches: (current) => storedPatches(current, 'agents'),
    referrers: referrersOfAgent,
    tree: treeFiles,
  },
  installed: (command) => programs.has(command),
})

export const agentCity = (city: Running): AgentCity<EffectiveConfig> => ({
  ...configured(city),
  sessions: agentSessions(city),
  work: (identity) => ({
    beads: openBeadsOfAgent(city.store.db, identity, MAX_NAMED),
    molecules: liveFor(city.store.db, identity, MAX_NAMED),
  }),
})

function agentSessions(city: Running): AgentSessions {
  const all = () => sessions.of(city).sessions
  return {
    open: ({ peek }) => {
      const { store } = all()
      return store.open().map((session) => all().view(session, peek ? PEEK_LINES : undefined))
    },
    demand: (identity) => countDemand(city.store.db, identity, city.host.clock.now()),
    closeAll: (tx, identity) => {
      const { store } = all()
      const its = store.open().filter(({ template }) => template === identity)
      for (const { id } of its) all().close(tx, id, 'api', 'agent-deleted')
      return its.map(({ id }) => id)
    },
  }
}
