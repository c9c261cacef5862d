// The command line of work: the real program against a real supervisor.
import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { cli } from '../../support/cli.ts'
import { type ConfigCity, createCity } from '../../support/config-city.ts'
import { asMap, at } from '../../support/document.ts'
import { type Running, run as runSupervisor } from '../../support/running.ts'

let running: Running
let city: ConfigCity
before(async () => {
  running = await runSupervisor()
  city = await createCity(running.server, 'alpha')
})
after(async () => {
  city.api.close()
  await running[Symbol.asyncDispose]()
})

interface World {
  readonly input?: string
  readonly env?: Readonly<Record<string, string>>
  readonly onOut?: (text: string) => void
}
const run = (words: readonly string[], { env, ...world }: World = {}) =>
  cli(words, { cwd: city.dir, env: { SVC_API: running.server.url, ...env }, ...world })

/** Succeeds, says nothing on stderr, and answers with stdout. */
async function does(words: readonly string[], world: World = {}): Promise<string> {
  const { out, err, code } = await run([...words, '-q'], world)
  assert.equal(code, 0, `${words.join(' ')}: ${err}`)
  assert.equal(err, '')
  return out
}
const line = (text: string): string[] => text.split(' ')
const json = async (words: readonly string[], world: World = {}): Promise<unknown> =>
  JSON.parse(await does([...words, '-o', 'json'], world))
const made = async (...words: string[]): Promise<string> =>
  (await does(['bead', 'create', ...words, '-o', 'name'])).trimEnd()
async function fails(code: number, said: RegExp, words: readonly string[], world: World = {}): Promise<void> {
  const { out, err, code: exit } = await run(words, world)
  assert.equal(exit, code, `${words.join(' ')}: ${out}${err}`)
  assert.match(err, said)
  assert.equal(out, '')
}

test('a bead from its creation to its end', async () => {
  const id = await made('Fix', 'the', 'login', ...line('-t bug -p 1 -l ui -l now --meta k=v -d @city.toml'))
  const bead = await json(line(`bead get ${id}`))
  assert.deepEqual(
    [at(bead, 'title'), at(bead, 'issue_type'), at(bead, 'priority'), at(bead, 'labels'), at(bead, 'metadata')],
    ['Fix the login', 'bug', 1, ['now', 'ui'], { k: 'v' }],
  )
  assert.equal(at(bead, 'description'), city.read('city.toml'))
  const changed = await json(line(`bead update ${id} -p 0 --remove-label now --unset description --if-match 1`))
  assert.deepEqual([at(changed, 'priority'), at(changed, 'labels'), at(changed, 'revision')], [0, ['ui'], 2])
  assert.equal(asMap(changed).description, undefined)
  await fails(5, /precondition/, line(`bead update ${id} -p 1 --if-match 1`))
  await fails(6, /svc\.routed_to/, line(`bead update ${id} --meta svc.routed_to=x`))

  assert.match(await does(line(`bead claim ${id} -a amy --branch fix`)), /^assignee\tamy$/m)
  await fails(5, /amy has/, line(`bead claim ${id} -a bob`))
  assert.match(await does(line(`bead heartbeat ${id} -a amy`)), /^lease_expires_at\t2/m)
  await fails(5, /amy/, line(`bead heartbeat ${id} -a bob`))
  await fails(5, /conflict/, line(`bead assign ${id} cid --expected-assignee bob`))
  assert.match(await does(line(`bead assign ${id} bob --expected-assignee amy`)), /^assignee\tbob$/m)
  assert.equal(asMap(at(await json(line(`bead release ${id} -a bob`)), 'bead')).assignee, undefined)
  assert.match(await does(line(`bead route ${id} nobody-knows`)), /^routed_to\tnobody-knows$/m)
  assert.match((await run(line(`bead route ${id} nobody-knows-either`))).err, /^warning: .*nobody-knows-either/)

  assert.match(await does(['bead', 'label', 'add', id, 'a/b c']), /^labels\ta\/b c, ui$/m)
  assert.match(await does(['bead', 'label', 'remove', id, 'a/b c']), /^labels\tui$/m)
  await does(['bead', 'comment', 'add', id, 'seen', 'it'], { env: { SVC_AGENT: 'mayor' } })
  await does(['bead', 'comment', 'add', id, '-'], { input: 'two\nlines' })
  assert.match(await does(line(`bead comment list ${id}`)), /\tmayor\tseen it\n.*\t\ttwo\\nlines\n$/)

  const closed = await json(['bead', 'close', id, ...line('-r done --outcome pass --commit 1a2b --result {"n":1}')])
  assert.deepEqual(
    [at(closed, 'status'), at(closed, 'outcome'), at(closed, 'close_reason')],
    ['closed', 'pass', 'done'],
  )
  assert.equal(at(closed, 'metadata', 'svc.output_json'), '{"n":1}')
  assert.equal(await does(line(`bead list -l ui -o name`)), '')
  assert.equal(await does(line(`bead list -l ui --all -o name`)), `${id}\n`)
  assert.match(await does(line(`bead reopen ${id}`)), /^status\topen$/m)
  await fails(5, /conflict/, line(`bead reopen ${id}`))
  await fails(2, /--yes/, line(`bead delete ${id}`))
  assert.match(await does(line(`bead delete ${id} --yes`)), /^deleted\t/m)
  await fails(3, /not_found/, line(`bead get ${id}`))
})

