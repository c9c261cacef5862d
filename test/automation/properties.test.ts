/**
 * Files that nobody wrote: whatever stands in one, a plan or a list of issues comes of it; what the grammar takes, editors
 * take too.
 */
import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { test } from 'node:test'
import { Ajv2020 } from 'ajv/dist/2020.js'
import { compileFormula } from '../../src/automation/formula.ts'
import { parseOrder } from '../../src/automation/order.ts'
import type { PlanStep } from '../../src/automation/plan.ts'
import { FormulaFile, Step } from '../../src/contract/automation/formula-file.ts'
import { OrderFile } from '../../src/contract/automation/order-file.ts'
import { formulaSchema, orderSchema } from '../../src/contract/config-fields.ts'
import type { ConfigIssue } from '../../src/files/issues.ts'
import { type PlainTable, type PlainValue, readPlainToml } from '../../src/files/toml.ts'
import { codePoint } from '../support/code-point.ts'
import { fc } from '../support/random.ts'
import { issueLines, sourcesOf } from './support.ts'

// `strict` finds keywords that are misspelt or do nothing; keys that are excluded need not be declared where that is said.
const ajv = new Ajv2020({ strict: true, strictRequired: false, strictTypes: false, allowUnionTypes: true })
const editors = { formula: ajv.compile(formulaSchema()), order: ajv.compile(orderSchema()) }

// ---- text of a value ------------------------------------------------------------------------------------------------

function toml(value: PlainValue): string {
  if (typeof value === 'string') return JSON.stringify(value)
  if (typeof value !== 'object') return String(value)
  if (Array.isArray(value)) return `[${value.map(toml).join(', ')}]`
  return `{ ${Object.entries(value).map(entry).join(', ')} }`
}
const entry = ([key, value]: [string, PlainValue]): string => `${JSON.stringify(key)} = ${toml(value)}`
const fileOf = (table: PlainTable): string => Object.entries(table).map(entry).join('\n')

// ---- formulas that are right ----------------------------------------------------------------------------------------

const IDS = ['a', 'b', 'c', 'd-e', 'f_1'] as const
const word = fc.constantFrom('x', 'plan', 'builders', 'Do it well')
const text = fc.oneof(
  word,
  fc.constantFrom('{{ size }}', '{{ bead.title }} of {{ city }}', "{% render 'part', given: size %}"),
)
const duration = fc.constantFrom('1s', '10m', '1h30m', '2d')

const bodies: readonly fc.Arbitrary<PlainTable>[] = [
  fc.record(
    { title: text, priority: fc.integer({ min: 0, max: 4 }), tags: fc.array(text, { maxLength: 2 }) },
    { requiredKeys: ['title'] },
  ),
  fc.record(
    { title: text, target: text, output: fc.constant(['key']), metadata: fc.constant({ k: 'v' }) },
    { requiredKeys: ['title'] },
  ),
  fc.constantFrom<PlainTable>(
    { gate: { timer: '1h' } },
    { gate: { human: true }, title: 'Go on?', assignee: 'ana' },
    { gate: { event: 'bead.*', match: { id: '{{ bead.id }}' } } },
  ),
  fc.record({
    expand: fc.constant('part'),
    with: fc.constantFrom<PlainTable>({ text: '{{ size }}' }, { text: 'x', count: 2 }),
  }),
]
const around = fc.record(
  {
    condition: fc.constantFrom('true', 'size == 2', 'bead.priority > 1 and size != 3'),
    timeout: duration,
    always: fc.boolean(),
    on_fail: fc.constantFrom('fail', 'continue', 'abort'),
    description: text,
  },
  { requiredKeys: [] },
)
const repeated = fc.record(
  {
    retry: fc.record(
      { max_attempts: fc.integer({ min: 1, max: 100 }), backoff: duration },
      { requiredKeys: ['max_attempts'] },
    ),
    check: fc.constantFrom<PlainTable>({ exec: 'true', timeout: '1m' }, { manual: 'Good?' }),
    loop: fc.constantFrom<PlainTable>({ count: 2 }, { count: 'size' }, { range: '1..size', as: 'n' }),
  },
  { requiredKeys: [] },
)

const stepOf = (level: number): fc.Arbitrary<PlainTable> => {
  const body = level < 3 ? [...bodies, stepsOf(level + 1).map((children): PlainTable => ({ children }))] : bodies
  return fc
    .tuple(fc.oneof(...body), around, repeated)
    .map(([own, all, more]): PlainTable => ({ ...all, ...('gate' in own ? {} : more), ...own }))
}
const stepsOf = (level: number): fc.Arbitrary<PlainTable[]> =>
  fc
    .array(fc.tuple(stepOf(level), fc.array(fc.constantFrom(...IDS), { maxLength: 2 })), {
      minLength: 1,
      maxLength: IDS.length,
    })
    .map((steps) =>
      steps.map(([step, needs], index) => ({
        id: IDS[index] ?? 'z',
        needs: needs.filter((id) => IDS.indexOf(id) < index),
        ...step,
      })),
    )

