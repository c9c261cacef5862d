// A harness that has lost a conversation begins another one, and the log says so; one that was killed has lost nothing.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { PUPPET, Puppet, writePuppet } from '../../support/hooked-harness.ts'
import { run } from '../../support/running.ts'
import { newSessionCity, type SessionApi } from '../../support/session-api.ts'

const resets = (city: SessionApi, id: string) => city.events('session.reset', { subject: id })

/** What it was started with for that time, by flags of the puppet. */
const conversation = async (puppet: Puppet, time: number) =>
  /--(resume|session-id) (\S+)/.exec(await puppet.started(time))?.slice(1) ?? []

async function puppetThatSpoke(city: SessionApi): Promise<{ readonly id: string; readonly puppet: Puppet }> {
  writePuppet(city)
  await city.configure(PUPPET)
  const id = await city.start({ name: 'puppet' })
  const puppet = new Puppet(city, id)
  await puppet.do('tell UserPromptSubmit')
  await puppet.do('tell Stop')
  return { id, puppet }
}

test('a harness on a terminal that does not know its conversation any more begins a new one, and that is told', async () => {
  await using running = await run()
  const city = await newSessionCity(running, 'alpha')
  const { id, puppet } = await puppetThatSpoke(city)
  const [, key = ''] = await conversation(puppet, 1)
  puppet.forget(key)
  await city.done('POST', `/sessions/${id}/suspend`)
  await city.done('POST', `/sessions/${id}/wake`)
  await city.until(id, 'runs again', ({ state, generation }) => state === 'active' && generation === 3)
  const [refused, begun] = [await conversation(puppet, 2), await conversation(puppet, 3)]
  assert.deepEqual([refused, begun[0], begun[1] === key], [['resume', key], 'session-id', false])
  const told = await resets(city, id)
  assert.deepEqual(
    told.map(({ payload, message }) => [payload['reason'], message]),
    [['conversation-lost', `conversation ${key} could not be taken up again: a new one begins`]],
  )
})

test('a harness that is killed as soon as it has its conversation again keeps it', async () => {
  await using running = await run()
  const city = await newSessionCity(running, 'alpha')
  const { id, puppet } = await puppetThatSpoke(city)
  const [, key = ''] = await conversation(puppet, 1)
  for (const next of [2, 3, 4]) {
    const { pid } = await city.get(id)
    process.kill(pid ?? assert.fail('it has no process'), 'SIGKILL')
    await city.until(id, `is in run ${next}`, ({ state, generation }) => state === 'active' && generation === next)
    assert.deepEqual(await conversation(puppet, next), ['resume', key])
  }
  assert.deepEqual(await resets(city, id), [])
})

test('an agent that refuses over its protocol to load its conversation begins a new one, and that is told', async () => {
  await using running = await run()
  const city = await newSessionCity(running, 'alpha')
  const id = await city.startTalker()
  await city.done('POST', `/sessions/${id}/suspend`)
  await city.done('POST', `/sessions/${id}/wake`)
  await city.until(id, 'runs again', ({ state, generation }) => state === 'active' && generation === 2)
  const [told, ...more] = await resets(city, id)
  assert.equal(told?.payload['reason'], 'conversation-lost')
  assert.match(told?.message ?? '', /^conversation conversation-\d+-1 could not be taken up again/)
  assert.deepEqual(more, [])
})
