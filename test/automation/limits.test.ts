/** Sizes, depths and hostile files: a plan or a list of issues comes of each of them, soon. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { compileFormula } from '../../src/automation/formula.ts'
import { renderText } from '../../src/automation/language.ts'
import { parseOrder } from '../../src/automation/order.ts'
import { effortOf } from '../support/effort.ts'
import { issueLines, sourcesOf } from './support.ts'

const SOON_MS = 5_000

function compiled(texts: Readonly<Record<string, string>>, fragments: Readonly<Record<string, string>> = {}) {
  const { result, ms } = effortOf(() => compileFormula('main', sourcesOf(texts, fragments)))
  assert.ok(ms < SOON_MS, `it took ${ms} ms`)
  assert.equal(result.plan === undefined, result.issues.length > 0)
  return result
}

const steps = (count: number, more: (index: number) => string = () => '') =>
  Array.from({ length: count }, (_, index) => `[[steps]]\nid = "s${index}"\ntitle = "S"\n${more(index)}`).join('\n')

test('a formula has 1,000 steps, and not one more', () => {
  const { plan } = compiled({ main: `formula = "main"\n${steps(1_000)}` })
  assert.equal(plan?.steps.length, 1_000)
  const more = compiled({ main: `formula = "main"\n${steps(1_001)}` })
  assert.deepEqual(issueLines(more), [
    'formulas/main.toml:1:1 steps: has 1001 steps with what it expands: at most 1000',
  ])
})

test('steps that are expanded are counted, however often and however deep', () => {
  const twice = (name: string, inner: string) =>
    `formula = "${name}"\n${['x', 'y', 'z'].map((id) => `[[steps]]\nid = "${id}"\nexpand = "${inner}"`).join('\n')}`
  const texts = {
    main: twice('main', 'a'),
    a: twice('a', 'b'),
    b: twice('b', 'c'),
    c: twice('c', 'd'),
    d: twice('d', 'e'),
    e: twice('e', 'f'),
    f: `formula = "f"\n${steps(200)}`,
  }
  const { issues } = compiled(texts)
  assert.deepEqual(
    issues.map(({ message }) => message),
    ['has 146892 steps with what it expands: at most 1000'],
  )
})

test('a list of a thousand steps that all need those before them is checked in a moment', () => {
  const needs = (index: number) =>
    index === 0
      ? ''
      : `needs = [${Array.from({ length: Math.min(index, 20) }, (_, back) => `"s${index - back - 1}"`).join(', ')}]\ndescription = "{{ steps.s0.outcome }}"`
  const { plan } = compiled({ main: `formula = "main"\n${steps(1_000, needs)}` })
  assert.equal(plan?.steps.length, 1_000)
})

test('circles without number are cut off', () => {
  const needs = (index: number) =>
    `needs = ["s${(index + 1) % 500}", "s${(index + 7) % 500}", "s${(index + 31) % 500}"]`
  const { issues } = compiled({ main: `formula = "main"\n${steps(500, needs)}` })
  assert.ok(issues.length > 0 && issues.length <= 20, String(issues.length))
})

test('a file of more than 256 KiB is refused before it is read', () => {
  const { issues } = compiled({ main: `formula = "main"\ndescription = "${'x'.repeat(300_100)}"` })
  assert.deepEqual(
    issues.map(({ message }) => message),
    ['is too large: it has 294 KiB, and 256 KiB are the limit'],
  )
})

const NESTED: readonly (readonly [string, (depth: number) => string])[] = [
  ['lists of a variable', (depth) => `[vars.a]\ndefault = ${'['.repeat(depth)}${']'.repeat(depth)}`],
  ['tables of a variable', (depth) => `[vars.a]\ndefault = ${'{a='.repeat(depth)}1${'}'.repeat(depth)}`],
  ['steps of steps', (depth) => `steps = ${'[{id="a",children='.repeat(depth)}[]${'}]'.repeat(depth)}`],
  ['keys with dots', (depth) => `vars.${'a.'.repeat(depth)}b = 1`],
  [
    'values for an expansion',
    (depth) => `[[steps]]\nid="a"\nexpand="main"\nwith = ${'{a='.repeat(depth)}1${'}'.repeat(depth)}`,
  ],
]
for (const [what, text] of NESTED) {
  test(`${what} may be nested as deep as they like`, () => {
    for (const depth of [10, 100, 1_000, 5_000, 20_000]) {
      const body = text(depth)
      if (body.length > 250_000) continue
      compiled({ main: `formula = "main"\n${body}` })
      parseOrder('main', { text: `[order]\nexec = "x"\ntrigger = "manual"\n${body}`, file: 'o.toml', dir: '/' })
    }
  })
}

test('templates of nothing but brackets, loops and filters are checked and refused in a moment', () => {
  for (const text of [
    '{{'.repeat(10_000),
    '{% if a %}'.repeat(2_000),
    `{{ bead${'.a'.repeat(5_000)} }}`,
    `{{ bead${'[bead'.repeat(500)}${']'.repeat(500)} }}`,
    `{{ bead.title ${'| upcase '.repeat(5_000)} }}`,
    `{{ bead.id ${'and bead.id '.repeat(5_000)} }}`,
    '{%'.repeat(10_000),
    `{% liquid ${'if true\n'.repeat(2_000)} %}`,
    `{{ ${'('.repeat(5_000)} }}`,
  ]) {
    const main = `formula = "main"\n[[steps]]\nid = "a"\ntitle = "A"\ndescription = ''' ${text} '''`
    compiled({ main }, { a: text })
    const rendered = `formula = "main"\n[[steps]]\nid = "a"\ntitle = "A"\ndescription = "{% render 'a' %}"`
    compiled({ main: rendered }, { a: text })
    const condition = `formula = "main"\n[[steps]]\nid = "a"\ntitle = "A"\ncondition = ''' ${text.slice(0, 4_000)} '''`
    compiled({ main: condition })
  }
})

test('fragments that render each other by the power of two are checked in a moment', () => {
  const fragments = Object.fromEntries(
    Array.from({ length: 40 }, (_, index) => [`f${index}`, `{% render 'f${index + 1}' %}{% render 'f${index + 1}' %}`]),
  )
  const main = `formula = "main"\n[[steps]]\nid = "a"\ntitle = "A"\ndescription = "{% render 'f0' %}"`
  const { plan } = compiled({ main }, { ...fragments, f40: 'end' })
  assert.equal(Object.keys(plan?.fragments ?? {}).length, 41)
  // Rendering is cut off by its limit.
  assert.throws(() => renderText("{% render 'f0' %}", {}, plan?.fragments ?? {}), /limit of 50 ms/)
})
