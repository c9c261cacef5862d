// The inbox as lines, at several widths: what is drawn fits, whatever is in it.
import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { codePoint } from '../../../test/support/code-point.ts'
import { fc } from '../../../test/support/random.ts'
import { widthOf } from '../print/text-width.ts'
import { draw } from './draw.ts'
import { letter, MAYOR, mail, NOW, view } from './example.ts'
import type { View } from './state.ts'

// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is taken away.
const STYLES = /\u001b\[\d+m/g
const plain = (lines: readonly string[]) => lines.map((line) => line.replaceAll(STYLES, '').trimEnd())
const drawn = (columns: number, rows: number, more: Partial<View> = {}) =>
  plain(draw(view(more), { columns, rows }).lines)

suite('the inbox', () => {
  test('at 80 columns', () => {
    assert.deepEqual(drawn(80, 9, { selected: { key: 'm2', at: 1 } }), [
      'svcctl mail inbox   alpha   mail of human: 3 messages   1 unread',
      '[inbox]  unread   archived   sent',
      '  * mayor               2m    5 Deploy finished  All tests pass. The release is…',
      '>   rig/名前            2h    Question about the colour  Blue or green?',
      '    s-0123456789abcdef  3d    (reply)',
      '',
      '',
      '',
      'enter read  r reply  n new  a archive  d delete  / find  tab box  ? help  q end',
    ])
  })

  test('a message with its thread, words kept whole', () => {
    const thread = [letter('m0', { subject: 'Deploy?', body: 'Please deploy.', from: 'human', to: 'mayor' }), MAYOR]
    assert.deepEqual(drawn(50, 14, { open: { id: 'm1', from: 0 }, mail: { ...mail(), thread } }), [
      'svcctl mail inbox   alpha',
      'mail of human: 3 messages   1 unread',
      'Deploy finished',
      'from  mayor',
      'to    human; cc ops',
      'sent  2026-05-01T09:58:00.000Z, 2m ago',
      'id    m1, priority 5',
      '',
      'All tests pass.',
      'The release is tagged and on its way to everybody',
      'who asked.',
      '',
      '── human to mayor, 2m ────────────────────────────',
      'r reply  R in the editor  a archive  u unread  d …',
    ])
  })

  test('scrolling ends with the text', () => {
    const { lines, from } = draw(view({ open: { id: 'm1', from: 1_000 } }), { columns: 80, rows: 8 })
    assert.equal(from, 2)
    assert.equal(plain(lines).at(-2), 'The release is tagged and on its way to everybody who asked.')
  })

  test('what is lost, what is empty, and what is asked for are said', () => {
    assert.match(drawn(80, 6, { mail: { ...mail(), lost: 'no connection; again in 1 s' } })[0] ?? '', /no connection/)
    assert.match(drawn(80, 6, { mail: { ...mail(), messages: [] } }).join('\n'), /no mail/)
    assert.match(drawn(80, 6, { mail: { ...mail(), messages: undefined } }).join('\n'), /looking/)
    assert.match(drawn(80, 6, { filter: 'nowhere' }).join('\n'), /nothing has "nowhere"/)
    assert.match(drawn(80, 6, { mail: { ...mail(), more: true } }).join('\n'), /there are more/)
    assert.match(drawn(80, 20, { help: true }).join('\n'), /delete it for good/)
  })

  test('texts of strangers command no terminal and stay on their line', () => {
    const nasty = letter('m1', { from: 'a\nb', subject: '\u001b[2Jx\u202ey', body: '\u001b[201~\u0003\u009b2J\r\n<b>' })
    const own = { ...mail(), messages: [nasty] }
    for (const more of [{ mail: own }, { mail: own, open: { id: 'm1', from: 0 } }]) {
      const { lines } = draw(view(more), { columns: 60, rows: 12 })
      const others = lines.join('').replaceAll(STYLES, '')
      assert.doesNotMatch(others, /[\p{Cc}\u202e]/u)
      assert.equal(lines.length, 12)
    }
  })

  test('every screen is as large as the terminal, whatever is in it', () => {
    fc.assert(
      fc.property(
        fc.string({ unit: 'grapheme', maxLength: 300 }),
        fc.string({ unit: codePoint, maxLength: 60 }),
        fc.integer({ min: 10, max: 130 }),
        fc.integer({ min: 3, max: 40 }),
        fc.constantFrom(undefined, { id: 'm1', from: 3 }),
        (body, other, columns, rows, open) => {
          const one = letter('m1', { from: other, subject: body.slice(0, 50), body, cc: [other] })
          const shown = view({ mail: { ...mail(), messages: [one], owner: other }, open, color: true })
          const { lines } = draw(shown, { columns, rows })
          assert.equal(lines.length, rows)
          for (const line of lines) assert.ok(widthOf(line.replaceAll(STYLES, '')) <= columns, line)
        },
      ),
      { numRuns: 200 },
    )
  })
})

test('times are those of the moment', () => assert.equal(new Date(NOW).toISOString(), '2026-05-01T10:00:00.000Z'))
