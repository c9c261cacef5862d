// What comes after what, under which condition, with which words; formulas that are made of others. Shells do the work.
import assert from 'node:assert/strict'
import { after, before, suite, test } from 'node:test'
import { AgentCity } from '../../support/automation/agent-city.ts'
import { type Running, run } from '../../support/running.ts'

const FORMULAS = {
  ordered: `
title = "In order: {{ word }}"
[vars.word]
required = true
[[steps]]
id = "first"
title = "First {{ word }}"
description = '''
$ echo first >> {{ word }}.txt
$ echo 'found=[1,2]' >&3
$ echo verdict=clean >&3
'''
output = ["found", "verdict"]
priority = 1
tags = ["t-{{ word }}"]
metadata = { colour = "{{ word }}" }
[[steps]]
id = "second"
title = "Second"
needs = ["first"]
condition = 'steps.first.output.verdict == "clean"'
description = '$ echo "second {{ steps.first.output.found | join: "+" }}" >> {{ word }}.txt'
[[steps]]
id = "never"
title = "Never"
needs = ["first"]
condition = 'steps.first.output.verdict != "clean"'
[[steps]]
id = "last"
title = "Last"
needs = ["second", "never"]
description = '$ echo "last {{ steps.never.outcome }}" >> {{ word }}.txt'
`,
  declared: `
title = "Declared outputs"
[[steps]]
id = "only"
title = "Only"
output = ["verdict"]
description = '''
$ svcctl bead close "$BEAD" 2> refused.txt || echo "refused $?" >> refused.txt
$ echo verdict=late >&3
'''
`,
  base: `
title = "Base"
[vars]
suffix = "base"
[[steps]]
id = "one"
title = "One"
description = '$ echo one-{{ suffix }} >> {{ file }}.txt'
[[steps]]
id = "two"
title = "Two"
needs = ["one"]
description = '$ echo two-base >> {{ file }}.txt'
[vars.file]
default = "extended"
`,
  child: `
title = "Child"
extends = ["base"]
[vars]
suffix = "child"
[[steps]]
id = "two"
title = "Two, otherwise"
needs = ["one"]
expand = "base"
with = { suffix = "of-{{ steps.one.outcome }}", file = "{{ file }}" }
[[steps]]
id = "three"
title = "Three"
needs = ["two"]
description = '$ echo three >> {{ file }}.txt'
`,
  handed: `
title = "Handed on"
[[steps]]
id = "plan"
title = "Plan"
[[steps]]
id = "same"
title = "The same one"
needs = ["plan"]
assignee = "{{ steps.plan.assignee }}"
description = '{% render "house", word: "here" %}'
`,
}
const HOUSE = `$ echo "{{ word }} {{ city }} {{ molecule.formula }}" > house.txt\n`

suite('steps', { timeout: 500_000 }, () => {
  let running: Running
  let city: AgentCity
  before(async () => {
    running = await run()
    const files = { 'template-fragments/house.template.md': HOUSE }
    city = await AgentCity.start(running, 'alpha', { agents: { robot: 2 }, formulas: FORMULAS, files })
  })
  after(() => running[Symbol.asyncDispose]())

  test('steps come after what they need, and what their condition leaves out counts as passed', async () => {
    const { id, title } = await city.run('ordered', { vars: { word: 'blue' } })
    assert.equal(title, 'In order: blue')
    assert.deepEqual(city.lines('blue.txt'), ['first', 'second 1+2', 'last skipped'])
    assert.deepEqual(await city.statuses(id), {
      first: 'completed',
      second: 'completed',
      never: 'skipped',
      last: 'completed',
    })
    const first = await city.step(id, 'first')
    assert.deepEqual(first.output, { found: [1, 2], verdict: 'clean' })
    const bead = await city.bead(first.bead_id ?? '')
    assert.deepEqual(
      [bead.title, bead.priority, bead.labels, bead.metadata?.['colour']],
      ['First blue', 1, ['t-blue'], 'blue'],
    )
  })

  test('a pass without the declared outputs is refused, and the step goes on', async () => {
    const { id } = await city.run('declared')
    assert.deepEqual((await city.step(id, 'only')).output, { verdict: 'late' })
    const refused = city.lines('refused.txt').join('\n')
    assert.match(refused, /verdict/)
    assert.match(refused, /refused [1-9]/)
  })

  test('a formula replaces steps of its parent in their place, and runs another one as a step', async () => {
    const { id } = await city.run('child')
    assert.deepEqual(city.lines('extended.txt'), ['one-child', 'one-of-pass', 'two-base', 'three'])
    assert.deepEqual(Object.keys(await city.statuses(id)), ['one', 'two', 'two.one', 'two.two', 'three'])
  })

  test('a step can be for whoever did another one, and its text is made of fragments', async () => {
    const { id } = await city.run('handed')
    const [plan, same] = [await city.step(id, 'plan'), await city.step(id, 'same')]
    assert.match(plan.assignee ?? '', /^robot-[12]$/)
    assert.equal(same.assignee, plan.assignee)
    assert.deepEqual(city.lines('house.txt'), ['here alpha handed'])
  })
})
