import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import {
  caretOf,
  highest,
  parseConstraint,
  satisfies,
  type Tagged,
  tagVersion,
  unfitSvc,
  VersionError,
} from './pack-version.ts'

const COMMIT = 'a'.repeat(40)
const tags = (...names: string[]): Tagged[] =>
  names.flatMap((tag) => {
    const version = tagVersion(tag)
    return version === undefined ? [] : [{ tag, version, commit: COMMIT }]
  })
const ALL = tags(
  'v0.3.1',
  'v0.4.0',
  '1.0',
  'v1.4.0',
  'v1.4.9',
  'v1.10.0',
  'v2.0.0-rc.1',
  'v2.0.0',
  'v2.1.0-beta.2',
  'v2.1.0-beta.10',
  'latest',
  'v3',
)

const CHOICES: readonly (readonly [constraint: string, tag: string | undefined])[] = [
  ['', 'v2.0.0'],
  ['^1', 'v1.10.0'],
  ['^1.4', 'v1.10.0'],
  ['~1.4', 'v1.4.9'],
  ['1.4.0', 'v1.4.0'],
  ['1.4', 'v1.4.0'],
  ['=1.0', '1.0'],
  ['v1.4.9', 'v1.4.9'],
  ['>=1,<1.10', 'v1.4.9'],
  ['>1.4.0, <=1.4.9', 'v1.4.9'],
  ['^0.3', 'v0.3.1'],
  ['<1', 'v0.4.0'],
  ['^3', undefined],
  ['>=9', undefined],
  ['2.0.0-rc.1', 'v2.0.0-rc.1'],
  ['^2.1.0-beta.1', 'v2.1.0-beta.10'],
  ['^2', 'v2.0.0'],
]
describe('the highest tag that fits is chosen', () => {
  for (const [constraint, tag] of CHOICES) {
    test(`${JSON.stringify(constraint)} is ${tag}`, () =>
      assert.equal(highest(ALL, [parseConstraint(constraint)])?.tag, tag))
  }
  test('several constraints hold together', () => {
    assert.equal(highest(ALL, ['^1', '<1.10'].map(parseConstraint))?.tag, 'v1.4.9')
    assert.equal(highest(ALL, ['^1', '^2'].map(parseConstraint)), undefined)
  })
  test('a pre-release is chosen unasked only where there is nothing else', () => {
    assert.equal(highest(tags('v1.0.0-a', 'v1.0.0-b'), [parseConstraint('')])?.tag, 'v1.0.0-b')
  })
})

for (const text of [
  'main',
  '^',
  '1.x',
  '*',
  '1 - 2',
  '^1 || ^2',
  'sha:abc',
  'sha:',
  '1.2.3.4',
  '>=',
  '^1,',
  ',',
  '1.0.0 && id',
  '^01.2',
]) {
  test(`${JSON.stringify(text)} is no version`, () => assert.throws(() => parseConstraint(text), VersionError))
}

test('a pin fits by its version, or by its commit where one was asked for', () => {
  assert.ok(satisfies({ version: 'v1.4.2', commit: COMMIT }, parseConstraint('^1.4')))
  assert.ok(!satisfies({ version: 'v1.4.2', commit: COMMIT }, parseConstraint('^1.5')))
  assert.ok(satisfies({ version: 'v1.4.2', commit: COMMIT }, parseConstraint(`sha:${COMMIT.toUpperCase()}`)))
  assert.ok(!satisfies({ version: `sha:${COMMIT}`, commit: COMMIT }, parseConstraint('^1')))
  assert.ok(satisfies({ version: `sha:${COMMIT}`, commit: COMMIT }, parseConstraint('')))
})

test('an add writes the series of the release', () => {
  assert.deepEqual(tags('v1.4.2', 'v0.3.1', 'v2.0.0-rc.1').map(caretOf), ['^1.4', '^0.3', '^2.0.0-rc.1'])
})

test('a pack is refused where svcctl is older or newer than it says, with both versions', () => {
  assert.equal(unfitSvc('>=0.1', '0.1.0'), undefined)
  assert.equal(unfitSvc('^0.1', '0.1.9'), undefined)
  assert.equal(unfitSvc('>=0.1', '0.2.0-dev.3'), undefined)
  assert.match(unfitSvc('>=0.2', '0.1.0') ?? '', /needs svcctl >=0\.2, and this is 0\.1\.0/)
  assert.match(unfitSvc('>=1,<2', '2.0.0') ?? '', /this is 2\.0\.0/)
  for (const text of ['', 'newest', `sha:${'a'.repeat(40)}`])
    assert.match(unfitSvc(text, '1.0.0') ?? '', /is a version/)
})
