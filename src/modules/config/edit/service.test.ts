import assert from 'node:assert/strict'
import fs, { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import { dirname, join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { setValue } from '../../../files/toml-edit.ts'
import { systemClock } from '../../../kernel/clock.ts'
import { migrationsOf } from '../../../kernel/database.ts'
import { openStore } from '../../../kernel/store.ts'
import { CITY_MIGRATIONS } from '../../cities/city-store.ts'
import { quietBell } from '../load/watch.ts'
import { OPTIONS, temporaryCity } from '../testing.ts'
import type { ConfigChange } from './city-config.ts'
import { ConfigService, type ConfigServiceDeps } from './service.ts'
import { CONFIG_SCHEMA, writeIntent } from './transaction.ts'

const FILES = {
  'city.toml': '[workspace]\nprovider = "shell"\n[providers.shell]\nbase = "builtin:shell"\n',
  'pack.toml': '[pack]\nname = "demo"\nschema = 2\n',
  'agents/mayor/agent.toml': 'provider = "shell"\n',
  'agents/mayor/prompt.template.md': 'Hello {{ AgentName }}.\n',
  'agents/clerk/agent.toml': 'provider = "shell"\nrestart_on_prompt_change = false\n',
  'agents/clerk/prompt.template.md': 'Hello {{ AgentName }}.\n',
}

test('a change says for each agent what it means for its sessions', async (t) => {
  const { service, write } = await openCity(t)
  const changes: ConfigChange[] = []
  service.onChange((change) => changes.push(change))
  const drifts = () =>
    [...(changes.at(-1)?.drift ?? [])].map(([identity, { drift, fields }]) => [identity, drift, fields.join()])

  await service.edit({
    actor: 'test',
    change: (files) => files.set('agents/mayor/agent.toml', 'provider = "shell"\nnudge = "go on"\n'),
  })
  assert.deepEqual(drifts(), [['mayor', 'live', 'nudge']])
  await service.edit({
    actor: 'test',
    change: (files) =>
      files.set(
        'agents/mayor/agent.toml',
        'provider = "shell"\nnudge = "go on"\nwork_dir = "/tmp/x"\nenv = { A = "1" }\n',
      ),
  })
  assert.deepEqual(drifts(), [['mayor', 'provision', 'env,work_dir']])

  write('agents/mayor/prompt.template.md', 'Good evening, {{ AgentName }}.\n')
  write('agents/clerk/prompt.template.md', 'Good evening, {{ AgentName }}.\n')
  await service.reload('reload')
  assert.deepEqual(drifts(), [
    ['clerk', 'start', 'prompt'],
    ['mayor', 'launch', 'prompt'],
  ])
  assert.deepEqual(changes.at(-1)?.changed.agents, ['clerk', 'mayor'])

  const set = (path: readonly string[], value: string) =>
    service.edit({
      actor: 'test',
      change: (files) => files.set('city.toml', setValue(files.get('city.toml') ?? '', path, value)),
    })
  await set(['providers', 'shell', 'env', 'B'], '2')
  assert.deepEqual(drifts(), [
    ['clerk', 'launch', 'provider.env'],
    ['mayor', 'launch', 'provider.env'],
  ])
})

test('a listener that fails hinders neither the change nor the others', async (t) => {
  const { service } = await openCity(t)
  let heard = 0
  service.onChange(() => {
    throw new Error('a defect')
  })
  const stop = service.onChange(() => heard++)
  await service.edit({ actor: 'test', change: (files) => files.set('city.toml', `${files.get('city.toml')}# more\n`) })
  assert.equal(heard, 1)
  stop()
  await service.edit({ actor: 'test', change: (files) => files.set('city.toml', `${files.get('city.toml')}# more\n`) })
  assert.equal(heard, 1)
})

test('an edit whose events do not commit is finished by the next one, and its event is not lost', async (t) => {
  const { service, store, read } = await openCity(t)
  const text = read('city.toml')
  const refuse = new Error('the disk refuses')
  await assert.rejects(
    service.edit({
      actor: 'test',
      change: (files) => files.set('city.toml', `${text}# first\n`),
      alsoWrite: () => {
        throw refuse
      },
    }),
    refuse,
  )
  assert.equal(read('city.toml'), `${text}# first\n`, 'the files were new already')
  await service.edit({
    actor: 'test',
    change: (files) => files.set('city.toml', `${files.get('city.toml')}# second\n`),
  })
  assert.equal(read('city.toml'), `${text}# first\n# second\n`)
  const { events } = store.log.scan({ types: ['config.reloaded'] }, { after: 0, upTo: store.log.head }, 'asc', 10)
  assert.equal(events.length, 2)
})

test('an edit of two files that is stopped between them is completed later, and never half forgotten', async (t) => {
  const { service, store, read, dir } = await openCity(t)
  const text = read('city.toml')
  const twoFiles = () =>
    service.edit({
      actor: 'test',
      change: (files) => {
        files.set('agents/fresh/agent.toml', 'provider = "shell"\n')
        files.set('city.toml', `${text}# both\n`)
      },
    })
  // What staging has put beside `city.toml` goes away before it is swapped in, and something is in the way.
  const swap = fs.renameSync
  t.mock.method(fs, 'renameSync', (from: string, to: string) => {
    if (to.endsWith('city.toml')) throw Object.assign(new Error('no room'), { code: 'EIO' })
    swap(from, to)
  })
  syncBuiltinESMExports()
  await assert.rejects(twoFiles(), { code: 'unavailable' })
  t.mock.restoreAll()
  syncBuiltinESMExports()
  assert.equal(readFileSync(join(dir, 'agents/fresh/agent.toml'), 'utf8'), 'provider = "shell"\n')
  await service.reload('reload')
  assert.equal(read('city.toml'), `${text}# both\n`)
  assert.ok(service.current().agents.some(({ identity }) => identity === 'fresh'))
  const { events } = store.log.scan({ types: ['config.reloaded'] }, { after: 0, upTo: store.log.head }, 'asc', 10)
  assert.equal(events.length, 1)
})

test('a file where an agent needs a directory is a conflict, and hinders no later edit', async (t) => {
  const { service, read, dir } = await openCity(t)
  rmSync(join(dir, 'agents'), { recursive: true })
  writeFileSync(join(dir, 'agents'), 'no directory\n')
  await service.reload('reload')
  const adding = service.edit({
    actor: 'test',
    change: (files) => files.set('agents/fresh/agent.toml', 'provider = "shell"\n'),
  })
  await assert.rejects(adding, { code: 'conflict-config', message: /agents is no directory/ })
  await service.edit({ actor: 'test', change: (files) => files.set('city.toml', `${files.get('city.toml')}# more\n`) })
  assert.match(read('city.toml'), /# more/)
})

test('an intent that a file in the way of its directory stops is discarded at the next start', async (t) => {
  const { again: makeAgain, store, dir, read } = await openCity(t)
  rmSync(join(dir, 'agents'), { recursive: true })
  writeFileSync(join(dir, 'agents'), 'no directory\n')
  const file = { path: 'agents/fresh/agent.toml', before: null, text: 'provider = "shell"\n' }
  await store.db.write((tx) => writeIntent(tx, { files: [file], events: [] }, 0))
  const again = makeAgain()
  await again.open()
  t.after(() => again.close())
  await again.edit({ actor: 'test', change: (files) => files.set('city.toml', `${files.get('city.toml')}# more\n`) })
  assert.match(read('city.toml'), /# more/)
})

test('a hundred edits at once are done one after the other and none is lost', async (t) => {
  const { service, read } = await openCity(t)
  const edits = Array.from({ length: 100 }, (_, n) =>
    service.edit({ actor: 'test', change: (files) => files.set('city.toml', `${files.get('city.toml')}# ${n}\n`) }),
  )
  await Promise.all(edits)
  const lines = read('city.toml')
    .split('\n')
    .filter((line) => line.startsWith('# '))
  assert.deepEqual(
    lines,
    Array.from({ length: 100 }, (_, n) => `# ${n}`),
  )
})

test('a storm rings the bell once when it is over, and every two seconds where it does not end', () => {
  const clock = manualClock()
  let rung = 0
  const bell = quietBell(clock, () => rung++)
  for (let n = 0; n < 10; n++) {
    bell.ring()
    clock.advance(100)
  }
  assert.equal(rung, 0)
  clock.advance(200)
  assert.equal(rung, 1)
  for (let n = 0; n < 50; n++) {
    bell.ring()
    clock.advance(100)
  }
  assert.equal(rung, 3)
  bell.ring()
  bell.stop()
  clock.advance(10_000)
  assert.equal(rung, 3)
})

function manualClock() {
  let now = 0
  const timers = new Map<object, { at: number; work: () => void }>()
  return {
    now: () => now,
    monotonic: () => now,
    after(ms: number, work: () => void) {
      const key = {}
      timers.set(key, { at: now + ms, work })
      return () => void timers.delete(key)
    },
    advance(ms: number) {
      now += ms
      for (const [key, { at, work }] of [...timers]) {
        if (at > now) continue
        timers.delete(key)
        work()
      }
    },
  }
}

test('a reload warns of a rig that is gone from the files while it has work', async (t) => {
  const { service, write } = await openCity(t, {
    beadsOfRig: (rig) => (rig === 'alpha' ? 3 : 0),
    workOfRig: (rig) => [
      { count: rig === 'alpha' ? 2 : 0, one: 'live molecule', many: 'live molecules' },
      { count: rig === 'alpha' ? 1 : 0, one: 'order', many: 'orders' },
    ],
  })
  const rigs = (...names: readonly string[]) =>
    write('city.toml', FILES['city.toml'] + names.map((name) => `[[rigs]]\nname = "${name}"\n`).join(''))
  rigs('alpha', 'beta')
  await service.reload('reload')
  rigs('gamma')
  const { outcome, warnings } = await service.reload('reload')
  assert.equal(outcome, 'applied')
  const said = warnings.filter(({ key }) => key === 'rigs.alpha' || key === 'rigs.beta').map(({ message }) => message)
  assert.deepEqual(said, [
    '3 beads, 2 live molecules, 1 order are of the rig alpha, which is gone: nobody works on them, and molecules there stop',
  ])
  assert.ok(
    service.warnings.some(({ key }) => key === 'rigs.alpha'),
    'it shows in the configuration too',
  )
})

async function openCity(t: TestContext, more: Partial<ConfigServiceDeps> = {}) {
  const city = temporaryCity(FILES)
  mkdirSync(join(city.dir, '.svc'), { recursive: true })
  const log = { error() {}, warn() {}, info() {}, debug() {}, isLevelEnabled: () => false }
  const store = openStore({
    path: join(city.dir, '.svc', 'city.db'),
    migrations: [...CITY_MIGRATIONS, ...migrationsOf('config', CONFIG_SCHEMA)],
    owner: 'a test',
    clock: systemClock,
  })
  const again = () =>
    new ConfigService({
      name: 'demo',
      dir: city.dir,
      store,
      clock: systemClock,
      log,
      loadOptions: () => OPTIONS,
      ...more,
    })
  const service = again()
  t.after(async () => {
    await service.close()
    store.db.close()
    city[Symbol.dispose]()
  })
  await service.open()
  return {
    service,
    /** As after another start. */
    again,
    dir: city.dir,
    store,
    read: (path: string) => service.readText(path) ?? '',
    write(path: string, text: string) {
      mkdirSync(dirname(join(city.dir, path)), { recursive: true })
      writeFileSync(join(city.dir, path), text)
    },
  }
}
