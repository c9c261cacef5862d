// What every command of the command line can do, shown on a few of them: the real program against a real supervisor.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { cli } from '../../support/cli.ts'
import { type ConfigCity, createCity } from '../../support/config-city.ts'
import { asMap, at } from '../../support/document.ts'
import { type Running, run as runSupervisor } from '../../support/running.ts'
import { TestTerminal } from '../../support/terminal.ts'

let running: Running
let alpha: ConfigCity
let beta: ConfigCity
before(async () => {
  running = await runSupervisor()
  alpha = await createCity(running.server, 'alpha')
  beta = await createCity(running.server, 'beta')
})
after(async () => {
  alpha.api.close()
  beta.api.close()
  await running[Symbol.asyncDispose]()
})

interface World {
  readonly cwd?: string
  readonly input?: string
  readonly onOut?: (text: string) => void
  readonly signal?: AbortSignal
}
const run = (words: readonly string[], world: World = {}) =>
  cli(words, { cwd: alpha.dir, env: { SVC_API: running.server.url }, ...world })
const line = (text: string): string[] => text.split(' ')
async function does(words: readonly string[], world: World = {}): Promise<string> {
  const { out, err, code } = await run([...words, '-q'], world)
  assert.deepEqual([code, err], [0, ''], words.join(' '))
  return out
}
const made = async (city: string, title: string): Promise<string> =>
  (await does(['convoy', 'create', title, '--city', city, '-o', 'name'])).trim()

test('a list asks every city with -A, a column says which', async () => {
  const [one, two] = [await made('alpha', 'One'), await made('beta', 'Two')]
  const rows = await does(line('convoy list -A'))
  assert.match(rows, new RegExp(`^alpha\t${one}\topen\t.*^beta\t${two}\topen\t`, 'ms'))
  const items = at(JSON.parse(await does(line('convoy list -A -o json'))), 'items')
  assert.deepEqual(
    (Array.isArray(items) ? items : []).map((item) => [asMap(item).city, asMap(item).id]),
    [
      ['alpha', one],
      ['beta', two],
    ],
  )
  const { code, err } = await run(line(`convoy get ${one} -A`))
  assert.deepEqual([code, /--all-cities is for lists/.test(err)], [2, true])
})

test('of several ids those that can be done are done, the others are named', async () => {
  const [one, two] = [await made('alpha', 'One'), await made('alpha', 'Two')]
  const { out, err, code } = await run(line(`convoy close ${one} al-nothing ${two} -r enough -o json`))
  assert.equal(code, 3)
  assert.match(err, /al-nothing/)
  const items = at(JSON.parse(out), 'items')
  assert.deepEqual(
    (Array.isArray(items) ? items : []).map((item) => [asMap(item).id, asMap(item).status]),
    [
      [one, 'closed'],
      [two, 'closed'],
    ],
  )
  assert.equal((await run(line(`convoy delete ${one} ${two}`))).code, 2)
  assert.match(await does(line(`convoy rm ${one} ${two} --yes`)), new RegExp(`^deleted\t${one}\ndeleted\t${two}\n$`))
})

test('a watched list shows what changes, when it changes', { timeout: 60_000 }, async () => {
  const stopping = new AbortController()
  const { promise: started, resolve: hasStarted } = Promise.withResolvers<void>()
  const { promise: changed, resolve: hasChanged } = Promise.withResolvers<void>()
  const first = await made('beta', 'Watched')
  let seen = ''
  const watching = run(line('convoy list --city beta --watch -o jsonl'), {
    signal: stopping.signal,
    onOut: (text) => {
      seen += text
      if (seen.includes(first)) hasStarted()
      if (seen.includes('"status":"closed"') || seen.includes('Later')) hasChanged()
    },
  })
  await started
  const later = await made('beta', 'Later')
  await changed
  stopping.abort()
  assert.equal((await watching).code, 130)
  const lines = seen.trimEnd().split('\n')
  assert.equal(lines.filter((text) => text.includes(first)).length, 1, 'what stays is not printed again')
  assert.equal(at(JSON.parse(lines.at(-1) ?? ''), 'id'), later)
})

test('what other programs call things is understood, and a flag that has nothing to do is no error', async () => {
  const id = await made('alpha', 'Named')
  assert.ok((await does(line('convoy ls -o name'))).split('\n').includes(id))
  assert.match(await does(line(`convoy show ${id} --wait --yes`)), new RegExp(`^id\t${id}$`, 'm'))
  assert.match(await does(line(`convoy close ${id} --no-wait -y`)), /^status\tclosed$/m)
})

