import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { codePoint } from '../../../test/support/code-point.ts'
import { fc } from '../../../test/support/random.ts'
import { cityContaining } from './discovery.ts'
import { printable } from './failure.ts'
import type { Sink } from './io.ts'
import { jsonLine, oneLine, Printer, relativeTime } from './output.ts'

suite('lines', () => {
  test('whatever is in an object, its line is one line, and reads back as the object', () => {
    const text = fc.oneof(
      fc.string({ unit: codePoint }),
      fc.constantFrom('\n', '\r\n', '\u0085', '\u2028', '\u2029', '\u0000', '\ud800'),
    )
    fc.assert(
      fc.property(fc.dictionary(text, fc.oneof(text, fc.integer(), fc.array(text))), (value) => {
        const object: unknown = JSON.parse(JSON.stringify(value))
        const line = jsonLine(object)
        assert.deepEqual(JSON.parse(line), object)
        assert.doesNotMatch(line, /[\n\r\u0085\u2028\u2029]/)
        assert.equal(oneLine(JSON.stringify(object, null, 2)), line)
      }),
    )
  })

  test('what is printed for people drives no terminal', () => {
    fc.assert(
      fc.property(fc.string({ unit: codePoint }), (text) => assert.doesNotMatch(printable(text), /[\p{Cc}--[\t\n]]/v)),
    )
  })

  test('times are told from now', () => {
    const now = Date.parse('2026-05-01T10:00:00Z')
    const told = (ms: number) => relativeTime(new Date(now + ms).toISOString(), now)
    assert.deepEqual([0, -999, -1_000, -59_999, -60_000, -7_200_000, -200_000_000, 5_000].map(told), [
      'now',
      'now',
      '1s ago',
      '59s ago',
      '1m ago',
      '2h ago',
      '2d ago',
      'in 5s',
    ])
    assert.equal(relativeTime('soon', now), 'soon')
  })
})

suite('the city of a directory', () => {
  const segment = fc.constantFrom('a', 'b', 'ab', 'c')
  const path = fc.array(segment, { maxLength: 5 }).map((segments) => `/${segments.join('/')}`)

  test('is the innermost one at or above it, by whole names', () => {
    fc.assert(
      fc.property(fc.uniqueArray(path, { maxLength: 6 }), path, (roots, directory) => {
        const found = cityContaining(
          roots.map((root) => ({ name: root, path: root })),
          [directory],
        )?.path
        const above = (root: string) => root === '/' || directory === root || directory.startsWith(`${root}/`)
        const longest = roots.filter(above).toSorted((a, b) => b.length - a.length)[0]
        assert.equal(found, longest)
      }),
    )
  })
})

suite('tables of a terminal', () => {
  const table = (columns: number, ...rows: readonly (readonly [string, string, string])[]) =>
    tableOf(columns, undefined, rows)
  const tableOf = async (
    columns: number,
    kind: 'prose' | undefined,
    rows: readonly (readonly [string, string, string])[],
  ) => {
    let out = ''
    const sink: Sink = {
      isTerminal: true,
      columns,
      write: (data) => {
        out += String(data)
        return Promise.resolve()
      },
    }
    const cell = (header: string, at: 0 | 1 | 2) => ({
      header,
      value: (row: readonly string[]) => row[at],
      ...(kind === undefined || at === 0 ? {} : { kind }),
    })
    await new Printer(sink, {
      format: { kind: 'table', expression: '' },
      color: false,
      now: () => 0,
      fields: async () => [],
    }).list({
      items: rows,
      columns: [cell('ID', 0), cell('TITLE', 1), cell('OWNER', 2)],
      name: ([id]) => id,
      json: '[]',
    })
    return out.split('\n')
  }

  test('a name is never cut, whatever the width: it is what people go on with', async () => {
    const id = 's-0123456789abcdef'
    const [, row = ''] = await table(20, [id, 'a title that is much too long', 'somebody'])
    assert.equal(row, `${id}  a title…`)
  })

  test('columns that are too wide share the room', async () => {
    const [title, owner] = ['a title that is much too long for that', 'somebody/with/a/very/long/name']
    const [, row = ''] = await table(44, ['al-1', title, owner])
    assert.equal(row, 'al-1  a title that is m…  somebody/with/a/v…')
    assert.equal((await table(45, ['al-1', title, owner]))[1], 'al-1  a title that is mu…  somebody/with/a/v…')
    assert.equal((await table(70, ['al-1', title, 'x']))[1], `al-1  ${title}  x`)
  })

  test('what is wrong, and what was meant, is never cut: it goes on below itself', async () => {
    const lines = await tableOf(44, 'prose', [
      ['city.toml:9', 'unknown key `workspce`', 'did you mean `workspace`?'],
      ['city.toml:10', 'too', 'long'],
    ])
    assert.deepEqual(lines, [
      'ID            TITLE           OWNER',
      'city.toml:9   unknown key     did you mean',
      '              `workspce`      `workspace`?',
      'city.toml:10  too             long',
      '',
    ])
  })

  test('letters that are two columns wide, or none, keep the columns where they are', async () => {
    const [, ...rows] = await table(80, ['a', '日本語', 'x'], ['b', 'e\u0301te\u0301', 'x'], ['c', 'plain', 'x'])
    assert.deepEqual(rows.slice(0, 3), ['a   日本語  x', 'b   été     x'.normalize('NFD'), 'c   plain   x'])
    const [, cut = ''] = await table(19, ['a', '日本語日本語', 'x'])
    assert.equal(cut, 'a   日本語…   x')
  })

  test('a column that holds nothing takes no room, also of its header', async () => {
    const [header, row] = await table(80, ['al-1', '', 'ann'])
    assert.deepEqual([header, row], ['ID    OWNER', 'al-1  ann'])
  })

  test('no line is longer than the terminal is wide, and the title stays', async () => {
    for (const columns of [24, 40, 80, 200]) {
      const lines = await table(columns, [
        'al-1',
        'a title that is much too long for that',
        'somebody/with/a/very/long/name',
      ])
      for (const line of lines) assert.ok(line.length <= columns, `${columns}: ${line}`)
      assert.match(lines[1] ?? '', /^al-1 {2}a title/)
    }
  })

  test('where the width is not known nothing is cut', async () => {
    const title = 'a title that is much too long for that'.repeat(20)
    assert.equal((await table(Number.POSITIVE_INFINITY, ['al-1', title, 'x']))[1], `al-1  ${title}  x`)
  })
})
