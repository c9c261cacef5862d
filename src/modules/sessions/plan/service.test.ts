// One city's sessions with real processes: bash in a detached host on a terminal.
import assert from 'node:assert/strict'
import { getEventListeners } from 'node:events'
import { existsSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { isRunning } from '../../../../test/support/city-processes.ts'
import { eventually } from '../../../../test/support/http.ts'
import { SessionCity } from '../../../../test/support/session-city.ts'
import { removeTree } from '../../../../test/support/temporary.ts'
import { systemClock } from '../../../kernel/clock.ts'
import { openOutputReader } from '../../../runtimes/process/output-log.ts'
import { listTokens } from '../../../runtimes/process/process-tree.ts'
import type { Runtime } from '../../../runtimes/process/runtime.ts'
import { createSubprocessRuntime } from '../../../runtimes/subprocess.ts'
import { wakeUp } from '../http/handlers.ts'

const lines = (file: string): readonly string[] =>
  existsSync(file)
    ? readFileSync(file, 'utf8')
        .split('\n')
        .filter((line) => line !== '')
    : []

test('a session starts, takes messages in order and is closed', async () => {
  await using city = await new SessionCity().start()
  const { id } = await city.create()
  const active = await city.is(id, 'active')
  assert.equal(active.generation, 1)
  assert.equal(active.process, true)
  const file = join(city.path, 'said')
  const said = []
  for (let n = 0; n < 10; n++) said.push(await city.say(id, `echo ${n} >> ${file}`))
  for (const one of said) await city.delivered(id, one.id)
  await eventually('all lines are written', () => (lines(file).length === 10 ? true : undefined))
  assert.deepEqual(
    lines(file),
    Array.from({ length: 10 }, (_, n) => String(n)),
  )
  await city.store.db.write((tx) => city.sessions.store.change(tx, id, { desired: 'closed' }, { actor: 'api' }))
  const closed = await city.is(id, 'closed')
  assert.equal(closed.process, false)
  assert.equal(isAlive(active.pid), false)
})

test('who waits for the end of a request leaves nothing behind on the signal that ends the wait', async () => {
  await using city = await new SessionCity().start()
  const { signal } = new AbortController()
  const { id } = await city.create()
  const { store, sessions } = city
  const request = 'req-0123456789abcdef01234567'
  const { id: said } = await store.db.write((tx) => {
    store.requests.accept(tx, { id: request, operation: 'session.message', city: 'alpha', eventCursor: '0', input: {} })
    const message = { source: 'message', intent: 'follow_up', text: 'true', ttlMs: 60_000, requestId: request } as const
    return sessions.deliveries.add(tx, sessions.store.need(tx, id), message, 'api')
  })
  const ended = sessions.requestEnd(request, signal)
  await city.delivered(id, said)
  await ended
  const gaveUp = new AbortController()
  const waiting = sessions.requestEnd('req-never-was', gaveUp.signal)
  assert.equal(getEventListeners(gaveUp.signal, 'abort').length, 1)
  gaveUp.abort(new Error('enough'))
  await assert.rejects(waiting, /enough/)
  for (const one of [signal, gaveUp.signal]) assert.equal(getEventListeners(one, 'abort').length, 0)
})

test('what is said to a shell that is slow to come up is shown once', async () => {
  const slow = {
    command: '/bin/bash',
    args: ['-c', 'sleep 0.5; exec bash --norc --noprofile -i'],
    prompt_mode: 'omit',
    delivery: 'line',
  } as const
  await using city = await new SessionCity({ providers: { slow } }).start()
  const { id } = await city.create({ template: 'slow' })
  const { id: said } = await city.say(id, 'echo one-$((1 + 1))')
  await city.delivered(id, said)
  const log = openOutputReader(join(city.sessions.directory(id), '1'))
  const shown = await eventually('it answers', async () => {
    const { bytes } = await log.read(0, 1_000_000)
    return bytes.includes('one-2') ? bytes.toString() : undefined
  })
  assert.equal(shown.split('echo one-').length, 2, shown)
})

test('a shell whose profile still runs takes no message before its prompt', async () => {
  const home = mkdtempSync(join(tmpdir(), 'svc-profile-'))
  const go = join(home, 'go')
  // Its own line, so that a prompt could be taken to stand there.
  writeFileSync(join(home, '.bashrc'), `printf 'loading... '; until test -e ${go}; do sleep 0.1; done; PS1='ready> '\n`)
  const bash = { command: '/bin/bash', prompt_mode: 'omit', delivery: 'line', env: { HOME: home } } as const
  try {
    await using city = await new SessionCity({
      providers: { bash },
      config: { session: { provider: 'subprocess', startup_timeout: '20s', line_ready_timeout: '500ms' } },
    }).start()
    const { id } = await city.create()
    await city.is(id, 'active')
    const ran = join(home, 'ran')
    const said = await city.say(id, `touch ${ran}`)
    await eventually('it is at work', () => (city.sessions.live(id)?.activity === 'in-turn' ? true : undefined))
    assert.equal(city.delivery(id, said.id).state, 'queued')
    writeFileSync(go, '')
    await city.delivered(id, said.id)
    await eventually('it runs', () => (existsSync(ran) ? true : undefined))
  } finally {
    removeTree(home)
  }
})

test('a suspended session stays so until a caller wakes it, and a crash brings it back', async () => {
  await using city = await new SessionCity().start()
  const { id } = await city.create()
  const first = await city.is(id, 'active')
  await city.store.db.write((tx) => city.sessions.store.change(tx, id, { desired: 'suspended' }, { actor: 'api' }))
  const held = await city.is(id, 'suspended')
  assert.equal(held.reason, 'user-hold')
  assert.equal(isAlive(first.pid), false)
  await city.store.db.write((tx) =>
    wakeUp(tx, city.sessions, city.sessions.store.need(tx, id), 'explicit', { actor: 'api' }),
  )
  const second = await city.is(id, 'active')
  assert.equal(second.generation, 2)
  process.kill(second.pid ?? 0, 'SIGKILL')
  const third = await city.when(id, 'it is back', ({ state, generation }) => state === 'active' && generation === 3)
  assert.equal(third.crashes.length, 1)
  assert.equal(third.last_exit?.classification, 'crash')
  assert.ok(city.events(id).includes('session.crashed'))
})

test('typing exit is no crash: the session sleeps', async () => {
  await using city = await new SessionCity().start()
  const { id } = await city.create()
  await city.is(id, 'active')
  await city.say(id, 'exit')
  const asleep = await city.is(id, 'asleep')
  assert.equal(asleep.reason, 'exited')
  assert.equal(asleep.desired, 'asleep')
  assert.equal(asleep.crashes.length, 0)
})

test('a program that is being started while its city stops does not outlive it', async () => {
  const real = createSubprocessRuntime({ clock: systemClock, env: { ...process.env }, home: tmpdir() })
  const begun = Promise.withResolvers<void>()
  const goOn = Promise.withResolvers<void>()
  const made = Promise.withResolvers<void>()
  const deaf: Runtime = {
    name: 'subprocess',
    abilities: real.abilities,
    unavailable: () => real.unavailable(),
    adopt: (spec, signal) => real.adopt(spec, signal),
    close: () => real.close(),
    start: async (spec) => {
      begun.resolve()
      await goOn.promise
      return real.start(spec, new AbortController().signal).finally(() => made.resolve())
    },
  }
  await using city = await new SessionCity({ runtimes: [deaf] }).start()
  const { id } = await city.create()
  await begun.promise
  const stopping = city.sessions.stop({ force: true })
  goOn.resolve()
  await Promise.all([stopping, made.promise])
  assert.deepEqual(
    listTokens().filter(({ city_path }) => city_path === city.path),
    [],
  )
  assert.equal(city.record(id).state, 'asleep')
  assert.equal(city.record(id).process, false)
})

test('a session that keeps crashing is quarantined', async () => {
  await using city = await new SessionCity({
    providers: {
      // It lives until it is told something: one that ends before it was ready has crashed in no life.
      bad: { command: '/bin/sh', args: ['-c', 'echo up; read -r _; exit 3'], prompt_mode: 'omit', delivery: 'line' },
    },
  }).start()
  const { id } = await city.create({ template: 'bad' })
  for (const life of [1, 2, 3, 4, 5]) {
    await city.when(id, `life ${life}`, ({ state, generation }) => state === 'active' && generation === life)
    await city.say(id, 'end')
  }
  const held = await city.is(id, 'quarantined')
  assert.equal(held.reason, 'quarantine')
  assert.equal(held.last_exit?.code, 3)
  assert.ok((held.quarantined_until ?? 0) > Date.now())
  const events = city.events(id)
  assert.equal(events.filter((type) => type === 'session.crashed').length, 5)
  assert.ok(events.includes('session.quarantined'))
})

test('a program that is not there fails the creation', async () => {
  await using city = await new SessionCity({
    providers: { none: { command: '/no/such/program', prompt_mode: 'omit' } },
  }).start()
  const { id } = await city.create({ template: 'none' })
  const failed = await city.is(id, 'failed-create')
  assert.equal(failed.reason, 'missing-dependency')
  assert.equal(failed.process, false)
})

test('another supervisor takes the process over: same pid, same token, nothing typed twice', async () => {
  await using city = await new SessionCity().start()
  const { id } = await city.create()
  const before = await city.is(id, 'active')
  const file = join(city.path, 'said')
  const one = await city.say(id, `echo one >> ${file}`)
  await city.delivered(id, one.id)
  await city.release()
  await city.again()
  const two = await city.say(id, `echo two >> ${file}`)
  await city.delivered(id, two.id)
  const after = city.record(id)
  assert.equal(after.generation, before.generation)
  assert.equal(after.token, before.token)
  assert.equal(after.pid, before.pid)
  await eventually('both lines are written', () => (lines(file).length === 2 ? true : undefined))
  assert.deepEqual(lines(file), ['one', 'two'])
})

test('the city stops: agents end and sleep; it starts: they are back', async () => {
  await using city = await new SessionCity().start()
  const { id } = await city.create()
  const { pid } = await city.is(id, 'active')
  await city.sessions.stop({ force: false })
  const asleep = city.record(id)
  assert.equal(asleep.state, 'asleep')
  assert.equal(asleep.reason, 'city-stop')
  assert.equal(isAlive(pid), false)
  city.store.db.close()
  await city.again()
  const back = await city.is(id, 'active')
  assert.equal(back.generation, 2)
})

test('a busy shell is not interrupted, unless asked, and what asked for it goes first', async () => {
  await using city = await new SessionCity().start()
  const { id } = await city.create()
  await city.is(id, 'active')
  const file = join(city.path, 'said')
  const started = join(city.path, 'started')
  const busy = await city.say(id, `sh -c 'echo on >> ${started}; exec sleep 30'; echo slept >> ${file}`)
  await city.delivered(id, busy.id)
  const later = await city.say(id, `echo later >> ${file}`, { intent: 'follow_up' })
  await eventually('it is seen to be busy', () => (city.sessions.live(id)?.activity === 'in-turn' ? true : undefined))
  assert.equal(city.delivery(id, later.id).state, 'queued')
  // bash loses an interrupt that comes while it starts a program.
  await eventually('its program runs', () => (lines(started).length === 1 ? true : undefined))
  const now = await city.say(id, `echo now >> ${file}`, { intent: 'interrupt_now' })
  await city.delivered(id, now.id)
  await eventually('both are written', () => (lines(file).length === 2 ? true : undefined))
  assert.deepEqual(lines(file), ['now', 'later'])
})

test('kill ends the tree and the session starts again', async () => {
  await using city = await new SessionCity().start()
  const { id } = await city.create()
  const { pid } = await city.is(id, 'active')
  await city.sessions.actor(id)?.kill()
  assert.equal(isAlive(pid), false)
  const again = await city.when(id, 'it is back', ({ state, generation }) => state === 'active' && generation === 2)
  assert.equal(again.crashes.length, 0)
  assert.ok(city.events(id).includes('session.killed'))
})

const isAlive = (pid: number | undefined): boolean => pid !== undefined && isRunning(pid)
