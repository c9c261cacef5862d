/** Hooks of sessions that run: with real programs, over HTTP. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { asMap, at } from '../../support/document.ts'
import { eventually } from '../../support/http.ts'
import { run } from '../../support/running.ts'
import { newSessionCity } from '../../support/session-api.ts'

test('each instance of a pool finds the work of its pool on its own hook, and never that of another', async () => {
  await using running = await run()
  const pool = `
[[agent]]
name = "hand"
provider = "bash"
min_active_sessions = 2
max_active_sessions = 2
`
  const city = await newSessionCity(running, 'alpha', pool)
  const instances = await eventually('two instances run', async () => {
    const { items } = await city.done('GET', '/sessions?template=hand&state=active')
    return Array.isArray(items) && items.length === 2 ? items.map(asMap) : undefined
  })
  for (const title of ['one', 'two']) {
    const { id } = await city.done('POST', '/beads', { title })
    await city.done('POST', `/beads/${String(id)}/route`, { target: 'hand' })
  }
  const taken = await Promise.all(
    instances.map(async ({ id, agent, session_name }) => {
      // As `svcctl bead hook --claim` asks in a session, and as a program that only knows its pool.
      const own = await city.done('POST', '/beads/hook/claim', { agent, session_id: id, session_name })
      const again = await city.done('POST', '/beads/hook/claim', { agent: 'hand', session_id: id })
      assert.deepEqual([again.reason, again.bead_id], ['existing_assignment', own.bead_id])
      assert.deepEqual([own.assignee, at(own.bead, 'session_id')], [agent, id])
      return own.bead_id
    }),
  )
  assert.equal(new Set(taken).size, 2)
})
