/** A real harness on a terminal of ours behind the whole API: a supervisor, a city, a person's home and a scripted model. */
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { endProcessesOf } from '../city-processes.ts'
import { Api, eventually } from '../http.ts'
import { type ModelReply, type ModelRequest, type ModelServer, startModelServer } from '../model-server.ts'
import { newSessionCity, SessionApi, sessionPath } from '../session-api.ts'
import { type RunningSupervisor, startSupervisor } from '../supervisor.ts'
import { hasKept, homeOf, lay, type RealHarness, saidLast, toolAnswer } from './setup.ts'

const CITY = 'alpha'
/** Of the person, and nothing to any harness. */
const NOTES = 'notes.txt'
/** Some of them take half a minute to begin on a busy machine. */
const PATIENCE_MS = 60_000

export class Stage implements AsyncDisposable {
  readonly root = mkdtempSync(join(tmpdir(), 'svc-test-'))
  readonly file = join(this.root, CITY, 'hello.txt')
  /** What its model answers to most of what is said. */
  readonly plain = 'Nothing to do.'
  /** Its model thinks until this is called. */
  readonly thought: () => void
  readonly #thinking: Promise<void>
  readonly #harness: RealHarness
  readonly #program: string
  #server: RunningSupervisor | undefined
  #api: Api | undefined
  #model: ModelServer | undefined
  #city: SessionApi | undefined
  #person = new Map<string, string>()

  private constructor(harness: RealHarness, program: string) {
    this.#harness = harness
    this.#program = program
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#thinking = promise
    this.thought = resolve
  }

  static async open(harness: RealHarness, program: string): Promise<Stage> {
    const made = new Stage(harness, program)
    try {
      await made.#open()
      return made
    } catch (error) {
      await made[Symbol.asyncDispose]()
      throw error
    }
  }

  async #open(): Promise<void> {
    mkdirSync(join(this.root, 'run'), { mode: 0o700 })
    const model = await startModelServer((request) => this.#answer(request))
    this.#model = model
    const place = { root: this.root, work: join(this.root, CITY), model }
    const env = { HOME: homeOf(place), ...this.#harness.prepare(place) }
    lay(join(env.HOME, NOTES), 'mine\n')
    this.#person = this.#homeNow()
    const { server, api } = await this.#boot()
    const running = { server, api, work: this.root, async [Symbol.asyncDispose]() {} }
    this.#city = await newSessionCity(running, CITY, this.#provider(env))
  }

  /** A model that has its tool write when it is told to, and says what came of it. */
  async #answer(request: ModelRequest): Promise<ModelReply> {
    const answered = toolAnswer(request)
    if (answered !== undefined) return { say: 'The tool has answered.' }
    const said = saidLast(request)
    if (said.includes('think')) await this.#thinking
    if (said.includes('write it')) return this.#harness.asks(this.file)
    return { say: said.includes('remember') ? 'I do remember.' : this.plain }
  }