test('dependencies: what waits is not ready, a circle is refused, the graph shows both', async () => {
  const root = await made('Release', ...line('-t epic -l rel'))
  const first = await made('First', '--parent', root)
  const second = await made('Second', '--parent', root, '--needs', first)
  const third = await made('Third', '--parent', root)
  await does(line(`bead dep add ${third} ${second}`))
  await fails(5, /cycle: .* -> .* -> /, line(`bead dep add ${first} ${third}`))
  assert.equal(await does(line(`bead ready --parent ${root} -o name`)), `${first}\n`)
  const deps = await does(line(`bead dep list ${second}`))
  assert.match(deps, new RegExp(`^depends on\tblocks\t${first}\topen\tFirst$`, 'm'))
  assert.match(deps, new RegExp(`^needed by\tblocks\t${third}\topen\tThird$`, 'm'))
  await does(line(`bead close ${first}`))
  await does(line(`bead claim ${second} -a amy`))
  assert.deepEqual((await does(line(`bead graph ${root}`))).split('\n'), [
    `○ ${root} Release`,
    `├─ ✓ ${first} First`,
    `├─ ▶ ${second} Second (amy)`,
    `└─ ■ ${third} Third ← waits for ${second}`,
    '',
  ])
  await does(line(`bead dep remove ${third} ${second}`))
  assert.equal(await does(line(`bead ready --parent ${root} -o name`)), `${third}\n`)
  assert.equal(await does(['bead', 'query', `parent=${root}`, 'AND', 'status=open', '-o', 'name']), `${third}\n`)
  await fails(6, /<expression>: column 9: expected a value/, ['bead', 'query', 'status ='])
  await fails(5, /still/, line(`bead delete ${root} --yes`))
  assert.equal(at(await json(line(`bead delete ${root} --yes --cascade`)), 'deleted', 'length'), 4)
})

test('ready --wait ends when something becomes ready', async () => {
  const blocker = await made('Blocker')
  const waiting = await made('Waiting', '-l', 'awaited', '--needs', blocker)
  const words = line('bead ready -l awaited --wait 60s -o name --debug')
  let asked = 0
  const { promise: waits, resolve: isWaiting } = Promise.withResolvers<void>()
  const ready = cli(words, {
    cwd: city.dir,
    env: { SVC_API: running.server.url },
    onErr: (text) => {
      asked += text.split('/beads/ready').length - 1
      if (asked > 0) isWaiting()
    },
  })
  await waits
  await does(line(`bead close ${blocker}`))
  const { out, code } = await ready
  assert.deepEqual([code, out], [0, `${waiting}\n`])
})

test('an agent takes what is on its hook, until there is nothing', async () => {
  const env = { SVC_AGENT: 'shop/polecat', SVC_SESSION_ID: 's-1', SVC_SESSION_NAME: 'polecat-1' }
  const id = await made('Routed')
  await does(line(`bead route ${id} shop/polecat`))
  assert.match(await does(line('bead hook'), { env }), new RegExp(`^routed\t${id}\t`))
  const work = await json(line('bead hook --claim'), { env })
  assert.deepEqual(
    [at(work, 'action'), at(work, 'reason'), at(work, 'bead_id'), at(work, 'bead', 'session_id')],
    ['work', 'claimed', id, 's-1'],
  )
  assert.equal(at(await json(line('bead hook --claim'), { env }), 'reason'), 'existing_assignment')
  await does(line(`bead close ${id}`), { env })
  assert.match(await does(line('bead hook --claim'), { env }), /^action\tdrain\nreason\tno_work\n/)
  await fails(2, /whose hook/, line('bead hook'))
})

test('a plan comes in whole or not at all', async () => {
  const plan = {
    nodes: [
      { key: 'a', title: 'A' },
      { key: 'b', title: 'B', parent_key: 'a' },
      { key: 'c', title: 'C', parent_key: 'a' },
    ],
    edges: [{ from_key: 'c', to_key: 'b' }],
  }
  writeFileSync(join(city.dir, 'plan.json'), JSON.stringify(plan))
  const ids = asMap(at(await json(line('bead batch plan.json')), 'ids'))
  assert.match(await does(line(`bead graph ${String(ids.a)}`)), /■ \S+ C ← waits for/)
  const circle = { ...plan, edges: [...plan.edges, { from_key: 'b', to_key: 'c' }] }
  await fails(5, /cycle/, line('bead batch -'), { input: JSON.stringify(circle) })
})

