import assert from 'node:assert/strict'
import { readFileSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { MASK } from '../../src/contract/base/merge-patch.ts'
import { type ConfigCity, createCity } from '../support/config-city.ts'
import { at } from '../support/document.ts'
import { assertProblem, eventually } from '../support/http.ts'
import { type RunningSupervisor, startSupervisor } from '../support/supervisor.ts'

let supervisor: RunningSupervisor
before(async () => {
  supervisor = await startSupervisor()
})
after(() => supervisor[Symbol.asyncDispose]())

const COMMENTED = `# Kept: the first line.
[workspace]   # and this
provider = "shell" # and that

[providers.shell]
base = "builtin:shell"
`
const AGENT = '# An agent.\nprovider = "shell"\n'

const reloads = (city: ConfigCity) => city.events('config.reloaded')
const rejections = (city: ConfigCity) => city.events('config.rejected')

test('a city shows what it runs on, what each file says, and where every value comes from', async () => {
  const city = await createCity(supervisor, 'shown')
  const config = await city.config()
  assert.equal(config.workspace.provider, 'shell')
  assert.deepEqual(
    config.agents.map(({ identity }) => identity),
    ['core.worker'],
  )
  assert.equal(config.last_error, undefined)
  assert.deepEqual(config.warnings, [], 'a fresh city has no warnings')
  assert.equal((await city.get('/config')).headers.etag, `"${config.revision}"`)

  const raw = await city.get('/config?view=raw')
  assert.deepEqual(at(raw.body, 'files', 1, 'values', 'workspace'), { provider: 'shell' })

  const explained = await city.get('/config/explain')
  assert.deepEqual(at(explained.body, 'settings', 'workspace.provider'), {
    value: 'shell',
    file: 'city.toml',
    line: 4,
    column: 12,
    layer: 'city',
  })
  assert.deepEqual(at((await city.get('/config/explain?provider=claude')).body, 'providers', 0, 'origin'), 'builtin')
  assert.deepEqual(
    at((await city.get('/config/explain?provider=shell')).body, 'providers', 0, 'origin'),
    'builtin+city',
  )
  assert.deepEqual(at((await city.get('/config/explain?agent=core.worker')).body, 'agents', 0, 'origin'), 'pack:core')
  assertProblem(await city.get('/config/explain?rig=none'), 'config-item-not-found', 'not_found: there is no rig none')
  assertProblem(await city.get('/config?view=other'), 'validation-failed')

  const defaults = await city.get('/config/defaults')
  assert.deepEqual(at(defaults.body, 'agents'), [])
  assert.equal(at(defaults.body, 'workspace', 'prefix'), 'sh')
  assert.equal(at(defaults.body, 'providers', 'claude', 'command'), 'claude')
})

test('a file is read and replaced byte for byte, and put back to what it was', async () => {
  const city = await createCity(supervisor, 'bytes')
  const odd = `${COMMENTED}\r\n# bytes: \u{1F600} \u2028 é\r\n\t\n`
  city.write('city.toml', odd)
  await eventually('the file is loaded', async () => ((await reloads(city)).length === 1 ? true : undefined))
  const before = await city.file('city.toml')
  assert.equal(before.text, odd)
  const { revision } = await city.config()

  const changed = await city.put('city.toml', `${odd}[daemon]\nmax_restarts = 7\n`, { ifMatch: `"${before.revision}"` })
  assert.equal(changed.status, 200)
  assert.equal(city.read('city.toml'), `${odd}[daemon]\nmax_restarts = 7\n`)
  assert.equal(
    at((await city.get('/config')).body, 'settings', 'daemon', 'max_restarts'),
    7,
    'in force with the answer',
  )
  assert.equal(at(changed.body, 'config_revision'), (await city.config()).revision)

  assert.equal((await city.put('city.toml', odd)).status, 200)
  assert.equal(city.read('city.toml'), odd)
  assert.equal((await city.config()).revision, revision)
  const events = await reloads(city)
  assert.deepEqual(
    events.map(({ payload }) => payload.source),
    ['watch', 'api', 'api'],
  )
  assert.equal(events.at(-1)?.payload.revision, revision)
})

test('an edit that changes nothing writes nothing and says nothing', async () => {
  const city = await createCity(supervisor, 'nothing')
  const { text, revision } = await city.file('city.toml')
  const answer = await city.put('city.toml', text, { ifMatch: `"${revision}"` })
  assert.equal(at(answer.body, 'changed'), false)
  assert.deepEqual(await city.events('config.*'), [])
})

test('a file that would make the configuration invalid is refused with every issue, and nothing is written', async () => {
  const city = await createCity(supervisor, 'refused')
  const text = city.read('city.toml')
  const bad = `${COMMENTED}[daemon]\nmax_restarts = "many"\npatrol_intervall = "1s"\n[[rigs]]\nname = "a b"\n`
  const refused = assertProblem(
    await city.put('city.toml', bad),
    'invalid-config',
    /^invalid_config: city\.toml:8:16: /,
  )
  assert.deepEqual(
    refused.errors?.map(({ location }) => location),
    ['city.toml:8:16', 'city.toml:9:1', 'city.toml:11:8'],
  )
  assert.match(refused.errors?.[1]?.message ?? '', /did you mean `patrol_interval`/)
  assert.equal(city.read('city.toml'), text)
  assertProblem(await city.put('city.toml', bad, { dryRun: true }), 'invalid-config')
  assertProblem(await city.put('conf/new.toml', '[daemn]\n'), 'invalid-config', /unknown key `daemn`/)
  assert.deepEqual(await city.events('config.*'), [])
})

test('a dry run tells what would come of it and writes nothing', async () => {
  const city = await createCity(supervisor, 'dry')
  const { revision } = await city.config()
  const dry = await city.put('agents/mayor/agent.toml', AGENT, { dryRun: true })
  assert.equal(dry.status, 200)
  assert.deepEqual([at(dry.body, 'changed'), at(dry.body, 'dry_run')], [true, true])
  assertProblem(await city.get('/config/files/agents%2Fmayor%2Fagent.toml'), 'config-file-not-found')
  assert.equal((await city.config()).revision, revision)
  const real = await city.put('agents/mayor/agent.toml', AGENT)
  assert.equal(real.status, 201)
  assert.equal(at(real.body, 'config_revision'), at(dry.body, 'config_revision'), 'it comes out as was foretold')
})

test('paths that are no configuration file of the city are refused, also through links', async () => {
  const city = await createCity(supervisor, 'paths')
  symlinkSync(supervisor.home, join(city.dir, 'conf'))
  symlinkSync('/etc/passwd', join(city.dir, 'linked.toml'))
  const paths = [
    '../x.toml',
    '/etc/passwd',
    'agents/../../x.toml',
    '.svc/city.db',
    'conf/supervisor.toml',
    'linked.toml',
    'packs/a/pack.toml',
    'a\0.toml',
  ]
  for (const path of paths) {
    assertProblem(
      await city.get(`/config/files/${encodeURIComponent(path)}`),
      'validation-failed',
      /^validation_failed: path\.path: /,
    )
    assertProblem(await city.put(path, ''), 'validation-failed')
    assertProblem(await city.post('/config/validate', { files: { [path]: '' } }), 'validation-failed')
  }
  assertProblem(await city.get('/config/files/conf2%2Fnone.toml'), 'config-file-not-found')
  assertProblem(await city.put('city.toml', '', { ifMatch: '"0"' }), 'precondition-failed')
  assertProblem(await city.put('none.toml', '', { ifMatch: '*' }), 'precondition-failed')
})

test('a file or directory that no system can have is one that is not there, and no failure of ours', async () => {
  const city = await createCity(supervisor, 'unnameable')
  for (const path of ['x'.repeat(300), 'y/'.repeat(3_000), 'nul\0'])
    for (const field of ['prompt_template', 'overlay_dir', 'namepool']) {
      const refused = await city.post('/agents', { name: 'clerk', provider: 'shell', [field]: path })
      assertProblem(refused, 'invalid-config', /does not exist$/)
    }
})

test('files are checked as they are, and as they would be, without anything coming of it', async () => {
  const city = await createCity(supervisor, 'checked')
  const sound = await city.get('/config/validate')
  assert.deepEqual([at(sound.body, 'valid'), at(sound.body, 'revision')], [true, (await city.config()).revision])
  const dry = await city.post('/config/validate', {
    files: {
      'city.toml': 'include = ["conf/x.toml"]\n',
      'conf/x.toml': '[workspce]\n',
      'pack.toml': null,
      'loose.toml': 'x = 1\n',
    },
  })
  assert.equal(at(dry.body, 'valid'), false)
  const issues = at(dry.body, 'issues')
  assert.ok(Array.isArray(issues))
  assert.deepEqual(
    issues.map((issue) => `${at(issue, 'severity')} ${at(issue, 'file')}:${at(issue, 'line')} ${at(issue, 'key')}`),
    ['error conf/x.toml:1 workspce', 'error loose.toml:1 x'],
  )
  assert.deepEqual(at((await city.post('/config/validate', { files: {} })).body, 'valid'), true)
  assertProblem(await city.post('/config/validate', { files: { 'city.toml': 5 } }), 'validation-failed')
  assert.deepEqual(await city.events('config.*'), [])
})

test('a saved file is in force soon; a bad one changes nothing, is told once, and shows until it is mended', async () => {
  const city = await createCity(supervisor, 'live')
  const sound = city.read('city.toml')
  city.write('agents/mayor/agent.toml', AGENT)
  const [reloaded] = await eventually('the reload', async () => nonEmpty(await reloads(city)))
  assert.deepEqual(reloaded.payload.changed, {
    agents: ['mayor'],
    rigs: [],
    providers: [],
    orders: [],
    formulas: [],
    packs: [],
  })
  assert.equal(reloaded.payload.source, 'watch')
  const good = await city.config()
  assert.equal(good.revision, reloaded.payload.revision)

  city.write('city.toml', `${sound}[workspce]\n`)
  const [rejected] = await eventually('the rejection', async () => nonEmpty(await rejections(city)))
  assert.equal(rejected.payload.active_revision, good.revision)
  const shown = await city.config()
  assert.equal(shown.revision, good.revision, 'the old one stays in force')
  assert.equal(shown.pending_revision, rejected.payload.attempted_revision)
  assert.deepEqual(shown.last_error?.issues, rejected.payload.issues)
  assert.deepEqual(at((await city.get('/status')).body, 'config', 'last_error'), shown.last_error)
  assert.equal(at((await city.get('/config/validate')).body, 'valid'), false)

  city.write('city.toml', `${sound}[workspce]\n`)
  const failed = await city.outcome(await city.post('/config/reload'))
  assert.equal(failed.type, 'request.failed')
  assert.equal(failed.payload.error_code, 'config_invalid')
  assert.equal((await rejections(city)).length, 1, 'the same state is told once')

  assertProblem(await city.put('city.toml', `${sound}[workspce]\n[daemn]\n`), 'invalid-config', /unknown key `daemn`/)
  const broken = await city.file('city.toml')
  assert.equal(
    (await city.put('city.toml', sound, { ifMatch: `"${broken.revision}"` })).status,
    200,
    'who has seen it can mend it',
  )
  const mended = await city.config()
  assert.deepEqual([mended.revision, mended.last_error], [good.revision, undefined])
  assert.equal((await reloads(city)).length, 1, 'what is in force has not changed')

  city.write('city.toml', `${sound}[workspce]\n`)
  await eventually('the second rejection', async () => ((await rejections(city)).length === 2 ? true : undefined))
  city.write('city.toml', `${sound}[daemon]\nmax_restarts = 2\n`)
  await eventually('the second reload', async () => ((await reloads(city)).length === 2 ? true : undefined))
  assert.equal((await city.config()).last_error, undefined)
})

function nonEmpty<T>(items: readonly T[]): readonly [T, ...T[]] | undefined {
  const [first, ...rest] = items
  return first === undefined ? undefined : [first, ...rest]
}

test('an edit over the API never overwrites a file that was saved since it was loaded', async () => {
  const city = await createCity(supervisor, 'foreign')
  const sound = city.read('city.toml')
  city.write('city.toml', `${sound}# by hand\n`)
  // At once, before the watch has looked.
  const refused = await city.put('city.toml', `${sound}# over the API\n`)
  if (refused.status === 409) assertProblem(refused, 'conflict-config', /changed meanwhile/)
  else assert.equal(refused.status, 200)
  if (refused.status === 409) assert.equal(city.read('city.toml'), `${sound}# by hand\n`)
  assert.equal((await city.put('city.toml', `${sound}# over the API\n`)).status, 200, 'the second try knows the file')
})

test('a reload that is asked for ends in one event, and the same key asks only once', async () => {
  const city = await createCity(supervisor, 'asked')
  const { revision } = await city.config()
  const headers = { 'idempotency-key': 'k1' }
  const first = await city.post('/config/reload', { soft: true }, { headers })
  const again = await city.post('/config/reload', { soft: true }, { headers })
  assert.deepEqual(again.body, first.body)
  assertProblem(await city.post('/config/reload', { soft: false }, { headers }), 'idempotency-mismatch')
  const { type, payload } = await city.outcome(first)
  assert.equal(type, 'request.result.config.reload')
  assert.deepEqual([payload.outcome, payload.revision, payload.warnings], ['no_change', revision, []])
  assert.equal((await city.events('request.*')).length, 1)
  assertProblem(await city.post('/config/reload', { hard: true }), 'validation-failed')
})

test('of edits based on the same version one wins, and none of the others is lost silently', async () => {
  const city = await createCity(supervisor, 'race')
  const { text, revision } = await city.file('city.toml')
  const answers = await Promise.all(
    Array.from({ length: 12 }, (_, n) => city.put('city.toml', `${text}# edit ${n}\n`, { ifMatch: `"${revision}"` })),
  )
  const statuses = answers.map(({ status }) => status)
  assert.equal(statuses.filter((status) => status === 200).length, 1)
  assert.ok(
    statuses.every((status) => status === 200 || status === 412),
    statuses.join(),
  )
  const winner = answers.findIndex(({ status }) => status === 200)
  assert.equal(city.read('city.toml'), `${text}# edit ${winner}\n`)

  await Promise.all(Array.from({ length: 6 }, (_, n) => append(city, `# line ${n}\n`)))
  for (let n = 0; n < 6; n++) assert.ok(city.read('city.toml').includes(`# line ${n}\n`), `line ${n} is there`)

  const files = Array.from({ length: 8 }, (_, n) => `agents/a${n}/agent.toml`)
  const created = await Promise.all(files.map((file) => city.put(file, AGENT)))
  assert.deepEqual(
    created.map(({ status }) => status),
    files.map(() => 201),
  )
  assert.equal((await city.config()).agents.filter(({ identity }) => /^a\d$/.test(identity)).length, 8)
})

/** Read, change, write back; again where somebody was faster. */
async function append(city: ConfigCity, line: string): Promise<void> {
  for (let attempt = 0; attempt < 50; attempt++) {
    const { text, revision } = await city.file('city.toml')
    const { status } = await city.put('city.toml', text + line, { ifMatch: `"${revision}"` })
    if (status === 200) return
    assert.ok(status === 412 || status === 409, String(status))
  }
  assert.fail('never won')
}

test('200 saves in 2 s settle on the last one with little work', async () => {
  const city = await createCity(supervisor, 'storm')
  const sound = city.read('city.toml')
  for (let n = 1; n <= 200; n++) {
    city.write('city.toml', `${sound}[daemon]\nmax_restarts = ${n}\n`)
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
  await eventually('the last save is in force', async () =>
    at((await city.get('/config')).body, 'settings', 'daemon', 'max_restarts') === 200 ? true : undefined,
  )
  const count = (await reloads(city)).length
  assert.ok(count >= 1 && count <= 5, `${count} reloads`)
})

test('secrets are in no answer, event, error or log', async () => {
  const city = await createCity(supervisor, 'secrets')
  const secret = 'hunter2-very-secret'
  const toml = `${COMMENTED}env = { TOKEN = "${secret}" }\n[upstreams.main]\napi_key = "${secret}"\n[workspace.env]\nKEY = "${secret}"\nREF = "$HOME"\n`
  assert.equal((await city.put('city.toml', toml)).status, 200)
  assert.equal((await city.put('agents/spy/agent.toml', `provider = "shell"\n[env]\nWORD = "${secret}"\n`)).status, 201)
  city.write('agents/spy/prompt.template.md', 'Say {{ WORD }} to {{ AgentName }}.\n')
  await eventually('the prompt is loaded', async () => ((await reloads(city)).length === 3 ? true : undefined))
  const config = await city.config()
  assert.deepEqual(config.providers.shell?.env, { TOKEN: MASK })
  assert.deepEqual(at(config.settings, 'workspace', 'env'), { KEY: MASK, REF: '$HOME' })
  const prompt = await city.get('/agents/spy/prompt')
  assert.equal(at(prompt.body, 'text'), `Say ${MASK} to spy.`)
  assertProblem(
    await city.put('agents/spy/agent.toml', `provider = "nope"\n[env]\nWORD = "${secret}"\nX = 5\n`),
    'invalid-config',
  )
  const answers = await Promise.all([
    city.get('/config'),
    city.get('/config?view=raw'),
    city.get('/config/explain'),
    city.get('/config/validate'),
    city.get('/status'),
    city.get('/events?limit=1000'),
    city.put('agents/spy/agent.toml', `[env]\nWORD = "${secret}"\nWORD = "${secret}"\n`),
    city.put('agents/spy/agent.toml', `env = "${secret}"\n`),
    city.put('agents/spy/agent.toml', `[env]\nWORD = ${secret}\n`),
  ])
  for (const { text } of answers) assert.ok(!text.includes(secret), text.slice(0, 2000))
  assert.ok(!readFileSync(join(supervisor.home, 'supervisor.log'), 'utf8').includes(secret))
})

test('a prompt is previewed as a session gets it, of the city and of a rig, and a broken one never shows its source', async () => {
  const city = await createCity(supervisor, 'prompts')
  const core = await city.get('/agents/core.worker/prompt')
  assert.match(String(at(core.body, 'text')), /^# You are core\.worker\n/)
  assert.equal(at(core.body, 'version'), '1')
  assert.ok(!core.text.includes('{{') && !core.text.includes('{%'))

  city.write('agents/mason/agent.toml', 'provider = "shell"\nscope = "rig"\n')
  city.write('agents/mason/prompt.template.md', '{{ AgentName }} works on {{ Rig }} with prefix {{ IssuePrefix }}.\n')
  const tables =
    '[[agent]]\nname = "smith"\ndir = "shop"\nprompt_template = "agents/mason/prompt.template.md"\n\n[[rigs]]\nname = "shop"\npath = "rigs/shop"\n'
  city.write('city.toml', `${city.read('city.toml')}\n${tables}`)
  await eventually('the rig is loaded', async () => ((await city.config()).rigs.length === 1 ? true : undefined))
  const split = await city.get('/agents/shop/smith/prompt')
  assert.equal(at(split.body, 'text'), 'shop/smith works on shop with prefix sh.')
  assert.deepEqual((await city.get('/agents/shop%2Fsmith/prompt')).body, split.body)
  assertProblem(await city.get('/agents/nobody/prompt'), 'agent-not-found', 'not_found: there is no agent nobody')
  assertProblem(await city.get('/agents/shop/nobody/prompt'), 'agent-not-found')

  city.write('agents/mason/prompt.template.md', 'Hello {{ Nobody }}.\n')
  const [rejected] = await eventually('the rejection', async () => nonEmpty(await rejections(city)))
  assert.match(JSON.stringify(rejected.payload.issues), /agents\/mason\/prompt\.template\.md.*Nobody/)
  assert.equal(
    at((await city.get('/agents/shop/smith/prompt')).body, 'text'),
    'shop/smith works on shop with prefix sh.',
    'what is in force goes on',
  )
})

test('another name of the running city is refused until it is restarted', async () => {
  const city = await createCity(supervisor, 'named')
  const site = city.read('.svc/site.toml')
  const refused = assertProblem(
    await city.put('.svc/site.toml', site.replace('"named"', '"other"')),
    'invalid-config',
    /needs a restart/,
  )
  assert.equal(refused.errors?.[0]?.location, '.svc/site.toml:1:1')
})

test('retention of the city’s own files applies to its log', async () => {
  const city = await createCity(supervisor, 'retained')
  const put = await city.put(
    'city.toml',
    `${city.read('city.toml')}[events.retention]\nmax_age = "1h"\nmax_bytes = 2000\n`,
  )
  assert.equal(put.status, 200)
  for (let n = 0; n < 30; n++)
    await city.post('/events', { type: 'test.filler', actor: 'test', payload: { text: 'x'.repeat(200) } })
  await eventually(
    'old events are gone',
    async () => (Number(at((await city.get('/status')).body, 'events', 'oldest_seq')) > 1 ? true : undefined),
    30_000,
  )
})

const listOf = (value: unknown): readonly unknown[] => {
  assert.ok(Array.isArray(value))
  return value
}

test('validation finds dead orders, broken formulas, and agents of a rig that is not there yet', async () => {
  const city = await createCity(supervisor, 'dead-parts')
  const validate = async () => {
    const { body } = await city.get('/config/validate')
    return listOf(at(body, 'issues')).map((issue) => `${at(issue, 'file')}: ${at(issue, 'message')}`)
  }
  assert.deepEqual(await validate(), [], 'a fresh city is valid')
  city.write('orders/never.toml', '[order]\ntrigger = "cron"\nschedule = "0 0 30 2 *"\nexec = "true"\n')
  city.write('formulas/broken.toml', 'formula = "broken"\n[[steps]]\nid = "a"\ntitle = "A"\nneeds = ["missing"]\n')
  city.write('packs/swarm/pack.toml', '[pack]\nname = "swarm"\nschema = 2\n')
  city.write('packs/swarm/agents/coder/agent.toml', 'provider = "shell"\nscope = "rig"\n')
  city.write('packs/swarm/agents/coder/prompt.template.md', 'In {{ basename }} and {{ nowhere }}.\n')
  city.write(
    'city.toml',
    `${readFileSync(join(city.dir, 'city.toml'), 'utf8')}\n[defaults.rig.imports.swarm]\nsource = "./packs/swarm"\n`,
  )
  const issues = await validate()
  const found = (pattern: RegExp) =>
    assert.ok(
      issues.some((issue) => pattern.test(issue)),
      `${pattern}: ${issues}`,
    )
  found(/orders\/never\.toml/)
  found(/formulas\/broken\.toml.*missing/)
  found(/prompt\.template\.md.*basename/)
  found(/prompt\.template\.md.*nowhere/)
  assert.deepEqual(
    issues.filter((issue) => issue.startsWith('city.toml')),
    [],
    'the imagined rig is no mistake',
  )
})

test('a request that fails for its files says everything that is wrong with them', async () => {
  const city = await createCity(supervisor, 'all-at-once')
  city.write('agents/a/agent.toml', 'provider = "nobody"\nfrob = 1\n')
  city.write('agents/b/agent.toml', 'provider = "nobody"\n')
  const { payload } = await city.outcome(await city.post('/config/reload', {}))
  const { body: request } = await city.api.get(`/v0/requests/${String(payload.request_id)}`)
  assert.equal(at(request, 'error_code'), 'config_invalid')
  const files = listOf(at(request, 'issues')).map((issue) => at(issue, 'file'))
  assert.ok(files.length >= 3 && files.includes('agents/a/agent.toml') && files.includes('agents/b/agent.toml'))
  assert.deepEqual(payload.issues, at(request, 'issues'))
})

test('files that a Windows editor saved with a byte order mark are read, edited and checked', async () => {
  const city = await createCity(supervisor, 'marked')
  const mark = '\uFEFF'
  city.write('agents/rev/agent.toml', `${mark}${AGENT}`)
  city.write('city.toml', `${mark}${readFileSync(join(city.dir, 'city.toml'), 'utf8')}`)
  city.write('formulas/one.toml', `${mark}formula = "one"\n[[steps]]\nid = "a"\ntitle = "A"\n`)
  assert.deepEqual(at((await city.get('/config/validate')).body, 'issues'), [])
  const shown = await city.get('/config/files/city.toml')
  assert.ok(!String(at(shown.body, 'text')).startsWith(mark))
  const listed = listOf(at((await city.get('/config/files')).body, 'items'))
  const revision = at(
    listed.find((item) => at(item, 'path') === 'city.toml'),
    'revision',
  )
  assert.equal(revision, at(shown.body, 'revision'), 'the list and the file agree')
  await eventually('it is in force', async () =>
    (await city.config()).agents.some(({ identity }) => identity === 'rev') ? true : undefined,
  )
})
