import assert from 'node:assert/strict'
import { test } from 'node:test'
import { tooMuch } from './tree-count.ts'

const LIMITS = { entries: 4, depth: 3, bytes: 30 * 1024 * 1024 }
const line = (path: string, size: number | '-', type = 'blob'): string =>
  `100644 ${type} ${'a'.repeat(40)} ${String(size).padStart(7)}\t${path}\0`

const LISTINGS: readonly (readonly [what: string, listing: string, why: RegExp | undefined])[] = [
  ['nothing', '', undefined],
  ['as much as is allowed', line('a', 15_000_000) + line('b/c', 15_000_000) + line('d', 0), undefined],
  ['a submodule, which is not fetched', line('module', '-', 'commit'), undefined],
  ['one file too many', line('a', 0) + line('b', 0) + line('c', 0) + line('d', 0) + line('e', 0), /more than 4 files/],
  ['directories count too', line('a/b/c', 0) + line('d/e', 0), /more than 4 files/],
  ['too many bytes', line('a', 16_000_000) + line('b', 16_000_000), /more than 30 MiB/],
  ['one file that is too large', line('huge\nname', 17_000_000), /"huge\\nname" of the pack is larger than 16 MiB/],
  ['too deep', line('a/b/c/d/e', 0), /more than 3 levels/],
]
for (const [what, listing, why] of LISTINGS) {
  test(`what a commit would write is counted: ${what}`, () => {
    const found = tooMuch(listing, LIMITS)
    if (why === undefined) assert.equal(found, undefined)
    else assert.match(String(found), why)
  })
}
