import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import type { OutputTurn } from '../../contract/sessions/session-transcript.ts'
import { TurnText } from './turn-text.ts'

type Piece = readonly [role: OutputTurn['role'], id: string, text: string]
const shown = (pieces: readonly Piece[], toTerminal = false): string => {
  const text = new TurnText(toTerminal)
  return pieces.map(([role, id, said]) => text.add({ role, id, text: said })).join('') + text.breakLine()
}

suite('what is said comes as text that flows', () => {
  const cases: readonly [string, readonly Piece[], string][] = [
    [
      'pieces of one answer are one sentence',
      [
        ['assistant', '1-0', 'Let me '],
        ['assistant', '1-0', 'look'],
        ['assistant', '1-0', ' at it.\nDone.'],
      ],
      'Let me look at it.\nDone.\n',
    ],
    [
      'another entry begins a line of its own, also of the same role',
      [
        ['assistant', '1-0', 'I look'],
        ['assistant', '1-9', '[Bash]'],
        ['result', '1-20', '[result] a\nb'],
        ['assistant', '1-30', 'Found.'],
      ],
      'I look\n[Bash]\n  [result] a\n  b\nFound.\n',
    ],
    [
      'a question stands out on each of its lines',
      [
        ['user', '1-0', 'do\nthis'],
        ['system', '1-5', 'turn ended\nbadly'],
        ['user', '1-9', 'and that'],
      ],
      '> do\n> this\n· turn ended\n  badly\n> and that\n',
    ],
    [
      'lines of a terminal are whole wherever they were cut',
      [
        ['output', '1-0', '$ '],
        ['output', '1-2', 'part-1 '],
        ['output', '1-9', 'part-2\nnext'],
        ['output', '1-22', ' line\n'],
        ['output', '1-29', '$ '],
      ],
      '$ part-1 part-2\nnext line\n$ \n',
    ],
    [
      'the echo of what was typed is not shown again, wherever it is cut',
      [
        ['output', '1-0', '$ '],
        ['user', '1-2.1', 'echo hi'],
        ['output', '1-2', 'ec'],
        ['output', '1-2', 'ho hi\nhi\n$ '],
      ],
      '$ \n> echo hi\nhi\n$ \n',
    ],
    [
      'what only begins like an echo is shown',
      [
        ['user', '1-2.1', 'echo hi'],
        ['output', '1-2', 'ec'],
        ['output', '1-2', 'lipse\n'],
      ],
      '> echo hi\neclipse\n',
    ],
    [
      'control characters are shown, not obeyed',
      [['assistant', '1-0', 'a\u001b[31mb\tc\r\nd']],
      'a\\x1b[31mb    c\nd\n',
    ],
    [
      'a blank line of a terminal stays one',
      [
        ['output', '1-0', 'a\n'],
        ['output', '1-2', '\nb\n'],
      ],
      'a\n\nb\n',
    ],
    ['nothing said prints nothing', [['assistant', '1-0', '']], ''],
  ]
  for (const [name, pieces, text] of cases) test(name, () => assert.equal(shown(pieces), text))

  test('a line that is written anew replaces itself in a terminal and is a line of its own elsewhere', () => {
    const pieces: readonly Piece[] = [
      ['output', '1-0', '10%'],
      ['output', '1-3', '\r20%'],
      ['output', '1-7', '\n'],
      ['output', '1-8', '\rdone'],
    ]
    assert.equal(shown(pieces, true), '10%\r20%\ndone\n')
    assert.equal(shown(pieces), '10%\n20%\ndone\n')
  })

  test('a line that one has typed oneself is there already', () => {
    const text = new TurnText(true)
    assert.equal(text.add({ role: 'output', id: '1-0', text: '$ ' }), '$ ')
    text.typed('echo hi')
    assert.equal(text.add({ role: 'user', id: '1-2.1', text: 'echo hi' }), '')
    assert.equal(text.add({ role: 'output', id: '1-2', text: 'echo hi\nhi\n$ ' }), 'hi\n$ ')
    assert.equal(text.breakLine(), '\n')
  })

  test('the end of a turn ends the line of an answer, and leaves a prompt where it is', () => {
    const text = new TurnText(true)
    assert.equal(text.add({ role: 'assistant', id: '1-0', text: 'Done.' }), 'Done.')
    assert.equal(text.pause(), '\n')
    assert.equal(text.pause(), '')
    assert.equal(text.add({ role: 'output', id: '1-9', text: 'Continue? ' }), 'Continue? ')
    assert.equal(text.pause(), '')
  })
})
