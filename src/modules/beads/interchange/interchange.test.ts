import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { describe, test } from 'node:test'
import { fc } from '../../../../test/support/random.ts'
import { type JsonObject, parseExact } from './exact-json.ts'
import { readLine, toBead, withIds } from './interchange.ts'
import { type LineBead, toLine } from './line.ts'
import { LineFault } from './line-values.ts'

const COUNTS = { dependency_count: 0, dependent_count: 0, comment_count: 0 }
const NOW = Date.UTC(2026, 10, 21)
const bead = (line: JsonObject): LineBead => toBead(readLine(JSON.stringify(line)), () => NOW)
const again = (one: LineBead): unknown => JSON.parse(toLine(one, COUNTS))
const without = ({ dependency_count: _1, dependent_count: _2, comment_count: _3, ...rest }: JsonObject) => rest

const LEAST = { id: 'fr-1', title: 'A' }
const WHOLE = {
  ...LEAST,
  _type: 'issue',
  status: 'open',
  issue_type: 'task',
  created_at: '2026-11-21T09:27:21Z',
  updated_at: '2026-11-21T09:27:22Z',
}
const edge = { issue_id: 'fr-1', depends_on_id: 'fr-2', type: 'blocks', created_at: '2026-11-21T09:27:21Z' }

const SAMPLE = readFileSync(new URL('../../../../test/fixtures/interchange/bd-export.jsonl', import.meta.url), 'utf8')
  .split('\n')
  .filter((line) => line !== '')

