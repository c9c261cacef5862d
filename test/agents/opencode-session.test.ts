/** opencode behind our whole API: a real harness, a real supervisor, HTTP and streams; only its model is a script. */
import assert from 'node:assert/strict'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { suite, test } from 'node:test'
import type { TranscriptBlock } from '../../src/contract/sessions/session-transcript.ts'
import { listPending } from '../../src/contract/sessions/sessions.ts'
import { endProcessesOf } from '../support/city-processes.ts'
import { Api, eventually } from '../support/http.ts'
import { type ModelServer, startModelServer } from '../support/model-server.ts'
import { OPENCODE, opencodeEnvironment, writer } from '../support/opencode.ts'
import { outcome } from '../support/running.ts'
import { newSessionCity, SessionApi, sessionPath } from '../support/session-api.ts'
import { openStream, type SseReader } from '../support/sse.ts'
import { type RunningSupervisor, startSupervisor } from '../support/supervisor.ts'

const skip = OPENCODE === undefined && 'run by `npm run test:agents`'
const CITY = 'alpha'
const TURN_MS = 60_000

suite('a session of opencode', { skip, timeout: 300_000 }, () => {
  test('it asks over our API before it writes, writes when it may, and its transcript tells all', async () => {
    await using stage = await Stage.open()
    const id = await stage.session()
    await using stream = await stage.stream(id)
    await stage.city.message(id, 'please write hello.txt')
    const requestId = await stage.asks(id)
    await stream.until(
      () => stream.frames.some(({ event, data }) => event === 'pending' && data.includes(requestId)),
      TURN_MS,
    )
    assert.equal(existsSync(stage.file), false)

    await stage.respond(id, { action: 'approve', request_id: requestId })
    await stage.answers(id)
    assert.equal(readFileSync(stage.file, 'utf8').trim(), 'hello from the model')
    await stream.until(() => stream.frames.some(({ event }) => event === 'pending_cleared'))
    assert.deepEqual(await stage.pending(), [])

    const blocks = await stage.blocks(id)
    const call = blocks.find((block) => block.type === 'tool_use')
    assert.ok(call?.type === 'tool_use', JSON.stringify(blocks))
    assert.ok(blocks.some((block) => block.type === 'tool_result' && block.tool_call_id === call.id && !block.is_error))
    assert.ok(blocks.some((block) => block.type === 'interaction' && block.state === 'resolved'))
    assert.ok(blocks.some((block) => block.type === 'text' && block.text.includes('please write hello.txt')))
    assert.ok(blocks.some((block) => block.type === 'text' && block.text.includes('The tool said')))
  })

  test('unrestricted it does not ask, whatever its own files say', async () => {
    await using stage = await Stage.open()
    const id = await stage.session('unrestricted')
    await stage.city.message(id, 'please write hello.txt')
    await stage.city.said(id, 'The tool said')
    assert.equal(readFileSync(stage.file, 'utf8').trim(), 'hello from the model')
    const blocks = await stage.blocks(id)
    assert.ok(!blocks.some((block) => block.type === 'interaction'), JSON.stringify(blocks))
  })

  test('what is denied is not written, and the session goes on', async () => {
    await using stage = await Stage.open()
    const id = await stage.session()
    await stage.city.message(id, 'please write hello.txt')
    await stage.asks(id)
    await stage.respond(id, { action: 'deny' })
    await stage.idle(id)
    assert.equal(existsSync(stage.file), false)
    await stage.city.message(id, 'how are you?')
    await stage.city.said(id, 'Nothing to do.')
  })

  test('stop interrupts the turn and dismisses what was asked', async () => {
    await using stage = await Stage.open()
    const id = await stage.session()
    await stage.city.message(id, 'please write hello.txt')
    await stage.asks(id)
    const stopped = await stage.city.done('POST', `${sessionPath(id)}/stop`)
    assert.equal(stopped['interrupted'], true)
    await stage.idle(id)
    assert.deepEqual(await stage.pending(), [])
    assert.equal(existsSync(stage.file), false)
    assert.equal((await stage.city.get(id)).generation, 1)
    await stage.city.message(id, 'how are you?')
    await stage.city.said(id, 'Nothing to do.')
  })

  test('a question survives the kill of the supervisor, and its answer arrives', async () => {
    await using stage = await Stage.open()
    const id = await stage.session()
    await stage.city.message(id, 'please write hello.txt')
    const requestId = await stage.asks(id)
    const { pid } = await stage.city.get(id)
    await stage.killSupervisor()
    assert.equal(await stage.asks(id), requestId)
    const { generation, pid: same } = await stage.city.get(id)
    assert.deepEqual([generation, same], [1, pid])
    await stage.respond(id, { action: 'approve' })
    await stage.answers(id)
    assert.equal(readFileSync(stage.file, 'utf8').trim(), 'hello from the model')
  })
})

