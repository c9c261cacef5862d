/** Files that are not valid, and how they become so: by edits over the API and the command line, one error at a time. */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { createProvider } from '../../src/contract/providers.ts'
import { cli as run } from '../support/cli.ts'
import { type ConfigCity, cityAgain, createCity } from '../support/config-city.ts'
import { at } from '../support/document.ts'
import { assertProblem, eventually } from '../support/http.ts'
import { type RunningSupervisor, startSupervisor } from '../support/supervisor.ts'

let supervisor: RunningSupervisor
before(async () => {
  supervisor = await startSupervisor()
})
after(() => supervisor[Symbol.asyncDispose]())

const WRONG = '\n[agent_defaults]\nprovider = "ours"\n\n[daemon]\nmax_restart = 3\n'

/** A city whose `city.toml` has been rejected, and was found to be so. */
async function rejected(name: string, added = WRONG): Promise<{ city: ConfigCity; sound: string }> {
  const city = await createCity(supervisor, name)
  const sound = city.read('city.toml')
  city.write('city.toml', sound + added)
  await eventually('the rejection', async () => (await city.config()).last_error)
  return { city, sound }
}
const errors = async (city: ConfigCity) => (await city.config()).last_error?.issues.map(({ key }) => key)

test('an edit that mends a rejected configuration puts it into force', async () => {
  const { city } = await rejected('mended', '\n[agent_defaults]\nprovider = "ours"\n')
  const made = await city.api.ask(createProvider, `${city.base}/providers`, { body: { name: 'ours', command: 'cat' } })
  assert.equal(made.name, 'ours')
  assert.equal(await errors(city), undefined)
  assert.equal((await city.get('/providers/ours')).status, 200)
})

test('an edit that leaves less wrong than before is written and waits, and its answer says for what', async () => {
  const { city } = await rejected('waiting')
  assert.deepEqual(await errors(city), ['agent_defaults.provider', 'daemon.max_restart'])
  const since = at((await city.config()).last_error, 'since')
  const made = await city.post('/providers', { name: 'ours', command: 'cat' })
  assert.equal(made.status, 201, made.text)
  assert.match(String(made.headers['x-svc-config-rejected']), /^city\.toml:\d+:1: unknown key `max_restart`$/)
  assert.equal((await city.get('/providers/ours')).status, 404, 'it is not in force')
  assert.deepEqual(await errors(city), ['daemon.max_restart'])
  assert.equal(at((await city.config()).last_error, 'since'), since)
  assert.equal((await city.events('config.rejected')).length, 2)

  const fixed = await city.put('city.toml', city.read('city.toml').replace('max_restart ', 'max_restarts '))
  assert.equal(fixed.status, 200, fixed.text)
  assert.equal(fixed.headers['x-svc-config-rejected'], undefined)
  assert.equal(await errors(city), undefined)
  assert.equal((await city.get('/providers/ours')).status, 200)
})

test('what somebody wrote by hand with an error in it is mended and removed by its name', async () => {
  const { city } = await rejected('by-name', '\n[providers.ours]\nbase = "builtin:nothing"\n')
  const mended = await city.api.call('PATCH', `${city.base}/providers/ours`, { body: { base: 'builtin:shell' } })
  assert.equal(mended.status, 200, mended.text)
  assert.equal(await errors(city), undefined)

  const { city: second } = await rejected('removed-by-name', '\n[providers.ours]\nbase = "builtin:nothing"\n')
  const removed = await second.api.call('DELETE', `${second.base}/providers/ours`)
  assert.equal(removed.status, 200, removed.text)
  assert.equal(await errors(second), undefined)

  const named = '\n[agent_defaults]\nprovider = "ours"\n[providers.ours]\nbase = "builtin:nothing"\n'
  const { city: third } = await rejected('named-by-name', named)
  assertProblem(await third.api.call('DELETE', `${third.base}/providers/ours`), 'still-referenced', /agent_defaults/)

  const { city: other } = await rejected('agent-by-name')
  other.write('agents/new/agent.toml', 'provider = "nobody"\n')
  const told = async () => /nobody/.exec(JSON.stringify((await other.config()).last_error)) ?? undefined
  await eventually('the error of the agent', told)
  const agent = await other.api.call('PATCH', `${other.base}/agents/new`, { body: { provider: 'shell' } })
  assert.equal(agent.status, 200, agent.text)
  assert.match(other.read('agents/new/agent.toml'), /provider = "shell"/)
})

