/** Logs that harnesses write by themselves, found by the conversation that they are of (sheet 04 §5). */
import { lstat, readdir, realpath } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { cut } from '../../../contract/base/text.ts'
import { openOwnFile } from '../../../files/read.ts'
import type { ByteLog } from './entries.ts'
import { type Json, listOf, objectOf, parseLine, textOf } from './json.ts'

/**
 * A file that grows, as bytes by offset; empty where it is not there. A link in its place is not followed: an agent that may
 * write beside it could lead to any file of its user.
 */
export function fileLog(path: string): ByteLog {
  return {
    startOffset: () => Promise.resolve(0),
    endOffset: async () => (await lstat(path).catch(() => undefined))?.size ?? 0,
    async read(offset, maxBytes) {
      const file = await openOwnFile(path).catch(() => undefined)
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

/** Which file it is: another one after it was replaced. Undefined: there is none. */
export async function fileIdentity(path: string): Promise<string | undefined> {
  const facts = await lstat(path).catch(() => undefined)
  return facts?.isFile() === true ? `${path} ${facts.dev}:${facts.ino}` : undefined
}

export interface HarnessQuery {
  readonly family: string
  /** Home of the user that the harness runs as. */
  readonly home: string
  /** The environment that it was started with, as far as that says where its logs are. */
  readonly env: Readonly<Record<string, string | undefined>>
  /** A harness names it by its real path. */
  readonly workDir: string
  readonly conversationId: string | undefined
  /** Where its hooks say that its log is. */
  readonly logPath: string | undefined
  /** Paths below a directory that its process holds open. */
  readonly held: (root: string) => readonly string[]
  readonly others: Others
  /** When the conversation began, where it must be found by that. */
  readonly since: number | undefined
}

const ID = /^[A-Za-z0-9-]{8,64}$/
/** Clocks of files and ours agree to about this. */
const SLACK_MS = 5_000
const DAY_MS = 86_400_000
/** The first line of a log may hold all the instructions that its harness was given. */
const HEAD_BYTES = 1024 * 1024
/** The first line of a sub-agent's log says whose it is: most need one read of this much. */
const FIRST_LINE_BYTES = 16 * 1024

/** Other sessions of the harness in the same directory: a log may be theirs. */
export interface Others {
  /** Some run, and it is not known by which log. */
  readonly untold: boolean
  readonly conversations: ReadonlySet<string>
}

export interface HarnessLog {
  readonly path: string
  /** The key that the conversation is resumed by. */
  readonly conversationId: string
}

/** The log; undefined where there is none yet, or where it cannot be told which it is. */
export async function findHarnessLog(query: HarnessQuery): Promise<HarnessLog | undefined> {
  const { conversationId, logPath } = query
  // By the name of the conversation alone: what a session says of itself must not lead to any file.
  const isToldOf = logPath !== undefined && conversationId !== undefined && ID.test(conversationId)
  if (isToldOf && basename(logPath).endsWith(`${conversationId}.jsonl`) && (await fileIdentity(logPath)) !== undefined)
    return { path: logPath, conversationId }
  if (query.family === 'claude') return findClaudeLog(query)
  if (query.family === 'codex') return findCodexLog(query)
  if (query.family === 'qwen') return findQwenLog(query)
  if (query.family === 'gemini') return findGeminiLog(query)
  return undefined
}

const realDirectory = (workDir: string): Promise<string> => realpath(workDir).catch(() => workDir)

async function claudeProjects({ env, home, workDir }: HarnessQuery): Promise<string> {
  return projectIn(env['CLAUDE_CONFIG_DIR'] || join(home, '.claude'), workDir)
}

const projectIn = async (root: string, workDir: string): Promise<string> =>
  join(root, 'projects', (await realDirectory(workDir)).replaceAll(/[^A-Za-z0-9]/g, '-'))

async function findClaudeLog(query: HarnessQuery): Promise<HarnessLog | undefined> {
  const { conversationId } = query
  // Without its id nobody can tell whose log it is: several sessions may share a directory.
  if (conversationId === undefined || !ID.test(conversationId)) return undefined
  const path = join(await claudeProjects(query), `${conversationId}.jsonl`)
  return (await fileIdentity(path)) === undefined ? undefined : { path, conversationId }
}

async function findQwenLog({ conversationId, env, home, workDir }: HarnessQuery): Promise<HarnessLog | undefined> {
  if (conversationId === undefined || !ID.test(conversationId)) return undefined
  const root = env['QWEN_RUNTIME_DIR'] || env['QWEN_HOME'] || join(home, '.qwen')
  const path = join(await projectIn(root, workDir), 'chats', `${conversationId}.jsonl`)
  return (await fileIdentity(path)) === undefined ? undefined : { path, conversationId }
}

/** It names directories of projects as it likes, and a chat by the beginning of its conversation: its first line has all. */
async function findGeminiLog({ conversationId, env, home }: HarnessQuery): Promise<HarnessLog | undefined> {
  if (conversationId === undefined || !ID.test(conversationId)) return undefined
  const root = join(env['GEMINI_CLI_HOME'] || home, '.gemini', 'tmp')
  const end = `-${cut(conversationId, 8)}.jsonl`
  for (const project of await names(root))
    for (const name of await names(join(root, project, 'chats'))) {
      const path = join(root, project, 'chats', name)
      const isMeant = name.startsWith('session-') && name.endsWith(end)
      if (isMeant && textOf(parseLine(await firstLine(path))?.['sessionId']) === conversationId)
        return { path, conversationId }
    }
  return undefined
}

async function findCodexLog(query: HarnessQuery): Promise<HarnessLog | undefined> {
  const { conversationId, since = 0, home, env } = query
  const root = join(env['CODEX_HOME'] || join(home, '.codex'), 'sessions')
  if (conversationId !== undefined) {
    const isNamed = (path: string) => path.includes(conversationId)
    // A conversation that is resumed goes on in the file of the day on which it began.
    const path =
      (await rollouts(daysFrom(root, since))).findLast(isNamed) ??
      (await rollouts(await allDays(root))).findLast(isNamed)
    return path === undefined ? undefined : { path, conversationId }
  }
  // Whose log it is, is known of the one that the process writes: sub-agents have logs of their own, which say so.
  const held = query.held(await realDirectory(root)).filter((path) => /\/rollout-[^/]*\.jsonl$/.test(path))
  const [own] = held
  if (own !== undefined && held.length === 1) {
    const id = await conversationIn(own, await realDirectory(query.workDir), since)
    if (id !== undefined) return { path: own, conversationId: id }
  }
  if (query.others.untold) return undefined
  const workDir = await realDirectory(query.workDir)
  const found: HarnessLog[] = []
  for (const path of await rollouts(daysFrom(root, since))) {
    const id = await conversationIn(path, workDir, since)
    if (id !== undefined && !query.others.conversations.has(id)) found.push({ path, conversationId: id })
  }
  // Two runs that began together in one directory cannot be told apart.
  return found.length === 1 ? found[0] : undefined
}

async function rollouts(days: readonly string[]): Promise<string[]> {
  const found: string[] = []
  for (const day of days)
    for (const name of await names(day)) if (/^rollout-.*\.jsonl$/.test(name)) found.push(join(day, name))
  return found
}

/** The conversation of a log that was begun in that directory since then. */
async function conversationIn(path: string, workDir: string, since: number): Promise<string | undefined> {
  const facts = await lstat(path).catch(() => undefined)
  if (facts === undefined || facts.mtimeMs < since - SLACK_MS) return undefined
  const { bytes } = await fileLog(path).read(0, HEAD_BYTES)
  const end = bytes.indexOf(10)
  const meta = end < 0 ? undefined : parseLine(bytes.toString('utf8', 0, end))
  const payload = objectOf(meta?.['payload'])
  const at = Date.parse(textOf(payload['timestamp']) ?? textOf(meta?.['timestamp']) ?? '')
  const id = textOf(payload['id'])
  const isOurs = textOf(payload['cwd']) === workDir && at >= since - SLACK_MS
  return isOurs && id !== undefined && ID.test(id) ? id : undefined
}

/** Directories of the days from a day before to a day after: its clock may be local. */
function daysFrom(root: string, since: number): string[] {
  return [-1, 0, 1].map((days) => {
    const day = new Date(since + days * DAY_MS).toISOString()
    return join(root, cut(day, 4), day.slice(5, 7), day.slice(8, 10))
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

/** Logs of sub-agents in the directory of their conversation, where the harness keeps them there. */
export async function subAgentPaths(query: HarnessQuery): Promise<readonly string[]> {
  const { conversationId } = query
  if (query.family !== 'claude' || conversationId === undefined || !ID.test(conversationId)) return []
  const directory = join(await claudeProjects(query), conversationId, 'subagents')
  return (await names(directory)).filter((name) => /^agent-.*\.jsonl$/.test(name)).map((name) => join(directory, name))
}

/** Logs of sub-agents beside that of a session of Claude Code. */
export async function findSubAgents(query: HarnessQuery): Promise<readonly SubAgentLog[]> {
  const { conversationId } = query
  if (query.family !== 'claude' || conversationId === undefined || !ID.test(conversationId)) return []
  const projects = await claudeProjects(query)
  const found: SubAgentLog[] = []
  for (const directory of [join(projects, conversationId, 'subagents'), projects]) {
    for (const name of await names(directory)) {
      const id = /^agent-([A-Za-z0-9_.:-]{1,200})\.jsonl$/.exec(name)?.[1]
      if (id === undefined) continue
      const path = join(directory, name)
      const first = parseLine(await firstLine(path))
      if (first === undefined || textOf(first['sessionId']) !== conversationId) continue
      found.push({ agent_id: id, parent_tool_use_id: textOf(first['parentToolUseId']) ?? '', path })
    }
  }
  return found
}

async function firstLine(path: string): Promise<string> {
  const log = fileLog(path)
  for (const size of [FIRST_LINE_BYTES, HEAD_BYTES]) {
    const { bytes } = await log.read(0, size)
    const end = bytes.indexOf('\n')
    if (end >= 0 || bytes.length < size) return bytes.toString('utf8', 0, end < 0 ? bytes.length : end)
  }
  return ''
}

const MAX_SUB_AGENT_BYTES = 8 * 1024 * 1024

/** The last lines of a sub-agent's log, as it wrote them, and whether it has ended. */
export async function readSubAgent(log: ByteLog): Promise<{ messages: Json[]; ended: boolean }> {
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
