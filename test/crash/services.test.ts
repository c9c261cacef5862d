/**
 * Services over deaths: whoever is killed, and whenever, there are never two processes of a service, and one is ready again
 * soon. What runs when only the supervisor dies runs on.
 *
 *   SVC_SOAK=1    more rounds
 */
import assert from 'node:assert/strict'
import { Agent, get } from 'node:http'
import { suite, test } from 'node:test'
import { isRunning, kill } from '../support/city-processes.ts'
import { tryCall } from '../support/crash-client.ts'
import { eventually } from '../support/http.ts'
import { seededRandom } from '../support/random.ts'
import { cityIs, run, runAgain } from '../support/running.ts'
import { declaration, newServiceCity, ServiceCity } from '../support/service-city.ts'

const ROUNDS = process.env['SVC_SOAK'] === '1' ? 60 : 8
/** Requests a second, and for how long. */
const [RATE, SECONDS] = process.env['SVC_SOAK'] === '1' ? [1_000, 20] : [150, 4]
const DEATHS = ['supervisor', 'host', 'service', 'both', 'restart', 'declared', 'suspended'] as const

/** Status and body of what the service of the city says of itself. */
function askPid(url: string, agent?: Agent): Promise<string> {
  return new Promise((resolve, reject) => {
    const request = get(`${url}/v0/city/alpha/svc/page/pid`, { ...(agent && { agent }) }, (response) => {
      let text = ''
      response.setEncoding('utf8').on('data', (chunk: string) => {
        text += chunk
      })
      response.once('end', () => resolve(`${response.statusCode} ${text}`)).once('error', reject)
    })
    request.once('error', reject)
  })
}

suite('services over deaths', { concurrency: 2 }, () => {
  test('one supervisor after the other dies, and the service runs on', { timeout: 300_000 }, async () => {
    let running = await run()
    const { home } = running.server
    const { dir } = await newServiceCity(running, 'alpha', declaration())
    let city = new ServiceCity(running.api, 'alpha', dir)
    const { pid } = await city.is('ready')
    for (let round = 0; round < 3; round++) {
      await running.server.kill('SIGKILL')
      running = await runAgain(home)
      await cityIs(running.api, 'alpha', 'running')
      city = new ServiceCity(running.api, 'alpha', dir)
      assert.equal((await city.is('ready')).pid, pid)
    }
    assert.deepEqual(city.lives(), [pid])
    await running.server.kill('SIGTERM')
    assert.deepEqual(city.processes(), [pid])
    for (const one of [...city.hosts(), ...city.processes()]) kill(one)
  })

  test('requests that are held when the supervisor dies come again, and the same process answers them', {
    timeout: 300_000,
  }, async () => {
    await using first = await run()
    const { dir } = await newServiceCity(first, 'alpha', declaration({ env: { SERVICE_LATE: '4000' } }))
    const city = new ServiceCity(first.api, 'alpha', dir)
    await eventually('it has begun', () => (city.lives().length === 1 ? true : undefined))
    const held = Array.from({ length: 20 }, () => askPid(first.api.url).catch(() => 'lost'))
    await first.server.kill('SIGKILL')
    assert.deepEqual([...new Set(await Promise.all(held))], ['lost'])
    await using second = await runAgain(first.server.home)
    await cityIs(second.api, 'alpha', 'running')
    const answers = await Promise.all(Array.from({ length: 20 }, () => askPid(second.api.url)))
    assert.deepEqual([...new Set(answers)], [`200 ${city.lives()[0]}`])
    assert.equal(city.lives().length, 1)
    await new ServiceCity(second.api, 'alpha', dir).declare()
  })

  test(`${RATE} requests a second lose none while it is restarted again and again`, { timeout: 300_000 }, async (t) => {
    await using running = await run()
    const city = await newServiceCity(running, 'alpha', declaration())
    await city.is('ready')
    const agent = new Agent({ keepAlive: true, maxSockets: 500 })
    const asked: Promise<string>[] = []
    const begun = performance.now()
    let restarts = 0
    const timer = setInterval(() => {
      const due = Math.min(((performance.now() - begun) / 1000) * RATE, RATE * SECONDS)
      while (asked.length < due) asked.push(askPid(running.api.url, agent).catch((error: unknown) => String(error)))
    }, 5)
    while (performance.now() - begun < SECONDS * 1000) {
      await city.api.post(`${city.base}/services/page/restart`)
      restarts++
    }
    clearInterval(timer)
    const answers = await Promise.all(asked)
    agent.destroy()
    const lives = new Set(city.lives().map((pid) => `200 ${pid}`))
    assert.deepEqual(
      answers.filter((answer) => !lives.has(answer)),
      [],
    )
    assert.equal(city.doubled(), '')
    const seconds = (performance.now() - begun) / 1000
    t.diagnostic(`${answers.length} requests in ${seconds.toFixed(1)} s, ${restarts} restarts`)
    await city.declare()
  })

  test('whatever dies at whatever moment, there are never two', { timeout: 900_000 }, async () => {
    const random = seededRandom()
    await using first = await run()
    const { home } = first.server
    const { dir } = await newServiceCity(first, 'alpha', declaration({ env: { SERVICE_CHILD: '1' } }))
    let running = first
    let city = new ServiceCity(first.api, 'alpha', dir)
    for (let round = 0; round < ROUNDS; round++) {
      const death = random.pick(DEATHS) ?? 'supervisor'
      // Sometimes it is in the middle of becoming ready.
      if (random.chance(0.7)) await city.is('ready')
      const { url } = running.server
      const post = (action: string) => void tryCall(url, 'POST', `/v0/city/alpha/services/page/${action}`)
      if (death === 'restart') post('restart')
      if (death === 'suspended') post('suspend')
      if (death === 'declared') {
        city.save(declaration({ env: { SERVICE_CHILD: '1', ROUND: String(round) } }))
        void tryCall(url, 'POST', '/v0/city/alpha/config/reload')
      }
      if (death === 'host' || death === 'both') for (const host of city.hosts()) kill(host)
      if (death === 'service') for (const one of city.processes()) kill(one)
      if (death !== 'host' && death !== 'service') {
        const { promise: passed, resolve } = Promise.withResolvers<void>()
        setTimeout(resolve, random.between(0, 700))
        await passed
        await running.server.kill('SIGKILL')
        running = await runAgain(home)
        await cityIs(running.api, 'alpha', 'running')
        city = new ServiceCity(running.api, 'alpha', dir)
      }
      await eventually(
        `it is ready or suspended after ${death}`,
        async () => {
          const { state, pid } = await city.get()
          if (state === 'suspended') await city.api.post(`${city.base}/services/page/resume`)
          return state === 'ready' && pid !== undefined && isRunning(pid) ? true : undefined
        },
        120_000,
      )
      assert.equal(city.doubled(), '', `two after ${death}, in round ${round}`)
      // Each end is read by somebody: a host that nobody reads would stay for a minute.
      await eventually(
        `what belonged to earlier ones is gone after ${death}, in round ${round}`,
        () => (city.hosts().length === 1 && city.processes().length === 2 ? true : undefined),
        30_000,
      ).catch(async (error: unknown) => {
        const { state, pid } = await city.get()
        const seen = `hosts ${city.hosts()}; processes ${city.processes()}; lives ${city.lives()}; ${state} ${pid}`
        throw new Error(`${error instanceof Error ? error.message : ''}: ${seen}`, { cause: error })
      })
    }
    await city.declare()
    await city.none()
    await running[Symbol.asyncDispose]()
  })
})