describe('a line comes out as it went in', () => {
  for (const line of SAMPLE) {
    test(`line ${line.slice(0, 40)} of bd's own export, byte for byte but for the counts`, () => {
      const { dependency_count, dependent_count, comment_count } = JSON.parse(line)
      assert.equal(
        toLine(
          toBead(readLine(line), () => NOW),
          { dependency_count, dependent_count, comment_count },
        ),
        line,
      )
    })
    test(`line ${line.slice(0, 40)} of bd's own export leaves nothing over that we know`, () => {
      const left = toBead(readLine(line), () => NOW).columns.interchange
      assert.deepEqual(
        left === null ? [] : Object.keys(JSON.parse(left).keys),
        line.includes('started_at') ? ['started_at'] : [],
      )
    })
  }

  const CASES: readonly (readonly [string, JsonObject])[] = [
    ['the least that a line can be', LEAST],
    ['a status that we do not have', { ...WHOLE, status: 'blocked' }],
    ['an empty status', { ...WHOLE, status: '' }],
    ['keys that nobody knows', { ...WHOLE, content_hash: 'abc', 'odd key': [1, { a: null }], __proto__x: 1 }],
    [
      'nanoseconds and offsets',
      { ...WHOLE, created_at: '2026-11-21T09:27:21.123456789+02:00', updated_at: '2026-11-21t09:27:22.100z' },
    ],
    ['a time that was never set', { ...WHOLE, closed_at: '0001-01-01T00:00:00Z' }],
    ['a closed bead that does not say when', { ...WHOLE, status: 'closed' }],
    [
      'an open bead that says when it was closed',
      { ...WHOLE, closed_at: '2026-11-21T09:27:22Z', close_reason: 'done' },
    ],
    [
      'null everywhere',
      {
        ...WHOLE,
        description: null,
        labels: null,
        metadata: null,
        dependencies: null,
        comments: null,
        priority: null,
        design: null,
      },
    ],
    ['empty lists and objects', { ...WHOLE, labels: [], metadata: {}, dependencies: [], comments: [], needs: [] }],
    ['labels out of order, and twice', { ...WHOLE, labels: ['b', 'a', 'b', ''] }],
    [
      'metadata of any type',
      { ...WHOLE, metadata: { n: 1, t: true, o: { x: [1] }, z: null, s: 'text', '': 'e', 'bd.notes': 'x' } },
    ],
    [
      'metadata of the service',
      { ...WHOLE, metadata: { 'svc.routed_to': 'a/b', 'svc.attempt': 3, 'svc.kind': 'x', 'svc.outcome': '' } },
    ],
    [
      'metadata under its older names',
      { ...WHOLE, metadata: { 'gc.routed_to': 'a/b', 'gc.kind': 'x', 'gc.attempt': 'many' } },
    ],
    ['older names of keys', { ...LEAST, type: 'bug', parent_id: 'fr-9', sender: 'ann' }],
    ['older names beside the newer ones', { ...WHOLE, type: 'bug', parent: 'fr-9', parent_id: 'fr-8' }],
    ['estimates of other types', { ...WHOLE, estimated_minutes: '90', external_ref: 12, owner: { name: 'ann' } }],
    [
      'edges with more than we know',
      {
        ...WHOLE,
        dependencies: [
          { ...edge, metadata: { a: 1 }, thread_id: 't' },
          { ...edge, depends_on_id: 'fr-0', created_by: '' },
        ],
      },
    ],
    [
      'edges as bd show writes them',
      { ...WHOLE, dependencies: [{ id: 'fr-2', title: 'B', dependency_type: 'blocks', created_at: edge.created_at }] },
    ],
    [
      'the same edge twice, and two parents',
      {
        ...WHOLE,
        dependencies: [
          edge,
          { ...edge, type: 'waits-for' },
          { ...edge, type: 'parent-child' },
          { ...edge, depends_on_id: 'fr-3', type: 'parent-child' },
        ],
      },
    ],
    ['an edge to somewhere else', { ...WHOLE, dependencies: [{ ...edge, depends_on_id: 'external:other:cap' }] }],
    [
      'comments with counted ids, out of order',
      {
        ...WHOLE,
        comments: [
          { id: 2, issue_id: 'fr-1', author: 'ann', text: 'b', created_at: '2026-11-21T09:27:23Z' },
          { id: 1, text: 'a', x: 1 },
          { text: 'c' },
        ],
      },
    ],
    [
      'text that is not well-formed',
      { ...WHOLE, title: '\ud800', metadata: { '\udc00': '\ud800' }, labels: ['\ud800'] },
    ],
    [
      'names of what every object has',
      JSON.parse('{"id":"fr-1","title":"A","__proto__":{"x":1},"constructor":1,"metadata":{"__proto__":"y"}}'),
    ],
    [
      'such names beside an older one',
      JSON.parse('{"id":"fr-1","title":"A","type":"bug","__proto__":1,"constructor":1,"toString":1}'),
    ],
  ]
  for (const [name, line] of CASES) {
    test(name, () => {
      const first = bead(line)
      assert.deepEqual(JSON.stringify(sorted(without(JSON.parse(toLine(first, COUNTS))))), JSON.stringify(sorted(line)))
      // What comes out means the same.
      assert.deepEqual(
        toBead(readLine(toLine(first, COUNTS)), () => NOW),
        first,
      )
    })
  }

  test('numbers as they are written', () => {
    const text =
      '{"id":"fr-1","title":"A","score":1.0,"big":12345678901234567890,"metadata":{"e":1E2,"z":-0,"tiny":0.0000001}}'
    const out = toLine(
      toBead(readLine(text), () => NOW),
      COUNTS,
    )
    for (const part of ['"score":1.0', '"big":12345678901234567890', '"e":1E2', '"z":-0', '"tiny":0.0000001'])
      assert.ok(out.includes(part), `${part} in ${out}`)
  })

  test('whatever it is, as long as it is a bead', () => {
    const extra = fc.dictionary(fc.string(), fc.jsonValue(), { maxKeys: 6 })
    const known = fc.record(
      {
        description: fc.oneof(fc.string(), fc.constant(null)),
        status: fc.constantFrom('open', 'closed', 'in_progress', 'review', ''),
        priority: fc.constantFrom(0, 4, null),
        labels: fc.array(fc.string({ maxLength: 20 }), { maxLength: 4 }),
        metadata: fc.dictionary(
          fc.oneof(fc.string(), fc.constantFrom('svc.attempt', 'gc.outcome', 'bd.owner')),
          fc.jsonValue(),
        ),
        created_at: fc.constantFrom('2026-11-21T09:27:21Z', '2026-11-21T09:27:21.5Z'),
        dependencies: fc.array(
          fc.record(
            {
              depends_on_id: fc.constantFrom('a', 'b', 'c'),
              type: fc.constantFrom('blocks', 'parent-child', 'x', ''),
              created_at: fc.constantFrom('2026-11-21T09:27:21Z', '2026-11-20T09:27:21Z'),
              metadata: fc.jsonValue(),
            },
            { requiredKeys: ['depends_on_id'] },
          ),
          { maxLength: 5 },
        ),
        comments: fc.array(
          fc.record(
            { id: fc.oneof(fc.integer(), fc.string(), fc.constant(null)), text: fc.string() },
            { requiredKeys: ['text'] },
          ),
          { maxLength: 4 },
        ),
        design: fc.jsonValue(),
      },
      { requiredKeys: [] },
    )
    fc.assert(
      fc.property(extra, known, (more, fields) => {
        const text = JSON.stringify({ ...more, ...fields, ...LEAST })
        let made: LineBead
        try {
          made = toBead(readLine(text), () => NOW)
        } catch (error) {
          assert.ok(error instanceof LineFault, String(error))
          return
        }
        const out = parseExact(toLine(made, COUNTS))
        const came = parseExact(text)
        assert.equal(JSON.stringify(sorted(strip(out))), JSON.stringify(sorted(strip(came))))
      }),
      { numRuns: 2000 },
    )
  })
})

