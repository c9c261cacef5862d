// What the files of a city want of its sessions: named ones, pools, dependencies, drift. With real programs.
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { fresh } from '../../support/fresh.ts'
import { assertProblem, eventually } from '../../support/http.ts'
import { cityIs, type Running, run } from '../../support/running.ts'
import { newSessionCity, type SessionApi } from '../../support/session-api.ts'

const AGENT = (name: string, more = '') => `
[[agent]]
name = "${name}"
provider = "bash"
${more}`
const NAMED = (template: string, mode: string, name = template) => `
[[named_session]]
template = "${template}"
name = "${name}"
mode = "${mode}"
`

async function sessionsOf(city: SessionApi, template: string, state = 'open') {
  const { items } = await city.done('GET', `/sessions?template=${template}&state=${state}`)
  assert.ok(Array.isArray(items))
  return items.map((item: unknown) => item as { readonly id: string; readonly state: string; readonly alias?: string })
}

let running: Running
before(async () => {
  running = await run()
})
after(() => running[Symbol.asyncDispose]())

test('a session that is always wanted comes with the configuration, and comes back', async () => {
  const city = await newSessionCity(running, fresh('city'), `${AGENT('mayor')}${NAMED('mayor', 'always')}`)
  const mayor = await city.is('mayor', 'active')
  assert.equal(mayor.configured_named_session, true)
  assert.equal(mayor.origin, 'named')
  await city.done('POST', '/sessions/mayor/kill')
  await city.until('mayor', 'is back', ({ state, generation }) => state === 'active' && generation === 2)
  const refused = await city.send('POST', '/sessions/mayor/close')
  assert.equal(refused.status, 409)
  // A hold beats the configuration.
  await city.done('POST', '/sessions/mayor/suspend')
  await city.is('mayor', 'suspended')
})

test('a session on demand is made by the first message', async () => {
  const city = await newSessionCity(running, fresh('city'), `${AGENT('clerk')}${NAMED('clerk', 'on_demand')}`)
  assert.equal((await sessionsOf(city, 'clerk')).length, 0)
  await city.message('clerk', 'echo hello-from-clerk')
  await city.said('clerk', 'hello-from-clerk')
  const clerk = await city.get('clerk')
  assert.equal(clerk.template, 'clerk')
  assert.equal(clerk.alias, 'clerk')
})

test('a pool keeps its floor, and what is more than wanted is closed', async () => {
  const pool = (floor: number) => AGENT('hand', `min_active_sessions = ${floor}\nmax_active_sessions = 4`)
  const city = await newSessionCity(running, fresh('city'), pool(3))
  const three = await eventually('three instances run', async () => {
    const found = await sessionsOf(city, 'hand', 'active')
    return found.length === 3 ? found : undefined
  })
  assert.equal(three.length, 3)
  await city.configure(pool(1).replace('provider', 'drain_timeout = "1s"\nprovider'))
  await eventually('one instance is left', async () =>
    (await sessionsOf(city, 'hand')).length === 1 ? true : undefined,
  )
})

test('a change of the command line restarts what runs; one of the limits does not', async () => {
  const city = await newSessionCity(running, fresh('city'), `${AGENT('mayor')}${NAMED('mayor', 'always')}`)
  const first = await city.is('mayor', 'active')
  await city.configure(`${AGENT('mayor', 'max_active_sessions = 3')}${NAMED('mayor', 'always')}`)
  await city.configure(`${AGENT('mayor', 'env = { COLOUR = "red" }')}${NAMED('mayor', 'always')}\n`)
  const drained = await city.until(
    'mayor',
    'drains or is back',
    ({ state, generation }) => state === 'draining' || generation === 2,
  )
  assert.equal(drained.id, first.id)
  await city.done('POST', '/sessions/mayor/drain-ack').catch(() => {})
  await city.until('mayor', 'is back', ({ state, generation }) => state === 'active' && generation === 2)
  await city.message('mayor', 'echo colour=$COLOUR')
  await city.said('mayor', 'colour=red')
})

test('an agent that is suspended in the files is drained and not woken', async () => {
  const city = await newSessionCity(running, fresh('city'), `${AGENT('mayor')}${NAMED('mayor', 'always')}`)
  await city.is('mayor', 'active')
  await city.configure(`${AGENT('mayor', 'suspended = true')}${NAMED('mayor', 'always')}`)
  await city.is('mayor', 'draining')
  await city.done('POST', '/sessions/mayor/drain-ack')
  const asleep = await city.is('mayor', 'asleep')
  assert.equal(asleep.reason, 'drained')
  await city.configure(`${AGENT('mayor')}${NAMED('mayor', 'always')}`)
  await city.is('mayor', 'active')
})

