/**
 * The effects of a start: set-up commands, the program's path, the run's directory, the runtime (sheet 04 §7.2).
 * Everything is bounded by the signal that is handed in.
 */

import { mkdirSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { cut, cutStart } from '../../../contract/base/text.ts'
import type { Clock } from '../../../kernel/clock.ts'
import { asCaller } from '../../../kernel/file-modes.ts'
import type { Logger } from '../../../kernel/log.ts'
import { isDirectory, look } from '../../../kernel/look.ts'
import { expanded, findBinary, runBriefly } from '../../../kernel/processes.ts'
import type { AgentProcess, Identity, LaunchSpec, McpServerSpec, Runtime } from '../../../runtimes/process/runtime.ts'
import { type AgentView, findAgent, isUnbound, type ProviderView, untrusted } from '../record/config-view.ts'
import { policyOf } from '../record/policy.ts'
import type { SessionsDeps } from '../record/ports.ts'
import type { Fingerprints, SessionRecord } from '../record/record.ts'
import { layHookFile } from './hook-files.ts'
import { type LaunchPlan, pathValues, planLaunch, refusedTransport, workDirOf } from './launch.ts'
import { mcpServersOf, stagedServers } from './mcp.ts'
import { isInside, layOverlays } from './overlay.ts'
import { baseRefOf, worktreeRigOf } from './worktree-wish.ts'

/** Why a session was not started, in the words of its `reason`. */
export class StartError extends Error {
  readonly reason: string
  /** Trying again later cannot help: somebody has to change something. */
  readonly final: boolean

  constructor(reason: string, message: string, final = false) {
    super(message)
    this.name = 'StartError'
    this.reason = reason
    this.final = final
  }
}

export interface Prepared {
  readonly plan: LaunchPlan
  readonly runtime: Runtime
  readonly agent: AgentView | undefined
  readonly fingerprints: Fingerprints | undefined
}

/** What a start has and no later command of the session. */
export interface StartWith {
  /** A message that goes with the first prompt. */
  readonly message?: string | undefined
  readonly access?: string | undefined
}

const HOOK_TIMEOUT_MS = 30_000
const OUTPUT_TAIL = 4096

export class Launcher {
  readonly #deps: SessionsDeps

  constructor(deps: SessionsDeps) {
    this.#deps = deps
  }

  /** What would be run now; throws `StartError` where the configuration does not allow it. */
  prepare(session: SessionRecord, identity: Identity, { message, access }: StartWith = {}): Prepared {
    const { deps, agent } = { deps: this.#deps, agent: this.#agentOf(session) }
    const config = deps.config()
    const provider = deps.provider(agent?.provider ?? session.provider)
    if (provider === undefined)
      throw new StartError('missing-config', `there is no provider ${agent?.provider ?? session.provider}`, true)
    const runtime = deps.runtimes.get(session.runtime)
    if (runtime === undefined) throw new StartError('missing-config', `there is no runtime ${session.runtime}`, true)
    const transport = refusedTransport(session.runtime, agent, provider.spec)
    if (transport !== undefined) throw new StartError('missing-config', transport, true)
    try {
      const worktree = deps.worktrees.ofSession(session.id)
      const workDir = worktree === undefined ? this.#workDir(session, agent) : join(worktree.path, worktree.prefix)
      const prompt = agent === undefined ? undefined : deps.prompt(agent, workDir)
      const plan = planLaunch(session, identity, {
        config,
        agent,
        provider: provider.spec,
        family: provider.family,
        interruptKey: deps.interruptOf(provider.family).key,
        policy: policyOf(config),
        home: deps.home,
        bin: deps.bin,
        env: deps.env,
        workDir,
        worktree,
        prompt: prompt?.text ?? '',
        message,
        access,
        mcpServers: session.runtime === 'acp' ? this.#mcpServers(agent, provider.spec) : [],
        render: deps.render,
        uuid: () => uuid(deps.random(16)),
        now: deps.clock.now(),
      })
      return { plan, runtime, agent, fingerprints: agent === undefined ? undefined : deps.fingerprints(agent) }
    } catch (error) {
      if (error instanceof StartError) throw error
      throw new StartError('missing-config', error instanceof Error ? error.message : String(error), true)
    }
  }

  /** Its worktree, where it works in one: as it is, or made and set up, which takes its time. */
  async place(session: SessionRecord, signal: AbortSignal, progress: (reason: string) => Promise<void>): Promise<void> {
    const { worktrees, work, config } = this.#deps
    const agent = this.#agentOf(session)
    const isolated = (session.isolation ?? agent?.isolation) === 'worktree'
    const known = worktrees.ofSession(session.id)
    if (!isolated && known === undefined) return
    const failed = (reason: string, final: boolean) => (error: unknown) => {
      signal.throwIfAborted()
      throw new StartError(reason, error instanceof Error ? error.message : String(error), final)
    }
    if (known?.state !== 'ready') await progress('preparing-worktree')
    const directory = this.#workDir(session, agent)
    const rig = worktreeRigOf(config(), session.rig, directory)
    const wanted = {
      sessionId: session.id,
      handle: session.alias ?? work.active(session) ?? session.id,
      rig,
      directory,
      baseRef: baseRefOf(config(), agent, rig),
    }
    const { name, state } = await worktrees.add(wanted, signal).catch(failed('worktree-failed', false))
    if (state === 'ready') return
    const { plan } = this.prepare(session, { sessionId: session.id, generation: session.generation, token: '' })
    if (plan.worktreeSetup.length > 0) await progress('setting-up-worktree')
    const how = { commands: plan.worktreeSetup, env: plan.spec.env, timeoutMs: policyOf(config()).worktreeSetupMs }
    await worktrees.setUp(name, how, signal).catch(failed('worktree-setup-failed', true))
  }

  /** What lies in the work directory before its process: its overlays, and what `pre_start` does, which takes its time. */
  async ground({ plan }: Prepared, signal: AbortSignal): Promise<void> {
    const { spec } = plan
    const rigs = this.#deps.config().rigs.flatMap(({ path }) => path ?? [])
    makeWorkDir(spec.workDir, [this.#deps.city.path, ...rigs])
    mkdirSync(dirname(spec.directory), { recursive: true, mode: 0o700 })
    mkdirSync(spec.directory, { recursive: true, mode: 0o700 })
    const { sessionId } = spec.identity
    const laid = await layOverlays(plan.overlays, spec.workDir, sessionId, signal).catch((error: unknown) => {
      signal.throwIfAborted()
      throw new StartError('overlay-failed', error instanceof Error ? error.message : String(error))
    })
    await this.#deps.worktrees.laid(sessionId, laid)
    for (const command of plan.preStart) {
      const failure = await this.#run(command, plan, signal)
      if (failure !== undefined) throw new StartError('pre-start-failed', `${command}: ${failure}`)
    }
  }

  /** `commit` comes right before the process: what it answers is what is started. */
  async launch(
    { plan, runtime }: Prepared,
    signal: AbortSignal,
    commit: () => Promise<LaunchSpec>,
  ): Promise<AgentProcess> {
    const { spec } = plan
    const named = spec.command.includes('/') ? resolve(spec.workDir, spec.command) : spec.command
    const command = await findBinary(named, spec.env)
    if (command === undefined)
      throw new StartError('missing-dependency', `the program ${spec.command} is not on this host`)
    const hooks = await this.#layHooks(plan)
    signal.throwIfAborted()
    const run = await commit()
    return runtime.start({ ...run, command, env: { ...run.env, ...hooks } }, signal)
  }

  /** What runs once it takes commands; a failure is only reported. */
  async setUp({ plan }: Prepared, signal: AbortSignal): Promise<void> {
    const script = plan.setupScript === undefined ? [] : [plan.setupScript]
    for (const command of [...plan.setup, ...script, ...plan.live]) await this.#warned(command, plan, signal)
  }

  /** Live commands again, after their configuration changed. */
  async reapply(session: SessionRecord, identity: Identity, signal: AbortSignal): Promise<Fingerprints | undefined> {
    const { plan, fingerprints } = this.prepare(session, identity)
    for (const command of plan.live) await this.#warned(command, plan, signal)
    return fingerprints
  }

  /** The agent's `on_death`, off to the side. */
  onDeath(session: SessionRecord): void {
    const agent = this.#agentOf(session, false)
    if (agent?.on_death === undefined || agent.on_death === '' || session.token === undefined) return
    const identity = { sessionId: session.id, generation: session.generation, token: session.token }
    try {
      const { plan } = this.prepare(session, identity)
      const values = { ...valuesOf(plan, session, agent, this.#deps), ConfigDir: agent.config_dir }
      const command = this.#deps.render(agent.on_death, values)
      void this.#run(command, plan, undefined, HOOK_TIMEOUT_MS).then((failure) => this.#report(command, plan, failure))
    } catch (error) {
      this.#log.warn({ session: session.id, err: error }, 'on_death not run')
    }
  }

  /** What names the hooks in its environment; nothing where they cannot be laid: it runs without them. */
  async #layHooks({ spec, hooks }: LaunchPlan): Promise<Readonly<Record<string, string>>> {
    try {
      for (const file of hooks.files) await layHookFile(file)
      return hooks.env
    } catch (error) {
      this.#log.warn({ session: spec.identity.sessionId, err: error }, 'hooks not laid')
      return {}
    }
  }

  async #warned(command: string, plan: LaunchPlan, signal: AbortSignal): Promise<void> {
    this.#report(command, plan, await this.#run(command, plan, signal))
  }

  #report(command: string, plan: LaunchPlan, failure: string | undefined): void {
    if (failure === undefined) return
    this.#log.warn({ session: plan.spec.identity.sessionId, command, failure }, 'command of a session failed')
  }

  /** Undefined, or why it failed with the end of its output. */
  async #run(
    command: string,
    { spec }: LaunchPlan,
    signal: AbortSignal | undefined,
    timeoutMs = policyOf(this.#deps.config()).setupTimeoutMs,
  ): Promise<string | undefined> {
    const result = await runBriefly('/bin/sh', ['-c', command], {
      env: spec.env,
      cwd: spec.workDir,
      timeoutMs,
      clock: this.#clock,
      ...(signal === undefined ? {} : { signal }),
    })
    if (result.outcome === 'exited' && result.code === 0) return undefined
    const said = cutStart(`${result.stdout}${result.stderr}`, OUTPUT_TAIL).trim()
    const how =
      result.outcome === 'exited' ? `exit status ${result.code ?? 'unknown'}` : result.outcome.replace('_', ' ')
    return said === '' ? how : `${how}: ${said}`
  }

  #agentOf(session: SessionRecord, needed = true): AgentView | undefined {
    const config = this.#deps.config()
    if (session.kind === 'provider') {
      const pack = untrusted(config.providers[session.provider])
      if (needed && pack !== undefined) throw new StartError('untrusted-pack', pack, true)
      return undefined
    }
    const agent = findAgent(config, session.template)
    if (agent === undefined) {
      if (needed) throw new StartError('missing-config', `there is no agent ${session.template}`, true)
      return undefined
    }
    const pack = untrusted(agent)
    if (needed && pack !== undefined) throw new StartError('untrusted-pack', pack, true)
    if (needed && isUnbound(config, agent))
      throw new StartError('missing-config', `the rig ${agent.dir} has no directory on this machine`, true)
    return agent
  }

  #mcpServers(agent: AgentView | undefined, provider: ProviderView): readonly McpServerSpec[] {
    const { config, env, render } = this.#deps
    const settings = config()
    const values = pathValues(settings, agent?.identity ?? '', agent)
    const staged = (...scope: readonly string[]) =>
      stagedServers(join(settings.dir, '.svc', 'runtime', 'packs', ...scope, 'mcp'), (text) => render(text, values))
    return mcpServersOf(
      [
        agent === undefined || agent.dir === '' ? staged('city') : staged('rigs', agent.dir),
        settings.session.mcp_servers,
        provider.mcp_servers,
        agent === undefined ? undefined : staged('agents', agent.identity.replaceAll('/', '~')),
        agent?.mcp_servers,
      ],
      (value) => expanded(value, env),
    )
  }

  /** The place of a chat is chosen once; an agent's follows its configuration. */
  #workDir(session: SessionRecord, agent: AgentView | undefined): string {
    const chosen = session.origin === 'manual' ? session.work_dir : undefined
    return chosen ?? workDirOf(this.#deps.config(), session.agent, agent, this.#deps.render)
  }

  get #clock(): Clock {
    return this.#deps.clock
  }

  get #log(): Logger {
    return this.#deps.log
  }
}

