import assert from 'node:assert/strict'
import { cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { MASK } from '../../../contract/base/merge-patch.ts'
import { loadCity } from '../load/load.ts'
import { loadFiles, OPTIONS, temporaryCity, writeFiles } from '../testing.ts'
import { explain } from './explain.ts'

const FIXTURES = join(import.meta.dirname, '../../../../test/fixtures/config')
const GOLDEN = join(FIXTURES, 'explain.json')
const TOOLS = 'https://git.example.org/teams/packs.git//tools'

/** The fixture city in a directory of its own: a rig outside, a pack as if from git. */
function fixtureCity() {
  const root = temporaryCity({})
  const dir = join(root.dir, 'acme')
  cpSync(join(FIXTURES, 'city'), dir, { recursive: true })
  cpSync(join(FIXTURES, 'git'), join(root.dir, 'cache'), { recursive: true })
  mkdirSync(join(root.dir, 'backend'))
  writeFiles(dir, {
    '.svc/site.toml': `workspace_name = "acme-here"\n[rigs.backend]\npath = "${join(root.dir, 'backend')}"\n`,
  })
  const loaded = loadCity(dir, {
    ...OPTIONS,
    resolvePack: ({ remote: { source }, version }) =>
      source === TOOLS && version === '^1.4'
        ? {
            ok: true,
            dir: join(root.dir, 'cache/tools'),
            root: join(root.dir, 'cache'),
            commit: 'c'.repeat(40),
            version: '1.4.2',
          }
        : { ok: false, message: 'not in the lock' },
  })
  return { root, dir, loaded, [Symbol.dispose]: () => root[Symbol.dispose]() }
}

test('the explanation of the fixture city is the golden one', () => {
  using city = fixtureCity()
  assert.ok(city.loaded.ok, JSON.stringify(city.loaded.ok ? '' : city.loaded.issues, null, 1))
  const explained = { ...explain(city.loaded.config), revision: '<revision>' }
  const text = `${JSON.stringify(explained, null, 2).replaceAll(city.root.dir, '<root>')}\n`
  if (process.env['UPDATE_GOLDEN'] === '1') writeFileSync(GOLDEN, text)
  assert.equal(text, readFileSync(GOLDEN, 'utf8'))
})

test('every agent of the fixture city is where its scope says', () => {
  using city = fixtureCity()
  assert.ok(city.loaded.ok)
  assert.deepEqual(
    city.loaded.config.agents.map((agent) => [agent.identity, agent.origin]),
    [
      ['core.worker', 'pack:core'],
      ['review.tools.lint', 'pack:review.tools'],
      // Brought by the city's import into the rig that does not import `review` itself.
      ['backend/review.tools.scout', 'pack:review.tools'],
      ['backend/review.builder', 'pack:review'],
      ['review.lead', 'pack:review'],
      ['tools.lint', 'pack:tools'],
      ['storefront/tools.scout', 'pack:tools'],
      ['backend/tools.scout', 'pack:tools'],
      ['mayor', 'agents/mayor'],
      ['backend/clerk', 'city.toml'],
      ['storefront/review.tools.lint', 'pack:review.tools'],
      ['storefront/review.tools.scout', 'pack:review.tools'],
      ['storefront/review.builder', 'pack:review'],
    ],
  )
})

test('patches of every layer apply in their order', () => {
  using city = fixtureCity()
  assert.ok(city.loaded.ok)
  const { config, warnings } = city.loaded
  const agent = (identity: string) => config.agents.find((each) => each.identity === identity)
  assert.deepEqual(agent('tools.lint')?.args, ['root', 'fragment'])
  assert.equal(agent('tools.lint')?.nudge, 'from the root pack')
  assert.equal(agent('review.tools.lint')?.nudge, 'from the pack')
  assert.deepEqual(agent('review.lead')?.env, { LEVEL: 'info', MODE: 'strict' })
  assert.equal(agent('review.lead')?.idle_timeout, '45m')
  assert.deepEqual(agent('storefront/review.builder')?.args, ['--build', '--rig'])
  assert.equal(agent('storefront/review.builder')?.max_active_sessions, 2)
  assert.equal(agent('backend/review.builder')?.max_active_sessions, 4)
  assert.equal(agent('mayor')?.max_active_sessions, 20)
  assert.equal(agent('storefront/review.builder')?.scales, true, 'a limit of its own makes a pool')
  assert.equal(agent('mayor')?.scales, false, 'one of the city does not')
  assert.equal(config.providers['codex']?.resolved.ready_delay_ms, 4000)
  assert.deepEqual(
    config.rigs.map((rig) => [rig.name, rig.prefix, rig.default_branch]),
    [
      ['storefront', 'sf', 'trunk'],
      ['backend', 'be', undefined],
    ],
  )
  assert.deepEqual(
    config.named_sessions.map((session) => [session.identity, session.mode, session.agent]),
    [['planner', 'on_demand', 'review.lead']],
  )
  assert.deepEqual(
    warnings.map((warning) => `${warning.file}:${warning.line} ${warning.key}`),
    ['conf/patches.toml:2 workspace.max_active_sessions'],
  )
})

test('environment values and credentials are masked, names of variables are not', () => {
  using city = fixtureCity()
  assert.ok(city.loaded.ok)
  const text = JSON.stringify(explain(city.loaded.config))
  assert.ok(!text.includes('not-to-be-shown'))
  assert.ok(text.includes(`"env.TOKEN":{"value":"${MASK}"`))
  assert.ok(JSON.stringify(explain(city.loaded.config, { reveal: true })).includes('not-to-be-shown'))
})

test('the effective configuration is deeply frozen, and its revision follows every file', () => {
  using city = fixtureCity()
  assert.ok(city.loaded.ok)
  const { config } = city.loaded
  const frozen = (value: unknown): boolean =>
    typeof value !== 'object' || value === null || (Object.isFrozen(value) && Object.values(value).every(frozen))
  assert.ok(frozen(config))
  for (const path of [
    'conf/prod.toml',
    'template-fragments/house-style.template.md',
    'packs/review/template-fragments/greeting.template.md',
    '.svc/site.toml',
    'packs.lock',
  ]) {
    const file = join(city.dir, path)
    const before = path === 'packs.lock' ? '' : readFileSync(file, 'utf8')
    writeFileSync(file, path.endsWith('.toml') ? `${before}# more\n` : `${before}more\n`)
    const again = loadCity(city.dir, {
      ...OPTIONS,
      resolvePack: () => ({
        ok: true,
        dir: join(city.root.dir, 'cache/tools'),
        root: join(city.root.dir, 'cache'),
        commit: 'c'.repeat(40),
        version: '1.4.2',
      }),
    })
    assert.ok(again.ok)
    assert.notEqual(again.config.revision, config.revision, path)
    writeFileSync(file, before)
  }
})

test('no secret is shown, however deep it stands', () => {
  const city = `[workspace]
provider = "own"
[providers.own]
command = "sh"
env = { A = "top-secret-1" }
[[providers.own.options_schema]]
key = "mode"
choices = [{ value = "a", env = { TOKEN = "top-secret-2" } }]
[orders]
overrides = [{ name = "sweep", env = { TOKEN = "top-secret-3" } }]
`
  const loaded = loadFiles({ 'city.toml': city, 'pack.toml': '[pack]\nname = "x"\nschema = 2\n' })
  assert.ok(loaded.ok, JSON.stringify(loaded.ok ? '' : loaded.issues))
  assert.doesNotMatch(JSON.stringify(explain(loaded.config)), /top-secret/)
  assert.match(JSON.stringify(explain(loaded.config, { reveal: true })), /top-secret-1.*top-secret-2|top-secret-3/)
})
