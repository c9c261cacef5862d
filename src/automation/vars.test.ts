/** Variables: who gives a value, and whether it is what the declaration says. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { effortOf } from '../../test/support/effort.ts'
import { parseVarText } from '../contract/automation/var-text.ts'
import { checkVars, readVarTexts, type VarDeclarations } from './vars.ts'

const DECLARED: VarDeclarations = {
  tag: { type: 'string', required: true, pattern: 'v\\d+' },
  rounds: { type: 'int', default: 2 },
  loud: { type: 'bool' },
  parts: { type: 'json', default: [] },
  size: { type: 'string', enum: ['s', 'm'], default: 's' },
}

const messages = (...args: Parameters<typeof checkVars>) =>
  (checkVars(...args).issues ?? []).map(
    ({ name, message, hint }) => `${name}: ${message}${hint === undefined ? '' : ` (${hint})`}`,
  )

test('the caller goes before the rig, the rig before the default, and what nobody gives is null', () => {
  assert.deepEqual(checkVars(DECLARED, { tag: 'v1' }).values, {
    tag: 'v1',
    rounds: 2,
    loud: null,
    parts: [],
    size: 's',
  })
  assert.deepEqual(checkVars(DECLARED, { tag: 'v1', rounds: 5 }, { rounds: 3, size: 'm', other: 1 }).values, {
    tag: 'v1',
    rounds: 5,
    loud: null,
    parts: [],
    size: 'm',
  })
  assert.deepEqual(checkVars(DECLARED, {}, { tag: 'v2' }).values?.['tag'], 'v2')
})

test('all that is wrong is said at once', () => {
  assert.deepEqual(messages(DECLARED, { tga: 'v1', rounds: '2', loud: 'yes', size: 'xl' }), [
    'tga: there is no variable `tga` (did you mean `tag`?)',
    'tag: is required, and nobody gives it',
    'rounds: must be a whole number, not text',
    'loud: must be `true` or `false`, not text',
    'size: `"xl"` is not one of `"s"`, `"m"`',
  ])
  assert.deepEqual(messages(DECLARED, { tag: 'v1' }, { rounds: 'x' }), [
    'rounds: must be a whole number, not text (from `formula_vars` of the rig)',
  ])
})

test('types are enforced, and a given null is a value', () => {
  for (const rounds of [1.5, null, [], {}, true, 2 ** 53])
    assert.equal(messages(DECLARED, { tag: 'v1', rounds }).length, 1)
  for (const parts of [null, 1.5, 'x', [1], { a: [] }]) assert.deepEqual(messages(DECLARED, { tag: 'v1', parts }), [])
})

test('a pattern is over the whole value', () => {
  for (const tag of ['v1', 'v123']) assert.deepEqual(messages(DECLARED, { tag }), [])
  for (const tag of ['', 'v', 'xv1', 'v1x', 'v1\n', 'a\nv1\nb'])
    assert.equal(messages(DECLARED, { tag }).length, 1, tag)
  const either: VarDeclarations = { a: { type: 'string', pattern: 'x|y' } }
  assert.deepEqual(messages(either, { a: 'y' }), [])
  assert.equal(messages(either, { a: 'xz' }).length, 1)
  assert.deepEqual(messages({ a: { type: 'string', pattern: '.' } }, { a: '😀' }), [])
})

test('a pattern that tries for ever is cut off, and those behind it still answer', () => {
  for (const [pattern, value] of [
    ['(a+)+b', 'a'.repeat(60)],
    ['(a|a)*c', 'a'.repeat(60)],
    ['(.*)*x', 'y'.repeat(60)],
    ['([a-z]+)*\\d', 'z'.repeat(60)],
  ] as const) {
    const { result, ms } = effortOf(() => messages({ a: { type: 'string', pattern } }, { a: value }))
    assert.match(result.join(), /takes longer than 50 ms/)
    assert.ok(ms < 5_000, `${ms} ms`)
    assert.deepEqual(messages(DECLARED, { tag: 'v1' }), [])
  }
  assert.match(messages(DECLARED, { tag: `v${'1'.repeat(70_000)}` }).join(), /too many for its pattern/)
})

test('names of prototypes are declared or unknown like any other', () => {
  assert.deepEqual(messages({}, { constructor: 1, toString: 2 }), [
    'constructor: there is no variable `constructor`',
    'toString: there is no variable `toString`',
  ])
})

test('texts are read by the declared type', () => {
  assert.deepEqual(readVarTexts(DECLARED, { tag: '1', rounds: '7', loud: 'true', parts: '[1]', size: 's' }).values, {
    tag: '1',
    rounds: 7,
    loud: true,
    parts: [1],
    size: 's',
  })
  assert.deepEqual(readVarTexts(DECLARED, { rounds: 3, parts: ['x'] }).values, { rounds: 3, parts: ['x'] })
  const { issues } = readVarTexts(DECLARED, { rounds: '1.5', loud: 'yes', parts: 'x' })
  assert.deepEqual(
    issues?.map(({ name, message }) => `${name}: ${message}`),
    [
      'rounds: `1.5` is not a whole number',
      'loud: `yes` is neither `true` nor `false`',
      'parts: `x` is not JSON: a text stands in quotes',
    ],
  )
  for (const bad of ['', ' 1', '1e3', '0x1', '9'.repeat(17), '--1'])
    assert.throws(() => parseVarText('int', bad), RangeError)
  assert.equal(parseVarText('int', '-12'), -12)
})
