/**
 * Requests made from `openapi.json`: for every operation right ones, nearly right ones and junk, with what an
 * independent reading of the contract says about each. Seeded by fast-check, so that a failure comes back.
 */
import { join } from 'node:path'
import { codePoint } from './code-point.ts'
import {
  asFields,
  asList,
  breaches,
  type DocumentedOperation,
  type DocumentedParameter,
  type Fields,
  isFields,
  resolved,
} from './contract-document.ts'
import { fc } from './random.ts'

/** What exists on the server that is fuzzed. Asked for every request anew: what a request uses up is gone for the next. */
export interface World {
  /** Values of path parameters that are there; those of one item belong together. */
  paths(): readonly { readonly [parameter: string]: string }[]
  /** What can stand in a field or parameter of this name, and is there. */
  named(field: string): readonly string[]
  /** Right bodies, where generated ones would hardly ever name something that exists. */
  readonly bodies: readonly object[]
  /** Every directory in a body is kept below this one. */
  readonly work: string
}

export interface Case {
  readonly method: string
  /** Path and query as sent. */
  readonly target: string
  readonly headers: readonly (readonly [string, string])[]
  readonly body: Buffer | undefined
  /** What certainly breaks the contract, as sentences; such a request must be refused. */
  readonly breaks: readonly string[]
  /** Something in it can be read in two ways: nothing is expected of the answer but that it is declared. */
  readonly open: boolean
}

interface Part {
  readonly breaks: readonly string[]
  readonly open: boolean
}
interface TextPart extends Part {
  readonly pairs: readonly (readonly [string, string])[]
}
interface BodyPart extends Part {
  readonly bytes: Buffer | undefined
  readonly type: string | undefined
}

/** Blocking reads and waits answer after this: a fuzzer asks often. */
const SHORT_WAIT = '10ms'

export function casesOf(operation: DocumentedOperation, world: World): fc.Arbitrary<Case> {
  const own = (place: string) => operation.parameters.filter((parameter) => parameter.in === place)
  return fc
    .record({
      path: pathOf(operation, own('path'), world),
      query: queryOf(own('query'), world),
      headers: headersOf(own('header')),
      body: bodyOf(operation, world),
    })
    .map(({ path, query, headers, body }) => {
      const search = query.pairs
        .map(([name, value]) => `${encodeURIComponent(name)}=${encodeURIComponent(value)}`)
        .join('&')
      const parts: readonly Part[] = [query, headers, body]
      return {
        method: operation.method,
        target: search === '' ? path : `${path}?${search}`,
        headers: [...headers.pairs, ...(body.type === undefined ? [] : [['Content-Type', body.type] as const])],
        body: body.bytes,
        breaks: parts.flatMap((part) => part.breaks),
        open: parts.some((part) => part.open),
      }
    })
}

// --- Values of a schema ----------------------------------------------------------------------------------------------

type Names = Pick<World, 'named'>

/** Values that satisfy a schema of the document; what is there may stand where a text is asked for. */
function valuesOf(source: Fields, world: Names, name = ''): fc.Arbitrary<unknown> {
  const schema = resolved(source)
  if ('const' in schema) return fc.constant(schema.const)
  if (Array.isArray(schema.enum)) return fc.constantFrom(...schema.enum)
  if (Array.isArray(schema.anyOf)) return fc.oneof(...schema.anyOf.map((part) => valuesOf(asFields(part), world, name)))
  const examples = Array.isArray(schema.examples) ? schema.examples : []
  const made = valuesOfType(schema, world, name)
  return examples.length === 0
    ? made
    : fc.oneof({ weight: 3, arbitrary: made }, { weight: 1, arbitrary: fc.constantFrom(...examples) })
}

