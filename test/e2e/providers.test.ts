import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { MASK } from '../../src/contract/base/merge-patch.ts'
import {
  createProvider,
  getProvider,
  listProviders,
  listPublicProviders,
  patchProvider,
} from '../../src/contract/providers.ts'
import { type ConfigCity, createCity } from '../support/config-city.ts'
import { at } from '../support/document.ts'
import { assertProblem, type CallOptions } from '../support/http.ts'
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

const path = (name = '') => `${city.base}/providers${name === '' ? '' : `/${encodeURIComponent(name)}`}`
const send = (method: string, name: string, body?: unknown, options: CallOptions = {}) =>
  city.api.call(method, path(name), body === undefined ? options : { ...options, body })
const create = (body: unknown, options?: CallOptions) => city.api.post(path(), body, options)
const get = (name: string) => city.api.ask(getProvider, path(name))

/** Appends to `city.toml` as a person does, and waits until it is in force. */
async function save(text: string): Promise<void> {
  city.write('city.toml', text)
  await city.outcome(await city.post('/config/reload', {}))
}

test('declared providers come first by name, then the other built-in ones; a declared one shows its whole chain', async () => {
  await create({
    name: 'zeta',
    base: 'claude',
    args_append: ['--verbose'],
    env: { TOKEN: 'hush', FROM: '$HOME_TOKEN' },
  })
  await create({ name: 'beta', command: 'cat' })
  const { items, total } = await city.api.ask(listProviders, path())
  assert.equal(total, items.length)
  const names = items.map(({ name }) => name)
  assert.deepEqual(names.slice(0, 3), ['beta', 'shell', 'zeta'])
  assert.equal(names[3], 'claude')
  assert.ok(!names.slice(3).includes('shell'), 'a declared built-in is listed once')

  const zeta = await get('zeta')
  assert.deepEqual(zeta.chain, ['provider:zeta', 'builtin:claude'])
  assert.equal(zeta.base, 'claude')
  assert.equal(zeta.command, 'claude', 'a derived provider shows what it inherits')
  assert.equal(zeta.args?.at(-1), '--verbose')
  assert.equal(zeta.raw.command, undefined)
  assert.deepEqual(zeta.raw.env, { TOKEN: MASK, FROM: '$HOME_TOKEN' })
  assert.deepEqual(zeta.env, { ...zeta.env, TOKEN: MASK, FROM: '$HOME_TOKEN' })
  assert.equal(zeta.city_level, true)
  assert.equal(zeta.builtin, false)
  assert.equal(zeta.file, 'city.toml')

  const claude = await get('claude')
  assert.deepEqual([claude.builtin, claude.city_level, claude.chain], [true, false, ['builtin:claude']])
  assert.equal(claude.file, undefined)
  const shell = await get('shell')
  assert.deepEqual([shell.builtin, shell.city_level, shell.chain], [true, true, ['provider:shell', 'builtin:shell']])
  for (const name of ['zeta', 'beta']) assert.equal((await send('DELETE', name)).status, 200)
})

test('what is known of a harness is told of whoever is based on it, with what it was checked against', async () => {
  await create({ name: 'careful', base: 'builtin:claude', option_defaults: { permission_mode: 'plan' } })
  const { harness } = await get('careful')
  assert.equal(harness?.name, 'claude')
  assert.deepEqual([harness.resumable, harness.names_conversations, harness.counts_usage], [true, true, true])
  assert.deepEqual(harness.acp, { command: 'claude-agent-acp', args: [] })
  assert.ok(harness.hooks?.permission && harness.hooks.events.includes('PermissionRequest'))
  assert.deepEqual([harness.hooks.files, harness.hooks.flags], [['hooks-settings.json'], ['--settings']])
  assert.equal(harness.permission_mode?.default, 'default')
  assert.ok(harness.permission_mode.choices.includes('unrestricted') && harness.models.includes('opus'))
  assert.ok(harness.screen.busy.length > 0 && harness.screen.startup_dialogs.includes('trust'))
  assert.ok(harness.sources.every(({ version, where }) => version !== '' && where !== '') && harness.sources.length > 0)
  const { items } = await city.api.ask(listProviders, path())
  assert.ok(items.filter(({ builtin }) => builtin).every((one) => one.harness?.name === one.name))
  await city.api.call('DELETE', path('careful'))
})

