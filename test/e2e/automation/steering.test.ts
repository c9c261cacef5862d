// Molecules in the hands of people: about a bead, in the place of another, canceled, gone on with, deleted; and sling.
import assert from 'node:assert/strict'
import { after, before, suite, test } from 'node:test'
import { AgentCity } from '../../support/automation/agent-city.ts'
import { at } from '../../support/document.ts'
import { assertProblem, eventually } from '../../support/http.ts'
import { type Running, run } from '../../support/running.ts'

const FORMULAS = {
  about: `
title = "About {{ bead.title }}"
[[steps]]
id = "do"
title = "Do {{ bead.id }}"
description = '$ echo "{{ bead.id }} {{ bead.description }}" >> about.txt'
`,
  held: `
title = "Held"
[[steps]]
id = "wait"
title = "Go on?"
gate = { human = true }
[[steps]]
id = "do"
title = "Do"
needs = ["wait"]
description = '$ echo done >> held.txt'
`,
  long: `
title = "Long"
[[steps]]
id = "sleep"
title = "Sleep"
description = '$ echo began >> long.txt; sleep 600'
[[steps]]
id = "cleanup"
title = "Clean up"
needs = ["sleep"]
always = true
description = '$ echo swept >> long.txt'
`,
  slow: `
title = "Slow"
[[steps]]
id = "sleep"
title = "Sleep"
timeout = "3s"
description = '$ echo began >> slow.txt; sleep 600'
`,
  mendable: `
title = "Mendable"
[[steps]]
id = "before"
title = "Before"
description = '$ echo before >> mended.txt'
[[steps]]
id = "broken"
title = "Broken"
needs = ["before"]
description = '$ test -f mended'
[[steps]]
id = "behind"
title = "Behind"
needs = ["broken"]
description = '$ echo behind >> mended.txt'
`,
}