function valuesOfType(schema: Fields, world: Names, name: string): fc.Arbitrary<unknown> {
  const limit = (name: string, otherwise: number) => (typeof schema[name] === 'number' ? schema[name] : otherwise)
  if (schema.type === 'integer')
    return fc.integer({
      min: Math.max(limit('minimum', -1000), -(2 ** 31)),
      max: Math.min(limit('maximum', 1000), 2 ** 31 - 1),
    })
  if (schema.type === 'boolean') return fc.boolean()
  if (schema.type === 'string') return known(world, name, textOf(schema, limit))
  if (schema.type === 'array')
    return fc.array(valuesOf(asFields(schema.items), world, name), {
      minLength: limit('minItems', 0),
      maxLength: Math.min(limit('maxItems', 4), 4),
    })
  if (schema.type !== 'object') return fc.jsonValue()
  if (!isFields(schema.properties)) return fc.dictionary(text(0, 12), fc.jsonValue(), { maxKeys: 4 })
  const required = schema.required === undefined ? [] : asList(schema.required).map(String)
  const optional = Object.keys(schema.properties).filter((key) => !required.includes(key))
  const values = new Map(
    Object.entries(schema.properties).map(([key, part]) => [key, lazy(asFields(part), world, key)]),
  )
  return fewOf(optional).chain((few) => {
    const chosen = [...required, ...few].flatMap((key) => {
      const value = values.get(key)
      return value === undefined ? [] : [[key, value()] as const]
    })
    return fc.record(Object.fromEntries(chosen))
  })
}

/** Made when it is first wanted: some schemas are very wide. */
function lazy(part: Fields, world: Names, name: string): () => fc.Arbitrary<unknown> {
  let made: fc.Arbitrary<unknown> | undefined
  return () => {
    made ??= valuesOf(part, world, name)
    return made
  }
}

/** Any of few, some of many: many at once nearly always contradict each other. */
const fewOf = <T>(all: readonly T[]): fc.Arbitrary<readonly T[]> =>
  all.length <= 5
    ? fc.subarray([...all])
    : fc.oneof(
        { weight: 5, arbitrary: fc.subarray([...all], { maxLength: 3 }) },
        { weight: 1, arbitrary: fc.subarray([...all]) },
      )

/** Half of them names of what is there when the request is made. */
function known(world: Names, name: string, made: fc.Arbitrary<string>): fc.Arbitrary<string> {
  return fc.tuple(fc.boolean(), fc.nat(), made).map(([there, at, otherwise]) => {
    const names = there ? world.named(name) : []
    return names[at % names.length] ?? otherwise
  })
}

function textOf(
  { pattern, maxLength }: Fields,
  limit: (name: string, otherwise: number) => number,
): fc.Arbitrary<string> {
  const least = limit('minLength', 0)
  const most = limit('maxLength', 4096)
  if (typeof pattern !== 'string') {
    const short = text(least, Math.min(most, 24))
    // A constant: there is no smaller text of that length to look for.
    const atLimit = fc.constant('x'.repeat(most))
    const odd = fc.constantFrom(...HOSTILE.filter((one) => one.length >= least && one.length <= most))
    const usual = fc.oneof({ weight: 8, arbitrary: short }, { weight: 1, arbitrary: odd })
    return maxLength === undefined || most > 4096
      ? usual
      : fc.oneof({ weight: 9, arbitrary: usual }, { weight: 1, arbitrary: atLimit })
  }
  return matching(new RegExp(pattern)).filter((one) => one.length >= least && one.length <= most)
}

/** Texts of a pattern; of one with look-aheads, which fast-check cannot make, those names that happen to fit. */
function matching(pattern: RegExp): fc.Arbitrary<string> {
  if (!pattern.source.includes('(?!') && !pattern.source.includes('(?=')) return fc.stringMatching(pattern)
  return fc.stringMatching(/^[a-z][a-z0-9_-]{0,9}$/).filter((one) => pattern.test(one))
}

/** Any text that can stand in JSON and in a URL: control characters, astral ones, but no half of a pair. */
const text = (minLength: number, maxLength: number) =>
  fc.oneof(fc.string({ minLength, maxLength }), fc.string({ unit: codePoint, minLength, maxLength }))

