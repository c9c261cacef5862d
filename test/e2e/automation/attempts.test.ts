// What becomes of a step that fails: other attempts, checks, time-outs, and what its end means to the others.
import assert from 'node:assert/strict'
import { after, before, suite, test } from 'node:test'
import { AgentCity } from '../../support/automation/agent-city.ts'
import { type Running, run } from '../../support/running.ts'

const FORMULAS = {
  again: `
title = "Again"
[[steps]]
id = "flaky"
title = "Flaky, attempt {{ attempt }}"
retry = { max_attempts = 3, backoff = "100ms" }
description = '''
{% if previous %}Before: {{ previous.outcome }}{% endif %}
$ [ "$ATTEMPT" != 1 ] || { echo "boom $((6 * 7))"; exit 1; }
$ grep -o "boom 42" "$TOLD" | head -1 > told.txt
'''
`,
  hopeless: `
title = "Hopeless"
[[steps]]
id = "hard"
title = "Hard"
retry = { max_attempts = 5, backoff = "100ms" }
description = '$ svcctl bead close "$BEAD" --outcome fail --failure-class hard --reason "never"'
`,
  verified: `
title = "Verified"
[vars]
word = "made"
[[steps]]
id = "make"
title = "Make"
retry = { max_attempts = 2, backoff = "100ms" }
check = { exec = '''
cat > "context-$SVC_ATTEMPT.json"
echo "$SVC_MOLECULE_ID $SVC_STEP_ID $SVC_BEAD_ID $SVC_CITY $COLOUR" > checked.txt
test -f "$SVC_VAR_WORD.txt" || { echo "there is no $SVC_VAR_WORD.txt"; exit 1; }
''', env = { COLOUR = "red" } }
description = '''
$ [ "$ATTEMPT" = 1 ] || grep -o "there is no made.txt" "$TOLD" | head -1 > made.txt
'''
`,
  judged: `
title = "Judged"
[[steps]]
id = "draw"
title = "Draw"
retry = { max_attempts = 3, backoff = "100ms" }
check = { manual = "Is {{ attempt }} good enough?" }
description = '$ echo "$ATTEMPT" >> drawn.txt; grep -o "^This is attempt 2. The last one failed: .*" "$TOLD" >> drawn.txt || true'
`,
  late: `
title = "Late"
[[steps]]
id = "slow"
title = "Slow"
timeout = "1s"
on_fail = "continue"
description = '$ sleep 600'
[[steps]]
id = "next"
title = "Next"
needs = ["slow"]
description = '$ echo "{{ steps.slow.outcome }}" > after.txt'
`,
  overdue: `
title = "Overdue"
timeout = "1s"
[[steps]]
id = "wait"
title = "Wait for it"
gate = { human = true }
[[steps]]
id = "cleanup"
title = "Clean up"
needs = ["wait"]
always = true
`,
  broken: `
title = "Broken"
[[steps]]
id = "bad"
title = "Bad"
description = '$ exit 1'
[[steps]]
id = "dependent"
title = "Dependent"
needs = ["bad"]
[[steps]]
id = "further"
title = "Further"
needs = ["dependent"]
[[steps]]
id = "free"
title = "Free"
description = '$ echo free >> broken.txt'
[[steps]]
id = "cleanup"
title = "Clean up"
needs = ["further", "free"]
always = true
description = '$ echo "cleanup {{ steps.further.outcome }}" >> broken.txt'
`,
  forgiven: `
title = "Forgiven"
[[steps]]
id = "bad"
title = "Bad"
on_fail = "continue"
description = '$ echo "not today"; exit 1'
[[steps]]
id = "next"
title = "Next"
needs = ["bad"]
description = '$ echo "{{ steps.bad.outcome }}: {{ steps.bad.failure_reason }}" > forgiven.txt'
`,
  aborted: `
title = "Aborted"
[[steps]]
id = "long"
title = "Long"
gate = { human = true }
[[steps]]
id = "later"
title = "Later"
needs = ["long"]
[[steps]]
id = "bad"
title = "Bad"
on_fail = "abort"
description = '$ exit 1'
[[steps]]
id = "cleanup"
title = "Clean up"
needs = ["bad"]
always = true
description = '$ echo swept > swept.txt'
`,
  rounds: `
title = "Rounds"
[[steps]]
id = "round"
retry = { max_attempts = 3, backoff = "100ms" }
[[steps.children]]
id = "build"
title = "Build"
description = '''
{% if previous %}The last round: {{ previous.failure_reason }}{% endif %}
$ echo build >> rounds.txt
$ grep "^The last round" "$TOLD" >> rounds.txt || true
'''
[[steps.children]]
id = "review"
title = "Review"
needs = ["build"]
description = '''
$ [ "$(grep -c build rounds.txt)" = 2 ] || { echo "one is not enough"; exit 1; }
'''
`,
}

