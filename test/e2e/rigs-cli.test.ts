// The command line of providers, rigs and patches against a real supervisor.
import assert from 'node:assert/strict'
import { existsSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { cliHere } from '../support/cli.ts'
import { type ConfigCity, createCity } from '../support/config-city.ts'
import { asMap, at } from '../support/document.ts'
import { startGitServer } from '../support/git-server.ts'
import { type Running, run as runSupervisor } from '../support/running.ts'
import { temporaryDirectory } from '../support/temporary.ts'

const scratch = temporaryDirectory()
let host: Awaited<ReturnType<typeof startGitServer>>
let running: Running
let city: ConfigCity
before(async () => {
  host = await startGitServer(join(scratch.path, 'git'))
  running = await runSupervisor({ toml: `[supervisor]\nallowed_pack_hosts = ["${host.host}"]\n` })
  city = await createCity(running.server, 'alpha')
})
after(async () => {
  city.api.close()
  await running[Symbol.asyncDispose]()
  await host[Symbol.asyncDispose]()
  scratch[Symbol.dispose]()
})

const run = (line: readonly string[], input?: string) =>
  cliHere([...line], {
    cwd: city.dir,
    env: { SVC_API: running.server.url, SVC_CITY: 'alpha' },
    ...(input === undefined ? {} : { input }),
  })
/** Succeeds, says nothing on stderr, and answers with stdout. */
async function does(...line: readonly string[]): Promise<string> {
  const { out, err, code } = await run([...line, '-q'])
  assert.equal(code, 0, `${line.join(' ')}: ${err}`)
  assert.equal(err, '')
  return out
}
const json = async (...line: readonly string[]): Promise<unknown> => JSON.parse(await does(...line, '-o', 'json'))
async function fails(code: number, said: RegExp, ...line: readonly string[]): Promise<void> {
  const { out, err, code: exit } = await run(line)
  assert.equal(exit, code, err)
  assert.match(err, said)
  assert.equal(out, '')
}

test('a provider is declared, changed, shown and removed; the file is as before', async () => {
  const before = city.read('city.toml')
  const created = await json(
    'provider',
    'create',
    'careful',
    '--base',
    'claude',
    '--set',
    'option_defaults.permission_mode=plan',
    '--set',
    'ready_delay_ms=5',
  )
  assert.deepEqual(
    [at(created, 'base'), at(created, 'raw', 'option_defaults', 'permission_mode'), at(created, 'ready_delay_ms')],
    ['claude', 'plan', 5],
  )
  const updated = await json(
    'provider',
    'update',
    'careful',
    '--data',
    '{"display_name":"Careful"}',
    '--unset',
    'ready_delay_ms',
  )
  assert.equal(at(updated, 'display_name'), 'Careful')
  assert.equal(asMap(at(updated, 'raw')).ready_delay_ms, undefined)
  assert.match(await does('provider', 'list', '-o', 'name'), /^careful\nshell\n/)
  assert.match(await does('provider', 'list', '--options'), /^careful\tpermission_mode\tplan\t/m)
  assert.match(await does('provider', 'get', 'careful'), /^chain\tprovider:careful < builtin:claude$/m)
  await fails(5, /conflict|precondition/, 'provider', 'delete', 'careful', '--if-match', '0123')
  assert.match(
    await does('provider', 'delete', 'careful', '--if-match', String(at(updated, 'revision'))),
    /^status\tdeleted$/m,
  )
  await fails(3, /no provider careful/, 'provider', 'get', 'careful')
  await fails(5, /built in/, 'provider', 'update', 'claude', '--set', 'command=x')
  await fails(2, /expected FIELD=VALUE/, 'provider', 'update', 'shell', '--set', 'command')
  await fails(2, /JSON object/, 'provider', 'update', 'shell', '--data', '[]')
  assert.equal(city.read('city.toml'), before)
  assert.match(await does('provider', 'readiness', 'shell'), /^shell\tconfigured/m)
})

test('a rig is added from here, suspended, changed and removed', async () => {
  const before = city.read('city.toml')
  const outside = join(running.work, 'src')
  mkdirSync(outside, { recursive: true })
  assert.equal(at(await json('rig', 'create', 'outer', outside), 'path'), outside)
  assert.equal(at(await json('rig', 'create', 'inner', 'inner', '--prefix', 'in'), 'path'), join(city.dir, 'inner'))
  assert.match(city.read('city.toml'), /path = "inner"/)
  assert.equal(await does('rig', 'list', '-o', 'name'), 'inner\nouter\n')
  assert.match(await does('rig', 'suspend', 'inner'), /^suspended\ttrue$/m)
  assert.match(await does('rig', 'resume', 'inner'), /^suspended\tfalse$/m)
  assert.equal(at(await json('rig', 'restart', 'inner'), 'name'), 'inner')
  assert.equal(
    at(
      await json('rig', 'update', 'inner', '--set', 'default_branch=main', '--set', 'formula_vars.size=3'),
      'formula_vars',
      'size',
    ),
    3,
  )
  assert.match(await does('rig', 'get', 'inner'), /^default_branch\tmain$/m)
  await does('patch', 'put', 'rig', 'inner', '--set', 'default_branch=trunk')
  await fails(5, /still in use/, 'rig', 'delete', 'inner')
  await fails(2, /--yes/, 'rig', 'delete', 'inner', '--cascade')
  assert.deepEqual(at(await json('rig', 'delete', 'inner', '--cascade', '--yes'), 'removed'), ['patch inner'])
  await does('rig', 'delete', 'outer')
  assert.equal(city.read('city.toml'), before)
  await fails(3, /no rig inner/, 'rig', 'get', 'inner')
  await fails(6, /path/, 'rig', 'create', 'x')
})

test('a clone is waited for, or left to go on', async () => {
  const { source } = host.repository('shop', { a: 'b' })
  const outcome = await json('rig', 'create', 'shop', '--git-url', source, '--wait')
  assert.deepEqual([at(outcome, 'rig'), at(outcome, 'default_branch')], ['shop', 'main'])
  assert.ok(existsSync(join(city.dir, 'rigs/shop/a')))
  const failed = await run(['rig', 'create', 'gone', '--git-url', `${host.url}/gone.git`, '--wait'])
  assert.equal(failed.code, 9, failed.err)
  assert.match(failed.err, /clone_failed/)
  const { source: second } = host.repository('second', { a: 'b' })
  const accepted = await json('rig', 'create', 'second', '--git-url', second, '--no-wait')
  const id = String(at(accepted, 'request_id'))
  assert.equal(at(await json('request', 'wait', id), 'rig'), 'second')
  assert.match(await does('request', 'list', '--operation', 'rig.create', '-o', 'name'), new RegExp(id))
  await fails(2, /mutually exclusive/, 'rig', 'create', 'x', 'y', '--git-url', source)
  for (const rig of ['shop', 'second']) await does('rig', 'delete', rig)
})

test('patches are put, merged, listed, shown and removed', async () => {
  const before = city.read('city.toml')
  await does('patch', 'put', 'agent', 'core.worker', '--set', 'nudge=go on', '--set', 'max_active_sessions=2')
  const merged = await json('patch', 'put', 'agent', 'core.worker', '--merge', '--set', 'env.MODE=fast')
  assert.deepEqual([at(merged, 'nudge'), at(merged, 'max_active_sessions')], ['go on', 2])
  assert.equal(asMap(await json('patch', 'put', 'agent', 'core.worker', '--unset', 'nudge')).nudge, undefined)
  await does('patch', 'put', 'provider', 'shell', '--data', '{"display_name":"Mine"}')
  assert.match(
    await does('patch', 'list'),
    /^agent\tcore\.worker\tmax_active_sessions, env\tcity\.toml:\d+\nprovider\tshell\tdisplay_name\t/m,
  )
  assert.equal(await does('patch', 'list', 'provider', '-o', 'name'), 'shell\n')
  assert.deepEqual(Object.keys(JSON.parse(await does('patch', 'list', '-o', 'json'))), ['agents', 'rigs', 'providers'])
  assert.match(await does('patch', 'get', 'agent', 'core.worker'), /^max_active_sessions\t2$/m)
  await does('patch', 'delete', 'agent', 'core.worker')
  await does('patch', 'delete', 'provider', 'shell')
  await fails(3, /no patch of the agent shop\/mason/, 'patch', 'get', 'agent', 'shop/mason')
  await fails(6, /nobody/, 'patch', 'put', 'rig', 'nobody', '--set', 'default_branch=x')
  await fails(2, /unknown command 'city'/, 'patch', 'get', 'city', 'x')
  assert.equal(city.read('city.toml'), before)
})
