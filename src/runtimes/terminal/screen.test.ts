import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Random, seededRandom } from '../../../test/support/random.ts'
import { temporaryDirectory } from '../../../test/support/temporary.ts'
import { systemClock } from '../../kernel/clock.ts'
import { openOutputReader, openOutputWriter } from '../process/output-log.ts'
import { Screen, type ScreenSize } from './screen.ts'

const SIZE = { columns: 200, rows: 50 }
const soon = () => AbortSignal.timeout(15_000)

function onScreen(directory: string, more: { scrollbackLines?: number; size?: ScreenSize } = {}) {
  const writer = openOutputWriter(directory)
  const output = openOutputReader(directory)
  const screen = new Screen({ clock: systemClock, output, size: SIZE, ...more })
  return { writer, screen }
}

test('a screen shows what a terminal shows, not what was written', async () => {
  using directory = temporaryDirectory()
  const { writer, screen } = onScreen(directory.path)
  writer.append(Buffer.from('one\r\ntwo\r\nthree\u001b[A\r\u001b[31mTWO\u001b[0m\u001b[K\r\n\u001b]0;title\u0007'))
  await screen.caughtUp(soon())
  const { lines, offset } = screen.text()
  assert.deepEqual(lines, ['one', 'TWO', 'three'])
  assert.equal(offset, writer.endOffset)
  assert.deepEqual(screen.text(1).lines, ['three'])
  screen.close()
})

test('characters that arrive in pieces are whole on the screen', async () => {
  using directory = temporaryDirectory()
  const { writer, screen } = onScreen(directory.path)
  for (const byte of Buffer.from('❯ žlutý 🐎 › • “ \u001b[1mbold\u001b[0m')) {
    writer.append(Uint8Array.of(byte))
    await screen.caughtUp(soon())
  }
  assert.deepEqual(screen.text().lines, ['❯ žlutý 🐎 › • “ bold'])
  screen.close()
})

test('invalid bytes and endless sequences do no harm', async () => {
  using directory = temporaryDirectory()
  const { writer, screen } = onScreen(directory.path)
  writer.append(Uint8Array.of(0xff, 0xfe, 0xc3, 0x28, 0x1b, 0x5b))
  writer.append(Buffer.from(`${'9;'.repeat(5_000)}m\u001b]0;${'x'.repeat(100_000)}\u0007end`))
  await screen.caughtUp(soon())
  assert.ok(screen.text().lines.join('').endsWith('end'))
  screen.close()
})

test('after a restart or in a flood, only the last megabyte is read', async () => {
  using directory = temporaryDirectory()
  const { writer, screen } = onScreen(directory.path)
  const line = `${'x'.repeat(98)}\r\n`
  for (let n = 0; n < 100; n++) writer.append(Buffer.from(line.repeat(1_000)))
  writer.append(Buffer.from('last'))
  const before = process.cpuUsage()
  await screen.caughtUp(soon())
  const { user, system } = process.cpuUsage(before)
  assert.ok(user + system < 5_000_000, 'of work; others may need the machine too')
  assert.equal(screen.text(1).lines[0], 'last')
  assert.equal(screen.offset, writer.endOffset)
  assert.ok(screen.text().lines.length <= 2_050)
  screen.close()
})

test('no more lines are kept than the bound', async () => {
  using directory = temporaryDirectory()
  const { writer, screen } = onScreen(directory.path, { scrollbackLines: 100 })
  writer.append(Buffer.from(Array.from({ length: 1_000 }, (_, n) => `line ${n}`).join('\r\n')))
  await screen.caughtUp(soon())
  const { lines } = screen.text()
  assert.equal(lines.length, 150)
  assert.equal(lines.at(-1), 'line 999')
  screen.close()
})

test('rows: after any resizes a screen reads as a fresh one of that size does', async () => {
  const random = seededRandom()
  for (let run = 0; run < 20; run++) {
    using directory = temporaryDirectory()
    const { writer, screen } = onScreen(directory.path)
    for (let step = 0; step < 8; step++) {
      const size = { columns: random.between(20, 200), rows: random.between(5, 90) }
      screen.resize(size.columns, size.rows)
      if (random.chance(0.5)) await screen.caughtUp(soon())
      const picture = redraw(size, random)
      writer.append(Buffer.from(picture))
      await screen.caughtUp(soon())
      assert.deepEqual(screen.size, size)
      assert.deepEqual(screen.rows(), await freshRows(size, picture), `run ${run}, step ${step}, seed ${random.seed}`)
    }
    screen.close()
  }
})

/** All of the screen drawn again, as programs do after a resize: the usual one or their own. */
function redraw({ columns, rows }: ScreenSize, random: Random): string {
  const used = random.between(1, rows)
  const lines = Array.from({ length: used }, (_, row) =>
    random.chance(0.2) ? '' : `${row} ${'x'.repeat(random.between(0, columns - 4))}`,
  )
  return `\u001b[?1049${random.chance(0.5) ? 'h' : 'l'}\u001b[H\u001b[2J${lines.join('\r\n')}`
}

async function freshRows(size: ScreenSize, picture: string) {
  using directory = temporaryDirectory()
  const { writer, screen } = onScreen(directory.path, { size })
  writer.append(Buffer.from(picture))
  await screen.caughtUp(soon())
  const rows = screen.rows()
  screen.close()
  return rows
}