const strip = (value: unknown): unknown => {
  assert.ok(typeof value === 'object' && value !== null)
  const { is_blocked: _, ...rest } = { ...without({ ...value }) }
  return rest
}

/** The same JSON with its keys in one order. */
function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted)
  if (typeof value !== 'object' || value === null || JSON.isRawJSON(value)) return value
  return Object.fromEntries(
    Object.entries(value)
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([key, part]) => [key, sorted(part)]),
  )
}

describe('what changed here goes out as it is here', () => {
  const changed = (line: JsonObject, change: (made: LineBead) => LineBead): unknown => {
    const made = again(change(bead(line)))
    assert.ok(typeof made === 'object' && made !== null)
    return without({ ...made })
  }
  const withColumns = (columns: Partial<LineBead['columns']>) => (made: LineBead) => ({
    ...made,
    columns: { ...made.columns, ...columns },
  })

  test('a status, and the rest of the line stays', () => {
    const line = { ...WHOLE, status: 'blocked', mystery: [1] }
    assert.deepEqual(changed(line, withColumns({ status: 'in_progress' })), { ...line, status: 'in_progress' })
  })
  test('a type under its older name', () => {
    assert.deepEqual(changed({ ...LEAST, type: 'bug' }, withColumns({ issue_type: 'chore' })), {
      ...LEAST,
      type: 'chore',
    })
  })
  test('a time, in full', () => {
    const line = { ...WHOLE, created_at: '2026-11-21T09:27:21.123456Z' }
    assert.deepEqual(changed(line, withColumns({ updated_at: NOW + 5 })), {
      ...line,
      updated_at: '2026-11-21T00:00:00.005Z',
    })
  })
  test('one key of metadata, and the others keep their types', () => {
    const line = { ...WHOLE, metadata: { n: 1, o: { a: 1 }, 'gc.routed_to': 'x' } }
    const out = changed(line, (made) => ({
      ...made,
      metadata: { ...made.metadata, n: '2' },
      columns: { ...made.columns, routed_to: 'y' },
    }))
    assert.deepEqual(out, { ...line, metadata: { n: '2', o: { a: 1 }, 'gc.routed_to': 'y' } })
  })
  test('keys of bd that were changed as metadata', () => {
    const line = { ...WHOLE, notes: 'a', estimated_minutes: 90 }
    const out = changed(line, (made) => ({
      ...made,
      metadata: { ...made.metadata, 'bd.notes': 'b', 'bd.estimated_minutes': '5' },
    }))
    assert.deepEqual(out, { ...line, notes: 'b', estimated_minutes: 5 })
  })
  test('an edge that was added, behind those that came with their own keys and order', () => {
    const line = { ...WHOLE, dependencies: [{ ...edge, depends_on_id: 'fr-5', x: 1 }, edge] }
    const more = {
      depends_on_id: 'fr-3',
      type: 'blocks',
      created_at: NOW,
      created_by: null,
      metadata: null,
      interchange: null,
    }
    const out = changed(line, (made) => ({ ...made, edges: [...made.edges, more] }))
    assert.deepEqual(out, {
      ...line,
      dependencies: [...line.dependencies, { ...edge, depends_on_id: 'fr-3', created_at: '2026-11-21T00:00:00Z' }],
    })
  })
  test('a parent, where the line has one by name', () => {
    const line = { ...WHOLE, parent: 'fr-9', dependencies: [{ ...edge, depends_on_id: 'fr-9', type: 'parent-child' }] }
    const out = changed(line, (made) => ({
      ...made,
      columns: { ...made.columns, parent: 'fr-8' },
      edges: made.edges.map((one) => ({ ...one, depends_on_id: 'fr-8' })),
    }))
    assert.deepEqual(out, {
      ...line,
      parent: 'fr-8',
      dependencies: [{ ...edge, depends_on_id: 'fr-8', type: 'parent-child' }],
    })
  })
})

