// What agents see of the environment that the supervisor was started in.
import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { test } from 'node:test'
import { assertProblem, eventually } from '../../support/http.ts'
import { run } from '../../support/running.ts'
import { newSessionCity, type SessionApi } from '../../support/session-api.ts'

const SECRETS = { AWS_SECRET_ACCESS_KEY: 'k1', GH_TOKEN: 'k2', DATABASE_URL: 'k3', SVC_SECRET: 'k4' }

let files = 0
/** Which of the secrets its process has. */
async function secretsOf(city: SessionApi, id: string): Promise<string[]> {
  const file = `environment-${++files}`
  await city.message(id, `env > ${file}.new; mv ${file}.new ${file}`)
  await eventually('the agent has told', () => existsSync(`${city.dir}/${file}`) || undefined)
  const names = city
    .read(file)
    .split('\n')
    .map((line) => line.split('=')[0] ?? '')
  assert.ok(names.includes('SVC_SESSION_ID') && names.includes('HOME'))
  return Object.keys(SECRETS).filter((name) => names.includes(name))
}

test('agents do not see the secrets that the city denies, nor the supervisor’s own variables', {
  timeout: 90_000,
}, async () => {
  await using running = await run({ env: SECRETS })
  const city = await newSessionCity(running, 'alpha')
  const before = await city.start()
  assert.deepEqual(await secretsOf(city, before), ['AWS_SECRET_ACCESS_KEY', 'GH_TOKEN', 'DATABASE_URL'])

  const toml = city.read('city.toml').replace('[session]\n', '[session]\nenv_deny = ["AWS_*"]\n')
  const narrowed = toml.replace(
    '[providers.piped]',
    '[providers.narrow]\nbase = "provider:bash"\ninherit_env = ["GH_*"]\n[providers.piped]',
  )
  city.write('city.toml', narrowed)
  const { request_id } = await city.done('POST', '/config/reload')
  await eventually('the files are loaded', async () => {
    const { status } = await city.api.get(`/v0/requests/${String(request_id)}`).then(({ body }) => Object(body))
    return status === 'succeeded' || undefined
  })
  // Who runs already keeps what it has; nobody is restarted for this.
  assert.equal((await city.get(before)).generation, 1)
  assert.deepEqual(await secretsOf(city, await city.start()), ['GH_TOKEN', 'DATABASE_URL'])
  assert.deepEqual(await secretsOf(city, await city.start({ name: 'narrow' })), ['GH_TOKEN'])
  assert.deepEqual(await secretsOf(city, before), ['AWS_SECRET_ACCESS_KEY', 'GH_TOKEN', 'DATABASE_URL'])

  await city.done('PATCH', '/providers/narrow', { inherit_env: 'all' })
  assert.deepEqual(await secretsOf(city, await city.start({ name: 'narrow' })), ['GH_TOKEN', 'DATABASE_URL'])
  assertProblem(await city.send('PATCH', '/providers/narrow', { inherit_env: 'some' }), 'validation-failed')
  assertProblem(await city.send('PATCH', '/providers/narrow', { inherit_env: ['A-B'] }), 'validation-failed')
})
