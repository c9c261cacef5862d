import assert from 'node:assert/strict'
import { test } from 'node:test'
import { seededRandom } from '../../test/support/random.ts'
import { maskText, StreamMask } from './masking.ts'

const SECRET = 'a3f0c1d29e88b7465f00aa11bb22cc33'
const OTHER = 'ffee0011223344556677889900aabbcc'

test('a secret is stars wherever output is cut in two, and nothing else changes', () => {
  const text = `SVC_TOKEN=${SECRET}\nthe same again ${SECRET}${SECRET}, and ${SECRET.slice(0, 9)} is none\n${OTHER}`
  const shown = text.replaceAll(SECRET, '*'.repeat(SECRET.length)).replaceAll(OTHER, '*'.repeat(OTHER.length))
  for (let at = 0; at <= text.length; at++) {
    const mask = new StreamMask([SECRET, OTHER])
    const out = [mask.push(Buffer.from(text.slice(0, at))), mask.push(Buffer.from(text.slice(at))), mask.flush()]
    const said = Buffer.concat(out).toString()
    assert.ok(!said.includes(SECRET.slice(5)) && !said.includes(OTHER.slice(5)), `cut at ${at}: ${said}`)
    const differs = [...shown].findIndex((letter, index) => letter !== '*' && letter !== said[index])
    assert.deepEqual([said.length, differs], [text.length, -1], `cut at ${at}: ${said}`)
  }
})

test('in parts of any size, with pauses between them, no secret is ever whole', () => {
  const random = seededRandom()
  for (let run = 0; run < 500; run++) {
    const mask = new StreamMask([SECRET, OTHER])
    const text = Array.from({ length: 6 }, () => random.pick([SECRET, OTHER, 'x', SECRET.slice(0, 12), '\r\n'])).join(
      '',
    )
    const out: Buffer[] = []
    for (let at = 0; at < text.length; ) {
      const end = Math.min(text.length, at + random.between(1, 40))
      out.push(Buffer.from(mask.push(Buffer.from(text.slice(at, end)))))
      if (random.chance(0.3)) out.push(Buffer.from(mask.flush()))
      at = end
    }
    out.push(mask.flush())
    const shown = Buffer.concat(out).toString()
    assert.equal(shown.length, text.length, 'offsets stay')
    assert.ok(
      !shown.includes(SECRET) && !shown.includes(OTHER),
      `SVC_SEED=${random.seed} run ${run}: ${text} → ${shown}`,
    )
  }
})

test('without secrets bytes pass as they are, and short or empty secrets mask nothing', () => {
  const bytes = Buffer.from('abc')
  assert.equal(new StreamMask(['']).push(bytes), bytes)
  assert.equal(maskText('a b c', ['', 'b']), 'a b c')
  assert.equal(maskText(`x ${SECRET}`, [SECRET]), `x ${'*'.repeat(32)}`)
})