/** What people and machines send by mistake or with intent. */
const HOSTILE = [
  '',
  ' ',
  '0',
  '-0',
  '-1',
  '01',
  '1.0',
  '1e3',
  '+1',
  '0x10',
  '9007199254740993',
  '99999999999999999999',
  'NaN',
  'null',
  'undefined',
  'true',
  'TRUE',
  'yes',
  '[]',
  '{}',
  '""',
  '\u0000',
  'a\u0000b',
  '\r\nX-Injected: 1',
  '../../etc/passwd',
  '.',
  '..',
  '%00',
  '%2e%2e%2f',
  '%',
  "' OR 1=1 --",
  '"; DROP TABLE events; --',
  '<script>',
  '{{7*7}}',
  'v1:',
  'v1:AAAA',
  'v1:W10',
  'v1:WyJzZXEiLC0xXQ',
  'v1:WyJzZXEiLG51bGxd',
  'v1:WyJtZXJnZWQiLDEsImEiLDFd',
  'v1:WyJjaXR5IiwxXQ',
  'v1:WyJyZXF1ZXN0IiwxLDJd',
  '__supervisor__:1',
  '__supervisor__:99999999',
  'a:1,a:2',
  'a:-1',
  ':',
  ',',
  '__proto__',
  'constructor',
  'toString',
  '999999999999999d',
  '0s',
  '0',
  '1h1h1h',
  '-5m',
  '\u2028',
  '\ufeff',
  '😀',
  'é',
  '𝕏'.repeat(300),
  'a'.repeat(9000),
]
const hostile = fc.oneof(fc.constantFrom(...HOSTILE), text(0, 40))

// --- Parts of a request ----------------------------------------------------------------------------------------------

/** Names that hardly differ from one that is there, and are another one or none. */
const TWISTS: readonly ((name: string) => string)[] = [
  (name) => `${name}/`,
  (name) => `/${name}`,
  (name) => `${name}/..`,
  (name) => `x/${name}`,
  (name) => `${name} `,
  (name) => `${name}\u0000`,
  (name) => `${name}\r\n`,
  (name) => `\u0007${name}\u007f`,
  (name) => `${name}?a=1`,
  (name) => `${name}#a`,
  (name) => `${name};a`,
  (name) => `${name}%2F`,
  (name) => name.toUpperCase(),
  (name) => name.slice(0, -1) || '-',
  (name) => name.repeat(30),
]

function pathOf(
  operation: DocumentedOperation,
  parameters: readonly DocumentedParameter[],
  world: World,
): fc.Arbitrary<string> {
  const junk = hostile.filter((one) => one !== '')
  const changes = parameters.map(({ name }) =>
    fc
      .oneof(
        { weight: 16, arbitrary: fc.constant(undefined) },
        { weight: 1, arbitrary: fc.constantFrom(...TWISTS) },
        { weight: 1, arbitrary: junk },
      )
      .map((change) => ({ name, change })),
  )
  return fc.tuple(fc.nat(), junk, ...changes).map(([at, otherwise, ...changed]) => {
    const places = world.paths()
    const there = places[at % places.length] ?? {}
    return changed.reduce((path, { name, change }) => {
      const right = there[name] ?? otherwise
      const value = change === undefined ? right : typeof change === 'string' ? change : change(right)
      return path.replace(`{${name}}`, () => encodeURIComponent(value.toWellFormed()))
    }, operation.path)
  })
}

function queryOf(parameters: readonly DocumentedParameter[], world: Names): fc.Arbitrary<TextPart> {
  const right = fewOf(parameters).chain((few) => fc.tuple(...few.map((parameter) => wireValues(parameter, world))))
  const wrong = parameters.length === 0 ? fc.constant([]) : fc.array(wrongPair(parameters), { maxLength: 2 })
  const unknown = fc.array(fc.tuple(text(1, 10), hostile), { maxLength: 1 })
  return fc
    .tuple(
      right,
      fc.oneof({ weight: 3, arbitrary: fc.constant([]) }, { weight: 2, arbitrary: wrong }),
      fc.oneof({ weight: 9, arbitrary: fc.constant([]) }, { weight: 1, arbitrary: unknown }),
    )
    .map(([declared, changed, added]) => {
      const kept = declared.flat().filter(([name]) => !changed.some(([other]) => other === name))
      return readQuery(parameters, shortened(parameters, [...kept, ...changed, ...added]))
    })
}