function valuesOf(plan: LaunchPlan, session: SessionRecord, agent: AgentView, deps: SessionsDeps) {
  const config = deps.config()
  return {
    Session: session.session_name,
    Agent: session.agent,
    AgentBase: agent.base_name,
    Rig: agent.dir,
    RigRoot: config.rigs.find(({ name }) => name === agent.dir)?.path ?? '',
    CityRoot: config.dir,
    CityName: config.name,
    WorkDir: plan.spec.workDir,
  }
}

/** Inside the city, or a rig that is there, it is made; anywhere else it must be there. */
function makeWorkDir(workDir: string, roots: readonly string[]): void {
  const root = roots.find((one) => isInside(one, workDir) && isDirectory(one))
  if (root !== undefined && look(workDir).is === 'missing') asCaller(() => mkdirSync(workDir, { recursive: true }))
  const found = look(workDir)
  if (found.is === 'directory') return
  if (found.is === 'unknown') throw new StartError('missing-work-dir', `${workDir} cannot be looked at: ${found.code}`)
  const what = found.is === 'missing' ? 'there is no directory' : 'this is no directory:'
  throw new StartError('missing-work-dir', `${what} ${workDir}; make it, or change \`work_dir\` of the agent`)
}

/** A version 4 UUID from 32 hex digits: what harnesses take for the name of a conversation. */
function uuid(hex: string): string {
  const variant = ((Number.parseInt(hex.charAt(16), 16) & 3) | 8).toString(16)
  return `${cut(hex, 8)}-${hex.slice(8, 12)}-4${hex.slice(13, 16)}-${variant}${hex.slice(17, 20)}-${hex.slice(20, 32)}`
}