test('beads that an expression finds are changed together', async () => {
  const [one, two, other] = await Promise.all(
    ['One', 'Two', 'Other'].map(async (title) =>
      (await does(['bead', 'create', title, '-o', 'name', ...(title === 'Other' ? [] : ['-l', 'together'])])).trim(),
    ),
  )
  const changed = await does(['bead', 'update', '--query', 'label=together', '-p', '1', '-o', 'name'])
  assert.deepEqual(changed.trim().split('\n').toSorted(), [one, two].toSorted())
  assert.match(await does(line(`bead label add ${one} ${other} urgent -o name`)), new RegExp(`^${one}\n${other}\n$`))
  assert.equal((await does(line('bead list -l urgent -o name'))).trim().split('\n').length, 2)
  const closed = await run(['bead', 'close', '--query', 'label=together AND status=open', '-o', 'name'])
  assert.deepEqual([closed.code, closed.out.trim().split('\n').length], [0, 2])
  const none = await run(['bead', 'close', '--query', 'label=together AND status=open'])
  assert.deepEqual([none.code, none.out, none.err], [0, '', 'no bead satisfies the query\n'])
  assert.equal((await run(['bead', 'close', String(other), '--query', 'label=x'])).code, 2)
})

test('whoever sits at a terminal is asked before what an expression finds is changed', async () => {
  await does(['bead', 'create', 'Keep me', '-o', 'name', '-l', 'kept'])
  const words = ['bead', 'close', '--query', 'label=kept']
  const env = { SVC_API: running.server.url, SVC_CITY: 'alpha' }
  await using asked = new TestTerminal(words, { env })
  await asked.shows(/bead close: 1 in all, al-\w+\? \[y\/N\]/)
  asked.type('n\r')
  assert.equal(await asked.ends(), 1)
  assert.equal((await does(line('bead list -l kept -o name'))).trim().split('\n').length, 1)
  await using told = new TestTerminal([...words, '--yes'], { env })
  assert.equal(await told.ends(), 0)
  assert.equal(await does(line('bead list -l kept -o name')), '')
})

test('events refuse what does nothing for them', async () => {
  for (const words of ['events -o name', 'events --sort type', 'events --columns type,seq']) {
    const { code, out, err } = await run(line(words))
    assert.deepEqual([code, out], [2, ''], words)
    assert.match(err, /is not valid with events, which are lines of JSON/)
  }
})

test('a field of the contract is a flag: of agents, rigs and patches too, with its type checked here', async () => {
  await does(line('agent create limited --provider shell --max-active-sessions 2 --env MODE=fast --no-attach'))
  const made = JSON.parse(await does(line('agent get limited -o json')))
  assert.equal(at(made, 'max_active_sessions'), 2)
  const wrong = await run(line('agent update limited --max-active-sessions many'))
  assert.deepEqual([wrong.code, /invalid --max-active-sessions "many": expected a number/.test(wrong.err)], [2, true])
  const choice = await run(line('agent update limited --wake-mode sometimes'))
  assert.deepEqual([choice.code, /resume, fresh/.test(choice.err)], [2, true])
  assert.match(await does(line('patch put provider shell --display-name Mine')), /^display_name\tMine$/m)
  await does(line('patch rm provider shell'))
  await does(line('agent rm limited --yes'))
})

test('a city that one stands in is not stopped with its agents unasked', { timeout: 60_000 }, async () => {
  await does(line('session create shell --provider --alias stays --wait'))
  const unasked = await run(line('city stop'))
  assert.deepEqual([unasked.code, unasked.out], [2, ''])
  assert.match(unasked.err, /this needs --yes/)
  const status = JSON.parse(await does(line('status -o json')))
  assert.ok(Number(at(status, 'running')) >= 1, 'it goes on')
  assert.match(await does(line('city stop --yes')), /^status\tstopped$/m)
  await does(line('city start --wait'))
})

test('status is watched as lists are', { timeout: 60_000 }, async () => {
  const stopping = new AbortController()
  const { promise: started, resolve: hasStarted } = Promise.withResolvers<void>()
  const { promise: changed, resolve: hasChanged } = Promise.withResolvers<void>()
  let lines: string[] = []
  let seen = ''
  const watching = run(line('status --city beta --watch -o jsonl'), {
    signal: stopping.signal,
    onOut: (text) => {
      seen += text
      lines = seen.trimEnd().split('\n')
      hasStarted()
      if (lines.length > 1) hasChanged()
    },
  })
  await started
  await does(line('bead create Counted --city beta -o name'))
  await changed
  stopping.abort()
  await watching
  const open = lines.map((text) => Number(at(JSON.parse(text), 'work', 'open')))
  assert.ok((open.at(-1) ?? 0) > (open[0] ?? 0), `${open}`)
})