test('an edit that adds an error to a rejected configuration is refused, and names the new one alone', async () => {
  const { city } = await rejected('worse')
  const before = city.read('city.toml')
  const answer = await city.put('city.toml', `# Moved by a line.\n${before}idle = 3\n`)
  const { errors: named } = assertProblem(answer, 'invalid-config', /unknown key `idle`/)
  assert.deepEqual(
    named?.map(({ message }) => message),
    ['unknown key `idle`'],
  )
  assertProblem(await city.post('/providers', { name: 'x', base: 'provider:none' }), 'invalid-config', /provider:none/)
  assert.equal(city.read('city.toml'), before)
})

test('a file that is no TOML is mended step by step, and what it hid is told', async () => {
  const { city, sound } = await rejected('syntax', '\n[daemon\nmax_restart = 3\n')
  assertProblem(await city.post('/providers', { name: 'x', command: 'cat' }), 'conflict-config')
  const half = await city.put('city.toml', `${sound}\n[daemon]\nmax_restart = 3\n`)
  assert.equal(half.status, 200, half.text)
  assert.deepEqual(at(half.body, 'rejected', 0, 'key'), 'daemon.max_restart')
  const whole = await city.put('city.toml', sound)
  assert.equal(whole.status, 200, whole.text)
  assert.equal(await errors(city), undefined)
})

test('an agent file that cannot be read is put right while city.toml has errors of its own', async () => {
  const { city } = await rejected('two')
  city.write('agents/a/agent.toml', 'provider = \n')
  await eventually('the rejection of both', async () => ((await errors(city))?.includes('') ? true : undefined))
  const answer = await city.put('agents/a/agent.toml', 'provider = "shell"\n')
  assert.equal(answer.status, 200, answer.text)
  assert.deepEqual(await errors(city), ['agent_defaults.provider', 'daemon.max_restart'])
})

test('what a person saves between a look and an edit is not lost, valid or not', async () => {
  const { city, sound } = await rejected('meanwhile')
  for (const text of [`${sound}${WRONG}# mine\n`, `${sound}# mine\n`]) {
    city.write('city.toml', text)
    const answers = await Promise.all(
      ['one', 'two'].map((name) => city.put(`agents/${name}/agent.toml`, 'provider = "shell"\n')),
    )
    for (const answer of answers) if (answer.status === 409) assertProblem(answer, 'conflict-config', /meanwhile/)
    assert.equal(city.read('city.toml'), text)
  }
})

test('an edit whose effect cannot wait is refused while the files stay rejected', async () => {
  const { city } = await rejected('now')
  const before = city.read('city.toml')
  assertProblem(
    await city.post('/rigs', { name: 'shop', path: 'shop' }),
    'conflict-config',
    /not valid, mend them first: city\.toml:\d+:\d+: /,
  )
  assert.equal(city.read('city.toml'), before)
})

test('a rejected configuration shows wherever one looks at the city, also after a restart on it', async () => {
  const { city, sound } = await rejected('seen')
  const cli = (...args: readonly string[]) =>
    run([...args], { env: { SVC_API: supervisor.url, SVC_CITY: 'seen', SVC_HOME: supervisor.home } })
  const first = /city\.toml:\d+:\d+: there is no provider `ours`/
  const look = async () => {
    const of = (body: unknown) => at(body, 'config_rejected')
    const { body } = await city.api.get('/v0/cities')
    const items = at(body, 'items')
    assert.ok(Array.isArray(items))
    const shown = [
      of(items.find((item) => at(item, 'name') === 'seen')),
      of((await city.get('')).body),
      of((await city.get('/status')).body),
      of((await city.get('/health')).body),
    ]
    for (const one of shown) assert.deepEqual(one, shown[0])
    assert.match(String(at(shown[0], 'error')), first)
    assert.equal(at(shown[0], 'count'), 2)
    assert.ok(Number(at((await city.api.get('/health')).body, 'cities_rejected')) >= 1)
    const told = new RegExp(
      `rejected since ${String(at(shown[0], 'since'))}: city\\.toml:\\d+:\\d+: .*\\(and 1 more\\)`,
    )
    for (const command of [['status'], ['city', 'list'], ['city', 'get'], ['city', 'status'], ['city', 'health']]) {
      const { out } = await cli(...command)
      assert.match(out, told, command.join(' '))
    }
    assert.match((await cli('health')).out, /\d+ with a rejected configuration/)
  }
  await look()
  const restarted = await cli('city', 'restart', 'seen', '--wait')
  assert.equal(restarted.code, 0, restarted.err)
  assert.match(restarted.out, first)
  await cityAgain(supervisor, 'seen')
  await look()
  assert.equal((await cli('city', 'start', 'seen', '--wait', '-o', 'json')).code, 0)
  assert.equal((await city.put('city.toml', sound)).status, 200)
  assert.equal((await city.get('')).status, 200)
  for (const path of ['', '/status', '/health'])
    assert.ok(!Object.hasOwn(Object((await city.get(path)).body), 'config_rejected'), path)
})
