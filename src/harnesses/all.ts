/** The built-in harnesses (decision 29; sheet 04 §6.2), and what is asked of them as a whole. */
import { aider } from './aider.ts'
import { amp } from './amp.ts'
import { antigravity } from './antigravity.ts'
import { auggie } from './auggie.ts'
import { cerebras } from './cerebras.ts'
import { claude } from './claude.ts'
import { codex } from './codex.ts'
import { copilot } from './copilot.ts'
import { crush } from './crush.ts'
import { cursor } from './cursor.ts'
import { droid } from './droid.ts'
import { gemini } from './gemini.ts'
import { goose } from './goose.ts'
import { grok } from './grok.ts'
import { groq } from './groq.ts'
import {
  BY_CTRL_C,
  GENERIC_SCREEN,
  type Harness,
  type InterruptRules,
  type ProviderPreset,
  type ScreenRules,
  type UsageLog,
} from './harness.ts'
import type { HarnessHooks } from './hooks.ts'
import { kimi } from './kimi.ts'
import { kiro } from './kiro.ts'
import { mimocode } from './mimocode.ts'
import { omp } from './omp.ts'
import { opencode } from './opencode.ts'
import { pi } from './pi.ts'
import { qwen } from './qwen.ts'
import { shell } from './shell.ts'

/** In canonical order, which is the order of every list; `shell`, the embedded default, comes last. */
export const HARNESSES = {
  claude,
  codex,
  gemini,
  grok,
  kimi,
  kiro,
  cursor,
  copilot,
  amp,
  opencode,
  mimocode,
  groq,
  cerebras,
  auggie,
  pi,
  omp,
  antigravity,
  qwen,
  aider,
  goose,
  crush,
  droid,
  shell,
} as const satisfies Readonly<Record<string, Harness>>

export type PresetName = keyof typeof HARNESSES
export const PRESET_NAMES = Object.keys(HARNESSES).filter(isPreset)

/** As `[providers.<name>]` has them. */
export const PRESETS: ReadonlyMap<string, ProviderPreset> = new Map(
  PRESET_NAMES.map((name) => [name, HARNESSES[name].preset]),
)

export function isPreset(name: string): name is PresetName {
  return Object.hasOwn(HARNESSES, name)
}

export const findHarness = (name: string): Harness | undefined => (isPreset(name) ? HARNESSES[name] : undefined)

/** How a turn of that harness is interrupted on its terminal. */
export const interruptOf = (name: string): InterruptRules => findHarness(name)?.interrupt ?? BY_CTRL_C

/** The preset of that name, or nothing. */
export function findPreset(name: string): ProviderPreset | undefined {
  return isPreset(name) ? HARNESSES[name].preset : undefined
}

/** What the log of that harness says of usage, where that is known. */
export function usageLogOf(name: string): UsageLog | undefined {
  if (!isPreset(name)) return undefined
  const harness: Harness = HARNESSES[name]
  return harness.usage
}

/** How a harness of that name tells of itself, where it can. */
export function findHooks(name: string): HarnessHooks | undefined {
  const harness: Harness | undefined = isPreset(name) ? HARNESSES[name] : undefined
  return harness?.hooks
}

/** The program that a preset starts: a `$NAME` comes from the environment, and is `/bin/sh` where that has none. */
export function presetCommand(preset: ProviderPreset, env: Readonly<Record<string, string | undefined>>): string {
  if (!preset.command.startsWith('$')) return preset.command
  return env[preset.command.slice(1)] || '/bin/sh'
}

/** What a readiness probe needs to know of each preset. */
export interface ProbeTarget {
  readonly name: string
  readonly display_name: string
  readonly command: string
}

export function probeTargets(env: Readonly<Record<string, string | undefined>>): readonly ProbeTarget[] {
  return PRESET_NAMES.map((name) => {
    const { preset } = HARNESSES[name]
    return { name, display_name: preset.display_name, command: presetCommand(preset, env) }
  })
}

/** By the name of the program; `command` as it is run: a path, or a name. */
export function screenOf(command: string): ScreenRules {
  const program = command.split('/').at(-1) ?? ''
  return Object.values(HARNESSES).find(({ preset }) => preset.command === program)?.screen ?? GENERIC_SCREEN
}
