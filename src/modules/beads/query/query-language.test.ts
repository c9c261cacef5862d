import assert from 'node:assert/strict'
import { test } from 'node:test'
import { codePoint } from '../../../../test/support/code-point.ts'
import { fc } from '../../../../test/support/random.ts'
import { Problem } from '../../../kernel/problem.ts'
import type { Query, TextField } from './query.ts'
import { formatQuery, parseQuery } from './query-language.ts'

const words = (text: string, open = true, field: 'text' | 'title' | 'description' = 'text'): Query => ({
  kind: 'words',
  field,
  text,
  open,
})
const oneOf = (field: TextField, ...values: string[]): Query => ({ kind: 'one-of', field, values })
const has = (what: TextField): Query => ({ kind: 'has', what })
const not = (part: Query): Query => ({ kind: 'not', part })
const DAY_MS = 86_400_000

const UNDERSTOOD: readonly (readonly [string, Query])[] = [
  ['cache', words('cache')],
  ['"cache avatar"', words('cache avatar', false)],
  ["'it is'", words('it is', false)],
  ['"cache av"*', words('cache av', true)],
  ['title~cach', words('cach', true, 'title')],
  ['title:"log in"', words('log in', false, 'title')],
  ['title="log in"', oneOf('title', 'log in')],
  ['text=cache', words('cache')],
  ['status=open', oneOf('status', 'open')],
  ['STATUS = Open , in_progress', oneOf('status', 'open', 'in_progress')],
  ['status!=closed', not(oneOf('status', 'closed'))],
  ['type=bug', oneOf('issue_type', 'bug')],
  ['issue_type:bug,chore', oneOf('issue_type', 'bug', 'chore')],
  ['assignee=none', not(has('assignee'))],
  ['assignee="none"', oneOf('assignee', 'none')],
  ['assignee=none,ann', { kind: 'or', parts: [oneOf('assignee', 'ann'), not(has('assignee'))] }],
  ['assignee!=ann', not(oneOf('assignee', 'ann'))],
  ['assignee~work', { kind: 'contains', field: 'assignee', text: 'work' }],
  ['assignee=shop/worker-1', oneOf('assignee', 'shop/worker-1')],
  ['priority<2', { kind: 'number', field: 'priority', op: '<', value: 2 }],
  ['priority=none', not({ kind: 'has', what: 'priority' })],
  ['attempt >= 3', { kind: 'number', field: 'attempt', op: '>=', value: 3 }],
  ['label:urgent', { kind: 'label', label: 'urgent' }],
  ['label=hold:mayor', { kind: 'label', label: 'hold:mayor' }],
  ['label=none', not({ kind: 'has', what: 'label' })],
  ['metadata.team=core', { kind: 'metadata', key: 'team', values: ['core'] }],
  ['metadata.svc.routed_to!=a', not({ kind: 'metadata', key: 'svc.routed_to', values: ['a'] })],
  ['metadata."a key"=""', { kind: 'metadata', key: 'a key', values: [''] }],
  ['metadata.team=none', not({ kind: 'has-metadata', key: 'team' })],
  ['metadata.team~or', { kind: 'metadata-contains', key: 'team', text: 'or' }],
  ['has:metadata.Team', { kind: 'has-metadata', key: 'Team' }],
  ['has:assignee', has('assignee')],
  ['has:root', has('root_bead_id')],
  ['has:created', { kind: 'has', what: 'created_at' }],
  ['description=none', not(has('description'))],
  ['is:blocked', { kind: 'state', state: 'blocked' }],
  ['is:open', oneOf('status', 'open')],
  ['ephemeral=true', { kind: 'state', state: 'ephemeral' }],
  ['is_blocked = FALSE', not({ kind: 'state', state: 'blocked' })],
  ['is!=ready', not({ kind: 'state', state: 'ready' })],
  ['blocked-by:al-1', { kind: 'edge', edge: 'blocked-by', id: 'al-1' }],
  ['child-of=al-1.2', { kind: 'edge', edge: 'child-of', id: 'al-1.2' }],
  ['created>7d', { kind: 'time', field: 'created_at', op: '>', value: { ago_ms: 7 * DAY_MS } }],
  ['updated<1h30m', { kind: 'time', field: 'updated_at', op: '<', value: { ago_ms: 5_400_000 } }],
  ['closed=2026-11-01', { kind: 'time', field: 'closed_at', op: '=', value: { day_ms: Date.UTC(2026, 10, 1) } }],
  [
    'closed_at<=2026-11-01T10:00:00+02:00',
    { kind: 'time', field: 'closed_at', op: '<=', value: { at_ms: Date.UTC(2026, 10, 1, 8) } },
  ],
  ['closed=none', not({ kind: 'has', what: 'closed_at' })],
  ['a and b OR c', { kind: 'or', parts: [{ kind: 'and', parts: [words('a'), words('b')] }, words('c')] }],
  ['a AND (b OR NOT c)', { kind: 'and', parts: [words('a'), { kind: 'or', parts: [words('b'), not(words('c'))] }] }],
  ['NOT(a)', not(words('a'))],
  ['android', words('android')],
  [
    'status=open AND (priority<2 OR label:urgent) AND created>7d',
    {
      kind: 'and',
      parts: [
        oneOf('status', 'open'),
        {
          kind: 'or',
          parts: [
            { kind: 'number', field: 'priority', op: '<', value: 2 },
            { kind: 'label', label: 'urgent' },
          ],
        },
        { kind: 'time', field: 'created_at', op: '>', value: { ago_ms: 7 * DAY_MS } },
      ],
    },
  ],
]

