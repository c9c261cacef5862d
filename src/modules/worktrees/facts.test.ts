import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ManualClock } from '../../../test/support/manual-clock.ts'
import { temporaryDirectory } from '../../../test/support/temporary.ts'
import { Facts } from './facts.ts'
import type { Inspection } from './inspect.ts'
import type { WorktreeRecord } from './store.ts'

const CLEAN: Inspection = {
  there: true,
  head: 'a'.repeat(40),
  headBranch: undefined,
  dirty: false,
  merged: true,
  pushed: false,
  ahead: 0,
  behind: 0,
  kept: undefined,
  files: undefined,
  branchTip: undefined,
}

const recordAt = (path: string): WorktreeRecord => ({
  name: 'fix-login',
  session_id: `s-${'0'.repeat(16)}`,
  rig: 'app',
  repository: path,
  path,
  prefix: '',
  branch: 'svc/fix-login',
  base_ref: 'main',
  base: 'a'.repeat(40),
  state: 'ready',
  laid: [],
  token: 't',
  kept_reason: undefined,
  error: undefined,
  created_at: 0,
  updated_at: 0,
})

test('the first look at a worktree is shared by all who wait for it, and later reads wait for none', async () => {
  using directory = temporaryDirectory()
  const looks: PromiseWithResolvers<Inspection>[] = []
  const facts = new Facts({
    clock: new ManualClock(),
    env: {},
    record: () => recordAt(directory.path),
    inspect: () => {
      const look = Promise.withResolvers<Inspection>()
      looks.push(look)
      return look.promise
    },
  })
  void facts.look('fix-login')
  const waits = [facts.first(['fix-login']), facts.first(['fix-login'])]
  assert.equal(looks.length, 1)
  looks[0]?.resolve(CLEAN)
  await Promise.all(waits)
  assert.equal(facts.of('fix-login')?.ahead, 0)
  await facts.first(['fix-login'])
  assert.equal(looks.length, 1)
  const again = facts.look('fix-login')
  assert.equal(looks.length, 2)
  looks[1]?.resolve({ ...CLEAN, ahead: 1 })
  await again
  assert.equal(facts.of('fix-login')?.ahead, 1)
})
