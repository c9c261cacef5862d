/** Requests to services while these start, fail, are restarted and suspended: held, answered, refused, and never lost. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { at } from '../../support/document.ts'
import { assertProblem, eventually } from '../../support/http.ts'
import { type Running, run, tokenOf } from '../../support/running.ts'
import { declaration, newServiceCity, type ServiceCity } from '../../support/service-city.ts'

const ask = (city: ServiceCity, path: string) => fetch(`${city.api.url}${city.base}/svc/page${path}`)

describe('requests to a service', { concurrency: 3 }, () => {
  let running: Running
  before(async () => {
    running = await run()
  })
  after(() => running[Symbol.asyncDispose]())

  test('who comes while it starts for the first time waits, and is answered', async () => {
    const city = await newServiceCity(running, 'late', declaration({ env: { SERVICE_LATE: '1500' } }))
    const answers = await Promise.all(Array.from({ length: 20 }, () => ask(city, '/pid')))
    const pids = new Set(await Promise.all(answers.map((answer) => answer.text())))
    assert.deepEqual([...pids], [String((await city.get()).pid)])
  })

  test('none is lost while it is restarted and declared otherwise under load, and there are never two', async () => {
    const city = await newServiceCity(running, 'loaded', declaration())
    await city.is('ready')
    const answered = new Map<string, number>()
    const failed: string[] = []
    let isOver = false
    const client = async () => {
      while (!isOver) {
        const answer = await ask(city, '/slow?ms=5')
        const text = await answer.text()
        if (answer.status === 200) answered.set(text, (answered.get(text) ?? 0) + 1)
        else failed.push(`${answer.status} ${text}`)
      }
    }
    const clients = Array.from({ length: 20 }, client)
    for (let round = 0; round < 3; round++) {
      await pause(200)
      const { status } = await city.api.post(`${city.base}/services/page/restart`)
      assert.equal(status, 200)
      await pause(200)
      await city.declare(declaration({ env: { ROUND: String(round) } }))
    }
    await eventually('the last declaration is served', async () => {
      const env: unknown = JSON.parse(await (await ask(city, '/env')).text())
      return at(env, 'ROUND') === '2' ? true : undefined
    })
    isOver = true
    await Promise.all(clients)
    assert.deepEqual(failed, [])
    // One that is asked for while another one is under way may be the same.
    assert.ok(city.lives().length >= 4, `${city.lives().length} lives`)
    assert.deepEqual(
      [...answered.keys()].map(Number).filter((pid) => !city.lives().includes(pid)),
      [],
    )
    assert.equal(city.doubled(), '')
  })

  test('what runs may finish before it is restarted, and what comes meanwhile waits', async () => {
    const city = await newServiceCity(running, 'finish', declaration())
    const { pid } = await city.is('ready')
    const slow = await ask(city, '/slow?ms=5000&heard')
    const restarted = city.api.post(`${city.base}/services/page/restart`)
    await eventually('it is being restarted', async () => ((await city.get()).state === 'starting' ? true : undefined))
    const next = ask(city, '/pid')
    assert.equal(await slow.text(), String(pid))
    assert.notEqual(await (await next).text(), String(pid))
    assert.equal((await restarted).status, 200)
  })

  test('a stream has ten seconds, and is cut then', async () => {
    const city = await newServiceCity(running, 'streams', declaration())
    await city.is('ready')
    const stream = await ask(city, '/stream')
    const restarted = city.api.post(`${city.base}/services/page/restart`)
    const begun = performance.now()
    await assert.rejects(stream.text())
    assert.ok(performance.now() - begun > 9_000)
    assert.equal(at((await restarted).body, 'state'), 'ready')
  })

  test('one that does not work, or is suspended, is 503 with the time to come again', async () => {
    const ends = declaration({ name: 'ends', command: ['sh', '-c', 'sleep 1; exit 3'] })
    const city = await newServiceCity(running, 'down', declaration({ command: ['/no/such/program'] }), ends)
    const held = await city.api.get(`${city.base}/svc/ends/`)
    assertProblem(held, 'unavailable', 'unavailable: service ends is degraded: process_exited')
    assert.ok(Number(held.headers['retry-after']) <= 5)
    await city.is('degraded')
    const answer = await city.api.get(`${city.base}/svc/page/`)
    assertProblem(answer, 'unavailable', 'unavailable: service page is degraded: start_failed')
    assert.ok(Number(answer.headers['retry-after']) >= 1)
    await city.declare(declaration())
    await city.is('ready')
    await city.api.post(`${city.base}/services/page/suspend`)
    const asleep = await city.api.get(`${city.base}/svc/page/`)
    assertProblem(asleep, 'unavailable', 'unavailable: service page is suspended')
    assert.equal(asleep.headers['retry-after'], '60')
  })
})

describe('where the API asks for a token', () => {
  test('a service has one that is for its work in its city, as long as its process lives', async () => {
    await using running = await run({ args: ['--auth'] })
    const city = await newServiceCity(running, 'alpha', declaration())
    await city.is('ready')
    const authorization = `Bearer ${tokenOf(running.server.home)}`
    const answer = await fetch(`${running.api.url}${city.base}/svc/page/env`, { headers: { authorization } })
    const token = String(at(await answer.json(), 'SVC_TOKEN'))
    assert.match(token, /^[0-9a-f]{64}$/)
    const as = (method: string, path: string, body?: object) =>
      running.api.call(method, path, {
        headers: { authorization: `Bearer ${token}` },
        ...(body === undefined ? {} : { body }),
      })
    const { base } = city
    const may = [
      await as('GET', `${base}/beads`),
      await as('POST', `${base}/beads`, { title: 'From outside' }),
      await as('GET', `${base}/services`),
      await as('POST', `${base}/adapters`, { provider: 'irc', account_id: 'a' }),
      await as('POST', `${base}/adapters/irc/a/deliveries/claim`, { limit: 1, wait: '0s' }),
    ]
    assert.deepEqual(
      may.map(({ status }) => status),
      [200, 201, 200, 201, 200],
      may.map(({ text }) => text).join('\n'),
    )
    const mayNot = [
      await as('GET', '/v0/events'),
      await as('GET', '/v0/city/other/beads'),
      await as('POST', `${base}/services/page/restart`),
      await as('GET', `${base}/services/page/secrets`),
      await as('GET', `${base}/services/page/log`),
      await as('PUT', `${base}/services/page/secrets/x`, { value: 'y' }),
      await as('POST', `${base}/stop`),
      await as('GET', '/v0/tokens'),
      await as('GET', `${base}/svc/page/env`),
      await as('POST', `${base}/sessions/none/report`, {}),
    ]
    assert.deepEqual(
      mayNot.map(({ status }) => status),
      mayNot.map(() => 403),
      mayNot.map(({ text }) => text).join('\n'),
    )
    await running.api.post(`${base}/services/page/suspend`)
    assertProblem(await as('GET', `${base}/beads`), 'unauthorized')
  })
})
