import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, suite, test } from 'node:test'
import { endOffsetSync, openOutputReader, openOutputWriter } from './output-log.ts'

/** Mounting takes root, and a kernel that lets root do it here. */
const noMount = mayMount() ? {} : { skip: 'cannot mount a file system here' }

function mayMount(): boolean {
  const place = mkdtempSync(join(tmpdir(), 'svc-mount-'))
  try {
    return spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=64k', 'tmpfs', place]).status === 0
  } finally {
    spawnSync('umount', [place])
    rmSync(place, { recursive: true, force: true })
  }
}

const SMALL = { segmentBytes: 100, capBytes: 400 }

suite('the output log of a run', () => {
  let directory = ''
  beforeEach(() => {
    directory = mkdtempSync(join(tmpdir(), 'svc-log-'))
  })
  afterEach(() => rmSync(directory, { recursive: true, force: true }))

  test('what was appended can be read at its offset, across segments', async () => {
    const writer = openOutputWriter(directory, SMALL)
    const text = Array.from({ length: 60 }, (_, i) => `line ${i}\n`)
      .join('')
      .slice(0, 350)
    for (let at = 0; at < text.length; at += 37) writer.append(Buffer.from(text.slice(at, at + 37)))
    const reader = openOutputReader(directory)
    assert.equal(writer.endOffset, 350)
    assert.equal(await reader.endOffset(), 350)
    assert.equal(endOffsetSync(directory), 350)
    assert.equal((await reader.read(0, 1000)).bytes.toString(), text)
    assert.equal((await reader.read(95, 110)).bytes.toString(), text.slice(95, 205))
    assert.equal((await reader.read(350, 10)).bytes.length, 0)
    assert.deepEqual(
      readdirSync(directory).sort(),
      [0, 100, 200, 300].map((n) => `out.${String(n).padStart(15, '0')}.log`),
    )
    writer.close()
  })

  test('a chunk greater than a segment is spread over several', async () => {
    const writer = openOutputWriter(directory, SMALL)
    writer.append(Buffer.alloc(250, 'x'))
    assert.equal((await openOutputReader(directory).read(0, 1000)).bytes.length, 250)
    writer.close()
  })

  test('the oldest output is dropped at the cap and the start offset says so', async () => {
    const writer = openOutputWriter(directory, SMALL)
    for (let i = 0; i < 100; i++) writer.append(Buffer.from(String(i).padStart(10, '.')))
    const reader = openOutputReader(directory)
    const start = await reader.startOffset()
    assert.equal(await reader.endOffset(), 1000)
    assert.ok(start >= 600 && start < 1000, `start ${start}`)
    const { offset, bytes } = await reader.read(0, 10_000)
    assert.equal(offset, start)
    assert.equal(bytes.length, 1000 - start)
    assert.equal(bytes.subarray(-10).toString(), '........99')
    writer.close()
  })

  test('a writer that starts again continues where the log ends', async () => {
    const first = openOutputWriter(directory, SMALL)
    first.append(Buffer.alloc(130, 'a'))
    first.close()
    const second = openOutputWriter(directory, SMALL)
    assert.equal(second.endOffset, 130)
    second.append(Buffer.alloc(130, 'b'))
    assert.equal(
      (await openOutputReader(directory).read(120, 20)).bytes.toString(),
      `${'a'.repeat(10)}${'b'.repeat(10)}`,
    )
    second.close()
  })

  test('a reader that follows never sees a gap while the writer rotates and drops', async () => {
    const writer = openOutputWriter(directory, SMALL)
    const reader = openOutputReader(directory)
    let at = 0
    for (let round = 0; round < 300; round++) {
      writer.append(Buffer.from(Array.from({ length: 30 }, (_, i) => (round * 30 + i) % 251)))
      const { offset, bytes } = await reader.read(at, 1 << 20)
      assert.equal(offset, at)
      for (const [i, byte] of bytes.entries()) assert.equal(byte, (offset + i) % 251)
      at = offset + bytes.length
    }
    assert.equal(at, 9000)
    writer.close()
  })

  test('output that a full disk has no room for is said to be lost, and how much', noMount, async () => {
    const disk = join(directory, 'disk')
    mkdirSync(disk)
    assert.equal(spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=64k', 'tmpfs', disk]).status, 0)
    try {
      writeFileSync(join(disk, 'others'), Buffer.alloc(32_768))
      const writer = openOutputWriter(disk)
      for (let round = 0; round < 10; round++) writer.append(Buffer.alloc(10_000, 'x'))
      const kept = writer.endOffset
      rmSync(join(disk, 'others'))
      writer.close()
      const { bytes } = await openOutputReader(disk).read(0, 1 << 20)
      assert.ok(kept > 0 && kept < 65_536, `${kept} bytes were kept`)
      assert.equal(
        bytes.subarray(kept).toString(),
        `\r\n[${100_000 - kept} bytes of output were lost: they could not be written]\r\n`,
      )
    } finally {
      spawnSync('umount', [disk])
    }
  })

  test('a log that does not exist yet is empty', async () => {
    const reader = openOutputReader(join(directory, 'none'))
    assert.equal(await reader.endOffset(), 0)
    assert.equal((await reader.read(0, 10)).bytes.length, 0)
  })
})
