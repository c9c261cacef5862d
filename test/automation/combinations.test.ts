/** Keys that do not go together: every pair of the table, and both alone, which do. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { compileFormula } from '../../src/automation/formula.ts'
import { Step } from '../../src/contract/automation/formula-file.ts'
import { shapeOf } from '../../src/contract/base/config-shape.ts'
import { issueLines, sourcesOf } from './support.ts'

/** Something right for each key of a step. */
const RIGHT: Readonly<Record<string, string>> = {
  gate: 'gate = { timer = "1h" }',
  children: 'children = [{ id = "child", title = "Child" }]',
  expand: 'expand = "part"',
  check: 'check = { exec = "true" }',
  retry: 'retry = { max_attempts = 2 }',
  output: 'output = ["key"]',
  target: 'target = "builders"',
  assignee: 'assignee = "ana"',
  for_each: 'for_each = { in = "bead.members" }',
  loop: 'loop = { count = 2 }',
  priority: 'priority = 1',
  tags: 'tags = ["tag"]',
  metadata: 'metadata = { key = "value" }',
  with: 'with = { text = "t" }',
}

/** The table of decision 83. */
const ILLEGAL: Readonly<Record<string, string>> = {
  gate: 'children expand check retry output target for_each loop priority tags metadata',
  children: 'expand assignee priority tags metadata output',
  expand: 'assignee priority tags metadata output',
  loop: 'for_each',
  assignee: 'target',
}

const compiled = (...keys: readonly string[]) => {
  const lines = keys.map((key) => RIGHT[key] ?? assert.fail(key))
  const text = ['formula = "main"', '[[steps]]', 'id = "a"', 'title = "A"', ...lines].join('\n')
  const part = 'formula = "part"\n[vars]\ntext = "x"\n[[steps]]\nid = "a"\ntitle = "A"'
  return compileFormula('main', sourcesOf({ main: text, part }))
}

const PAIRS = Object.entries(ILLEGAL).flatMap(([key, others]) =>
  others.split(' ').map((other) => [key, other] as const),
)

test('the table of what does not go together is the one that is decided', () => {
  const { excludes = {} } = shapeOf(Step).annotation.rules ?? {}
  const sorted = (table: Readonly<Record<string, readonly string[]>>) =>
    Object.entries(table)
      .map(([key, others]) => `${key}: ${[...others].sort().join(' ')}`)
      .sort()
  assert.deepEqual(
    sorted(excludes),
    sorted(Object.fromEntries(Object.entries(ILLEGAL).map(([k, v]) => [k, v.split(' ')]))),
  )
})

for (const [key, other] of PAIRS) {
  test(`\`${key}\` with \`${other}\` is refused where the second stands`, () => {
    const { plan, issues } = compiled(key, other)
    assert.equal(plan, undefined)
    assert.deepEqual(
      issues.map((issue) => [issue.key, issue.line]),
      [[`steps[0].${other}`, 6]],
      issueLines({ issues }).join('\n'),
    )
    assert.match(issues[0]?.message ?? '', /does not go with/)
  })
}

test('every pair that is not in the table goes together', () => {
  const keys = Object.keys(RIGHT)
  for (const key of keys) {
    for (const other of keys.slice(keys.indexOf(key) + 1)) {
      const isIllegal = PAIRS.some((pair) => pair.includes(key) && pair.includes(other))
      const lacksExpand = (key === 'with' || other === 'with') && key !== 'expand' && other !== 'expand'
      if (isIllegal || lacksExpand) continue
      assert.deepEqual(issueLines(compiled(key, other)), [], `${key} and ${other}`)
    }
  }
})

test('`with` needs `expand`', () => {
  assert.deepEqual(issueLines(compiled('with')), ['formulas/main.toml:5:1 steps[0].with: `with` needs `expand`'])
})