const formula = fc.record(
  {
    formula: fc.constant('main'),
    vars: fc.constant<PlainTable>({ size: 2, list: { type: 'json', default: ['x', { y: 1 }] } }),
    title: text,
    target: word,
    timeout: duration,
    steps: stepsOf(1),
  },
  { requiredKeys: ['formula', 'vars'] },
)

const PART =
  'formula = "part"\nvars = { text = { required = true }, count = 1 }\n[[steps]]\nid = "a"\ntitle = "{{ text }}"'
const compile = (source: string) =>
  compileFormula('main', sourcesOf({ main: source, part: PART }, { part: '{{ given }} in {{ city }}' }))

// ---- what is wrong with them ----------------------------------------------------------------------------------------

const KEYS = [
  ...Object.keys(Step.properties),
  ...Object.keys(FormulaFile.properties),
  'in',
  'count',
  'exec',
  'pool',
  'x',
]
const anyValue: fc.Arbitrary<PlainValue> = fc.oneof(
  fc.constantFrom<PlainValue>(
    true,
    false,
    0,
    -1,
    1.5,
    7,
    '',
    'x',
    '{{',
    '{{ nobody }}',
    'steps.a.outcome',
    '1..2',
    [],
    {},
    ['x'],
    { x: 1 },
  ),
  fc.integer(),
  fc.string({ maxLength: 8 }),
)
type Change = readonly [number, string, PlainValue | undefined]
const changes = fc.array(fc.tuple(fc.nat(), fc.constantFrom(...KEYS), fc.option(anyValue, { nil: undefined })), {
  minLength: 1,
  maxLength: 3,
})

/** The table with some key of some table in it set, or taken away. */
function changed(table: PlainTable, [index, key, value]: Change): PlainTable {
  const copy: Record<string, unknown> = structuredClone(table)
  const tables = [...tablesIn(copy)]
  const target = tables[index % tables.length] ?? copy
  if (value === undefined) delete target[key]
  else target[key] = value
  return readPlainToml(fileOf(copy as PlainTable))
}

function* tablesIn(value: unknown): Generator<Record<string, unknown>> {
  if (typeof value !== 'object' || value === null) return
  if (!Array.isArray(value)) yield value as Record<string, unknown>
  for (const child of Object.values(value)) yield* tablesIn(child)
}

function assertPlaced(issues: readonly ConfigIssue[], source: string): void {
  const lines = source.split('\n')
  for (const { file, line, column, message } of issues) {
    assert.notEqual(message, '')
    if (!file.endsWith('main.toml')) continue
    assert.ok(line >= 1 && line <= lines.length && column >= 1, `${line}:${column} ${message}`)
    assert.ok(column <= (lines[line - 1] ?? '').length + 1, `${line}:${column} of ${lines[line - 1]}: ${message}`)
  }
}

const countSteps = (steps: readonly PlanStep[]): number =>
  steps.reduce((sum, { body }) => sum + 1 + (body.kind === 'group' ? countSteps(body.steps) : 0), 0)

test('formulas that are right are compiled, and editors find nothing wrong in them', () => {
  fc.assert(
    fc.property(formula, (table) => {
      const source = fileOf(table)
      const { plan, issues } = compile(source)
      assert.deepEqual(issueLines({ issues }), [], source)
      assert.deepEqual(JSON.parse(JSON.stringify(plan)), plan)
      assert.ok(countSteps(plan?.steps ?? []) <= 1_000)
      assert.ok(editors.formula(table), JSON.stringify(editors.formula.errors))
    }),
    { numRuns: 200 },
  )
})

test('what the grammar takes of files that were changed anywhere, editors take; what it does not take has its place', () => {
  let [taken, refused] = [0, 0]
  fc.assert(
    fc.property(formula, changes, (table, all) => {
      const source = fileOf(all.reduce(changed, table))
      const { plan, issues } = compile(source)
      assert.equal(plan === undefined, issues.length > 0)
      assertPlaced(issues, source)
      if (plan === undefined) refused++
      else {
        taken++
        assert.ok(editors.formula(readPlainToml(source)), `${JSON.stringify(editors.formula.errors)}: ${source}`)
      }
    }),
    { numRuns: 600 },
  )
  assert.ok(taken > 20 && refused > 100, `${taken} taken, ${refused} refused`)
})

