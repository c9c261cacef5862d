/**
 * Settings files of harnesses in overlays: merged instead of copied, since every pack has something to say in them
 * (sheet 07 §5.2). Pure.
 */

import { isDeepStrictEqual } from 'node:util'
import { withoutMark } from '../../../files/read.ts'

/** Where harnesses look for settings in a work directory. */
const SETTINGS_FILES: ReadonlySet<string> = new Set([
  '.claude/settings.json',
  '.claude/settings.local.json',
  '.codex/hooks.json',
  '.cursor/hooks.json',
  '.gemini/settings.json',
  'opencode.json',
])

export const isSettingsFile = (path: string): boolean => SETTINGS_FILES.has(path)

export type Settings = { readonly [key: string]: unknown }

/** The text as settings; undefined: it is none, or has comments. */
export function parseSettings(text: string): Settings | undefined {
  try {
    const value: unknown = JSON.parse(withoutMark(text))
    return isTable(value) ? value : undefined
  } catch {
    return undefined
  }
}

/** Both: tables key by key, lists without repetitions, and for the rest `first` has the last word. */
export function mergeSettings(first: Settings, second: Settings): Settings {
  const merged = new Map(Object.entries(first))
  for (const [key, value] of Object.entries(second))
    merged.set(key, merged.has(key) ? mergeValues(merged.get(key), value) : value)
  return Object.fromEntries(merged)
}

function mergeValues(first: unknown, second: unknown): unknown {
  if (isTable(first) && isTable(second)) return mergeSettings(first, second)
  if (!Array.isArray(first) || !Array.isArray(second)) return first
  return [...first, ...second.filter((value) => !first.some((one) => isDeepStrictEqual(one, value)))]
}

const isTable = (value: unknown): value is Settings =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
