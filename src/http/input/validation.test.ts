import assert from 'node:assert/strict'
import { test } from 'node:test'
import { codePoint } from '../../../test/support/code-point.ts'
import { fc } from '../../../test/support/random.ts'
import {
  array,
  boolean,
  integer,
  nullable,
  object,
  optional,
  record,
  string,
  union,
} from '../../contract/base/schema.ts'
import { Problem } from '../../kernel/problem.ts'
import { parseQuery, validate } from './validation.ts'

const SCHEMA = object({
  text: optional(string()),
  count: optional(integer({ minimum: 0 })),
  flag: optional(boolean()),
  list: optional(array(string())),
})

/** Locations of the fields that were refused. */
function refusedFields(work: () => void): readonly string[] {
  try {
    work()
    return []
  } catch (error) {
    assert.ok(error instanceof Problem && error.status === 422, String(error))
    return (error.options.errors ?? []).map(({ location }) => location)
  }
}

test('a query string reads back as the values it was made of', () => {
  const values = fc.record(
    {
      text: fc.string({ unit: codePoint }).map((text) => text.toWellFormed()),
      count: fc.nat(),
      flag: fc.boolean(),
      list: fc.array(fc.string(), { minLength: 1 }),
    },
    { requiredKeys: [], noNullPrototype: true },
  )
  fc.assert(
    fc.property(values, (given) => {
      const search = Object.entries(given)
        .flatMap(([key, value]) => [value].flat().map((one) => `${key}=${encodeURIComponent(one)}`))
        .join('&')
      const query = parseQuery(search, SCHEMA)
      assert.deepEqual(query, given)
      validate(SCHEMA, query, 'query')
    }),
  )
})

test('any query string is read, or refused with the fields it got wrong or as undecodable', () => {
  fc.assert(
    fc.property(fc.oneof(fc.string({ unit: codePoint }), fc.stringMatching(/^[a-z=&%+0-9]{0,40}$/)), (search) => {
      try {
        validate(SCHEMA, parseQuery(search, SCHEMA), 'query')
      } catch (error) {
        assert.ok(error instanceof Problem && (error.status === 422 || error.status === 400), String(error))
      }
    }),
  )
})

for (const [search, fields] of [
  ['other=1', ['query.other']],
  ['text=a&text=b', ['query.text']],
  ['count=1.5', ['query.count']],
  ['count=01', ['query.count']],
  ['count=-1', ['query.count']],
  ['count=', ['query.count']],
  ['flag=yes', ['query.flag']],
  ['__proto__=1', ['query.__proto__']],
  ['constructor=1&toString=2', ['query.constructor', 'query.toString']],
  ['Text=a', ['query.Text']],
  ['5=a', ['query.5']],
] as const) {
  test(`?${search} is refused, and says where`, () => {
    assert.deepEqual(
      refusedFields(() => validate(SCHEMA, parseQuery(search, SCHEMA), 'query')),
      fields,
    )
  })
}

test('a query of very many parameters is refused before any of them is looked at, and keeps nobody waiting', () => {
  const refused = (search: string) => refusedFields(() => parseQuery(search, SCHEMA))
  for (const part of ['list', 'list=a', 'other=1', '', 'text=%zz'])
    assert.deepEqual(refused(Array(1_001).fill(part).join('&')), ['query'], part)
  const full = Array(1_000).fill('a')
  assert.deepEqual(parseQuery(full.map((one) => `list=${one}`).join('&'), SCHEMA), { list: full })
})

test('a body that breaks its schema in several places is told all of them', () => {
  const schema = object({ name: string({ minLength: 1 }), deep: object({ list: array(integer()) }) })
  assert.deepEqual(
    refusedFields(() => validate(schema, { name: '', deep: { list: [1, 'x'] }, 'a/b~c': 1 }, 'body')).toSorted(),
    ['body.a/b~c', 'body.deep.list[1]', 'body.name'],
  )
  assert.deepEqual(refusedFields(() => validate(schema, {}, 'body')).toSorted(), ['body.deep', 'body.name'])
})