type Pairs = readonly (readonly [string, string])[]

const wireValues = ({ name, schema }: DocumentedParameter, world: Names): fc.Arbitrary<Pairs> =>
  valuesOf(schema, world, name).map((value) =>
    (Array.isArray(value) ? value : [value]).map((one) => [name, String(one)] as const),
  )

const wrongPair = (parameters: readonly DocumentedParameter[]): fc.Arbitrary<readonly [string, string]> =>
  fc.tuple(fc.constantFrom(...parameters.map(({ name }) => name)), hostile)

function shortened(parameters: readonly DocumentedParameter[], pairs: Pairs): Pairs {
  const wait = parameters.find(({ name }) => name === 'wait')
  if (wait === undefined || !pairs.some(([name]) => name === 'index')) return pairs
  if (!pairs.some(([name]) => name === 'wait')) return [...pairs, ['wait', SHORT_WAIT]]
  return pairs.map(([name, value]) => [
    name,
    name === 'wait' && breaches(wait.schema, value).length === 0 ? SHORT_WAIT : value,
  ])
}

/** A query string as the contract reads it. */
function readQuery(parameters: readonly DocumentedParameter[], pairs: Pairs): TextPart {
  const breaks: string[] = []
  let open = false
  for (const [name, values] of Map.groupBy(pairs, ([key]) => key)) {
    const parameter = parameters.find((one) => one.name === name)
    if (parameter === undefined) {
      breaks.push(`query ${name} is unknown`)
      continue
    }
    const given = values.map(([, value]) => value)
    if (parameter.schema.type !== 'array' && given.length > 1) open = true
    else if (parameter.schema.type === 'array')
      breaks.push(...breaches(parameter.schema, given).map((why) => `query ${name} ${why}`))
    else {
      const reading = readText(parameter.schema, given[0] ?? '')
      if (reading === 'open') open = true
      else breaks.push(...reading.map((why) => `query ${name} ${why}`))
    }
  }
  return { pairs, breaks, open }
}

/** One text by its schema; 'open' for spellings of numbers that JSON does not have. */
function readText(schema: Fields, value: string): 'open' | string[] {
  if (schema.type === 'boolean') return value === 'true' || value === 'false' ? [] : ['is no boolean']
  if (schema.type !== 'integer') return breaches(schema, value)
  if (!/^-?(?:0|[1-9][0-9]*)$/.test(value))
    return value.trim() !== '' && Number.isInteger(Number(value)) ? 'open' : ['is no integer']
  return breaches(schema, Number(value))
}

/** Header values are visible ASCII here: everything else is a matter of raw sockets. */
const headerText = fc.string({ minLength: 1, maxLength: 20 }).map((one) => one.trim() || 'x')

function headersOf(parameters: readonly DocumentedParameter[]): fc.Arbitrary<TextPart> {
  const each = parameters.map((parameter) => {
    const { name, required, schema } = parameter
    const right = required ? fc.constant('1') : fc.oneof(headerText, fc.constant('0'), fc.constant('*'))
    const given = right.map((one) => [[name, one] as const])
    const usual = required
      ? given
      : fc.oneof({ weight: 3, arbitrary: fc.constant([]) }, { weight: 1, arbitrary: given })
    const unusual = fc.constantFrom<Pairs>([], [[name, '']], [[name, '  ']], [[name, 'x'.repeat(300)]])
    return fc.oneof({ weight: 14, arbitrary: usual }, { weight: 1, arbitrary: unusual }).map((pairs) => {
      const [, value] = pairs[0] ?? []
      if (value === undefined) return { pairs, breaks: required ? [`header ${name} is missing`] : [] }
      return { pairs, breaks: breaches(schema, value.trim()).map((why) => `header ${name} ${why}`) }
    })
  })
  return fc.tuple(...each).map((parts) => ({
    pairs: parts.flatMap(({ pairs }) => pairs),
    breaks: parts.flatMap(({ breaks }) => breaks),
    open: false,
  }))
}

