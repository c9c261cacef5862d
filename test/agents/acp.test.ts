/**
 * Harnesses of other people over the agent protocol, behind our runtime: their programs are real, their models are a script.
 * The adapters of claude and codex run the harnesses that the other tests run, not those that they would bring.
 */
import assert from 'node:assert/strict'
import { existsSync, mkdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { suite, test } from 'node:test'
import type { LaunchSpec } from '../../src/runtimes/process/runtime.ts'
import { type AcpSession, AcpStage, patience } from '../support/acp-run.ts'
import { hasKept } from '../support/harnesses/setup.ts'
import { type ModelReply, type ModelRequest, startModelServer } from '../support/model-server.ts'
import { opencodeEnvironment } from '../support/opencode.ts'

interface Agent {
  readonly name: string
  /** As it was when this was last run. */
  readonly version: string
  readonly program: string | undefined
  readonly args: readonly string[]
  readonly env: (root: string, url: string) => Readonly<Record<string, string>>
  readonly settings?: Readonly<Record<string, string>>
  readonly files?: false
  /** The call of its tool that writes `hello` into the file. */
  readonly writes: (file: string) => Extract<ModelReply, { readonly call: string }>
  /** False: what it keeps of a conversation has no turns in it, and it begins anew. */
  readonly resumes?: false
  /** Another mode than that which it begins in. */
  readonly mode: string
}

const origin = (url: string) => url.replace(/\/v1$/, '')
const AGENTS: readonly Agent[] = [
  {
    name: 'gemini',
    version: '0.61.0',
    program: process.env['SVC_TEST_GEMINI'],
    args: ['--acp', '--model', 'gemini-2.5-flash'],
    files: false,
    env: (_, url) => ({ GEMINI_API_KEY: 'none', GOOGLE_GEMINI_BASE_URL: origin(url) }),
    writes: (file) => ({ call: 'write_file', arguments: { file_path: file, content: 'hello\n' } }),
    // It takes one that asks less in a folder that it trusts alone.
    resumes: false,
    mode: 'plan',
  },
  {
    name: 'qwen',
    version: '0.24.4',
    program: process.env['SVC_TEST_QWEN'],
    args: ['--acp'],
    env: (_, url) => ({ OPENAI_API_KEY: 'none', OPENAI_BASE_URL: url, OPENAI_MODEL: 'scripted' }),
    settings: { mode: 'default' },
    writes: (file) => ({ call: 'write_file', arguments: { file_path: file, content: 'hello\n' } }),
    mode: 'auto-edit',
  },
  {
    name: 'opencode',
    version: '1.18.33',
    program: process.env['SVC_TEST_OPENCODE'],
    args: ['acp'],
    env: opencodeEnvironment,
    writes: (file) => ({ call: 'write', arguments: { filePath: file, content: 'hello\n' } }),
    mode: 'plan',
  },
  {
    name: 'claude-agent-acp',
    version: '0.101.0',
    program: process.env['SVC_TEST_CLAUDE'] && process.env['SVC_TEST_CLAUDE_ACP'],
    args: [],
    env: (_, url) => ({
      ANTHROPIC_API_KEY: 'none',
      ANTHROPIC_BASE_URL: origin(url),
      CLAUDE_CODE_EXECUTABLE: process.env['SVC_TEST_CLAUDE'] ?? '',
    }),
    settings: { mode: 'default' },
    writes: (file) => ({ call: 'Write', arguments: { file_path: file, content: 'hello\n' } }),
    mode: 'acceptEdits',
  },
  {
    name: 'codex-acp',
    version: '2.6.0',
    program: process.env['SVC_TEST_CODEX'] && process.env['SVC_TEST_CODEX_ACP'],
    args: [],
    env: (_, url) => ({
      OPENAI_API_KEY: 'none',
      CODEX_CONFIG: JSON.stringify(codexConfig(url)),
      CODEX_PATH: process.env['SVC_TEST_CODEX'] ?? '',
    }),
    settings: { mode: 'read-only' },
    writes: (file) => ({
      call: 'exec_command',
      arguments: {
        cmd: `echo hello > ${file}`,
        sandbox_permissions: 'require_escalated',
        justification: 'to say hello',
      },
    }),
    mode: 'agent-full-access',
  },
]

const codexConfig = (url: string) => ({
  model: 'scripted',
  model_provider: 'local',
  model_providers: { local: { name: 'local', base_url: url, wire_api: 'responses' } },
})

/** Writes once for each time that it is asked to; requests without tools are for titles and the like. */
function script(write: ModelReply): (request: ModelRequest) => ModelReply {
  let written = 0
  return ({ messages, tools }) => {
    if (tools.length === 0) return { say: '{"title": "A title"}' }
    const text = JSON.stringify(messages.map(({ content }) => content))
    const asked = text.includes('please write hello.txt, really') ? 2 : text.includes('please write hello.txt') ? 1 : 0
    if (asked <= written) return { say: 'Nothing to do.' }
    written = asked
    return write
  }
}

function launch(agent: Agent, stage: AcpStage, url: string, resumeSessionId?: string): LaunchSpec {
  const home = join(stage.root, 'home')
  mkdirSync(home, { recursive: true })
  return stage.spec({
    command: agent.program ?? '',
    args: agent.args,
    env: { HOME: home, PATH: `${dirname(process.execPath)}:/usr/bin:/bin`, ...agent.env(stage.root, url) },
    acp: {
      handshakeTimeoutMs: 90_000,
      ...(agent.files === false && { files: false }),
      ...(agent.settings && { settings: agent.settings }),
      ...(resumeSessionId !== undefined && { resumeSessionId }),
    },
  })
}

async function asked(session: AcpSession, action: 'approve' | 'deny') {
  const pending = await session.pending()
  assert.equal(await session.process.answer(pending.requestId, { action }, patience()), true)
  await session.idle()
  return pending
}

for (const agent of AGENTS) {
  const { program, name, version } = agent
  const skip = program === undefined && `${name} is not installed: npm run test:agents`
  suite(`${name} ${version} over the agent protocol`, { skip, timeout: 300_000 }, () => {
    test('a turn that is counted; a tool that asks, is denied, then approved', async () => {
      await using stage = new AcpStage()
      const file = join(stage.workDir, 'hello.txt')
      await using model = await startModelServer(script(agent.writes(file)))
      const session = await stage.start(launch(agent, stage, model.url))
      const end = await session.turn('how are you?')
      assert.equal(end.stop_reason, 'end_turn', JSON.stringify(end))
      assert.deepEqual([end.usage?.input_tokens, end.usage?.output_tokens], [11, 7])

      await session.deliver('please write hello.txt')
      const { tool } = await asked(session, 'deny')
      assert.ok(JSON.stringify(tool).includes(file), JSON.stringify(tool))
      assert.equal(existsSync(file), false)

      await session.deliver('please write hello.txt, really')
      await asked(session, 'approve')
      // A shell makes the file before it writes into it.
      const text = await session.until(
        'it is written',
        () => (existsSync(file) && readFileSync(file, 'utf8')) || undefined,
      )
      assert.equal(text.trim(), 'hello')
    })

    test('it is set to another mode while it runs, and its conversation outlives the kill of everything', async () => {
      await using stage = new AcpStage()
      await using model = await startModelServer(script(agent.writes(join(stage.workDir, 'hello.txt'))))
      const session = await stage.start(launch(agent, stage, model.url))
      await session.turn('the word is heliotrope')
      assert.deepEqual(await session.process.set('mode', agent.mode, patience()), { state: 'set' })
      const told = await session.until('its conversation', () =>
        session.events.find((event) => event.type === 'conversation'),
      )
      if (agent.resumes !== false)
        await session.until('it has kept what was said', () => hasKept(stage, 'heliotrope', 'Nothing to do.'))
      process.kill(session.process.pid ?? 0, 'SIGKILL')
      await session.exit()

      const again = await stage.start(launch(agent, stage, model.url, told.conversationId))
      const notes = (await again.records()).filter((record) => record.kind === 'note')
      if (agent.resumes === false) return assert.match(JSON.stringify(notes), /could not load/)
      assert.deepEqual(notes, [], 'it was loaded, not begun anew')
      await again.turn('which one was it?')
      const last = model.requests.findLast((request) => request.tools.length > 0)
      assert.match(JSON.stringify(last?.messages), /heliotrope/)
    })
  })
}
