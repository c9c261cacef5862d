// What waits: for a person, for a time, for something that happens.
import assert from 'node:assert/strict'
import { after, before, suite, test } from 'node:test'
import { AgentCity } from '../../support/automation/agent-city.ts'
import { emit, type Running, run } from '../../support/running.ts'

const FORMULAS = {
  asked: `
title = "Asked"
[[steps]]
id = "ship"
title = "Ship {{ tag }}?"
description = "All of it."
gate = { human = true }
[[steps]]
id = "go"
title = "Go"
needs = ["ship"]
description = '$ echo gone > {{ tag }}.txt'
[vars.tag]
required = true
`,
  boss: `
title = "Boss"
[[steps]]
id = "ship"
title = "Ship?"
assignee = "boss"
gate = { human = true }
timeout = "1s"
`,
  soon: `
title = "Soon"
[vars]
wait = "1s"
[[steps]]
id = "soak"
gate = { timer = "{{ wait }}" }
[[steps]]
id = "go"
title = "Go"
needs = ["soak"]
description = '$ echo gone > soon.txt'
`,
  awaited: `
title = "Awaited"
[vars.tag]
required = true
[[steps]]
id = "ask"
title = "Ask?"
gate = { human = true }
[[steps]]
id = "published"
needs = ["ask"]
gate = { event = "registry.published", match = { tag = "{{ tag }}" } }
[[steps]]
id = "go"
title = "Go"
needs = ["published"]
description = '$ echo "{{ tag }}" > published.txt'
`,
}

suite('gates', { timeout: 400_000 }, () => {
  let running: Running
  let city: AgentCity
  before(async () => {
    running = await run()
    city = await AgentCity.start(running, 'alpha', { formulas: FORMULAS })
  })
  after(() => running[Symbol.asyncDispose]())

  test('a gate is a bead of a person, and says yes or no', async () => {
    const { id } = await city.launch('asked', { vars: { tag: 'v1' } })
    const gate = await city.bead(await city.asked(id, 'ship'))
    assert.deepEqual(
      [gate.issue_type, gate.title, gate.assignee, gate.description],
      ['gate', 'Ship v1?', 'human', 'All of it.'],
    )
    assert.equal((await city.molecule(id)).status, 'waiting')
    const refused = await city.api.send('POST', `/beads/${gate.id}/close`, {})
    assert.equal(refused.status, 422, refused.text)
    await city.does('molecule', 'approve', id, 'ship', '--reason', 'looks good')
    await city.ends(id)
    assert.deepEqual(city.lines('v1.txt'), ['gone'])

    const { id: other } = await city.launch('asked', { vars: { tag: 'v2' } })
    await city.asked(other, 'ship')
    await city.does('molecule', 'reject', other, 'ship', '--reason', 'not on a Friday')
    const { failure } = await city.ends(other, 'failed')
    assert.deepEqual([failure?.step_id, failure?.message], ['ship', 'not on a Friday'])
    assert.equal((await city.statuses(other))['go'], 'skipped')
  })

  test('a gate that nobody answers in time fails', async () => {
    const { id } = await city.launch('boss')
    const { failure } = await city.ends(id, 'failed')
    assert.equal(failure?.reason, 'timeout')
    const { bead_id: bead } = await city.step(id, 'ship')
    assert.equal((await city.bead(bead ?? '')).assignee, 'boss')
  })

  test('a timer opens by itself', async () => {
    const started = Date.now()
    const { id } = await city.run('soon')
    assert.ok(Date.now() - started >= 1_000)
    assert.deepEqual(await city.statuses(id), { soak: 'completed', go: 'completed' })
    const log = await city.api.events('gate.opened gate.closed', { subject: id })
    assert.deepEqual(
      log.map(({ type }) => type),
      ['gate.opened', 'gate.closed'],
    )
  })

  test('an event opens the gate whose words it has, also one that came before the gate', async () => {
    const early = await city.launch('awaited', { vars: { tag: 'v3' } })
    const late = await city.launch('awaited', { vars: { tag: 'v4' } })
    await city.asked(early.id, 'ask')
    const { api } = city.api
    await emit(api, 'alpha', 'registry.published', { payload: { tag: 'v3' } })
    await emit(api, 'alpha', 'registry.published', { payload: { tag: 'v9' } })
    for (const { id } of [early, late]) {
      await city.asked(id, 'ask')
      await city.does('molecule', 'approve', id, 'ask')
    }
    await city.ends(early.id)
    assert.deepEqual(city.lines('published.txt'), ['v3'])
    await city.stepIs(late.id, 'published', 'waiting')
    await emit(api, 'alpha', 'registry.published', { payload: { tag: 'v4' } })
    await city.ends(late.id)
    assert.deepEqual(city.lines('published.txt'), ['v4'])
  })
})