// --- Bodies ----------------------------------------------------------------------------------------------------------

const NOT_JSON = [
  '{',
  '{"a":',
  '[1,',
  'nul',
  "{'a':1}",
  '{"a":1}{"b":2}',
  '\u0000',
  '<xml/>',
  'a=1',
  '{"a":01}',
  '\ufeff',
  'NaN',
  '"\n"',
].map((one) => Buffer.from(one))
const NOT_UTF8 = [
  Buffer.from([0xff, 0xfe]),
  Buffer.from([0x22, 0xc3, 0x28, 0x22]),
  Buffer.from('{"a":"\xe9"}', 'latin1'),
]
const DEEP = Buffer.from(`${'['.repeat(20_000)}${']'.repeat(20_000)}`)

function bodyOf({ body, method, takesLines, textType }: DocumentedOperation, world: World): fc.Arbitrary<BodyPart> {
  const none: BodyPart = { bytes: undefined, type: undefined, breaks: [], open: false }
  if (textType !== undefined) return textBody(textType)
  if (takesLines) return fc.oneof(fc.constant(none), linesBody)
  if (body === undefined)
    return method === 'GET'
      ? fc.constant(none)
      : fc.oneof({ weight: 5, arbitrary: fc.constant(none) }, { weight: 1, arbitrary: surplusBody })
  const { schema, required } = body
  const made = valuesOf(schema, world)
  const right = world.bodies.length === 0 ? made : fc.oneof(made, fc.constantFrom(...world.bodies))
  const json = fc
    .oneof(
      { weight: 5, arbitrary: right },
      { weight: 4, arbitrary: nearly(schema, right) },
      { weight: 1, arbitrary: fc.jsonValue() },
    )
    .map((value) => keptBelow(world.work, value))
    .map((value) => ({ ...jsonBody(value), breaks: breaches(schema, value).map((why) => `body ${why}`) }))
  const broken = fc
    .constantFrom(...NOT_JSON, ...NOT_UTF8, DEEP)
    .map((bytes) => ({ bytes, type: 'application/json', breaks: ['body is not the JSON'], open: false }))
  const absent = fc.constant(required ? { ...none, breaks: ['body is missing'] } : none)
  const foreign = fc
    .constantFrom(
      'text/plain',
      'application/xml',
      'application/json; charset=latin1',
      'multipart/form-data',
      'nonsense',
      '*/*',
    )
    .chain((type) => json.map((one) => ({ ...one, type, breaks: [...one.breaks, `media type ${type}`] })))
  return fc.oneof(
    { weight: 16, arbitrary: json },
    { weight: 2, arbitrary: broken },
    { weight: 1, arbitrary: absent },
    { weight: 1, arbitrary: foreign },
  )
}

const RIGHT_FILES = [
  'formula = "fuzzed"\n[[steps]]\nid = "a"\ntitle = "A"\n',
  '[order]\nexec = "true"\ntrigger = "manual"\n',
]
/** Files of formulas and orders, whole and broken; what is wrong with one the contract does not say. */
const textBody = (type: string): fc.Arbitrary<BodyPart> =>
  fc
    .oneof(
      { weight: 4, arbitrary: fc.constantFrom(...RIGHT_FILES).map((text) => Buffer.from(text)) },
      fc
        .constantFrom(
          'formula = "fuzzed"\nextends = ["fuzzed"]\n',
          '[[steps]]\nid = "a"\n[[steps.children]]\nid = "b"\nexpand = "fuzzed"\nneeds = ["a", "c"]\n',
          `formula = "fuzzed"\ntitle = "${'{{ a | '.repeat(100)}"\n`,
          'a = [[[[[[[[1]]]]]]]]\n"" = 1e999\n',
        )
        .map((text) => Buffer.from(text)),
      fc.string({ unit: codePoint }).map((text) => Buffer.from(text.toWellFormed())),
      fc.constantFrom(...NOT_JSON, ...NOT_UTF8, DEEP),
    )
    .map((bytes) => ({ bytes, type, breaks: [], open: true }))

