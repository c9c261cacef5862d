import assert from 'node:assert/strict'
import { existsSync, mkdirSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { LINES_TYPE } from '../../src/contract/base/operation.ts'
import { getRig, listRigs, patchRig } from '../../src/contract/rigs.ts'
import { type ConfigCity, createCity } from '../support/config-city.ts'
import { asMap, at } from '../support/document.ts'
import { git, makeRepository } from '../support/git-repository.ts'
import { assertProblem, type CallOptions, eventually } from '../support/http.ts'
import { type RunningSupervisor, startSupervisor } from '../support/supervisor.ts'

let supervisor: RunningSupervisor
let city: ConfigCity
before(async () => {
  supervisor = await startSupervisor()
  city = await createCity(supervisor, 'alpha')
})
after(async () => {
  city.api.close()
  await supervisor[Symbol.asyncDispose]()
})

const path = (name = '') => `${city.base}/rigs${name === '' ? '' : `/${name}`}`
const send = (method: string, name: string, body?: unknown, options: CallOptions = {}) =>
  city.api.call(method, path(name), body === undefined ? options : { ...options, body })
const create = (body: unknown, options?: CallOptions) => city.api.post(path(), body, options)
/** Creates a rig here, which is there at once. */
async function made(body: { readonly name: string; readonly path: string }) {
  const created = await create(body)
  assert.equal(created.status, 201, created.text)
  return get(body.name)
}
const get = (name: string) => city.api.ask(getRig, path(name))
const files = () =>
  ['city.toml', '.svc/site.toml'].map((file) => (existsSync(join(city.dir, file)) ? city.read(file) : undefined))
const rigEvents = async (rig: string) =>
  (await city.events('rig.*'))
    .filter(({ payload }) => payload.rig === rig)
    .map(({ type, payload }) => [type, payload.changed])

async function save(text: string): Promise<void> {
  city.write('city.toml', text)
  await city.outcome(await city.post('/config/reload', {}))
}

test('a rig inside the city: its directory is made, the files are as before after its deletion, what is in it stays', async () => {
  const before = files()
  const created = await create({ name: 'inner', path: 'work/inner', prefix: 'inn', formula_vars: { team: 'a' } })
  assert.equal(created.status, 201, created.text)
  const { revision, file, line, ...rig } = asMap(created.body)
  assert.deepEqual(rig, {
    name: 'inner',
    path: join(city.dir, 'work/inner'),
    prefix: 'inn',
    formula_vars: { team: 'a' },
    suspended: false,
    suspended_on_start: false,
    agent_count: 0,
    running_count: 0,
  })
  assert.equal(file, 'city.toml')
  assert.match(city.read('city.toml').split('\n')[Number(line) - 1] ?? '', /^\[\[rigs\]\]/)
  assert.equal(created.headers.etag, `"${String(revision)}"`)
  assert.match(city.read('city.toml'), /path = "work\/inner"/)
  writeFileSync(join(city.dir, 'work/inner/note'), 'mine')

  const deleted = await send('DELETE', 'inner')
  assert.deepEqual(deleted.body, {
    status: 'deleted',
    name: 'inner',
    removed: [],
    revision: (await city.config()).revision,
  })
  assert.deepEqual(files(), before)
  assert.ok(existsSync(join(city.dir, 'work/inner/note')))
  assert.deepEqual(await rigEvents('inner'), [
    ['rig.created', []],
    ['rig.deleted', []],
  ])
  assertProblem(await city.get('/rigs/inner'), 'rig-not-found', 'not_found: there is no rig inner')
})

test('a directory outside the city must exist, and its path is kept on this machine', async () => {
  const before = files()
  const outside = join(supervisor.work, 'outside')
  assertProblem(await create({ name: 'outer', path: outside }), 'validation-failed', /body\.path: does not exist/)
  mkdirSync(outside)
  const { path: shown } = await made({ name: 'outer', path: outside })
  assert.equal(shown, outside)
  assert.ok(!city.read('city.toml').includes('outside'))
  assert.match(city.read('.svc/site.toml'), /\[rigs\.outer\]\npath = ".*\/outside"/)
  assert.equal((await send('DELETE', 'outer')).status, 200)
  assert.deepEqual(files(), before)
  assert.ok(existsSync(outside))
})

test('an absolute path inside the city becomes a relative one', async () => {
  const before = files()
  await made({ name: 'absolute', path: join(city.dir, 'work/absolute') })
  assert.match(city.read('city.toml'), /path = "work\/absolute"/)
  await send('DELETE', 'absolute')
  assert.deepEqual(files(), before)
})

test('a rig gets the imports that the city has for every new rig', async () => {
  const before = city.read('city.toml')
  city.write('packs/tools/pack.toml', '[pack]\nname = "tools"\nschema = 2\n')
  city.write('packs/tools/agents/mason/agent.toml', 'provider = "shell"\nscope = "rig"\n')
  await save(`${before}\n[defaults.rig.imports.tools]\nsource = "packs/tools"\n`)
  const rig = await made({ name: 'equipped', path: 'equipped' })
  assert.equal(rig.agent_count, 1)
  assert.match(city.read('city.toml'), /imports = \{ tools = \{ source = "packs\/tools" \} \}/)
  await send('DELETE', 'equipped')
  await save(before)
})

test('a repository shows its branch and its changes, looked at in the background', async () => {
  const directory = join(city.dir, 'repository')
  makeRepository(directory, 'trunk')
  const rig = await made({ name: 'repository', path: 'repository' })
  assert.equal(rig.default_branch, 'trunk', 'found when the rig was added')
  assert.equal(rig.git, undefined, 'only where it is asked for')
  const facts = (look: (git: NonNullable<typeof rig.git>) => boolean) =>
    eventually('git facts', async () => {
      const { items } = await city.api.ask(listRigs, `${path()}?git=true`)
      const found = items.find(({ name }) => name === 'repository')?.git
      return found !== undefined && look(found) ? found : undefined
    })
  const clean = await facts(() => true)
  assert.deepEqual(
    { ...clean, observed_at: '' },
    { branch: 'trunk', clean: true, changed_files: 0, ahead: 0, behind: 0, observed_at: '' },
  )
  writeFileSync(join(directory, 'new'), 'x')
  writeFileSync(join(directory, 'README.md'), 'y')
  git(directory, 'checkout', '--quiet', '-b', 'topic')
  const dirty = await facts(({ clean: isClean }) => !isClean)
  assert.deepEqual([dirty.branch, dirty.changed_files], ['topic', 2])
  assert.ok(Date.parse(dirty.observed_at) > Date.parse(clean.observed_at))
  assert.deepEqual(asMap((await city.api.ask(getRig, `${path('repository')}?git=true`)).git).branch, 'topic')
  await send('DELETE', 'repository')
})

test('a directory that is no repository has no git facts, even where the city itself is one', async () => {
  await create({ name: 'plain', path: 'plain' })
  git(city.dir, 'init', '--quiet')
  await city.api.ask(getRig, `${path('plain')}?git=true`)
  makeRepository(join(city.dir, 'marker'))
  await create({ name: 'marker', path: 'marker' })
  // Both were asked for in this order, so the first has been looked at when the second is there.
  await eventually('facts of the other', async () => (await city.api.ask(getRig, `${path('marker')}?git=true`)).git)
  assert.equal((await city.api.ask(getRig, `${path('plain')}?git=true`)).git, undefined)
  for (const name of ['plain', 'marker']) await send('DELETE', name)
})

test('suspend and resume override the files, tell the log only what changed, and can be taken back', async () => {
  await create({ name: 'sleepy', path: 'sleepy' })
  const text = city.read('city.toml')
  const act = (action: string, options?: CallOptions) =>
    city.api.post(`${path('sleepy')}/${action}`, undefined, options)
  const suspended = await act('suspend')
  assert.deepEqual(suspended.body, await get('sleepy'))
  assert.equal((await act('suspend')).status, 200)
  assert.equal((await get('sleepy')).suspended, true)
  assert.equal(at((await act('resume')).body, 'suspended'), false)
  assert.deepEqual(await rigEvents('sleepy'), [
    ['rig.created', []],
    ['rig.suspended', ['suspended']],
    ['rig.resumed', ['suspended']],
  ])
  assert.equal(city.read('city.toml'), text, 'no file changes')

  const patched = await city.api.ask(patchRig, path('sleepy'), { body: { suspended_on_start: true } })
  assert.deepEqual([patched.suspended, patched.suspended_on_start], [false, true], 'the live override wins')
  assert.equal((await city.api.ask(patchRig, path('sleepy'), { body: { suspended: null } })).suspended, true)
  assert.equal(
    (await city.api.ask(patchRig, path('sleepy'), { body: { suspended: false, suspended_on_start: null } })).suspended,
    false,
  )
  assert.equal(city.read('city.toml'), text)

  const restarted = await act('restart')
  assert.deepEqual(restarted.body, await get('sleepy'))
  assertProblem(await act('explode'), 'validation-failed', /path\.action/)
  assertProblem(await act('suspend', { headers: { 'if-match': '"0123"' } }), 'precondition-failed')
  assertProblem(await city.api.post(`${path('none')}/suspend`), 'rig-not-found')
  await send('DELETE', 'sleepy')
})

test('a rig is suspended where all its agents are', async () => {
  await create({ name: 'idle', path: 'idle' })
  const text = city.read('city.toml')
  await save(`${text}\n[[agent]]\nname = "only"\ndir = "idle"\nprovider = "shell"\nsuspended = true\n`)
  assert.deepEqual([(await get('idle')).suspended, (await get('idle')).agent_count], [true, 1])
  await save(text)
  assert.equal((await get('idle')).suspended, false)
  await send('DELETE', 'idle')
})

test('a suspension of a rig that is gone does not come back with a new one of its name', async () => {
  await create({ name: 'phoenix', path: 'phoenix' })
  await city.api.post(`${path('phoenix')}/suspend`)
  await send('DELETE', 'phoenix')
  assert.equal((await made({ name: 'phoenix', path: 'phoenix' })).suspended, false)
  await send('DELETE', 'phoenix')
})

test('a waiting list answers when a rig changes, and not for other events', async () => {
  await create({ name: 'watched', path: 'watched' })
  const index = Number((await city.get('/rigs')).headers['x-svc-index'])
  let answered = false
  const waiting = city.get(`/rigs?index=${index + 1}&wait=60s`).finally(() => {
    answered = true
  })
  for (let at = 0; at < 3; at++) await city.post('/events', { type: 'mine.noise', actor: 'test' })
  assert.equal(answered, false)
  await city.api.post(`${path('watched')}/suspend`)
  const { body, headers } = await waiting
  assert.equal(at(body, 'items', 0, 'suspended'), true)
  assert.ok(Number(headers['x-svc-index']) > index + 1)
  assert.equal(
    (await city.get(`/rigs?index=${headers['x-svc-index']}&wait=10ms`)).status,
    200,
    'a time-out is an answer',
  )
  assertProblem(await city.get('/rigs?index=0&wait=3m'), 'validation-failed', /query\.wait/)
  assertProblem(await city.get('/rigs?index=x'), 'validation-failed', /query\.index/)
  await send('DELETE', 'watched')
})

test('a change goes where the rig is written, keeps what stands around it, and is taken back byte for byte', async () => {
  const before = city.read('city.toml')
  await save(
    `${before}\n[[rigs]] # by hand\nname = 'mine' # my own\npath = "mine" # here\n\n[rigs.formula_vars]\nteam = "a" # the team\n# The end.\n`,
  )
  const text = city.read('city.toml')
  const changed = await city.api.ask(patchRig, path('mine'), {
    body: { prefix: 'mi', default_branch: 'main', formula_vars: { team: 'b', size: 2 } },
  })
  assert.deepEqual(
    [changed.prefix, changed.default_branch, changed.formula_vars],
    ['mi', 'main', { team: 'b', size: 2 }],
  )
  assert.match(city.read('city.toml'), /team = "b" # the team/)
  assert.deepEqual((await rigEvents('mine')).at(-1), ['rig.updated', ['default_branch', 'formula_vars', 'prefix']])
  await send('PATCH', 'mine', { prefix: null, default_branch: null, formula_vars: { team: 'a', size: null } })
  assert.equal(city.read('city.toml'), text)

  const count = (await city.events('rig.*', 'config.*')).length
  assert.equal(
    (await send('PATCH', 'mine', {}, { headers: { 'content-type': 'application/merge-patch+json' } })).status,
    200,
  )
  assert.equal((await city.events('rig.*', 'config.*')).length, count)
  await send('DELETE', 'mine')
  await save(before)
})

test('a rig that has beads keeps its prefix, over the API and in the files; what was exported before is taken in again', async () => {
  const before = city.read('city.toml')
  const pair = (one: string, other: string) =>
    `${before}\n[[rigs]]\nname = "left"\npath = "left"\nprefix = "${one}"\n[[rigs]]\nname = "right"\npath = "right"\nprefix = "${other}"\n`
  await save(pair('le', 'ri'))
  const { id } = asMap((await city.post('/beads', { title: 'of the left', rig: 'left' })).body)
  const exported = (await city.get('/beads/export?rig=left')).text
  const refused = assertProblem(await send('PATCH', 'left', { prefix: 'new' }), 'still-referenced')
  assert.match(refused.detail, /left has 1 beads? whose ids begin with le-/)
  assert.equal((await send('PATCH', 'left', { prefix: 'le', default_branch: 'main' })).status, 200)
  assert.equal((await send('PATCH', 'right', { prefix: 'new' })).status, 200, 'it has none')
  city.write('city.toml', pair('ri', 'le'))
  const { type, payload } = await city.outcome(await city.post('/config/reload', {}))
  assert.equal(type, 'request.failed')
  assert.match(String(payload['error_message']), /its prefix cannot become/)
  assert.equal((await get('left')).prefix, 'le')
  // Gone from the files with its beads still there: they are known by themselves.
  await save(before)
  const { body } = await city.api.call('POST', `${city.base}/beads/import`, {
    bytes: exported
      .replace('of the left', 'another title')
      .replace(/"updated_at":"[^"]*"/, '"updated_at":"2099-01-01T00:00:00Z"'),
    headers: { 'content-type': LINES_TYPE },
  })
  assert.deepEqual([at(body, 'updated'), at(body, 'failed')], [1, 0])
  assert.equal(at((await city.get(`/beads/${String(id)}`)).body, 'title'), 'another title')
  await city.api.call('DELETE', `${city.base}/beads/${String(id)}`)
})

test('a rig moves: into the city, out of it, and to nowhere', async () => {
  const outside = join(supervisor.work, 'elsewhere')
  mkdirSync(outside)
  await create({ name: 'mover', path: 'mover' })
  const before = files()
  const moved = await city.api.ask(patchRig, path('mover'), { body: { path: outside } })
  assert.equal(moved.path, outside)
  assert.ok(!city.read('city.toml').includes('path = "mover"'))
  assert.deepEqual((await rigEvents('mover')).at(-1), ['rig.updated', ['path']])
  assert.equal((await city.api.ask(patchRig, path('mover'), { body: { path: 'mover' } })).path, join(city.dir, 'mover'))
  assert.equal(files()[1], before[1])
  assert.equal((await city.api.ask(patchRig, path('mover'), { body: { path: null } })).path, undefined)
  assertProblem(await send('PATCH', 'mover', { path: '../x' }), 'validation-failed', /inside the city/)
  assertProblem(await send('PATCH', 'mover', { path: join(supervisor.work, 'absent') }), 'validation-failed')
  await send('DELETE', 'mover')
})

test('a rig with work that is not done is not deleted without cascade, and the work outlives it', async () => {
  await made({ name: 'working', path: 'working' })
  const bead = async (title: string) => String(at((await city.post('/beads', { title, rig: 'working' })).body, 'id'))
  const [open, done] = [await bead('open'), await bead('done')]
  await city.post(`/beads/${done}/close`)
  const refused = assertProblem(await send('DELETE', 'working'), 'still-referenced')
  assert.deepEqual(refused.errors, [
    { location: 'path.name', message: `${open} belongs to it and is not closed`, value: open },
  ])
  assert.equal((await city.api.call('DELETE', `${path('working')}?cascade=true`)).status, 200)
  assert.equal(at((await city.get(`/beads/${open}`)).body, 'rig'), 'working')
})

test('a rig that is still named is not deleted without cascade, and all that names it goes with cascade', async () => {
  const before = city.read('city.toml')
  await create({ name: 'busy', path: 'busy' })
  const text = city.read('city.toml')
  const more = [
    '[[agent]] # of the rig',
    'name = "mason"',
    'dir = "busy"',
    'provider = "shell"',
    '',
    '[[agent]]',
    'name = "other"',
    'provider = "shell"',
    '',
    '[[named_session]]',
    'template = "mason"',
    'dir = "busy"',
    '',
    '[[patches.rigs]]',
    'name = "busy"',
    'default_branch = "main"',
    '',
    '[[patches.agent]]',
    'dir = "busy"',
    'name = "mason"',
    'nudge = "x"',
    '',
  ].join('\n')
  await save(`${text}\n${more}`)
  const refused = assertProblem(await send('DELETE', 'busy'), 'still-referenced', /cascade/)
  assert.deepEqual(refused.errors?.map(({ message }) => message.replace(/ names .*/, '')).sort(), [
    'agent mason',
    'named_session mason',
    'patch busy',
    'patch mason',
  ])
  assert.ok(refused.errors?.every(({ location }) => /^city\.toml:\d+$/.test(location)))
  const deleted = await city.api.call('DELETE', `${path('busy')}?cascade=true`)
  assert.deepEqual(asMap(deleted.body).removed, ['agent mason', 'named_session mason', 'patch mason', 'patch busy'])
  assert.match(city.read('city.toml'), /name = "other"/)
  assert.ok(!city.read('city.toml').includes('busy'))
  await save(before)
})

test('writes with a stale If-Match answer 412, change nothing, and make no directory', async () => {
  const stale = { headers: { 'if-match': '"0123"' } }
  assertProblem(await create({ name: 'late', path: 'late/deep' }, stale), 'precondition-failed')
  assert.ok(!existsSync(join(city.dir, 'late')))
  const list = await city.get('/rigs')
  const created = await create({ name: 'late', path: 'late' }, { headers: { 'if-match': String(list.headers.etag) } })
  assert.equal(created.status, 201, created.text)
  const fresh = { headers: { 'if-match': String(created.headers.etag) } }
  assertProblem(await send('PATCH', 'late', { prefix: 'xx' }, stale), 'precondition-failed')
  assertProblem(await send('PATCH', 'late', { suspended: true }, stale), 'precondition-failed')
  assertProblem(await send('DELETE', 'late', undefined, stale), 'precondition-failed')
  const acted = await city.api.post(`${path('late')}/suspend`, undefined, fresh)
  assert.equal(acted.status, 200)
  assertProblem(await send('DELETE', 'late', undefined, fresh), 'precondition-failed')
  assert.equal(
    (await send('DELETE', 'late', undefined, { headers: { 'if-match': String(acted.headers.etag) } })).status,
    200,
  )
})

test('a repeated create with the same key is done once and answered the same', async () => {
  const options = { headers: { 'idempotency-key': 'rig-1' } }
  const [first, second] = [
    await create({ name: 'once', path: 'once' }, options),
    await create({ name: 'once', path: 'once' }, options),
  ]
  assert.deepEqual([first.status, second.status], [201, 201])
  assert.deepEqual(second.body, first.body)
  assertProblem(await create({ name: 'once', path: 'twice' }, options), 'idempotency-mismatch')
  await send('DELETE', 'once')
})

test('refusals say what is wrong, and change nothing', async (t) => {
  await create({ name: 'there', path: 'there' })
  const before = [files(), readdirSync(city.dir)]
  await t.test('unknown', async () => {
    assertProblem(await send('PATCH', 'none', {}), 'rig-not-found')
    assertProblem(await send('DELETE', 'none'), 'rig-not-found')
    assertProblem(await city.get('/rigs/none'), 'rig-not-found')
  })
  await t.test('no path, or one that cannot be', async () => {
    assert.equal(assertProblem(await create({ name: 'x' }), 'validation-failed').errors?.[0]?.location, 'body.path')
    symlinkSync(supervisor.work, join(city.dir, 'way-out'))
    for (const bad of [
      '../x',
      '.',
      '',
      '.svc/x',
      'a/../../x',
      'city.toml',
      'city.toml/x',
      'way-out/x',
      'a\u0000b',
      'x'.repeat(300),
      city.dir,
      `${city.dir}/../x`,
    ]) {
      const refused = assertProblem(await create({ name: 'x', path: bad }), 'validation-failed')
      assert.equal(refused.errors?.[0]?.location, 'body.path', bad)
    }
    city.remove('way-out')
  })
  await t.test('a name that is taken, or none', async () => {
    assertProblem(await create({ name: 'there', path: 'x' }), 'name-taken', 'conflict: there is a rig there already')
    for (const name of ['', '7', '*', 'a/b', 'x'.repeat(65)]) {
      assert.equal(
        assertProblem(await create({ name, path: 'x' }), 'validation-failed').errors?.[0]?.location,
        'body.name',
      )
    }
    const cased = assertProblem(await create({ name: 'THERE', path: 'x', prefix: 'upper' }), 'invalid-config')
    assert.match(cased.detail, /only in case/)
  })
  await t.test('a prefix that another has, a target that does not exist', async () => {
    const { prefix } = await get('there')
    assertProblem(await create({ name: 'x', path: 'x', prefix }), 'invalid-config', /belongs to rig `there` already/)
    assertProblem(await send('PATCH', 'there', { default_sling_target: 'nobody' }), 'invalid-config')
    assertProblem(await send('PATCH', 'there', { formulas_dir: 'absent' }), 'invalid-config')
    assertProblem(await create({ name: 'x', path: 'x', prefix: 'No' }), 'validation-failed', /body\.prefix/)
    assertProblem(await create({ name: 'x', path: 'x', color: 'red' }), 'validation-failed', /color/)
  })
  await t.test('the files on disk are not valid', async () => {
    const text = city.read('city.toml')
    city.write('city.toml', `${text}\nnonsense`)
    assertProblem(await create({ name: 'x', path: 'x' }), 'conflict-config')
    assertProblem(await send('DELETE', 'there'), 'conflict-config')
    assert.equal((await city.get('/rigs')).status, 200)
    await save(text)
  })
  assert.deepEqual([files(), readdirSync(city.dir)], before, 'no file, and no directory')
  await send('DELETE', 'there')
})
