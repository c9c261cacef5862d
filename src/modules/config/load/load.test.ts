import assert from 'node:assert/strict'
import { chmodSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { diskFiles, overlayFiles } from '../../../files/files.ts'
import { agentDrift, fingerprintsOf } from '../compose/drift.ts'
import type { EffectiveConfig } from '../compose/effective.ts'
import { derivePrefix } from '../compose/names.ts'
import { loadFiles, OPTIONS, temporaryCity } from '../testing.ts'
import { loadCity } from './load.ts'

const PACK = '[pack]\nname = "acme"\nschema = 2\n'

// Sheet 07 §2.7 as it stands there, but for its git import (a local path) and the tables that decision 37 drops.
const EXAMPLE = `include = ["conf/prod.toml"]
[workspace]
provider = "codex"
timezone = "Europe/Lisbon"
max_active_sessions = 12
env = { RELEASE_TRAIN = "q3" }
[providers.codex]
base = "builtin:codex"
[providers.careful]
base = "builtin:claude"
option_defaults = { permission_mode = "plan", model = "opus" }
args_append = ["--verbose"]
[agent_defaults]
default_sling_formula = "do-one-task"
append_fragments = ["house-style"]
[daemon]
patrol_interval = "20s"
max_restarts = 3
[session]
startup_timeout = "90s"
[mail]
retention_ttl = "720h"
[orders]
skip = ["nightly-audit"]
overrides = [{ name = "sweep-stale", interval = "10m" }]
[[named_session]]
name = "planner"
template = "review.lead"
mode = "always"
[[rigs]]
name = "storefront"
prefix = "sf"
default_branch = "trunk"
default_sling_target = "storefront/review.builder"
formula_vars = { test_cmd = "pnpm test" }
imports.review = { source = "./packs/review" }
patches = [{ agent = "review.builder", max_active_sessions = 2 }]
[defaults.rig.imports.review]
source = "./packs/review"
[[patches.agent]]
name = "review.lead"
idle_timeout = "45m"
env = { MODE = "strict" }
env_remove = ["DEBUG"]
[[patches.providers]]
name = "codex"
ready_delay_ms = 4000
[[service]]
name = "inbox"
kind = "proxy_process"
process = { command = ["node", "inbox.js"], health_path = "/healthz" }
`
const EXAMPLE_FILES = {
  'city.toml': EXAMPLE,
  'conf/prod.toml': '',
  'pack.toml': `${PACK}[imports.review]\nsource = "./packs/review"\n`,
  'packs/review/pack.toml': '[pack]\nname = "review"\nschema = 2\n',
  'packs/review/agents/lead/agent.toml': 'scope = "city"\n',
  'packs/review/agents/builder/agent.toml': 'scope = "rig"\n',
  'template-fragments/house-style.template.md': 'Short.',
  'w/x': '',
}

test('the example city loads', () => {
  const config = effective(EXAMPLE_FILES)
  assert.deepEqual(
    config.agents.map((agent) => agent.identity),
    ['review.lead', 'storefront/review.builder'],
  )
  assert.deepEqual(config.providers['careful']?.chain, ['provider:careful', 'builtin:claude'])
  assert.deepEqual(config.providers['careful']?.resolved.args, ['--verbose'])
  assert.deepEqual(config.default_rig_imports, { review: { source: './packs/review' } })
})

test('a fresh city that imports the core pack has no warning', () => {
  const loaded = loadFiles({
    'city.toml': '[workspace]\nprovider = "shell"\n\n[providers.shell]\nbase = "builtin:shell"\n',
    'pack.toml': `${PACK}\n[imports.core]\nsource = "builtin:core"\n\n[[named_session]]\ntemplate = "core.worker"\n`,
    '.svc/site.toml': 'workspace_name = "demo"\n',
  })
  assert.ok(loaded.ok)
  assert.deepEqual(loaded.warnings, [])
  assert.equal(loaded.config.name, 'demo')
  assert.deepEqual(
    loaded.config.packs.map((pack) => [pack.binding, pack.kind]),
    [['core', 'builtin']],
  )
})

test('an empty city.toml is a city, whose agents run in the shell', () => {
  const config = effective({ 'city.toml': '[[agent]]\nname = "a"\n' })
  assert.equal(config.agents[0]?.provider, 'shell')
  assert.deepEqual(config.providers['shell']?.chain, ['builtin:shell'])
})

test('a candidate in memory is loaded in place of what is on disk', () => {
  using city = temporaryCity({
    'city.toml': '[[agent]]\nname = "a"\n',
    'agents/b/agent.toml': '',
    'agents/b/prompt.md': 'x',
  })
  const edits = new Map([
    [join(city.dir, 'city.toml'), '[[agent]]\nname = "c"\n'],
    [join(city.dir, 'agents/d/agent.toml'), 'description = "new"\n'],
    [join(city.dir, 'agents/b/prompt.md'), null],
    [join(city.dir, 'agents/b/agent.toml'), null],
  ])
  const loaded = loadCity(city.dir, OPTIONS, overlayFiles(diskFiles(), edits))
  assert.ok(loaded.ok)
  assert.deepEqual(
    loaded.config.agents.map((agent) => agent.identity),
    ['d', 'c'],
  )
  const disk = loadCity(city.dir, OPTIONS)
  assert.ok(disk.ok)
  assert.deepEqual(
    disk.config.agents.map((agent) => agent.identity),
    ['b', 'a'],
  )
})

test('a file that cannot be read names itself', { skip: process.getuid?.() === 0 && 'root reads everything' }, () => {
  using city = temporaryCity({ 'city.toml': '', 'agents/a/agent.toml': '' })
  chmodSync(join(city.dir, 'agents/a/agent.toml'), 0)
  const loaded = loadCity(city.dir, OPTIONS)
  assert.ok(!loaded.ok)
  assert.deepEqual(
    loaded.issues.map(({ file, message }) => [file, message]),
    [['agents/a/agent.toml', 'cannot be read: permission denied']],
  )
})

test('a link out of the city is refused like a path out of it', () => {
  using outside = temporaryCity({ 'secret.md': 'secret' })
  using city = temporaryCity({ 'city.toml': '[[agent]]\nname = "a"\nprompt_template = "link/secret.md"\n' })
  symlinkSync(outside.dir, join(city.dir, 'link'))
  const loaded = loadCity(city.dir, OPTIONS)
  assert.ok(!loaded.ok)
  assert.match(loaded.issues[0]?.message ?? '', /leads out of/)
})

test('a nested pack keeps its path of bindings, an exported one takes the place of its importer', () => {
  const files = {
    'city.toml': '',
    'pack.toml': `${PACK}[imports.outer]\nsource = "./outer"\n`,
    'outer/pack.toml':
      '[pack]\nname = "outer"\nschema = 2\n[imports.inner]\nsource = "../inner"\n[imports.open]\nsource = "../open"\nexport = true\n',
    'outer/agents/worker/prompt.md': 'x',
    'inner/pack.toml': '[pack]\nname = "inner"\nschema = 2\n',
    'inner/agents/worker/prompt.md': 'x',
    'open/pack.toml': '[pack]\nname = "open"\nschema = 2\n',
    'open/agents/helper/prompt.md': 'x',
  }
  assert.deepEqual(
    effective(files).agents.map((agent) => [agent.identity, agent.origin]),
    [
      ['outer.inner.worker', 'pack:outer.inner'],
      ['outer.helper', 'pack:outer.open'],
      ['outer.worker', 'pack:outer'],
    ],
  )
})

test('the first declaration of a provider wins: fragment, city, root pack, imports by binding', () => {
  const pack = (name: string, command: string) =>
    `[pack]\nname = "${name}"\nschema = 2\n[providers.p]\ncommand = "${command}"\n[providers.${name}]\ncommand = "${command}"\n`
  const files = {
    'city.toml': '',
    'pack.toml': `${PACK}[imports.b]\nsource = "./b"\n[imports.a]\nsource = "./a"\n`,
    'a/pack.toml': pack('a', 'from-a'),
    'b/pack.toml': pack('b', 'from-b'),
  }
  const command = (more: Record<string, string>) => effective({ ...files, ...more }).providers['p']?.resolved.command
  assert.equal(command({}), 'from-a')
  assert.equal(command({ 'pack.toml': `${files['pack.toml']}[providers.p]\ncommand = "from-root"\n` }), 'from-root')
  assert.equal(
    command({
      'city.toml': '[providers.p]\ncommand = "from-city"\n',
      'pack.toml': `${files['pack.toml']}[providers.p]\ncommand = "from-root"\n`,
    }),
    'from-city',
  )
  assert.equal(
    command({
      'city.toml': 'include = ["f.toml"]\n[providers.p]\ncommand = "from-city"\n',
      'f.toml': '[providers.p]\ncommand = "from-fragment"\n',
    }),
    'from-fragment',
  )
})

test('an import of city.toml replaces the one of the same binding in pack.toml', () => {
  const config = effective({
    'city.toml': '[imports.x]\nsource = "./two"\n',
    'pack.toml': `${PACK}[imports.x]\nsource = "./one"\n`,
    'one/pack.toml': '[pack]\nname = "one"\nschema = 2\n',
    'two/pack.toml': '[pack]\nname = "two"\nschema = 2\n',
  })
  assert.deepEqual(
    config.packs.map((pack) => pack.name),
    ['two'],
  )
})

test('a city-scoped agent that two rigs bring exists once', () => {
  const config = effective({
    'city.toml':
      '[[rigs]]\nname = "web"\npath = "w"\nimports.x = { source = "./x" }\n[[rigs]]\nname = "api"\npath = "a"\nimports.x = { source = "./x" }\n',
    'x/pack.toml': '[pack]\nname = "x"\nschema = 2\n',
    'x/agents/boss/agent.toml': 'scope = "city"\n',
    'x/agents/hand/prompt.md': 'x',
    'w/x': '',
    'a/x': '',
  })
  assert.deepEqual(
    config.agents.map((agent) => agent.identity),
    ['x.boss', 'web/x.hand', 'api/x.hand'],
  )
})

test('blank fields take the pack’s default before the city’s, the root’s agents the city’s', () => {
  const config = effective({
    'city.toml':
      '[agent_defaults]\nprovider = "codex"\n[providers.codex]\nbase = "builtin:codex"\n[providers.claude]\nbase = "builtin:claude"\n[[agent]]\nname = "own"\n',
    'pack.toml': `${PACK}[imports.x]\nsource = "./x"\n[agent_defaults]\nprovider = "claude"\n`,
    'x/pack.toml': '[pack]\nname = "x"\nschema = 2\n[agent_defaults]\nprovider = "claude"\n',
    'x/agents/hand/prompt.md': 'x',
  })
  assert.deepEqual(
    config.agents.map((agent) => [agent.identity, agent.provider]),
    [
      ['x.hand', 'claude'],
      ['own', 'codex'],
    ],
  )
})

test('formulas of a city: imports, then its own; of a rig: its imports, then its directory', () => {
  const config = effective({
    'city.toml': '[[rigs]]\nname = "web"\npath = "w"\nformulas_dir = "f"\nimports.y = { source = "./y" }\n',
    'pack.toml': `${PACK}[imports.x]\nsource = "./x"\n`,
    'x/pack.toml': '[pack]\nname = "x"\nschema = 2\n',
    'x/formulas/a.toml': '',
    'y/pack.toml': '[pack]\nname = "y"\nschema = 2\n',
    'y/formulas/a.toml': '',
    'formulas/a.toml': '',
    'f/a.toml': '',
    'w/x': '',
  })
  const local = (dirs: readonly string[]) => dirs.map((dir) => dir.slice(config.dir.length + 1))
  assert.deepEqual(local(config.formula_layers.city), ['x/formulas', 'formulas'])
  assert.deepEqual(local(config.formula_layers.rigs['web'] ?? []), ['y/formulas', 'f'])
})

test('options of a derived provider merge by key, and an omitted one is gone', () => {
  const config = effective({
    'city.toml': `[providers.x]
base = "builtin:claude"
options_schema_merge = "by_key"
options_schema = [{ key = "model", omit = true }, { key = "effort", choices = [{ value = "low" }] }]
`,
  })
  assert.deepEqual(
    config.providers['x']?.resolved.options_schema?.map((option) => option.key),
    ['permission_mode', 'effort'],
  )
})

test('the drift of a change is the strongest class among its fields', () => {
  const load = (agent: string) => effective({ 'city.toml': `[[agent]]\nname = "a"\n${agent}` })
  const plain = load('')
  const drift = (agent: string) => agentDrift(plain, load(agent), 'a')
  assert.deepEqual(drift('description = "x"\n'), { drift: 'none', fields: ['description'] })
  assert.deepEqual(drift('nudge = "x"\nidle_timeout = "5m"\n'), { drift: 'live', fields: ['idle_timeout', 'nudge'] })
  assert.deepEqual(drift('session_live = ["true"]\n'), { drift: 'reapply', fields: ['session_live'] })
  assert.deepEqual(drift('env = { A = "1" }\n'), { drift: 'launch', fields: ['env'] })
  assert.deepEqual(drift('pre_start = ["true"]\nenv = { A = "1" }\n'), {
    drift: 'provision',
    fields: ['env', 'pre_start'],
  })
  assert.equal(agentDrift(plain, plain, 'b'), undefined)
  const prints = (config: EffectiveConfig) => config.agents.map((agent) => fingerprintsOf(config, agent))[0]
  assert.deepEqual(prints(plain), prints(load('nudge = "x"\n')))
  assert.notEqual(prints(plain)?.launch, prints(load('args = ["x"]\n'))?.launch)
})

test('prefixes derive from names', () => {
  const names = {
    storefront: 'st',
    web: 'web',
    'my-web-app': 'mwa',
    'tools-py': 'to',
    billingService: 'bs',
    api_gateway: 'ag',
    Go: 'go',
    '-py': 'py',
  }
  for (const [name, prefix] of Object.entries(names)) assert.equal(derivePrefix(name), prefix, name)
})

function effective(files: Readonly<Record<string, string>>): EffectiveConfig {
  const loaded = loadFiles(files)
  assert.ok(loaded.ok, JSON.stringify(loaded.ok ? '' : loaded.issues, null, 1))
  return loaded.config
}
