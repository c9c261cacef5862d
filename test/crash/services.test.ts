/**
 * Services over deaths: whoever is killed, and whenever, there are never two processes of a service, and one is ready again
 * soon. What runs when only the supervisor dies runs on.
 *
 *   SVC_SOAK=1    more rounds
 */
import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { isRunning, kill } from '../support/city-processes.ts'
import { tryCall } from '../support/crash-client.ts'
import { eventually } from '../support/http.ts'
import { seededRandom } from '../support/random.ts'
import { cityIs, run, runAgain } from '../support/running.ts'
import { declaration, newServiceCity, ServiceCity } from '../support/service-city.ts'

const ROUNDS = process.env['SVC_SOAK'] === '1' ? 60 : 8
const DEATHS = ['supervisor', 'host', 'service', 'both', 'restart', 'declared', 'suspended'] as const

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
        city.write(declaration({ env: { SERVICE_CHILD: '1', ROUND: String(round) } }))
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
      // A host whose end nobody has read waits a minute for that.
      await eventually(
        `what belonged to earlier ones is gone after ${death}, in round ${round}`,
        () => (city.hosts().length === 1 && city.processes().length === 2 ? true : undefined),
        90_000,
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
