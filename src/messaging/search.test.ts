import assert from 'node:assert/strict'
import { test } from 'node:test'
import BetterSqlite3 from 'better-sqlite3'
import { codePoint } from '../../test/support/code-point.ts'
import { fc } from '../../test/support/random.ts'
import type { Vocabulary } from '../kernel/vocabulary.ts'
import { searchExpression, spaced } from './search.ts'

const db = new BetterSqlite3(':memory:')
db.exec(`CREATE VIRTUAL TABLE texts USING fts5(text, content='', prefix='1 2 3', tokenize='unicode61 remove_diacritics 2');
  CREATE VIRTUAL TABLE terms USING fts5vocab(texts, instance)`)
const rows = (sql: string, ...values: readonly unknown[]) =>
  db
    .prepare<unknown[], unknown[]>(sql)
    .raw()
    .all(...values)
const vocabulary: Vocabulary = { db: { rows }, table: 'terms' }
const TEXTS = ['Deploy of the café is done', 'the deploy-script failed: "no route"', '你好世界', 'done\0hidden']
for (const [index, text] of TEXTS.entries())
  db.prepare('INSERT INTO texts (rowid, text) VALUES (?, ?)').run(index, spaced(text))

function find(q: string): readonly unknown[] {
  const match = searchExpression(q, vocabulary)
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
  ['DEPLO* rou*', [1]],
  ['deploy-scr*', [1]],
  ['cafés*', []],
  ['zzzz*', []],
] as const)
  test(`"${q.replaceAll('\0', '\\0')}" finds ${found.length === 0 ? 'nothing' : found.join(', ')}`, () => {
    assert.deepEqual(find(q), found)
  })

test('a longer beginning becomes the words there are, where these are few; both find the same', () => {
  const many = Array.from({ length: 100 }, (_, n) => `Runbook${n}`)
  const few = ['runtime', 'RUNTIMES', 'rüntime', 'runtimé']
  for (const [index, text] of [...many, ...few].entries())
    db.prepare('INSERT INTO texts (rowid, text) VALUES (?, ?)').run(100 + index, text)
  assert.equal(searchExpression('Runtime*', vocabulary), '("runtime" OR "runtimes")')
  assert.equal(searchExpression('runbook*', vocabulary), '"runbook"*')
  assert.equal(searchExpression('run*', vocabulary), '"run"*')
  assert.equal(find('runtime*').length, 4)
  assert.equal(find('runbook*').length, 100)
  assert.equal(find('runbook9*').length, 11)
  assert.equal(find('run*').length, 104)
  assert.deepEqual(find('rünti*'), find('runti*'))
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
