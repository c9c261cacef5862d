// Questions of programs to their terminal have their answers, each in its turn, and no more than so many.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ManualClock } from '../../../test/support/manual-clock.ts'
import { Queries } from './queries.ts'

function asking({ readsKeys = true } = {}) {
  const clock = new ManualClock()
  const answers: string[] = []
  const size = () => ({ columns: 80, rows: 24 })
  const queries = new Queries({ clock, size, readsKeys: () => readsKeys, answer: (text) => answers.push(text) })
  return { clock, queries, answers, prints: (text: string) => queries.look(Buffer.from(text)) }
}

const CASES: readonly [string, string, readonly string[]][] = [
  ['what it is', '\u001b[c', ['\u001b[?1;2c']],
  ['what it is, with a number', 'x\u001b[0cy', ['\u001b[?1;2c']],
  ['whether it is well', '\u001b[5n', ['\u001b[0n']],
  ['where its cursor stands', '\u001b[3;5Hab\u001b[6n', ['\u001b[3;7R']],
  ['how large it is', '\u001b[999;999H\u001b[6n', ['\u001b[24;80R']],
  ['its colour', '\u001b]10;?\u001b\\', ['\u001b]10;rgb:cccc/cccc/cccc\u001b\\']],
  ['its ground, with a bell', '\u001b]11;?\u0007', ['\u001b]11;rgb:0000/0000/0000\u0007']],
  ['several', '\u001b]11;?\u0007\u001b[c', ['\u001b]11;rgb:0000/0000/0000\u0007', '\u001b[?1;2c']],
  ['nothing', '\u001b[31mred\u001b[0m \u001b[2c \u001b]10;red\u0007', []],
]

for (const [name, printed, expected] of CASES)
  test(`who asks for ${name} is told, also where the question comes in pieces`, () => {
    const whole = asking()
    whole.prints(printed)
    assert.deepEqual(whole.answers, expected)
    const cut = asking()
    for (const letter of printed) cut.prints(letter)
    // A colour that is asked for in pieces is answered before its end is seen.
    assert.deepEqual(
      cut.answers.map((text) => text.replace('\u001b\\', '')),
      expected.map((text) => text.replace('\u001b\\', '').replace('\u0007', '')),
    )
  })

test('who reads lines is told nothing, and a flood of questions has a bound', () => {
  const lines = asking({ readsKeys: false })
  lines.prints('\u001b[c\u001b[6n')
  assert.deepEqual(lines.answers, [])
  const flood = asking()
  flood.prints('\u001b[c'.repeat(1_000))
  assert.equal(flood.answers.length, 20)
})

test('what the terminal of a person answers to the same question is left out, and keys are not', async () => {
  const { clock, queries, prints } = asking()
  const typed = (text: string) => Buffer.from(queries.withoutAnswers(Buffer.from(text))).toString()
  const said = 'a\u001b[?62;22cé\u001b[3;4R\u001b]11;rgb:1/2/3\u0007\u001b[A'
  assert.equal(typed(said), said, 'nothing was asked')
  prints('\u001b[c')
  assert.equal(typed(said), 'aé\u001b[A')
  await clock.advance(3_000)
  assert.equal(typed(said), said)
})
