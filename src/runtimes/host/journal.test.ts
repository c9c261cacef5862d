import assert from 'node:assert/strict'
import { appendFileSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { suite, test } from 'node:test'
import { temporaryDirectory } from '../../../test/support/temporary.ts'
import { openJournal, readDelivered } from './journal.ts'
import { FILES } from './protocol.ts'

const mark = (seq: number) => ({ seq, id: `m${seq}` })

suite('the journal of deliveries', () => {
  test('what was typed is known to the host and to those who read its file', () => {
    using directory = temporaryDirectory()
    const journal = openJournal(directory.path)
    journal.intent(mark(1))
    journal.outcome(mark(1), { state: 'delivered' })
    journal.intent(mark(2))
    journal.outcome(mark(2), { state: 'failed', code: 'timeout', message: '' })
    journal.intent(mark(3))
    journal.outcome(mark(3), { state: 'uncertain', message: '' })
    journal.intent(mark(4))
    const expected = ['yes', 'no', 'unknown', 'unknown', 'no']
    const numbers = [1, 2, 3, 4, 5]
    assert.deepEqual(
      numbers.map((seq) => journal.delivered(mark(seq))),
      expected,
    )
    assert.deepEqual(
      numbers.map((seq) => readDelivered(directory.path, mark(seq))),
      expected,
    )
  })

  test('half a line at the end, as a power cut leaves it, spoils nothing', () => {
    using directory = temporaryDirectory()
    openJournal(directory.path).intent(mark(1))
    appendFileSync(join(directory.path, FILES.deliveries), '{"seq":2,"id":"m2","st')
    assert.equal(readDelivered(directory.path, mark(1)), 'unknown')
    assert.equal(readDelivered(directory.path, mark(2)), 'no')
  })

  test('without a journal nothing was typed', () => {
    using directory = temporaryDirectory()
    assert.equal(readDelivered(directory.path, mark(1)), 'no')
  })

  test('a delivery that is too old to be remembered is never said to be untyped', () => {
    using directory = temporaryDirectory()
    const lines = Array.from({ length: 10_050 }, (_, at) => JSON.stringify({ ...mark(at + 1), state: 'delivered' }))
    appendFileSync(join(directory.path, FILES.deliveries), `${lines.join('\n')}\n`)
    assert.equal(readDelivered(directory.path, mark(20)), 'unknown')
    assert.equal(readDelivered(directory.path, mark(10_050)), 'yes')
    assert.equal(readDelivered(directory.path, mark(10_051)), 'no')
  })

  test('a disk that is full after any number of bytes of an intent: it was not typed, and the next one is read', () => {
    for (let room = 0; room < 36; room++) {
      using directory = temporaryDirectory()
      const full = { room }
      const journal = openJournal(directory.path, {
        write(fd, bytes, from) {
          if (full.room === 0) throw Object.assign(new Error('no space left on device'), { code: 'ENOSPC' })
          const written = writeSync(fd, bytes, from, Math.min(full.room, bytes.length - from))
          full.room -= written
          return written
        },
        sync: () => {},
        // The hardest case: what was written stays.
        truncate() {
          throw new Error('read-only')
        },
      })
      assert.throws(() => journal.intent(mark(1)), { code: 'ENOSPC' })
      full.room = 1_000
      journal.intent(mark(2))
      journal.outcome(mark(2), { state: 'delivered' })
      assert.equal(readDelivered(directory.path, mark(1)), 'no', `room for ${room} bytes`)
      assert.equal(readDelivered(directory.path, mark(2)), 'yes', `room for ${room} bytes`)
    }
  })
})