const ORDER_KEYS = Object.keys(Object(OrderFile.properties.order).properties)
const orderValue = fc.oneof(
  anyValue,
  fc.constantFrom<PlainValue>(
    'cron',
    'event',
    'manual',
    'condition',
    'cooldown',
    '0 6 * * *',
    '1h',
    'UTC',
    'city',
    'skip',
    'bead.closed',
  ),
)
test('orders of any keys are read or refused, and editors take what is read', () => {
  const base = fc.constantFrom<PlainTable>(
    { formula: 'a', trigger: 'cron', schedule: '0 6 * * *' },
    { exec: 'x', trigger: 'event', on: 'bead.closed' },
    { exec: 'x', trigger: 'condition', check: 'true' },
    { formula: 'a', trigger: 'cooldown', interval: '1h' },
    { exec: 'x', trigger: 'manual' },
  )
  let taken = 0
  fc.assert(
    fc.property(base, fc.dictionary(fc.constantFrom(...ORDER_KEYS), orderValue, { maxKeys: 3 }), (order, more) => {
      const source = fileOf({ order: { ...order, ...more } })
      const { order: read, issues } = parseOrder('main', { text: source, file: 'main.toml', dir: '/' })
      assert.equal(read === undefined, issues.length > 0)
      assertPlaced(issues, source)
      if (read !== undefined) {
        taken++
        assert.ok(editors.order(readPlainToml(source)), `${JSON.stringify(editors.order.errors)}: ${source}`)
      }
    }),
    { numRuns: 600 },
  )
  assert.ok(taken > 30, `${taken} taken`)
})

test('texts of any characters, and of pieces of TOML, never throw', () => {
  const piece = fc.constantFrom(
    '[',
    ']',
    '[[steps]]',
    '[vars]',
    '=',
    '"',
    "'",
    '"""',
    '\n',
    '.',
    '{',
    '}',
    ',',
    'id',
    'a',
    '1',
    '#',
    'formula',
    'true',
    '2026-01-01',
    'inf',
    '\\',
    '{{',
    '\u0000',
    '\ud800',
    '__proto__',
    'constructor',
  )
  const source = fc.oneof(
    fc.string({ unit: codePoint }),
    fc.array(piece, { maxLength: 40 }).map((pieces) => pieces.join(' ')),
  )
  fc.assert(
    fc.property(source, (any) => {
      const { plan, issues } = compile(any)
      assert.equal(plan === undefined, issues.length > 0)
      const read = parseOrder('main', { text: any, file: 'main.toml', dir: '/' })
      assert.equal(read.order === undefined, read.issues.length > 0)
    }),
    { numRuns: 500 },
  )
})

test('editors find nothing wrong in the formulas of the rules that compile', () => {
  const rules = resolve(import.meta.dirname, 'rules')
  for (const rule of readdirSync(rules).filter((name) => !name.endsWith('-wrong'))) {
    const files = readdirSync(join(rules, rule))
    if (!files.includes('plan.json')) continue
    for (const file of files.filter((name) => name.endsWith('.toml'))) {
      const table = readPlainToml(readFileSync(join(rules, rule, file), 'utf8'))
      assert.ok(editors.formula(table), `${rule}/${file}: ${JSON.stringify(editors.formula.errors)}`)
    }
  }
})

test('what does not go together, editors find too', () => {
  const step = (more: PlainTable): PlainTable => ({ formula: 'a', steps: [{ id: 'a', title: 'A', ...more }] })
  for (const wrong of [
    { gate: { human: true }, check: { exec: 'x' } },
    { children: [{ id: 'b', title: 'B' }], expand: 'x' },
    { loop: { count: 1 }, for_each: { in: 'x' } },
    { assignee: 'a', target: 'b' },
    { with: {} },
    { gate: { human: true, timer: '1h' } },
    { gate: {} },
    { check: { manual: 'x', env: {} } },
    { metadata: { 'svc.x': 'y' } },
    { children: [] },
    { children: [{ id: 'B' }] },
  ])
    assert.equal(editors.formula(step(wrong)), false, JSON.stringify(wrong))
  for (const wrong of [
    { exec: 'x', formula: 'y', trigger: 'manual' },
    { exec: 'x', trigger: 'cron' },
    { exec: 'x', trigger: 'manual', schedule: '0 6 * * *' },
    { exec: 'x', trigger: 'manual', keep: '1d' },
    { exec: 'x', trigger: 'webhook' },
  ])
    assert.equal(editors.order({ order: wrong }), false, JSON.stringify(wrong))
})