describe('what lines mean here', () => {
  test('words for states that we do not have are open', () => {
    for (const status of ['blocked', 'deferred', 'review', 'pinned', ''])
      assert.equal(bead({ ...WHOLE, status }).columns.status, 'open')
  })
  test('metadata of the service becomes columns, under its older name too', () => {
    const { columns, metadata } = bead({
      ...WHOLE,
      metadata: { 'gc.routed_to': 'x', 'svc.attempt': '2', 'svc.kind': 'k' },
    })
    assert.equal(columns.routed_to, 'x')
    assert.equal(columns.attempt, 2)
    assert.deepEqual(metadata, { 'svc.kind': 'k' })
  })
  test('keys of bd can be seen as metadata', () => {
    assert.deepEqual(bead({ ...WHOLE, notes: 'n', estimated_minutes: 90 }).metadata, {
      'bd.notes': 'n',
      'bd.estimated_minutes': '90',
    })
  })
  test('an edge to another place never blocks', () => {
    const made = bead({ ...WHOLE, dependencies: [{ ...edge, depends_on_id: 'external:x:y' }] })
    assert.equal(made.edges[0]?.type, 'relates-to')
  })
  test('a parent without its edge gets one', () => {
    const made = bead({ ...WHOLE, parent: 'fr-9' })
    assert.equal(made.columns.parent, 'fr-9')
    assert.deepEqual(
      made.edges.map(({ depends_on_id, type }) => [depends_on_id, type]),
      [['fr-9', 'parent-child']],
    )
  })
  test('lines of other types and deleted beads are left out', () => {
    assert.match(readLine('{"_type":"memory","key":"x"}').skip ?? '', /are no beads/)
    assert.match(readLine('{"id":"fr-1","status":"tombstone"}').skip ?? '', /deleted/)
  })

  const FAULTS: readonly (readonly [string, RegExp])[] = [
    ['{"id":"fr-1","ti', /^not JSON: /],
    ['[]', /^not a JSON object$/],
    ['{"title":"x"}', /^id: nothing is no id$/],
    ['{"id":"a b","title":"x"}', /^id: "a b" is no id$/],
    ['{"id":"fr-1"}', /^title: is required$/],
    ['{"id":"fr-1","title":1}', /^title: must be text$/],
    [`{"id":"fr-1","title":"${'x'.repeat(501)}"}`, /^title: is longer than 500/],
    ['{"id":"fr-1","title":"x","priority":9}', /^priority: /],
    ['{"id":"fr-1","title":"x","created_at":"yesterday"}', /^created_at: "yesterday" is no RFC 3339 time$/],
    ['{"id":"fr-1","title":"x","created_at":"9999-12-31T23:59:59-01:00"}', /^created_at: /],
    ['{"id":"fr-1","title":"x","labels":"a"}', /^labels: must be a list of texts$/],
    ['{"id":"fr-1","title":"x","metadata":[]}', /^metadata: must be an object$/],
    ['{"id":"fr-1","title":"x","dependencies":[{}]}', /^dependencies\[0\]\.depends_on_id: is required$/],
    ['{"id":"fr-1","title":"x","comments":[{"id":1}]}', /^comments\[0\]\.text: is required$/],
  ]
  for (const [text, why] of FAULTS) {
    test(`${text.slice(0, 60)} is refused, and says why`, () => {
      assert.throws(
        () => toBead(readLine(text), () => NOW),
        (error: unknown) => error instanceof LineFault && why.test(error.message),
      )
    })
  }

  test('a line can be given other ids, wherever it names beads', () => {
    const line = {
      ...WHOLE,
      parent: 'fr-9',
      needs: ['fr-2', 'tracks:fr-3'],
      dependencies: [edge],
      metadata: { 'svc.root_bead_id': 'fr-7', other: 'fr-7' },
      comments: [{ id: '01a1fd6e-8834-71a3-8d88', issue_id: 'fr-1', text: 'fr-1' }],
    }
    const moved = withIds(readLine(JSON.stringify(line)), (id) => `mc${id.slice(2)}`)
    assert.deepEqual(moved.object, {
      ...line,
      id: 'mc-1',
      parent: 'mc-9',
      needs: ['mc-2', 'tracks:mc-3'],
      dependencies: [{ ...edge, issue_id: 'mc-1', depends_on_id: 'mc-2' }],
      metadata: { 'svc.root_bead_id': 'mc-7', other: 'fr-7' },
      comments: [{ id: 'mc-1:01a1fd6e-8834-71a3-8d88', issue_id: 'mc-1', text: 'fr-1' }],
    })
    assert.equal(moved.id, 'mc-1')
  })
})

