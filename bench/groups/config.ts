/** How long does it take to load a big city's configuration, against the plain parse of the same bytes? */
import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { parseTOML } from 'toml-eslint-parser'
import { PRESETS } from '../../src/harnesses/all.ts'
import { loadCity } from '../../src/modules/config/load/load.ts'
import type { Group } from '../bench.ts'
import { median } from '../numbers.ts'

const AGENTS = 200
const PACKS = 30
const BUDGET_MS = 200
const CORE = join(import.meta.dirname, '..', '..', 'src', 'modules', 'packs', 'core')

export const config: Group = async ({ quick, dir, say }) => {
  say(`a city of ${AGENTS} agents and ${PACKS} packs`)
  const files = bigCity()
  for (const [path, text] of files) {
    mkdirSync(dirname(join(dir, path)), { recursive: true })
    writeFileSync(join(dir, path), text)
  }
  const toml = [...files].filter(([path]) => path.endsWith('.toml')).map(([, text]) => text)
  const options = { version: '0.0.0', builtinPacks: new Map([['core', CORE]]), presets: Object.fromEntries(PRESETS) }
  const load = () => {
    const loaded = loadCity(dir, options)
    if (!loaded.ok) throw new Error(JSON.stringify(loaded.issues[0]))
  }
  const parse = () => toml.forEach((text) => void parseTOML(text, { tomlVersion: '1.0' }))
  const ours: number[] = []
  const floor: number[] = []
  const rounds = quick ? 9 : 25
  // The first rounds warm both up and do not count.
  for (let round = -3; round < rounds; round++) {
    const took = [timed(load), timed(parse)]
    if (round < 0) continue
    ours.push(took[0] ?? 0)
    floor.push(took[1] ?? 0)
  }
  const value = median(ours)
  return [
    {
      name: `load of a city with ${AGENTS} agents and ${PACKS} packs, warm`,
      unit: 'ms',
      ours: value,
      p99: Math.max(...ours),
      floor: 'parse of the same TOML, nothing else',
      floorValue: median(floor),
      ratio: value / median(floor),
      budget: `≤ ${BUDGET_MS} ms`,
      pass: value <= BUDGET_MS,
      note: 'reads and hashes every file, merges with the origin of each value, checks references and prompts',
    },
  ]
}

function timed(work: () => void): number {
  const began = performance.now()
  work()
  return performance.now() - began
}

function bigCity(): ReadonlyMap<string, string> {
  const files = new Map<string, string>()
  const imports: string[] = []
  for (let pack = 0; pack < PACKS; pack++) {
    const root = `packs/p${pack}`
    imports.push(`[imports.p${pack}]\nsource = "./${root}"\n`)
    files.set(`${root}/pack.toml`, `[pack]\nname = "p${pack}"\nschema = 2\n`)
    files.set(`${root}/template-fragments/rule-${pack}.template.md`, `Rule ${pack} for {{ AgentName }}.\n`)
    for (let agent = pack; agent < AGENTS; agent += PACKS) addAgent(files, `${root}/agents/a${agent}`, pack)
  }
  files.set('pack.toml', `[pack]\nname = "big"\nschema = 2\n\n${imports.join('\n')}`)
  files.set('city.toml', '[workspace]\nprovider = "shell"\n\n[providers.shell]\nbase = "builtin:shell"\n')
  files.set('.svc/site.toml', 'workspace_name = "big"\n')
  return files
}

function addAgent(files: Map<string, string>, root: string, pack: number): void {
  files.set(
    `${root}/agent.toml`,
    'description = "One of many"\nscope = "city"\nmax_active_sessions = 2\nidle_timeout = "30m"\n\n[env]\nMODE = "work"\n',
  )
  files.set(`${root}/prompt.template.md`, `You are {{ AgentName }} of {{ CityRoot }}.\n\n{% render 'rule-${pack}' %}\n`)
}
