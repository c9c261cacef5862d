import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { systemClock } from '../../src/kernel/clock.ts'
import { cityAgain, createCity } from '../support/config-city.ts'
import { at } from '../support/document.ts'
import { openEditedCity } from '../support/edited-city.ts'
import { eventually } from '../support/http.ts'
import { seededRandom } from '../support/random.ts'
import { startSupervisor } from '../support/supervisor.ts'

const ROUNDS = process.env['SVC_SOAK'] === '1' ? 40 : 6
const EDITOR = resolve(import.meta.dirname, '..', 'support', 'config-editor.ts')

test('kill -9 in the middle of edits of several files leaves all of them old or all of them new', async (t) => {
  const random = seededRandom()
  t.diagnostic(`SVC_SEED=${random.seed}`)
  const root = mkdtempSync(join(tmpdir(), 'svc-crash-'))
  t.after(() => rmSync(root, { recursive: true, force: true }))
  const dir = join(root, 'edited')
  for (const [path, text] of Object.entries({
    'city.toml': '# 0\n[workspace]\nprovider = "shell"\n[providers.shell]\nbase = "builtin:shell"\n',
    'pack.toml': '# 0\n[pack]\nname = "edited"\nschema = 2\n',
    'agents/a0/agent.toml': '# 0\nprovider = "shell"\n',
    '.svc/site.toml': 'workspace_name = "edited"\n',
  })) {
    mkdirSync(dirname(join(dir, path)), { recursive: true })
    writeFileSync(join(dir, path), text)
  }
  let last = 0
  for (let round = 0; round < ROUNDS; round++) {
    const after = { edits: random.between(0, 3), ms: random.next() * 40 }
    const acknowledged = Math.max(last, await editUntilKilled(dir, last + 1, after))
    await using city = await openEditedCity(dir, systemClock)
    const numbers = numbersIn(dir)
    const where = `round ${round}, killed ${after.ms.toFixed(1)} ms after ${after.edits} edits, acknowledged ${acknowledged}`
    assert.equal(new Set(numbers.values()).size, 1, `${where}: ${JSON.stringify([...numbers])}`)
    const [now = -1] = numbers.values()
    assert.deepEqual([...numbers.keys()].sort(), [`agents/a${now % 2}/agent.toml`, 'city.toml', 'pack.toml'], where)
    assert.ok(now === acknowledged || now === acknowledged + 1, `${where}: ${now}`)
    assert.equal(city.service.lastError, undefined)
    assert.equal(city.store.db.all('SELECT * FROM config_journal').length, 0)
    const events = city.store.db.all(
      "SELECT envelope FROM events JOIN event_types t ON t.id = events.type WHERE t.name = 'config.reloaded' ORDER BY seq",
    )
    const payloads = events.map(({ envelope }) => at(JSON.parse(String(envelope)), 'payload'))
    assert.equal(payloads.length, now, `${where}: one event per edit`)
    for (const [index, payload] of payloads.entries()) {
      if (index > 0)
        assert.equal(
          at(payload, 'previous_revision'),
          at(payloads[index - 1], 'revision'),
          'each goes on from the one before',
        )
    }
    if (now > 0) assert.equal(at(payloads.at(-1), 'revision'), city.service.revision)
    last = now
  }
  t.diagnostic(`${last} edits in ${ROUNDS} rounds`)
  assert.ok(last >= ROUNDS / 2, 'edits were made')
})

/** The last acknowledged number; kills the editor a moment after so many edits. */
function editUntilKilled(
  dir: string,
  from: number,
  after: { readonly edits: number; readonly ms: number },
): Promise<number> {
  return new Promise((done, fail) => {
    const child = spawn(process.execPath, [EDITOR, dir, String(from)], { stdio: ['ignore', 'pipe', 'inherit'] })
    let out = ''
    let killing = false
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      out += text
      // The first line says that it is ready.
      if (killing || out.split('\n').length - 2 < after.edits) return
      killing = true
      setTimeout(() => child.kill('SIGKILL'), after.ms)
    })
    child.on('error', fail)
    // Behind the last of what it said.
    child.on('close', (code, signal) => {
      if (signal === 'SIGKILL')
        done(
          Math.max(
            0,
            ...out
              .split('\n')
              .slice(0, -1)
              .filter((line) => /^\d+$/.test(line))
              .map(Number),
          ),
        )
      else fail(new Error(`the editor ended with ${code}`))
    })
  })
}

