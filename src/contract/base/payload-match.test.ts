import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { fc } from '../../../test/support/random.ts'
import { envelopeTest, matchesPayload, type PayloadMatch, parsePayloadMatch, textOf } from './payload-match.ts'

function matchOf(text: string): PayloadMatch {
  const match = parsePayloadMatch(text)
  assert.ok(match !== undefined, text)
  return match
}

const envelopeOf = (payload: unknown) =>
  JSON.stringify({ seq: 1, type: 'a.b', ts: '', actor: 'x', message: 'env="prod"', payload })

const payload = {
  env: 'prod',
  count: 2,
  ratio: 0.5,
  tiny: 1e-7,
  huge: 1e21,
  on: true,
  off: false,
  none: null,
  empty: '',
  list: [1, { a: 2 }],
  'dotted.key': 'whole',
  bead: {
    id: 'b-1',
    type: 'task',
    metadata: { 'root.id': 'r-9', root: { id: 'shadowed', other: 'o' } },
    tags: { z: 1, a: [true, null] },
  },
}

const CASES: readonly [string, boolean][] = [
  ['env=prod', true],
  ['env=Prod', false],
  ['env= prod', false],
  ['env=pro', false],
  ['missing=', false],
  ['count=2', true],
  ['count=2.0', false],
  ['ratio=0.5', true],
  ['tiny=0.0000001', true],
  ['huge=1000000000000000000000', true],
  ['on=true', true],
  ['off=false', true],
  ['none=null', true],
  ['empty=', true],
  ['list=[1,{"a":2}]', true],
  ['list.0=1', false],
  ['list.length=2', false],
  ['dotted.key=whole', true],
  ['bead.type=task', true],
  ['type=task', false],
  ['bead.metadata.root.id=r-9', true],
  ['bead.metadata.root.other=o', true],
  ['bead.tags={"a":[true,null],"z":1}', true],
  ['bead.id.x=b', false],
  ['toString=x', false],
  ['constructor.name=Object', false],
]

suite('payload-match', () => {
  for (const [text, expected] of CASES) {
    test(`${text} ${expected ? 'matches' : 'does not match'}`, () =>
      assert.deepEqual(
        [matchesPayload(payload, [matchOf(text)]), envelopeTest([matchOf(text)])(envelopeOf(payload))],
        [expected, expected],
      ))
  }

  test('of one key any value will do, of different keys all must', () => {
    const match = (...texts: string[]) => matchesPayload(payload, texts.map(matchOf))
    assert.equal(match('env=dev', 'env=prod'), true)
    assert.equal(match('env=prod', 'count=3'), false)
    assert.equal(match('env=dev', 'env=prod', 'count=2'), true)
    assert.equal(match(), true)
  })

  test('a payload that is no object matches nothing', () => {
    for (const odd of [undefined, null, 'env=prod', 3, [{ env: 'prod' }]])
      assert.equal(matchesPayload(odd, [{ key: 'env', value: 'prod' }]), false)
  })

  test('the first = divides; a missing one or an empty key is no match', () => {
    assert.deepEqual(parsePayloadMatch('a=b=c'), { key: 'a', value: 'b=c' })
    assert.deepEqual(parsePayloadMatch('a='), { key: 'a', value: '' })
    for (const bad of ['a', '', '=b']) assert.equal(parsePayloadMatch(bad), undefined)
  })

  test('every value of every object is found by its path, in its own text', () => {
    fc.assert(
      fc.property(
        fc.array(
          fc.string().filter((key) => !key.includes('.')),
          { minLength: 1, maxLength: 4 },
        ),
        fc.jsonValue(),
        (path, leaf) => {
          const nested = path.reduceRight<unknown>((inner, key) => Object.fromEntries([[key, inner]]), leaf)
          assert.equal(matchesPayload(nested, [{ key: path.join('.'), value: textOf(leaf) }]), true)
          assert.equal(matchesPayload(nested, [{ key: path.join('.'), value: `${textOf(leaf)}x` }]), false)
          const inText = envelopeTest([{ key: path.join('.'), value: textOf(leaf) }])
          assert.equal(inText(envelopeOf(nested)), true, 'no search in the text rules out what matches')
        },
      ),
    )
  })

  test('a literal key wins over the path of the same text', () => {
    fc.assert(
      fc.property(fc.array(fc.string(), { minLength: 2, maxLength: 4 }), fc.string(), (path, value) => {
        const literal = JSON.parse(JSON.stringify({ [path.join('.')]: value, [path[0] ?? '']: undefined }))
        assert.equal(matchesPayload(literal, [{ key: path.join('.'), value }]), true)
      }),
    )
  })

  test('numbers are plain decimals that read back as themselves', () => {
    fc.assert(
      fc.property(fc.double({ noNaN: true, noDefaultInfinity: true }), (number) => {
        const text = textOf(number)
        assert.match(text, /^-?\d+(\.\d+)?$/)
        assert.equal(Number(text), number === 0 ? 0 : number)
      }),
    )
  })

  test('a value nested too deeply to be compared matches nothing, and fails nothing', () => {
    const deep = `{"payload":{"deep":${'['.repeat(50_000)}${']'.repeat(50_000)}}}`
    assert.equal(envelopeTest([matchOf('deep=[]')])(deep), false)
    assert.equal(envelopeTest([matchOf('deep.er=x')])(deep), false)
  })

  test('the order of keys makes no difference', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        const shuffled: unknown = JSON.parse(JSON.stringify(value), (_, inner: unknown) =>
          typeof inner === 'object' && inner !== null && !Array.isArray(inner)
            ? Object.fromEntries(Object.entries(inner).reverse())
            : inner,
        )
        assert.equal(textOf(shuffled), textOf(JSON.parse(JSON.stringify(value))))
      }),
    )
  })
})