for (const [source, query] of UNDERSTOOD) {
  test(`understands ${source}`, () => {
    assert.deepEqual(parseQuery(source), query)
    assert.deepEqual(parseQuery(formatQuery(query)), query)
  })
}

const MISTAKES: readonly (readonly [string, string])[] = [
  ['', 'column 1: expected a condition, a word or ('],
  ['  ', 'column 3: expected a condition, a word or ('],
  ['AND a', 'column 1: expected a condition, a word or ('],
  ['a AND', 'column 6: expected a condition, a word or ('],
  ['a b', 'column 3: expected AND, OR or the end'],
  ['(a', 'column 3: expected AND, OR or )'],
  ['a)', 'column 2: expected AND, OR or the end'],
  ['NOT', 'column 4: expected a condition, a word or ('],
  ['statu=open', 'column 1: expected a field, not "statu" (quote it to look for it as text)'],
  ['http://x', 'column 1: expected a field, not "http" (quote it to look for it as text)'],
  ['status=opn', 'column 8: expected one of open, in_progress, closed'],
  ['status<open', 'column 7: expected one of = != ~ : after status'],
  ['status=', 'column 8: expected a value'],
  ['status=open,', 'column 13: expected a value'],
  ['"open', 'column 1: expected a closing "'],
  ['priority=high', 'column 10: expected a number or none'],
  ['priority<1,2', 'column 12: expected one value after <'],
  ['priority~1', 'column 9: expected one of = != : < <= > >= after priority'],
  ['created=7d', 'column 8: expected one of < <= > >= before a duration'],
  ['created>soon', 'column 9: expected a duration (7d), a day (2026-11-01) or a time (2026-11-01T09:00:00Z)'],
  ['created>2026-02-30', 'column 9: expected a duration (7d), a day (2026-11-01) or a time (2026-11-01T09:00:00Z)'],
  ['is:lost', 'column 4: expected one of blocked, ready, claimed, deferred, ephemeral, open, in_progress, closed'],
  ['has:what', 'column 5: expected a field such as assignee, label, parent or metadata.<key>'],
  ['metadata.=x', 'column 1: expected a field, not "metadata." (quote it to look for it as text)'],
  ['"!!"', 'column 1: expected a word with a letter or a digit'],
  ['label="a"*', 'column 7: expected a text without a star: only words are looked for by their beginning'],
  [`${'('.repeat(21)}a${')'.repeat(21)}`, 'column 22: expected at most 20 parentheses and NOTs inside each other'],
  [Array(101).fill('is:open').join(' OR '), 'column 1101: expected at most 100 conditions'],
  [Array(33).fill('a').join(' OR '), 'column 161: expected at most 32 words to look for'],
  ['a'.repeat(4_097), 'column 4097: expected at most 4096 characters'],
]

for (const [source, message] of MISTAKES) {
  test(`says what is wrong with ${JSON.stringify(source.slice(0, 40))}`, () => {
    assert.throws(
      () => parseQuery(source),
      (error) => {
        assert.ok(error instanceof Problem)
        assert.equal(error.status, 422)
        assert.deepEqual(error.options.errors, [{ location: 'query.q', message }])
        return true
      },
    )
  })
}