/** The number that each configuration file carries; a file left over by an edit would show as one more. */
function numbersIn(dir: string): Map<string, number> {
  const files = readdirSync(dir, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile())
  const paths = files
    .map((entry) => join(entry.parentPath, entry.name).slice(dir.length + 1))
    .filter((path) => !path.startsWith('.svc/'))
  return new Map(
    paths.map((path) => [path, Number(/^# (\d+)\n/.exec(readFileSync(join(dir, path), 'utf8'))?.[1] ?? -1)]),
  )
}

test('a supervisor that is killed during edits comes back with every acknowledged one', async (t) => {
  const random = seededRandom()
  t.diagnostic(`SVC_SEED=${random.seed}`)
  await using first = await startSupervisor()
  await createCity(first, 'killed')
  let supervisor = first
  let acknowledged = 0
  for (let round = 0; round < 4; round++) {
    const city = await cityAgain(supervisor, 'killed')
    const text = '[workspace]\nprovider = "shell"\n[providers.shell]\nbase = "builtin:shell"\n'
    let killed: Promise<unknown> | undefined
    for (let n = acknowledged + 1; ; n++) {
      const answer = await city.put('city.toml', `# ${n}\n${text}`).catch(() => undefined)
      if (answer === undefined) break
      assert.equal(answer.status, 200, answer.text)
      acknowledged = n
      // Not by the clock alone: where the machine is busy an edit may take longer than that.
      killed ??= pause(random.between(0, 300)).then(() => supervisor.kill('SIGKILL'))
    }
    await (killed ?? assert.fail('it was not killed by us'))
    const again = await startSupervisor({ home: first.home })
    supervisor = again
    const after = await cityAgain(again, 'killed')
    const now = Number(/^# (\d+)\n/.exec(after.read('city.toml'))?.[1] ?? 0)
    assert.ok(now === acknowledged || now === acknowledged + 1, `acknowledged ${acknowledged}, found ${now}`)
    const config = await after.config()
    assert.equal(config.last_error, undefined)
    assert.equal((await after.events('config.reloaded')).at(-1)?.payload.revision, config.revision)
    acknowledged = now
  }
  await supervisor.kill('SIGKILL')
})

test('a start on files that are not valid comes up on the last good ones, says so, and follows when they are mended', async () => {
  await using first = await startSupervisor()
  const city = await createCity(first, 'lastgood')
  const sound = city.read('city.toml')
  assert.equal((await city.put('agents/mayor/agent.toml', 'provider = "shell"\n')).status, 201)
  const { revision, agents } = await city.config()
  await first.kill('SIGKILL')
  city.write('city.toml', '[workspce]\n')
  city.write('pack.toml', 'not toml')
  city.write('agents/new/agent.toml', 'provider = "none"\n')
  city.remove('agents/mayor')

  const second = await startSupervisor({ home: first.home })
  try {
    const again = await cityAgain(second, 'lastgood')
    const config = await again.config()
    assert.equal(config.revision, revision)
    assert.deepEqual(config.agents, agents)
    assert.ok((config.last_error?.issues.length ?? 0) > 0)
    const [rejected] = await again.events('config.rejected')
    assert.equal(rejected?.payload.source, 'start')
    assert.equal(rejected?.payload.active_revision, revision)
    assert.deepEqual(at((await again.get('/status')).body, 'config', 'last_error'), config.last_error)

    again.remove('agents/new')
    again.write('pack.toml', '[pack]\nname = "lastgood"\nschema = 2\n')
    again.write('city.toml', sound)
    await eventually('the mended files are in force', async () =>
      (await again.config()).last_error === undefined ? true : undefined,
    )
    assert.deepEqual((await again.config()).agents, [])
    assert.equal((await again.events('config.reloaded')).at(-1)?.payload.source, 'watch')
  } finally {
    await second.kill('SIGKILL')
  }
})

test('a city that never had a good configuration fails to start and tells what is wrong', async () => {
  await using supervisor = await startSupervisor()
  const dir = join(supervisor.work, 'never')
  mkdirSync(dir)
  writeFileSync(join(dir, 'city.toml'), '[workspce]\n')
  const { api } = await createCity(supervisor, 'other')
  assert.equal((await api.post('/v0/cities', { path: dir })).status, 202)
  const failed = await eventually('the city fails', async () => {
    const { body } = await api.get('/v0/cities')
    const items = at(body, 'items')
    return Array.isArray(items) ? items.find((item) => at(item, 'status') === 'init_failed') : undefined
  })
  assert.deepEqual(at(failed, 'issues', 0), {
    location: 'city.toml:1:2',
    message: 'unknown key `workspce` (did you mean `workspace`?)',
  })
})
