import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fc } from '../../test/support/random.ts'
import { IssueList } from './issues.ts'
import { type PlainValue, plainOf, readToml } from './toml.ts'
import { addElement, addTable, type EditPath, removeElement, removeTable, setValue, unsetValue } from './toml-edit.ts'

const CITY = `# The city of examples
include = ["conf/prod.toml"]   # fragments

[workspace]
provider = 'codex'  # everyone
env = { RELEASE = "q3" }

# who works here
[[agent]]
name = "one"

[[agent]]
name = "two"
args = [
  "a", # first
  "b", # second
]

[providers.codex]
base = "builtin:codex"

[[rigs]]
name = "web"
patches = [{ agent = "one", nudge = "x" }]
[rigs.imports.review]
source = "./review"

[[rigs]]
name = "api"
`

test('a value is replaced in place, in its own quotes', () => {
  const edited = setValue(CITY, ['workspace', 'provider'], 'claude')
  assert.equal(edited, CITY.replace("'codex'", "'claude'"))
  assert.equal(setValue(edited, ['workspace', 'provider'], 'codex'), CITY)
})

test('a list on several lines stays on several lines', () => {
  const edited = setValue('a = [\n  "x",\n  "y",\n]\n', ['a'], ['z'])
  assert.equal(edited, 'a = [\n  "z",\n]\n')
  assert.equal(setValue(edited, ['a'], ['x', 'y']), 'a = [\n  "x",\n  "y",\n]\n')
})

test('a key is added behind the last one of its table', () => {
  const edited = setValue(CITY, ['agent', 0, 'nudge'], 'go')
  assert.equal(edited, CITY.replace('name = "one"\n', 'name = "one"\nnudge = "go"\n'))
  assert.equal(unsetValue(edited, ['agent', 0, 'nudge']), CITY)
})

const NEW_KEYS: readonly EditPath[] = [
  ['workspace', 'timezone'],
  ['workspace', 'env', 'MODE'],
  ['workspace', 'nested', 'deeper', 'key'],
  ['daemon', 'patrol_interval'],
  ['session', 'acp', 'handshake_timeout'],
  ['agent', 1, 'env', 'A'],
  ['rigs', 0, 'formula_vars', 'test cmd'],
  ['rigs', 0, 'imports', 'review', 'version'],
  ['rigs', 1, 'imports', 'lint', 'source'],
  ['rigs', 0, 'patches', 0, 'env', 'A'],
  ['providers', 'codex', 'command'],
]
for (const path of NEW_KEYS) {
  test(`setting and unsetting ${path.join('.')} gives every byte back`, () => {
    for (const text of variants(CITY)) {
      const edited = setValue(text, path, 'v')
      assert.equal(at(edited, path), 'v')
      assert.equal(unsetValue(edited, path), text)
    }
  })
}

const LISTS: readonly EditPath[] = [
  ['patches', 'agent'],
  ['agent'],
  ['rigs'],
  ['rigs', 0, 'patches'],
  ['rigs', 1, 'patches'],
  ['orders', 'overrides'],
]
for (const path of LISTS) {
  test(`adding to and removing from ${path.join('.')} gives every byte back`, () => {
    for (const text of variants(CITY)) {
      const before = at(text, path)
      const count = Array.isArray(before) ? before.length : 0
      const once = addElement(text, path, { name: 'new', env: { A: '1' } })
      const twice = addElement(once, path, { name: 'newer' })
      assert.equal(removeElement(twice, path, count + 1), once)
      assert.equal(removeElement(once, path, count), text)
    }
  })
}

test('adding and removing a table gives every byte back', () => {
  for (const text of variants(CITY)) {
    const edited = addTable(text, ['providers', 'my.own'], { base: 'builtin:codex', args: ['x'] })
    assert.equal(at(edited, ['providers', 'my.own', 'base']), 'builtin:codex')
    assert.equal(removeTable(edited, ['providers', 'my.own']), text)
  }
})

test('an element goes with its sub-tables, and its neighbours stay', () => {
  const edited = removeElement(CITY, ['rigs'], 0)
  assert.deepEqual(at(edited, ['rigs']), [{ name: 'api' }])
  assert.ok(edited.includes('# who works here'))
})

