import assert from 'node:assert/strict'
import { ftruncateSync, mkdirSync, openSync, readdirSync, readFileSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { temporaryDirectory } from '../../test/support/temporary.ts'
import { type AppendCalls, appendWhole, replaceFile } from './whole-file.ts'

const LINE = '{"id":"m2","state":"intent"}\n'

/** A disk with room for `room` bytes, which takes a part of a write before it refuses the rest. */
function diskWith(room: number, calls: Partial<AppendCalls> = {}): AppendCalls {
  let left = room
  return {
    write(fd, bytes, from) {
      if (left === 0) throw Object.assign(new Error('no space left on device'), { code: 'ENOSPC' })
      const written = writeSync(fd, bytes, from, Math.min(left, 7, bytes.length - from))
      left -= written
      return written
    },
    sync: () => {},
    truncate: ftruncateSync,
    ...calls,
  }
}

test('append: a disk that is full after any number of bytes leaves no half line', () => {
  for (let room = 0; room <= LINE.length; room++) {
    using directory = temporaryDirectory()
    const path = join(directory.path, 'log')
    const fd = openSync(path, 'a')
    appendWhole(fd, 'first\n')
    const append = () => appendWhole(fd, LINE, diskWith(room))
    if (room < LINE.length) assert.throws(append, { code: 'ENOSPC' }, `room for ${room} bytes`)
    else append()
    appendWhole(fd, 'last\n')
    assert.equal(readFileSync(path, 'utf8'), room < LINE.length ? 'first\nlast\n' : `first\n${LINE}last\n`)
  }
})

test('append: a line that could not be flushed is taken back', () => {
  using directory = temporaryDirectory()
  const path = join(directory.path, 'log')
  const fd = openSync(path, 'a')
  const sync = () => {
    throw Object.assign(new Error('i/o error'), { code: 'EIO' })
  }
  assert.throws(() => appendWhole(fd, LINE, diskWith(LINE.length, { sync })), { code: 'EIO' })
  assert.equal(readFileSync(path, 'utf8'), '')
})

test('replace: a file that cannot be replaced stays, and nothing is left beside it', () => {
  using directory = temporaryDirectory()
  const path = join(directory.path, 'file')
  replaceFile(path, 'one')
  replaceFile(path, 'two')
  assert.equal(readFileSync(path, 'utf8'), 'two')
  mkdirSync(join(directory.path, 'taken'))
  assert.throws(() => replaceFile(join(directory.path, 'taken'), 'text'))
  assert.deepEqual(readdirSync(directory.path).sort(), ['file', 'taken'])
})
