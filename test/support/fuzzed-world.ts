/**
 * What the fuzzed city holds: work, convoys, sessions of real programs, agents, rigs, packs and patches. Requests under
 * test use it up, so it is looked at and filled up again and again.
 *
 * Programs read and do nothing: whatever a fuzzer types into them is not run. The city caps its sessions, so that no
 * request starts many processes.
 */
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { ACP_PROVIDER } from './acp-run.ts'
import { type Answered, eventually, type Fields, tryCall } from './crash-client.ts'
import { fresh } from './fresh.ts'
import {
  AUTOMATION_BODIES,
  AUTOMATION_FIELDS,
  AUTOMATION_FILES,
  AUTOMATION_PLACES,
  type HeldAutomation,
  isOwnDocument,
  lookAtAutomation,
  NO_AUTOMATION,
  tendAutomation,
} from './fuzzed-automation.ts'
import { CITY, ensureCity } from './fuzzed-city.ts'
import {
  type HeldMessaging,
  lookAtMessaging,
  MESSAGING_BODIES,
  MESSAGING_FIELDS,
  MESSAGING_PLACES,
  NO_MESSAGING,
  tendMessaging,
} from './fuzzed-messaging.ts'
import { LOGGING_HARNESS } from './logging-harness.ts'

/** Values of the parameters of one path that belong together. */
type PathValues = { readonly [parameter: string]: string }

const RIG = 'shop'
/** A few more than its own. */
const CAP = 10
/** What runs of its own sessions. */
const RUNNING = 5
const PROGRAMS = `
[session]
provider = "subprocess"
[daemon]
shutdown_timeout = "300ms"
patrol_interval = "2s"
[providers.reader]
base = "builtin:shell"
command = "cat"
[providers.reader.env]
MODE = "plain"
[providers.shell]
base = "builtin:shell"
command = "cat"
[providers.piped]
command = "cat"
io = "pipes"
prompt_mode = "omit"
[providers.modal]
base = "provider:reader"
[[providers.modal.options_schema]]
key = "permission_mode"
type = "select"
default = "ask"
choices = [{ value = "ask", flag_args = [] }, { value = "never", flag_args = ["-u"] }]
[providers.talker]
${ACP_PROVIDER}
[providers.harness]
base = "builtin:claude"
command = "./harness.sh"
ready_prompt_prefix = ""
ready_delay_ms = 0
`
const FILES: { readonly [path: string]: string } = {
  'city.toml': `[workspace]
provider = "reader"
max_active_sessions = ${CAP}
[[rigs]]
name = "${RIG}"
path = "${RIG}"
[[agent]]
name = "clerk"
dir = "${RIG}"
max_active_sessions = 1
[[agent]]
name = "hand"
dir = "${RIG}"
max_active_sessions = 1
[[named_session]]
template = "worker"
name = "front"
[[patches.agent]]
name = "worker"
nudge = "go on"
[[patches.agent]]
dir = "${RIG}"
name = "clerk"
nudge = "go on"
[[patches.rigs]]
name = "${RIG}"
default_branch = "trunk"
[[patches.providers]]
name = "modal"
display_name = "Modal"
${PROGRAMS}`,
  'agents/worker/agent.toml': 'description = "Works."\nmax_active_sessions = 2\n',
  'agents/spare/agent.toml': 'description = "Is there to be changed and removed."\nmax_active_sessions = 1\n',
  'packs/mine/pack.toml': '[pack]\nname = "mine"\nschema = 2\n',
  'packs/other/pack.toml': '[pack]\nname = "other"\nschema = 2\n',
  'pack.toml': `[pack]\nname = "${CITY}"\nschema = 2\n[imports.mine]\nsource = "packs/mine"\n`,
  ...AUTOMATION_FILES,
}
const OWN_AGENTS = new Set(['worker', 'spare'])

/** Never runs for long. */
const IDLE = 'f-idle'
/** Is asked to finish, again and again. */
const DRAINED = 'f-piped'
/** Sessions that are there again soon after they were used up. */
const SESSIONS: readonly object[] = [
  { alias: 'f-reader', kind: 'provider', name: 'modal' },
  { alias: 'f-talker', kind: 'provider', name: 'talker', runtime: 'acp' },
  { alias: 'f-harness', kind: 'provider', name: 'harness' },
  { alias: DRAINED, kind: 'provider', name: 'piped' },
  { alias: IDLE, kind: 'provider', name: 'modal' },
  { alias: 'f-agent', kind: 'agent', name: `${RIG}/clerk` },
]
const FEWEST_BEADS = 10
const FEWEST_CONVOYS = 3
const FEWEST_WAITS = 2
const FEWEST_TOKENS = 3
const FEWEST_CLAIMED = 2
/** Holds them. */
const HOLDER = 'worker'
const MOST_OPEN_SESSIONS = 12
const MOST_CLOSED_SESSIONS = 20
const RELOAD_MS = 30_000

