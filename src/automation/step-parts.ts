/** Parts of steps that are read from their tables alone: retries, commands, times. */
import { parseDurationMs } from '../contract/base/durations.ts'
import { numberOf, type TableNode } from '../files/toml.ts'
import { durationOf } from './draft.ts'
import type { PlanExec } from './plan.ts'
import { type SourceFile, textMapOf, textsOf } from './source.ts'

const DEFAULT_CHECK_MS = 300_000
const DEFAULT_BACKOFF_MS = 10_000
const DEFAULT_MAX_BACKOFF_MS = 600_000

export function retryOf(node: TableNode | undefined) {
  const attempts = node === undefined ? undefined : numberOf(node, 'max_attempts')
  if (node === undefined || attempts === undefined) return undefined
  const backoff = durationOf(node, 'backoff') ?? DEFAULT_BACKOFF_MS
  const most = durationOf(node, 'max_backoff') ?? Math.max(DEFAULT_MAX_BACKOFF_MS, backoff)
  return { max_attempts: attempts, backoff, max_backoff: most }
}

/** A command with its environment, from the table that says it. */
export function execOf(exec: string, table: TableNode, { dir }: SourceFile): PlanExec {
  return {
    exec,
    timeout: durationOf(table, 'timeout') ?? DEFAULT_CHECK_MS,
    env: textMapOf(table, 'env'),
    inherit_env: textsOf(table, 'inherit_env'),
    file_dir: dir,
  }
}

export function isMoment(text: string): boolean {
  try {
    parseDurationMs(text)
    return true
  } catch {
    return RFC_3339.test(text) && !Number.isNaN(Date.parse(text))
  }
}
const RFC_3339 = /^\d{4}-\d{2}-\d{2}[Tt]\d{2}:\d{2}:\d{2}(?:\.\d+)?(?:[Zz]|[+-]\d{2}:\d{2})$/
