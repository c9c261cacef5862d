// Shells as agents: they take what is routed to them with the command line, do it and say how it went.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { AgentCity } from '../../support/automation/agent-city.ts'
import { run } from '../../support/running.ts'

test('agents take what is routed to them, do it and say how it went', { timeout: 120_000 }, async () => {
  await using running = await run()
  const city = await AgentCity.start(running, 'alpha', { agents: { robot: 2 } })
  const good = await city.route('write', `Please write it.\n$ echo "$BEAD" > done.txt`)
  const bad = await city.route('break', '$ echo "no such thing" >&2; exit 3')
  const passed = await city.closed(good)
  assert.equal(passed.outcome, 'pass')
  assert.match(passed.assignee ?? '', /^robot-[12]$/)
  assert.deepEqual(city.lines('done.txt'), [good])
  const failed = await city.closed(bad)
  assert.deepEqual([failed.outcome, failed.metadata?.['svc.failure_reason']], ['fail', 'no such thing'])
})