interface Held {
  readonly beads: readonly Fields[]
  readonly convoys: readonly string[]
  readonly sessions: readonly Fields[]
  readonly deliveries: readonly Fields[]
  readonly waits: readonly Fields[]
  readonly agents: readonly string[]
  readonly rigs: readonly string[]
  readonly providers: readonly string[]
  readonly packs: readonly string[]
  readonly tokens: readonly string[]
  readonly automation: HeldAutomation
  readonly messaging: HeldMessaging
}
const NOTHING: Held = {
  beads: [],
  convoys: [],
  sessions: [],
  deliveries: [],
  waits: [],
  agents: [],
  rigs: [],
  providers: [],
  packs: [],
  tokens: [],
  automation: NO_AUTOMATION,
  messaging: NO_MESSAGING,
}

export class FuzzedWorld {
  readonly url: string
  readonly requestId: string
  /** Nothing was sent since it was tended but what only reads. */
  isTidy = false
  readonly #dir: string
  #held: Held = NOTHING

  private constructor(url: string, work: string, requestId: string) {
    this.url = url
    this.requestId = requestId
    this.#dir = join(work, CITY)
  }

  /** Of a supervisor whose user's home is `work`, with the cities that `prepareCities` made. */
  static async open(url: string, work: string, requestId: string): Promise<FuzzedWorld> {
    const world = new FuzzedWorld(url, work, requestId)
    await world.tend()
    await eventually('the sessions of the fuzzed city run', async () => {
      await world.look()
      const states = world.#held.sessions.map(({ state }) => state)
      return states.filter((state) => state === 'active').length >= RUNNING ? true : undefined
    })
    await world.tend()
    return world
  }