test('no answer ever holds the value of a variable', async (t) => {
  const created = await create({ name: 'secretive', command: 'cat', env: { KEY: 'hunter2' } })
  const texts = [
    created,
    await city.get('/providers'),
    await city.get('/providers/public'),
    await city.get('/providers/secretive'),
  ]
  const patched = await send('PATCH', 'secretive', { display_name: 'S' })
  for (const { text } of [...texts, patched, await city.get('/events?limit=1000')]) assert.ok(!text.includes('hunter2'))
  assert.match(city.read('city.toml'), /hunter2/)

  await t.test('what was read can be sent back', async () => {
    const { raw } = await get('secretive')
    assert.equal((await send('PATCH', 'secretive', { env: { ...raw.env, OTHER: 'x' } })).status, 200)
    assert.match(city.read('city.toml'), /hunter2/)
    const refused = await send('PATCH', 'secretive', { env: { NEW: MASK } })
    assert.equal(assertProblem(refused, 'validation-failed').errors?.[0]?.location, 'body.env.NEW')
    assertProblem(await create({ name: 'copy', command: 'cat', env: { KEY: MASK } }), 'validation-failed')
  })
  await send('DELETE', 'secretive')
})

test('the public list shows options over the whole chain, and nothing that would start a program', async () => {
  await create({ name: 'derived', base: 'claude', option_defaults: { permission_mode: 'plan' } })
  const { items } = await city.api.ask(listPublicProviders, path('public'))
  const derived = items.find(({ name }) => name === 'derived')
  const builtin = items.find(({ name }) => name === 'claude')
  assert.ok(derived && builtin)
  assert.deepEqual(derived.options_schema, builtin.options_schema)
  assert.ok(
    derived.options_schema.some(
      ({ key, choices }) => key === 'permission_mode' && choices.some(({ value }) => value === 'plan'),
    ),
  )
  assert.equal(derived.effective_defaults['permission_mode'], 'plan')
  assert.notEqual(builtin.effective_defaults['permission_mode'], 'plan')
  const { text } = await city.get('/providers/public')
  for (const word of ['flag_args', '"command"', '"args"', '"env"']) assert.ok(!text.includes(word), word)
  await send('DELETE', 'derived')
})

test('create and delete give the file back byte for byte; so do set and unset, comments and all', async () => {
  const before = `# First line.\n${city.read('city.toml')}\n# Last line, without a newline`
  await save(before)
  const created = await create({ name: 'cat', command: 'cat', args: ['-u'], env: { A: '1' }, ready_delay_ms: 5 })
  assert.equal(created.status, 201, created.text)
  assert.notEqual(city.read('city.toml'), before)
  assert.equal(at(created.body, 'revision'), String(created.headers.etag).replaceAll('"', ''))
  const between = city.read('city.toml')
  assert.equal(
    (
      await send('PATCH', 'cat', {
        display_name: 'Cat',
        option_defaults: null,
        env: { B: '2' },
        upstream_env: { api_key: 'K' },
      })
    ).status,
    200,
  )
  assert.equal((await send('PATCH', 'cat', { display_name: null, env: { B: null }, upstream_env: null })).status, 200)
  assert.equal(city.read('city.toml'), between)
  assert.equal((await send('PATCH', 'cat', { args: ['-v'], ready_delay_ms: 6 })).status, 200)
  assert.equal((await send('PATCH', 'cat', { args: ['-u'], ready_delay_ms: 5 })).status, 200)
  assert.equal(city.read('city.toml'), between)
  assert.equal((await send('DELETE', 'cat')).status, 200)
  assert.equal(city.read('city.toml'), before)
})

