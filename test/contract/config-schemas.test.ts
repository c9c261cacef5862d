/** The schemas of `city.toml` and `agent.toml` that editors check by say what the server says. */
import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { test } from 'node:test'
import { Ajv2020, type ErrorObject } from 'ajv/dist/2020.js'
import type { Schema } from '../../src/contract/base/schema.ts'
import { AgentFile, CityFile } from '../../src/contract/config-schema.ts'
import { checkTable } from '../../src/files/check-table.ts'
import { IssueList } from '../../src/files/issues.ts'
import { readPlainToml, readToml } from '../../src/files/toml.ts'

const root = resolve(import.meta.dirname, '../..')
const fixtures = join(root, 'test/fixtures/config')

// `strict` finds keywords that are misspelt or do nothing.
const ajv = new Ajv2020({ allErrors: true, strict: true, allowUnionTypes: true })
const FILES = {
  city: { validate: ajv.compile(JSON.parse(readFileSync(join(root, 'city.schema.json'), 'utf8'))), schema: CityFile },
  agent: {
    validate: ajv.compile(JSON.parse(readFileSync(join(root, 'agent.schema.json'), 'utf8'))),
    schema: AgentFile,
  },
} as const
type Kind = keyof typeof FILES

/** Keys at which the editor's schema finds something wrong. */
function editorKeys(kind: Kind, text: string): readonly string[] {
  const { validate } = FILES[kind]
  return validate(readPlainToml(text)) ? [] : unique((validate.errors ?? []).map(keyOf))
}

/** Those that the server names. */
function serverKeys(text: string, schema: Schema): readonly string[] {
  const issues = new IssueList()
  const table = readToml(text, 'file', 'city', issues)
  if (table !== undefined) checkTable(table, schema, issues)
  return unique(issues.errors.map(({ key }) => key))
}

const unique = (keys: readonly string[]): readonly string[] => [...new Set(keys)].sort()

/** `/rigs/0/name` → `rigs[0].name`. */
function keyOf({ instancePath, params, keyword }: ErrorObject): string {
  const steps = instancePath.split('/').slice(1)
  const named = keyword === 'additionalProperties' ? params['additionalProperty'] : params['missingProperty']
  const all = typeof named === 'string' ? [...steps, named] : steps
  return all
    .map((step) => (/^\d+$/.test(step) ? `[${step}]` : `.${step}`))
    .join('')
    .replace(/^\./, '')
}

test('editors find nothing wrong in configurations that a server takes', () => {
  const files = globSync(['city/city.toml', 'city/conf/*.toml', '**/agent.toml'], { cwd: fixtures })
  assert.ok(files.length >= 6, files.join(', '))
  for (const file of files) {
    const text = readFileSync(join(fixtures, file), 'utf8')
    assert.deepEqual(editorKeys(file.endsWith('agent.toml') ? 'agent' : 'city', text), [], file)
  }
})

const WRONG: readonly [Kind, string, string][] = [
  ['city', '[workspace]\nprovidr = "claude"', 'workspace.providr'],
  ['city', '[wrkspace]\n', 'wrkspace'],
  ['city', '[workspace]\nmax_active_sessions = -2', 'workspace.max_active_sessions'],
  ['city', '[workspace]\nmax_active_sessions = "3"', 'workspace.max_active_sessions'],
  ['city', '[workspace]\nprefix = "Big"', 'workspace.prefix'],
  ['city', '[work]\nlease_ttl = "soon"', 'work.lease_ttl'],
  ['city', '[work]\nlease_ttl = "off"', 'work.lease_ttl'],
  ['city', '[session]\nprovider = "screen"', 'session.provider'],
  ['city', '[session]\ninherit_env = "some"', 'session.inherit_env'],
  ['city', '[session]\ninherit_env = ["a b"]', 'session.inherit_env[0]'],
  ['city', '[daemon]\nrapid_crash_limit = 0', 'daemon.rapid_crash_limit'],
  ['city', '[[rigs]]\npath = "/tmp"', 'rigs[0].name'],
  ['city', '[[rigs]]\nname = "shop"\n[[rigs.patches]]\nagent = "a"\nscope = "city"', 'rigs[0].patches[0].scope'],
  ['city', '[[agent]]\nname = "a b"', 'agent[0].name'],
  ['city', '[providers.own]\nio = "tape"', 'providers.own.io'],
  ['city', '[providers.own]\ncomand = "x"', 'providers.own.comand'],
  ['city', '[imports.review]\nsource = ""', 'imports.review.source'],
  ['city', '[[patches.agent]]\nname = "a"\nargs_append = "x"', 'patches.agent[0].args_append'],
  [
    'city',
    '[[patches.providers]]\nname = "p"\n[[patches.providers.options_schema]]\nlabel = "x"',
    'patches.providers[0].options_schema[0].key',
  ],
  ['agent', 'name = "ana"', 'name'],
  ['agent', 'wake_mode = "slow"', 'wake_mode'],
  ['agent', 'attach = "yes"', 'attach'],
  ['agent', 'idle_timeout = "5 minutes"', 'idle_timeout'],
]

test('what editors find wrong is wrong for the server, at the same key', () => {
  for (const [kind, text, key] of WRONG) {
    assert.deepEqual(serverKeys(text, FILES[kind].schema), [key], text)
    assert.deepEqual(editorKeys(kind, text), [key], text)
  }
})

test('every key that editors offer says what it is for', () => {
  const bare: string[] = []
  const visit = (value: unknown, path: string) => {
    if (typeof value !== 'object' || value === null) return
    for (const [name, part] of Object.entries(value)) {
      if (name !== 'properties') visit(part, `${path}/${name}`)
      else
        for (const [key, field] of Object.entries(Object(part))) {
          // A key that is only said to be absent, or asked for, there.
          if (field === false || path.endsWith('/if')) continue
          if (!String(Object(field).description ?? '').endsWith('.')) bare.push(`${path}/${key}`)
          visit(field, `${path}/${key}`)
        }
    }
  }
  for (const name of ['city', 'agent', 'formula', 'order'])
    visit(JSON.parse(readFileSync(join(root, `${name}.schema.json`), 'utf8')), name)
  assert.deepEqual(bare, [])
})
