/** The sessions of a city without a supervisor: a real store, real runtimes, a configuration of the test's own. */

import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import type { RuntimeName } from '../../src/contract/sessions/session-model.ts'
import { interruptOf, presetCommand } from '../../src/harnesses/all.ts'
import { shell } from '../../src/harnesses/shell.ts'
import { type Clock, systemClock } from '../../src/kernel/clock.ts'
import { migrationsOf } from '../../src/kernel/database.ts'
import { createIds, randomHex } from '../../src/kernel/ids.ts'
import { openLog } from '../../src/kernel/log.ts'
import { openStore, STORE_SCHEMA, type Store } from '../../src/kernel/store.ts'
import { mailboxOfAgent, mailboxOfSession } from '../../src/messaging/address.ts'
import type { DigestSource, DigestSourceName } from '../../src/messaging/digest.ts'
import type { NewSession } from '../../src/modules/sessions/launch/new-session.ts'
import { Sessions } from '../../src/modules/sessions/plan/service.ts'
import type { AgentView, ProviderView, SessionsView } from '../../src/modules/sessions/record/config-view.ts'
import type { SessionsDeps, WorkPort, WorktreePort } from '../../src/modules/sessions/record/ports.ts'
import type { SessionRecord } from '../../src/modules/sessions/record/record.ts'
import { SESSIONS_SCHEMA } from '../../src/modules/sessions/record/schema.ts'
import { createAcpRuntime } from '../../src/runtimes/acp.ts'
import { killTree, listTokens } from '../../src/runtimes/process/process-tree.ts'
import type { Runtime } from '../../src/runtimes/process/runtime.ts'
import { createSubprocessRuntime } from '../../src/runtimes/subprocess.ts'
import { observeTerminal } from '../../src/supervisor/views/terminals.ts'
import { removeTree } from './temporary.ts'

const WAIT_MS = 20_000

export const AGENT: AgentView = {
  identity: 'worker',
  name: 'worker',
  base_name: 'worker',
  dir: '',
  config_dir: '/',
  scales: false,
  dependencies: [],
  global_live: [],
  paths: {},
  provider: 'bash',
  suspended: false,
  attach: true,
  restart_on_prompt_change: true,
  min_active_sessions: 0,
  max_active_sessions: -1,
  drain_timeout: '5m',
  idle_timeout: 'off',
  max_session_age: 'off',
  wake_mode: 'resume',
}

export const VIEW: SessionsView = {
  revision: '1',
  name: 'alpha',
  dir: '/alpha',
  agents: [],
  rigs: [],
  named_sessions: [],
  providers: {},
  upstreams: {},
  workspace: {},
  session: {},
  worktrees: {},
  retention: {},
  daemon: {},
  session_sleep: {},
  chat_sessions: {},
  permissions: [],
}

const BASH: ProviderView = {
  command: '/bin/bash',
  args: ['--norc', '--noprofile'],
  prompt_mode: 'omit',
  delivery: 'line',
}

const NO_WORKTREES: WorktreePort = {
  ofSession: () => undefined,
  refusal: () => Promise.resolve(undefined),
  add: () => Promise.reject(new Error('this city has no worktrees')),
  setUp: () => Promise.resolve(),
  laid: () => Promise.resolve(),
  close: () => {},
  runs: () => false,
}

const NO_WORK: WorkPort = {
  assigned: () => false,
  assignedTo: () => false,
  active: () => undefined,
  demand: () => 0,
  offered: () => [],
  renew: () => Promise.resolve(),
  release: () => [],
  beads: () => ({ open: [], unknown: [] }),
}

export interface SessionCityOptions {
  readonly config?: Partial<SessionsView>
  readonly providers?: Readonly<Record<string, ProviderView>>
  readonly work?: Partial<WorkPort>
  readonly clock?: Clock
  readonly auth?: boolean
  readonly runtimes?: readonly Runtime[]
  readonly digests?: Partial<Record<DigestSourceName, DigestSource>>
}

/** A city that can be given up and opened again, as by another supervisor. */
export class SessionCity {
  readonly path: string
  store: Store
  sessions: Sessions
  config: SessionsView
  readonly #options: SessionCityOptions
  readonly #log: ReturnType<typeof openLog>
  #runtimes: readonly Runtime[] = []

  constructor(options: SessionCityOptions = {}) {
    this.path = mkdtempSync(join(tmpdir(), 'svc-sessions-'))
    mkdirSync(join(this.path, '.svc'), { recursive: true })
    this.#options = options
    this.#log = openLog(join(this.path, 'log'), 'debug')
    this.config = {
      ...VIEW,
      dir: this.path,
      session: { provider: 'subprocess', startup_timeout: '20s' },
      daemon: { patrol_interval: '1h', shutdown_timeout: '1s' },
      ...options.config,
    }
    const { store, sessions } = this.#open()
    this.store = store
    this.sessions = sessions
  }

  async start(): Promise<this> {
    await this.sessions.adopt()
    await this.sessions.start()
    return this
  }

