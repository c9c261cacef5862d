import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { fc } from '../../../test/support/random.ts'
import { Log } from './log.ts'

/** Outputs of runs, by their numbers; those before `dropped` are gone. */
function logOf(texts: readonly (string | Buffer)[], dropped = 0) {
  const outputs = texts.map((text) => (typeof text === 'string' ? Buffer.from(text) : text))
  const bases = outputs.map((_, index) => outputs.slice(0, index).reduce((sum, { length }) => sum + length, 0))
  const log = new Log(
    {
      city: { name: 'alpha', path: '/alpha' },
      output: (directory) => {
        const bytes = outputs[Number(directory.split('/').at(-1))] ?? Buffer.alloc(0)
        return {
          startOffset: async () => 0,
          endOffset: async () => bytes.length,
          // Never more than a few at once, as where a segment ends.
          read: async (offset, most) => ({ offset, bytes: bytes.subarray(offset, offset + Math.min(most, 5)) }),
        }
      },
    },
    'page',
  )
  const runs = bases.map((base, generation) => ({ generation, base })).slice(dropped)
  return { log, runs, whole: Buffer.concat(outputs), start: bases[dropped] ?? 0 }
}

describe('the log of a service', () => {
  test('whatever parts it is read in, they are the whole, without the beginnings of characters', async () => {
    const runs = fc.array(fc.string({ unit: 'grapheme', maxLength: 12 }), { minLength: 1, maxLength: 4 })
    await fc.assert(
      fc.asyncProperty(runs, fc.integer({ min: 4, max: 9 }), async (texts, limit) => {
        const { log, runs: rows, whole } = logOf(texts)
        let text = ''
        for (let offset = 0; offset < whole.length; ) {
          const part = await log.read(rows, { offset, limit }, [])
          assert.equal(part.offset, offset)
          assert.ok(part.next_offset > offset)
          text += part.text
          offset = part.next_offset
        }
        assert.equal(text, whole.toString('utf8'))
      }),
    )
  })

  test('a secret is stars, wherever the part begins or ends, and also over two runs', async () => {
    const { log, runs, whole } = logOf(['one correct-', 'horse two'])
    const secret = Buffer.from('correct-horse')
    const shown = whole.toString('utf8').replace('correct-horse', '*'.repeat(13))
    for (let offset = 0; offset < whole.length; offset++)
      for (let limit = 1; limit <= whole.length; limit++)
        assert.equal((await log.read(runs, { offset, limit }, [secret])).text, shown.slice(offset, offset + limit))
  })

  test('of a secret that is not all there yet its beginning is stars', async () => {
    const { log, runs } = logOf(['one correct-ho'])
    const secrets = ['correct-horse', 'horse', 'o'].map((text) => Buffer.from(text))
    assert.equal((await log.read(runs, { offset: 0, limit: 100 }, secrets)).text, 'one **********')
    assert.equal((await log.read(runs, { offset: 0, limit: 12 }, secrets)).text, 'one ********')
  })

  test('who waits for more gets a character once it is whole', async () => {
    const bytes = Buffer.from('a€')
    for (const [there, shown] of [
      [2, 'a'],
      [3, 'a'],
      [4, 'a€'],
    ] as const) {
      const { log, runs } = logOf([bytes.subarray(0, there)])
      const { text, next_offset } = await log.read(runs, { offset: 0, limit: 100, awaitsMore: true }, [])
      assert.deepEqual([text, next_offset], [shown, Buffer.byteLength(shown)])
      if (there < 4) assert.equal((await log.read(runs, { offset: 1, limit: 100, awaitsMore: true }, [])).text, '')
      assert.ok((await log.read(runs, { offset: 1, limit: 100 }, [])).text !== '')
    }
  })

  test('what was dropped is where reading begins', async () => {
    const { log, runs, start } = logOf(['gone', 'kept'], 1)
    const all = await log.read(runs, { offset: 0, limit: 100 }, [])
    assert.deepEqual(all, { start_offset: start, offset: 4, next_offset: 8, end_offset: 8, text: 'kept' })
  })

  test('without an offset it is the end; behind the end there is nothing', async () => {
    const { log, runs } = logOf(['abcdef'])
    assert.equal((await log.read(runs, { offset: undefined, limit: 2 }, [])).text, 'ef')
    const behind = await log.read(runs, { offset: 99, limit: 2 }, [])
    assert.deepEqual([behind.offset, behind.next_offset, behind.text], [6, 6, ''])
    assert.equal((await log.read([], { offset: undefined, limit: 2 }, [])).text, '')
  })
})
