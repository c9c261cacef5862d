/** Those that work is for, as the configuration of a city has them now. */
import { resolveTarget } from '../../automation/target.ts'
import { config as configuration } from '../../modules/config/family.ts'
import { isRigSuspended } from './objects.ts'
import type { Running } from './running.ts'

export function targetsOf(city: Running) {
  const config = () => configuration.of(city).config.current()
  const rigOf = (name: string) => config().rigs.find((rig) => rig.name === name)
  /** A session is its agent's. */
  const agentOf = (target: string) => {
    const { agents, named_sessions: named } = config()
    const identity = named.find((one) => one.identity === target)?.agent ?? target
    return agents.find((agent) => agent.identity === identity)
  }
  return {
    rigOf,
    agentOf,
    resolve: (word: string, rig: string) => resolveTarget(config(), word, rig),
    /** What is suspended, so that nobody of that name takes work. */
    suspended(target: string): string | undefined {
      if (city.record.suspended) return 'the city'
      const agent = agentOf(target)
      if (agent === undefined) return undefined
      if (agent.suspended === true) return `the agent ${agent.identity}`
      return agent.dir !== '' && isRigSuspended(city, agent.dir) ? `the rig ${agent.dir}` : undefined
    },
  }
}
