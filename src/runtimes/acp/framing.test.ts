import assert from 'node:assert/strict'
import { test } from 'node:test'
import { framed } from './framing.ts'

const parts = (line: string) => framed(Buffer.from(line))?.map(String)

test('a message is found behind marks and escape sequences, and nowhere else', () => {
  const message = '{"jsonrpc":"2.0"}\n'
  assert.deepEqual(parts(`\ufeff${message}`), [message])
  assert.deepEqual(parts(`\u001b[?25l${message}`), ['\u001b[?25l\n', message])
  assert.deepEqual(parts('\u001bc{"a":1}\u001b[0m\r\n'), ['\u001bc\n', '{"a":1}\n', '\u001b[0m\r\n'])
  assert.deepEqual(parts('\u001b]8;;x}\u001b\\{"a":"}"}\n'), ['\u001b]8;;x}\u001b\\\n', '{"a":"}"}\n'])
  for (const line of [
    'Loading {"a":1}\n',
    '{"a":1} done\n',
    '\u001b[?25l{"a":\n',
    '\u001b]0;{"a":1}\n',
    '\u001b[0m\n',
    '}{\n',
  ])
    assert.equal(parts(line), undefined, JSON.stringify(line))
})

test('megabytes of escape sequences that never end take no more time than their length', () => {
  const kinds = ['\u001b', '\u001b[', '\u001b]', '\u001b[0;', '\u001b]0;a\u001b', '\u001b ', '\u0000']
  const time = (size: number) => {
    const began = performance.now()
    for (const kind of kinds) framed(Buffer.from(`${kind.repeat(size)}x}\n`))
    return performance.now() - began
  }
  time(1000)
  const [short, long] = [time(20_000), time(320_000)]
  // Sixteen times as much; squared it would be 256 times.
  assert.ok(long < 90 * Math.max(short, 1), `${short} ms, then ${long} ms`)
})