  async #boot() {
    const server = await startSupervisor({
      home: join(this.root, 'svc'),
      env: { XDG_RUNTIME_DIR: join(this.root, 'run') },
    })
    const api = new Api(server.url)
    this.#server = server
    this.#api = api
    return { server, api }
  }

  /** The preset, but for where the program is, and where its home and its model are. */
  #provider(env: Readonly<Record<string, string>>): string {
    const { name, mode } = this.#harness
    const lines = Object.entries(env).map(([key, value]) => `${key} = ${JSON.stringify(value)}`)
    return `[providers.${name}]
base = "builtin:${name}"
command = ${JSON.stringify(this.#program)}
option_defaults = { permission_mode = "${mode}" }
[providers.${name}.env]
${lines.join('\n')}
`
  }

  get city(): SessionApi {
    return this.#city ?? assert.fail('it was not started')
  }

  get requests(): readonly ModelRequest[] {
    return this.#model?.requests ?? []
  }

  async session(): Promise<string> {
    const { id } = await this.city.accept({ name: this.#harness.name })
    await this.idle(id)
    return id
  }

  async says(id: string, message: string): Promise<void> {
    await this.city.send('POST', `${sessionPath(id)}/messages`, { message })
  }

  /** Waits until it asks to use its tool; the id of its question. */
  async asks(id: string): Promise<string> {
    const item = await this.#until(id, 'asks for approval', async () => {
      const pending = await this.city.pending(id)
      return pending?.kind === 'approval' ? pending : undefined
    })
    return item.request_id
  }

  respond = (id: string, action: 'approve' | 'deny', requestId: string) =>
    this.city.done('POST', `${sessionPath(id)}/respond`, { action, request_id: requestId })

  idle(id: string): Promise<true> {
    return this.#until(id, 'is idle', async () => {
      const { state, activity, last_exit } = await this.city.get(id)
      if (state === 'failed-create') assert.fail(`it has ended: ${JSON.stringify(last_exit)}`)
      return state === 'active' && activity === 'idle' ? true : undefined
    })
  }

  busy = (id: string): Promise<true> =>
    this.#until(id, 'is at work', async () => (await this.city.get(id)).activity === 'in-turn' || undefined)

  /** What the file says once something is in it: a shell makes it before it writes. */
  writes = (id: string): Promise<string> =>
    this.#until(id, 'has written', async () => (existsSync(this.file) && readFileSync(this.file, 'utf8')) || undefined)

  /** The model has been told all of this at once, by whomever: harnesses ask it more than what was said. */
  told = (id: string, ...texts: readonly string[]): Promise<true> =>
    this.#until(id, `told the model ${texts.join(', ')}`, async () =>
      this.requests.some(({ messages }) => texts.every((text) => JSON.stringify(messages).includes(text)))
        ? true
        : undefined,
    )

  /** What it would go on with has all of this. */
  kept = (id: string, ...texts: readonly string[]): Promise<true> =>
    this.#until(id, `has kept ${texts.join(', ')}`, async () => (hasKept(this, ...texts) ? true : undefined))

  /** By what it would go on with is known: its hook, or whoever reads its log, may tell that behind the end of its turn. */
  named = (id: string): Promise<true> =>
    this.#until(id, 'has named its conversation', async () => {
      const { history } = await this.city.transcript(id, '', 'structured')
      return history?.provider_session_id === undefined ? undefined : true
    })

  /** Its tokens have been counted. */
  used = (id: string): Promise<true> =>
    this.#until(id, 'has its usage counted', async () => {
      const { usage } = await this.city.get(id)
      return usage !== undefined && usage.input > 0 && usage.output > 0 ? true : undefined
    })

  async #until<T>(id: string, what: string, look: () => Promise<T | undefined>): Promise<T> {
    try {
      return await eventually(`${id} ${what}`, look, PATIENCE_MS)
    } catch (error) {
      const screen = await this.city.send('GET', `${sessionPath(id)}/screen`).catch(() => undefined)
      const session = await this.city.send('GET', sessionPath(id))
      assert.fail(`${String(error)}\n${session.text}\n${screen?.text ?? ''}`)
    }
  }

  /** `kill -9` of the supervisor, the hosts and every agent; then the supervisor is started again. */
  async killEverything(): Promise<void> {
    await this.#server?.kill('SIGKILL')
    endProcessesOf(this.root)
    this.#api?.close()
    const { api } = await this.#boot()
    this.#city = new SessionApi(api, CITY, this.city.dir)
    await eventually('the city is up', async () => {
      const { status } = await api.get(`/v0/city/${CITY}/sessions`)
      return status === 200 ? true : undefined
    })
  }

  /**
   * What has become of the person's home: files that are gone or that no harness writes, and settings, new or old, that
   * speak of us. A harness writes its own state there, and logs of what it ran, our hooks too.
   */
  tracesInHome(): readonly string[] {
    const now = this.#homeNow()
    const ours = ['svcctl', 'SVC_', join(this.city.dir, '.svc')]
    const gone = [...this.#person.keys()].filter((path) => !now.has(path))
    const written = [...now].filter(([path, hash]) => this.#person.get(path) !== hash).map(([path]) => path)
    const traces = written.filter((path) => {
      if (path === NOTES) return true
      if (!/\.(?:json|toml|ya?ml)$/.test(path)) return false
      const content = readFileSync(join(this.root, 'home', path), 'utf8')
      return ours.some((words) => content.includes(words))
    })
    return [...gone, ...traces]
  }

  #homeNow(): Map<string, string> {
    const home = join(this.root, 'home')
    const files = readdirSync(home, { recursive: true, encoding: 'utf8' }).filter((path) =>
      statSync(join(home, path), { throwIfNoEntry: false })?.isFile(),
    )
    return new Map(
      files.map((path) => [
        path,
        createHash('sha256')
          .update(readFileSync(join(home, path)))
          .digest('hex'),
      ]),
    )
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#api?.close()
    await this.#server?.kill('SIGKILL')
    endProcessesOf(this.root)
    this.thought()
    await this.#model?.[Symbol.asyncDispose]()
    rmSync(this.root, { recursive: true, force: true, maxRetries: 5 })
  }
}
