import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test } from 'node:test'
import { ManualClock, settled } from '../../test/support/manual-clock.ts'
import { temporaryDirectory } from '../../test/support/temporary.ts'
import { migrationsOf } from './database.ts'
import { openStore, STORE_SCHEMA } from './store.ts'
import { type BlockingInput, waitForChange } from './waiting.ts'

function world() {
  const directory = temporaryDirectory()
  const clock = new ManualClock()
  const store = openStore({
    path: join(directory.path, 'log.db'),
    migrations: migrationsOf('store', STORE_SCHEMA),
    owner: 'a test',
    clock,
  })
  const caller = new AbortController()
  return {
    clock,
    caller,
    emit: (type: string) => store.db.write((tx) => store.log.appendCustom(tx, { type, actor: 'test', payload: {} })),
    wait: (input: BlockingInput, versionOf?: () => string) =>
      waitForChange(store.log, input, clock, caller.signal, ({ type }) => type === 'a.one', versionOf),
    [Symbol.dispose]() {
      store.db.close()
      directory[Symbol.dispose]()
    },
  }
}

async function isOver(waiting: Promise<void>): Promise<boolean> {
  let over = false
  void waiting.then(() => {
    over = true
  })
  await settled()
  return over
}

test('a read that need not wait does not', async () => {
  using it = world()
  await it.emit('a.one')
  await it.wait({})
  await it.wait({ wait: '1m' })
  await it.wait({ index: 0 })
  assert.equal(it.clock.pending, 0)
})

test('a waiting read is woken by the next relevant event, and by no other', async () => {
  using it = world()
  await it.emit('a.one')
  const waiting = it.wait({ index: 1 })
  await it.emit('b.one')
  assert.equal(await isOver(waiting), false)
  await it.emit('a.one')
  assert.equal(await isOver(waiting), true)
  assert.equal(it.clock.pending, 0, 'its timer is gone')
})

test('a read that says what it would answer waits for an event that makes it another answer', async () => {
  using it = world()
  let version = 'one'
  let looks = 0
  const waiting = it.wait({ index: 0 }, () => {
    looks++
    return version
  })
  for (let n = 0; n < 5; n++) await it.emit('a.one')
  await it.clock.advance(0)
  assert.equal(await isOver(waiting), false)
  assert.equal(looks, 2, 'one for all that came at once')
  version = 'two'
  await it.emit('b.one')
  await it.clock.advance(1_000)
  assert.equal(await isOver(waiting), false, 'nothing relevant has happened')
  await it.emit('a.one')
  await it.clock.advance(0)
  assert.equal(await isOver(waiting), true)
  assert.equal(it.clock.pending, 0)
})

test('many reads that look take turns, so that a busy log is not looked at all the time', async () => {
  using it = world()
  let looks = 0
  const version = () => {
    looks++
    return 'the same'
  }
  const waiting = Array.from({ length: 40 }, () => it.wait({ index: 0 }, version))
  for (let ms = 0; ms < 1_000; ms += 10) {
    await it.emit('a.one')
    await it.clock.advance(10)
  }
  // Some 300 a second, and one before each wait.
  assert.ok(looks >= 40 + 250 && looks <= 40 + 400, `${looks} looks`)
  it.caller.abort()
  await Promise.all(waiting)
})

test('a read whose answer cannot be looked at any more does not wait', async () => {
  using it = world()
  let looked = false
  const waiting = it.wait({ index: 0 }, () => {
    if (looked) throw new Error('the city has stopped')
    looked = true
    return ''
  })
  await it.emit('a.one')
  await it.clock.advance(0)
  assert.equal(await isOver(waiting), true)
})

test('a waiting read ends after 30 s, or after as long as it asked for', async () => {
  using it = world()
  const [usual, short] = [it.wait({ index: 0 }), it.wait({ index: 0, wait: '500ms' })]
  await it.clock.advance(499)
  assert.equal(await isOver(short), false)
  await it.clock.advance(1)
  assert.equal(await isOver(short), true)
  await it.clock.advance(29_499)
  assert.equal(await isOver(usual), false)
  await it.clock.advance(1)
  assert.equal(await isOver(usual), true)
})

test('a read whose caller is gone, or goes, does not wait', async () => {
  using it = world()
  const waiting = it.wait({ index: 0 })
  it.caller.abort()
  await waiting
  await it.wait({ index: 0 })
  assert.equal(it.clock.pending, 0)
})

test('a wait of nothing, of more than two minutes, or that is no duration is refused', async () => {
  using it = world()
  for (const wait of ['0', '0s', '2m1ms', '3h'])
    await assert.rejects(it.wait({ index: 0, wait }), { code: 'validation-failed' }, wait)
  const longest = it.wait({ index: 0, wait: '2m' })
  it.caller.abort()
  await longest
})
