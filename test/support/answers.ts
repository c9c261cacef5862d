/**
 * Writes down the answers that scenarios saw, so that those of two commits can be compared (`tools/compare-answers.ts`).
 * Off unless `SVC_RECORD_ANSWERS` names the file to write.
 */
import { AsyncLocalStorage } from 'node:async_hooks'
import { writeFileSync } from 'node:fs'
import type { Answer } from './http.ts'

/** By scenario: every different answer that it got, on its way to the one that it is about. */
const recorded = new Map<string, Set<string>>()
const current = new AsyncLocalStorage<Set<string>>()
const file = process.env['SVC_RECORD_ANSWERS']

/** Answers that `work` gets are kept under this name. */
export function recording<T>(scenario: string, work: () => Promise<T>): Promise<T> {
  if (file === undefined) return work()
  const answers = recorded.get(scenario) ?? new Set()
  recorded.set(scenario, answers)
  return current.run(answers, work)
}

export function record(method: string, { operation, status, headers, text }: Answer): void {
  const answers = current.getStore()
  if (answers === undefined) return
  const sent = Object.entries(headers)
    .filter(([name]) => !NOT_OURS.has(name))
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, value]) => `${name}: ${String(value)}`)
  const head = `${method} ${operation?.id ?? '(no operation)'} ${status}`
  answers.add(`${head}\n${normalised([...sent, text].join('\n'))}`)
}

export function writeRecorded(): void {
  if (file === undefined) return
  const sorted = [...recorded].sort(([a], [b]) => (a < b ? -1 : 1))
  writeFileSync(file, JSON.stringify(Object.fromEntries(sorted.map(([key, seen]) => [key, [...seen].sort()])), null, 1))
}

/** Of the connection or the moment, not of the answer. */
const NOT_OURS: ReadonlySet<string> = new Set(['date', 'connection', 'keep-alive', 'content-length', 'etag'])

/** What differs from run to run, in the order in which it is replaced. */
const CHANGING: readonly (readonly [RegExp, string])[] = [
  [/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z/g, '<time>'],
  [/\/(?:tmp|work|home|root)\/[^\s"'`,:;)]*/g, '<path>'],
  [/[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g, '<uuid>'],
  [/(?:v1:)?[A-Za-z0-9_-]{24,}/g, '<long>'],
  [/\b[0-9a-f]{8,}\b/g, '<hex>'],
  [/"([a-z_]*cursor)":"[^"]+"/g, '"$1":"<cursor>"'],
  [/127\.0\.0\.1:\d+/g, '<address>'],
  [/\b[a-z]{2}-[a-z0-9]{3,4}\b/g, '<bead>'],
  [/\b([a-z]+)-[0-9a-z]*\d[0-9a-z]*\b/g, '$1-<id>'],
  [/\b\d+(?:\.\d+)? ?(?:ms|s|KiB|MiB|bytes)\b/g, '<amount>'],
  [/"status":"(?:accepted|running)"/g, '"status":"<under way>"'],
  [/(?<!"status":)(?:\b\d{2,}(?:\.\d+)?\b|\b\d+\.\d+\b)/g, '<number>'],
  [/"([a-z_]*(?:seq|total|count|head|index|pid|revision|age|uptime)[a-z_]*)":"?\d+"?/g, '"$1":"<number>"'],
  [/^(x-svc-[a-z-]+): \d+/gm, '$1: <number>'],
]

const normalised = (text: string): string =>
  CHANGING.reduce((changed, [pattern, placeholder]) => changed.replaceAll(pattern, placeholder), text)
