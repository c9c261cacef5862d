/** A name that means several. */
import assert from 'node:assert/strict'
import { createSession } from '../../../src/contract/sessions/sessions.ts'
import { succeeds } from '../../support/running.ts'
import type { World } from './scenario.ts'

const made = new WeakMap<World, Promise<string>>()

/** A name that two closed sessions had. */
export function ambiguousName(world: World): Promise<string> {
  const known = made.get(world) ?? twins(world)
  made.set(world, known)
  return known
}

async function twins(world: World): Promise<string> {
  const { api } = world.main
  const alias = world.unique('namesake')
  for (const _ of [1, 2]) {
    const accepted = await api.ask(createSession, '/v0/city/alpha/sessions', {
      body: { kind: 'provider', name: 'shell', alias },
    })
    await succeeds(api, accepted)
    const closed = await api.post(`/v0/city/alpha/sessions/${accepted.session_id}/close`)
    assert.equal(closed.status, 200, closed.text)
  }
  return alias
}