test('who is held goes on when the hold is lifted, and takes no message meanwhile', async () => {
  const city = await newSessionCity(running, fresh('city'), AGENT('worker'))
  const busy = await city.start({ kind: 'agent', name: 'worker' })
  const resting = await city.start({ kind: 'agent', name: 'worker' })
  await city.done('POST', `/sessions/${resting}/suspend`)
  await city.message(busy, 'sleep 1000')
  await city.done('PATCH', '', { suspended: true })
  await city.is(busy, 'draining')
  for (const verb of ['messages', 'wake']) {
    const refused = await city.send(
      'POST',
      `/sessions/${resting}/${verb}`,
      verb === 'wake' ? undefined : { message: 'x' },
    )
    assert.match(assertProblem(refused, 'conflict-config').detail, /^conflict: the city is suspended/)
  }
  await city.done('PATCH', '', { suspended: false })
  const back = await city.is(busy, 'active')
  assert.equal(back.generation, 1, 'nothing of it was ended')
  assert.equal((await city.get(resting)).state, 'suspended')
})

test('who runs otherwise than the files say now is restarted, and the event says who; a pinned one is left', async () => {
  const city = await newSessionCity(running, fresh('city'), AGENT('worker', 'env = { COLOUR = "red" }'))
  const id = await city.start({ kind: 'agent', name: 'worker' })
  const pinned = await city.start({ kind: 'agent', name: 'worker' })
  await city.done('PATCH', `/sessions/${pinned}`, { pinned: true })
  const told = async () => (await city.events('config.reloaded')).at(-1)?.payload.restarted
  await city.configure(AGENT('worker', 'env = { COLOUR = "red" }\nnudge = "go on"'))
  assert.deepEqual(await told(), [], 'what is read when it is needed restarts nobody')
  await city.configure(AGENT('worker', 'env = { COLOUR = "blue" }'))
  assert.deepEqual(await told(), [id])
  await city.is(id, 'draining')
  await city.done('POST', `/sessions/${id}/drain-ack`)
  await eventually('it runs anew', async () => {
    const { generation, state } = await city.get(id)
    return generation === 2 && state === 'active' ? true : undefined
  })
  await city.message(id, 'echo it-is-$COLOUR')
  await city.said(id, 'it-is-blue')
  assert.equal((await city.get(pinned)).generation, 1)
  const drained = (await city.events('session.*', { subject: id })).filter(
    ({ payload }) => payload.reason === 'config-drift',
  )
  assert.ok(drained.length > 0)
})

test('who depends on another agent starts after it, and ends before it', async () => {
  const slow = AGENT('base', 'pre_start = ["sleep 1"]')
  const city = await newSessionCity(
    running,
    fresh('city'),
    `${AGENT('top', 'depends_on = ["base"]')}${slow}${NAMED('top', 'always')}${NAMED('base', 'always')}`,
  )
  await city.is('top', 'active')
  const woke = (await city.events('session.woke')).map(({ payload }) => payload.template)
  assert.deepEqual(woke, ['base', 'top'])
  await city.done('POST', '/stop')
  await city.done('POST', '/start')
  await cityIs(running.api, city.name, 'running')
  const stopped = await city.events('session.stopped')
  assert.deepEqual(
    stopped.map(({ payload }) => [payload.template, payload.reason]),
    [
      ['top', 'city-stop'],
      ['base', 'city-stop'],
    ],
  )
})

test('a prompt and the message of the creation reach an agent together, once', async () => {
  const city = await newSessionCity(running, fresh('city'))
  const teller = `
[providers.teller]
command = "/bin/sh"
args = ["-c", "printf 'got<%s>' \\"$1\\"; exec cat", "teller"]
prompt_mode = "arg"
delivery = "line"
[[agent]]
name = "teller"
provider = "teller"
prompt_template = "prompts/teller.md"
`
  await city.configure(teller, { 'prompts/teller.md': 'You tell things.' })
  const id = await city.start({ kind: 'agent', name: 'teller', message: 'tell me one' })
  const text = await city.said(id, 'tell me one>')
  assert.match(text, new RegExp(`got<\\[${city.name}\\] .*You tell things\\.\\s+tell me one>`, 's'))
  const [delivery] = await city.deliveries(id)
  assert.equal(delivery?.state, 'delivered')
  await city.close(id)
})

test('a bounded command runs once and sleeps', async () => {
  const file = 'ran'
  const once = AGENT('once', `lifecycle = "one_shot"\nstart_command = "echo x >> ${file}"`)
  const city = await newSessionCity(running, fresh('city'), once)
  const id = await city.start({ kind: 'agent', name: 'once' })
  const asleep = await city.is(id, 'asleep')
  assert.equal(asleep.reason, 'exited')
  assert.equal(city.read(join(file)), 'x\n')
})

test('a session whose program hangs delays no other one', async () => {
  const city = await newSessionCity(running, fresh('city'), AGENT('stuck', 'pre_start = ["sleep 600"]'))
  const stuck = await city.accept({ kind: 'agent', name: 'stuck' })
  const id = await city.start()
  await city.message(id, 'echo quick')
  await city.said(id, 'quick')
  assert.equal((await city.get(stuck.id)).state, 'creating', 'it hangs still')
  await city.done('POST', `/sessions/${stuck.id}/close?delete=true`)
  assert.equal((await city.send('GET', `/sessions/${stuck.id}`)).status, 404)
})
