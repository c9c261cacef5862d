/**
 * A city of agents who write down what they are told, somebody who tells them, and somebody who kills them (issue 6).
 *
 * Every message has a number; an agent appends it to the file of its session when it gets it. So a file says what was
 * lost, what came twice and what came out of order, and no answer of ours has to be believed.
 */
import assert from 'node:assert/strict'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import BetterSqlite3 from 'better-sqlite3'
import type { RuntimeName } from '../../src/contract/sessions/session-model.ts'
import { ACP_PROVIDER } from './acp-run.ts'
import { CityProcesses, endProcessesOf } from './city-processes.ts'
import { type Answered, call, eventually, type Fields, listAll, tryCall } from './crash-client.ts'
import { type RunningSupervisor, startSupervisor } from './supervisor.ts'
import { removeTree } from './temporary.ts'

const CITY = 'base'
const ANSWER_MS = 120_000
const REST_MS = 180_000
const RESTING: ReadonlySet<unknown> = new Set(['active', 'asleep', 'suspended', 'quarantined', 'failed-create'])
/** Held until somebody wakes them; a message that was accepted before does not. */
const HELD: ReadonlySet<unknown> = new Set(['quarantined', 'failed-create'])

const CONFIGURATION = `
[workspace]
provider = "bash"
[session]
provider = "subprocess"
[daemon]
patrol_interval = "1s"
shutdown_timeout = "500ms"
max_restarts = 0
max_wakes_per_tick = 4
[providers.bash]
base = "builtin:shell"
command = "bash"
args = ["--norc", "--noprofile"]
[providers.talker]
${ACP_PROVIDER}
`

/** One session, and what was accepted of it. */
export interface Talk {
  readonly runtime: RuntimeName
  readonly id: string
  /** What its agent got, a number a line. */
  readonly file: string
  readonly said: Said[]
  /** When it was interrupted: what a shell has not read then, it never reads. */
  readonly interrupts: { readonly from: number; to: number }[]
}

/** Nobody at a terminal waits for longer. */
const PERSON_MS = 5_000
/** An interrupt throws away what was typed this long before it, or right behind it. */
const UNREAD_BEFORE_MS = 3_000
const UNREAD_AFTER_MS = 1_000

interface Said {
  readonly n: number
  readonly request: string
  readonly delivery: string
}

interface Typed {
  readonly state: string
  readonly error_code: string | null
  readonly generation: number | null
  readonly finished_at: number | null
}

export class ChaosCity implements AsyncDisposable {
  readonly root = mkdtempSync(join(tmpdir(), 'svc-test-'))
  readonly path = join(this.root, CITY)
  readonly processes: CityProcesses
  readonly talks: Talk[] = []
  readonly #creations: string[] = []
  readonly #asking = new Set<Promise<Fields>>()
  readonly #runtimeDir = join(this.root, 'run')
  readonly #said = join(this.root, 'said')
  #server: RunningSupervisor | undefined

  constructor() {
    mkdirSync(this.#runtimeDir, { mode: 0o700 })
    mkdirSync(this.#said)
    this.processes = new CityProcesses(this.path)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#server?.kill('SIGKILL')
    endProcessesOf(this.root)
    removeTree(this.root)
  }

  // --- The supervisor ----------------------------------------------------------------------------------------------

  async start(): Promise<this> {
    await this.#boot()
    await this.#endsWell(await this.#ask('POST', '/v0/city', { dir: this.path, name: CITY }))
    writeFileSync(join(this.path, 'city.toml'), CONFIGURATION)
    await this.#endsWell(await this.#ask('POST', `/v0/city/${CITY}/config/reload`))
    return this
  }

  /** `kill -9`, and the next one at once. */
  async killSupervisor(): Promise<void> {
    await this.#server?.kill('SIGKILL')
    await this.#boot()
  }

  /** Ends it as it should. */
  async stopSupervisor(): Promise<void> {
    const code = await this.#server?.kill('SIGTERM')
    assert.equal(code, 0, `the supervisor ended with ${code}: ${this.#server?.stderr()}`)
  }

  get supervisorPid(): number {
    return this.#server?.pid ?? 0
  }

  async #boot(): Promise<void> {
    const env = { XDG_RUNTIME_DIR: this.#runtimeDir }
    this.#server = await startSupervisor({ home: join(this.root, 'home'), env })
  }

  get #url(): string {
    return this.#server?.url ?? ''
  }

  async #ask(method: string, path: string, body?: object): Promise<Fields> {
    const answer = await call(this.#url, method, path, body === undefined ? {} : { body })
    assert.ok(answer.status < 300, `${method} ${path}: ${JSON.stringify(answer)}`)
    return answer.body
  }

  async #endsWell({ request_id: id }: Fields): Promise<void> {
    const request = await eventually(`the end of ${String(id)}`, async () => {
      const found = await this.#ask('GET', `/v0/requests/${String(id)}`)
      return found['finished_at'] === undefined ? undefined : found
    })
    assert.equal(request['status'], 'succeeded', JSON.stringify(request))
  }

