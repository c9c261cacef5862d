// Packs from elsewhere start nothing until somebody has trusted their commit.
import assert from 'node:assert/strict'
import { existsSync, mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { cli } from '../support/cli.ts'
import { type ConfigCity, cityAgain, createCity } from '../support/config-city.ts'
import { at } from '../support/document.ts'
import { type GitServer, startGitServer } from '../support/git-server.ts'
import { assertProblem, eventually } from '../support/http.ts'
import { type Running, run } from '../support/running.ts'
import { startSupervisor } from '../support/supervisor.ts'

let git: GitServer
let running: Running
const stack = new AsyncDisposableStack()

before(async () => {
  git = stack.use(await startGitServer(mkdtempSync(join(tmpdir(), 'svc-packs-git-'))))
  running = stack.use(await run({ toml: `[supervisor]\nallowed_pack_hosts = ["${git.host}"]\n` }))
})
after(() => stack.disposeAsync())

/** A pack that leaves a file for everything that it gets to run. */
const grabby = (dir: string) => ({
  'pack.toml': [
    '[pack]\nname = "grabby"\nschema = 2',
    `[providers.own]\ncommand = "sh"\nargs = ["-c", "touch ${dir}/provider; exec cat"]\nprompt_mode = "omit"`,
    `[global]\nsession_live = ["touch ${dir}/live"]`,
    '[[named_session]]\ntemplate = "always"\nmode = "always"',
  ].join('\n'),
  'agents/worker/agent.toml': [
    'provider = "shell"\nmin_active_sessions = 1',
    `start_command = "touch ${dir}/start; exec cat"`,
    `on_boot = "touch ${dir}/boot"`,
    `scale_check = "touch ${dir}/scale; echo 1"`,
    `pre_start = ["touch ${dir}/pre"]`,
  ].join('\n'),
  'agents/always/agent.toml': `provider = "own"\n`,
  'overlay/.claude/settings.json': '{"hooks":{}}\n',
  'orders/grab.toml': `[order]\ntrigger = "cooldown"\ninterval = "1h"\nexec = "touch ${dir}/order"\n`,
  'orders/ask.toml': `[order]\ntrigger = "condition"\ncheck = "touch ${dir}/check"\ninterval = "1h"\nexec = "true"\n`,
  'formulas/grab.toml': [
    'formula = "grab"\n[[steps]]\nid = "one"\ntitle = "One"',
    `check = { exec = "touch ${dir}/step" }`,
  ].join('\n'),
  'skills/look/SKILL.md': '# Look\n',
  'README.md': '# Grabby\n',
})
/** `boot` comes with the next start of the city. */
const SOON = ['provider', 'live', 'start', 'scale', 'pre', 'order', 'check']
const TRACES = [...SOON, 'boot']
const traces = (city: ConfigCity) => TRACES.filter((name) => existsSync(join(city.dir, name)))
const allRuns = (city: ConfigCity) =>
  Promise.all(SOON.map((name) => eventually(`${name} is run`, () => (traces(city).includes(name) ? true : undefined))))
const staged = (city: ConfigCity, path: string) => existsSync(join(city.dir, '.svc/runtime/packs/city', path))
const item = async (city: ConfigCity) => (await city.get('/packs/grabby')).body
const commitOf = async (city: ConfigCity) => String(at(await item(city), 'pin', 'commit'))

async function added(name: string, repository: string, body: object = {}) {
  const city = await createCity(running.server, name)
  await city.put('city.toml', `${city.read('city.toml')}[daemon]\npatrol_interval = "500ms"\n`)
  const pack = git.repository(repository, grabby(city.dir))
  pack.tag('v1.0.0')
  const { type, payload } = await city.outcome(
    await city.post('/packs', { source: pack.source, name: 'grabby', version: '^1', ...body }),
  )
  assert.equal(type, 'request.result.pack.add', JSON.stringify(payload))
  return { city, pack }
}

/** The reconciler has acted on what the files say: an agent of the city itself has come up. */
async function othersRun(city: ConfigCity, name: string): Promise<void> {
  const file = join(city.dir, `${name}.up`)
  const text = `provider = "shell"\nmin_active_sessions = 1\nstart_command = "touch ${file}; exec cat"\n`
  assert.ok((await city.put(`agents/${name}/agent.toml`, text)).status < 300)
  await eventually(`${name} is up`, () => (existsSync(file) ? true : undefined))
}

test('a pack from a single POST starts nothing, and says so, until its commit is trusted', async () => {
  const { city } = await added('alpha', 'grabby-one')
  await othersRun(city, 'own')
  assert.deepEqual(traces(city), [])
  assert.equal(staged(city, 'overlay/.claude/settings.json'), false)
  assert.equal(staged(city, 'skills/grabby.look/SKILL.md'), false)

  const pack = await item(city)
  assert.equal(at(pack, 'trusted'), false)
  const runs = JSON.stringify(at(pack, 'runs'))
  for (const name of [...TRACES, 'step']) assert.ok(runs.includes(`touch ${city.dir}/${name}`), name)
  const formula = (await city.get('/formulas/grab')).body
  assert.deepEqual([at(formula, 'valid'), at(formula, 'untrusted_pack')], [false, 'grabby'])
  assert.match(String(at(formula, 'issues', 0, 'hint')), /svcctl pack trust grabby/)
  assertProblem(await city.post('/formulas/grab/preview', {}), 'formula-invalid')
  assert.match((await city.get('/orders/grab')).text, /nobody has trusted the pack `grabby` yet/)
  assert.deepEqual(at((await city.get('/config')).body, 'untrusted_packs'), ['grabby'])
  assert.match((await city.get('/config')).text, /the pack `grabby` is not trusted yet: nothing of it is started/)
  assert.deepEqual(at((await city.get('/status')).body, 'config', 'untrusted_packs'), ['grabby'])
  const agent = (await city.get('/agents/grabby.worker')).body
  assert.deepEqual([at(agent, 'available'), at(agent, 'unavailable_reason')], [false, 'untrusted_pack'])
  const create = await city.post('/sessions', { kind: 'agent', name: 'grabby.worker' })
  assertProblem(create, 'untrusted-pack', /look at what it runs/)
  assertProblem(await city.post('/sessions', { kind: 'provider', name: 'own' }), 'untrusted-pack')

  assertProblem(await city.post('/packs/grabby/trust', { commit: '0'.repeat(40) }), 'pack-changed')
  assert.deepEqual(traces(city), [])
  const trusted = await city.post('/packs/grabby/trust', { commit: await commitOf(city) })
  assert.equal(at(trusted.body, 'trusted'), true, trusted.text)
  await allRuns(city)
  assert.equal(at((await city.get('/formulas/grab')).body, 'valid'), true)
  await eventually('its files are staged', () => (staged(city, 'skills/grabby.look/SKILL.md') ? true : undefined))
  assert.doesNotMatch((await city.get('/config')).text, /untrusted_packs/)
  const events = await city.events('pack.trusted')
  assert.deepEqual(
    events.map(({ payload }) => [payload.name, payload.commit]),
    [['grabby', await commitOf(city)]],
  )
  await city.post('/packs/grabby/trust', { commit: await commitOf(city) })
  assert.equal((await city.events('pack.trusted')).length, 1, 'once is enough')
})

/** What the city itself makes of an untrusted pack: formulas that take parts of it, orders and agents that name it. */
const BORROWING = {
  'formulas/heir.toml': 'formula = "heir"\nextends = ["grab"]\n',
  'formulas/around.toml': 'formula = "around"\n[[steps]]\nid = "in"\nexpand = "grab"\n',
  'orders/own.toml': '[order]\nformula = "grab"\ntrigger = "manual"\n',
  'agents/keen/agent.toml': 'provider = "shell"\nsuspended = true\ndefault_sling_formula = "grab"\n',
}

test('no way leads to the commands of formulas and orders of a pack that nobody has trusted', async () => {
  const { city } = await added('ways', 'grabby-ways')
  for (const [file, text] of Object.entries(BORROWING)) city.write(file, text)
  await city.post('/config/reload')
  const isKnown = async (path: string) => ((await city.get(path)).status === 200 ? true : undefined)
  for (const path of ['/formulas/heir', '/formulas/around', '/orders/own', '/agents/keen'])
    await eventually(`${path} is known`, () => isKnown(path))

  const ways: readonly (readonly [string, object])[] = [
    ['/molecules', { formula: 'grab' }],
    ['/molecules', { formula: 'grab', dry_run: true }],
    ['/molecules', { formula: 'heir' }],
    ['/molecules', { formula: 'around' }],
    ['/sling', { target: 'keen', formula: 'grab' }],
    ['/sling', { target: 'keen', text: 'Do it' }],
    ['/sling', { target: 'keen', text: 'Do it', formula: 'around' }],
    ['/formulas/grab/preview', {}],
    ['/formulas/around/preview', {}],
    ['/orders/grab/run', {}],
    ['/orders/grab/run', { force: true }],
    ['/orders/ask/run', {}],
    ['/orders/own/run', {}],
  ]
  for (const [path, body] of ways) {
    const answer = await city.post(path, body)
    assert.ok(answer.status >= 400 && answer.status < 500, `${path} ${JSON.stringify(body)}: ${answer.text}`)
  }
  // Whoever enables or asks about one is not refused, and nothing comes of it.
  for (const path of ['/orders/grab/enable', '/orders/ask/enable', '/orders/ask/check', '/orders/grab/check'])
    assert.ok((await city.post(path)).status < 500, path)
  await othersRun(city, 'late')
  assert.deepEqual(traces(city), [])
  assert.equal(existsSync(join(city.dir, 'step')), false)
  assert.equal(at((await city.get('/molecules')).body, 'total'), 0)
  assert.equal(at((await city.get('/orders/history?status=running&status=succeeded')).body, 'total'), 0)

  await city.post('/packs/grabby/trust', { commit: await commitOf(city) })
  await eventually('what takes parts of it can be started', async () =>
    (await city.post('/molecules', { formula: 'around', dry_run: true })).status === 200 ? true : undefined,
  )
})

test('a pack that is added as trusted starts at once', async () => {
  const { city } = await added('bravo', 'grabby-two', { trust: true })
  await allRuns(city)
  assert.equal((await city.events('pack.trusted')).length, 1)
})

test('an upgrade that runs the same stays trusted; one that runs something else is asked about again', async () => {
  const { city, pack } = await added('charlie', 'grabby-three', { trust: true })
  const upgrade = async () => {
    const { type, payload } = await city.outcome(await city.post('/packs/upgrade'))
    assert.equal(type, 'request.result.pack.upgrade', JSON.stringify(payload))
  }
  pack.commit({ 'README.md': '# Grabby, explained\n', 'docs/more.md': '# More\n' }, 'v1.1.0')
  await upgrade()
  assert.equal(at(await item(city), 'pin', 'version'), 'v1.1.0')
  assert.equal(at(await item(city), 'trusted'), true)
  pack.commit({ 'scripts/setup.sh': 'touch more\n' }, 'v1.2.0')
  await upgrade()
  assert.equal(at(await item(city), 'trusted'), false)
  assert.deepEqual(at((await city.get('/status')).body, 'config', 'untrusted_packs'), ['grabby'])
  pack.commit({ 'pack.toml': `${grabby(city.dir)['pack.toml']}\n# see docs/more.md\n` }, 'v1.3.0')
  await upgrade()
  await city.post('/packs/grabby/trust', { commit: await commitOf(city) })
  pack.commit({ 'docs/more.md': 'touch more\n' }, 'v1.4.0')
  await upgrade()
  assert.equal(at(await item(city), 'trusted'), false, 'a text that something names may be a script')
})

test('what a trusted pack imports is trusted with it; what an untrusted one changes in others is off', async () => {
  const city = await createCity(running.server, 'delta')
  const inner = git.repository('inner', { 'pack.toml': '[pack]\nname = "inner"\nschema = 2\n' })
  const text = [
    '[pack]\nname = "outer"\nschema = 2',
    `[imports.inner]\nsource = "${inner.source}"\nversion = "sha:${inner.head}"`,
    '[imports.core]\nsource = "builtin:core"',
    `[[patches.agent]]\nname = "core.worker"\nmin_active_sessions = 1\nstart_command = "touch ${city.dir}/start; cat"`,
  ]
  const outer = git.repository('outer', { 'pack.toml': text.join('\n') })
  await city.outcome(await city.post('/packs', { source: outer.source, name: 'outer' }))
  await othersRun(city, 'own')
  assert.deepEqual(traces(city), [])
  const agent = (await city.get('/agents/outer.core.worker')).body
  assert.equal(at(agent, 'unavailable_reason'), 'untrusted_pack')
  await city.post('/packs/outer/trust', { commit: outer.head })
  await eventually('the patched agent runs', () => (traces(city).includes('start') ? true : undefined))
  assert.doesNotMatch((await city.get('/config')).text, /untrusted_packs/)
})

test('trust outlives a restart, and is in no file of the city', async () => {
  await using other = await run({ toml: `[supervisor]\nallowed_pack_hosts = ["${git.host}"]\n` })
  const pack = git.repository('lasting', { 'pack.toml': '[pack]\nname = "lasting"\nschema = 2\n' })
  const city = await createCity(other.server, 'echo')
  await city.outcome(await city.post('/packs', { source: pack.source, trust: true }))
  const trusted = async (from: ConfigCity) => at((await from.get('/packs/lasting')).body, 'trusted')
  assert.equal(await trusted(city), true)
  await other.server.kill('SIGTERM')
  await using again = await startSupervisor({ home: other.server.home })
  const after = await cityAgain(again, 'echo')
  assert.equal(await trusted(after), true)
  for (const file of ['pack.toml', 'city.toml', 'packs.lock']) assert.doesNotMatch(after.read(file), /trust/)
})

test('svcctl pack add says that it is untrusted where nobody can be asked; pack trust names the commit', async () => {
  const city = await createCity(running.server, 'foxtrot')
  const pack = git.repository('said', grabby(city.dir))
  const svcctl = (...args: string[]) => cli([...args, '--city', 'foxtrot', '--api', running.server.url])
  const add = await svcctl('pack', 'add', pack.source, '--name', 'grabby', '--wait')
  assert.equal(add.code, 0, add.err)
  assert.match(add.err, /grabby is not trusted: nothing of it is started; see `svcctl pack get grabby/)
  const refused = await svcctl('pack', 'trust', 'grabby')
  assert.notEqual(refused.code, 0)
  assert.match(refused.err, /agents\/worker\/agent\.toml: start_command = touch /)
  const trusted = await svcctl('pack', 'trust', 'grabby', '--commit', pack.head)
  assert.equal(trusted.code, 0, trusted.err)
  assert.equal(at(await item(city), 'trusted'), true)
})
