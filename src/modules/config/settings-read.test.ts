/** Every setting is read by somebody, or says that it has no effect (decision 234). */
import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { noEffect, shapeOf } from '../../contract/base/config-shape.ts'
import type { Schema } from '../../contract/base/schema.ts'
import { configTables } from '../../contract/config-fields.ts'
import { AgentFile, CityFile, PackFile, SiteFile } from '../../contract/config-schema.ts'
import { CONFIG_WORDS } from '../../contract/config-words.ts'
import { loadFiles } from './testing.ts'

const SRC = join(import.meta.dirname, '../..')
/** What declares, checks, shows or sends a setting does not act on it. */
const BLIND =
  /^(?:contract|cli|client)\/|\.test\.ts$|^modules\/providers\/presets\.ts$|^modules\/config\/compose\/(?:check|validate)\.ts$/

/** Settings whose effect is in how files are put together or checked, and who acts on them there. */
const COMPOSED: Readonly<Record<string, string>> = {
  default_sling_formula: 'modules/config/compose/compose.ts',
  default_sling_target: 'modules/config/compose/validate.ts',
  options_schema_merge: 'modules/config/compose/providers.ts',
  workspace_prefix: 'modules/config/compose/validate.ts',
  path_check: 'modules/agents/views.ts',
}

/** Keys by the first path that has them; what is below an inert setting is inert. */
function settings(): Map<string, string> {
  const found = new Map<string, string>()
  const walk = (schema: Schema, at: string): void => {
    const { item, properties, annotation } = shapeOf(schema)
    if (annotation.inert !== undefined) return
    if (item !== undefined) walk(item, at)
    for (const [name, field] of Object.entries(properties)) {
      const derived = /^(.*)_(?:append|remove)$/.exec(name)?.[1]
      if (derived !== undefined && derived in properties) continue
      const path = at === '' ? name : `${at}.${name}`
      if (shapeOf(field).annotation.inert === undefined && !found.has(name)) found.set(name, path)
      walk(field, path)
    }
  }
  for (const file of [CityFile, AgentFile, PackFile, SiteFile]) walk(file, '')
  return found
}

test('every setting has a reader, or is warned of', () => {
  const sources = readdirSync(SRC, { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.ts') && !BLIND.test(file))
    .map((file) => readFileSync(join(SRC, file), 'utf8'))
  const unread = [...settings()].filter(([name]) => {
    const word = new RegExp(`\\b${name}\\b`)
    const reader = COMPOSED[name]
    if (reader !== undefined) return !word.test(readFileSync(join(SRC, reader), 'utf8'))
    return !sources.some((text) => word.test(text))
  })
  assert.deepEqual(
    unread.map(([, path]) => path),
    [],
  )
})

test('a city with a setting that has no effect loads, and is told so with its place', () => {
  const loaded = loadFiles({
    'city.toml': '[[doctor.check]]\nname = "disk"\nscript = "disk.sh"\n',
    'disk.sh': '',
  })
  assert.ok(loaded.ok)
  assert.deepEqual(
    loaded.warnings.map(({ file, line, key, message }) => `${file}:${line} ${key} ${message}`),
    ['city.toml:1 doctor.check `check` has no effect: no command runs it'],
  )
})

test('a setting that nothing acts on is refused where it stands, with what to write instead', () => {
  const loaded = loadFiles({
    'city.toml': [
      '[chat_sessions]\ngrace_period = "5m"',
      '[session]\nnudge_poll_interval = "2s"\ndisplay_ms = 5000',
      '[session.acp]\noutput_buffer_lines = 1000',
      '[daemon]\nobserve_paths = ["logs"]',
    ].join('\n'),
    'agents/a/agent.toml': 'provider = "shell"\nmouse_mode = "on"\ninject_assigned_skills = true\n',
  })
  assert.ok(!loaded.ok)
  assert.deepEqual(
    loaded.issues.map(({ file, line, key, hint }) => `${file}:${line} ${key} ${hint !== undefined}`),
    [
      'agents/a/agent.toml:2 mouse_mode true',
      'agents/a/agent.toml:3 inject_assigned_skills true',
      'city.toml:2 chat_sessions.grace_period true',
      'city.toml:4 session.nudge_poll_interval true',
      'city.toml:5 session.display_ms true',
      'city.toml:7 session.acp.output_buffer_lines true',
      'city.toml:9 daemon.observe_paths true',
    ],
  )
})

test('the reference says of a setting that it has no effect where the loader warns of it, and nowhere else', () => {
  const fields = configTables().flatMap(({ id, fields }) => fields.map((field) => ({ id, ...field })))
  const inert = fields.filter(({ schema }) => shapeOf(schema).annotation.inert !== undefined)
  assert.ok(inert.length > 0, `${inert.length} settings`)
  for (const { id, name, schema, words } of fields) {
    const why = shapeOf(schema).annotation.inert
    assert.equal(words.includes('has no effect'), why !== undefined, `${id} ${name}: ${words}`)
    if (why !== undefined) assert.ok(words.endsWith(`${noEffect(why)}.`), words)
  }
  // The words themselves do not speak of it, for they would not change with the schema.
  assert.doesNotMatch(JSON.stringify(CONFIG_WORDS), /nothing acts|no effect/)
})
