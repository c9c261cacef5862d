/** Texts and patterns of one document or request have their time together: many of them do not add up. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { inBudget } from './bounded.ts'
import { compileFormula } from './formula.ts'
import { renderText, sketchOf, TemplateFailure } from './language.ts'
import { checkVars, type VarDeclarations } from './vars.ts'

/** A machine that is busy with other things does not count; what is measured is far from it: half a minute without a bound. */
const MOST_CPU_MS = 3_000

function cpuOf<T>(work: () => T): { readonly value: T; readonly ms: number } {
  const before = process.threadCpuUsage()
  const value = work()
  const { user, system } = process.threadCpuUsage(before)
  return { value, ms: (user + system) / 1_000 }
}

const slow = (at: number) => `${'a'.repeat(40)}${at}!`
const SLOW_PATTERN = '(a+)+\\d+'
const SLOW_TEXT = '{% for i in (1..6000) %}{% for j in (1..50) %}{% assign x = i %}{% endfor %}{% endfor %}'

const compiledOf = (text: string, others: Readonly<Record<string, string>> = {}) =>
  compileFormula('main', {
    formula: (name) => {
      const source = name === 'main' ? text : others[name]
      return source === undefined ? undefined : { text: source, file: `${name}.toml`, dir: '/formulas' }
    },
    fragment: () => undefined,
    formulaNames: () => ['main', ...Object.keys(others)],
    fragmentNames: () => [],
  })

test('many slow patterns in one formula take no longer than a few, and each of them is an issue', () => {
  const vars = Array.from(
    { length: 80 },
    (_, at) => `[vars.v${at}]\npattern = '${SLOW_PATTERN}'\ndefault = "${slow(at)}"\n`,
  )
  const { value, ms } = cpuOf(() => compiledOf(`formula = "main"\n${vars.join('')}[[steps]]\nid = "a"\ntitle = "A"\n`))
  assert.equal(value.issues.length, 80)
  assert.ok(ms < MOST_CPU_MS, `${ms} ms`)
  assert.ok(value.issues.some(({ message }) => message.includes('is not tried')))
})

test('many slow patterns of what steps hand to a formula, or of a request, take no longer than a few', () => {
  const names = Array.from({ length: 60 }, (_, at) => `w${at}`)
  const inner = names.map((name) => `[vars.${name}]\npattern = '${SLOW_PATTERN}'\n`).join('')
  const given = names.map((name, at) => `${name} = "${slow(at + 1_000)}"`).join('\n')
  const main = `formula = "main"\n[[steps]]\nid = "a"\nexpand = "inner"\n[steps.with]\n${given}\n`
  const compiled = cpuOf(() =>
    compiledOf(main, { inner: `formula = "inner"\n${inner}[[steps]]\nid = "a"\ntitle = "A"\n` }),
  )
  assert.equal(compiled.value.issues.length, 60)
  const declared: VarDeclarations = Object.fromEntries(
    names.map((name) => [name, { type: 'string', pattern: SLOW_PATTERN }]),
  )
  const values = Object.fromEntries(names.map((name, at) => [name, slow(at + 2_000)]))
  const checked = cpuOf(() => checkVars(declared, values))
  assert.equal(checked.value.issues?.length, 60)
  for (const { ms } of [compiled, checked]) assert.ok(ms < MOST_CPU_MS, `${ms} ms`)
})

test('many slow texts within one budget take no longer than a few; those behind it are refused, not cut', () => {
  const { value, ms } = cpuOf(() =>
    inBudget(100, () =>
      Array.from({ length: 60 }, () => {
        try {
          return renderText(SLOW_TEXT, {})
        } catch (error) {
          assert.ok(error instanceof TemplateFailure)
          return error.message
        }
      }),
    ),
  )
  assert.ok(ms < MOST_CPU_MS, `${ms} ms`)
  assert.match(value.at(-1) ?? '', /have used their 100 ms of processor time together/)
  // Another budget has its own time, and one within it no more than it.
  assert.equal(
    inBudget(100, () => renderText('{{ a }}', { a: 1 })),
    '1',
  )
})

test('a title that is not known yet is shown without its template', () => {
  for (const [template, sketch] of [
    ["Build: {{ task | default: bead.title | default: 'a change' }}", 'Build: …'],
    ['{% if x %}Yes {{ x }}{% else %}No{% endif %}', 'Yes …No'],
    ['{{ a }}{{ b }}', '…'],
    ['plain', 'plain'],
    [`x${'{{'.repeat(100_000)}`, 'x…'],
  ] as const)
    assert.equal(sketchOf(template), sketch)
})

test('the `timeout` of a formula holds where a step expands it, unless the step says another', () => {
  const inner = 'formula = "inner"\ntimeout = "2s"\n[[steps]]\nid = "a"\ntitle = "A"\n'
  const main =
    'formula = "main"\n[[steps]]\nid = "a"\nexpand = "inner"\n[[steps]]\nid = "b"\nexpand = "inner"\ntimeout = "1h"\n'
  const { plan } = compiledOf(main, { inner })
  assert.deepEqual(
    plan?.steps.map(({ timeout }) => timeout),
    [2_000, 3_600_000],
  )
})
