import assert from 'node:assert/strict'
import { test } from 'node:test'
import BetterSqlite3 from 'better-sqlite3'
import { codePoint } from '../../test/support/code-point.ts'
import { fc } from '../../test/support/random.ts'
import { searchExpression, spaced } from './search.ts'

const db = new BetterSqlite3(':memory:')
db.exec(`CREATE VIRTUAL TABLE texts USING fts5(text, content='', tokenize='unicode61 remove_diacritics 2')`)
const TEXTS = ['Deploy of the café is done', 'the deploy-script failed: "no route"', '你好世界', 'done\0hidden']
for (const [index, text] of TEXTS.entries())
  db.prepare('INSERT INTO texts (rowid, text) VALUES (?, ?)').run(index, spaced(text))

function find(q: string): readonly unknown[] {
  const match = searchExpression(spaced(q))
  if (match === undefined) return []
  return db.prepare('SELECT rowid FROM texts WHERE texts MATCH ? ORDER BY rowid').pluck().all(match)
}

for (const [q, found] of [
  ['deploy', [0, 1]],
  ['DEPLOY done', [0]],
  ['dep* fail*', [1]],
  ['cafe', [0]],
  ['deploy-script', [1]],
  ['script-deploy', []],
  ['deploy - route', [1]],
  ['"no', [1]],
  ['世界', [2]],
  ['世好', [2]],
  ['世人', []],
  ['hidden', [3]],
  ['done\0hidden', [3]],
  ['NOT done', []],
  ['text:done', []],
  ['---', []],
  ['*', []],
  ['d*', [0, 1, 3]],
] as const)
  test(`"${q.replaceAll('\0', '\\0')}" finds ${found.length === 0 ? 'nothing' : found.join(', ')}`, () => {
    assert.deepEqual(find(q), found)
  })

test('no input is a syntax error', () => {
  const nasty = fc.constantFrom(
    '"',
    '*',
    '(',
    ')',
    ':',
    '^',
    '-',
    '+',
    'AND',
    'NOT',
    'OR',
    'NEAR',
    '{',
    '}',
    '\0',
    'a',
    ' ',
  )
  fc.assert(fc.property(fc.string({ unit: codePoint }), (q) => void find(q)))
  fc.assert(fc.property(fc.array(nasty, { maxLength: 40 }), (parts) => void find(parts.join(''))))
  find(Array.from({ length: 500 }, () => 'a').join(' '))
})