suite('steering', { timeout: 500_000 }, () => {
  let running: Running
  let city: AgentCity
  before(async () => {
    running = await run()
    city = await AgentCity.start(running, 'alpha', {
      agents: { robot: 2 },
      more: '[[agent]]\nname = "sleeper"\nprovider = "robot"\nmax_active_sessions = 1\n',
      formulas: FORMULAS,
    })
  })
  after(() => running[Symbol.asyncDispose]())

  test('a bead waits for the molecule that is about it, and is closed by its pass', async () => {
    const bead = await city.create('Fix it', { description: 'now' })
    const { molecule } = await city.api.done('POST', '/sling', { target: 'robot', bead, formula: 'about' })
    const { title } = await city.ends(String(molecule))
    assert.equal(title, 'About Fix it')
    assert.deepEqual(city.lines('about.txt'), [`${bead} now`])
    const closed = await city.bead(bead)
    assert.deepEqual([closed.status, closed.outcome], ['closed', 'pass'])
  })

  test('who has no session gets one with the work', async () => {
    const before = await city.api.done('GET', '/sessions?template=sleeper')
    assert.deepEqual(before.items, [])
    const text = 'Say it\n$ echo slung >> slung.txt'
    const { bead, outcome } = await city.api.done('POST', '/sling', { target: 'sleeper', text })
    assert.equal(outcome, 'routed')
    const { assignee = '' } = await city.closed(String(bead))
    assert.deepEqual(city.lines('slung.txt'), ['slung'])
    assert.match(assignee, /sleeper/)
  })

  test('one molecule at a time works on a bead; another one takes its place where that is said', async () => {
    const bead = await city.create('Contested')
    const first = await city.launch('held', { bead })
    assert.ok((await city.bead(bead)).is_blocked)
    const refused = await city.api.send('POST', '/molecules', { formula: 'about', bead, target: 'robot' })
    assert.match(assertProblem(refused, 'molecule-live').detail, new RegExp(first.id))
    await city.run('about', { bead, replace: true })
    assert.equal((await city.molecule(first.id)).status, 'canceled')
    assert.equal((await city.bead(bead)).status, 'closed')
  })

  test('a bead that somebody has is left alone, unless it is to be taken', async () => {
    const bead = await city.create('Held by ana')
    await city.api.done('POST', `/beads/${bead}/claim`, { assignee: 'ana' })
    const refused = await city.api.send('POST', '/molecules', { formula: 'about', bead, target: 'robot' })
    assertProblem(refused, 'conflict-claimed', /ana/)
    await city.run('about', { bead, reassign: true })
  })

  test('a canceled molecule ends at once: its agent is interrupted, nothing else begins, its bead is free', async () => {
    const bead = await city.create('Long one')
    const { id } = await city.launch('long', { bead })
    await eventually('it is under way', () => (city.has('long.txt') ? true : undefined), 60_000)
    const { status } = await city.api.done('POST', `/molecules/${id}/cancel`, { reason: 'wrong branch' })
    assert.equal(status, 'canceled')
    assert.deepEqual(await city.statuses(id), { sleep: 'canceled', cleanup: 'canceled' })
    assertProblem(await city.api.send('POST', `/molecules/${id}/cancel`), 'conflict-wrong-state')
    const free = await city.bead(bead)
    assert.deepEqual([free.status, free.is_blocked], ['open', false])
    // Who was at it takes the next work.
    await city.run('about', { bead })
    assert.deepEqual(city.lines('long.txt'), ['began'])
    const resolved = await city.api.events('molecule.resolved', { subject: id })
    assert.deepEqual(
      resolved.map(({ payload }) => payload['outcome']),
      ['canceled'],
    )
  })

  test('who works on what has ended is interrupted, and told why: it was canceled, or took too long', async () => {
    const told = async (id: string, path: string, why: RegExp) => {
      const { assignee = '' } = await city.step(id, path)
      await eventually(`${assignee} is told`, async () => {
        const said = await city.api.deliveries(assignee)
        return said.some(({ text }) => why.test(text)) ? true : undefined
      })
    }
    const canceled = await city.launch('long')
    await city.stepIs(canceled.id, 'sleep', 'active')
    await city.api.done('POST', `/molecules/${canceled.id}/cancel`, { reason: 'wrong branch' })
    await told(canceled.id, 'sleep', /^Stop: .*wrong branch/)
    const slow = await city.run('slow', {}, 'failed')
    assert.deepEqual([slow.failure?.step_id, slow.failure?.reason], ['sleep', 'timeout'])
    await told(slow.id, 'sleep', /^Stop: (?!.*wrong branch)/)
    // Both of them take the next work, though they had ten minutes to sleep.
    await Promise.all([
      city.run('about', { bead: await city.create('a') }),
      city.run('about', { bead: await city.create('b') }),
    ])
  })

  test('a molecule that failed is gone on with where it failed', async () => {
    const { id } = await city.run('mendable', {}, 'failed')
    assert.equal((await city.statuses(id))['behind'], 'skipped')
    city.api.write('mended', '')
    await city.does('molecule', 'retry', id)
    await city.ends(id)
    assert.deepEqual(city.lines('mended.txt'), ['before', 'behind'])
    assert.equal((await city.step(id, 'broken')).attempt, 2)
    const { beads } = await city.api.done('DELETE', `/molecules/${id}`)
    assert.equal(beads, 5, 'the root, and an attempt each but for the one that was repeated')
    assert.equal((await city.api.send('GET', `/molecules/${id}`)).status, 404)
  })

  test('the command line does all of that', async () => {
    const bead = await city.create('By hand', { description: 'by hand' })
    const id = (
      await city.does('sling', '--target', 'robot', '--bead', bead, '--formula', 'held', '-o', 'jsonpath={.molecule}')
    ).trim()
    await city.asked(id, 'wait')
    assert.match(await city.does('molecule', 'list'), new RegExp(id))
    assert.match(await city.does('molecule', 'steps', id), /wait/)
    await city.does('molecule', 'approve', id, 'wait')
    await city.ends(id)
    const started = await city.svcctl('molecule', 'start', 'mendable', '--target', 'robot', '--wait', '-o', 'json')
    assert.equal(started.code, 0, started.err)
    city.api.remove('mended')
    const failed = await city.svcctl('molecule', 'start', 'mendable', '--target', 'robot', '--wait')
    assert.equal(failed.code, 9, failed.err)
    const page = at(JSON.parse(await city.does('molecule', 'list', '--status', 'failed', '-o', 'json')), 'items')
    assert.ok(Array.isArray(page) && page.length > 0)
  })
})