const jsonBody = (value: unknown): BodyPart => ({
  bytes: Buffer.from(JSON.stringify(value)),
  type: 'application/json',
  breaks: [],
  open: false,
})

/** Lines that are beads, JSON, or nothing of the kind; none of them makes the request a bad one. */
const linesBody: fc.Arbitrary<BodyPart> = fc
  .array(
    fc.oneof(
      fc
        .record({ id: fc.stringMatching(/^al-[a-z0-9]{1,3}$/), title: fc.string(), labels: fc.array(fc.string()) })
        .map((line) => Buffer.from(JSON.stringify(line))),
      fc.jsonValue().map((value) => Buffer.from(JSON.stringify(value))),
      fc.constantFrom(...NOT_JSON, ...NOT_UTF8, DEEP),
    ),
    { maxLength: 6 },
  )
  .map((lines) => ({
    bytes: Buffer.concat(lines.flatMap((line) => [line, Buffer.from('\n')])),
    type: 'application/x-ndjson',
    breaks: [],
    open: false,
  }))

/** The contract is silent about bodies of operations that take none. */
const surplusBody = fc.jsonValue().map((value) => ({ ...jsonBody(value), open: true }))

/** A right body with one member taken away, replaced or added. */
function nearly(schema: Fields, right: fc.Arbitrary<unknown>): fc.Arbitrary<unknown> {
  const { properties } = resolved(schema)
  const names = Object.keys(isFields(properties) ? properties : {})
  const name =
    names.length === 0
      ? text(1, 8)
      : fc.oneof({ weight: 4, arbitrary: fc.constantFrom(...names) }, { weight: 1, arbitrary: text(1, 8) })
  const value = fc.oneof(fc.constant(undefined), hostile, fc.jsonValue({ maxDepth: 2 }))
  return fc.tuple(right, name, value).map(([whole, at, changed]) => {
    const copy: Record<string, unknown> = Object.create(null)
    Object.assign(copy, isFields(whole) ? whole : {})
    if (changed === undefined) delete copy[at]
    else copy[at] = changed
    return copy
  })
}

/**
 * A fuzzer must not make directories all over the machine, nor ask other hosts for packs and repositories, nor run what it
 * makes up, nor start sessions by the hundred.
 */
function keptBelow(work: string, value: unknown): unknown {
  if (Array.isArray(value)) return value.map((one) => keptBelow(work, one))
  if (!isFields(value)) return value
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, harmless(work, name, member)]))
}

const ELSEWHERE = /^[a-z][a-z+.-]*:\/\/|^[^/\s]+@[^/\s]+:/i

/** Fields of agents and providers that are run, by a shell or as programs. */
const RUN =
  /^(?:command|acp_command|start_command|resume_command|pre_start|session_setup|session_setup_script|session_live|scale_check|work_query|sling_query|on_boot|on_death)(?:_append)?$/
const PATHS = new Set(['dir', 'path', 'work_dir', 'overlay_dir'])

function harmless(work: string, name: string, value: unknown): unknown {
  if (name === 'min_active_sessions' && typeof value === 'number') return Math.min(value, 1)
  if (RUN.test(name)) {
    if (Array.isArray(value)) return value.map((one: unknown) => (typeof one === 'string' ? 'true' : one))
    return typeof value === 'string' && value !== '' ? 'true' : value
  }
  if (typeof value !== 'string') return keptBelow(work, value)
  if (ELSEWHERE.test(value)) return 'https://127.0.0.1/fuzzed.git'
  return PATHS.has(name) && value.startsWith('/') && !value.startsWith(work) ? join(work, value).slice(0, 4096) : value
}
