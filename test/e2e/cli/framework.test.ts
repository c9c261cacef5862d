// What every command of the command line can do, shown on a few of them: the real program against a real supervisor.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { cli } from '../../support/cli.ts'
import { type ConfigCity, createCity } from '../../support/config-city.ts'
import { asMap, at } from '../../support/document.ts'
import { type Running, run as runSupervisor } from '../../support/running.ts'

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