/** A supervisor, a city that knows opencode, and the model; all of it and every agent is gone with it. */
class Stage implements AsyncDisposable {
  readonly root = mkdtempSync(join(tmpdir(), 'svc-test-'))
  readonly file = join(this.root, CITY, 'hello.txt')
  readonly #runtimeDir = join(this.root, 'run')
  #server: RunningSupervisor | undefined
  #api: Api | undefined
  #model: ModelServer | undefined
  #city: SessionApi | undefined

  static async open(): Promise<Stage> {
    const made = new Stage()
    try {
      await made.#open()
      return made
    } catch (error) {
      await made[Symbol.asyncDispose]()
      throw error
    }
  }

  async #open(): Promise<void> {
    mkdirSync(this.#runtimeDir, { mode: 0o700 })
    const { server, api } = await this.#boot()
    this.#model = await startModelServer(writer(this.file))
    const running = { server, api, work: this.root, async [Symbol.asyncDispose]() {} }
    this.#city = await newSessionCity(running, CITY, this.#provider(this.#model.url))
  }

  async #boot() {
    const env = { XDG_RUNTIME_DIR: this.#runtimeDir }
    const server = await startSupervisor({ home: join(this.root, 'home'), env })
    const api = new Api(server.url)
    this.#server = server
    this.#api = api
    return { server, api }
  }

  /** The preset, but for where the program is, and where its model is. */
  #provider(modelUrl: string): string {
    const lines = Object.entries(opencodeEnvironment(this.root, modelUrl)).map(
      ([name, value]) => `${name} = ${JSON.stringify(value)}`,
    )
    return `[session.acp]
handshake_timeout = "60s"
[providers.opencode]
base = "builtin:opencode"
acp_command = ${JSON.stringify(OPENCODE)}
[providers.opencode.env]
${lines.join('\n')}
`
  }

  async killSupervisor(): Promise<void> {
    await this.#server?.kill('SIGKILL')
    this.#api?.close()
    const { api } = await this.#boot()
    this.#city = new SessionApi(api, CITY, this.city.dir)
    await eventually('the city is up', async () => {
      const { status } = await api.get(`/v0/city/${CITY}/sessions`)
      return status === 200 ? true : undefined
    })
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#api?.close()
    await this.#server?.kill('SIGKILL')
    endProcessesOf(this.root)
    await this.#model?.[Symbol.asyncDispose]()
    rmSync(this.root, { recursive: true, force: true })
  }

  get city(): SessionApi {
    return this.#city ?? assert.fail('it was not started')
  }

  get api(): Api {
    return this.#api ?? assert.fail('it was not started')
  }

  async session(mode = 'ask'): Promise<string> {
    const options = { permission_mode: mode }
    const { id, requestId } = await this.city.accept({ name: 'opencode', runtime: 'acp', options })
    const request = await eventually(
      'opencode has started',
      async () => {
        const found = await outcome(this.api, requestId).catch(() => undefined)
        return found
      },
      TURN_MS,
    )
    assert.equal(request.status, 'succeeded', JSON.stringify(request))
    return id
  }

  stream(id: string): Promise<SseReader> {
    return openStream(this.api, `${this.city.base}${sessionPath(id)}/stream?format=structured`)
  }

  async pending() {
    return (await this.api.ask(listPending, `${this.city.base}/pending`)).items
  }

  /** Waits until it asks to write the file; the id of its question. */
  async asks(id: string): Promise<string> {
    const item = await eventually(
      'it asks',
      async () => (await this.pending()).find(({ session_id }) => session_id === id),
      TURN_MS,
    )
    assert.equal(item.kind, 'approval')
    assert.match(item.prompt ?? '', /hello\.txt/)
    return item.request_id
  }

  respond(id: string, answer: object) {
    return this.city.done('POST', `${sessionPath(id)}/respond`, answer)
  }

  idle(id: string) {
    return eventually(
      'its turn is over',
      async () => ((await this.city.get(id)).activity === 'idle' ? true : undefined),
      TURN_MS,
    )
  }

  /** The model was told what came of its tool, and what it said is in the transcript. */
  async answers(id: string): Promise<void> {
    await eventually(
      'it answers',
      async () => ((await this.city.text(id)).includes('The tool said') ? true : undefined),
      TURN_MS,
    )
  }

  async blocks(id: string): Promise<readonly TranscriptBlock[]> {
    const { structured_messages: messages = [] } = await this.city.transcript(id, '&limit=1000', 'structured')
    return messages.flatMap(({ blocks }) => blocks)
  }
}
