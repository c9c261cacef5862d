import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { MASK } from '../../src/contract/base/merge-patch.ts'
import { type ConfigCity, createCity } from '../support/config-city.ts'
import { asMap, at } from '../support/document.ts'
import { assertProblem, type CallOptions } from '../support/http.ts'
import { type RunningSupervisor, startSupervisor } from '../support/supervisor.ts'

let supervisor: RunningSupervisor
let city: ConfigCity
before(async () => {
  supervisor = await startSupervisor()
  city = await createCity(supervisor, 'alpha')
  assert.equal((await city.post('/rigs', { name: 'shop', path: 'shop' })).status, 201)
  const text = city.read('city.toml')
  await save(
    `${text}\n[[agent]]\nname = "clerk"\ndir = "shop"\nprovider = "shell"\nenv = { MODE = "slow", KEEP = "1" }\n# The end.\n`,
  )
})
after(async () => {
  city.api.close()
  await supervisor[Symbol.asyncDispose]()
})

async function save(text: string): Promise<void> {
  city.write('city.toml', text)
  await city.outcome(await city.post('/config/reload', {}))
}

const send = (method: string, path: string, body?: unknown, options: CallOptions = {}) =>
  city.api.call(method, `${city.base}/patches/${path}`, body === undefined ? options : { ...options, body })
const list = async (kind: string) => {
  const { body } = await city.get(`/patches/${kind}`)
  const items = at(body, 'items')
  assert.ok(Array.isArray(items))
  assert.equal(at(body, 'total'), items.length)
  return items.map(asMap)
}
const explained = async (query: string, ...path: readonly (string | number)[]) =>
  at((await city.get(`/config/explain?${query}`)).body, ...path)

/** One target of each kind, with two whole patches for it and a merge of the second. */
const KINDS = [
  {
    kind: 'agents',
    item: 'agents/core.worker',
    keys: { name: 'core.worker' },
    first: { nudge: 'go on', env: { A: '1' }, pre_start_append: ['true'] },
    second: { nudge: 'hurry', max_active_sessions: 2 },
    change: { nudge: null, min_active_sessions: 1, args: ['-x'] },
    merged: { max_active_sessions: 2, min_active_sessions: 1, args: ['-x'] },
  },
  {
    kind: 'agents',
    item: 'agents/shop/clerk',
    keys: { dir: 'shop', name: 'clerk' },
    first: { suspended: true, env_remove: ['MODE'] },
    second: { suspended: false },
    change: { suspended: null, attach: false },
    merged: { attach: false },
  },
  {
    kind: 'rigs',
    item: 'rigs/shop',
    keys: { name: 'shop' },
    first: { default_branch: 'trunk', formula_vars: { team: 'a', size: 3, fast: true } },
    second: { default_branch: 'main' },
    change: { formula_vars: { team: 'b' }, suspended_on_start: true },
    merged: { default_branch: 'main', formula_vars: { team: 'b' }, suspended_on_start: true },
  },
  {
    kind: 'providers',
    item: 'providers/shell',
    keys: { name: 'shell' },
    first: { display_name: 'Patched', args_append: ['-u'], env: { B: '2' } },
    second: { ready_delay_ms: 7 },
    change: { display_name: 'Again', ready_delay_ms: null },
    merged: { display_name: 'Again' },
  },
] as const

const withoutSecrets = (fields: object) =>
  'env' in fields
    ? { ...fields, env: Object.fromEntries(Object.keys(asMap(fields.env)).map((key) => [key, MASK])) }
    : fields

