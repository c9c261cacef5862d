/** From a running agent to an open conversation: `initialize`, `session/load` or `session/new`, `session/set_mode`. */
import { type ClientContext, methods, PROTOCOL_VERSION, RequestError } from '@agentclientprotocol/sdk'

export interface Wanted {
  readonly workDir: string
  readonly resumeSessionId: string | undefined
  readonly mode: string | undefined
}

export interface HandshakeEvents {
  /** Before and after the agent repeats a conversation that it loads. */
  replay(phase: 'begin' | 'end'): void
  note(text: string): void
}

/** Resolves with the conversation's id. No deadline of its own: the caller ends the agent when it takes too long. */
export async function openConversation(agent: ClientContext, wanted: Wanted, events: HandshakeEvents): Promise<string> {
  const id = await newOrLoaded(agent, wanted, events)
  if (wanted.mode !== undefined) await enterMode(agent, id, wanted.mode, events)
  return id
}

async function newOrLoaded(
  agent: ClientContext,
  { workDir, resumeSessionId }: Wanted,
  events: HandshakeEvents,
): Promise<string> {
  const canLoad = parseInitialized(
    await agent.request(methods.agent.initialize, {
      protocolVersion: PROTOCOL_VERSION,
      clientCapabilities: { fs: { readTextFile: true, writeTextFile: true }, terminal: false },
    }),
  )
  if (resumeSessionId !== undefined) {
    if (!canLoad) events.note('the agent cannot load a conversation: this is a new one')
    else if (await loaded(agent, workDir, resumeSessionId, events)) return resumeSessionId
  }
  return parseSessionId(await agent.request(methods.agent.session.new, { cwd: workDir, mcpServers: [] }))
}

/** False where the agent refused: it may have lost that conversation, and a new one is better than none. */
async function loaded(agent: ClientContext, cwd: string, sessionId: string, events: HandshakeEvents): Promise<boolean> {
  events.replay('begin')
  try {
    await agent.request(methods.agent.session.load, { sessionId, cwd, mcpServers: [] })
    return true
  } catch (error) {
    if (!(error instanceof RequestError)) throw error
    events.note(`the agent could not load conversation ${sessionId}: ${error.message}`)
    return false
  } finally {
    events.replay('end')
  }
}

/** An agent that refuses stays in the mode that it begins in: that one asks. */
async function enterMode(
  agent: ClientContext,
  sessionId: string,
  modeId: string,
  events: HandshakeEvents,
): Promise<void> {
  try {
    await agent.request(methods.agent.session.setMode, { sessionId, modeId })
  } catch (error) {
    if (!(error instanceof RequestError)) throw error
    events.note(`the agent did not enter the mode ${modeId}: ${error.message}`)
  }
}

// The SDK checks what an agent asks, not what it answers.

/** Whether the agent can load a conversation. */
function parseInitialized(value: unknown): boolean {
  if (!isObject(value)) throw new Error('its answer to initialize is no object')
  const version = value['protocolVersion']
  if (version !== PROTOCOL_VERSION) {
    throw new Error(`it speaks version ${JSON.stringify(version)} of the protocol, not ${PROTOCOL_VERSION}`)
  }
  return isObject(value['agentCapabilities']) && value['agentCapabilities']['loadSession'] === true
}

function parseSessionId(value: unknown): string {
  const id = isObject(value) ? value['sessionId'] : undefined
  if (typeof id !== 'string' || id === '') throw new Error('its answer to session/new names no session')
  return id
}

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null
