/** `svcctl molecule …` and `svcctl sling`: what they print, to a person and to a program, and how they end. */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { type CliResult, cli } from '../../support/cli.ts'
import { eventually } from '../../support/http.ts'
import { MoleculeCity } from '../../support/molecule-city.ts'
import { type RunningSupervisor, startSupervisor } from '../../support/supervisor.ts'
import { TestTerminal } from '../../support/terminal.ts'

let supervisor: RunningSupervisor
before(async () => {
  supervisor = await startSupervisor()
})
after(() => supervisor[Symbol.asyncDispose]())

const RELEASE = `title = "Release {{ tag }}"
[vars.tag]
required = true
[vars.rounds]
type = "int"
default = 2
[[steps]]
id = "plan"
title = "Plan {{ tag }}"
retry = { max_attempts = 2, backoff = "1s" }
[[steps]]
id = "polish"
needs = ["plan"]
title = "Polish, round {{ item }}"
loop = { count = "rounds" }
[[steps]]
id = "approve"
title = "Ship {{ tag }}?"
needs = ["polish"]
gate = { human = true }
`
const FORMULAS = { release: RELEASE }

const envOf = (city: string) => ({ SVC_HOME: supervisor.home, SVC_CITY: city })
const svcctl = (city: string, ...words: readonly string[]): Promise<CliResult> => cli(words, { env: envOf(city) })
async function does(city: string, ...words: readonly string[]): Promise<string> {
  const { out, err, code } = await svcctl(city, ...words)
  assert.equal(code, 0, `${words.join(' ')}: ${err}`)
  return out
}

test('a molecule is started with variables by their types, shown, approved, and waited for', async () => {
  const city = await MoleculeCity.start(supervisor, 'started', FORMULAS)
  const wrong = await svcctl('started', 'molecule', 'start', 'release', '--var', 'rounds=many', '--var', 'tag=v1')
  assert.equal(wrong.code, 2, wrong.err)
  const missing = await svcctl('started', 'molecule', 'start', 'release')
  assert.equal(missing.code, 6)
  assert.match(missing.err, /vars\.tag|--var/)
  const dry = await does('started', 'molecule', 'start', 'release', '--var', 'tag=v1', '--dry-run')
  assert.match(dry, /^STATUS?\twould be started$|status\twould be started/im)
  const id = (
    await does('started', 'molecule', 'start', 'release', '--var', 'tag=v1', '--var', 'rounds=1', '-o', 'name')
  ).trim()
  assert.match(
    await does('started', 'molecule', 'list'),
    new RegExp(`^${id}\\tpending\\t0 of \\d+\\trelease\\tRelease v1`),
  )
  assert.match(await does('started', 'molecule', 'steps', id), /^plan\tready\twork\t\twaits for somebody to claim/m)
  assert.match(await does('started', 'molecule', 'graph', id), /polish \[loop/)
  assert.match(await does('started', 'molecule', 'graph', id, '--as', 'mermaid'), /^(flowchart|graph)/)
  const early = await svcctl('started', 'molecule', 'approve', id, 'approve')
  assert.deepEqual([early.code, /waits for no answer: it is pending/.test(early.err)], [5, true], early.err)

  await city.finish(id, 'plan')
  await city.finish(id, 'polish.1')
  await city.stepIs(id, 'approve', 'waiting')
  const watched = svcctl('started', 'molecule', 'watch', id)
  assert.match(await does('started', 'molecule', 'approve', id, 'approve', '--reason', 'fine'), /outcome\tpass/)
  const seen = await watched
  assert.equal(seen.code, 0, seen.err)
  assert.match(seen.out, new RegExp(`\\t${id}\\t(waiting|completed)`))
  assert.match(seen.out, /\tplan\tcompleted\t1\t/)
  await city.is(id, 'completed')
  assert.match(await does('started', 'molecule', 'delete', id, '--yes'), /^status\tdeleted$/m)
})

test('waiting for one that fails ends with 9, and a retry goes on', async () => {
  const city = await MoleculeCity.start(supervisor, 'failing', {
    one: 'title = "One"\n[[steps]]\nid = "do"\ntitle = "Do"\n',
  })
  const waiting = svcctl('failing', 'molecule', 'start', 'one', '--wait')
  const id = await eventually('it is there', async () => {
    const { body } = await city.city.get('/molecules')
    const found = /"id":"([^"]+)"/.exec(JSON.stringify(body))?.[1]
    return found
  })
  await city.finish(id, 'do', { outcome: 'fail', failure_reason: 'no network' })
  const ended = await waiting
  assert.equal(ended.code, 9, ended.out)
  assert.match(ended.err, new RegExp(`the molecule ${id} failed: do: .*no network`))
  assert.match(ended.out, /^status\tfailed$/m)
  const records = await svcctl('failing', 'molecule', 'watch', id, '-o', 'jsonl')
  assert.equal(records.code, 9)
  for (const line of records.out.trim().split('\n')) JSON.parse(line)
  await does('failing', 'molecule', 'retry', id)
  const late = await svcctl('failing', 'molecule', 'retry', id)
  assert.equal(late.code, 5)
  const short = await svcctl('failing', 'molecule', 'start', 'one', '--wait', '--timeout', '1s')
  assert.equal(short.code, 8, short.err)
})

