// A home that 0.1.0 left (test/fixtures/homes/make-0.1.0.sh wrote it) is started by today's code.
import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { copyFileSync, existsSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { test } from 'node:test'
import BetterSqlite3 from 'better-sqlite3'
import { endProcessesOf } from '../support/city-processes.ts'
import { eventually } from '../support/eventually.ts'
import { startSupervisor } from '../support/supervisor.ts'
import { temporaryDirectory } from '../support/temporary.ts'

const HOME = resolve(import.meta.dirname, '..', 'fixtures', 'homes', '0.1.0.tar.gz')
const DATABASE = resolve(import.meta.dirname, '..', '..', 'src', 'kernel', 'database.ts')

interface Frozen extends Disposable {
  readonly home: string
  readonly city: string
  readonly store: string
}

/** The home in a directory of its own: its city has moved there. */
function frozenHome(): Frozen {
  const directory = temporaryDirectory()
  const { status, stderr } = spawnSync('tar', ['-C', directory.path, '-xzf', HOME])
  assert.equal(status, 0, String(stderr))
  const [home, city] = [join(directory.path, 'home'), join(directory.path, 'city')]
  const registry = new BetterSqlite3(join(home, 'supervisor.db'))
  registry.prepare('UPDATE cities SET path = ?').run(city)
  registry.close()
  return {
    home,
    city,
    store: join(city, '.svc', 'city.db'),
    [Symbol.dispose]() {
      endProcessesOf(directory.path)
      directory[Symbol.dispose]()
    },
  }
}

/** Kills a process in the middle of the upgrade of this store. */
async function killUpgrade(store: string): Promise<void> {
  const names = new BetterSqlite3(store, { readonly: true })
  const done = names.prepare('SELECT name FROM migrations').pluck().all()
  names.close()
  const steps = [
    ...done.map((name) => ({ name, sql: '' })),
    { name: 'test/1', sql: 'CREATE TABLE half (a)' },
    {
      name: 'test/2',
      sql: `CREATE TABLE endless AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)
        SELECT i FROM n WHERE i < 0`,
    },
  ]
  const script = `import { Database } from ${JSON.stringify(DATABASE)}
    Database.open({ path: ${JSON.stringify(store)}, migrations: ${JSON.stringify(steps)}, owner: 'a test' })`
  const child = spawn(process.execPath, ['--input-type=module', '-e', script], { stdio: 'ignore' })
  const ended = new Promise((done) => child.once('exit', done))
  await eventually('the upgrade is under way', () => (existsSync(`${store}.upgrading-journal`) ? true : undefined))
  child.kill('SIGKILL')
  await ended
}

/** What a list of the API has, by the member that it is in. */
async function listOf(url: string, path: string, member = 'items'): Promise<readonly Record<string, unknown>[]> {
  const response = await fetch(`${url}/v0/city/frozen/${path}`)
  const body: unknown = await response.json()
  assert.equal(response.status, 200, JSON.stringify(body))
  assert.ok(typeof body === 'object' && body !== null)
  const list: unknown = Object.entries(body).find(([name]) => name === member)?.[1]
  assert.ok(Array.isArray(list), `${path}: ${JSON.stringify(body).slice(0, 300)}`)
  return list
}

async function assertComplete(url: string): Promise<void> {
  const titles = (await listOf(url, 'beads?limit=100')).map(({ title }) => title)
  for (const title of ['Design the page', 'Build the page', 'Write the parser', 'Test the parser'])
    assert.ok(titles.includes(title), `${title} of ${titles.join(', ')}`)
  const beads = await listOf(url, 'beads?limit=100')
  const parser = beads.find(({ title }) => title === 'Write the parser')
  assert.deepEqual([parser?.['status'], parser?.['assignee']], ['in_progress', 'ann'])
  assert.equal(beads.find(({ title }) => title === 'Test the parser')?.['is_blocked'], true)
  assert.deepEqual(
    (await listOf(url, 'mail?agent=coder')).map(({ subject }) => subject),
    ['Hello'],
  )
  const sessions = await listOf(url, 'sessions?state=closed')
  assert.ok(sessions.some(({ template, state }) => template === 'coder' && state === 'closed'))
  assert.deepEqual(
    (await listOf(url, 'molecules')).map(({ formula }) => formula),
    ['build'],
  )
  assert.deepEqual(
    (await listOf(url, 'orders')).map(({ name }) => name),
    ['nightly'],
  )
  assert.equal((await listOf(url, 'orders/history?name=nightly')).length, 1)
  assert.deepEqual(
    (await listOf(url, 'adapters')).map(({ name }) => name),
    ['chat/a'],
  )
  const [transcript] = await listOf(url, 'transcripts')
  const entries = await listOf(url, `transcripts/${String(transcript?.['transcript_id'])}/entries`)
  assert.ok(entries.some(({ text }) => text === 'hello from the room'))
  assert.match(JSON.stringify(await listOf(url, 'services')), /"web"/)
  const agents = (await listOf(url, 'agents')).map(({ name }) => name)
  assert.ok(
    agents.some((name) => String(name).endsWith('scout')),
    `the agent of a pack is among ${agents.join(', ')}`,
  )
  assert.equal((await listOf(url, 'events?type=fixture.made')).length, 1)
}

test('upgrade: a home of 0.1.0 starts after a kill in the middle, and everything in it is there', async () => {
  using frozen = frozenHome()
  await killUpgrade(frozen.store)
  await using server = await startSupervisor({ home: frozen.home })
  await eventually('the city runs', async () => {
    const response = await fetch(`${server.url}/v0/city/frozen`)
    const text = await response.text()
    assert.ok(!text.includes('init_failed'), text)
    return response.ok && text.includes('"status":"running"') ? true : undefined
  })
  await assertComplete(server.url)
  const requests = await fetch(`${server.url}/v0/requests`)
  assert.equal(requests.status, 200)
  const created = await fetch(`${server.url}/v0/city/frozen/beads`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-svc-request': '1' },
    body: JSON.stringify({ title: 'After the upgrade' }),
  })
  assert.equal(created.status, 201)
  assert.ok(existsSync(`${frozen.store}.before-upgrade`))
  assert.ok(!existsSync(`${frozen.store}.upgrading`))
  assert.equal(await server.kill('SIGTERM'), 0)
})

test('upgrade: a city from before 0.1.0 is named at the start with the way out, and its store is untouched', async () => {
  using frozen = frozenHome()
  const older = resolve(import.meta.dirname, '..', 'fixtures', 'stores', 'city-schema-1', '.svc', 'city.db')
  copyFileSync(older, frozen.store)
  await using server = await startSupervisor({ home: frozen.home })
  const said = await eventually('the city is named', () =>
    server.stderr().includes('hint:') ? server.stderr() : undefined,
  )
  assert.match(said, /1 city could not start:\n {2}frozen: .*before version 0\.1\.0.*svcctl bead export/)
  assert.match(said, /svcctl city start frozen/)
  assert.deepEqual(readFileSync(frozen.store), readFileSync(older))
})