for (const { kind, item, keys, first, second, change, merged } of KINDS) {
  test(`${item}: put, get, replace, merge and delete; the file is as before at the end`, async () => {
    const text = city.read('city.toml')
    assertProblem(await city.get(`/patches/${item}`), 'patch-not-found', /^not_found: there is no patch of the /)
    const created = await send('PUT', item, first)
    assert.equal(created.status, 201, created.text)
    const { file, line, revision, ...fields } = asMap(created.body)
    assert.deepEqual(fields, { ...keys, ...withoutSecrets(first) })
    assert.equal(file, 'city.toml')
    assert.match(city.read('city.toml').split('\n')[Number(line) - 1] ?? '', /^\[\[patches\./)
    assert.equal(created.headers.etag, `"${String(revision)}"`)
    assert.deepEqual((await city.get(`/patches/${item}`)).body, created.body)
    assert.deepEqual(await list(kind), [created.body], 'the list shows what the file says')

    const again = await send('PUT', item, first)
    assert.equal(again.status, 200, 'the same once more')
    assert.equal(at(again.body, 'revision'), revision)
    const replaced = await send('PUT', kind, { ...keys, ...second })
    assert.equal(replaced.status, 200, replaced.text)
    assert.deepEqual(
      { ...asMap(replaced.body), file, line, revision },
      { ...keys, ...second, file, line, revision },
      'nothing of the first is left',
    )
    const restored = await send('PUT', item, { ...first, ...keys })
    assert.deepEqual(restored.body, created.body)

    await send('PUT', item, second)
    const { file: _1, line: _2, revision: _3, ...after } = asMap((await send('PATCH', item, change)).body)
    assert.deepEqual(after, { ...keys, ...merged })
    const deleted = await send('DELETE', item)
    assert.deepEqual(deleted.body, { status: 'deleted', kind, ...keys, revision: (await city.config()).revision })
    assertProblem(await send('DELETE', item), 'patch-not-found')
    assert.equal(city.read('city.toml'), text)
  })
}

test('a patch is in force at once, counts in the configuration, and explains itself', async () => {
  await send('PUT', 'agents/shop/clerk', { env: { MODE: 'fast' }, env_remove: ['KEEP'] })
  const fields = asMap(await explained('agent=shop/clerk', 'agents', 0, 'fields'))
  assert.equal(at(fields['env.MODE'], 'layer'), 'city_patch')
  assert.equal(fields['env.KEEP'], undefined)
  assert.deepEqual(at((await city.get('/config')).body, 'patches'), { agent_count: 1, rig_count: 0, provider_count: 0 })
  await send('DELETE', 'agents/shop/clerk')
})

test('values of variables are masked, can be sent back, and are kept', async () => {
  const text = city.read('city.toml')
  const created = await send('PUT', 'agents/shop/clerk', { env: { KEY: 'hunter2', FROM: '$OUTER' } })
  assert.ok(!created.text.includes('hunter2'))
  const read = asMap(at((await city.get('/patches/agents/shop/clerk')).body, 'env'))
  assert.deepEqual(read, { KEY: MASK, FROM: '$OUTER' })
  assert.equal((await send('PUT', 'agents/shop/clerk', { env: read, nudge: 'go' })).status, 200)
  assert.match(city.read('city.toml'), /hunter2/)
  assertProblem(
    await send('PATCH', 'agents/shop/clerk', { env: { OTHER: MASK } }),
    'validation-failed',
    /body\.env\.OTHER/,
  )
  await send('DELETE', 'agents/shop/clerk')
  assert.equal(city.read('city.toml'), text)
})

test('a patch of a fragment is listed with its file, and changed and removed there', async () => {
  const text = city.read('city.toml')
  const fragment = '# Mine.\n[[patches.rigs]]\nname = "shop" # the shop\ndefault_branch = "main"\n'
  city.write('more.toml', fragment)
  await save(`include = ["more.toml"]\n${text}`)
  assert.deepEqual(
    (await list('rigs')).map(({ name, file, line }) => [name, file, line]),
    [['shop', 'more.toml', 2]],
  )
  assert.equal((await send('PATCH', 'rigs/shop', { default_branch: 'trunk' })).status, 200)
  assert.equal(city.read('more.toml'), fragment.replace('"main"', '"trunk"'))
  assert.equal((await send('DELETE', 'rigs/shop')).status, 200)
  assert.ok(!city.read('more.toml').includes('patches'))
  await save(text)
  city.remove('more.toml')
})

test('an empty merge changes nothing; sent as a merge patch it is taken too', async () => {
  await send('PUT', 'rigs/shop', { default_branch: 'main' })
  const before = [city.read('city.toml'), (await city.events('config.*')).length]
  const merged = await send('PATCH', 'rigs/shop', {}, { headers: { 'content-type': 'application/merge-patch+json' } })
  assert.equal(merged.status, 200)
  assert.deepEqual([city.read('city.toml'), (await city.events('config.*')).length], before)
  await send('DELETE', 'rigs/shop')
})

test('writes with a stale If-Match answer 412 and change nothing', async () => {
  const stale = { headers: { 'if-match': '"0123"' } }
  const text = city.read('city.toml')
  assertProblem(await send('PUT', 'rigs', { name: 'shop', default_branch: 'x' }, stale), 'precondition-failed')
  assertProblem(await send('PUT', 'rigs/shop', { default_branch: 'x' }, stale), 'precondition-failed')
  assert.equal(city.read('city.toml'), text)
  const created = await send('PUT', 'rigs/shop', { default_branch: 'main' })
  const fresh = { headers: { 'if-match': String(created.headers.etag) } }
  assertProblem(await send('PATCH', 'rigs/shop', { default_branch: 'x' }, stale), 'precondition-failed')
  assertProblem(await send('DELETE', 'rigs/shop', undefined, stale), 'precondition-failed')
  assert.equal((await send('PATCH', 'rigs/shop', { default_branch: 'y' }, fresh)).status, 200)
  assertProblem(await send('PUT', 'rigs/shop', { default_branch: 'z' }, fresh), 'precondition-failed')
  assert.equal((await send('DELETE', 'rigs/shop')).status, 200)
  assert.equal(city.read('city.toml'), text)
})

test('refusals say what is wrong, and change nothing', async (t) => {
  const text = city.read('city.toml')
  await t.test('a target that does not exist', async () => {
    assertProblem(await send('PUT', 'agents/nobody', { nudge: 'x' }), 'invalid-config', /nobody/)
    assertProblem(await send('PUT', 'agents/nowhere/worker', { nudge: 'x' }), 'invalid-config')
    assertProblem(
      await send('PUT', 'rigs/nowhere', { default_branch: 'x' }),
      'invalid-config',
      /there is no rig `nowhere` to patch/,
    )
    const undeclared = assertProblem(await send('PUT', 'providers/nobody', { command: 'x' }), 'invalid-config')
    assert.match(undeclared.errors?.[0]?.message ?? '', /declare it/)
    assert.match(undeclared.errors?.[0]?.location ?? '', /^city\.toml:\d+:\d+$/)
  })
  await t.test('no target, an empty one, or another than the path names', async () => {
    for (const kind of ['agents', 'rigs', 'providers']) {
      assert.equal(assertProblem(await send('PUT', kind, {}), 'validation-failed').errors?.[0]?.location, 'body.name')
      assert.equal(
        assertProblem(await send('PUT', kind, { name: '' }), 'validation-failed').errors?.[0]?.location,
        'body.name',
      )
    }
    assertProblem(await send('PUT', 'rigs/shop', { name: 'other' }), 'validation-failed', /body\.name/)
    assertProblem(await send('PUT', 'agents/shop/clerk', { dir: 'other' }), 'validation-failed', /body\.dir/)
    assertProblem(await send('PUT', 'agents/core.worker', { dir: 'shop' }), 'validation-failed', /body\.dir/)
  })
  await t.test('fields that do not exist, or of another type', async () => {
    assertProblem(await send('PUT', 'agents/core.worker', { nugde: 'x' }), 'validation-failed', /nugde/)
    assertProblem(await send('PUT', 'agents/core.worker', { scope: 'rig' }), 'validation-failed')
    assertProblem(await send('PUT', 'rigs/shop', { prefix: 7 }), 'validation-failed')
    assertProblem(await send('PATCH', 'rigs/shop', { prefix: 7 }), 'validation-failed')
    assertProblem(
      await send('PUT', 'agents/core.worker', { idle_timeout: 'soon' }),
      'invalid-config',
      /idle_timeout|duration/,
    )
  })
  await t.test('a merge into nothing', async () => {
    for (const { item } of KINDS) assertProblem(await send('PATCH', item, {}), 'patch-not-found')
  })
  await t.test('the files on disk are not valid', async () => {
    city.write('city.toml', `${text}\nnonsense`)
    assertProblem(await send('PUT', 'rigs/shop', { default_branch: 'x' }), 'conflict-config')
    assertProblem(await send('PUT', 'providers', { name: 'shell', display_name: 'x' }), 'conflict-config')
    await save(text)
  })
  assert.equal(city.read('city.toml'), text)
})
