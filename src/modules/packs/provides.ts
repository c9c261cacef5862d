/** What a pack brings, by the conventions of its directories (sheet 07 §5.2). */
import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import type { Pack } from '../../contract/packs.ts'

const NOTHING: Pack['provides'] = {
  agents: [],
  formulas: [],
  orders: [],
  skills: [],
  mcp: [],
  commands: [],
  doctor: [],
}

/** Names below the conventions; nothing for a directory that is not there. */
export function providesOf(dir: string | undefined): Pack['provides'] {
  if (dir === undefined) return NOTHING
  return {
    agents: directories(join(dir, 'agents')),
    formulas: files(join(dir, 'formulas'), '.toml'),
    orders: files(join(dir, 'orders'), '.toml'),
    skills: directories(join(dir, 'skills')).filter((name) => existsSync(join(dir, 'skills', name, 'SKILL.md'))),
    mcp: files(join(dir, 'mcp'), '.toml').map((name) => name.replace(/\.template$/, '')),
    commands: commandsBelow(join(dir, 'commands')),
    doctor: directories(join(dir, 'doctor')),
  }
}

const isVisible = (name: string): boolean => !name.startsWith('.') && !name.startsWith('_')

function list(dir: string) {
  try {
    return readdirSync(dir, { withFileTypes: true })
      .filter(({ name }) => isVisible(name))
      .sort((a, b) => (a.name < b.name ? -1 : 1))
  } catch {
    return []
  }
}

const directories = (dir: string): string[] =>
  list(dir)
    .filter((entry) => entry.isDirectory())
    .map(({ name }) => name)
const files = (dir: string, suffix: string): string[] =>
  list(dir)
    .filter((entry) => entry.isFile() && entry.name.endsWith(suffix))
    .map(({ name }) => name.slice(0, -suffix.length))

/** `commands/deploy/canary/run.sh` is `deploy canary`. */
function commandsBelow(dir: string, words: readonly string[] = []): string[] {
  if (words.length > 4) return []
  return directories(join(dir, ...words)).flatMap((name) => {
    const path = [...words, name]
    const own =
      existsSync(join(dir, ...path, 'run.sh')) || existsSync(join(dir, ...path, 'command.toml')) ? [path.join(' ')] : []
    return [...own, ...commandsBelow(dir, path)]
  })
}
