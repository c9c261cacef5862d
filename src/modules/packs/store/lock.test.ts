import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fc } from '../../../../test/support/random.ts'
import { formatLock, LockError, type Pin, parseLock, sortPins } from './lock.ts'

const hex = (length: number) =>
  fc.string({ unit: fc.constantFrom(...'0123456789abcdef'), minLength: length, maxLength: length })
const pin: fc.Arbitrary<Pin> = fc.record(
  {
    source: fc.constantFrom('https://example.org/a', 'https://example.org/a//b"c', 'git@example.org:ü/r.git'),
    version: fc.oneof(
      fc.constantFrom('v1.0.0', '2.1'),
      hex(40).map((commit) => `sha:${commit}`),
    ),
    commit: hex(40),
    contentHash: hex(64).map((hash) => `sha256:${hash}`),
    subpath: fc.constantFrom('', 'packs/x', 'a "quoted" one'),
    fetched: fc.constantFrom('2026-05-01T10:00:00.000Z'),
  },
  { noNullPrototype: true },
)

test('a lock is read back as it was written, whatever is pinned, also one source twice', () => {
  fc.assert(
    fc.property(fc.array(pin, { minLength: 1, maxLength: 6 }), (pins) => {
      const text = formatLock(pins) ?? ''
      assert.deepEqual(parseLock(text), sortPins(pins))
      assert.equal(formatLock(parseLock(text)), text)
    }),
  )
})

test('nothing pinned is no file', () => assert.equal(formatLock([]), undefined))

const BROKEN = {
  'no TOML': 'schema = ',
  'another schema': 'schema = 2\n',
  'no schema': '',
  'packs as a list': 'schema = 1\npacks = []\n',
  'an entry without a commit': 'schema = 1\n[packs."x"]\nversion = "1.0"\n',
  'a commit that is none': `schema = 1\n[packs."x"]\nversion="1.0"\ncommit="HEAD"\ncontent_hash="sha256:${'0'.repeat(64)}"\nsubpath=""\nfetched=""\n`,
  'a subpath that leads out': `schema = 1\n[packs."x"]\nversion="1.0"\ncommit="${'0'.repeat(40)}"\ncontent_hash="sha256:${'0'.repeat(64)}"\nsubpath="../x"\nfetched=""\n`,
}
for (const [what, text] of Object.entries(BROKEN))
  test(`a lock with ${what} is refused`, () => assert.throws(() => parseLock(text), LockError))
