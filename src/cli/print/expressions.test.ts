import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { jsonPathRender, templateRender, yamlRender } from './expressions.ts'
import { LayoutError, parseFormat } from './format.ts'

const BODY = {
  items: [
    { id: 'al-1', status: 'open', title: 'Mend the {door}', labels: ['a', 'b'] },
    { id: 'al-2', status: 'closed', title: 'Paint', priority: 0, metadata: { 'a-b': 'x' } },
  ],
  total: 2,
}

suite('-o jsonpath', () => {
  for (const [path, expected] of [
    ['{.items[*].id}', 'al-1 al-2'],
    ['.items[*].id', 'al-1 al-2'],
    ['$.items[0].id', 'al-1'],
    ['items[0].title', 'Mend the {door}'],
    ['{.items[?(@.status=="open")].id}', 'al-1'],
    ['{.items[0].labels}', '["a","b"]'],
    ["{.items[1].metadata['a-b']}", 'x'],
    ['{.items[9].id}', ''],
    ['all {.total}: {range .items[*]}{.id}{"\\t"}{.title}{"\\n"}{end}', 'all 2: al-1\tMend the {door}\nal-2\tPaint\n'],
    ['{range .items[*]}{@.id} of {$.total}, {end}', 'al-1 of 2, al-2 of 2, '],
    ['{range .items[0]}[{range .labels[*]}{@}{"}"}{end}]{end}', '[a}b}]'],
    ['{.}', JSON.stringify(BODY)],
  ] as const)
    test(`${path} finds ${JSON.stringify(expected).slice(0, 40)}`, async () => {
      assert.equal((await jsonPathRender(path))(BODY), expected)
    })

  for (const path of ['{.items[}', '{.items', '{end}', '{range .items[*]}x', '{.a-b}', '{"x}'])
    test(`${path} is refused before anything is asked`, async () => {
      await assert.rejects(jsonPathRender(path), LayoutError)
    })
})

suite('-o template', () => {
  test('fields, conditions and loops; what an item does not have is empty', async () => {
    const render = await templateRender(
      '{{.id}}\\t{{ title | upcase }}{% if priority %} P{{priority}}{% endif %}{% for l in labels %} #{{l}}{% endfor %}',
    )
    assert.deepEqual(BODY.items.map(render), ['al-1\tMEND THE {DOOR} #a #b', 'al-2\tPAINT P0'])
  })

  test('what is no template is refused, and so is a filter that nobody has; files stay closed', async () => {
    for (const text of ['{{ id', '{% for x in %}', '{% nothing %}'])
      await assert.rejects(templateRender(text), LayoutError)
    const including = await templateRender('{% include "/etc/hostname" %}')
    assert.throws(() => including({}))
  })
})

test('YAML says the same to old readers and to new ones', async () => {
  const render = await yamlRender()
  assert.equal(
    render({ id: 'no', code: '012', at: '2026-05-01T10:00:00Z', text: 'a\nb', list: [1, true], none: [] }),
    'id: "no"\ncode: "012"\nat: "2026-05-01T10:00:00Z"\ntext: |-\n  a\n  b\nlist:\n  - 1\n  - true\nnone: []\n',
  )
})

test('a format that does not exist is refused with those that do', () => {
  assert.throws(() => parseFormat('xml'), { message: 'there is no output format "xml"', hint: /table.*template=/ })
  assert.throws(() => parseFormat('verdict=clean'), { hint: /--result verdict=clean$/ })
  assert.deepEqual(parseFormat('template=a=b'), { kind: 'template', expression: 'a=b' })
})
