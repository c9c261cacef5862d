import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { noteConnection, startReplay, stopReplay } from './replays.ts'

const PAGE_MS = 6
const nextTurn = () => new Promise((resolve) => setImmediate(resolve))

/** A replay without an end; its pages, and what the test says, are all that takes time. */
function endless(t: TestContext) {
  let now = 0
  let pages = 0
  t.mock.method(performance, 'now', () => now)
  const replay = {
    replayPage() {
      pages++
      now += PAGE_MS
      return true
    },
  }
  startReplay(replay, true)
  t.after(() => stopReplay(replay))
  return {
    pages: () => pages,
    work: (ms: number) => {
      now += ms
    },
    async untilPage(count: number) {
      while (pages < count) await nextTurn()
    },
  }
}

test('those who connect together wait for no page between them', async (t) => {
  const replay = endless(t)
  await replay.untilPage(1)
  for (let count = 0; count < 50; count++) {
    noteConnection()
    await nextTurn()
    assert.equal(replay.pages(), 1)
  }
  await replay.untilPage(2)
})

test('a replay goes on while one connection follows the other', async (t) => {
  const replay = endless(t)
  for (let count = 0; replay.pages() < 5; count++) {
    assert.ok(count < 200, `${replay.pages()} pages while ${count} connected`)
    noteConnection()
    replay.work(1)
    await nextTurn()
  }
})
