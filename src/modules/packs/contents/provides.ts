/** What a pack brings, by the conventions of its directories (sheet 07 §5.2). */
import { join } from 'node:path'
import type { Pack } from '../../../contract/packs.ts'
import { filesOf, TOML_FILE } from '../../../files/documents.ts'
import { type DirEntry, diskFiles, listable } from '../../../files/files.ts'

type Provides = Pack['provides']

const MAX_WORDS = 4
const MAX_DEPTH = 16
const MAX_OVERLAYS = 500

/** Names below the conventions; nothing for a pack that is not there. */
export function providesOf(home: { readonly dir: string; readonly root: string } | undefined): Provides {
  const at = (...path: readonly string[]): readonly DirEntry[] =>
    home === undefined
      ? []
      : listable(diskFiles(), join(home.dir, ...path), home.root).filter(({ name }) => !/^[._]/.test(name))
  const directories = (...path: readonly string[]): string[] =>
    at(...path).flatMap(({ name, directory }) => (directory ? [name] : []))
  const files = (...path: readonly string[]): string[] =>
    at(...path).flatMap(({ name, directory }) => (directory ? [] : [name]))
  const toml = (folder: string): string[] =>
    home === undefined ? [] : filesOf(diskFiles(), join(home.dir, folder), home.root, TOML_FILE).map(({ name }) => name)
  /** `commands/deploy/canary/run.sh` is `deploy canary`. */
  const commands = (...words: readonly string[]): string[] => {
    const inside = words.length >= MAX_WORDS ? [] : directories('commands', ...words)
    const own =
      words.length > 0 && files('commands', ...words).some((name) => name === 'run.sh' || name === 'command.toml')
    return [...(own ? [words.join(' ')] : []), ...inside.flatMap((word) => commands(...words, word))]
  }
  const agents = directories('agents')
  return {
    agents,
    formulas: toml('formulas'),
    orders: toml('orders'),
    skills: directories('skills').filter((name) => files('skills', name).includes('SKILL.md')),
    mcp: toml('mcp').map((name) => name.replace(/\.template$/, '')),
    commands: commands(),
    doctor: directories('doctor'),
    overlays: ['overlay', ...agents.map((name) => `agents/${name}/overlay`)]
      .flatMap((folder) => overlaid(home, folder))
      .slice(0, MAX_OVERLAYS),
  }
}

/** Overlays are for settings files, whose names begin with a dot; no link is followed. */
function overlaid(
  home: { readonly dir: string; readonly root: string } | undefined,
  folder: string,
  depth = 0,
): readonly string[] {
  if (home === undefined || depth > MAX_DEPTH) return []
  return listable(diskFiles(), join(home.dir, folder), home.root).flatMap(({ name, directory, link, special }) => {
    if (link === true || special === true) return []
    return directory ? overlaid(home, `${folder}/${name}`, depth + 1) : [`${folder}/${name}`]
  })
}
