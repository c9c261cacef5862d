// A city that cannot start: the commands that mend its packs and files work on it, and it starts afterwards.
import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { cli } from '../support/cli.ts'
import { ConfigCity } from '../support/config-city.ts'
import { at } from '../support/document.ts'
import { type GitServer, startGitServer } from '../support/git-server.ts'
import { assertProblem, eventually } from '../support/http.ts'
import { outcome, type Running, run } from '../support/running.ts'

let git: GitServer
let running: Running
const stack = new AsyncDisposableStack()

before(async () => {
  git = stack.use(await startGitServer(mkdtempSync(join(tmpdir(), 'svc-packs-git-'))))
  running = stack.use(await run({ toml: `[supervisor]\nallowed_pack_hosts = ["${git.host}"]\n` }))
})
after(() => stack.disposeAsync())

const PACK = { 'pack.toml': '[pack]\nname = "tools"\nschema = 2\n' }
const CITY = '[workspace]\nprovider = "shell"\n\n[providers.shell]\nbase = "builtin:shell"\n'
const importOf = (name: string, source: string) => `\n[imports.${name}]\nsource = "${source}"\n`

/** A directory that somebody has cloned, adopted as a city. */
async function adopt(name: string, files: Readonly<Record<string, string>>) {
  const dir = join(running.work, name)
  mkdirSync(dir, { recursive: true })
  for (const [file, text] of Object.entries(files)) writeFileSync(join(dir, file), text)
  const { body } = await running.api.post('/v0/cities', { path: dir })
  const { status } = await outcome(running.api, String(at(body, 'request_id')))
  return { city: new ConfigCity(running.api, name, dir), status }
}

const packToml = (imports: string) => `[pack]\nname = "own"\nschema = 2\n${imports}`

async function stateOf({ name }: ConfigCity): Promise<unknown> {
  const items = at((await running.api.get('/v0/cities')).body, 'items')
  return Array.isArray(items)
    ? at(
        items.find((item) => at(item, 'name') === name),
        'status',
      )
    : undefined
}
const runs = (city: ConfigCity) =>
  eventually(`${city.name} runs`, async () => ((await stateOf(city)) === 'running' ? true : undefined))
const svcctl = (city: ConfigCity, ...args: string[]) =>
  cli([...args, '--city', city.name], { env: { SVC_HOME: running.server.home } })

test('adopting a city pins the imports that have no lock, and starts it', async () => {
  const pack = git.repository('unpinned', PACK)
  pack.tag('v1.0.0')
  const { city, status } = await adopt('unpinned', {
    'city.toml': CITY,
    'pack.toml': packToml(importOf('tools', pack.source)),
  })
  assert.equal(status, 'succeeded')
  assert.match(city.read('packs.lock'), new RegExp(pack.head))
})

test('pack install mends a city whose import could not be fetched when it was adopted', async () => {
  const source = `${git.url}/later.git`
  const { city, status } = await adopt('late', {
    'city.toml': CITY,
    'pack.toml': packToml(importOf('tools', source)),
  })
  assert.equal(status, 'failed')
  const listed = await svcctl(city, 'pack', 'list')
  assert.equal(listed.code, 0, listed.err)
  assert.match(listed.out, /later\.git/)
  const checked = await svcctl(city, 'config', 'validate')
  assert.match(`${checked.out}${checked.err}`, /pack\.toml:\d+:\d+\b/)
  assert.equal((await city.get('/config')).status, 200)
  assert.equal((await city.post('/packs/check')).status, 200)
  // What needs a running city is its 404 as before.
  assertProblem(await city.get('/beads'), 'city-not-found')

  git.repository('later', PACK).tag('v1.0.0')
  const installed = await svcctl(city, 'pack', 'install')
  assert.equal(installed.code, 0, installed.err)
  await runs(city)
})

test('pack remove takes out an import that keeps a city from starting', async () => {
  const { city, status } = await adopt('broken', {
    'city.toml': CITY,
    'pack.toml': packToml(importOf('gone', `${git.url}/never-there.git`)),
  })
  assert.equal(status, 'failed')
  const removed = await svcctl(city, 'pack', 'remove', 'gone', '--yes')
  assert.equal(removed.code, 0, removed.err)
  assert.doesNotMatch(city.read('pack.toml'), /never-there/)
  await runs(city)
})

test('an edit mends files that cannot be read at all, and a stopped city can be edited', async () => {
  const { city, status } = await adopt('unreadable', { 'city.toml': `${CITY}[[agent]\n`, 'pack.toml': packToml('') })
  assert.equal(status, 'failed')
  const { revision } = await city.file('city.toml')
  assert.equal((await city.put('city.toml', CITY, { ifMatch: `"${revision}"` })).status, 200)
  await runs(city)
  assert.equal((await city.post('/stop')).status, 200)
  const edited = await city.put('city.toml', `${CITY}# edited while it was stopped\n`)
  assert.equal(edited.status, 200, edited.text)
  assert.equal(await stateOf(city), 'stopped')
  assertProblem(await city.get('/status'), 'city-not-found')
})

test('stopping and unregistering a city ends the installation that mends it', async () => {
  const source = `${git.url}/held.git`
  const { city } = await adopt('held', { 'city.toml': CITY, 'pack.toml': packToml(importOf('tools', source)) })
  git.repository('held', PACK).tag('v1.0.0')
  const gate = git.hold('/held.git')
  const accepted = await city.post('/packs/install')
  assert.equal(accepted.status, 202, accepted.text)
  await gate.held
  assert.equal((await city.post('/stop')).status, 200)
  const ended = await outcome(running.api, String(at(accepted.body, 'request_id')))
  assert.equal(ended.error_code, 'city_stopped', JSON.stringify(ended))
  gate.release()
  const left = await running.api.post(`/v0/city/${city.name}/unregister`)
  assert.equal((await outcome(running.api, String(at(left.body, 'request_id')))).status, 'succeeded')
})

test('a reload counts the work of a rig that somebody took out of city.toml', async () => {
  const { city } = await adopt('rigless', { 'city.toml': CITY, 'pack.toml': packToml('') })
  const dir = join(running.work, 'rigless-alpha')
  mkdirSync(dir)
  const formula = 'formula = "f"\n[[steps]]\nid = "a"\ntitle = "A"\n'
  city.write('formulas/f.toml', formula)
  const without = city.read('city.toml')
  assert.equal((await svcctl(city, 'rig', 'create', 'alpha', dir)).code, 0)
  assert.equal((await svcctl(city, 'molecule', 'start', 'f', '--rig', 'alpha')).code, 0)
  city.write('city.toml', without)
  const reloaded = await svcctl(city, 'config', 'reload', '--wait')
  assert.equal(reloaded.code, 0, reloaded.err)
  // The watch may have seen the file before the reload that was asked for.
  const told = JSON.stringify(await city.events('config.reloaded'))
  assert.match(told, /beads?, 1 live molecule are of the rig alpha, which is gone/)
})
