// Who is named as `notify` of a convoy has mail when it has closed: once, also where the supervisor is killed meanwhile.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { asMap, at } from '../../support/document.ts'
import { eventually } from '../../support/http.ts'
import { cityIs, newCity, run, runAgain } from '../../support/running.ts'

const CONVOYS = 12
const PATH = '/v0/city/alpha'

test('each convoy that closes is told of once, over a kill', { timeout: 120_000 }, async () => {
  await using first = await run()
  await newCity(first.api, first.work, 'alpha')
  const post = async (path: string, body: object) => {
    const answer = await first.api.call('POST', `${PATH}${path}`, { body })
    assert.ok(answer.status < 300, answer.text)
    return String(at(asMap(answer.body), 'id'))
  }
  const beads: string[] = []
  for (let number = 0; number < CONVOYS; number += 1) {
    const bead = await post('/beads', { title: `Work ${number}` })
    // Somebody whom nobody knows is told of to people.
    const notify = number === 0 ? 'nobody' : 'human'
    await post('/convoys', { title: `Convoy ${number}`, items: [bead], notify })
    beads.push(bead)
  }
  const closing = beads.map((id) =>
    first.api.call('POST', `${PATH}/beads/${id}/close`, { body: {} }).catch(() => undefined),
  )
  await Promise.race(closing)
  await first.server.kill('SIGKILL')
  await Promise.all(closing)

  await using again = await runAgain(first.server.home)
  await cityIs(again.api, 'alpha', 'running')
  for (const id of beads) await again.api.call('POST', `${PATH}/beads/${id}/close`, { body: {} })
  const told = async () => {
    const { body } = await again.api.call('GET', `${PATH}/mail?agent=human&status=all&limit=100`)
    const items = asMap(body)['items']
    assert.ok(Array.isArray(items))
    return items.map(asMap)
  }
  const all = await eventually('everybody is told', async () => {
    const found = await told()
    return found.length >= CONVOYS ? found : undefined
  })
  const expected = Array.from({ length: CONVOYS }, (_, number) => `Convoy closed: Convoy ${number}`).sort()
  assert.deepEqual(all.map(({ subject }) => String(subject)).sort(), expected)
  const lost = all.find(({ subject }) => subject === 'Convoy closed: Convoy 0')
  assert.match(String(lost?.['body']), /It was to tell nobody: nobody is called so/)
  assert.equal(lost?.['from'], 'convoys')
})
