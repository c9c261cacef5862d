// Who can read what the supervisor writes: its own state nobody else, what people share whoever their umask lets.
import assert from 'node:assert/strict'
import { chmodSync, readdirSync, statSync } from 'node:fs'
import { join, relative } from 'node:path'
import { test } from 'node:test'
import { cityIs, run, runAgain } from '../../support/running.ts'
import { newSessionCity } from '../../support/session-api.ts'
import { written } from '../../support/written.ts'

const modeOf = (path: string): string => (statSync(path).mode & 0o777).toString(8)

/** Everything below a directory that somebody else could open, were the directories above it open; links left out. */
function open(root: string): string[] {
  return (
    readdirSync(root, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile() || entry.isDirectory())
      .map((entry) => join(entry.parentPath, entry.name))
      // It may be gone by now: some are made beside their place and moved there.
      .filter((path) => ((statSync(path, { throwIfNoEntry: false })?.mode ?? 0) & 0o077) !== 0)
      .map((path) => relative(root, path))
      .sort()
  )
}

/** Supervisors that are started meanwhile have this umask. */
function startedWith(umask: number): Disposable {
  const before = process.umask(umask)
  return { [Symbol.dispose]: () => process.umask(before) }
}

test('stores, logs and runs are private; the files of people and agents have the umask of who started it', {
  timeout: 90_000,
}, async () => {
  using _ = startedWith(0o002)
  await using running = await run()
  const city = await newSessionCity(running, 'alpha')
  await city.done('POST', '/agents', { name: 'scout', provider: 'bash' })
  const id = await city.start()
  await city.message(id, 'touch by-agent; umask > umask-of-agent')
  assert.equal(await written(join(city.dir, 'umask-of-agent')), '0002\n')
  assert.equal(modeOf(join(city.dir, 'by-agent')), '664')
  for (const path of ['city.toml', 'pack.toml', '.gitignore', 'agents/scout/agent.toml'])
    assert.equal(modeOf(join(city.dir, path)), '664', path)
  assert.equal(modeOf(join(city.dir, 'agents/scout')), '775')
  assert.equal(modeOf(join(city.dir, '.svc')), '700')
  for (const name of ['city.db', 'city.db-wal']) assert.equal(modeOf(join(city.dir, '.svc', name)), '600', name)
  assert.deepEqual(open(join(city.dir, '.svc/runtime/sessions')), [])
  assert.deepEqual(open(running.server.home), [])
})

test('state that an earlier version left open to everybody is closed at the next start', async () => {
  await using running = await run()
  const { home } = running.server
  const city = await newSessionCity(running, 'alpha')
  await running.server.kill('SIGTERM')
  const files = ['supervisor.db', 'supervisor.log'].map((name) => join(home, name))
  files.push(join(city.dir, '.svc', 'city.db'))
  for (const file of files) chmodSync(file, 0o644)
  chmodSync(join(city.dir, '.svc'), 0o755)
  await using again = await runAgain(home)
  await cityIs(again.api, 'alpha', 'running')
  for (const file of files) assert.equal(modeOf(file), '600', file)
  assert.equal(modeOf(join(city.dir, '.svc')), '700')
})
