import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Mending } from './mending.ts'

/** A city that notes what happens to it; its work goes on until it is ended. */
function openable({ isMended = false } = {}) {
  const seen: string[] = []
  let finish = () => {}
  let work = Promise.resolve()
  const mending = new Mending({
    open: async () => {
      seen.push('opened')
      return {
        idle: () => work,
        cut: async (comesBack: boolean) => {
          seen.push(comesBack ? 'cut for now' : 'cut')
          finish()
        },
        close: async () => {
          seen.push('closed')
          return isMended
        },
      }
    },
    mended: () => seen.push('mended'),
    failed: (error) => assert.fail(String(error)),
  })
  const begin = () => {
    work = new Promise((resolve) => {
      finish = resolve
    })
  }
  return { seen, mending, begin, finish: () => finish() }
}

test('mending: many requests at once open the city once, and the last one closes it', async () => {
  const { seen, mending } = openable({ isMended: true })
  const lent = await Promise.all(Array.from({ length: 8 }, () => mending.lend()))
  assert.equal(new Set(lent.map(({ run }) => run)).size, 1)
  for (const { giveBack } of lent) giveBack()
  await mending.quiet()
  assert.deepEqual(seen, ['opened', 'closed', 'mended'])
  const again = await mending.lend()
  again.giveBack()
  await mending.quiet()
  assert.equal(seen.filter((one) => one === 'opened').length, 2, 'the next request finds the files as they are then')
})

test('mending: a start waits for what a request has accepted', async () => {
  const { seen, mending, begin, finish } = openable()
  const { giveBack } = await mending.lend()
  begin()
  giveBack()
  let isQuiet = false
  const quiet = mending.quiet().then(() => {
    isQuiet = true
  })
  await new Promise(setImmediate)
  assert.equal(isQuiet, false)
  finish()
  await quiet
  assert.deepEqual(seen, ['opened', 'closed'])
})

test('mending: a stop cuts what was accepted, and a restart of the supervisor leaves it for later', async () => {
  for (const [comesBack, said] of [[false, 'cut'] as const, [true, 'cut for now'] as const]) {
    const { seen, mending, begin } = openable()
    const { giveBack } = await mending.lend()
    begin()
    giveBack()
    await mending.end(comesBack)
    assert.deepEqual(seen, ['opened', said, 'closed'])
  }
})

test('mending: a city that cannot be opened holds up no start, and is tried again', async () => {
  let tries = 0
  const mending = new Mending({
    open: async () => {
      tries++
      throw new Error('its store is locked')
    },
    mended: () => assert.fail('nothing was mended'),
    failed: () => assert.fail('nothing was closed'),
  })
  const all = await Promise.allSettled([mending.lend(), mending.lend()])
  assert.ok(all.every(({ status }) => status === 'rejected'))
  await mending.quiet()
  await mending.end(false)
  await assert.rejects(mending.lend(), /locked/)
  assert.equal(tries, 2)
})
