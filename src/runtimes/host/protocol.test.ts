import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { lineReader, MAX_LINE_BYTES, parseMessage, parseRequest } from './protocol.ts'

suite('the protocol between supervisor and host', () => {
  test('lines are found wherever the stream is cut, characters of several bytes included', () => {
    const text = Buffer.from('{"a":"äöü€"}\n\n{"b":1}\n{"c"')
    for (let cut = 0; cut <= text.length; cut++) {
      const lines: string[] = []
      const read = lineReader(
        (line) => lines.push(line),
        () => assert.fail('no line is too long'),
      )
      read(text.subarray(0, cut))
      read(text.subarray(cut))
      assert.deepEqual(lines, ['{"a":"äöü€"}', '{"b":1}'])
    }
  })

  test('a line beyond the bound is told once, and nothing after it is read', () => {
    let overflows = 0
    const lines: string[] = []
    const read = lineReader(
      (line) => lines.push(line),
      () => overflows++,
    )
    const chunk = Buffer.alloc(MAX_LINE_BYTES / 4, 'x')
    for (let i = 0; i < 8; i++) read(chunk)
    read(Buffer.from('\n{"a":1}\n'))
    assert.equal(overflows, 1)
    assert.deepEqual(lines, [])
  })

  test('a request that this host does not know can still be answered', () => {
    assert.equal(parseRequest('{"id":7,"op":"fly"}'), 7)
    assert.equal(parseRequest('{"op":"status"}'), undefined)
    assert.equal(parseRequest('null'), undefined)
    assert.equal(parseRequest('{"id":'), undefined)
    assert.deepEqual(parseRequest('{"id":7,"op":"status"}'), { id: 7, op: 'status' })
    assert.equal(parseMessage('{"neither":1}'), undefined)
  })
})