describe('a bead without a priority', () => {
  const made = bead(WHOLE)
  const ours: LineBead = { ...made, columns: { ...made.columns, interchange: null } }
  const line = JSON.parse(toLine(ours, COUNTS))

  test('goes out as 2, for bd takes what is left out for the most urgent, and comes back without one', () => {
    assert.deepEqual([line.priority, line.metadata], [2, { 'svc.priority': 'none' }])
    const back = bead(line)
    assert.deepEqual([back.columns.priority, back.metadata, back.columns.interchange], [null, {}, null])
    assert.deepEqual(again(back), line)
  })

  test('has the one that it was given elsewhere, and no mark from then on', () => {
    const back = bead({ ...line, priority: 1 })
    assert.equal(back.columns.priority, 1)
    const later: LineBead = { ...back, columns: { ...back.columns, priority: 2 } }
    const { priority, metadata } = JSON.parse(toLine(later, COUNTS))
    assert.deepEqual([priority, metadata], [2, undefined])
    assert.equal(bead(JSON.parse(toLine(later, COUNTS))).columns.priority, 2)
  })

  test('that came in without one goes out as it came', () => {
    assert.deepEqual(without(again(bead(WHOLE)) as JsonObject), WHOLE)
    const given: LineBead = { ...made, columns: { ...made.columns, priority: 4 } }
    assert.equal(JSON.parse(toLine(given, COUNTS)).priority, 4)
  })
})
