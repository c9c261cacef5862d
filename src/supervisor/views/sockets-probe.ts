/** The sockets of agents, for the readiness of the host: they work wherever they are, and people learn why not as usual. */
import type { Environment } from '../../kernel/processes.ts'
import type { Probe } from '../../modules/health/probes.ts'
import { squatterOf } from '../../runtimes/socket-directory.ts'

export const socketsProbe = (env: Environment): Probe => ({
  name: 'agent_sockets',
  kind: 'tool',
  display_name: 'Sockets of agents',
  run: async () => {
    const why = squatterOf({ env })
    return {
      status: 'configured',
      ...(why === undefined ? {} : { detail: `${why}; they are in the state directory instead` }),
    }
  },
})
