/**
 * Agents behind the Agent Client Protocol (decision 73). The protocol is spoken in the host (`acp/child.ts`), which
 * holds the agent's pipes: so a conversation, its open turn and its open questions outlive the supervisor.
 */
import type { Runtime } from './process/runtime.ts'
import { createHostRuntime, type HostRuntimeDeps } from './subprocess.ts'

export const createAcpRuntime = (deps: HostRuntimeDeps): Runtime => createHostRuntime('acp', deps)
