// Steps that repeat: over what another one found, over the members of a convoy, a number of times.
import assert from 'node:assert/strict'
import { after, before, suite, test } from 'node:test'
import { AgentCity } from '../../support/automation/agent-city.ts'
import { type Running, run } from '../../support/running.ts'

const FORMULAS = {
  found: `
title = "Found"
[[steps]]
id = "look"
title = "Look"
output = ["files"]
description = '''
$ echo 'files=[{"name":"a"},{"name":"b"},{"name":"c"}]' >&3
'''
[[steps]]
id = "mend"
title = "Mend {{ file.name }} ({{ index }})"
needs = ["look"]
for_each = { in = "steps.look.output.files", as = "file", max_parallel = 2 }
output = ["size"]
description = '''
$ echo "{{ file.name }}" > "mended-{{ file.name }}.txt"
$ echo "size={{ index }}" >&3
'''
[[steps]]
id = "sum"
title = "Sum"
needs = ["mend"]
description = '$ echo "{{ steps.mend.output | map: "size" | join: "+" }}" > sum.txt'
`,
  none: `
title = "None"
[[steps]]
id = "look"
title = "Look"
output = ["files"]
description = "$ echo 'files=[]' >&3"
[[steps]]
id = "mend"
title = "Mend {{ item }}"
needs = ["look"]
for_each = { in = "steps.look.output.files" }
`,
  wrong: `
title = "Wrong"
[[steps]]
id = "look"
title = "Look"
output = ["files"]
description = "$ echo files=many >&3"
[[steps]]
id = "mend"
title = "Mend {{ item }}"
needs = ["look"]
for_each = { in = "steps.look.output.files" }
`,
  members: `
title = "Members of {{ bead.title }}"
[[steps]]
id = "each"
for_each = { in = "bead.members", max_parallel = 3, exclusive = true }
[[steps.children]]
id = "do"
title = "Do {{ item.title }}"
description = '$ case "{{ item.title }}" in bad*) echo "no good"; exit 1;; esac; echo "{{ item.id }}" >> members.txt'
`,
  rounds: `
title = "Rounds"
[vars.rounds]
type = "int"
default = 2
[[steps]]
id = "counted"
title = "Round {{ item }}"
loop = { count = "rounds" }
description = '$ echo "counted {{ item }}" >> rounds.txt'
[[steps]]
id = "ranged"
title = "Again {{ n }}"
needs = ["counted"]
loop = { range = "2..rounds", as = "n" }
description = '$ echo "ranged {{ n }}" >> rounds.txt'
`,
  stops: `
title = "Stops"
[[steps]]
id = "round"
title = "Round {{ item }}"
loop = { count = 3 }
description = '$ echo {{ item }} >> stops.txt; [ {{ item }} != 2 ]'
`,
}

suite('repeats', { timeout: 500_000 }, () => {
  let running: Running
  let city: AgentCity
  before(async () => {
    running = await run()
    city = await AgentCity.start(running, 'alpha', { agents: { robot: 3 }, formulas: FORMULAS })
  })
  after(() => running[Symbol.asyncDispose]())

  test('a step is done for everything that another one found, and its outputs are a list in that order', async () => {
    const { id } = await city.run('found')
    for (const name of ['a', 'b', 'c']) assert.deepEqual(city.lines(`mended-${name}.txt`), [name])
    assert.deepEqual(city.lines('sum.txt'), ['1+2+3'])
    const statuses = await city.statuses(id)
    assert.deepEqual(Object.keys(statuses), ['look', 'mend', 'mend.1', 'mend.2', 'mend.3', 'sum'])
    const second = await city.step(id, 'mend.2')
    assert.deepEqual([second.item, second.title], [{ name: 'b' }, 'Mend b (2)'])
  })

  test('an empty list passes, and what is no list fails the step with what it is', async () => {
    const { id: empty } = await city.run('none')
    assert.equal((await city.statuses(empty))['mend'], 'completed')
    const { failure } = await city.run('wrong', {}, 'failed')
    assert.equal(failure?.step_id, 'mend')
    assert.match(failure?.message ?? '', /list/)
  })

  test('the members of a convoy are done in the order of what waits for what; who passes is closed, and so is the convoy', async () => {
    const [one, two, three] = [await city.create('one'), await city.create('two'), await city.create('three')]
    await city.does('bead', 'dep', 'add', one, three)
    const { id: convoy } = await city.api.done('POST', '/convoys', { title: 'Release', items: [one, two, three] })
    const id = String(convoy)
    const molecule = await city.run('members', { bead: id })
    assert.equal(molecule.title, 'Members of Release')
    const done = city.lines('members.txt')
    assert.deepEqual(done.toSorted(), [one, two, three].toSorted())
    assert.ok(done.indexOf(three) < done.indexOf(one), done.join())
    for (const member of [one, two, three, id]) assert.equal((await city.bead(member)).status, 'closed')
  })

  test('a member that fails stays open with a comment that says why; what waits for it is left out', async () => {
    const [bad, waits, good] = [await city.create('bad'), await city.create('waits'), await city.create('good')]
    await city.does('bead', 'dep', 'add', waits, bad)
    const { id: convoy } = await city.api.done('POST', '/convoys', { title: 'Mixed', items: [bad, waits, good] })
    const { id } = await city.run('members', { bead: String(convoy) }, 'failed')
    assert.deepEqual(await Promise.all([bad, waits, good].map(async (member) => (await city.bead(member)).status)), [
      'open',
      'open',
      'closed',
    ])
    const { items } = await city.api.done('GET', `/beads/${bad}/comments`)
    assert.match(JSON.stringify(items), /no good/)
    const items_ = Object.entries(await city.statuses(id)).filter(([path]) => /^each\.\d$/.test(path))
    assert.deepEqual(items_.map(([, status]) => status).toSorted(), ['completed', 'failed', 'skipped'])
    assert.ok((await city.bead(waits)).is_blocked, 'it waits for the other still, and for nothing else')
  })

  test('a loop goes round as often as a variable says, or from a number to another, one at a time', async () => {
    await city.run('rounds', { vars: { rounds: 3 } })
    assert.deepEqual(city.lines('rounds.txt'), ['counted 1', 'counted 2', 'counted 3', 'ranged 2', 'ranged 3'])
  })

  test('a loop stops at the first round that fails', async () => {
    const { id } = await city.run('stops', {}, 'failed')
    assert.deepEqual(city.lines('stops.txt'), ['1', '2'])
    assert.deepEqual(await city.statuses(id), {
      round: 'failed',
      'round.1': 'completed',
      'round.2': 'failed',
      'round.3': 'skipped',
    })
  })
})