  /** Gives everything up, as a supervisor that ends; agents run on. */
  async release(): Promise<void> {
    this.sessions.release()
    await Promise.all(this.#runtimes.map((runtime) => runtime.close()))
    this.store.db.close()
  }

  /** Another supervisor takes the city over. */
  async again(): Promise<this> {
    const { store, sessions } = this.#open()
    this.store = store
    this.sessions = sessions
    return this.start()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.sessions.stop({ force: true }).catch(() => {})
    await Promise.all(this.#runtimes.map((runtime) => runtime.close()))
    for (const { city_path, token } of listTokens()) if (city_path === this.path) await killTree({ token }, systemClock)
    this.store.db.close()
    this.#log.close()
    removeTree(this.path)
  }

  #open() {
    const clock = this.#options.clock ?? systemClock
    const store = openStore({
      path: join(this.path, '.svc', 'city.db'),
      migrations: [...migrationsOf('store', STORE_SCHEMA), ...migrationsOf('sessions', ...SESSIONS_SCHEMA)],
      owner: 'city "alpha"',
      clock,
    })
    const env = { ...process.env, SHELL: '/bin/bash' }
    this.#runtimes = this.#options.runtimes ?? [
      createSubprocessRuntime({ clock: systemClock, env, home: this.path }),
      createAcpRuntime({ clock: systemClock, env, home: this.path }),
    ]
    const runtimes = new Map<RuntimeName, Runtime>(this.#runtimes.map((runtime) => [runtime.name, runtime]))
    const deps: SessionsDeps = {
      city: { name: 'alpha', path: this.path },
      store,
      clock,
      log: this.#log.logger,
      ids: createIds('0123456789abcdef'),
      random: randomHex,
      chance: () => 0.5,
      env,
      home: join(this.path, 'home'),
      auth: this.#options.auth === true,
      bin: resolve(import.meta.dirname, '..', '..'),
      config: () => this.config,
      provider: (name) => {
        const spec = this.#options.providers?.[name] ?? (name === 'bash' ? BASH : undefined)
        const preset = name === 'shell' ? { ...shell.preset, command: presetCommand(shell.preset, env) } : undefined
        const found = spec ?? preset
        return found === undefined ? undefined : { spec: found, family: name }
      },
      interruptOf,
      prompt: () => ({ text: '', sha256: '' }),
      fingerprints: (agent) => ({ reapply: '', launch: JSON.stringify(agent.env ?? {}), provision: '', prompt: '' }),
      render: (template) => template,
      runtimes,
      terminal: (process, session, facts) => observeTerminal(process, session, facts, systemClock),
      worktrees: NO_WORKTREES,
      chat: { closed: () => {} },
      work: { ...NO_WORK, ...this.#options.work },
      suspended: { city: () => false, rig: () => false },
      accessEnded: () => {},
      lastOutput: async () => '',
      orphans: {
        list: async () =>
          listTokens()
            .filter(({ city_path }) => city_path === this.path)
            .map(({ session_id, token }) => ({ sessionId: session_id, token })),
        kill: async (token) => {
          await killTree({ token }, systemClock)
        },
      },
      insight: { known: () => ({}), grew: () => undefined, failureOf: async () => undefined },
      usage: {
        of: () => undefined,
        grew: () => undefined,
        turn: () => Promise.resolve(undefined),
        report: () => false,
      },
      digests: {
        source: (name) => this.#options.digests?.[name],
        mailboxOf: ({ id, named, agent }) => (named === undefined ? mailboxOfSession(id) : mailboxOfAgent(agent)),
      },
    }
    return { store, sessions: new Sessions(deps) }
  }

  // --- What tests do -----------------------------------------------------------------------------------------------

  async create(draft: Partial<NewSession> = {}): Promise<SessionRecord> {
    return this.store.db.write((tx) =>
      this.sessions.insert(
        tx,
        { kind: 'provider', template: 'bash', origin: 'manual', cause: 'explicit', ...draft },
        'api',
      ),
    )
  }

  record(id: string): SessionRecord {
    const found = this.sessions.store.byId(id)
    assert.ok(found !== undefined, `session ${id} is there`)
    return found
  }

  /** Waits until the record says so. */
  async when(id: string, what: string, done: (session: SessionRecord) => boolean): Promise<SessionRecord> {
    const signal = AbortSignal.timeout(WAIT_MS)
    // As it was then: by the time we are told it may have gone on.
    let found: SessionRecord | undefined
    const holds = (session: SessionRecord | undefined) => {
      if (session !== undefined && done(session)) found ??= session
      return found !== undefined
    }
    await this.sessions.until(id, holds, signal).catch(() => {})
    return found ?? assert.fail(`${what}: ${JSON.stringify(this.record(id), undefined, 1)}`)
  }

  is(id: string, state: SessionRecord['state']): Promise<SessionRecord> {
    return this.when(id, `${id} is ${state}`, (session) => session.state === state)
  }

  async say(id: string, text: string, more: { readonly intent?: 'default' | 'follow_up' | 'interrupt_now' } = {}) {
    return this.store.db.write((tx) =>
      this.sessions.deliveries.add(
        tx,
        this.sessions.store.need(tx, id),
        { source: 'submit', intent: more.intent ?? 'default', text, ttlMs: 86_400_000 },
        'api',
      ),
    )
  }

  delivery(id: string, deliveryId: string) {
    const found = this.sessions.deliveries.info(id, deliveryId)
    assert.ok(found !== undefined)
    return found
  }

  async delivered(id: string, deliveryId: string, state = 'delivered'): Promise<void> {
    await this.when(id, `delivery ${deliveryId} is ${state}`, () => this.delivery(id, deliveryId).state === state)
  }

  /** Types of the events about a session, in order. */
  events(id: string): readonly string[] {
    return this.store.db
      .all(
        'SELECT t.name AS type FROM events e JOIN event_types t ON t.id = e.type WHERE e.subject = ? ORDER BY e.seq',
        id,
      )
      .map(({ type }) => String(type))
  }
}
