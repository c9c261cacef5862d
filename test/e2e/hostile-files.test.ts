import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdirSync, readdirSync, rmSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { createCity } from '../support/config-city.ts'
import { at } from '../support/document.ts'
import { HealthWatch } from '../support/health.ts'
import { Api, assertProblem, eventually } from '../support/http.ts'
import { cityItem } from '../support/running.ts'
import { startSupervisor } from '../support/supervisor.ts'

test('no file of a city stops the supervisor, whatever it is', async (t) => {
  await using supervisor = await startSupervisor()
  const city = await createCity(supervisor, 'hostile')
  await using health = new HealthWatch(supervisor.url)
  const issuesOf = async (): Promise<string> => JSON.stringify(at((await city.get('/config/validate')).body, 'errors'))

  await t.test('links in a circle', async () => {
    mkdirSync(join(city.dir, 'assets'), { recursive: true })
    for (const name of ['a', 'b']) symlinkSync('.', join(city.dir, 'assets', name))
    assert.equal(await issuesOf(), '[]')
    await health.answers()
  })

  const put: Readonly<Record<string, (path: string) => void>> = {
    pipe: (path) => void execFileSync('mkfifo', [path]),
    'endless device': (path) => symlinkSync('/dev/zero', path),
    'file of 5 MB': (path) => {
      writeFileSync(path, 'x = 1\n')
      truncateSync(path, 5_000_000)
    },
  }
  for (const [what, place] of Object.entries(put)) {
    await t.test(`a ${what} as the file of an agent, and as the city’s own`, async () => {
      mkdirSync(join(city.dir, 'agents/x'), { recursive: true })
      place(join(city.dir, 'agents/x/agent.toml'))
      assert.match(await issuesOf(), /agents\/x\/agent\.toml:1:1: cannot be read/)
      rmSync(join(city.dir, 'agents/x'), { recursive: true })
      const text = city.read('city.toml')
      city.remove('city.toml')
      place(join(city.dir, 'city.toml'))
      assert.match(await issuesOf(), /city\.toml:1:1: cannot be read/)
      city.remove('city.toml')
      city.write('city.toml', text)
      assert.equal(await issuesOf(), '[]')
      await health.answers()
    })
  }
})

test('a directory whose files are pipes is adopted, fails with their names, and hinders no later start', async () => {
  let supervisor = await startSupervisor()
  try {
    const dir = join(supervisor.work, 'piped')
    mkdirSync(join(dir, '.svc'), { recursive: true })
    execFileSync('mkfifo', [join(dir, 'city.toml'), join(dir, 'pack.toml'), join(dir, '.svc/site.toml')])
    const adopting = await new Api(supervisor.url).post('/v0/cities', { path: dir })
    assert.equal(adopting.status, 202, adopting.text)
    await fails(supervisor.url)
    assert.equal(await supervisor.kill('SIGTERM'), 0)
    const { home } = supervisor
    supervisor = await startSupervisor({ home })
    await fails(supervisor.url)
    assert.equal(await supervisor.kill('SIGTERM'), 0)
  } finally {
    await supervisor[Symbol.asyncDispose]()
  }
})

test('what stands in place of the store of a directory, or of its .svc, is told who adopts it', async () => {
  await using supervisor = await startSupervisor()
  const dir = join(supervisor.work, 'piped')
  mkdirSync(join(dir, '.svc'), { recursive: true })
  execFileSync('mkfifo', [join(dir, '.svc/city.db')])
  const answer = await new Api(supervisor.url).post('/v0/cities', { path: dir })
  assertProblem(answer, 'validation-failed')
  assert.match(answer.text, /city\.db cannot be opened: it is no regular file/)
  const elsewhere = join(supervisor.work, 'elsewhere')
  mkdirSync(elsewhere)
  const stands: Readonly<Record<string, (path: string) => void>> = {
    'a file': (path) => writeFileSync(path, ''),
    'a link': (path) => symlinkSync(elsewhere, path),
    'a pipe': (path) => void execFileSync('mkfifo', [path]),
  }
  for (const [what, make] of Object.entries(stands)) {
    const odd = join(supervisor.work, what.replace(' ', '-'))
    mkdirSync(odd)
    writeFileSync(join(odd, 'city.toml'), '')
    make(join(odd, '.svc'))
    const refused = await new Api(supervisor.url).post('/v0/cities', { path: odd })
    assertProblem(refused, 'validation-failed')
    assert.match(refused.text, /\.svc is no directory/, what)
  }
  assert.deepEqual(readdirSync(elsewhere), [])
})

async function fails(url: string): Promise<void> {
  const api = new Api(url)
  await eventually('the city says what is wrong', async () => {
    const item = await cityItem(api, 'piped')
    return item?.error?.includes('cannot be read: it is no regular file') === true ? true : undefined
  })
  api.close()
}

test('a city in or around the home of the supervisor is refused; one inside another city is warned of', async () => {
  await using supervisor = await startSupervisor()
  const api = new Api(supervisor.url)
  for (const dir of [supervisor.home, join(supervisor.home, 'alpha'), supervisor.work]) {
    assertProblem(await api.post('/v0/city', { dir, name: 'alpha' }), 'validation-failed', /body\.dir: must not be/)
    assertProblem(await api.post('/v0/cities', { path: dir }), 'validation-failed', /body\.path: must not be/)
  }
  const outer = await createCity(supervisor, 'outer')
  const inner = await createCity(supervisor, 'outer/inner', 'inner')
  assert.doesNotMatch((await outer.get('/config')).text, /lies inside another/)
  assert.match((await inner.get('/config')).text, /this city lies inside another one, at .*outer/)
})

test('a city whose name has a dot is created and runs', async () => {
  await using supervisor = await startSupervisor()
  const city = await createCity(supervisor, 'a.b')
  assert.equal((await city.config()).workspace.name, 'a.b')
})