test('an empty table that was there before stays when a key comes and goes', () => {
  for (const text of [
    '[a]\n',
    '[a]',
    'x = 1\n\n[a]\n',
    'x = 1\n\n[a]\n# note\n\n[b]\ny = 1\n',
    'a = {}\n',
    'a = { }\n',
  ]) {
    const edited = setValue(text, ['a', 'k'], 1)
    assert.equal(at(edited, ['a', 'k']), 1)
    assert.equal(unsetValue(edited, ['a', 'k']), text)
  }
})

test('an empty list that was there before stays when an element comes and goes', () => {
  for (const text of ['a = []\n', '[t]\na = []']) {
    const path = text.startsWith('a') ? ['a'] : ['t', 'a']
    assert.equal(removeElement(addElement(text, path, { k: 1 }), path, 0), text)
  }
})

test('a comment behind a comma stays with its element', () => {
  const text = 'a = [\n  "x", # first\n  { k = 1 }, # second\n]\n'
  const edited = addElement(text, ['a'], { k: 2 })
  assert.equal(edited, 'a = [\n  "x", # first\n  { k = 1 }, # second\n  { k = 2 },\n]\n')
  assert.equal(removeElement(edited, ['a'], 2), text)
})

test('a changed list keeps the comments of what stays, whatever comes, goes or moves', () => {
  const text = 'a = [ # mine\n  # the first\n  "x", # of x\n  "y", # of y\n  # the end\n]\n'
  const edited = setValue(text, ['a'], ['new', 'y', 'x'])
  assert.equal(edited, 'a = [ # mine\n  "new",\n  "y", # of y\n  # the first\n  "x", # of x\n  # the end\n]\n')
  assert.equal(setValue(text, ['a'], ['y']), 'a = [ # mine\n  # the first\n  "y", # of y\n  # the end\n]\n')
  assert.equal(setValue(text, ['a'], []), 'a = [ # mine\n  # the first\n  # the end\n]\n')
})

test('a changed list of tables stays one, and only what differs in it is touched', () => {
  const text = '# all\n[[l]] # one\nname = "a" # its name\n# why\nb = [1, 2]\n\n[[l]]\nname = "b"\n'
  const one = { name: 'a', b: [1, 3] }
  assert.equal(setValue(text, ['l'], [one, { name: 'b' }]), text.replace('2]', '3]'))
  const more = setValue(text, ['l'], [{ name: 'a', b: [1, 2] }, { name: 'c' }, { name: 'b' }])
  assert.equal(more, text.replace('2]\n', '2]\n\n[[l]]\nname = "c"\n'))
  assert.equal(setValue(more, ['l'], [{ name: 'a', b: [1, 2] }, { name: 'b' }]), text)
})

test('a changed inline table keeps the spelling of its other members', () => {
  const text = "a = { k = 'x', n.o = 0x10, p = [1] } # why\n"
  assert.equal(setValue(text, ['a'], { k: 'y', n: { o: 16, q: 1 } }), "a = { k = 'y', n.o = 0x10, n.q = 1 } # why\n")
})

test('what is not there is not removed, what is broken is not edited', () => {
  assert.equal(unsetValue(CITY, ['nothing', 'here']), CITY)
  assert.throws(() => setValue('a = ', ['b'], 1), /not valid TOML/)
  assert.throws(() => unsetValue('a = ', ['b']), /not valid TOML/)
})

