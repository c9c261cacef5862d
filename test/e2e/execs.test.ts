// Commands of a city over what people do with it: the supervisor ends and comes back, the city is stopped, given up, deleted.
import assert from 'node:assert/strict'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { startCity, stopCity, unregisterCity } from '../../src/contract/cities.ts'
import { tokensIn } from '../../src/runtimes/process/process-tree.ts'
import { asMap } from '../support/document.ts'
import { eventually } from '../support/http.ts'
import { type Running, run, runAgain, succeeds } from '../support/running.ts'
import { newSessionCity, SessionApi } from '../support/session-api.ts'

const WAITS = 'echo $$ >> "$SVC_CITY_PATH/pids"; while [ ! -e "$SVC_CITY_PATH/go" ]; do sleep 0.1; done; echo done'
const order = (more: string) => `[order]\ntrigger = "manual"\nexec = '${WAITS}'\n${more}`
const FILES = {
  'orders/once.toml': order('vars = { who = "ana" }\nenv = { A_TOKEN = "hidden" }'),
  'orders/again.toml': order('idempotent = true'),
}

/** A city in which both orders run. */
async function busyCity(running: Running, name: string) {
  const city = await newSessionCity(running, name)
  await city.configure('', FILES)
  const start = async (which: string) => String((await city.done('POST', `/orders/${which}/run`)).id)
  const [once, again] = [await start('once'), await start('again')]
  await begun(city, 2)
  return { city, once, again }
}

const begun = (city: SessionApi, count: number) =>
  eventually(`${count} commands have begun`, () => {
    try {
      return city.read('pids').trim().split('\n').length === count ? true : undefined
    } catch {
      return undefined
    }
  })

const ends = (city: SessionApi, id: string) =>
  eventually(`${id} ends`, async () => {
    const found = asMap((await city.send('GET', `/orders/history/${id}`)).body)
    return found['finished_at'] === undefined ? undefined : found
  })

const isGone = (city: SessionApi) =>
  eventually('no process is left', () => (tokensIn(city.dir).size === 0 ? true : undefined))

test('commands run on when the supervisor ends, and the next one tells their ends', async () => {
  await using first = await run()
  const { city, once, again } = await busyCity(first, 'alpha')
  assert.match(
    await first.api.call('GET', '/metrics').then(({ text }) => text),
    /^svc_execs_running\{city="alpha"\} 2$/m,
  )
  assert.equal(await first.server.kill('SIGTERM'), 0)
  assert.notEqual(tokensIn(city.dir).size, 0)
  await using second = await runAgain(first.server.home)
  const after = new SessionApi(second.api, 'alpha', city.dir)
  after.write('go', '')
  for (const id of [once, again]) {
    const found = await ends(after, id)
    assert.deepEqual([found['status'], found['exit_code'], found['output']], ['succeeded', 0, 'done\n'])
  }
  assert.equal(city.read('pids').trim().split('\n').length, 2)
})

test('a city that stops ends its commands; those that may run again do when it starts', async () => {
  await using running = await run()
  const { city, once, again } = await busyCity(running, 'alpha')
  await running.api.ask(stopCity, `${city.base}/stop`)
  assert.equal(tokensIn(city.dir).size, 0)
  await succeeds(running.api, await running.api.ask(startCity, `${city.base}/start`))
  const failed = await ends(city, once)
  assert.equal(failed['status'], 'failed')
  assert.match(String(failed['error']), /the city stopped|interrupted/)
  await begun(city, 3)
  city.write('go', '')
  assert.equal((await ends(city, again))['status'], 'succeeded')
})

test('a city that is given up, or deleted from the disk, leaves no command running', async () => {
  await using running = await run()
  const [left, deleted] = [await busyCity(running, 'left'), await busyCity(running, 'deleted')]
  const unregister = async ({ city }: { readonly city: SessionApi }) =>
    succeeds(running.api, await running.api.ask(unregisterCity, `${city.base}/unregister`))
  await unregister(left)
  await isGone(left.city)
  rmSync(join(deleted.city.dir), { recursive: true, force: true })
  await unregister(deleted)
  await isGone(deleted.city)
})