const anyText = fc.string({ unit: 'grapheme', minLength: 1, maxLength: 12 })
const someText = anyText.filter((text) => /[\p{L}\p{N}]/u.test(text))
const column = fc.constantFrom<TextField>('id', 'issue_type', 'assignee', 'from', 'parent', 'rig', 'close_reason')
const values = fc.array(fc.string({ unit: 'grapheme', maxLength: 8 }), { minLength: 1, maxLength: 3 })
const leaf: fc.Arbitrary<Query> = fc.oneof(
  fc.record({ kind: fc.constant('one-of' as const), field: column, values }),
  fc.record({ kind: fc.constant('contains' as const), field: column, text: anyText }),
  fc.record({ kind: fc.constant('has' as const), what: column }),
  fc.record({ kind: fc.constant('label' as const), label: anyText }),
  fc.record({ kind: fc.constant('metadata' as const), key: anyText, values }),
  fc.record({ kind: fc.constant('metadata-contains' as const), key: anyText, text: anyText }),
  fc.record({ kind: fc.constant('has-metadata' as const), key: anyText }),
  fc.record({ kind: fc.constant('edge' as const), edge: fc.constantFrom('blocks' as const, 'child-of'), id: anyText }),
  fc.record({ kind: fc.constant('state' as const), state: fc.constantFrom('ready' as const, 'claimed') }),
  fc.record({
    kind: fc.constant('number' as const),
    field: fc.constantFrom('priority' as const, 'attempt'),
    op: fc.constantFrom('=' as const, '<', '>='),
    value: fc.nat(1_000),
  }),
  fc.record({
    kind: fc.constant('time' as const),
    field: fc.constantFrom('created_at' as const, 'closed_at'),
    op: fc.constantFrom('<' as const, '>='),
    value: fc.oneof(
      fc.record({ at_ms: fc.integer({ min: 0, max: 4e12 }) }),
      fc.record({ day_ms: fc.integer({ min: 0, max: 40_000 }).map((day) => day * DAY_MS) }),
      fc.record({ ago_ms: fc.nat(1e12) }),
    ),
  }),
  fc.record({
    kind: fc.constant('words' as const),
    field: fc.constantFrom('text' as const, 'title', 'description'),
    text: someText,
    open: fc.boolean(),
  }),
)
const { tree } = fc.letrec<{ tree: Query }>((tie) => ({
  tree: fc.oneof(
    { maxDepth: 4, depthIdentifier: 'query' },
    leaf,
    tie('tree').map(not),
    fc.record({
      kind: fc.constantFrom('and' as const, 'or'),
      parts: fc.array(tie('tree'), { minLength: 2, maxLength: 3 }),
    }),
  ),
}))

test('a query that is written out and read again is the same query', () => {
  fc.assert(
    fc.property(tree, (query) => {
      const source = formatQuery(query)
      fc.pre(source.length <= 4_096 && (source.match(/~/g)?.length ?? 0) < 5)
      // Without the null prototypes of the generator.
      assert.deepEqual(parseQuery(source), structuredClone(query))
    }),
    { numRuns: 2_000 },
  )
})

test('whatever is written, the answer is a query or a 422 with a column inside the text', () => {
  const pieces = fc.constantFrom(
    ...['AND', 'or', 'NOT', '(', ')', '"', "'", '\\', '=', '!=', '<', '~', ':', ',', '*', ' ', '.', 'status', 'open'],
    ...[
      'metadata.',
      'created',
      '7d',
      '2026-11-01',
      'has',
      'is',
      'label',
      'title',
      'none',
      'é',
      '\u0000',
      '💡',
      '\ud800',
    ],
  )
  const sources = fc.oneof(
    fc.string({ unit: codePoint }),
    fc.array(pieces, { maxLength: 30 }).map((parts) => parts.join('')),
    fc.array(pieces, { maxLength: 30 }).map((parts) => parts.join(' ')),
  )
  fc.assert(
    fc.property(sources, (source) => {
      try {
        const query = parseQuery(source)
        assert.deepEqual(parseQuery(formatQuery(query)), query)
      } catch (error) {
        assert.ok(error instanceof Problem && error.status === 422, String(error))
        const [, column] = /^column (\d+): expected ./.exec(error.options.errors?.[0]?.message ?? '') ?? []
        assert.ok(Number(column) >= 1 && Number(column) <= source.length + 1, error.message)
      }
    }),
    { numRuns: 5_000 },
  )
})
