/** Sessions of a city whose disk is full: refused or failed with the reason, nothing acknowledged lost, well again by themselves. */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { assertProblem, eventually } from '../support/http.ts'
import { outcome, run } from '../support/running.ts'
import { sessionPath } from '../support/session-api.ts'
import { fill, fillBut, mounted } from '../support/small-disk.ts'
import { WorktreeCity } from '../support/worktree-city.ts'

const WELL_MS = 90_000

test('on a full disk a start and a message are refused with the reason, what runs runs on, and both work when there is room', {
  timeout: 240_000,
}, async (t) => {
  await using running = await run()
  using disk = mounted(t, join(running.work, 'alpha'), 16)
  if (disk === undefined) return
  const { city } = await WorktreeCity.start(running)
  const id = await city.start()
  await city.message(id, 'echo before-$((40+2))')
  await city.said(id, 'before-42')
  const { generation } = await city.get(id)

  const release = fill(disk.path)
  const say = (text: string) => city.send('POST', `${sessionPath(id)}/messages`, { message: text })
  const accepted: string[] = []
  const refused = await eventually('a message is refused', async () => {
    const text = `accepted-${accepted.length}`
    const answer = await say(`echo ${text}; : ${'x'.repeat(20_000)}`)
    if (answer.status < 300) accepted.push(text)
    return answer.status < 300 ? undefined : answer
  })
  assertProblem(refused, 'unavailable')
  assert.match(refused.text, /full/)
  const start = { kind: 'provider', name: 'bash', runtime: 'subprocess' }
  const isolated = { kind: 'agent', name: 'app/coder' }
  for (const body of [start, isolated]) assertProblem(await city.send('POST', '/sessions', body), 'unavailable')
  assert.equal((await city.get(id)).state, 'active', 'it runs on')
  assertProblem(await say('echo never-$((40+2))'), 'unavailable')

  release()
  await eventually(
    'messages are taken again',
    async () => ((await say('echo again-$((40+2))')).status < 300 ? true : undefined),
    WELL_MS,
  )
  await city.said(id, 'again-42')
  for (const text of accepted) await city.said(id, text)
  assert.doesNotMatch(await city.text(id), /never-42/)
  assert.equal((await city.get(id)).generation, generation, 'it is the same process')
  const other = await city.start()
  await city.message(other, 'echo other-$((40+2))')
  await city.said(other, 'other-42')
  const { items } = await city.done('GET', '/sessions?limit=100')
  assert.equal(Array.isArray(items) && items.length, 2, 'what was refused has left no session')
})

test('a worktree for which the disk has no room is a failed create that says so, and is made once there is room', {
  timeout: 240_000,
}, async (t) => {
  await using running = await run()
  using disk = mounted(t, join(running.work, 'alpha'), 32)
  if (disk === undefined) return
  const trees = await WorktreeCity.start(running)
  const { city } = trees
  writeFileSync(join(trees.rig, 'large'), randomBytes(6 * 1024 ** 2))
  trees.git('add', '.')
  trees.git('commit', '-qm', 'large')
  const release = fillBut(disk.path, 3 * 1024 ** 2)
  const { id, requestId } = await city.accept({ kind: 'agent', name: 'app/coder', alias: 'cramped' })
  const request = await outcome(city.api, requestId)
  assert.deepEqual([request.status, request.error_code], ['failed', 'create_failed'], JSON.stringify(request))
  assert.match(String(request.error_message), /the disk of .*worktrees is nearly full: \d\.\d MiB left/)

  release()
  await city.done('POST', `${sessionPath(id)}/wake`)
  await city.is(id, 'active')
  const tree = await trees.of(id)
  assert.ok(existsSync(join(tree.path, 'large')))
  assert.deepEqual([tree.state, tree.dirty], ['ready', false])
  await trees.close(id)
  await trees.gone(tree)
})
