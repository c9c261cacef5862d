/** Files with hooks in the directory of a run: what only its owner may read, and what goes with the run. */
import { writeFile } from 'node:fs/promises'
import { readRegularLater } from '../../../files/read.ts'
import type { LaidHooks } from '../../../harnesses/hooks.ts'
import { mergeSettings, parseSettings, type Settings } from './settings-files.ts'

type HookFile = LaidHooks['files'][number]

/** Throws where the settings that it stands in for cannot be read: without them it must not stand there. */
export async function layHookFile({ path, settings, over }: HookFile): Promise<void> {
  const ours: Settings = { ...settings }
  const whole = over === undefined ? ours : mergeSettings(await settingsAt(over), ours)
  await writeFile(path, `${JSON.stringify(whole, null, 2)}\n`, { mode: 0o600 })
}

async function settingsAt(path: string): Promise<Settings> {
  const bytes = await readRegularLater(path)
  if (bytes === undefined) return {}
  const settings = parseSettings(bytes.toString('utf8'))
  if (settings === undefined) throw new Error(`${path} is no plain JSON object, and hooks would hide what it says`)
  return settings
}
