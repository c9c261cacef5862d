/** Logs that harnesses write by themselves, found by the conversation that they are of (sheet 04 §5). */
import { open, readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import type { ByteLog } from './entries.ts'
import { type Json, listOf, objectOf, parseLine, textOf } from './json.ts'

/** A file that grows, as bytes by offset; empty where it is not there. */
export function fileLog(path: string): ByteLog {
  return {
    startOffset: () => Promise.resolve(0),
    endOffset: async () => (await stat(path).catch(() => undefined))?.size ?? 0,
    async read(offset, maxBytes) {
      const file = await open(path, 'r').catch(() => undefined)
      if (file === undefined) return { offset, bytes: Buffer.alloc(0) }
      try {
        const { size } = await file.stat()
        const bytes = Buffer.alloc(Math.max(0, Math.min(maxBytes, size - offset)))
        const { bytesRead } = await file.read(bytes, 0, bytes.length, offset)
        return { offset, bytes: bytes.subarray(0, bytesRead) }
      } finally {
        await file.close()
      }
    },
  }
}

export interface HarnessQuery {
  readonly family: string
  /** Home of the user that the harness runs as. */
  readonly home: string
  readonly env: Readonly<Record<string, string | undefined>>
  readonly workDir: string
  readonly conversationId: string | undefined
  /** When the conversation began, where it must be found by that. */
  readonly since: number | undefined
}

const ID = /^[A-Za-z0-9-]{8,64}$/
/** Clocks of files and ours agree to about this. */
const SLACK_MS = 5_000
const DAY_MS = 86_400_000
const HEAD_BYTES = 64 * 1024

/** The path of the log; undefined where there is none yet, or where it cannot be told which it is. */
export async function findHarnessLog(query: HarnessQuery): Promise<string | undefined> {
  if (query.family === 'claude') return findClaudeLog(query)
  if (query.family === 'codex') return findCodexLog(query)
  return undefined
}

const claudeProjects = ({ env, home, workDir }: HarnessQuery): string =>
  join(env['CLAUDE_CONFIG_DIR'] ?? join(home, '.claude'), 'projects', workDir.replaceAll(/[^A-Za-z0-9]/g, '-'))

async function findClaudeLog(query: HarnessQuery): Promise<string | undefined> {
  const { conversationId } = query
  // Without its id nobody can tell whose log it is: several sessions may share a directory.
  if (conversationId === undefined || !ID.test(conversationId)) return undefined
  const path = join(claudeProjects(query), `${conversationId}.jsonl`)
  return (await stat(path).catch(() => undefined))?.isFile() === true ? path : undefined
}

async function findCodexLog(query: HarnessQuery): Promise<string | undefined> {
  const { conversationId, since, home, env } = query
  const root = join(env['CODEX_HOME'] ?? join(home, '.codex'), 'sessions')
  const begun = since ?? 0
  const days = conversationId !== undefined && since === undefined ? await allDays(root) : daysFrom(root, begun)
  const found: string[] = []
  for (const day of days) {
    for (const name of await names(day)) {
      if (!/^rollout-.*\.jsonl$/.test(name)) continue
      const path = join(day, name)
      if (conversationId !== undefined ? name.includes(conversationId) : await isOfRun(path, query, begun))
        found.push(path)
    }
  }
  // Two runs that began together in one directory cannot be told apart.
  return found.length === 1 || conversationId !== undefined ? found.at(-1) : undefined
}

async function isOfRun(path: string, { workDir }: HarnessQuery, since: number): Promise<boolean> {
  const facts = await stat(path).catch(() => undefined)
  if (facts === undefined || facts.mtimeMs < since - SLACK_MS) return false
  const { bytes } = await fileLog(path).read(0, HEAD_BYTES)
  const end = bytes.indexOf(10)
  const meta = end < 0 ? undefined : parseLine(bytes.toString('utf8', 0, end))
  const payload = objectOf(meta?.['payload'])
  const at = Date.parse(textOf(payload['timestamp']) ?? textOf(meta?.['timestamp']) ?? '')
  return textOf(payload['cwd']) === workDir && at >= since - SLACK_MS
}

/** Directories of the days from a day before to a day after: its clock may be local. */
function daysFrom(root: string, since: number): string[] {
  return [-1, 0, 1].map((days) => {
    const day = new Date(since + days * DAY_MS).toISOString()
    return join(root, day.slice(0, 4), day.slice(5, 7), day.slice(8, 10))
  })
}

async function allDays(root: string): Promise<string[]> {
  const days: string[] = []
  for (const year of await names(root))
    for (const month of await names(join(root, year)))
      for (const day of await names(join(root, year, month))) days.push(join(root, year, month, day))
  return days
}

async function names(directory: string): Promise<string[]> {
  return (await readdir(directory).catch(() => [])).sort()
}

export interface SubAgentLog {
  readonly agent_id: string
  readonly parent_tool_use_id: string
  readonly path: string
}

/** Logs of sub-agents beside that of a session of Claude Code. */
export async function findSubAgents(query: HarnessQuery): Promise<readonly SubAgentLog[]> {
  const { conversationId } = query
  if (query.family !== 'claude' || conversationId === undefined || !ID.test(conversationId)) return []
  const projects = claudeProjects(query)
  const found: SubAgentLog[] = []
  for (const directory of [join(projects, conversationId, 'subagents'), projects]) {
    for (const name of await names(directory)) {
      const id = /^agent-([A-Za-z0-9_.:-]{1,200})\.jsonl$/.exec(name)?.[1]
      if (id === undefined) continue
      const path = join(directory, name)
      const { bytes } = await fileLog(path).read(0, HEAD_BYTES)
      const first = parseLine(bytes.toString('utf8').split('\n', 1)[0] ?? '')
      if (first === undefined || textOf(first['sessionId']) !== conversationId) continue
      found.push({ agent_id: id, parent_tool_use_id: textOf(first['parentToolUseId']) ?? '', path })
    }
  }
  return found
}

const MAX_SUB_AGENT_BYTES = 8 * 1024 * 1024

/** The last lines of a sub-agent's log, as it wrote them, and whether it has ended. */
export async function readSubAgent(path: string): Promise<{ messages: Json[]; ended: boolean }> {
  const log = fileLog(path)
  const end = await log.endOffset()
  const from = Math.max(0, end - MAX_SUB_AGENT_BYTES)
  const { bytes } = await log.read(from, end - from)
  const lines = bytes.toString('utf8').split('\n')
  if (from > 0) lines.shift()
  const messages = lines.map(parseLine).filter((message) => message !== undefined)
  const last = objectOf(messages.at(-1)?.['message'])
  const calls = listOf(last['content']).some((block) => block['type'] === 'tool_use')
  return { messages, ended: last['role'] === 'assistant' && !calls }
}
