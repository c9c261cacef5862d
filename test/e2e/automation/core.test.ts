// What the built-in pack brings: its formulas with shells as agents, and its nightly order.
import assert from 'node:assert/strict'
import { after, before, suite, test } from 'node:test'
import { LINES_TYPE } from '../../../src/contract/base/operation.ts'
import { AgentCity } from '../../support/automation/agent-city.ts'
import { at } from '../../support/document.ts'
import { eventually } from '../../support/http.ts'
import { type Running, run } from '../../support/running.ts'

/** How the agents do the steps of the formulas, which are written for models. */
const HABITS = `
cp "$TOLD" "told-$STEP-$ATTEMPT.txt"
case "$STEP" in
  do) if [ "$ATTEMPT" = 1 ]; then echo helo; else echo hello; fi > hello.txt;;
  plan) echo "plan=say it twice" >&3;;
  round.build) cp "$TOLD" "round-$(cat built.txt | wc -l).txt"; echo built >> built.txt;;
  round.review) [ "$(wc -l < built.txt)" = 2 ] || { echo "say it once more"; exit 1; };;
  members.*) echo "$STEP" >> members.txt;;
esac
`

suite('the built-in pack', { timeout: 500_000 }, () => {
  let running: Running
  let city: AgentCity
  before(async () => {
    running = await run()
    const files = { 'habits.sh': HABITS, 'built.txt': '' }
    city = await AgentCity.start(running, 'alpha', { agents: { robot: 2, judge: 1 }, files })
  })
  after(() => running[Symbol.asyncDispose]())

  test('its formulas are good, and say what they are for', async () => {
    const { items } = await city.api.done('GET', '/formulas')
    assert.ok(Array.isArray(items))
    const ours = items.filter((one) => at(one, 'pack') === 'core')
    assert.deepEqual(
      ours.map((one) => [at(one, 'name'), at(one, 'valid'), typeof at(one, 'description')]),
      [
        ['convoy-tasks', true, 'string'],
        ['plan-build-review', true, 'string'],
        ['verified-task', true, 'string'],
      ],
    )
  })

  test('a task is done again until its command says that it is done', async () => {
    const bead = await city.create('Say hello', { description: 'In hello.txt.' })
    const vars = { verify: 'grep -x hello hello.txt || { echo "hello is missing"; exit 1; }' }
    const { molecule } = await city.api.done('POST', '/sling', {
      target: 'robot',
      bead,
      formula: 'verified-task',
      vars,
    })
    const { id, title } = await city.ends(String(molecule))
    assert.equal(title, 'Say hello')
    assert.equal((await city.step(id, 'do')).attempt, 2)
    const told = city.lines('told-do-2.txt').join('\n')
    assert.match(told, /In hello\.txt\./)
    assert.match(told, /hello is missing/)
    assert.deepEqual([(await city.bead(bead)).status, city.lines('hello.txt')], ['closed', ['hello']])
  })

  test('a change is planned, built, and reviewed by another agent until that is content', async () => {
    const { id } = await city.run('plan-build-review', { vars: { task: 'Make it talk', reviewer: 'judge' } })
    assert.equal((await city.step(id, 'round')).attempt, 2)
    assert.equal(city.lines('built.txt').filter((line) => line !== '').length, 2)
    const [first, second] = [city.lines('round-0.txt').join('\n'), city.lines('round-1.txt').join('\n')]
    for (const told of [first, second]) assert.match(told, /say it twice/)
    assert.match(second, /say it once more/)
    assert.doesNotMatch(first, /say it once more/)
    assert.match((await city.step(id, 'round.review')).assignee ?? '', /^judge/)
  })

  test('the members of a convoy are tasks of their own', async () => {
    const items = [await city.create('one'), await city.create('two'), await city.create('three')]
    const { id: convoy } = await city.api.done('POST', '/convoys', { title: 'All of it', items })
    const bead = String(convoy)
    const { id } = await city.run('convoy-tasks', { bead, vars: { verify: 'test -s members.txt' } })
    assert.equal((await city.molecule(id)).title, 'All of it')
    assert.equal(city.lines('members.txt').length, 3)
    for (const item of [...items, bead]) assert.equal((await city.bead(item)).status, 'closed')
  })

  test('stale work is marked at night where somebody wants that, and at once by hand', async () => {
    const long = '2026-01-01T00:00:00Z'
    const lines = ['al-old1', 'al-old2'].map((id) =>
      JSON.stringify({ id, title: id, status: 'open', issue_type: 'task', created_at: long, updated_at: long }),
    )
    const imported = await city.api.api.post(`${city.api.base}/beads/import`, undefined, {
      bytes: `${lines.join('\n')}\n`,
      headers: { 'content-type': LINES_TYPE },
    })
    assert.equal(imported.status, 200, imported.text)
    const young = await city.create('young')
    const order = JSON.parse(await city.does('order', 'get', 'triage-stale', '-o', 'json'))
    assert.deepEqual([order.enabled, order.valid], [false, true])
    await city.does('order', 'run', 'triage-stale', '--wait')
    const labels = async (id: string) => (await city.bead(id)).labels ?? []
    assert.deepEqual(
      [await labels('al-old1'), await labels('al-old2'), await labels(young)],
      [['stale'], ['stale'], []],
    )
    const run = (await city.does('order', 'history', 'triage-stale', '-o', 'name')).trim()
    assert.match(JSON.parse(await city.does('order', 'history', run, '-o', 'json')).output, /al-old1/)

    await city.does('bead', 'claim', 'al-old1', '--assignee', 'ana')
    await city.does('order', 'run', 'triage-stale', '--wait')
    assert.deepEqual([await labels('al-old1'), await labels('al-old2')], [[], ['stale']])
    await city.does('order', 'enable', 'triage-stale')
    await eventually('it is due', async () =>
      JSON.parse(await city.does('order', 'get', 'triage-stale', '-o', 'json')).next_run_at === undefined
        ? undefined
        : true,
    )
  })
})