test('a body that is wrong in very many places is told the first of them, and keeps nobody waiting', () => {
  const schema = object({ nodes: array(object({ title: string() }), { maxItems: 1000 }) })
  const nodes = Array.from({ length: 300_000 }, () => ({}))
  assert.deepEqual(
    refusedFields(() => validate(schema, { nodes }, 'body')),
    ['body.nodes'],
  )
})

test('an answer about a long name is short', () => {
  const long = 'k'.repeat(1e6)
  for (const refused of [
    () => validate(SCHEMA, { [long]: 1 }, 'body'),
    () => validate(SCHEMA, parseQuery(`${long}=1`, SCHEMA), 'query'),
  ]) {
    const [field = ''] = refusedFields(refused)
    assert.ok(field.length < 300, `${field.length} characters`)
  }
})

test('an answer about a long value is short', () => {
  try {
    validate(object({ text: string({ maxLength: 1 }) }), { text: 'x'.repeat(1e6) }, 'body')
    assert.fail('it was accepted')
  } catch (error) {
    assert.ok(error instanceof Problem && JSON.stringify(error.options.errors).length < 1_000)
  }
})

test('what may be null or something else is told what it may be, and what is wrong with it', () => {
  const schema = object({
    name: nullable(string({ maxLength: 3 })),
    by: nullable(record(nullable(integer()))),
  })
  const told = (value: object) => {
    try {
      validate(schema, value, 'body')
    } catch (error) {
      assert.ok(error instanceof Problem)
      return error.options.errors?.map(({ location, message }) => `${location} ${message}`)
    }
    return []
  }
  assert.deepEqual(told({ name: null, by: { a: 1, b: null } }), [])
  assert.deepEqual(told({ name: 5, by: null }), ['body.name must be string or null'])
  assert.deepEqual(told({ name: 'long', by: null }), ['body.name must NOT have more than 3 characters'])
  assert.deepEqual(told({ name: null, by: { a: 'x' } }), ['body.by.a must be integer or null'])
})

test('what may be one thing or another is told about the one that it nearly is', () => {
  const one = object({ message: object({ text: string({ maxLength: 3 }) }) })
  const many = object({ messages: array(string(), { maxItems: 2 }), late: optional(boolean()) })
  const told = (value: unknown) => refusedFields(() => validate(union([one, many]), value, 'body'))
  assert.deepEqual(told({ messages: ['a', 'b', 'c'] }), ['body.messages'])
  assert.deepEqual(told({ messages: ['a'], late: 1 }), ['body.late'])
  assert.deepEqual(told({ message: { text: 'long' } }), ['body.message.text'])
  assert.deepEqual(told({ message: {} }), ['body.message.text'])
  assert.deepEqual(told({}), ['body.message', 'body.messages'])
  assert.deepEqual(told({ message: { text: 'a' } }), [])
})

test('keys of records are looked at, whatever is in them, and so are their values', () => {
  const schema = object({
    by: record(integer(), { propertyNames: { minLength: 1, maxLength: 5 } }),
  })
  const refused = (by: object) => refusedFields(() => validate(schema, { by }, 'body'))
  assert.deepEqual(refused({ 'a\nb': 1 }), [])
  assert.deepEqual(refused({ 'a\nb': 'x' }), ['body.by.a\nb'])
  assert.deepEqual(refused({ '': 1 }), ['body.by.'])
  assert.deepEqual(refused({ longer: 1 }), ['body.by.longer'])
})

test('a reserved name is refused in words that say which ones are', () => {
  const schema = object({ name: string({ not: { enum: ['output', 'resume'] } }) })
  assert.throws(() => validate(schema, { name: 'output' }, 'body'), {
    message: /body\.name: must not be one of \["output","resume"\]: they are reserved/,
  })
})