  // --- The load ----------------------------------------------------------------------------------------------------

  /** Accepted; it starts as it can. */
  async create(runtime: RuntimeName, name: string): Promise<Talk> {
    const provider = runtime === 'acp' ? 'talker' : 'bash'
    const body = { kind: 'provider', name: provider, runtime, alias: name }
    const accepted = await this.#accepted('/sessions', body, `create-${name}`)
    const talk = { runtime, id: String(accepted['session_id']), file: join(this.#said, name), said: [], interrupts: [] }
    this.#creations.push(String(accepted['request_id']))
    this.talks.push(talk)
    return talk
  }

  /** Says the next number, once, whatever happens to the supervisor meanwhile: the key makes a repeated request the same. */
  async say(talk: Talk): Promise<void> {
    const n = talk.said.length + 1
    const message = talk.runtime === 'acp' ? `note ${talk.file} ${n}` : `echo ${n} >> ${talk.file}`
    const accepted = await this.#accepted(`/sessions/${talk.id}/messages`, { message }, `${talk.id}-${n}`)
    talk.said.push({ n, request: String(accepted['request_id']), delivery: String(accepted['delivery_id']) })
  }

  /** A person at its terminal types a line, and types it again where no answer came. */
  typeAsPerson({ id, file }: Talk, n: number): Promise<void> {
    return this.#type(id, n, `echo ${n} >> ${file}.person\r`)
  }

  /** A person begins a line and goes. Somebody else may enter it. */
  leaveHalfLine({ id }: Talk, n: number): Promise<void> {
    return this.#type(id, n, `: half ${n} `)
  }

  /**
   * While everything is killed, a busy machine may bring no terminal up for long enough that a person gets a line in. Those
   * that run afterwards take one, behind whatever was left in theirs.
   */
  async runningTerminalsTakeALine(n: number): Promise<void> {
    const running = new Set((await this.sessions()).filter(({ state }) => state === 'active').map(({ id }) => id))
    for (const { id, file } of this.talks.filter((talk) => talk.runtime !== 'acp' && running.has(talk.id))) {
      await this.#type(id, n, `\u0015echo ${n} >> ${file}.person\r`)
      const lines = () => (existsSync(`${file}.person`) ? readFileSync(`${file}.person`, 'utf8').split('\n') : [])
      await eventually(`the terminal of ${id} takes a line`, () => (lines().includes(String(n)) ? true : undefined))
    }
  }

  async #type(id: string, n: number, text: string): Promise<void> {
    const body = { viewer: `person-${n}`, seq: 1, text }
    const path = `/v0/city/${CITY}/sessions/${id}/terminal/input`
    for (let attempt = 0; attempt < 20; attempt++) {
      const signal = AbortSignal.timeout(PERSON_MS)
      const answer = await tryCall(this.#url, 'POST', path, { body, signal })
      // It starts, or was not taken over yet.
      if (answer !== undefined && !mayPass(answer) && answer.status !== 409) return
      await pause(100)
    }
  }

  /** What can be asked of any session, and may be refused. */
  async ask(talk: Talk, verb: 'stop' | 'suspend' | 'keys'): Promise<Answered | undefined> {
    const interrupt = { from: Date.now(), to: Number.POSITIVE_INFINITY }
    if (verb !== 'keys') talk.interrupts.push(interrupt)
    const body = verb === 'keys' ? { keys: ['Enter'] } : {}
    const signal = AbortSignal.timeout(PERSON_MS)
    const answer = await tryCall(this.#url, 'POST', `/v0/city/${CITY}/sessions/${talk.id}/${verb}`, { body, signal })
    interrupt.to = Date.now()
    return answer
  }

  /** Watches a terminal for a while, as an attached person does. */
  async watch({ id }: Talk, ms: number): Promise<void> {
    const signal = AbortSignal.timeout(ms)
    await fetch(`${this.#url}/v0/city/${CITY}/sessions/${id}/terminal`, { signal })
      .then((response) => response.arrayBuffer())
      .catch(() => {})
  }

  /** No line that a person typed was entered twice. */
  peopleTypedOnce(): number {
    let lines = 0
    for (const { file } of this.talks) {
      if (!existsSync(`${file}.person`)) continue
      const typed = readFileSync(`${file}.person`, 'utf8').trim().split('\n')
      assert.equal(new Set(typed).size, typed.length, `something was typed twice: ${typed.join(' ')}`)
      lines += typed.length
    }
    return lines
  }

  /** When what is being asked for now has been accepted. */
  async accepts(): Promise<void> {
    await Promise.allSettled(this.#asking)
  }

  async #accepted(path: string, body: object, key: string): Promise<Fields> {
    const asking = this.#untilAccepted(path, body, key)
    this.#asking.add(asking)
    return asking.finally(() => this.#asking.delete(asking))
  }

  #untilAccepted(path: string, body: object, key: string): Promise<Fields> {
    return eventually(
      `${path} is accepted`,
      async () => {
        const answer = await tryCall(this.#url, 'POST', `/v0/city/${CITY}${path}`, { body, key })
        if (answer?.status === 202) return answer.body
        // Between two supervisors, or before the city is up, or the first try is still under way.
        if (answer === undefined || mayPass(answer)) return undefined
        return assert.fail(`${path}: ${JSON.stringify(answer)}`)
      },
      ANSWER_MS,
    )
  }

  // --- Looking -----------------------------------------------------------------------------------------------------

  sessions(): Promise<readonly Fields[]> {
    return listAll(this.#url, `/v0/city/${CITY}/sessions`)
  }

  /** What its agent got, in order. */
  got({ file }: Talk): readonly number[] {
    if (!existsSync(file)) return []
    return readFileSync(file, 'utf8').split('\n').slice(0, -1).map(Number)
  }

  /** Where the current run of a session keeps its files. */
  async runDirectory({ id }: Talk): Promise<string> {
    const { generation } = await this.#ask('GET', `/v0/city/${CITY}/sessions/${id}`)
    return join(this.path, '.svc', 'runtime', 'sessions', id, String(generation))
  }

  // --- Afterwards --------------------------------------------------------------------------------------------------

  /** Nobody kills any more: every session comes to rest, every message to its end. */
  async comesToRest(): Promise<void> {
    let open: readonly Fields[] = []
    await eventually(
      'every session rests and every queue is empty',
      async () => {
        const answer = await tryCall(this.#url, 'GET', `/v0/city/${CITY}/sessions?limit=1000`)
        if (answer?.status !== 200 || !Array.isArray(answer.body['items'])) return undefined
        open = answer.body['items'].filter((one: Fields) => !RESTING.has(one['state']) || one['queued'] !== 0)
        for (const { id, state } of open)
          if (HELD.has(state)) await this.#ask('POST', `/v0/city/${CITY}/sessions/${String(id)}/wake`)
        if (open.length === 0) return true
        await pause(200)
        return undefined
      },
      REST_MS,
    ).catch((error: unknown) => assert.fail(`${String(error)}: ${JSON.stringify(open, undefined, 1)}`))
  }

  /** Every process belongs to one session, in its present run; what runs has one agent, and whoever must serve it. */
  async everyProcessBelongs(): Promise<void> {
    let wrong: readonly string[] = []
    await eventually('every process belongs to one session', async () => {
      wrong = this.#strays(await this.sessions())
      return wrong.length === 0 ? true : undefined
    }).catch((error: unknown) => assert.fail(`${String(error)}:\n${wrong.join('\n')}`))
  }

  #strays(sessions: readonly Fields[]): readonly string[] {
    const present = new Map(sessions.map((one) => [String(one['id']), one]))
    const belongs = (one: { readonly session_id: string; readonly generation: number }) => {
      const session = present.get(one.session_id)
      return session?.['state'] === 'active' && session['generation'] === one.generation
    }
    const roots = this.processes.roots()
    const attendants = this.processes.attendants()
    const orphans = [...this.processes.agents(), ...attendants].filter((one) => !belongs(one))
    const wrong = orphans.map((one) => `nobody's: ${JSON.stringify(one)}`)
    for (const [id, { state, pid }] of present) {
      const own = roots.filter(({ session_id }) => session_id === id)
      const hosts = attendants.filter(({ session_id, entry }) => session_id === id && entry === 'host')
      const wanted = state === 'active' ? 1 : 0
      if (own.length !== wanted || (wanted === 1 && own[0]?.pid !== pid))
        wrong.push(`${id} is ${String(state)} with pid ${String(pid)}, and has ${JSON.stringify(own)}`)
      if (hosts.length !== wanted) wrong.push(`${id} has hosts ${JSON.stringify(hosts)}`)
    }
    return wrong
  }

  /**
   * Ends the supervisor to look, and starts the next one. No number twice, all in order; what was not typed did not
   * come, and of what was typed into a run only the last may be missing: its agent was killed before it had read it.
   * Answers with how the messages ended.
   */
  async everyMessageIsAccountedFor() {
    await this.stopSupervisor()
    const { deliveries, living } = this.#records()
    const ends: Record<string, number> = {}
    for (const talk of this.talks) {
      await this.#livingAgentHasRead(talk, living.get(talk.id), deliveries)
      const got = this.got(talk)
      const where = `${talk.runtime} ${talk.id} got ${got.join(' ')}`
      assert.deepEqual(
        got,
        got.toSorted((a, b) => a - b),
        `out of order: ${where}`,
      )
      assert.equal(new Set(got).size, got.length, `something came twice: ${where}`)
      const lastOf = new Map<number, number>()
      for (const { n, delivery } of talk.said) {
        const { state, generation } = deliveries.get(delivery) ?? assert.fail(`${delivery} is not known`)
        if (state === 'delivered' && generation !== null) lastOf.set(generation, n)
      }
      for (const { n, delivery } of talk.said) {
        const typed = deliveries.get(delivery) ?? assert.fail()
        const { state, error_code, generation } = typed
        const came = got.includes(n)
        const end = state === 'delivered' && !came ? 'delivered_unread' : (error_code ?? state)
        ends[end] = (ends[end] ?? 0) + 1
        const about = `${n} is ${state} ${error_code ?? ''} in run ${generation ?? ''}; ${where}`
        if (state === 'delivered')
          assert.ok(came || lastOf.get(generation ?? 0) === n || wasThrownAway(talk, typed), `lost: ${about}`)
        else assert.ok(state === 'failed' && error_code !== null, `neither delivered nor failed: ${about}`)
        if (came)
          assert.ok(state === 'delivered' || error_code === 'delivery_uncertain', `it came all the same: ${about}`)
      }
    }
    await this.#boot()
    await this.comesToRest() // The supervisor answers before its cities do.
    return ends
  }

  /** Whoever lives reads what it was told: also while no supervisor runs. */
  async #livingAgentHasRead(
    talk: Talk,
    run: number | undefined,
    deliveries: ReadonlyMap<string, Typed>,
  ): Promise<void> {
    for (const { n, delivery } of talk.said) {
      const typed = deliveries.get(delivery)
      if (typed?.state !== 'delivered' || typed.generation !== run || wasThrownAway(talk, typed)) continue
      await eventually(`${talk.runtime} ${talk.id}, which lives, gets ${n}`, () =>
        this.got(talk).includes(n) ? true : undefined,
      )
    }
  }

  /** From the file, which a running supervisor keeps for itself: no answer says which run a message went to. */
  #records() {
    using database = opened(join(this.path, '.svc', 'city.db'))
    const { file } = database
    const typed = file
      .prepare<[], Typed & { id: string }>(
        'SELECT id, state, error_code, generation, finished_at FROM session_deliveries',
      )
      .all()
    const active = file
      .prepare<[], { id: string; generation: number }>("SELECT id, generation FROM sessions WHERE state = 'active'")
      .all()
    return {
      deliveries: new Map(typed.map((row) => [row.id, row])),
      living: new Map(active.map(({ id, generation }) => [id, generation])),
    }
  }

  /** Everything that was accepted has exactly one end, and the log tells it. */
  async everyRequestEndsOnce(): Promise<number> {
    const accepted = [...this.#creations, ...this.talks.flatMap(({ said }) => said.map(({ request }) => request))]
    for (const id of accepted)
      await eventually(`the end of ${id}`, async () => {
        const { status } = await this.#ask('GET', `/v0/requests/${id}`)
        return status === 'succeeded' || status === 'failed' ? true : undefined
      })
    const events = await listAll(this.#url, `/v0/city/${CITY}/events?type=request.*`)
    const ends = new Map<string, number>()
    for (const { payload } of events) {
      const id = String(Object(payload)['request_id'])
      ends.set(id, (ends.get(id) ?? 0) + 1)
    }
    for (const id of accepted) assert.equal(ends.get(id), 1, `${id} has ${ends.get(id) ?? 0} terminal events`)
    return accepted.length
  }

  /** Closing them all leaves no process. */
  async closesWithoutTrace(): Promise<void> {
    await this.comesToRest()
    for (const { id } of this.talks) await this.#ask('POST', `/v0/city/${CITY}/sessions/${id}/close`)
    await this.processes.none('no process is left after the close')
  }
}

const wasThrownAway = ({ interrupts }: Talk, { finished_at: at }: Typed): boolean =>
  at !== null && interrupts.some(({ from, to }) => at > from - UNREAD_BEFORE_MS && at < to + UNREAD_AFTER_MS)

const mayPass = ({ status, body }: Answered): boolean =>
  status === 404 || status === 429 || status >= 500 || String(body['code']).startsWith('idempotency')

function opened(path: string): Disposable & { readonly file: BetterSqlite3.Database } {
  const file = new BetterSqlite3(path, { readonly: true })
  return { file, [Symbol.dispose]: () => file.close() }
}
