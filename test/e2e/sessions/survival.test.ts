// What sessions survive: the end of the supervisor, of the city, of their own processes. Over HTTP, with real programs.
import assert from 'node:assert/strict'
import { existsSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { suite, test } from 'node:test'
import { unregisterCity } from '../../../src/contract/cities.ts'
import { createSession } from '../../../src/contract/sessions/sessions.ts'
import { isRunning, kill } from '../../support/city-processes.ts'
import { eventually } from '../../support/http.ts'
import { cityIs, outcome, run, runAgain } from '../../support/running.ts'
import { newSessionCity, SessionApi } from '../../support/session-api.ts'
import { openStream } from '../../support/sse.ts'

const lines = (file: string): readonly string[] =>
  existsSync(file)
    ? readFileSync(file, 'utf8')
        .split('\n')
        .filter((line) => line !== '')
    : []

const isAlive = (pid: number | undefined): boolean => pid !== undefined && isRunning(pid)

const AGENT = `[[agent]]
name = "scribe"
provider = "talker"
session = "acp"
`

// Each has a supervisor of its own.
suite('survival', { concurrency: 2 }, () => {
  test('agents of every runtime outlive a supervisor that is killed, and are taken over', async () => {
    await using first = await run()
    const city = await newSessionCity(first, 'alpha')
    const ids = [await city.start(), await city.start(), await city.startTalker()]
    const before = await Promise.all(ids.map(city.get))
    const talker = ids[2] ?? ''
    const asked = await city.ask(talker)
    await first.server.kill('SIGKILL')
    for (const { pid } of before) assert.ok(isAlive(pid), `process ${pid} lives`)

    await using second = await runAgain(first.server.home)
    await cityIs(second.api, 'alpha', 'running')
    const again = new SessionApi(second.api, 'alpha', city.dir)
    for (const old of before) {
      const now = await again.until(old.id, 'is taken over', ({ running }) => running)
      assert.equal(now.pid, old.pid)
      assert.equal(now.generation, 1)
      assert.equal(now.state, 'active')
    }
    const pending = await eventually('the question is open again', () => again.pending(talker))
    assert.equal(pending.request_id, asked.request_id)
    await again.done('POST', `/sessions/${talker}/respond`, { action: 'approve' })
    for (const id of ids.slice(0, 2)) {
      const file = join(city.dir, `said-${id}`)
      await again.message(id, `echo back >> ${file}`)
      await eventually('it took the message', () => (lines(file).length === 1 ? true : undefined))
    }
    await again.done('POST', '/stop')
    for (const { pid } of before) assert.equal(isAlive(pid), false, `process ${pid} has ended`)
  })

  test('messages accepted by a supervisor that is killed are typed once, and their requests end', async () => {
    await using first = await run()
    const city = await newSessionCity(first, 'alpha')
    const id = await city.start()
    const file = join(city.dir, 'said')
    const sent = Array.from({ length: 40 }, (_, n) =>
      city.api.post(`${city.base}/sessions/${id}/messages`, { message: `echo ${n} >> ${file}` }).catch(() => undefined),
    )
    await eventually('some are typed', () => (lines(file).length >= 3 ? true : undefined))
    await first.server.kill('SIGKILL')
    const accepted = (await Promise.all(sent)).filter((answer) => answer?.status === 202)

    await using second = await runAgain(first.server.home)
    await cityIs(second.api, 'alpha', 'running')
    const again = new SessionApi(second.api, 'alpha', city.dir)
    for (const answer of accepted) {
      const body = answer?.body
      assert.ok(typeof body === 'object' && body !== null && 'request_id' in body)
      await outcome(second.api, String(body.request_id))
    }
    await eventually('nothing waits', async () => ((await again.get(id)).queued === 0 ? true : undefined))
    const deliveries = await again.deliveries(id)
    const typed = deliveries.filter(({ state }) => state === 'delivered').map(({ text }) => text.split(' ')[1] ?? '')
    const uncertain = deliveries.filter(({ error_code }) => error_code === 'delivery_uncertain')
    assert.ok(uncertain.length <= 1, JSON.stringify(uncertain))
    const possible = new Set(uncertain.map(({ text }) => text.split(' ')[1] ?? ''))
    await eventually('all that was typed is there', () =>
      typed.every((one) => lines(file).includes(one)) ? true : undefined,
    )
    const seen = lines(file)
    assert.equal(new Set(seen).size, seen.length, `nothing twice: ${seen.join(' ')}`)
    assert.deepEqual(
      seen.filter((one) => !possible.has(one)),
      typed,
      'in the order of acceptance',
    )
  })

  test('a session that was accepted before the supervisor was killed is started by the next one', async () => {
    await using first = await run()
    const city = await newSessionCity(first, 'alpha')
    const path = `${city.base}/sessions`
    const accepted = await city.api.ask(createSession, path, {
      body: { kind: 'provider', name: 'bash', runtime: 'subprocess' },
    })
    await first.server.kill('SIGKILL')
    await using second = await runAgain(first.server.home)
    await cityIs(second.api, 'alpha', 'running')
    const request = await outcome(second.api, accepted.request_id)
    assert.equal(request.status, 'succeeded', JSON.stringify(request))
    const again = new SessionApi(second.api, 'alpha', city.dir)
    assert.equal((await again.is(accepted.session_id, 'active')).running, true)
    await again.close(accepted.session_id)
  })

  test('a supervisor that is asked to end leaves agents running, and nothing of a start; a city that is stopped does not', async () => {
    await using first = await run()
    const city = await newSessionCity(first, 'alpha')
    await city.configure(`[[agent]]
name = "slow"
provider = "bash"
pre_start = ["[ -e began ] || { echo $$ > begins; mv begins began; sleep 600; }"]
`)
    const id = await city.start()
    const { pid } = await city.get(id)
    const slow = await city.accept({ kind: 'agent', name: 'slow' })
    const began = join(city.dir, 'began')
    await eventually('its start is under way', () => existsSync(began) || undefined)
    assert.equal(await first.server.kill('SIGTERM'), 0)
    assert.ok(isAlive(pid))
    assert.equal(isAlive(Number(readFileSync(began, 'utf8'))), false)

    await using second = await runAgain(first.server.home)
    await cityIs(second.api, 'alpha', 'running')
    const again = new SessionApi(second.api, 'alpha', city.dir)
    await again.is(slow.id, 'active')
    await again.close(slow.id)
    const stopped = await again.done('POST', '/stop')
    assert.equal(stopped.sessions_stopped, 1)
    assert.equal(isAlive(pid), false)
    await second.api.post('/v0/city/alpha/start')
    await cityIs(second.api, 'alpha', 'running')
    const back = await again.is(id, 'active')
    assert.equal(back.generation, 2)
    const reasons = (await again.events('session.*', { subject: id })).map(
      ({ type, payload }) => `${type} ${payload.reason ?? ''}`,
    )
    assert.ok(reasons.includes('session.stopped city-stop'), reasons.join(', '))
    await again.close(id)
  })

  test('streams of sessions and agents end when their city stops', async () => {
    await using running = await run()
    const city = await newSessionCity(running, 'alpha', AGENT)
    const id = await city.start()
    const streams = await Promise.all(
      [`/sessions/${id}/stream`, `/sessions/${id}/stream?format=raw`, '/agents/scribe/output/stream'].map((path) =>
        openStream(city.api, `${city.base}${path}`),
      ),
    )
    await city.done('POST', '/stop')
    for (const stream of streams) {
      await stream.ended
      assert.ok(stream.complete, stream.operation.path)
    }
  })

  test('agents of a city whose directory is gone end when the city is given up', async () => {
    await using running = await run()
    const city = await newSessionCity(running, 'alpha')
    const id = await city.start()
    const { pid } = await city.get(id)
    rmSync(city.dir, { recursive: true })
    const given = await city.api.ask(unregisterCity, `${city.base}/unregister`)
    assert.equal((await outcome(city.api, given.request_id)).status, 'succeeded')
    assert.equal(isAlive(pid), false)
  })

  test('a process that nobody answers for is left alone, and ends at a word', async () => {
    await using running = await run()
    const city = await newSessionCity(running, 'alpha')
    const [killed, stopped] = [await city.start(), await city.start()]
    const pids = [(await city.get(killed)).pid, (await city.get(stopped)).pid]
    const hosts = [city.hostOf(killed), city.hostOf(stopped)]
    for (const host of hosts) process.kill(host, 'SIGSTOP')
    try {
      await running.server.kill('SIGKILL')
      await using again = await runAgain(running.server.home)
      await cityIs(again.api, 'alpha', 'running')
      const next = new SessionApi(again.api, 'alpha', city.dir)
      const unseen = await next.get(killed)
      assert.deepEqual([unseen.state, unseen.liveness, unseen.generation], ['active', 'unknown', 1])
      for (const rest of ['/stop', '/screen']) {
        const method = rest === '/stop' ? 'POST' : 'GET'
        const refused = await next.send(method, `/sessions/${killed}${rest}`)
        assert.ok(refused.status === 501 || /cannot be observed/.test(refused.text), `${rest}: ${refused.text}`)
      }
      await next.done('POST', `/sessions/${killed}/kill`)
      assert.equal(isAlive(pids[0]), false, 'nothing of it runs')
      await next.until(killed, 'is back', ({ state, generation }) => state === 'active' && generation === 2)
      assert.equal((await next.get(stopped)).liveness, 'unknown')
      await next.done('POST', '/stop')
      assert.equal(isAlive(pids[1]), false, 'a city that is stopped runs nothing')
    } finally {
      // Awake they would linger for a supervisor that reads how it ended.
      for (const host of hosts) kill(host)
    }
  })

  test('a process that dies with its host is started again; one that was left behind is ended', async () => {
    await using running = await run()
    const city = await newSessionCity(running, 'alpha')
    const id = await city.start()
    const { pid } = await city.get(id)
    process.kill(city.hostOf(id), 'SIGKILL')
    const back = await city.until(id, 'is back', ({ state, generation }) => state === 'active' && generation === 2)
    assert.equal(back.last_exit?.reason, 'host_lost')
    assert.equal(isAlive(pid), false, 'what the host left behind is ended')
    await city.close(id)
  })

  test('the task given with create is told once though the supervisor is killed during pre_start', async () => {
    await using first = await run()
    const city = await newSessionCity(first, 'alpha')
    city.write('teller.sh', '#!/bin/sh\nprintf "%s\\n" "$*" >> told\necho ready\nexec cat\n', 0o755)
    await city.configure(`[providers.teller]
command = "./teller.sh"
prompt_mode = "arg"
[[agent]]
name = "teller"
provider = "teller"
pre_start = ["touch began; while [ ! -e go ]; do sleep 0.05; done"]
`)
    const { id } = await city.accept({ kind: 'agent', name: 'teller', message: 'paint the fence' })
    await eventually('its start is under way', () => (existsSync(join(city.dir, 'began')) ? true : undefined))
    await first.server.kill('SIGKILL')
    city.write('go', '')
    await using second = await runAgain(first.server.home)
    await cityIs(second.api, 'alpha', 'running')
    const again = new SessionApi(second.api, 'alpha', city.dir)
    await again.is(id, 'active')
    const told = lines(join(city.dir, 'told')).filter((line) => line.includes('paint the fence'))
    assert.equal(told.length, 1, readFileSync(join(city.dir, 'told'), 'utf8'))
    const [delivery] = await again.deliveries(id)
    assert.equal(delivery?.state, 'delivered')
    await again.done('POST', '/stop')
  })
})