// Documents with comments and blank lines anywhere, in either line ending, with or without a final newline.
const key = fc.constantFrom('a', 'b', 'c', 'd e', 'f.g')
const leaf: fc.Arbitrary<PlainValue> = fc.oneof(
  fc.string(),
  fc.integer(),
  fc.boolean(),
  fc.array(fc.string(), { maxLength: 3 }),
  fc.dictionary(key, fc.integer(), { maxKeys: 2, noNullPrototype: true }),
)
const filler = fc.constantFrom('', '\n', '# note\n', '\n# note\n\n')
const lineTail = fc.constantFrom('', ' # why', '  ')
const document = fc
  .record({
    start: filler,
    root: fc.uniqueArray(fc.tuple(key, leaf, lineTail, filler), { selector: ([name]) => name, maxLength: 3 }),
    tables: fc.uniqueArray(
      fc.tuple(
        fc.constantFrom('t', 'u', 'v'),
        fc.boolean(),
        fc.uniqueArray(fc.tuple(key, leaf, lineTail, filler), { selector: ([name]) => name, maxLength: 3 }),
        lineTail,
        filler,
      ),
      { selector: ([name]) => name, maxLength: 3 },
    ),
    crlf: fc.boolean(),
    open: fc.boolean(),
  })
  .map(({ start, root, tables, crlf, open }) => {
    const pairs = (list: typeof root): string =>
      list.map(([name, value, tail, gap]) => `${JSON.stringify(name)} = ${toml(value)}${tail}\n${gap}`).join('')
    const body = tables.map(
      ([name, list, entries, tail, gap]) => `${list ? `[[${name}]]` : `[${name}]`}${tail}\n${gap}${pairs(entries)}`,
    )
    const text = start + pairs(root) + body.join('')
    const ended = open ? text.replace(/\n$/, '') : text
    return crlf ? ended.replaceAll('\n', '\r\n') : ended
  })

test('property: set and unset of a new key, add and remove of a table or element give every byte back', () => {
  const path = fc.oneof<fc.Arbitrary<EditPath>[]>(
    fc.tuple(key),
    fc.tuple(fc.constantFrom('t', 'u', 'v', 'w'), key),
    fc.tuple(fc.constantFrom('t', 'u', 'v', 'w'), key, key),
  )
  fc.assert(
    fc.property(document, path, leaf, (text, where, value) => {
      fc.pre(parses(text))
      if (editable(text, where)) assert.equal(unsetValue(setValue(text, where, value), where), text)
      if (at(text, ['new']) === undefined) {
        assert.equal(removeTable(addTable(text, ['new'], { k: value }), ['new']), text)
        assert.equal(removeElement(addElement(text, ['new'], { k: value }), ['new'], 0), text)
      }
    }),
    { numRuns: 1500 },
  )
})

test('property: setting a text or whole number and setting it back gives every byte back', () => {
  fc.assert(
    fc.property(document, fc.oneof(fc.string(), fc.integer()), (text, value) => {
      fc.pre(parses(text))
      const plain = readPlain(text)
      for (const [name, old] of Object.entries(plain)) {
        if (typeof old !== typeof value) continue
        assert.equal(setValue(setValue(text, [name], value), [name], old), text)
      }
    }),
    { numRuns: 300 },
  )
})

function variants(text: string): string[] {
  return [text, text.replace(/\n$/, ''), `${text}\n`, `${text}\n# the end\n`, text.replaceAll('\n', '\r\n')]
}

function readPlain(text: string): { readonly [key: string]: PlainValue } {
  const issues = new IssueList()
  const tree = readToml(text, 't.toml', 'city', issues)
  assert.ok(tree, issues.errors[0]?.message ?? 'not TOML')
  return plainOf(tree) as { readonly [key: string]: PlainValue }
}

function parses(text: string): boolean {
  return readToml(text, 't.toml', 'city', new IssueList()) !== undefined
}

function at(text: string, path: EditPath): PlainValue | undefined {
  let value: PlainValue | undefined = readPlain(text)
  for (const part of path)
    value = typeof value === 'object' ? (value as Record<string | number, PlainValue>)[part] : undefined
  return value
}

// The key is new, and nothing on the way to it is a value or a list.
function editable(text: string, path: EditPath): boolean {
  if (at(text, path) !== undefined) return false
  return path.slice(0, -1).every((_, index) => {
    const value = at(text, path.slice(0, index + 1))
    return value === undefined || (typeof value === 'object' && !Array.isArray(value))
  })
}

function toml(value: PlainValue): string {
  if (typeof value !== 'object')
    return typeof value === 'string' ? JSON.stringify(value).replaceAll('\u007f', '\\u007f') : String(value)
  if (Array.isArray(value)) return `[${value.map((item: PlainValue) => toml(item)).join(', ')}]`
  return `{ ${Object.entries(value)
    .map(([name, child]) => `${JSON.stringify(name)} = ${toml(child)}`)
    .join(', ')} }`
}
