/**
 * A city with a hostile agent in it and a peaceful one beside it. All the time the supervisor must answer `/health` within
 * a second; at the end of a test the peaceful agent must still do its work and must not have heard of the other one, and
 * nothing may be left of who was closed.
 */
import assert from 'node:assert/strict'
import { existsSync, mkdirSync, mkdtempSync, readFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { CityProcesses, endProcessesOf } from './city-processes.ts'
import { HealthWatch } from './health.ts'
import { Api, eventually } from './http.ts'
import { newSessionCity, type SessionApi, sessionPath } from './session-api.ts'
import { openStream, type SseReader } from './sse.ts'
import { type RunningSupervisor, startSupervisor } from './supervisor.ts'
import { removeTree } from './temporary.ts'

const CITY = 'alpha'
const HEALTH_MS = 1_000
/** What a hostile agent prints, so that it is recognised where it does not belong. */
export const MARK = 'hostile-4711'

export class HostileCity implements AsyncDisposable {
  readonly root = mkdtempSync(join(tmpdir(), 'svc-test-'))
  readonly processes: CityProcesses
  readonly #runtimeDir = join(this.root, 'run')
  #server: RunningSupervisor | undefined
  #api: Api | undefined
  #city: SessionApi | undefined
  #watch: HealthWatch | undefined
  #peaceful = ''
  #works = 0

  private constructor() {
    mkdirSync(this.#runtimeDir, { mode: 0o700 })
    this.processes = new CityProcesses(join(this.root, CITY))
  }

  /** `more`: tables for `city.toml`. */
  static async open(more = ''): Promise<HostileCity> {
    const made = new HostileCity()
    try {
      await made.#start(more)
      return made
    } catch (error) {
      await made[Symbol.asyncDispose]()
      throw error
    }
  }

  async #start(more: string): Promise<void> {
    const env = { XDG_RUNTIME_DIR: this.#runtimeDir }
    const server = await startSupervisor({ home: join(this.root, 'home'), env })
    this.#server = server
    const api = new Api(server.url)
    this.#api = api
    const running = { server, api, work: this.root, async [Symbol.asyncDispose]() {} }
    this.#city = await newSessionCity(running, CITY, more)
    this.#peaceful = await this.city.start()
    await this.#peacefulWorks()
    this.#watch = new HealthWatch(server.url)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#watch?.[Symbol.asyncDispose]()
    this.#api?.close()
    await this.#server?.kill('SIGKILL')
    endProcessesOf(this.root)
    removeTree(this.root)
  }

  get city(): SessionApi {
    return this.#city ?? assert.fail('it was not started')
  }

  /** A file of the test's own. */
  file = (name: string): string => join(this.root, name)

  /** Waits until a file has this many lines; answers with them. */
  lines(name: string, count: number): Promise<readonly string[]> {
    return eventually(`${count} lines in ${name}`, () => {
      const path = this.file(name)
      const lines = existsSync(path) ? readFileSync(path, 'utf8').split('\n').slice(0, -1) : []
      return lines.length >= count ? lines : undefined
    })
  }

  stream(id: string, format = 'conversation'): Promise<SseReader> {
    assert.ok(this.#api)
    return openStream(this.#api, `${this.city.base}${sessionPath(id)}/stream?format=${format}`)
  }

  /** The hostile one still takes commands: a shell. */
  async obeys(id: string): Promise<void> {
    const name = `obeys-${id}`
    await this.city.message(id, `echo yes >> ${this.file(name)}`)
    await this.lines(name, 1)
  }

  /** After the attack: everybody else is well, and closing the attackers leaves nothing of them. */
  async isUnharmed(...hostile: readonly string[]): Promise<void> {
    await this.#peacefulWorks()
    for (const id of hostile) await this.city.close(id)
    await eventually('nothing is left of the hostile agents', () =>
      [...this.processes.agents(), ...this.processes.attendants()].every(
        ({ session_id }) => session_id === this.#peaceful,
      )
        ? true
        : undefined,
    ).catch((error: unknown) => assert.fail(`${String(error)}: ${JSON.stringify(this.processes.agents())}`))
    await this.#peacefulWorks()
    const heard = await this.city.text(this.#peaceful)
    assert.ok(!heard.includes(MARK), `it was heard in another session: ${heard}`)
    await this.#watch?.answers(HEALTH_MS)
  }

  async #peacefulWorks(): Promise<void> {
    const count = ++this.#works
    await this.city.message(this.#peaceful, `echo work >> ${this.file('peaceful')}`)
    assert.equal((await this.lines('peaceful', count)).length, count)
  }
}