  /** What there is now, by the operation that `path` belongs to; the parameters of one answer belong together. */
  pathsOf(path: string): readonly PathValues[] {
    const [, place] = PLACES.find(([prefix]) => path.includes(prefix)) ?? []
    return place === undefined ? [{}] : place(this.#held, this.requestId)
  }

  /** What can stand in a field or a parameter of this name, and is there. */
  named(field: string): readonly string[] {
    return FIELDS[field]?.(this.#held) ?? []
  }

  /** Looks again. A request under test may fail any of these: then what was known stays. */
  async look(): Promise<void> {
    const before = this.#held
    const ids = (items: readonly Fields[] | undefined, name = 'id') => items?.map((item) => String(item[name]))
    const sessions = (await this.#list('/sessions?state=all&limit=60')) ?? before.sessions
    const deliveries = await Promise.all(
      sessions.slice(0, 8).map(({ id }) => this.#list(`/sessions/${String(id)}/deliveries?limit=4`)),
    )
    this.#held = {
      sessions,
      deliveries: deliveries.flatMap((some) => some ?? []),
      beads: (await this.#list('/beads?all=true&limit=60')) ?? before.beads,
      convoys: ids(await this.#list('/convoys?all=true&limit=20')) ?? before.convoys,
      waits: (await this.#list('/waits?limit=20')) ?? before.waits,
      agents: ids(await this.#list('/agents'), 'name') ?? before.agents,
      rigs: ids(await this.#list('/rigs'), 'name') ?? before.rigs,
      providers: ids(await this.#list('/providers'), 'name') ?? before.providers,
      packs: ids(await this.#list('/packs'), 'name') ?? before.packs,
      tokens: ids(await this.#items('/v0/tokens')) ?? before.tokens,
      automation: await lookAtAutomation((path) => this.#list(path), before.automation),
      messaging: await lookAtMessaging((path) => this.#list(path), before.messaging),
    }
  }

  /** Puts right what requests under test have changed: files, suspensions, sessions; fills up what they have used. */
  async tend(): Promise<void> {
    await ensureCity(this.url, CITY)
    await this.#restoreFiles()
    await this.#send('PATCH', '', { suspended: false })
    await this.#send('POST', `/rigs/${RIG}/resume`)
    await this.look()
    await this.#tendSessions()
    await this.#tendWork()
    await this.#tendMessaging()
    for (let made = this.#held.tokens.length; made < FEWEST_TOKENS; made++)
      await tryCall(this.url, 'POST', '/v0/tokens', { body: { name: fresh('made-'), role: 'viewer' } })
    await this.look()
  }

  /** Everything that `named` answers. */
  fields(): { readonly [field: string]: readonly string[] } {
    return Object.fromEntries(Object.entries(FIELDS).map(([field, values]) => [field, values(this.#held)]))
  }

  async #restoreFiles(): Promise<void> {
    const changed = Object.entries(FILES).filter(([path, text]) => this.#read(path) !== text)
    const strangers = this.#agentDirectories().filter((name) => !OWN_AGENTS.has(name))
    const documents = this.#documents().filter((path) => !isOwnDocument(path))
    if (changed.length === 0 && strangers.length === 0 && documents.length === 0) return
    for (const path of documents) rmSync(join(this.#dir, path), { recursive: true, force: true })
    for (const name of strangers) rmSync(join(this.#dir, 'agents', name), { recursive: true, force: true })
    for (const [path, text] of changed) this.#write(path, text)
    this.#write('harness.sh', LOGGING_HARNESS, 0o755)
    mkdirSync(join(this.#dir, RIG), { recursive: true })
    const accepted = await this.#send('POST', '/config/reload')
    if (accepted?.status !== 202) return
    await eventually(
      'the files of the fuzzed city are loaded',
      async () => {
        const request = await tryCall(this.url, 'GET', `/v0/requests/${String(accepted.body['request_id'])}`)
        return request?.body['finished_at'] === undefined ? undefined : true
      },
      RELOAD_MS,
    )
  }

  async #tendSessions(): Promise<void> {
    const open = this.#held.sessions.filter(({ state }) => state !== 'closed')
    const own = new Set(SESSIONS.map((one) => aliasOf(one)))
    const strangers = open.filter(({ alias, configured_named_session: named }) => !own.has(alias) && named !== true)
    for (const { id } of strangers.slice(0, Math.max(0, open.length - MOST_OPEN_SESSIONS)))
      await this.#send('DELETE', `/sessions/${String(id)}`)
    if (this.#held.sessions.length - open.length > MOST_CLOSED_SESSIONS)
      await this.#send('POST', '/sessions/prune', { closed_before: '0s' })
    for (const wanted of SESSIONS) {
      const there = open.find(({ alias }) => alias === aliasOf(wanted))
      if (there === undefined) await this.#send('POST', '/sessions', wanted)
      else if (there['state'] === 'quarantined' || there['state'] === 'failed-create')
        await this.#send('POST', `/sessions/${String(there['id'])}/wake`)
    }
    await this.#ask()
    await this.#send('POST', `/sessions/${IDLE}/suspend`)
    const drained = open.find(({ alias }) => alias === DRAINED)
    if (drained !== undefined)
      await this.#send('POST', `/sessions/${DRAINED}/${drained['state'] === 'active' ? 'drain' : 'wake'}`)
    // One delivery that stays in its queue.
    if (!this.#held.deliveries.some(({ state }) => state === 'queued'))
      await this.#send('POST', '/sessions/front/nudge', { message: 'later', delivery: 'queue' })
  }

  /** A question is open. */
  async #ask(): Promise<void> {
    const talker = this.#held.sessions.find(({ alias, state }) => alias === 'f-talker' && state === 'active')
    if (talker === undefined || talker['pending'] !== undefined || talker['queued'] !== 0) return
    await this.#send('POST', '/sessions/f-talker/messages', { message: 'ask knife' })
  }

  async #tendWork(): Promise<void> {
    const open = this.#held.beads.filter(({ status, issue_type }) => status !== 'closed' && issue_type !== 'convoy')
    if (open.length < FEWEST_BEADS) await this.#send('POST', '/beads/batch', WORK)
    const [first, second] = open.map(({ id }) => String(id))
    if (first === undefined || second === undefined) return
    if (this.#held.convoys.length < FEWEST_CONVOYS) {
      await this.#send('POST', '/convoys', { title: 'together', items: [first, second] })
      await this.#send('POST', '/convoys', { title: 'kept', items: [first], owned: true })
      await this.#send('POST', '/convoys', { title: 'empty' })
    }
    if (claimed(this.#held.beads).length < FEWEST_CLAIMED)
      for (const id of [first, second]) await this.#send('POST', `/beads/${id}/claim`, { assignee: HOLDER })
    if (this.#held.waits.filter(({ state }) => state === 'pending').length < FEWEST_WAITS)
      await this.#send('POST', '/sessions/f-reader/waits', { dep_ids: [first, second], timeout: '24h' })
    const spare = open.find(({ issue_type, assignee }) => issue_type === 'task' && assignee === undefined)
    const bead = spare === undefined ? undefined : String(spare['id'])
    await tendAutomation((method, path, body) => this.#send(method, path, body), this.#held.automation, bead)
  }

  async #tendMessaging(): Promise<void> {
    const { messaging } = this.#held
    const send = (method: string, path: string, body?: object) => this.#send(method, path, body)
    const attachments = await tendMessaging(send, () => this.#upload(), messaging)
    this.#held = { ...this.#held, messaging: { ...messaging, attachments } }
  }

  /** Brings a file along for messages of chats; answers with its id. */
  async #upload(): Promise<string | undefined> {
    const headers = { 'X-SVC-Request': 'fuzz', 'Content-Type': 'text/plain' }
    const path = `/v0/city/${CITY}/transcripts/attachments?filename=words.txt`
    try {
      const answer = await fetch(`${this.url}${path}`, { method: 'POST', headers, body: fresh('words ') })
      const file: unknown = await answer.json()
      return isFields(file) && typeof file['id'] === 'string' ? file['id'] : undefined
    } catch {
      return undefined
    }
  }

  #list(path: string): Promise<readonly Fields[] | undefined> {
    return this.#items(`/v0/city/${CITY}${path}`)
  }

  async #items(path: string): Promise<readonly Fields[] | undefined> {
    const answer = await tryCall(this.url, 'GET', path)
    const items = answer?.status === 200 ? answer.body['items'] : undefined
    return Array.isArray(items) ? items.filter(isFields) : undefined
  }

  #send(method: string, path: string, body?: object): Promise<Answered | undefined> {
    return tryCall(this.url, method, `/v0/city/${CITY}${path}`, body === undefined ? {} : { body })
  }

  #read(path: string): string | undefined {
    const file = join(this.#dir, path)
    return existsSync(file) ? readFileSync(file, 'utf8') : undefined
  }

  #write(path: string, text: string, mode = 0o644): void {
    mkdirSync(dirname(join(this.#dir, path)), { recursive: true })
    writeFileSync(join(this.#dir, path), text, { mode })
  }

  /** Files of formulas and orders. */
  #documents(): readonly string[] {
    return ['formulas', 'orders'].flatMap((folder) => {
      const directory = join(this.#dir, folder)
      return existsSync(directory) ? readdirSync(directory).map((name) => `${folder}/${name}`) : []
    })
  }

  #agentDirectories(): readonly string[] {
    const directory = join(this.#dir, 'agents')
    return existsSync(directory) ? readdirSync(directory) : []
  }
}

const isFields = (value: unknown): value is Fields => typeof value === 'object' && value !== null

function aliasOf(session: object): unknown {
  return 'alias' in session ? session.alias : undefined
}

/** A parent with children, edges of two kinds, labels, metadata and something closed. */
const WORK = {
  nodes: [
    { key: 'root', title: 'Epic', issue_type: 'epic', labels: ['ui'], metadata: { team: 'red' } },
    { key: 'a', title: 'First', parent_key: 'root', assignee: 'worker', labels: ['ui', 'a/b'] },
    { key: 'b', title: 'Second', parent_key: 'root', priority: 0 },
    { key: 'c', title: 'Third', description: 'Nothing in its way', from: 'front' },
    { key: 'd', title: 'In the rig', rig: RIG },
    { key: 'e', title: 'Passing', ephemeral: true },
  ],
  edges: [
    { from_key: 'b', to_key: 'a' },
    { from_key: 'b', to_key: 'c', type: 'related' },
  ],
}

/** Right bodies, where generated ones would hardly ever name what exists. */
export const BODIES: { readonly [operationId: string]: readonly object[] } = {
  'adopt-city': [{ path: CITY }],
  'stop-city': [{}],
  'create-session': [...SESSIONS.map((one) => ({ ...one, alias: undefined })), { kind: 'agent', name: 'worker' }],
  'respond-session': [{ action: 'approve' }, { action: 'deny' }, { action: 'cancel' }],
  'patch-session': [
    { options: { permission_mode: 'ask' } },
    { options: { permission_mode: 'never' } },
    { pinned: true },
  ],
  'type-into-session': [
    { viewer: 'fuzz', seq: 1, text: 'a' },
    { viewer: 'fuzz', seq: 2, data: 'YQ==' },
  ],
  'resize-session-terminal': [
    { viewer: 'fuzz', cols: 120, rows: 40 },
    { cols: 80, rows: 24 },
  ],
  'send-session-keys': [{ keys: ['Down', 'Enter'] }, { keys: ['C-u'], expect_screen: 'nowhere' }],
  'report-session': [
    { activity: 'in-turn' },
    { activity: 'idle', pending: { kind: 'question', prompt: 'Which?', options: ['one', 'two'] } },
    { usage: { input: 10, output: 2, cost_usd: '0.01' } },
    { rate_limit: null, pending: null },
  ],
  'ask-session-permission': [{ tool: 'Bash', input: { command: 'ls' }, timeout: '10ms' }],
  'create-bead': [{ title: 'Made' }],
  'create-bead-batch': [WORK],
  'heartbeat-bead': [{ assignee: HOLDER }],
  'release-bead': [{ assignee: HOLDER }],
  'add-pack': [{ source: 'packs/other' }],
  'create-agent': [{ name: 'made' }, { name: 'made', dir: RIG, max_active_sessions: 1 }],
  'replace-agent': [{ description: 'Replaced.' }],
  'replace-agent-qualified': [{ description: 'Replaced.' }],
  'create-rig': [{ name: 'made', path: 'made' }],
  'create-provider': [{ name: 'made', base: 'builtin:shell', command: 'cat' }],
  'put-config-file': [{ text: FILES['city.toml'] ?? '' }],
  'put-agent-patch': [{ name: 'worker', nudge: 'hurry' }],
  'replace-agent-patch': [{ nudge: 'hurry' }],
  'replace-agent-patch-qualified': [{ nudge: 'hurry' }],
  'put-rig-patch': [{ name: RIG, default_branch: 'trunk' }],
  'replace-rig-patch': [{ default_branch: 'trunk' }],
  'put-provider-patch': [{ name: 'modal', display_name: 'Modal' }],
  'replace-provider-patch': [{ display_name: 'Modal' }],
  ...AUTOMATION_BODIES,
  ...MESSAGING_BODIES,
}

const idsOf = (items: readonly Fields[]): readonly string[] => items.map(({ id }) => String(id))
const each = (name: string, values: readonly string[]): readonly PathValues[] =>
  values.map((value) => ({ [name]: value }))

const claimed = (beads: readonly Fields[]): readonly string[] =>
  idsOf(beads.filter(({ status }) => status === 'in_progress'))

/** What `{id}` of a session may be: ids, aliases and names. */
function sessionNames({ sessions }: Held): readonly string[] {
  const aliases = sessions.flatMap(({ alias, state }) =>
    alias === undefined || state === 'closed' ? [] : [`${alias}`],
  )
  return [...idsOf(sessions), ...aliases, ...aliases, 'front']
}

/** Mostly this session, where it is there. */
function ofThese(held: Held, alias: string): readonly string[] {
  const all = sessionNames(held)
  return all.includes(alias) ? [alias, alias, alias, ...all.slice(0, 2)] : all
}

const edgesOf = ({ beads }: Held): readonly PathValues[] =>
  beads.flatMap(({ id, dependencies }) =>
    (Array.isArray(dependencies) ? dependencies : []).map((edge: Fields) => ({
      id: String(id),
      dependsOnId: String(edge['depends_on_id']),
    })),
  )
const labelsOf = ({ beads }: Held): readonly PathValues[] =>
  beads.flatMap(({ id, labels }) =>
    [...(Array.isArray(labels) ? labels : []), 'ui'].map((label) => ({ id: String(id), label: String(label) })),
  )
const plainAgents = ({ agents }: Held): readonly string[] => agents.filter((name) => !name.includes('/'))
const qualifiedAgents = ({ agents }: Held): readonly PathValues[] =>
  agents.flatMap((name) => {
    const [dir, base] = name.split('/')
    return dir === undefined || base === undefined ? [] : [{ dir, base }]
  })

type Place = readonly [string, (held: Held, requestId: string) => readonly PathValues[]]
/** The first whose text the path contains says what its parameters may be. */
const PLACES: readonly Place[] = [
  ...MESSAGING_PLACES.map(
    ([path, place]) => [path, ({ messaging }: Held) => place(messaging)] as const satisfies Place,
  ),
  ['/beads/graph/{rootID}', ({ beads }) => each('rootID', idsOf(beads))],
  ['/deps/{dependsOnId}', edgesOf],
  ['/labels/{label}', labelsOf],
  ['/beads/{id}/heartbeat', ({ beads }) => each('id', claimed(beads))],
  ['/beads/{id}/release', ({ beads }) => each('id', claimed(beads))],
  ['/beads/{id}', ({ beads }) => each('id', idsOf(beads))],
  ['/convoys/{id}', ({ convoys }) => each('id', convoys)],
  [
    '/deliveries/{deliveryId}',
    ({ deliveries }) => deliveries.map(({ id, session_id }) => ({ id: String(session_id), deliveryId: String(id) })),
  ],
  ['/agents/{agentId}', () => [{ id: 'f-harness', agentId: 'helper' }]],
  ['drain', (held) => each('id', ofThese(held, DRAINED))],
  ['/sessions/{id}/respond', (held) => each('id', ofThese(held, 'f-talker'))],
  ['/sessions/{id}', (held) => each('id', sessionNames(held))],
  ['/waits/{id}', ({ waits }) => each('id', idsOf(waits))],
  ...AUTOMATION_PLACES.map(
    ([path, place]) => [path, ({ automation }: Held) => place(automation)] as const satisfies Place,
  ),
  ['/patches/agents/{dir}/{base}', qualifiedAgents],
  ['/patches/agents/{base}', (held) => each('base', plainAgents(held))],
  ['/patches/rigs/{name}', ({ rigs }) => each('name', rigs)],
  ['/patches/providers/{name}', () => each('name', ['modal', 'modal', 'reader'])],
  ['/agents/{dir}/{base}', qualifiedAgents],
  ['/agents/{agent}', (held) => each('agent', plainAgents(held))],
  ['/rigs/{name}/{action}', ({ rigs }) => rigs.flatMap((name) => ACTIONS.map((action) => ({ name, action })))],
  ['/rigs/{name}', ({ rigs }) => each('name', rigs)],
  ['/providers/{name}', ({ providers }) => each('name', providers)],
  ['/tokens/{id}', ({ tokens }) => each('id', tokens)],
  ['/packs/{name}', ({ packs }) => each('name', packs)],
  ['/files/{path}', () => each('path', Object.keys(FILES))],
  ['/requests/{request_id}', (_, requestId) => each('request_id', [requestId])],
  ['/docs/{asset}', () => each('asset', ['start.js', 'swagger-ui.css'])],
]
const ACTIONS = ['suspend', 'resume', 'restart']

const beadIds = ({ beads }: Held) => idsOf(beads)
const sessionIds = ({ sessions }: Held) => idsOf(sessions)
/** As often as others together. */
const LISTENERS: readonly string[] = Array(8).fill('f-talker')
const PEOPLE = [HOLDER, 'front', 'human']
const FIELDS: { readonly [field: string]: (held: Held) => readonly string[] } = {
  parent: beadIds,
  parent_id: beadIds,
  needs: beadIds,
  depends_on_id: beadIds,
  from_id: beadIds,
  to_id: beadIds,
  items: beadIds,
  dep_ids: beadIds,
  root_bead_id: beadIds,
  session_id: (held) => [...sessionIds(held), ...LISTENERS],
  session: sessionNames,
  session_name: sessionNames,
  template: ({ agents, providers }) => [...agents, ...providers],
  agent: ({ agents }) => [...agents, 'human'],
  assignee: ({ sessions }) => [...PEOPLE, ...sessions.map(({ agent }) => String(agent))],
  assignees: () => PEOPLE,
  expected_assignee: () => PEOPLE,
  target: ({ agents }) => agents,
  routed_to: ({ agents }) => agents,
  pool: ({ agents }) => agents,
  rig: ({ rigs }) => rigs,
  provider: ({ providers }) => providers,
  label: () => ['ui', 'a/b'],
  ...Object.fromEntries(
    Object.entries(AUTOMATION_FIELDS).map(([field, values]) => [field, (held: Held) => values(held.automation)]),
  ),
  ...Object.fromEntries(
    Object.entries(MESSAGING_FIELDS).map(([field, values]) => [field, (held: Held) => values(held.messaging)]),
  ),
  request_id: ({ sessions }) => sessions.flatMap(({ pending }) => (pending === undefined ? [] : [String(pending)])),
}
