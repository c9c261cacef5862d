import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fc } from '../../../../test/support/random.ts'
import { RootFiles } from '../../../contract/config-schema.ts'
import { emptyTable, nodeOf, type PlainValue, plainOf, type TableNode } from '../../../files/toml.ts'
import { mergeTables } from './merge.ts'

const text = fc.constantFrom('x', 'y', 'z')
const strings = fc.array(text, { maxLength: 2 })
const env = fc.dictionary(text, text, { maxKeys: 2, noNullPrototype: true })
const provider = fc.record(
  {
    base: text,
    command: text,
    args: strings,
    env,
    options_schema: fc.uniqueArray(fc.record({ key: text, label: text }), {
      selector: (option) => option.key,
      maxLength: 2,
    }),
  },
  { requiredKeys: [], noNullPrototype: true },
)
const agent = fc.record(
  { name: text, dir: text, nudge: text, env, args: strings },
  { requiredKeys: ['name'], noNullPrototype: true },
)
/** What a file may say, small enough for collisions to be the rule. */
const layer: fc.Arbitrary<PlainValue> = fc.record(
  {
    include: strings,
    workspace: fc.record(
      { provider: text, env, global_fragments: strings },
      { requiredKeys: [], noNullPrototype: true },
    ),
    providers: fc.dictionary(text, provider, { maxKeys: 2, noNullPrototype: true }),
    imports: fc.dictionary(
      text,
      fc.record({ source: text, version: text }, { requiredKeys: ['source'], noNullPrototype: true }),
      { maxKeys: 2, noNullPrototype: true },
    ),
    agent: fc.uniqueArray(agent, { selector: ({ name, dir }) => `${name} ${dir ?? ''}`, maxLength: 3 }),
    patches: fc.record({ agent: fc.array(agent, { maxLength: 2 }) }, { requiredKeys: [], noNullPrototype: true }),
    daemon: fc.record({ max_restarts: fc.nat(9) }, { requiredKeys: [], noNullPrototype: true }),
  },
  { requiredKeys: [], noNullPrototype: true },
)

test('property: merging layers is associative, places included', () => {
  fc.assert(
    fc.property(layer, layer, layer, (a, b, c) => {
      const [one, two, three] = [node(a, 'a'), node(b, 'b'), node(c, 'c')]
      assert.deepEqual(merge(merge(one, two), three), merge(one, merge(two, three)))
    }),
    { numRuns: 1000 },
  )
})

test('property: an empty layer changes nothing', () => {
  fc.assert(
    fc.property(layer, (a) => {
      const one = node(a, 'a')
      assert.deepEqual(plainOf(merge(emptyTable(), one)), plainOf(one))
      assert.deepEqual(merge(one, emptyTable()), one)
    }),
  )
})

test('every value keeps the place of the layer that said it last', () => {
  const merged = merge(
    node({ workspace: { provider: 'x', env: { A: '1' } } }, 'a'),
    node({ workspace: { provider: 'y', env: { B: '2' } } }, 'b'),
  )
  const workspace = merged.entries.get('workspace')
  assert.ok(workspace?.kind === 'table')
  assert.equal(workspace.entries.get('provider')?.at.file, 'b')
  const values = workspace.entries.get('env')
  assert.ok(values?.kind === 'table')
  assert.deepEqual(
    [...values.entries].map(([key, child]) => [key, child.at.file]),
    [
      ['A', 'a'],
      ['B', 'b'],
    ],
  )
})

function merge(a: TableNode, b: TableNode): TableNode {
  return mergeTables(RootFiles, a, b)
}

function node(value: PlainValue, file: string): TableNode {
  const made = nodeOf(value, { file, line: 1, column: 1, layer: 'city' })
  assert.ok(made.kind === 'table')
  return made
}
