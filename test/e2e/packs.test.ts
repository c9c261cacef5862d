// Packs over HTTP, with real git repositories made here and served by git itself.
import assert from 'node:assert/strict'
import { appendFileSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { after, before, test } from 'node:test'
import { resolveSettings } from '../../src/supervisor/settings.ts'
import { cli } from '../support/cli.ts'
import { ConfigCity, cityAgain, createCity } from '../support/config-city.ts'
import { at, isMap } from '../support/document.ts'
import { type GitRepository, type GitServer, startGitServer } from '../support/git-server.ts'
import { type Answer, assertProblem, eventually } from '../support/http.ts'
import { newCity, type Running, run, runAgain, runHere } from '../support/running.ts'

let git: GitServer
let running: Running
const stack = new AsyncDisposableStack()

before(async () => {
  const scratch = `/tmp/svc-packs-git-${process.pid}`
  git = stack.use(await startGitServer(scratch))
  running = stack.use(await run({ toml: `[supervisor]\nallowed_pack_hosts = ["${git.host}"]\n` }))
})
after(() => stack.disposeAsync())

const manifest = (name: string, more = '') => `[pack]\nname = "${name}"\nschema = 2\n${more}`
const AGENT = 'provider = "shell"\n'
const pack = (name: string, more = '') => ({
  'pack.toml': manifest(name, more),
  [`agents/${name}-agent/agent.toml`]: AGENT,
  'formulas/one.toml': `# ${name}\n`,
  'skills/look/SKILL.md': `# ${name}\n`,
})

const city = (name: string): Promise<ConfigCity> => createCity(running.server, name)
const packItem = async (from: ConfigCity, name: string): Promise<Answer> => from.get(`/packs/${name}`)
const stateOf = async (from: ConfigCity, name: string): Promise<unknown> =>
  at((await packItem(from, name)).body, 'state')
const codes = async (from: ConfigCity): Promise<unknown[]> => {
  const issues = at((await from.post('/packs/check')).body, 'issues')
  return Array.isArray(issues) ? issues.map((issue) => at(issue, 'code')) : []
}
async function add(to: ConfigCity, body: object) {
  const outcome = await to.outcome(await to.post('/packs', body))
  assert.equal(outcome.type, 'request.result.pack.add', JSON.stringify(outcome.payload))
  return outcome.payload
}
async function refused(to: ConfigCity, accepted: Answer): Promise<string> {
  const outcome = await to.outcome(accepted)
  assert.equal(outcome.type, 'request.failed', JSON.stringify(outcome.payload))
  return String(outcome.payload.error_code)
}
const tagged = (name: string, ...tags: string[]): GitRepository => {
  const repository = git.repository(name, pack(name))
  for (const tag of tags) repository.commit({ [`formulas/${tag}.toml`]: '' }, tag)
  return repository
}
/** Every file below a directory, as one text. */
const everything = (dir: string): string =>
  readdirSync(dir, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => readFileSync(join(entry.parentPath, entry.name), 'latin1'))
    .join('\n')

test('a pack from git is added, pinned, listed, and removed again byte for byte', async () => {
  const alpha = await city('alpha')
  const { source } = tagged('tools', 'v1.0.0', 'v1.4.2', 'v1.5.0-rc.1', 'nightly')
  const before = alpha.read('pack.toml')
  const payload = await add(alpha, { source })
  assert.equal(payload.name, 'tools')
  assert.equal(payload.version, 'v1.4.2')
  assert.equal(payload.revision, (await alpha.config()).revision)
  assert.match(
    alpha.read('pack.toml'),
    /\[imports\.tools\]\nsource = "http:\/\/127\.0\.0\.1:\d+\/tools\.git"\nversion = "\^1\.4"/,
  )

  const { body, headers } = await alpha.get('/packs')
  assert.equal(at(body, 'total'), 2)
  assert.equal(at(body, 'items', 0, 'name'), 'core')
  assert.equal(at(body, 'items', 0, 'kind'), 'builtin')
  assert.equal(at(body, 'items', 1, 'state'), 'installed')
  assert.equal(at(body, 'items', 1, 'pin', 'version'), 'v1.4.2')
  assert.deepEqual(at(body, 'items', 1, 'provides', 'agents'), ['tools-agent'])
  assert.deepEqual(at(body, 'items', 1, 'provides', 'skills'), ['look'])
  assert.equal(headers.etag, `"${(await alpha.config()).revision}"`)
  assert.ok((await alpha.config()).agents.some(({ identity }) => identity === 'tools.tools-agent'))
  assert.deepEqual(await codes(alpha), [])

  const [added] = await alpha.events('pack.added')
  assert.deepEqual(added?.payload, { name: 'tools', scope: 'city', source, version: 'v1.4.2', commit: payload.commit })
  assert.equal((await alpha.events('config.reloaded')).length, 1)

  const item = await packItem(alpha, 'tools')
  assertProblem(
    await alpha.api.call('DELETE', '/v0/city/alpha/packs/tools', { headers: { 'if-match': '"other"' } }),
    'precondition-failed',
  )
  const removed = await alpha.api.call('DELETE', '/v0/city/alpha/packs/tools', {
    headers: { 'if-match': String(item.headers.etag) },
  })
  assert.equal(removed.status, 200, removed.text)
  assert.equal(at(removed.body, 'revision'), (await alpha.config()).revision)
  assert.equal(alpha.read('pack.toml'), before)
  assert.ok(!existsSync(join(alpha.dir, 'packs.lock')), 'a lock without entries is no file')
  assert.equal((await alpha.events('pack.removed')).length, 1)
  assertProblem(await packItem(alpha, 'tools'), 'pack-not-found')
})

test('the lock is read back as it was written, and a second city uses the same checkout', async () => {
  const [one, two] = [await city('lock-one'), await city('lock-two')]
  const { source } = tagged('shared', 'v2.0.0')
  await add(one, { source })
  const requests = git.seen.length
  const text = one.read('packs.lock')
  assert.match(
    text,
    /schema = 1\n\n\[packs\."http:.*shared\.git"\]\nversion = "v2\.0\.0"\ncommit = "[0-9a-f]{40}"\ncontent_hash = "sha256:[0-9a-f]{64}"\nsubpath = ""\nfetched = "20/,
  )
  two.write('packs.lock', text)
  two.write('pack.toml', one.read('pack.toml'))
  await eventually('the second city has it', async () =>
    (await stateOf(two, 'shared')) === 'installed' ? true : undefined,
  )
  await two.post('/config/reload')
  await eventually('it is loaded', async () =>
    (await two.config()).agents.some(({ identity }) => identity === 'shared.shared-agent') ? true : undefined,
  )
  assert.equal(git.seen.length, requests, 'nothing was asked over the network')
  assert.equal(two.read('packs.lock'), text)
})

test('what a pack imports comes along, from any depth, and the lock has it too', async () => {
  const beta = await city('beta')
  const { source: inner } = tagged('inner', 'v0.3.1', 'v0.4.0')
  const outer = git.repository('outer', {
    'packs/outer/pack.toml': manifest(
      'outer',
      `[imports.inner]\nsource = "${inner}"\nversion = "^0.3"\n[imports.near]\nsource = "../near"\n`,
    ),
    'packs/near/pack.toml': manifest('near'),
  })
  outer.tag('v1.0.0')
  await add(beta, { source: `${outer.source}//packs/outer`, version: '^1' })
  assert.match(beta.read('packs.lock'), /inner\.git"\]\nversion = "v0\.3\.1"/)
  assert.match(beta.read('packs.lock'), /subpath = "packs\/outer"/)
  assert.ok((await beta.config()).agents.some(({ identity }) => identity === 'outer.inner.inner-agent'))
})

test('an import that somebody wrote by hand is installed, which mends the refused configuration', async () => {
  const gamma = await city('gamma')
  const { source } = tagged('by-hand', 'v1.0.0')
  gamma.write('pack.toml', `${gamma.read('pack.toml')}\n[imports.by-hand]\nsource = "${source}"\nversion = "^1"\n`)
  const [rejected] = await eventually('the file is refused', async () => {
    const found = await gamma.events('config.rejected')
    return found.length > 0 ? found : undefined
  })
  assert.match(JSON.stringify(rejected?.payload), /svcctl pack install/)
  assert.equal(await stateOf(gamma, 'by-hand'), 'missing')
  assert.deepEqual(await codes(gamma), ['missing-lockfile'])
  const outcome = await gamma.outcome(await gamma.post('/packs/install'))
  assert.equal(outcome.type, 'request.result.pack.install', JSON.stringify(outcome.payload))
  assert.equal(outcome.subject, 'gamma', 'who filters by subject finds it')
  assert.deepEqual(at(outcome.payload, 'installed', 0, 'source'), source)
  assert.equal((await gamma.config()).last_error, undefined)
  assert.equal(await stateOf(gamma, 'by-hand'), 'installed')

  const again = await gamma.outcome(await gamma.post('/packs/install'))
  assert.deepEqual(again.payload.installed, [], 'what is there is not installed again')
})

test('a cached pack that was changed on disk is drifted, refused at load, and fetched again', async () => {
  const delta = await city('delta')
  const { source } = tagged('drifting', 'v1.0.0')
  await add(delta, { source })
  const changed = readdirSync(join(running.server.home, 'cache', 'repos'), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.name === 'agent.toml' && entry.parentPath.includes('drifting-agent'))
    .map((entry) => join(entry.parentPath, entry.name))
  assert.equal(changed.length, 1)
  appendFileSync(String(changed[0]), '# tampered\n')
  assert.deepEqual(await codes(delta), ['cache-drifted'])
  assert.equal(await stateOf(delta, 'drifting'), 'drifted')
  const checked = await delta.get('/config/validate')
  assert.match(checked.text, /its content is not what packs\.lock pins/)
  const installed = await delta.outcome(await delta.post('/packs/install'))
  assert.equal(at(installed.payload, 'installed', 0, 'source'), source)
  assert.equal(await stateOf(delta, 'drifting'), 'installed')
})

test('an upgrade stays within the constraint, for all or for those that are named', async () => {
  const eps = await city('eps')
  const [a, b] = [tagged('up-a', 'v1.0.0'), tagged('up-b', 'v1.0.0')]
  await add(eps, { source: a.source })
  await add(eps, { source: b.source })
  const newA = a.commit({}, 'v1.1.0')
  a.commit({}, 'v2.0.0')
  b.commit({}, 'v1.2.0')
  const kept = await eps.outcome(await eps.post('/packs/install'))
  assert.deepEqual(kept.payload.installed, [], 'installing keeps what fits')
  const one = await eps.outcome(await eps.post('/packs/upgrade', { names: ['up-a'] }))
  assert.deepEqual(at(one.payload, 'upgraded', 0, 'version'), 'v1.1.0')
  assert.deepEqual(at(one.payload, 'upgraded', 0, 'commit'), newA)
  assert.deepEqual(
    (await eps.events('pack.upgraded')).map(({ payload }) => payload.name),
    ['up-a'],
  )
  const rest = await eps.outcome(await eps.post('/packs/upgrade'))
  assert.deepEqual(at(rest.payload, 'upgraded', 0, 'version'), 'v1.2.0')
  assertProblem(await eps.post('/packs/upgrade', { names: ['nobody'] }), 'pack-not-found')
})

test('constraints of several importers hold together, and what excludes itself is refused', async () => {
  const zeta = await city('zeta')
  const base = tagged('base', 'v1.1.0', 'v1.4.0', 'v2.0.0')
  const low = git.repository('low', pack('low', `[imports.base]\nsource = "${base.source}"\nversion = "<1.4"\n`))
  low.tag('v1.0.0')
  await add(zeta, { source: low.source })
  await add(zeta, { source: base.source, version: '^1' })
  assert.match(zeta.read('packs.lock'), /base\.git"\]\nversion = "v1\.1\.0"/)
  const high = git.repository('high', pack('high', `[imports.base]\nsource = "${base.source}"\nversion = "^2"\n`))
  high.tag('v1.0.0')
  const before = zeta.read('pack.toml')
  assert.equal(await refused(zeta, await zeta.post('/packs', { source: high.source })), 'version_conflict')
  assert.equal(zeta.read('pack.toml'), before, 'a refused add has changed nothing')
})

test('a rig may pin apart what the city pins, and its import stands in its own table', async () => {
  const eta = await city('eta')
  const repository = tagged('apart', 'v1.0.0', 'v2.0.0')
  mkdirSync(join(eta.dir, 'shop'))
  const text = eta.read('city.toml')
  const put = await eta.put('city.toml', `${text}\n[[rigs]]\nname = "shop"\npath = "shop"\n`)
  assert.equal(put.status, 200, put.text)
  await add(eta, { source: repository.source, version: '^2' })
  await add(eta, { source: repository.source, version: '^1', scope: 'rig:shop' })
  assert.equal(eta.read('packs.lock').match(/\[\[packs\./g)?.length, 2)
  assert.equal(at((await eta.get('/packs/apart?scope=rig:shop')).body, 'pin', 'version'), 'v1.0.0')
  assert.equal(at((await eta.get('/packs/apart')).body, 'pin', 'version'), 'v2.0.0')
  assertProblem(await eta.post('/packs', { source: repository.source, scope: 'rig:none' }), 'validation-failed')
})

test('a local pack is added by its path, and one that is still named is not removed', async () => {
  const theta = await city('theta')
  theta.write('packs/review/pack.toml', manifest('review'))
  theta.write('packs/review/agents/lead/agent.toml', AGENT)
  await add(theta, { source: './packs/review' })
  assert.ok(!existsSync(join(theta.dir, 'packs.lock')))
  assertProblem(await theta.post('/packs', { source: './packs/review' }), 'pack-exists')
  const text = theta.read('city.toml')
  const put = await theta.put('city.toml', `${text}\n[[patches.agent]]\nname = "review.lead"\nidle_timeout = "5m"\n`)
  assert.equal(put.status, 200, put.text)
  const kept = await theta.api.call('DELETE', '/v0/city/theta/packs/review')
  assertProblem(kept, 'still-referenced')
  assert.match(kept.text, /city\.toml/)
})

test('a reply to a key is the first answer again, though the import is there by now', async () => {
  const iota = await city('iota')
  iota.write('packs/mine/pack.toml', manifest('mine'))
  const send = () => iota.post('/packs', { source: './packs/mine' }, { headers: { 'idempotency-key': 'k1' } })
  const first = await send()
  await iota.outcome(first)
  const second = await send()
  assert.deepEqual(second.body, first.body)
  assert.equal((await iota.events('pack.added')).length, 1)
})

const FENCED = [
  'http://127.0.0.1/x.git',
  'http://localhost/x.git',
  'https://foo.localhost/x',
  'http://2130706433/x',
  'http://0x7f.1/x',
  'http://0177.0.0.1/x',
  'http://10.1.2.3/x',
  'https://192.168.0.1/x',
  'https://172.16.9.9/x',
  'https://100.64.0.1/x',
  'http://169.254.169.254/latest',
  'https://metadata.google.internal/x',
  'http://[::1]/x',
  'http://[::ffff:127.0.0.1]/x',
  'http://[fd00::1]/x',
  'http://[fe80::1]/x',
  'http://0.0.0.0/x',
  'http://[::]/x',
  'ssh://git@127.0.0.1/x',
  'git@127.0.0.1:x/y',
  'git@2130706433:x/y',
  'file:///etc',
  'file://localhost/etc',
  'git://example.org/x',
  'ext::sh -c id',
  '-uhttp://example.org/x',
  'https://example.org/x#main',
  'https://example.org/x?token=1',
  'https://example.org/../x',
  'https://example.org/x//../y',
  '/etc',
  '~/x',
  '../outside',
  'builtin:none',
]
for (const source of FENCED) {
  test(`the source ${source} is refused before anything starts`, async () => {
    const answer = await running.api.post('/v0/city/alpha/packs', { source, name: 'fenced' })
    assertProblem(answer, 'validation-failed')
  })
}

test('a password in a source is refused and appears nowhere', async () => {
  const kappa = await city('kappa')
  for (const source of [
    'https://me:s3cr3t-w0rd@example.org/x.git',
    'https://s3cr3t-w0rd@example.org/x',
    's3cr3t-w0rd@example.org:x/y',
    'ssh://s3cr3t-w0rd@example.org/x',
  ]) {
    const answer = await kappa.post('/packs', { source })
    assertProblem(answer, 'validation-failed')
    assert.doesNotMatch(answer.text, /s3cr3t/)
  }
  kappa.write(
    'pack.toml',
    `${kappa.read('pack.toml')}\n[imports.leaky]\nsource = "https://me:s3cr3t-w0rd@example.org/x.git"\n`,
  )
  await eventually('the file is refused', async () =>
    (await kappa.events('config.rejected')).length > 0 ? true : undefined,
  )
  const failed = await kappa.outcome(await kappa.post('/packs/install'))
  const seen = [
    await kappa.get('/packs'),
    await kappa.post('/packs/check'),
    await kappa.get('/events'),
    await kappa.get('/config/validate'),
  ].map(({ text }) => text)
  assert.doesNotMatch([JSON.stringify(failed), ...seen].join('\n'), /s3cr3t/)
  assert.doesNotMatch(readFileSync(join(running.server.home, 'supervisor.log'), 'utf8'), /s3cr3t/)
})

test('a redirect is not followed, and an import of a pack is fenced like any other', async () => {
  const lambda = await city('lambda')
  const target = tagged('target', 'v1.0.0')
  git.redirect('/moved.git', `${git.url}/target.git`)
  assert.equal(await refused(lambda, await lambda.post('/packs', { source: `${git.url}/moved.git` })), 'clone_failed')
  const sly = git.repository('sly', pack('sly', '[imports.evil]\nsource = "http://127.0.0.1:1/evil.git"\n'))
  sly.tag('v1.0.0')
  assert.equal(await refused(lambda, await lambda.post('/packs', { source: sly.source })), 'blocked_host')
  assert.equal(await refused(lambda, await lambda.post('/packs', { source: `${git.url}/none.git` })), 'clone_failed')
  assert.equal(
    await refused(lambda, await lambda.post('/packs', { source: target.source, version: '^9' })),
    'version_conflict',
  )
  assert.deepEqual(await lambda.events('pack.added'), [])
})

test('a token file logs in, and its token is in no file, event, answer or log', async () => {
  const mu = await city('mu')
  const { source } = tagged('private', 'v1.0.0')
  const authorization = `Basic ${Buffer.from('x-access-token:t0ken-0f-mine').toString('base64')}`
  git.demand(authorization)
  try {
    assert.equal(await refused(mu, await mu.post('/packs', { source })), 'pack_credential_required')
    writeFileSync(join(running.work, 'token'), 't0ken-0f-mine\n', { mode: 0o600 })
    const credentials = join(running.server.home, 'credentials.toml')
    writeFileSync(
      credentials,
      `[[credential]]\nmatch = "${git.host}"\ntoken_file = "${join(running.work, 'token')}"\n`,
      { mode: 0o644 },
    )
    assert.equal(await refused(mu, await mu.post('/packs', { source })), 'pack_credential_required')
    rmSync(credentials)
    writeFileSync(
      credentials,
      `[[credential]]\nmatch = "${git.host}"\ntoken_file = "${join(running.work, 'token')}"\n`,
      { mode: 0o600 },
    )
    await add(mu, { source })
  } finally {
    git.demand(undefined)
  }
  assert.ok(git.seen.some((request) => request.authorization === authorization))
  const places = [
    everything(running.server.home),
    everything(mu.dir),
    (await mu.get('/events')).text,
    (await mu.get('/packs')).text,
  ]
  assert.doesNotMatch(places.join('\n'), /t0ken-0f-mine/)
  assert.ok(!places.join('\n').includes(authorization.slice('Basic '.length)))
})

test('what packs bring is staged, follows changes, and leaves foreign files alone', async () => {
  const nu = await city('nu')
  const stage = join(nu.dir, '.svc', 'runtime', 'packs')
  nu.write('packs/kit/pack.toml', manifest('kit'))
  nu.write('packs/kit/skills/look/SKILL.md', '# kit\n')
  nu.write('packs/kit/skills/look/run.sh', '#!/bin/sh\n')
  nu.write('packs/kit/formulas/one.toml', '# kit\n')
  nu.write('packs/kit/mcp/tool.toml', 'name = "tool"\ncommand = "true"\n')
  nu.write('packs/kit/overlay/notes.md', 'kit\n')
  nu.write('formulas/one.toml', '# city\n')
  mkdirSync(join(stage, 'city', 'mcp'), { recursive: true })
  writeFileSync(join(stage, 'city', 'mcp', 'tool.toml'), 'mine\n')
  await add(nu, { source: './packs/kit' })
  const staged = (path: string) => readFileSync(join(stage, path), 'utf8')
  assert.equal(staged('city/skills/kit.look/SKILL.md'), '# kit\n')
  assert.equal(staged('city/overlay/notes.md'), 'kit\n')
  assert.equal(staged('city/formulas/one.toml'), '# city\n', 'the city’s own formula wins')
  assert.equal(staged('city/mcp/tool.toml'), 'mine\n', 'somebody else’s file stays')
  assert.deepEqual(await codes(nu), ['foreign-file'])
  assert.equal((await nu.api.call('DELETE', '/v0/city/nu/packs/kit')).status, 200)
  assert.ok(!existsSync(join(stage, 'city/skills')), 'what is no longer brought is gone')
  assert.ok(!existsSync(join(stage, 'city/overlay')))
  assert.equal(staged('city/mcp/tool.toml'), 'mine\n')
})

test('an add survives the end of the supervisor in the middle of its download', async () => {
  const scratch = `/tmp/svc-packs-kill-${process.pid}`
  await using slow = await startGitServer(scratch)
  const repository = slow.repository('slow', pack('slow'))
  repository.commit({}, 'v1.0.0')
  const first = await run({ toml: `[supervisor]\nallowed_pack_hosts = ["${slow.host}"]\n` })
  try {
    const omega = await createCity(first.server, 'omega')
    const gate = slow.hold()
    const accepted = await omega.post('/packs', { source: repository.source })
    assert.equal(accepted.status, 202)
    await gate.held
    await first.server.kill('SIGKILL')
    gate.release()
    await using second = await runAgain(first.server.home)
    const again = await cityAgain(second.server, 'omega')
    const outcome = await again.outcome(accepted)
    assert.equal(outcome.type, 'request.result.pack.add', JSON.stringify(outcome.payload))
    assert.equal(
      (await again.events('request.*')).filter(({ payload }) => payload.request_id === at(accepted.body, 'request_id'))
        .length,
      1,
    )
    assert.equal((await again.events('pack.added')).length, 1)
    assert.deepEqual(await codes(again), [])
    assert.ok(
      !existsSync(join(second.server.home, 'cache', 'tmp')) ||
        readdirSync(join(second.server.home, 'cache', 'tmp')).length === 0,
    )
  } finally {
    await first[Symbol.asyncDispose]()
  }
})

test('a city on a new machine, without the cache, fetches what its lock pins when it starts', async () => {
  const xi = await city('xi')
  const { source } = tagged('fresh', 'v1.0.0', 'v1.1.0')
  await add(xi, { source, version: '=1.0.0' })
  const stopped = await xi.post('/stop')
  assert.equal(stopped.status, 200, stopped.text)
  rmSync(join(running.server.home, 'cache'), { recursive: true })
  const lock = xi.read('packs.lock')
  await xi.post('/start')
  const again = await cityAgain(running.server, 'xi')
  assert.equal(await stateOf(again, 'fresh'), 'installed')
  assert.equal(again.read('packs.lock'), lock)
  assert.equal((await again.config()).last_error, undefined)
})

test('a pack that needs a newer svcctl is refused with what it needs and what this is, and changes nothing', async () => {
  const omicron = await city('omicron')
  const before = omicron.read('pack.toml')
  const { version } = JSON.parse(readFileSync('package.json', 'utf8'))
  const needs = new RegExp(`needs svcctl >=99, and this is ${version}`)
  const { source } = git.repository('newer', pack('newer', 'requires_svc = ">=99"\n'))
  const ended = await omicron.outcome(await omicron.post('/packs', { source }))
  assert.equal(ended.payload.error_code, 'invalid_config', JSON.stringify(ended.payload))
  assert.match(String(ended.payload.error_message), needs)
  assert.equal(omicron.read('pack.toml'), before)
  const inside = { source: './packs/newer' }
  omicron.write('packs/newer/pack.toml', manifest('newer', 'requires_svc = ">=99"\n'))
  const local = await omicron.outcome(await omicron.post('/packs', inside))
  assert.match(String(local.payload.error_message), needs)
  omicron.write('pack.toml', `${before}\n[imports.newer]\nsource = "./packs/newer"\n`)
  assert.deepEqual(await codes(omicron), ['needs-newer'])
})

test('what is written by hand and cannot be read is named by the check', async () => {
  const pi = await city('pi')
  pi.write('packs.lock', 'schema = 9\n')
  assert.deepEqual(await codes(pi), ['invalid-lockfile'])
  const answer = await pi.get('/packs')
  assert.equal(at(answer.body, 'partial'), true)
  assert.ok(isMap(answer.body))
  assert.equal(dirname(join(pi.dir, 'packs.lock')), pi.dir)
})

test('the command line adds, lists, checks, upgrades and removes', async () => {
  const rho = await city('rho')
  const { source } = tagged('by-cli', 'v1.0.0', 'v1.1.0')
  const svcctl = (...args: string[]) =>
    cli(['pack', ...args], { env: { SVC_API: running.server.url, SVC_CITY: 'rho' } })
  const added = await svcctl('add', source, '--name', 'mine', '--version', '=1.0.0', '--wait')
  assert.equal(added.code, 0, added.err)
  assert.match(added.out, /mine/)
  assert.match((await svcctl('list')).out, /^core\t.*\nmine\tcity\tgit\tinstalled\tno\t=1\.0\.0\tv1\.0\.0\t/m)
  assert.equal(at(JSON.parse((await svcctl('get', 'mine', '--json')).out), 'pin', 'version'), 'v1.0.0')
  assert.equal((await svcctl('check')).code, 0)
  assert.equal((await svcctl('upgrade', 'mine', '--wait')).code, 0)
  assert.equal((await svcctl('install', '--wait')).code, 0)
  assert.match((await svcctl('remove', 'mine')).out, /deleted/)
  const refusedAdd = await svcctl('add', 'http://127.0.0.1:1/x.git')
  assert.notEqual(refusedAdd.code, 0)
  assert.match(refusedAdd.err, /loopback/)
  rho.write('packs.lock', 'schema = 9\n')
  const failed = await svcctl('check')
  assert.equal(failed.code, 9)
  assert.match(failed.out, /invalid-lockfile/)
})

test('git connects to the address that was looked at, not to what the name means by then', async () => {
  const { source } = tagged('pinned', 'v1.0.0')
  const named = source.replace('127.0.0.1', 'packs.test')
  const root = join(running.work, 'pinned-home')
  mkdirSync(root, { recursive: true })
  writeFileSync(join(root, 'supervisor.toml'), `[supervisor]\nport = 0\nallowed_pack_hosts = ["packs.test"]\n`)
  const settings = resolveSettings({ home: root }, {}, root, root)
  await using here = await runHere({ settings, lookup: async () => ['127.0.0.1'] })
  await newCity(here.api, here.work, 'ups')
  // No resolver knows the name: without the pin there is nothing to connect to.
  const payload = await add(new ConfigCity(here.api, 'ups', join(here.work, 'ups')), { source: named })
  assert.equal(payload.source, named)
})

test('an import whose repository is gone can be taken out, which mends the files', async () => {
  const phi = await city('phi')
  const before = phi.read('pack.toml')
  phi.write('pack.toml', `${before}\n[imports.gone]\nsource = "${git.url}/gone.git"\nversion = "^1"\n`)
  await eventually('the file is refused', async () =>
    (await phi.events('config.rejected')).length > 0 ? true : undefined,
  )
  assert.equal(await refused(phi, await phi.post('/packs/install')), 'clone_failed')
  const removed = await phi.api.call('DELETE', '/v0/city/phi/packs/gone')
  assert.equal(removed.status, 200, removed.text)
  assert.equal(phi.read('pack.toml'), before)
  assert.equal((await phi.config()).last_error, undefined)
})

test('a version that cannot be read, of an import or inside a pack, is a finding and no defect', async () => {
  const ver = await city('ver')
  const inside = git.repository(
    'odd-inside',
    pack('odd-inside', `[imports.x]\nsource = "${git.url}/none.git"\nversion = "main"\n`),
  )
  inside.tag('v1.0.0')
  assert.equal(await refused(ver, await ver.post('/packs', { source: inside.source })), 'invalid_config')
  ver.write('pack.toml', `${ver.read('pack.toml')}\n[imports.odd]\nsource = "${git.url}/x.git"\nversion = "main"\n`)
  assert.deepEqual(await codes(ver), ['invalid-source'])
  assert.equal(await stateOf(ver, 'odd'), 'stale')
  assert.equal(await refused(ver, await ver.post('/packs/install')), 'invalid_config')
})

test('two adds of one name at once: one is added, the other fails', async () => {
  const chi = await city('chi')
  const [a, b] = [tagged('race-a', 'v1.0.0'), tagged('race-b', 'v1.0.0')]
  const accepted = await Promise.all([a, b].map(({ source }) => chi.post('/packs', { source, name: 'race' })))
  const ends = await Promise.all(accepted.map((one) => chi.outcome(one)))
  assert.deepEqual(ends.map(({ type }) => type).sort(), ['request.failed', 'request.result.pack.add'])
  assert.equal(ends.find(({ type }) => type === 'request.failed')?.payload.error_code, 'already_exists')
  assert.equal((await chi.events('pack.added')).length, 1)
})

test('adds of different packs at once are both there at the end', async () => {
  const psi = await city('psi')
  const sources = ['par-a', 'par-b', 'par-c'].map((name) => tagged(name, 'v1.0.0').source)
  await Promise.all(sources.map((source) => add(psi, { source })))
  assert.equal(psi.read('packs.lock').match(/\[packs\./g)?.length, 3)
  assert.deepEqual(await codes(psi), [])
})

test('a name that resolves to a private address is blocked once it is looked up', async () => {
  await using here = await runHere({ lookup: async () => ['1.1.1.1', '192.168.7.7'] })
  await newCity(here.api, here.work, 'tau')
  const tau = new ConfigCity(here.api, 'tau', join(here.work, 'tau'))
  assert.equal(
    await refused(tau, await tau.post('/packs', { source: 'https://git.example.org/x.git' })),
    'blocked_host',
  )
})
