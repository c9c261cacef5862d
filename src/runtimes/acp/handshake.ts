/**
 * From a running agent to an open conversation: `initialize`, then `session/load`, `resume`, `fork` or `new`, then what
 * it is to be set to.
 */
import { type ClientContext, methods, PROTOCOL_VERSION, RequestError } from '@agentclientprotocol/sdk'
import type { AcpLaunch, LaunchSpec, McpServerSpec, SettingOutcome } from '../process/runtime.ts'
import { reasonOf } from './errors.ts'
import { isObject, type Json, listOf, objectOf, textOf } from './json.ts'
import { Offers } from './offers.ts'

export interface Wanted extends Omit<AcpLaunch, 'handshakeTimeoutMs'> {
  readonly workDir: string
  /** The agent's environment: which ways to log in need nothing more. */
  readonly env: LaunchSpec['env']
}

export interface HandshakeEvents {
  /** Before and after the agent repeats a conversation that it loads. */
  replay(phase: 'begin' | 'end'): void
  note(text: string): void
}

export interface Conversation {
  readonly id: string
  readonly offers: Offers
}

/** What an agent answers where somebody has to log in first. */
const AUTH_REQUIRED = -32000

/** No deadline of its own: the caller ends the agent when it takes too long. */
export async function openConversation(
  agent: ClientContext,
  wanted: Wanted,
  events: HandshakeEvents,
): Promise<Conversation> {
  const { files = true } = wanted
  const initialized = parseInitialized(
    await agent.request(methods.agent.initialize, {
      protocolVersion: PROTOCOL_VERSION,
      clientCapabilities: { fs: { readTextFile: files, writeTextFile: files }, terminal: false },
      clientInfo: { name: 'svcctl', version: '1' },
    }),
  )
  const opening = new Opening(agent, wanted, initialized, events)
  const { id, answer } = await opening.open()
  const offers = new Offers(initialized.capabilities)
  offers.opened(answer)
  for (const [key, value] of Object.entries(wanted.settings ?? {})) {
    // An agent that does not take it stays as it begins, and a person can read why.
    const outcome = await changeSetting(agent, id, offers, key, value)
    if (outcome.state === 'refused') events.note(`the agent did not take the ${key} ${value}: ${outcome.message}`)
    if (outcome.state === 'unsupported') events.note(`the agent has no ${key} to set: ${value} was not said to it`)
  }
  return { id, offers }
}

/** Sets one thing of an open conversation, in the way in which the agent offers it. */
export async function changeSetting(
  agent: ClientContext,
  sessionId: string,
  offers: Offers,
  key: string,
  value: string,
): Promise<SettingOutcome> {
  const way = offers.setting(key)?.way ?? (key === 'mode' ? ({ by: 'mode' } as const) : undefined)
  if (way === undefined) return { state: 'unsupported' }
  try {
    if (way.by === 'config') {
      const answer = await agent.request('session/set_config_option', { sessionId, configId: way.configId, value })
      offers.configured(objectOf(answer))
    } else if (way.by === 'mode') await agent.request(methods.agent.session.setMode, { sessionId, modeId: value })
    else await agent.request('session/set_model', { sessionId, modelId: value })
    offers.became(key, value)
    return { state: 'set' }
  } catch (error) {
    if (!(error instanceof RequestError)) throw error
    return { state: 'refused', message: reasonOf(error) }
  }
}

interface Initialized {
  readonly capabilities: Json
  readonly authMethods: readonly Json[]
}

interface Opened {
  readonly id: string
  readonly answer: Json
}

class Opening {
  readonly #agent: ClientContext
  readonly #wanted: Wanted
  readonly #initialized: Initialized
  readonly #events: HandshakeEvents

  constructor(agent: ClientContext, wanted: Wanted, initialized: Initialized, events: HandshakeEvents) {
    this.#agent = agent
    this.#wanted = wanted
    this.#initialized = initialized
    this.#events = events
  }

  async open(): Promise<Opened> {
    const { resumeSessionId, forkSessionId } = this.#wanted
    const before =
      resumeSessionId !== undefined
        ? await this.#resumed(resumeSessionId)
        : forkSessionId !== undefined
          ? await this.#forked(forkSessionId)
          : undefined
    return before ?? this.#new()
  }

