// What passes between the terminal of an agent and that of a person, and what is typed to leave.
import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { fc } from '../../../test/support/random.ts'
import { Leaving } from './leaving.ts'
import { PassingOutput } from './passing.ts'

/** In pieces of this size. */
function passed(text: string | Uint8Array, size = Number.POSITIVE_INFINITY): string {
  const output = new PassingOutput()
  const bytes = Buffer.from(text)
  const parts: Uint8Array[] = []
  for (let from = 0; from < bytes.length; from += size) parts.push(output.pass(bytes.subarray(from, from + size)))
  return Buffer.concat(parts).toString('utf8')
}

suite('the terminal of a person is driven by nobody', () => {
  const PASSES = [
    'plain text, Ünï-漢字 🙂 £',
    '\u001b[1;31mred\u001b[m\r\n',
    '\u001b[?1049h\u001b[?25l\u001b[2J\u001b[H',
    '\u001b[?2004h\u001b[?1h\u001b=',
    '\u001b]2;title\u0007',
    '\u001b]8;;https://example.org\u0007link\u001b]8;;\u0007',
    '\u001b7\u001b8\u001bM\u001b(0lqk\u001b(B',
    '\u001b[2;5r\u001b[3 q\u001b[!p',
    'bell\u0007',
  ]
  for (const text of PASSES)
    test(`${JSON.stringify(text)} passes`, () => {
      for (const size of [1, 2, 3, 1000]) assert.equal(passed(text, size), text)
    })

  const REFUSED = {
    'who are you': '\u001b[c\u001b[>c\u001b[0c\u001bZ\u0005',
    'where is the cursor': '\u001b[6n\u001b[?6n\u001b[5n',
    'which modes': '\u001b[?2004$p\u001b[?u\u001b[>q',
    'which colours': '\u001b]10;?\u0007\u001b]11;?\u001b\\\u001b]4;1;?\u0007',
    'the clipboard': '\u001b]52;c;aGVsbG8=\u0007',
    'settings and pictures': '\u001bP$qm\u001b\\\u001bP+q544e\u001b\\\u001bPq#0~\u001b\\\u001b_Gi=1;\u001b\\',
    'the printer and the size': '\u001b[5i\u001b[8;50;200t\u001b[21t\u001b[?3h',
    'other keys': '\u001b[>1u\u001b[=1u\u001b[>4;2m',
    'mouse and focus': '\u001b[?1000h\u001b[?1002;1003;1006h\u001b[?1004h',
    'sequences of one letter': '\u009b6n\u0090$qm\u009c',
    'what is longer than anything': `\u001b[${'1;'.repeat(500)}c\u001b]2;${'x'.repeat(10_000)}\u0007`,
  }
  for (const [what, text] of Object.entries(REFUSED))
    test(`${what} does not pass`, () => {
      // Behind a sequence of one letter its parameters are text.
      for (const size of [1, 2, 3, 1000]) assert.match(passed(`<${text}>`, size), /^<(6n\$qm)?>$/)
    })

  test('of several modes those pass that may', () => {
    assert.equal(passed('\u001b[?25;1000;2004h'), '\u001b[?25;2004h')
  })

  test('however it is cut, and whatever it is, the same passes and nothing asks', () => {
    const piece = fc.constantFrom(
      ...PASSES,
      ...Object.values(REFUSED),
      '\u001b',
      '\u001b[',
      '\u001b]',
      '\u0018',
      '\u00c2',
    )
    const property = fc.property(fc.array(piece), fc.integer({ min: 1, max: 9 }), (pieces, size) => {
      const text = pieces.join('')
      const whole = passed(text)
      assert.equal(passed(text, size), whole)
      const asks = ['\u001b[c', '\u001b[6n', '\u001b]52', '\u001bP', '\u001bZ', '\u0005', '\u009b']
      assert.deepEqual(
        asks.filter((one) => whole.includes(one)),
        [],
      )
    })
    fc.assert(property, { numRuns: 500 })
  })
})

suite('leaving a terminal', () => {
  const typed = (...pieces: readonly string[]) => {
    const leaving = new Leaving()
    let sent = ''
    for (const piece of pieces) {
      const { bytes, leaves } = leaving.feed(Buffer.from(piece))
      sent += Buffer.from(bytes).toString('utf8')
      if (leaves) return `${sent}|left`
    }
    return sent
  }
  for (const [what, pieces, sent] of [
    ['ctrl-] leaves, and what is typed behind it is nobody’s', ['ls\r\u001drm'], 'ls\r|left'],
    ['~. leaves at the start of a line', ['ls\r~.'], 'ls\r|left'],
    ['~. leaves at once, key by key', ['~', '.'], '|left'],
    ['~. inside a line is text', ['ls ~./x\r'], 'ls ~./x\r'],
    ['~~ is a tilde', ['~~.'], '~.'],
    ['another key behind a tilde goes with it', ['~', '/x\r'], '~/x\r'],
    ['a paste is text', ['\u001b[200~\r~.\u001d\u001b[201~x'], '\u001b[200~\r~.\u001d\u001b[201~x'],
    ['after a paste one can leave', ['\u001b[200~a\u001b[2', '01~', '\u001d'], '\u001b[200~a\u001b[201~|left'],
    ['letters of several bytes pass', ['é漢🙂'], 'é漢🙂'],
  ] as const)
    test(what, () => assert.equal(typed(...pieces), sent))
})