suite('attempts', { timeout: 580_000 }, () => {
  let running: Running
  let city: AgentCity
  before(async () => {
    running = await run()
    city = await AgentCity.start(running, 'alpha', { agents: { robot: 2 }, formulas: FORMULAS })
  })
  after(() => running[Symbol.asyncDispose]())

  test('a step that fails is tried again, by somebody who is told why it failed', async () => {
    const { id } = await city.run('again')
    const { attempt, attempts, max_attempts } = await city.step(id, 'flaky')
    assert.deepEqual([attempt, max_attempts, attempts.map(({ status }) => status)], [2, 3, ['failed', 'completed']])
    assert.equal(new Set(attempts.map(({ bead_id: bead }) => bead)).size, 2, 'each attempt is a bead of its own')
    assert.deepEqual(city.lines('told.txt'), ['boom 42'])
    assert.equal((await city.bead(attempts[1]?.bead_id ?? '')).title, 'Flaky, attempt 2')
  })

  test('a failure for good is not tried again', async () => {
    const { id, failure } = await city.run('hopeless', {}, 'failed')
    assert.deepEqual([failure?.step_id, failure?.class], ['hard', 'hard'])
    assert.equal((await city.step(id, 'hard')).attempt, 1)
  })

  test('a command says whether the work is done, with the molecule around it; its words are told to the next attempt', async () => {
    const { id } = await city.run('verified')
    const { attempts, bead_id: bead, check } = await city.step(id, 'make')
    assert.deepEqual(
      attempts.map(({ check: one }) => one?.exit_code),
      [1, 0],
    )
    assert.equal(check?.status, 'passed')
    assert.deepEqual(city.lines('checked.txt'), [`${id} make ${bead} alpha red`])
    assert.deepEqual(city.lines('made.txt'), ['there is no made.txt'])
    const context: unknown = JSON.parse(city.lines('context-2.json').join('\n'))
    assert.match(JSON.stringify(context), new RegExp(id))
    const log = await city.api.events('execution.check_completed', { subject: id })
    assert.deepEqual(
      log.map(({ payload }) => payload['exit_code']),
      [1, 0],
    )
  })

  test('a person says whether the work is done, and why not', async () => {
    const { id } = await city.launch('judged')
    assert.equal((await city.bead(await city.asked(id, 'draw', 1))).title, 'Is 1 good enough?')
    await city.does('molecule', 'reject', id, 'draw', '--reason', 'too dark')
    await city.asked(id, 'draw', 2)
    await city.does('molecule', 'approve', id, 'draw')
    await city.ends(id)
    assert.deepEqual(city.lines('drawn.txt'), ['1', '2', 'This is attempt 2. The last one failed: too dark'])
  })

  test('a step that takes too long fails, its agent is interrupted, and the others go on', async () => {
    const { id } = await city.run('late')
    const slow = await city.step(id, 'slow')
    assert.deepEqual([slow.status, slow.failure?.reason], ['failed', 'timeout'])
    assert.deepEqual(city.lines('after.txt'), ['fail'])
  })

  test('a molecule that takes too long ends, with all that is in it', async () => {
    const { id, failure } = await city.run('overdue', {}, 'failed')
    assert.equal(failure?.reason, 'timeout')
    const { cleanup = '' } = await city.statuses(id)
    assert.ok(cleanup === 'canceled' || cleanup === 'skipped', cleanup)
  })

  test('what depends on a failed step is left out, what does not goes on, and what is to run always runs', async () => {
    const { id, failure } = await city.run('broken', {}, 'failed')
    assert.equal(failure?.step_id, 'bad')
    assert.deepEqual(await city.statuses(id), {
      bad: 'failed',
      dependent: 'skipped',
      further: 'skipped',
      free: 'completed',
      cleanup: 'completed',
    })
    assert.equal((await city.step(id, 'further')).reason, 'upstream_failed')
    assert.deepEqual(city.lines('broken.txt'), ['free', 'cleanup skipped'])
  })

  test('a failure that is let pass does not count, and is told to who asks', async () => {
    const { id } = await city.run('forgiven')
    assert.equal((await city.step(id, 'bad')).status, 'failed')
    assert.deepEqual(city.lines('forgiven.txt'), ['fail: not today'])
  })

  test('a failure that aborts ends the rest at once, save what is to run always', async () => {
    const { id } = await city.run('aborted', {}, 'failed')
    const { long, later = '', bad, cleanup } = await city.statuses(id)
    assert.deepEqual([long, bad, cleanup], ['canceled', 'failed', 'completed'])
    assert.ok(later === 'canceled' || later === 'skipped', later)
    assert.ok(city.has('swept.txt'))
  })

  test('a group that fails starts afresh, and who is in it knows why', async () => {
    const { id } = await city.run('rounds')
    assert.equal((await city.step(id, 'round')).attempt, 2)
    assert.deepEqual(
      city.lines('rounds.txt').map((line) => line.slice(0, 14)),
      ['build', 'build', 'The last round'],
    )
    assert.match(city.lines('rounds.txt')[2] ?? '', /one is not enough/)
    const all = await city.steps(id, '&superseded=true')
    assert.equal(all.filter(({ superseded }) => superseded).length, 2)
  })
})