  async #new(): Promise<Opened> {
    const answer = await this.#request(methods.agent.session.new, {}).catch(async (error: unknown) => {
      if (!(error instanceof RequestError) || error.code !== AUTH_REQUIRED || !(await this.#logIn())) throw error
      return this.#request(methods.agent.session.new, {})
    })
    const id = textOf(answer['sessionId'])
    if (id === undefined || id === '') throw new Error('its answer to session/new names no session')
    return { id, answer }
  }

  /** Undefined where the agent cannot or refused: it may have lost that conversation, and a new one is better than none. */
  async #resumed(sessionId: string): Promise<Opened | undefined> {
    const loads = this.#initialized.capabilities['loadSession'] === true
    if (!loads && !this.#can('resume')) {
      this.#events.note('the agent cannot load a conversation: this is a new one')
      return undefined
    }
    const method = loads ? methods.agent.session.load : 'session/resume'
    this.#events.replay('begin')
    try {
      return { id: sessionId, answer: await this.#request(method, { sessionId }) }
    } catch (error) {
      if (!(error instanceof RequestError)) throw error
      this.#events.note(`the agent could not load conversation ${sessionId}: ${reasonOf(error)}`)
      return undefined
    } finally {
      this.#events.replay('end')
    }
  }

  async #forked(sessionId: string): Promise<Opened | undefined> {
    if (!this.#can('fork')) throw new Error('it cannot fork a conversation')
    const answer = await this.#request('session/fork', { sessionId })
    const id = textOf(answer['sessionId'])
    if (id === undefined || id === '') throw new Error('its answer to session/fork names no session')
    return { id, answer }
  }

  async #request(method: string, params: Json): Promise<Json> {
    const { workDir, mcpServers = [] } = this.#wanted
    const taken = mcpServers.filter((server) => this.#takes(server))
    return objectOf(await this.#agent.request(method, { ...params, cwd: workDir, mcpServers: taken.map(wireServer) }))
  }

  /** Programs every agent starts; addresses only who says so. */
  #takes(server: McpServerSpec): boolean {
    if (!('url' in server)) return true
    const can = objectOf(this.#initialized.capabilities['mcpCapabilities'])[server.type] === true
    if (!can) this.#events.note(`the MCP server ${server.name} was left out: the agent takes none over ${server.type}`)
    return can
  }

  #can(what: 'resume' | 'fork'): boolean {
    return isObject(objectOf(this.#initialized.capabilities['sessionCapabilities'])[what])
  }

  /** By the first way that needs nothing but variables that the agent has; never one that asks a person. */
  async #logIn(): Promise<boolean> {
    const way = this.#initialized.authMethods.find((one) => this.#isReady(one))
    const methodId = textOf(way?.['id'])
    if (methodId === undefined) return false
    await this.#agent.request(methods.agent.authenticate, { methodId })
    return true
  }

  /** `env_var` names its variables; an `api-key` names whose key, which is in the variable of that name. */
  #isReady(method: Json): boolean {
    const { env } = this.#wanted
    const has = (name: string | undefined) => name !== undefined && (env[name] ?? '') !== ''
    if (method['type'] === 'env_var') {
      const needed = listOf(method['vars']).filter((one) => one['optional'] !== true)
      return needed.length > 0 && needed.every((one) => has(textOf(one['name'])))
    }
    const provider = textOf(objectOf(objectOf(method['_meta'])['api-key'])['provider'])
    return provider !== undefined && has(`${provider.toUpperCase()}_API_KEY`)
  }
}

function wireServer(server: McpServerSpec) {
  const pairs = (record: Readonly<Record<string, string>>) =>
    Object.entries(record).map(([name, value]) => ({ name, value }))
  const { name } = server
  if ('url' in server) return { type: server.type, name, url: server.url, headers: pairs(server.headers) }
  return { name, command: server.command, args: [...server.args], env: pairs(server.env) }
}

// The SDK checks what an agent asks, not what it answers.

function parseInitialized(value: unknown): Initialized {
  if (!isObject(value)) throw new Error('its answer to initialize is no object')
  const version = value['protocolVersion']
  if (version !== PROTOCOL_VERSION) {
    throw new Error(`it speaks version ${JSON.stringify(version)} of the protocol, not ${PROTOCOL_VERSION}`)
  }
  return { capabilities: objectOf(value['agentCapabilities']), authMethods: listOf(value['authMethods']) }
}