test('a provider written by hand in its own way is changed where it stands', async () => {
  const before = `${city.read('city.toml')}\n`
  const text = [
    '[providers.hand] # mine',
    "command = 'cat'   # quoted my way",
    'args = [',
    '  "-u", # unbuffered',
    ']',
    '[providers.hand.env]',
    'A = "1"',
    '[[providers.hand.options_schema]]',
    'key = "mode"',
    'choices = [{ value = "x" }]',
    '',
  ].join('\n')
  await save(before + text)
  const changed = await city.api.ask(patchProvider, path('hand'), { body: { command: 'tac', env: { A: '2', B: '3' } } })
  assert.equal(changed.command, 'tac')
  const after = city.read('city.toml')
  assert.match(after, /command = 'tac' {3}# quoted my way/)
  assert.match(after, /"-u", # unbuffered/)
  assert.match(after, /\[providers\.hand\.env\]\nA = "2"\nB = "3"/)
  const replaced = await city.api.ask(patchProvider, path('hand'), {
    body: { options_schema: [{ key: 'mode', choices: [{ value: 'y' }] }] },
  })
  assert.deepEqual(replaced.raw.options_schema, [{ key: 'mode', choices: [{ value: 'y' }] }])
  assert.equal((await send('DELETE', 'hand')).status, 200)
  assert.equal(city.read('city.toml'), before)
})

test('an empty patch changes nothing and answers with the provider', async () => {
  const before = [city.read('city.toml'), (await city.config()).revision, (await city.events('config.*')).length]
  const { status, headers } = await send(
    'PATCH',
    'shell',
    {},
    { headers: { 'content-type': 'application/merge-patch+json' } },
  )
  assert.equal(status, 200)
  assert.equal(headers.etag, `"${(await get('shell')).revision}"`)
  assert.deepEqual(
    [city.read('city.toml'), (await city.config()).revision, (await city.events('config.*')).length],
    before,
  )
})

test('writes with a stale If-Match answer 412 and change nothing; with the right one they go through', async () => {
  const before = city.read('city.toml')
  const stale = { headers: { 'if-match': '"0123"' } }
  assertProblem(await create({ name: 'late', command: 'cat' }, stale), 'precondition-failed')
  assertProblem(await send('PATCH', 'shell', { display_name: 'x' }, stale), 'precondition-failed')
  assertProblem(await send('DELETE', 'shell', undefined, stale), 'precondition-failed')
  assert.equal(city.read('city.toml'), before)
  const list = await city.get('/providers')
  const created = await create({ name: 'late', command: 'cat' }, { headers: { 'if-match': String(list.headers.etag) } })
  assert.equal(created.status, 201)
  const item = await city.get('/providers/late')
  const fresh = { headers: { 'if-match': String(item.headers.etag) } }
  const patched = await send('PATCH', 'late', { display_name: 'Late' }, fresh)
  assert.equal(patched.status, 200)
  assertProblem(await send('DELETE', 'late', undefined, fresh), 'precondition-failed')
  assert.equal(
    (await send('DELETE', 'late', undefined, { headers: { 'if-match': String(patched.headers.etag) } })).status,
    200,
  )
})

test('a repeated create with the same key is done once and answered the same', async () => {
  const options = { headers: { 'idempotency-key': 'provider-1' } }
  const [first, second] = [
    await create({ name: 'once', command: 'cat' }, options),
    await create({ name: 'once', command: 'cat' }, options),
  ]
  assert.equal(first.status, 201)
  assert.equal(second.status, 201)
  assert.deepEqual(second.body, first.body)
  assertProblem(await create({ name: 'once', command: 'tac' }, options), 'idempotency-mismatch')
  await send('DELETE', 'once')
})

test('every change is in force and announced before it is answered', async () => {
  const seen = (await city.events('config.reloaded')).length
  await city.api.ask(createProvider, path(), { body: { name: 'loud', command: 'cat' } })
  const events = (await city.events('config.reloaded')).slice(seen)
  assert.deepEqual(
    events.map(({ payload }) => at(payload, 'changed', 'providers')),
    [['loud']],
  )
  assert.equal((await city.config()).revision, events[0]?.payload.revision)
  const deleted = await send('DELETE', 'loud')
  assert.deepEqual(deleted.body, { status: 'deleted', name: 'loud', revision: (await city.config()).revision })
})

test('refusals say what is wrong, and change nothing', async (t) => {
  const before = city.read('city.toml')
  await t.test('unknown', async () => {
    assertProblem(await city.get('/providers/none'), 'provider-not-found', 'not_found: there is no provider none')
    assertProblem(await send('PATCH', 'none', {}), 'provider-not-found')
    assertProblem(await send('DELETE', 'none'), 'provider-not-found')
  })
  await t.test('neither command nor base', async () => {
    const refused = await create({ name: 'nothing', display_name: 'x' })
    assert.equal(assertProblem(refused, 'validation-failed').errors?.[0]?.location, 'body.command')
  })
  await t.test('a name that is reserved, or none', async () => {
    for (const name of ['public', '', 'a/b', 'a:b', 'x'.repeat(65)]) {
      assert.equal(
        assertProblem(await create({ name, command: 'cat' }), 'validation-failed').errors?.[0]?.location,
        'body.name',
      )
    }
    assertProblem(await create({ command: 'cat' }), 'validation-failed')
    assertProblem(await create({ name: 'x', command: 'cat', comand: 'cat' }), 'validation-failed', /comand/)
  })
  await t.test('taken', async () => {
    assertProblem(
      await create({ name: 'shell', base: 'builtin:shell' }),
      'name-taken',
      'conflict: there is a provider shell already, in city.toml',
    )
  })
  await t.test('built in and not declared', async () => {
    assertProblem(await send('PATCH', 'claude', { command: 'x' }), 'provider-builtin', /declare it first/)
    assertProblem(await send('DELETE', 'claude'), 'provider-builtin')
  })
  await t.test('still referenced', async () => {
    await create({ name: 'parent', command: 'cat' })
    await create({ name: 'child', base: 'parent' })
    const { errors } = assertProblem(
      await send('DELETE', 'parent'),
      'still-referenced',
      /provider child \(city\.toml:\d+\)/,
    )
    assert.deepEqual(
      errors?.map(({ message }) => message),
      ['provider child names it as base'],
    )
    for (const name of ['child', 'parent']) assert.equal((await send('DELETE', name)).status, 200)
  })
  await t.test('a base that does not exist, a circle, an option without such a choice', async () => {
    assertProblem(await create({ name: 'x', base: 'provider:nobody' }), 'invalid-config', /there is no provider/)
    assertProblem(await send('PATCH', 'shell', { base: 'provider:shell' }), 'invalid-config', /circle/)
    assertProblem(
      await create({ name: 'x', base: 'claude', option_defaults: { permission_mode: 'sometimes' } }),
      'invalid-config',
      /no choice/,
    )
    assertProblem(
      await send('PATCH', 'shell', { prompt_mode: 'flag', prompt_flag: null }),
      'invalid-config',
      /prompt_flag/,
    )
  })
  await t.test('text that no file can hold', async () => {
    const answer = await city.api.call('POST', path(), {
      bytes: '{"name":"x","command":"\\ud800"}',
      headers: { 'content-type': 'application/json' },
    })
    assertProblem(answer, 'invalid-request', /half of a surrogate pair/)
  })
  await t.test('the files on disk are not valid', async () => {
    city.write('city.toml', `${before}\nnonsense`)
    assertProblem(await create({ name: 'x', command: 'cat' }), 'conflict-config')
    assert.equal((await city.get('/providers')).status, 200, 'what is in force can be read')
    await save(before)
  })
  assert.equal(city.read('city.toml'), before)
})

test('a provider of a pack is read, refuses changes, and can be declared over', async () => {
  const before = city.read('city.toml')
  city.write('packs/tools/pack.toml', '[pack]\nname = "tools"\nschema = 2\n\n[providers.packed]\ncommand = "cat"\n')
  const pack = city.read('pack.toml')
  city.write('pack.toml', `${pack}\n[imports.tools]\nsource = "packs/tools"\n`)
  await city.outcome(await city.post('/config/reload', {}))
  assert.match(String((await get('packed')).file), /pack\.toml$/)
  assertProblem(await send('PATCH', 'packed', { command: 'tac' }), 'pack-derived')
  assertProblem(await send('DELETE', 'packed'), 'pack-derived')
  assert.equal(
    (await city.api.ask(createProvider, path(), { body: { name: 'packed', command: 'tac' } })).command,
    'tac',
  )
  assert.equal((await send('DELETE', 'packed')).status, 200)
  assert.equal((await get('packed')).command, 'cat')
  assert.equal(city.read('city.toml'), before)
})

test('a built-in provider works by its name alone, and its list, its agent and explain say where it comes from', async () => {
  const before = city.read('city.toml')
  await save(before.replace(/provider = "\w+"\n[\s\S]*$/, 'provider = "claude"\n'))
  assert.deepEqual((await city.config()).last_error, undefined)
  const made = await city.post('/agents', { name: 'coder', provider: 'codex' })
  assert.equal(made.status, 201, made.text)
  const [event] = (await city.events('config.reloaded')).slice(-1)
  assert.deepEqual(at(event?.payload, 'changed', 'providers'), [], 'what is built in has not changed')
  const patched = await city.api.call('PUT', `${city.base}/patches/providers`, {
    body: { name: 'kimi', display_name: 'Ours' },
  })
  assert.equal(patched.status, 201, patched.text)
  const { items } = await city.api.ask(listProviders, path())
  const used = items.filter((provider) => provider.used).map(({ name, city_level }) => [name, city_level])
  assert.deepEqual(used, [
    ['claude', false],
    ['codex', false],
  ])
  assert.equal((await get('kimi')).display_name, 'Ours')
  const { body } = await city.get('/config/explain?provider=codex')
  assert.deepEqual(at(body, 'providers', 0, 'origin'), 'builtin')
  assert.deepEqual(at(body, 'providers', 0, 'chain'), ['builtin:codex'])
  assert.equal(at(body, 'providers', 0, 'fields', 'command', 'layer'), 'builtin')
  await city.api.call('DELETE', `${city.base}/patches/providers/kimi`)
  await city.api.call('DELETE', `${city.base}/agents/coder`)
  await save(before)
})

test('a built-in provider declared with changes is as built in again once that is deleted', async () => {
  const before = city.read('city.toml')
  await create({ name: 'claude', base: 'claude', display_name: 'Careful' })
  await city.post('/agents', { name: 'coder', provider: 'claude' })
  assert.equal((await get('claude')).display_name, 'Careful')
  assert.equal((await send('DELETE', 'claude')).status, 200)
  const claude = await get('claude')
  assert.deepEqual([claude.city_level, claude.used, claude.chain], [false, true, ['builtin:claude']])
  assert.notEqual(claude.display_name, 'Careful')
  await city.api.call('DELETE', `${city.base}/agents/coder`)
  assert.equal(city.read('city.toml'), before)
})