test('on a terminal the steps are a tree that is drawn anew, until the molecule ends or somebody leaves', async () => {
  const city = await MoleculeCity.start(supervisor, 'watched', FORMULAS)
  const { id } = await city.launch('release', { vars: { tag: 'v\u001b[31m1' }, title: 'Hostile \u202e title' })
  await using terminal = new TestTerminal(['molecule', 'watch', id], { env: envOf('watched'), columns: 100, rows: 20 })
  await terminal.shows(/○ plan .*waits for somebody to claim/)
  await terminal.shows(/· polish .*waits for plan/)
  const bead = await city.beadOf(id, 'plan')
  await city.city.post(`/beads/${bead}/claim`, { assignee: 'ann' })
  await terminal.shows(/▶ plan .*\(ann\)/)
  await city.close(bead, { outcome: 'fail', failure_reason: 'too early' })
  await terminal.shows(/plan .*attempt 2 of 2/)
  await city.finish(id, 'plan')
  await terminal.shows(/└─ [·○] 2|[├└]─ ○ 1 /)
  await city.finish(id, 'polish.1')
  await city.finish(id, 'polish.2')
  await terminal.shows(/… approve .*waits for an answer/)
  await city.close((await city.step(id, 'approve')).bead_id ?? '', { outcome: 'pass' })
  assert.equal(await terminal.ends(), 0)
  await terminal.shows(/completed {2}4 of 4 done/)
  assert.ok(!terminal.raw.includes('\u202e'), 'what turns text around is not printed')

  const other = await city.launch('release', { vars: { tag: 'v2' } })
  await using left = new TestTerminal(['molecule', 'watch', other.id], { env: envOf('watched') })
  await left.shows(/q leave/)
  left.type('q')
  assert.equal(await left.ends(), 0)
})

const SHELLS = `[[agent]]
name = "worker"
provider = "shell"
suspended = true
[[rigs]]
name = "shop"
path = "shop"
prefix = "sh"
default_sling_target = "worker"
`

test('the first word after sling is who gets it, the others are what: a bead, or a task', async () => {
  const city = await MoleculeCity.start(supervisor, 'slung', {
    ...FORMULAS,
    one: 'title = "One"\n[[steps]]\nid = "do"\ntitle = "Do"\n',
  })
  city.city.write('shop/.keep', '')
  const written = await city.city.put('city.toml', `${(await city.city.file('city.toml')).text}\n${SHELLS}`)
  assert.equal(written.status, 200, written.text)
  await eventually('it is in force', async () =>
    (await city.city.get('/rigs/shop')).status === 200 ? true : undefined,
  )
  const slung = async (...words: readonly string[]) => {
    const [id = ''] = (await does('slung', 'sling', ...words, '-o', 'jsonpath={.bead}')).trim().split('\n')
    const { title, routed_to, rig } = await city.readBead(id)
    return { id, title, routed_to, rig }
  }
  const { id, ...task } = await slung('worker', 'Fix', 'the', 'login')
  assert.deepEqual(task, { title: 'Fix the login', routed_to: 'worker', rig: undefined })
  const bead = await city.bead('of today')
  assert.deepEqual(await slung('worker', bead), { id: bead, title: 'of today', routed_to: 'worker', rig: undefined })
  const other = await city.bead('of yesterday')
  assert.equal((await slung('worker', '--bead', other)).id, other)
  assert.equal((await slung('--target', 'worker', 'worker', 'is', 'slow')).title, 'worker is slow')
  assert.deepEqual((await slung('--rig', 'shop', 'Sweep the shop')).title, 'Sweep the shop')
  assert.deepEqual((await slung('--rig', 'shop', 'worker', 'Sweep')).title, 'Sweep')
  assert.match(await does('slung', 'sling', 'worker', '--formula', 'one'), /^molecule\t/m)

  const refused = async (code: number, says: RegExp, ...words: readonly string[]) => {
    const { err, code: ended } = await svcctl('slung', ...words)
    assert.match(err, says, words.join(' '))
    assert.equal(ended, code, err)
  }
  await refused(6, /<agent>: is required/, 'sling', 'Fix the login')
  await refused(6, /<agent>: is required/, 'sling', bead)
  await refused(3, /did you mean worker/, 'sling', 'wroker', 'Fix it')
  await refused(3, /there is no bead sl-zzz[\s\S]*hint: .*echo/, 'sling', 'worker', 'sl-zzz')
  await refused(2, /one bead at a time/, 'sling', 'worker', bead, other)
  await refused(2, /too much/, 'sling', 'worker', 'Fix it', '--bead', id)
  await refused(6, /--var tag/, 'molecule', 'start', 'release')
  await refused(2, /missing required argument 'formula'/, 'molecule', 'start')
  await refused(2, /missing required argument 'name'/, 'order', 'run')
})

test('beads behind the title of a convoy are not made words of it', async () => {
  const city = await MoleculeCity.start(supervisor, 'titled')
  const bead = await city.bead('one')
  const refused = await svcctl('titled', 'convoy', 'create', 'New login', bead)
  assert.equal(refused.code, 2)
  assert.match(refused.err, new RegExp(`${bead} is a bead[\\s\\S]*--item ${bead}`))
  await does('titled', 'convoy', 'create', 'New', 'two-step', 'login', '--item', bead)
  await does('titled', 'convoy', 'create', `Follow ${bead}`)
})

test('a gate for somebody says for whom it waits, and that nobody tells them', async () => {
  const city = await MoleculeCity.start(supervisor, 'asked', {
    asks: 'title = "Asks"\n[[steps]]\nid = "ask"\ntitle = "Go on?"\nassignee = "bob"\ngate = { human = true }\n',
  })
  const { id } = await city.launch('asks')
  const { reason = '' } = await city.stepIs(id, 'ask', 'waiting')
  assert.match(reason, /^waits for an answer of bob, whom nobody tells: /)
})
