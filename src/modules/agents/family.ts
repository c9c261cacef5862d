/** Agents, as the supervisor joins them; `View` is what they see of a configuration. */
import { agentOperations } from '../../contract/agents.ts'
import { defineFamily } from '../../kernel/family.ts'
import type { AgentsView } from './definitions.ts'
import { type AgentCity, type AgentHandlersDeps, createAgentHandlers } from './handlers.ts'

export const agentFamily = <View extends AgentsView>() =>
  defineFamily({
    operations: agentOperations,
    handlers: (host: AgentHandlersDeps<View>) => createAgentHandlers(host),
    open: (city: AgentCity<View>) => city,
  })
