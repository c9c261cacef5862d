/** A name that means several. */
import assert from 'node:assert/strict'
import { createSession } from '../../../src/contract/sessions/sessions.ts'
import { succeeds } from '../../support/running.ts'
import type { World } from './scenario.ts'

const made = new WeakMap<World, Promise<string>>()

/** A name that two open sessions had before they were renamed. */
export function ambiguousName(world: World): Promise<string> {
  const known = made.get(world) ?? twins(world)
  made.set(world, known)
  return known
}

async function twins(world: World): Promise<string> {
  const alias = world.unique('namesake')
  for (const _ of [1, 2]) {
    const path = await openShell(world, alias)
    const renamed = await world.main.api.call('PATCH', path, { body: { alias: world.unique('renamed') } })
    assert.equal(renamed.status, 200, renamed.text)
  }
  return alias
}

const closed = new WeakMap<World, Promise<string>>()

/** A name that a closed session has. */
export function closedName(world: World): Promise<string> {
  const known = closed.get(world) ?? departed(world)
  closed.set(world, known)
  return known
}

async function departed(world: World): Promise<string> {
  const alias = world.unique('departed')
  const answer = await world.main.api.post(`${await openShell(world, alias)}/close`)
  assert.equal(answer.status, 200, answer.text)
  return alias
}

async function openShell(world: World, alias: string): Promise<string> {
  const { api } = world.main
  const body = { kind: 'provider', name: 'shell', alias } as const
  const accepted = await api.ask(createSession, '/v0/city/alpha/sessions', { body })
  await succeeds(api, accepted)
  return `/v0/city/alpha/sessions/${accepted.session_id}`
}
