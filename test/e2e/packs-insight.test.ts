// Why a pack is there, what has become of every import, and the cache that all cities share.
import assert from 'node:assert/strict'
import { existsSync, mkdtempSync, readdirSync, renameSync, utimesSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { cli } from '../support/cli.ts'
import { type ConfigCity, createCity } from '../support/config-city.ts'
import { at } from '../support/document.ts'
import { type GitServer, startGitServer } from '../support/git-server.ts'
import { type Answer, assertProblem, eventually } from '../support/http.ts'
import { type Running, run } from '../support/running.ts'

let git: GitServer
let running: Running
const stack = new AsyncDisposableStack()

before(async () => {
  git = stack.use(await startGitServer(mkdtempSync(join(tmpdir(), 'svc-packs-git-'))))
  running = stack.use(await run({ toml: `[supervisor]\nallowed_pack_hosts = ["${git.host}"]\n` }))
})
after(() => stack.disposeAsync())

const manifest = (name: string, more = '') => `[pack]\nname = "${name}"\nschema = 2\n${more}`
const city = (name: string): Promise<ConfigCity> => createCity(running.server, name)
const svcctl = (name: string, ...args: string[]) =>
  cli(['pack', ...args], { env: { SVC_API: running.server.url, SVC_CITY: name } })
const itemsOf = ({ body }: Answer, key: string): readonly unknown[] => {
  const items = at(body, key)
  assert.ok(Array.isArray(items), JSON.stringify(body))
  return items
}

async function add(to: ConfigCity, body: object): Promise<void> {
  const { type, payload } = await to.outcome(await to.post('/packs', body))
  assert.equal(type, 'request.result.pack.add', JSON.stringify(payload))
}

test('pack why names every import that leads to a pack, with file, line, what it asks for and what it brings', async () => {
  const alpha = await city('alpha')
  const lint = git.repository('lint', {
    'pack.toml': manifest('linting'),
    'agents/lint/agent.toml': 'provider = "shell"\npre_start = ["echo hello"]\n',
    'overlay/.editorconfig': 'root = true\n',
    'formulas/ship.toml': '',
  })
  lint.commit({}, 'v1.2.0')
  const imports = `\n[imports.checks]\nsource = "${lint.source}"\nversion = "^1.1"\n`
  const tools = git.repository('tools', { 'pack.toml': manifest('tools', imports) })
  tools.commit({}, 'v2.0.0')
  await add(alpha, { source: tools.source })
  await add(alpha, { source: lint.source, version: '>=1.2' })

  const why = await alpha.get('/packs/linting/why')
  assert.equal(why.status, 200, why.text)
  const [pack, ...others] = itemsOf(why, 'packs')
  assert.deepEqual(others, [])
  assert.equal(at(pack, 'label'), lint.source)
  assert.equal(at(pack, 'pin', 'version'), 'v1.2.0')
  assert.equal(at(pack, 'pin', 'commit'), lint.head)
  const lineOf = (table: string) => alpha.read('pack.toml').split('\n').indexOf(table) + 1
  assert.deepEqual(at(pack, 'ways'), [
    {
      scope: 'city',
      steps: [
        { name: 'lint', source: lint.source, version: '>=1.2', file: 'pack.toml', line: lineOf('[imports.lint]') },
      ],
    },
    {
      scope: 'city',
      steps: [
        { name: 'tools', source: tools.source, version: '^2.0', file: 'pack.toml', line: lineOf('[imports.tools]') },
        { name: 'checks', source: lint.source, version: '^1.1', file: `${tools.source}/pack.toml`, line: 5 },
      ],
    },
  ])
  assert.deepEqual(at(pack, 'provides', 'agents'), ['lint'])
  assert.deepEqual(at(pack, 'provides', 'formulas'), ['ship'])
  assert.deepEqual(at(pack, 'provides', 'overlays'), ['overlay/.editorconfig'])
  assert.deepEqual(at(pack, 'runs', 0), { file: 'agents/lint/agent.toml', key: 'pre_start', command: 'echo hello' })
  for (const name of ['lint', 'checks', 'tools.checks', encodeURIComponent(lint.source)])
    assert.equal(at((await alpha.get(`/packs/${name}/why`)).body, 'packs', 0, 'label'), lint.source, name)
  assertProblem(await alpha.get('/packs/nothing/why'), 'pack-not-found', /nothing/)

  const { out } = await svcctl('alpha', 'why', 'linting', '-o', 'table')
  assert.match(out, /tools \^2\.0 \(pack\.toml:\d+\) > checks \^1\.1 \(http.*\/tools\.git\/pack\.toml:5\)/)
  assert.match(out, /brings\n {2}agents: lint\n {2}formulas: ship\n {2}overlays: overlay\/\.editorconfig\n/)
  assert.match(out, /would run\n {2}agents\/lint\/agent\.toml: pre_start: echo hello/)
})

test('packs that import each other in a circle are told of, not followed for ever', async () => {
  const beta = await city('beta')
  beta.write('packs/one/pack.toml', manifest('one', '[imports.two]\nsource = "../two"\n'))
  beta.write('packs/two/pack.toml', manifest('two', '[imports.one]\nsource = "../one"\n'))
  beta.write('pack.toml', `${beta.read('pack.toml')}\n[imports.one]\nsource = "./packs/one"\n`)
  const ways = at((await beta.get('/packs/two/why')).body, 'packs', 0, 'ways')
  assert.equal(Array.isArray(ways) ? ways.length : 0, 1, JSON.stringify(ways))
})

test('pack status tells pins, trust, size, changes on disk, and with --remote what an upgrade would bring', async () => {
  const gamma = await city('gamma')
  const inner = git.repository('inner', { 'pack.toml': manifest('inner') })
  inner.commit({}, 'v1.0.0')
  const outer = git.repository('outer', {
    'pack.toml': manifest('outer', `[imports.inner]\nsource = "${inner.source}"\n`),
  })
  outer.commit({}, 'v1.0.0')
  await add(gamma, { source: outer.source, trust: true })
  outer.commit({ 'README.md': 'more\n' }, 'v1.1.0')
  outer.commit({}, 'v2.0.0')
  const asked = git.seen.length
  const of = (answer: Answer, name: string): unknown => itemsOf(answer, 'packs').find((one) => at(one, 'name') === name)

  const local = await gamma.post('/packs/check')
  assert.equal(git.seen.length, asked, 'no network')
  assert.deepEqual(
    itemsOf(local, 'packs').map((one) => at(one, 'name')),
    ['core', 'outer', 'outer.inner'],
  )
  const before = of(local, 'outer')
  assert.deepEqual(
    [at(before, 'state'), at(before, 'trusted'), at(before, 'pin', 'version'), at(before, 'version')],
    ['installed', true, 'v1.0.0', '^1.0'],
  )
  assert.ok(Number(at(before, 'bytes')) > 0)
  assert.doesNotMatch(local.text, /"upgrade"|"newest"/)

  const remote = await gamma.post('/packs/check', { remote: true })
  assert.equal(at(of(remote, 'outer'), 'upgrade', 'version'), 'v1.1.0')
  assert.equal(at(of(remote, 'outer'), 'newest', 'version'), 'v2.0.0')
  assert.doesNotMatch(JSON.stringify(of(remote, 'outer.inner')), /"upgrade"|"newest"/)

  const [entry] = itemsOf(await running.api.get('/v0/pack-cache'), 'items').filter(
    (one) => at(one, 'repository') === outer.source,
  )
  writeFileSync(
    join(running.server.home, 'cache/repos', String(at(entry, 'id')), 'checkout/pack.toml'),
    manifest('evil'),
  )
  assert.equal(at(of(await gamma.post('/packs/check'), 'outer'), 'state'), 'drifted')
  const shown = await svcctl('gamma', 'status', '--remote', '--columns', 'name,state,upgrade,newest')
  assert.match(shown.out, /^outer\tdrifted\tv1\.1\.0\tv2\.0\.0$/m, shown.err)
  assert.match(shown.err, /see `svcctl pack check`/)
})

test('a repository that cannot be asked is named in the status, and the others are told of all the same', async () => {
  const delta = await city('delta')
  const there = git.repository('there', { 'pack.toml': manifest('there') })
  there.commit({}, 'v1.0.0')
  await add(delta, { source: there.source })
  there.commit({}, 'v1.0.1')
  delta.write('pack.toml', `${delta.read('pack.toml')}\n[imports.lost]\nsource = "${git.url}/lost.git"\n`)
  const { out, err } = await svcctl('delta', 'status', '--remote', '--columns', 'name,upgrade')
  assert.match(out, /^there\tv1\.0\.1$/m)
  assert.match(err, /lost: there is no such repository/)
})

/** What is in the cache of a repository. */
const cachedOf = async (source: string): Promise<readonly unknown[]> =>
  itemsOf(await running.api.get('/v0/pack-cache'), 'items').filter((one) => at(one, 'repository') === source)
const prune = (body: object): Promise<Answer> => running.api.post('/v0/pack-cache/prune', body)

test('prune removes what no city needs, says so first where asked, and keeps what locks and running cities need', async () => {
  const [one, two] = [await city('epsilon'), await city('zeta')]
  const shared = git.repository('shared', { 'pack.toml': manifest('shared') })
  shared.commit({}, 'v1.0.0')
  const first = shared.head
  await add(one, { source: shared.source })
  await add(two, { source: shared.source })
  assert.deepEqual(
    (await cachedOf(shared.source)).map((entry) => at(entry, 'cities')),
    [['epsilon', 'zeta']],
  )
  shared.commit({ 'README.md': 'x'.repeat(10_000) }, 'v1.1.0')
  const upgraded = await one.outcome(await one.post('/packs/upgrade'))
  assert.equal(upgraded.type, 'request.result.pack.upgrade')
  assert.equal((await cachedOf(shared.source)).length, 2)
  // Nobody has used it lately, but the lock of a stopped city still says it.
  const stopped = await running.api.post('/v0/city/zeta/stop', {})
  assert.ok(stopped.status < 300, stopped.text)
  assert.deepEqual(at((await prune({ max_age: '0s' })).body, 'removed'), [])

  two.remove('packs.lock')
  const kept = await prune({})
  assert.deepEqual(at(kept.body, 'removed'), [], 'a week is not over')
  const dry = await prune({ max_age: '0s', dry_run: true })
  assert.deepEqual(
    itemsOf(dry, 'removed').map((entry) => at(entry, 'commit')),
    [first],
  )
  assert.equal((await cachedOf(shared.source)).length, 2)
  const { out, err } = await svcctl('epsilon', 'prune', '--max-age', '0s')
  assert.match(out, new RegExp(`shared\\.git\\t${first.slice(0, 12)}\\t`))
  assert.match(err, /1 checkouts are gone/)
  assert.deepEqual(
    (await cachedOf(shared.source)).map((entry) => at(entry, 'commit')),
    [shared.head],
  )
  assert.equal(at((await one.post('/packs/check')).body, 'ok'), true)
})

test('prune takes what was used longest ago until the cache is small enough, and never what is needed', async () => {
  const eta = await city('eta')
  const big = git.repository('big', { 'pack.toml': manifest('big') })
  const commits: string[] = []
  for (const version of ['1.0.0', '1.1.0', '1.2.0']) {
    commits.push(big.commit({ 'data.bin': version.repeat(2_000) }, `v${version}`))
    if (version === '1.0.0') await add(eta, { source: big.source, version: '^1' })
    else assert.equal((await eta.outcome(await eta.post('/packs/upgrade'))).type, 'request.result.pack.upgrade')
  }
  for (const [index, entry] of (await cachedOf(big.source)).entries()) {
    const age = new Date(
      Date.now() - (commits.indexOf(String(at(entry, 'commit'))) === 0 ? 2 : 1) * 3_600_000 * (index + 1),
    )
    utimesSync(join(running.server.home, 'cache/repos', String(at(entry, 'id')), 'content-hash'), age, age)
  }
  const total = Number(at((await running.api.get('/v0/pack-cache')).body, 'bytes'))
  const one = await prune({ max_bytes: total - 1 })
  assert.equal(itemsOf(one, 'removed').length, 1, one.text)
  const rest = await prune({ max_bytes: 0 })
  assert.ok(itemsOf(rest, 'removed').every((entry) => at(entry, 'commit') !== commits[2]))
  assert.deepEqual(
    (await cachedOf(big.source)).map((entry) => at(entry, 'commit')),
    [commits[2]],
  )
})

test('as long as the lock of a city cannot be read, prune removes nothing and says which city it is', async () => {
  const theta = await city('theta')
  theta.write('packs.lock', 'schema = 9\n')
  assertProblem(await prune({ max_age: '0s' }), 'unreadable-lock', /theta: packs\.lock cannot be read/)
  const listed = await running.api.get('/v0/pack-cache')
  assert.match(JSON.stringify(at(listed.body, 'partial_errors')), /theta/)
  theta.remove('packs.lock')
  renameSync(theta.dir, `${theta.dir}.away`)
  assertProblem(await prune({ max_age: '0s' }), 'unreadable-lock', /theta: its directory is not there/)
  renameSync(`${theta.dir}.away`, theta.dir)
  assert.equal((await prune({ max_age: '0s' })).status, 200)
})

test('what an install has fetched and not written down yet is not pruned', async () => {
  const iota = await city('iota')
  const slow = git.repository('slow', { 'pack.toml': manifest('slow') })
  const quick = git.repository('quick', {
    'pack.toml': manifest('quick', `[imports.slow]\nsource = "${slow.source}"\n`),
  })
  const gate = git.hold(`/slow.git/`)
  const accepted = await iota.post('/packs', { source: quick.source })
  await gate.held
  await eventually('the outer pack is in the cache', async () =>
    (await cachedOf(quick.source)).length === 1 ? true : undefined,
  )
  assert.equal((await prune({ max_age: '0s' })).status, 200)
  assert.equal((await cachedOf(quick.source)).length, 1)
  gate.release()
  assert.equal((await iota.outcome(accepted)).type, 'request.result.pack.add')
  assert.equal(at((await iota.post('/packs/check')).body, 'ok'), true)
  const removed = await iota.api.call('DELETE', '/v0/city/iota/packs/quick')
  assert.equal(removed.status, 200, removed.text)
  await prune({ max_age: '0s' })
  assert.equal((await cachedOf(quick.source)).length, 0)
  assert.equal(
    existsSync(join(running.server.home, 'cache/tmp')) &&
      readdirSync(join(running.server.home, 'cache/tmp')).length > 0,
    false,
  )
})
