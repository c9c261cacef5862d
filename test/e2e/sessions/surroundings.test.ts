// Agents outlive what a supervisor's surroundings do to it: another runtime directory, none at all, a stop in the middle of a start.
import assert from 'node:assert/strict'
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { isRunning } from '../../support/city-processes.ts'
import { eventually } from '../../support/http.ts'
import { cityIs, run, runAgain } from '../../support/running.ts'
import { newSessionCity, SessionApi } from '../../support/session-api.ts'
import { written } from '../../support/written.ts'

const AGENT = `[[agent]]
name = "scribe"
provider = "asked"
pre_start = ["echo $$ > begun; while [ ! -e go ]; do sleep 0.05; done"]
[providers.asked]
base = "provider:bash"
args = ["--norc", "--noprofile", "-c", "echo \\"$1\\" >> told; exec bash --norc --noprofile", "bash"]
prompt_mode = "arg"
`

test('agents are kept when the next supervisor has another runtime directory, and when the old one was cleaned up', async () => {
  await using first = await run()
  const city = await newSessionCity(first, 'alpha')
  const id = await city.start()
  const { pid } = await city.get(id)
  await first.server.kill('SIGKILL')
  const other = join(first.work, 'other')
  mkdirSync(other, { mode: 0o700 })

  await using second = await runAgain(first.server.home, { env: { XDG_RUNTIME_DIR: other } })
  await cityIs(second.api, 'alpha', 'running')
  const moved = new SessionApi(second.api, 'alpha', city.dir)
  const kept = await moved.until(id, 'is taken over', ({ running }) => running)
  assert.deepEqual([kept.pid, kept.generation], [pid, 1])
  await moved.message(id, 'echo one >> said')
  await second.server.kill('SIGKILL')
  // As a log-out does with `/run/user/<uid>`.
  rmSync(join(first.work, 'run'), { recursive: true })

  await using third = await runAgain(first.server.home, { env: { XDG_RUNTIME_DIR: other } })
  await cityIs(third.api, 'alpha', 'running')
  const again = new SessionApi(third.api, 'alpha', city.dir)
  const back = await again.until(id, 'is taken over again', ({ running }) => running)
  assert.deepEqual([back.pid, back.generation], [pid, 1])
  await again.message(id, 'echo two >> said')
  await eventually('it took both', async () => (await written(join(city.dir, 'said'))) === 'one\ntwo\n' || undefined)
  await again.done('POST', '/stop')
  // Hosts leave by themselves, once they know that their end was read.
  await eventually(
    'no empty directory of sockets is left',
    () => !existsSync(join(other, 'svc')) || readdirSync(join(other, 'svc')).length === 0 || undefined,
  )
})

for (const signal of ['SIGTERM', 'SIGKILL'] as const)
  test(`a task given with the create arrives once though ${signal} ended the supervisor during pre_start`, async () => {
    await using first = await run()
    const city = await newSessionCity(first, 'alpha', AGENT)
    const { id } = await city.accept({ kind: 'agent', name: 'scribe', message: 'the task' })
    const waiting = Number(await written(join(city.dir, 'begun')))
    await first.server.kill(signal)

    await using second = await runAgain(first.server.home)
    await cityIs(second.api, 'alpha', 'running')
    await eventually('the first pre_start is gone', () => !isRunning(waiting) || undefined)
    city.write('go', '')
    const again = new SessionApi(second.api, 'alpha', city.dir)
    await again.is(id, 'active')
    assert.deepEqual((await written(join(city.dir, 'told'))).match(/the task/g), ['the task'])
    const [delivery] = await again.deliveries(id)
    assert.equal(delivery?.state, 'delivered')
  })

test('a start that was undone leaves no environment on disk', async () => {
  await using running = await run({ env: { SECRET_OF_OURS: 'hunter2' } })
  const city = await newSessionCity(running, 'alpha')
  const ids = [await city.start()]
  for (const body of [{ name: 'absent' }, { name: 'ends' }]) {
    await city.configure('[providers.ends]\ncommand = "bash"\nargs = ["-c", "exit 3"]\nprompt_mode = "omit"\n')
    const answer = await city.send('POST', '/sessions', { kind: 'provider', runtime: 'subprocess', ...body })
    if (answer.status === 202) ids.push(String(Reflect.get(Object(answer.body), 'session_id')))
  }
  await city.until(
    ids.at(-1) ?? '',
    'was not started',
    ({ state }) => state !== 'start-pending' && state !== 'creating',
  )
  for (const id of ids) {
    const runs = join(city.dir, '.svc/runtime/sessions', id)
    for (const file of readdirSync(runs, { recursive: true, encoding: 'utf8' })) {
      assert.ok(!file.endsWith('spec.json'), file)
      if (/\.(json|jsonl|log)$/.test(file)) assert.ok(!readFileSync(join(runs, file), 'utf8').includes('hunter2'), file)
    }
  }
})
