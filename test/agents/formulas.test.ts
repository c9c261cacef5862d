/**
 * A coding agent that works by itself: the built-in worker on opencode, over ACP, with the prompt and the messages that every
 * worker gets. Its model is a script that does what it is told there, and knows nothing else.
 */
import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { suite, test } from 'node:test'
import { endProcessesOf } from '../support/city-processes.ts'
import { asMap, at } from '../support/document.ts'
import { toolAnswer } from '../support/harnesses/setup.ts'
import { eventually } from '../support/http.ts'
import { type ModelReply, type ModelRequest, startModelServer } from '../support/model-server.ts'
import { OPENCODE, opencodeEnvironment } from '../support/opencode.ts'
import { run } from '../support/running.ts'
import { newSessionCity, type SessionApi } from '../support/session-api.ts'

const skip = OPENCODE === undefined && 'run by `npm run test:agents`'
const PATIENCE_MS = 120_000

interface Work {
  readonly id: string
  readonly title: string
  readonly description: string
}

const shell = (command: string): ModelReply => ({ call: 'bash', arguments: { command, description: 'as it was told' } })

/** Takes what is on its hook, does it, and begins again until nothing is left. */
const worker =
  (does: (work: Work) => string) =>
  (request: ModelRequest): ModelReply => {
    if (request.tools.length === 0) return { say: 'A title' }
    const answer = toolAnswer(request)
    if (answer === undefined) return shell('svcctl bead hook --claim -o json')
    const taken = takenIn(request)
    if (taken === 'drain') return { say: 'Nothing is left for me.' }
    return shell(taken === undefined ? 'svcctl bead hook --claim -o json' : does(taken))
  }

/** What the hook has answered, where that is the last thing it was told. */
function takenIn(request: ModelRequest): Work | 'drain' | undefined {
  const last = request.messages.findLast(({ role }) => role === 'tool')?.content
  const text = typeof last === 'string' ? last : JSON.stringify(last)
  const json = /\{[\s\S]*\}/.exec(text)?.[0]
  if (json === undefined || !json.includes('"action"')) return undefined
  const answer: unknown = JSON.parse(json)
  if (at(answer, 'action') !== 'work') return 'drain'
  const { id, title, description = '' } = asMap(at(answer, 'bead'))
  return { id: String(id), title: String(title), description: String(description) }
}

/** A city whose built-in worker is opencode, and one of it is always there. */
async function withWorker(model: (request: ModelRequest) => ModelReply, tries: (stage: Stage) => Promise<void>) {
  const root = mkdtempSync(join(tmpdir(), 'svc-test-'))
  try {
    await using server = await startModelServer(model)
    await using running = await run({ env: { HOME: root } })
    const env = Object.entries(opencodeEnvironment(root, server.url)).map(
      ([name, value]) => `${name} = ${JSON.stringify(value)}`,
    )
    const city = await newSessionCity(
      running,
      'alpha',
      `[session.acp]
handshake_timeout = "60s"
[providers.opencode]
base = "builtin:opencode"
acp_command = ${JSON.stringify(OPENCODE)}
option_defaults = { permission_mode = "unrestricted" }
[providers.opencode.env]
${env.join('\n')}
[[patches.agent]]
name = "core.worker"
provider = "opencode"
session = "acp"
min_active_sessions = 1
max_active_sessions = 1
`,
    )
    await tries({ city, requests: server.requests })
  } finally {
    endProcessesOf(root)
    rmSync(root, { recursive: true, force: true })
  }
}

interface Stage {
  readonly city: SessionApi
  readonly requests: readonly ModelRequest[]
}

async function route(city: SessionApi, title: string, description: string): Promise<string> {
  const { id } = await city.done('POST', '/beads', { title, description })
  await city.done('POST', `/beads/${String(id)}/route`, { target: 'core.worker' })
  return String(id)
}

const closed = (city: SessionApi, id: string) =>
  eventually(
    `${id} is closed`,
    async () => {
      const bead = await city.done('GET', `/beads/${id}`)
      return bead.status === 'closed' ? bead : undefined
    },
    PATIENCE_MS,
  )

suite('a coding agent that works by itself', { skip, timeout: 400_000 }, () => {
  test('it takes what is routed to it, and what comes while it rests', async () => {
    const does = ({ id, title }: Work) =>
      `echo "${title}" >> done.txt; svcctl bead close ${id} --reason "it is in done.txt"`
    await withWorker(worker(does), async ({ city, requests }) => {
      await closed(city, await route(city, 'first', 'Write it down.'))
      const told = requests.map(({ messages }) => JSON.stringify(messages)).join('\n')
      for (const said of ['svcctl bead hook --claim', '--outcome fail', '--result', 'why the last one failed'])
        assert.ok(told.includes(said), `its model is told ${said}`)
      await eventually(
        'it rests',
        async () => {
          const { items } = await city.done('GET', '/sessions?template=core.worker&state=active')
          return Array.isArray(items) && items.some((one) => at(one, 'activity') === 'idle') ? true : undefined
        },
        PATIENCE_MS,
      )
      const second = await closed(city, await route(city, 'second', 'Write that down, too.'))
      assert.equal(second.close_reason, 'it is in done.txt')
      assert.equal(readFileSync(join(city.dir, 'done.txt'), 'utf8'), 'first\nsecond\n')
    })
  })

  test('a task that it did wrong comes back with what its command said, and is done right', async () => {
    const does = ({ id, description }: Work) => {
      const word = /This is attempt 2\..*hello is missing/.test(description) ? 'hello' : 'helo'
      return `echo ${word} > hello.txt; svcctl bead close ${id} --reason "it is in hello.txt"`
    }
    await withWorker(worker(does), async ({ city, requests }) => {
      const vars = { verify: 'grep -qx hello hello.txt || { echo "hello is missing"; exit 1; }' }
      const body = { target: 'core.worker', text: 'Say hello in hello.txt', formula: 'verified-task', vars }
      const { molecule, bead } = await city.done('POST', '/sling', body)
      const done = await eventually(
        'the molecule has ended',
        async () => {
          const found = await city.done('GET', `/molecules/${String(molecule)}`)
          return found.closed_at === undefined ? undefined : found
        },
        PATIENCE_MS,
      )
      assert.equal(done.status, 'completed', JSON.stringify(done))
      assert.equal(readFileSync(join(city.dir, 'hello.txt'), 'utf8'), 'hello\n')
      const step = await city.done('GET', `/molecules/${String(molecule)}/steps/do`)
      assert.equal(step.attempt, 2)
      assert.equal((await city.done('GET', `/beads/${String(bead)}`)).outcome, 'pass')
      const told = requests.map(({ messages }) => JSON.stringify(messages)).join('\n')
      assert.ok(told.includes('Say hello in hello.txt') && told.includes('hello is missing'), 'its model is told both')
    })
  })
})