test('an export comes back in unchanged, also through a pipe; bad lines are named', async () => {
  await made('Kept', ...line('-d ü\u2028x --meta k=v'))
  const { err } = await run(line('bead export all.jsonl'))
  const file = readFileSync(join(city.dir, 'all.jsonl'), 'utf8')
  const count = file.split('\n').length - 1
  assert.equal(err, `${count} beads in all.jsonl\n`)
  assert.equal(await does(line('bead export')), file)
  const again = await json(line('bead import all.jsonl'))
  assert.deepEqual([at(again, 'unchanged'), at(again, 'failed')], [count, 0])
  assert.equal(at(await json(line('bead import -'), { input: file }), 'unchanged'), count)

  const input = '{"id":"al-imp1","title":"One"}\nnot JSON\n{"id":"al-imp2","title":"Two"}\n'
  const dry = await run(line('bead import - --dry-run -q'), { input })
  assert.match(dry.out, /^created\t2$/m)
  await fails(3, /not_found/, line('bead get al-imp1'))
  const bad = await run(line('bead import - -q'), { input })
  assert.equal(bad.code, 1)
  assert.match(bad.err, /^error: line 2: not JSON/)
  assert.match(await does(line('bead get al-imp2')), /^title\tTwo$/m)
  await fails(3, /rig/, line('bead import all.jsonl --rig nowhere'))
  await fails(2, /cannot open/, line('bead import missing.jsonl'))
})

test('lists end where asked, and go on to the end where asked', async () => {
  const nodes = Array.from({ length: 120 }, (_, at) => ({ key: `k${at}`, title: `Many ${at}`, labels: ['many'] }))
  await does(line('bead batch -'), { input: JSON.stringify({ nodes }) })
  const names = async (...words: string[]) =>
    (await does([...line('bead list -l many -o name'), ...words])).split('\n').length - 1
  assert.deepEqual([await names(), await names('--limit', '7'), await names('--paginate')], [100, 7, 120])
  assert.match((await run(line('bead list -l many'))).err, /showing the first 100/)
})

test('a convoy is filled, watched, emptied, landed and removed', async () => {
  const [a, b] = [await made('A'), await made('B')]
  const id = (
    await does(['convoy', 'create', 'Two', 'things', ...line(`--item ${a} --owner amy --owned -o name`)])
  ).trim()
  await does(line(`convoy add ${id} ${b}`))
  assert.match(await does(line('convoy list')), new RegExp(`^${id}\topen\t0 of 2\tamy\tTwo things\t`, 'm'))
  const view = await does(line(`convoy get ${id}`))
  assert.match(view, new RegExp(`^${a}\topen\ttask\t\tA\n${b}\topen\ttask\t\tB$`, 'm'))
  assert.equal(at(await json(line(`convoy get ${id} --limit 1`)), 'children', 'length'), 1)
  assert.match(await does(line('convoy stranded -o name')), new RegExp(`^${a}\n${b}\n$`))
  assert.match(await does(line(`convoy check ${id}`)), /^complete\tfalse$/m)
  await fails(5, new RegExp(a), line(`convoy land ${id}`))
  assert.match(await does(line(`convoy land ${id} --dry-run --force`)), /^dry_run\ttrue$/m)
  assert.match(await does(line(`convoy remove ${id} ${b}`)), /^progress\t0 of 1$/m)
  await does(line(`bead close ${a}`))
  assert.match(await does(line(`convoy check ${id}`)), /^complete\ttrue$/m)
  assert.match(await does(line(`convoy update ${id} --target main --unset owner`)), /^target\tmain$/m)
  assert.match(await does(line(`convoy land ${id}`)), /^landed\ttrue$/m)
  assert.equal(await does(line('convoy list -o name')), '')
  assert.equal(await does(line('convoy list --all -o name')), `${id}\n`)
  const other = (await does(['convoy', 'create', 'Other', ...line(`--item ${b} -o name`)])).trim()
  assert.match(await does(['convoy', 'close', other, '-r', 'enough for now']), /^close_reason\tenough for now$/m)
  await fails(2, /--yes/, line(`convoy delete ${other}`))
  assert.match(await does(line(`convoy delete ${other} --yes`)), /^status\tdeleted$/m)
  assert.match(await does(line('convoy check')), /^checked\t0$/m)
  await fails(3, /not_found/, line(`convoy get ${other}`))
})
