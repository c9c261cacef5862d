/** Real harnesses, each set up so that it knows one model, a server of ours, and nothing of the person whose machine this is. */
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { ModelReply, ModelRequest, ModelServer } from '../model-server.ts'

export interface Place {
  /** Everything that it writes is below; `home` in it is its home. */
  readonly root: string
  /** Where it works. */
  readonly work: string
  readonly model: Pick<ModelServer, 'origin' | 'url'>
}

export interface RealHarness {
  /** Name of its preset. */
  readonly name: string
  readonly version: string
  /** Lays its files, and answers with its environment beside PATH. */
  readonly prepare: (place: Place) => Readonly<Record<string, string>>
  /** The choice of its preset's `permission_mode` in which it asks. */
  readonly mode: string
  /** Its conversations can be gone on with by a key that we learn. */
  readonly resumes: boolean
  /** Its log, or a report of it, says what a turn has used. */
  readonly counts: boolean
  /** A tool call that it asks about before it is done. */
  readonly asks: (file: string) => ModelReply
}

export const homeOf = ({ root }: Place) => join(root, 'home')

export function lay(path: string, content: string | object): string {
  mkdirSync(dirname(path), { recursive: true })
  writeFileSync(path, typeof content === 'string' ? content : JSON.stringify(content, null, 1))
  return path
}

/**
 * Whether a log or a database in its home has all of this. Harnesses write some time behind what they say and what their hooks tell
 * (Claude Code gathers lines for 100 ms): one that is killed before that has no conversation to go on with.
 */
export function hasKept({ root }: Pick<Place, 'root'>, ...texts: readonly string[]): boolean {
  const home = join(root, 'home')
  const files = readdirSync(home, { recursive: true, encoding: 'utf8' })
  return files
    .filter((path) => /\.(?:jsonl|db|db-wal)$/.test(path))
    .some((path) => {
      const kept = readFileSync(join(home, path), 'latin1')
      return texts.every((text) => kept.includes(text))
    })
}

/** What a tool answered last; undefined where the last word is a person's. */
export function toolAnswer(request: ModelRequest): string | undefined {
  const last = lastOf(request)
  return last?.role === 'tool' ? JSON.stringify(last.content) : undefined
}

/** Instructions of the harness may stand behind what was said. */
const lastOf = ({ messages }: ModelRequest) => messages.findLast(({ role }) => role === 'user' || role === 'tool')

/** What a person typed last: without what harnesses put around it; empty after a tool's answer. */
export function saidLast(request: ModelRequest): string {
  const last = lastOf(request)
  if (last === undefined || last.role === 'tool') return ''
  const parts: readonly unknown[] = Array.isArray(last.content) ? last.content : [{ text: last.content }]
  const texts = parts.map((part) => withoutElements(String(Object(part).text ?? '')).trim())
  return texts.findLast((text) => text !== '') ?? ''
}

/** Reminders, contexts and the like stand in elements. */
const withoutElements = (text: string): string => text.replaceAll(/<([a-z][\w-]*)[^>]*>[\s\S]*?<\/\1>/gi, '')
