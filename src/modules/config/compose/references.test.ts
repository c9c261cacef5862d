import assert from 'node:assert/strict'
import { test } from 'node:test'
import { loadFiles } from '../testing.ts'
import {
  type Referrer,
  referrersOfAgent,
  referrersOfImport,
  referrersOfProvider,
  referrersOfRig,
} from './references.ts'

const FILES = {
  'city.toml': `[workspace]
provider = "codex"
[providers.codex]
base = "builtin:codex"
[providers.derived]
base = "codex"
[[agent]]
name = "clerk"
provider = "codex"
depends_on = ["x.lint"]
[[agent]]
name = "hand"
dir = "web"
[[named_session]]
name = "linter"
template = "x.lint"
[[named_session]]
template = "hand"
dir = "web"
[[rigs]]
name = "web"
path = "w"
default_sling_target = "x.lint"
patches = [{ agent = "hand", nudge = "x" }]
[[patches.agent]]
name = "x.lint"
nudge = "x"
[[patches.agent]]
name = "hand"
dir = "web"
nudge = "x"
[[patches.providers]]
name = "codex"
ready_delay_ms = 1
[[patches.rigs]]
name = "web"
prefix = "x"
[orders]
overrides = [{ name = "o", rig = "web" }]
`,
  'pack.toml': '[pack]\nname = "acme"\nschema = 2\n[imports.x]\nsource = "./x"\n',
  'x/pack.toml': '[pack]\nname = "x"\nschema = 2\n[[named_session]]\ntemplate = "lint"\n',
  'x/agents/lint/prompt.md': 'x',
  'w/x': '',
}

test('what is in use names everyone who uses it, with the line', () => {
  const loaded = loadFiles(FILES)
  // `x.lint` is of the city, the rig's target means the rig's agent first.
  assert.ok(loaded.ok, JSON.stringify(loaded.ok ? '' : loaded.issues))
  const { config } = loaded
  const lines = (referrers: Referrer[]) =>
    referrers.map(({ kind, name, line, key }) => `${line} ${kind} ${name} ${key}`)
  assert.deepEqual(lines(referrersOfProvider(config, 'codex')), [
    '2 workspace workspace provider',
    '9 agent clerk provider',
    '6 provider derived base',
    '33 patch codex name',
  ])
  assert.deepEqual(lines(referrersOfRig(config, 'web')), [
    '13 agent hand dir',
    '30 patch hand dir',
    '36 patch web name',
    '19 named_session hand dir',
    '39 order_override o rig',
  ])
  assert.deepEqual(lines(referrersOfAgent(config, 'web/hand')), [
    '17 named_session web/hand template',
    '28 patch hand name',
    '24 patch web/hand agent',
  ])
  const lint = [
    '10 agent clerk depends_on',
    '14 named_session linter template',
    '25 patch x.lint name',
    '23 rig web default_sling_target',
  ]
  assert.deepEqual(lines(referrersOfImport(config, 'x')), lint)
  assert.deepEqual(referrersOfProvider(config, 'derived'), [])
})
