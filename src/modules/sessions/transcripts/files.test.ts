// Logs that harnesses write by themselves: found by their conversation, wherever the harness was told to put them.
import assert from 'node:assert/strict'
import {
  closeSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { after, test } from 'node:test'
import { openFiles } from '../../../runtimes/process/open-files.ts'
import { accessHash } from '../record/access.ts'
import { fileLog, findHarnessLog, findSubAgents, type HarnessQuery } from './files.ts'
import { maskedLog } from './masked-log.ts'

const ROOT = realpathSync(mkdtempSync(join(tmpdir(), 'svc-harness-logs-')))
after(() => rmSync(ROOT, { recursive: true }))

const KEY = '0c9f1f0e-2f3a-4b5c-8d7e-112233445566'
const OTHER = '1d9f1f0e-2f3a-4b5c-8d7e-112233445566'
const NOON = Date.UTC(2026, 4, 1, 12)

let count = 0
/** A home with a work directory, also by another name. */
function place() {
  const home = join(ROOT, `home-${++count}`)
  const workDir = join(home, 'project.x')
  const alias = join(home, 'alias')
  mkdirSync(workDir, { recursive: true })
  symlinkSync(workDir, alias)
  const query = (more: Partial<HarnessQuery>): HarnessQuery => ({
    family: 'codex',
    home,
    env: {},
    workDir,
    conversationId: undefined,
    logPath: undefined,
    held: () => [],
    others: { untold: false, conversations: new Set() },
    since: NOON,
    ...more,
  })
  const claude = (root = join(home, '.claude')) => {
    const directory = join(root, 'projects', workDir.replaceAll(/[^A-Za-z0-9]/g, '-'))
    mkdirSync(directory, { recursive: true })
    writeFileSync(join(directory, `${KEY}.jsonl`), '')
    return join(directory, `${KEY}.jsonl`)
  }
  const codex = (day: string, id: string, at: number, cwd = workDir, instructions = '') => {
    const directory = join(home, '.codex', 'sessions', ...day.split('-'))
    mkdirSync(directory, { recursive: true })
    const path = join(directory, `rollout-${day}T12-00-00-${id}.jsonl`)
    const payload = { instructions, id, cwd, timestamp: new Date(at).toISOString() }
    writeFileSync(path, `${JSON.stringify({ type: 'session_meta', payload })}\n`)
    return path
  }
  return { home, alias, query, claude, codex }
}

test('claude: a work directory that is known by another name is found by its real one', async () => {
  const { alias, query, claude } = place()
  const path = claude()
  const found = await findHarnessLog(query({ family: 'claude', workDir: alias, conversationId: KEY }))
  assert.deepEqual(found, { path, conversationId: KEY })
})

test('claude: the directory that its environment names is looked into; an empty name is none', async () => {
  const { home, query, claude } = place()
  const asked = { family: 'claude', conversationId: KEY } as const
  const usual = claude()
  assert.equal((await findHarnessLog(query({ ...asked, env: { CLAUDE_CONFIG_DIR: '' } })))?.path, usual)
  const elsewhere = join(home, 'elsewhere')
  assert.equal(await findHarnessLog(query({ ...asked, env: { CLAUDE_CONFIG_DIR: elsewhere } })), undefined)
  const path = claude(elsewhere)
  assert.equal((await findHarnessLog(query({ ...asked, env: { CLAUDE_CONFIG_DIR: elsewhere } })))?.path, path)
})

test('claude: without its key nobody can tell whose log it is', async () => {
  const { query, claude } = place()
  claude()
  assert.equal(await findHarnessLog(query({ family: 'claude' })), undefined)
  assert.equal(await findHarnessLog(query({ family: 'claude', conversationId: '../../etc' })), undefined)
})

test('codex: the log of a run is the one that was begun in its directory since, and tells its key', async () => {
  const { alias, query, codex } = place()
  codex('2026-05-01', OTHER, NOON - 60_000)
  codex('2026-05-01', OTHER, NOON + 1_000, '/somewhere/else')
  assert.equal(await findHarnessLog(query({})), undefined)
  const path = codex('2026-05-01', KEY, NOON + 1_000)
  assert.deepEqual(await findHarnessLog(query({ workDir: alias })), { path, conversationId: KEY })
})

test('codex: a log that begins with long instructions is found', async () => {
  const { query, codex } = place()
  const path = codex('2026-05-01', KEY, NOON + 1_000, undefined, 'be good '.repeat(30_000))
  assert.equal((await findHarnessLog(query({})))?.path, path)
})

test('codex: where another one that has not told its key runs in the directory, it cannot be told whose log it is', async () => {
  const { query, codex } = place()
  codex('2026-05-01', KEY, NOON + 1_000)
  const others = { untold: true, conversations: new Set<string>() }
  assert.equal(await findHarnessLog(query({ others })), undefined)
  assert.equal((await findHarnessLog(query({ others, conversationId: KEY })))?.conversationId, KEY)
})

test('codex: a log that is known to be of another session is not this one’s', async () => {
  const { query, codex } = place()
  codex('2026-05-01', OTHER, NOON + 500)
  const path = codex('2026-05-01', KEY, NOON + 1_000)
  assert.equal(await findHarnessLog(query({})), undefined)
  const others = { untold: false, conversations: new Set([OTHER]) }
  assert.deepEqual(await findHarnessLog(query({ others })), { path, conversationId: KEY })
})

test('codex: a conversation that is resumed days later is found in the file that it began in', async () => {
  const { query, codex } = place()
  const path = codex('2026-03-01', KEY, NOON)
  assert.equal((await findHarnessLog(query({ conversationId: KEY })))?.path, path)
})

test('codex: of two that run in one directory each has the log that its process holds open', async () => {
  const { home, query, codex } = place()
  const path = codex('2026-05-01', KEY, NOON + 1_000)
  codex('2026-05-01', OTHER, NOON + 1_000)
  const others = { untold: true, conversations: new Set<string>() }
  assert.equal(await findHarnessLog(query({ others })), undefined)
  const file = openSync(path, 'r')
  try {
    const held = (root: string) => openFiles(process.pid, root)
    assert.deepEqual(held(realpathSync(home)), [realpathSync(path)])
    assert.equal((await findHarnessLog(query({ others, held })))?.conversationId, KEY)
  } finally {
    closeSync(file)
  }
})

test('a log is where the hooks of its harness say, if it bears the name of the conversation', async () => {
  const { home, query } = place()
  const path = join(home, `${KEY}.jsonl`)
  writeFileSync(path, '{}\n')
  const asked = { family: 'claude', conversationId: KEY, logPath: path } as const
  assert.equal((await findHarnessLog(query(asked)))?.path, path)
  assert.equal(await findHarnessLog(query({ ...asked, conversationId: OTHER })), undefined)
})

/** Bytes that this process has read so far, from anything. */
const bytesRead = (): number => Number(/^rchar: (\d+)$/m.exec(readFileSync('/proc/self/io', 'utf8'))?.[1])

test('who asks for sub-agents does not wait until all that they ever said was read', async () => {
  const { query, claude } = place()
  const directory = join(dirname(claude()), KEY, 'subagents')
  mkdirSync(directory, { recursive: true })
  const said = `${JSON.stringify({ said: 'x'.repeat(1000) })}\n`.repeat(600)
  const begins = (more: object) => `${JSON.stringify({ sessionId: KEY, ...more })}\n`
  for (let n = 0; n < 40; n++)
    writeFileSync(join(directory, `agent-${n}.jsonl`), begins({ parentToolUseId: `t${n}` }) + said)
  writeFileSync(
    join(directory, 'agent-long.jsonl'),
    begins({ text: 'y'.repeat(100_000), parentToolUseId: 'long' }) + said,
  )
  writeFileSync(join(directory, 'agent-other.jsonl'), `${JSON.stringify({ sessionId: OTHER })}\n${said}`)
  const before = bytesRead()
  const found = await findSubAgents(query({ family: 'claude', conversationId: KEY }))
  const read = bytesRead() - before
  assert.deepEqual(
    found.map(({ parent_tool_use_id: use }) => use).sort(),
    [...Array.from({ length: 40 }, (_, n) => `t${n}`), 'long'].sort(),
  )
  // All of the logs are 25 MB.
  assert.ok(read < 3_000_000, `${read} bytes were read`)
})

test('qwen: the chat of a conversation is found below the directory of its project, wherever its files are put', async () => {
  const { home, query, alias } = place()
  const asked = { family: 'qwen', conversationId: KEY, workDir: alias } as const
  const chat = (root: string) => {
    const directory = join(root, 'projects', join(home, 'project.x').replaceAll(/[^A-Za-z0-9]/g, '-'), 'chats')
    mkdirSync(directory, { recursive: true })
    writeFileSync(join(directory, `${KEY}.jsonl`), '')
    return join(directory, `${KEY}.jsonl`)
  }
  assert.equal(await findHarnessLog(query(asked)), undefined)
  const usual = chat(join(home, '.qwen'))
  assert.equal((await findHarnessLog(query(asked)))?.path, usual)
  const elsewhere = join(home, 'runs')
  const path = chat(elsewhere)
  assert.equal((await findHarnessLog(query({ ...asked, env: { QWEN_RUNTIME_DIR: elsewhere } })))?.path, path)
  assert.equal(await findHarnessLog(query({ ...asked, conversationId: undefined })), undefined)
})

test('gemini: a chat is told from another one whose name begins alike by its first line', async () => {
  const { home, query } = place()
  const asked = { family: 'gemini', conversationId: KEY } as const
  const chat = (project: string, id: string) => {
    const directory = join(home, '.gemini', 'tmp', project, 'chats')
    mkdirSync(directory, { recursive: true })
    const path = join(directory, `session-2026-11-22T21-28-${id.slice(0, 8)}.jsonl`)
    writeFileSync(path, `${JSON.stringify({ sessionId: id, kind: 'main' })}\n`)
    return path
  }
  chat('a-project', `${KEY.slice(0, 8)}${KEY.slice(8).replaceAll(/[0-9a-f]/g, '0')}`)
  assert.equal(await findHarnessLog(query(asked)), undefined)
  const path = chat('project-x', KEY)
  assert.deepEqual(await findHarnessLog(query(asked)), { path, conversationId: KEY })
})

test('a link with the name of a conversation leads to no other file, wherever a session says that it is', async () => {
  const { home, query, claude } = place()
  const secret = join(home, 'other.jsonl')
  writeFileSync(secret, '{"type":"user","message":{"content":"not yours"}}\n')
  const own = claude()
  rmSync(own)
  symlinkSync(secret, own)
  const told = join(home, `${KEY}.jsonl`)
  symlinkSync(secret, told)
  for (const logPath of [told, undefined])
    assert.equal(await findHarnessLog(query({ family: 'claude', conversationId: KEY, logPath })), undefined)
  assert.equal((await fileLog(told).read(0, 100)).bytes.length, 0, 'also one that was put there later')
})

test('tokens of a session are stars in the log of its harness, wherever reading begins, and other digests stay', async () => {
  const { home } = place()
  const [token, access, digest] = ['ab'.repeat(16), 'cd'.repeat(32), 'ef'.repeat(32)]
  const text = `SVC_INSTANCE_TOKEN=${token} SVC_TOKEN=${access} sha256 ${digest}\n`
  const shown = text.replace(token, '*'.repeat(32)).replace(access, '*'.repeat(64))
  writeFileSync(join(home, 'log.jsonl'), text)
  const log = maskedLog(fileLog(join(home, 'log.jsonl')), { token, access_hash: accessHash(access) })
  for (let at = 0; at < text.length; at++)
    for (const size of [1, 7, 500])
      assert.equal((await log.read(at, size)).bytes.toString(), shown.slice(at, at + size), `${size} from ${at}`)
})
