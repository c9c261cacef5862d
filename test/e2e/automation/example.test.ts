// The formula that shows all of the language, run to its end: agents, checks, a convoy, answers, an event. Only the two hours
// of its timer are a second here.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { test } from 'node:test'
import { AgentCity } from '../../support/automation/agent-city.ts'
import { emit, run } from '../../support/running.ts'

const FOLDER = resolve(import.meta.dirname, '../../automation/rules/example')
const formula = (name: string): readonly [string, string] => [
  `formulas/${name}.toml`,
  readFileSync(`${FOLDER}/${name}.toml`, 'utf8').replace('"2h"', '"1s"'),
]

/** What the agents do with its steps, which say it to people. */
const HABITS = `case "$STEP" in
  fixes.*.fix) echo "commit=abc123" >&3;;
  port.*) touch "ported-$ATTEMPT-$STEP";;
  polish.1.review) echo verdict=untidy >&3;;
  polish.*.review) echo verdict=clean >&3;;
  cleanup) touch clean.txt;;
esac
echo "$STEP" >> order.txt
`
const GUIDE = `Plan {{ tag }}.
$ echo 'modules=["core","web"]' >&3
`
/** Fails for as long as the first attempt alone has ported something. */
const PACKAGE = JSON.stringify({
  name: 'released',
  scripts: { test: 'case "$SVC_STEP_ID-$SVC_ATTEMPT" in port.1-1) echo not yet; exit 1;; esac' },
})

test('the example of the language runs to its end', { timeout: 300_000 }, async () => {
  await using running = await run()
  const files = {
    ...Object.fromEntries(['patch-release', 'release-base', 'one-fix'].map(formula)),
    'template-fragments/plan-guide.template.md': GUIDE,
    'habits.sh': HABITS,
    'package.json': PACKAGE,
  }
  const city = await AgentCity.start(running, 'alpha', { agents: { builders: 2, fixers: 1 }, files })
  const items = [await city.create('one'), await city.create('two')]
  const { id: convoy } = await city.api.done('POST', '/convoys', { title: 'Fixes', items })
  const bead = String(convoy)
  const refused = await city.svcctl('molecule', 'start', 'patch-release', '--bead', bead, '--var', 'tag=1.2')
  assert.match(refused.err, /tag/)

  const words = ['molecule', 'start', 'patch-release', '--bead', bead, '--var', 'tag=v1.2.3', '-o', 'name']
  const id = (await city.does(...words)).trim()
  await city.asked(id, 'polish.1.apply')
  // Before the gate that waits for it opens.
  await emit(running.api, 'alpha', 'registry.published', { payload: { tag: 'v1.2.3' } })
  await city.does('molecule', 'approve', id, 'polish.1.apply')
  const question = await city.bead(await city.asked(id, 'approve'))
  assert.equal(question.title, 'Ship v1.2.3?')
  await city.does('molecule', 'approve', id, 'approve')
  const { title, progress } = await city.ends(id)
  assert.equal(title, 'Release v1.2.3')
  assert.equal(progress.failed, 0)

  const statuses = await city.statuses(id)
  assert.equal(statuses['polish.2.apply'], 'skipped', 'the second review found nothing')
  assert.deepEqual([...new Set(Object.values(statuses))].toSorted(), ['completed', 'skipped'])
  const order = city.lines('order.txt')
  assert.equal(order.at(-1), 'cleanup')
  for (const item of [...items, bead]) assert.equal((await city.bead(item)).status, 'closed')
  const ported = await city.step(id, 'port.1')
  assert.deepEqual(
    ported.attempts.map(({ check }) => check?.exit_code),
    [1, 0],
  )
  const [plan, review] = [await city.step(id, 'plan'), await city.step(id, 'polish.1.review')]
  assert.equal(review.assignee, plan.assignee, 'who has planned reviews')
})
