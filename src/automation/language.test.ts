/** The rules of decisions 87 and 88, one by one. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { codePoint } from '../../test/support/code-point.ts'
import { fc } from '../../test/support/random.ts'
import { evaluate, evaluateCondition, renderText, type Scope, TemplateFailure } from './language.ts'

const SCOPE: Scope = {
  tag: 'v1.2.3',
  count: 2,
  flag: false,
  note: null,
  bead: { id: 'b-1', title: 'T', description: 'D', priority: 1, metadata: {}, members: [{ id: 'b-2' }] },
  steps: {
    plan: { outcome: 'pass', assignee: 'ana', output: { modules: ['a', 'b'], nothing: null, deep: { x: [1, 2] } } },
    'with-dash': { outcome: 'fail', failure_reason: 'no' },
  },
  molecule: { id: 'm-1', title: 'M', formula: 'f' },
  city: { name: 'town', path: '/town' },
  rig: null,
}

const fails = (run: () => unknown, why: RegExp): void =>
  assert.throws(run, (error) => error instanceof TemplateFailure && why.test(error.message))

test('what a template prints must be there', () => {
  assert.equal(renderText('{{ tag }}: {{ steps.plan.output.modules.first }}', SCOPE), 'v1.2.3: a')
  fails(
    () => renderText('a\n  {{ steps.plan.output.missing }}', SCOPE),
    /^line 2, column 6: there is no `steps.plan.output.missing`/,
  )
  fails(() => renderText('{{ nobody }}', SCOPE), /there is no `nobody`/)
  fails(() => renderText('{{ steps.plan.output.missing.deeper }}', SCOPE), /there is no/)
  fails(() => renderText('{% for a in steps.plan.output.missing %}{% endfor %}', SCOPE), /there is no/)
})

test('a key that is missing is nil where a tag asks, and before `default`', () => {
  assert.equal(renderText('{% if steps.plan.output.missing %}a{% else %}b{% endif %}', SCOPE), 'b')
  assert.equal(renderText('{% unless steps.plan.output.missing == "x" %}a{% endunless %}', SCOPE), 'a')
  assert.equal(renderText('{{ steps.plan.output.missing | default: "none" }}', SCOPE), 'none')
})

test('what is nil is printed as nothing', () => {
  assert.equal(renderText('[{{ note }}{{ rig }}{{ steps.plan.output.nothing }}]', SCOPE), '[]')
})

test('lists and objects are printed as JSON', () => {
  assert.equal(renderText('{{ steps.plan.output.modules }}', SCOPE), '["a","b"]')
  assert.equal(renderText('{{ steps.plan.output.deep }}', SCOPE), '{"x":[1,2]}')
})

test('a city, a rig and a molecule are their names, and have fields', () => {
  const scope = { ...SCOPE, rig: { name: 'web', path: '/web' } }
  assert.equal(
    renderText('{{ city }} {{ city.path }} {{ rig }} {{ rig.path }} {{ molecule }} {{ molecule.title }}', scope),
    'town /town web /web m-1 M',
  )
  assert.equal(renderText('{% if rig == "web" %}{{ rig | upcase }}{% endif %}', scope), 'WEB')
  assert.equal(evaluate('rig', scope), 'web')
  assert.equal(evaluateCondition('rig == "web"', scope), true)
  assert.equal(evaluateCondition('rig == nil', SCOPE), true)
})

test('a key that is missing is nil in an expression', () => {
  assert.equal(evaluate('steps.plan.output.missing.deeper', SCOPE), null)
  assert.equal(evaluateCondition('steps.plan.output.missing', SCOPE), false)
  assert.equal(evaluateCondition('steps.plan.output.missing != "clean"', SCOPE), true)
})

test('a condition is true, false or nil', () => {
  for (const [condition, holds] of [
    ['true', true],
    ['flag', false],
    ['note', false],
    ['nil', false],
    ['count > 1 and tag contains "v1"', true],
    ['not flag', true],
    ['steps.with-dash.outcome == "fail"', true],
  ] as const) {
    assert.equal(evaluateCondition(condition, SCOPE), holds, condition)
  }
  for (const condition of ['tag', 'count', '""', '0', '"false"', 'steps.plan.output.modules', 'bead', 'empty']) {
    fails(() => evaluateCondition(condition, SCOPE), /a condition is true, false or nil/)
  }
})

test('an expression gives JSON', () => {
  assert.deepEqual(evaluate('bead.members', SCOPE), [{ id: 'b-2' }])
  assert.deepEqual(evaluate('steps.plan.output.modules | concat: bead.members', SCOPE), ['a', 'b', { id: 'b-2' }])
  assert.deepEqual(evaluate('(1..count)', SCOPE), [1, 2])
  assert.equal(evaluate('count | plus: 1', SCOPE), 3)
  fails(() => evaluate('1 | divided_by: 0', SCOPE), /gives no value/)
})

test('fragments come from what is given, see every name, and are found by their names alone', () => {
  const fragments = { guide: '{{ given }} {{ tag }}', secret: '{{ tag' }
  assert.equal(renderText("{% render 'guide', given: bead.id %}", SCOPE, fragments), 'b-1 v1.2.3')
  fails(() => renderText("{% render 'package.json' %}", SCOPE, fragments), /package.json/)
  fails(() => renderText("{% render './package.json' %}", SCOPE, fragments), /package.json/)
  fails(() => renderText("{% render 'constructor' %}", SCOPE, fragments), /constructor/)
  fails(() => renderText("{% render 'secret' %}", SCOPE, fragments), /not closed/)
  fails(() => renderText("{% include 'guide' %}", SCOPE, fragments), /include/)
  fails(() => renderText("{% layout 'guide' %}", SCOPE, fragments), /layout/)
})

test('time and memory are bounded', () => {
  fails(() => renderText('{% for a in (1..4000000) %}x{% endfor %}', SCOPE), /limit/)
  fails(
    () => renderText('{% for a in (1..3000) %}{% for b in (1..3000) %}{{ b }}{% endfor %}{% endfor %}', SCOPE),
    /limit of 50 ms/,
  )
  fails(() => evaluate('(1..100000000)', SCOPE), /limit/)
  fails(() => renderText(`{{ tag }}${'x'.repeat(300_000)}`, SCOPE), /limit/)
  const long = { ...SCOPE, tag: 'x'.repeat(400_000) }
  fails(() => renderText('{{ tag }}{{ tag }}{{ tag }}', long), /renders to 1200000 characters/)
})

test('names of prototypes are names like any other', () => {
  for (const name of ['constructor', 'toString', '__proto__', 'hasOwnProperty']) {
    fails(() => renderText(`{{ ${name} }}`, SCOPE), /there is no/)
    assert.equal(evaluate(`bead.${name}`, SCOPE), null)
    assert.equal(evaluate(name, SCOPE), null)
  }
  assert.equal(renderText('{{ constructor }}', { constructor: 'mine' }), 'mine')
})

test('whatever a text does, the values stay as they are', () => {
  const before = structuredClone(SCOPE)
  const text = `{% increment count %}{% decrement count %}{% assign tag = "x" %}{% capture note %}y{% endcapture %}
    {{ steps.plan.output.modules | push: "c" | sort | reverse | join }}{{ bead.members | map: "id" | pop }}`
  renderText(text, SCOPE)
  assert.deepEqual(SCOPE, before)
})

test('values are data: a hostile text comes out as it went in, through every way there is', () => {
  const hostile = fc.oneof(
    fc.string(),
    fc.string({ unit: codePoint }),
    fc.constantFrom(
      '{{ tag }}',
      '{% raw %}',
      "{% render 'guide' %}",
      '$(rm -rf /)',
      '`id`',
      '\u0000\u001b[2J',
      '%}{{',
      '__proto__',
      '\u202e',
    ),
  )
  fc.assert(
    fc.property(hostile, (text) => {
      const scope = { tag: text, bead: { title: text, metadata: { key: text } }, list: [text] }
      assert.equal(renderText('{{ tag }}', scope), text)
      assert.equal(renderText('a{{ bead.title }}b{{ bead.metadata.key }}', scope), `a${text}b${text}`)
      assert.equal(renderText('{{ list }}', scope), JSON.stringify([text]))
      assert.equal(
        renderText("{% render 'guide', given: tag %}", scope, { guide: '{{ given }}{{ tag }}' }),
        text + text,
      )
      assert.equal(renderText('{% assign a = tag %}{{ a }}{% for b in list %}{{ b }}{% endfor %}', scope), text + text)
      assert.equal(evaluate('tag', scope), text)
      assert.equal(evaluateCondition('tag == bead.title and list contains tag', scope), true)
    }),
    { numRuns: 300 },
  )
})

test('whatever the text of a template is, it renders or fails with a sentence', () => {
  const part = fc.constantFrom(
    '{{',
    '}}',
    '{%',
    '%}',
    'tag',
    ' ',
    '|',
    'upcase',
    'if',
    'endif',
    'for a in',
    'endfor',
    "'",
    '"',
    '(1..3)',
    '.',
    '[',
    ']',
    'steps',
    'raw',
    'liquid',
    '\n',
    ':',
    ',',
    '-',
    'render',
    'assign b =',
  )
  fc.assert(
    fc.property(fc.array(part, { maxLength: 25 }), (parts) => {
      const text = parts.join(' ')
      for (const run of [() => renderText(text, SCOPE), () => evaluate(text, SCOPE)]) {
        try {
          run()
        } catch (error) {
          assert.ok(error instanceof TemplateFailure && error.message.length > 0, String(error))
        }
      }
    }),
    { numRuns: 1_000 },
  )
})
