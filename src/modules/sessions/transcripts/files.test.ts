// Logs that harnesses write by themselves: found by their conversation, wherever the harness was told to put them.
import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { findHarnessLog, type HarnessQuery } from './files.ts'

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
