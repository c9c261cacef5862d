/** Worktrees: each success and each refusal of its own. What worktrees do is in test/e2e/worktrees. */
import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createSession } from '../../../src/contract/sessions/sessions.ts'
import { getWorktree } from '../../../src/contract/worktrees.ts'
import { makeRepository } from '../../support/git-repository.ts'
import { type Answer, assertProblem, eventually } from '../../support/http.ts'
import { succeeds } from '../../support/running.ts'
import { type Scenario, scenariosOn, type World } from './scenario.ts'

const BASE = '/v0/city/alpha'

const on = scenariosOn((world) => world)

const send = ({ main }: World, method: string, path: string, body?: unknown): Promise<Answer> =>
  main.api.call(method, `${BASE}/worktrees${path}`, body === undefined ? {} : { body })

/** A worktree of a session that is there; the ids of both. */
async function made(world: World): Promise<{ readonly name: string; readonly session: string }> {
  const { api, work } = world.main
  const directory = join(work, world.unique('repository'))
  makeRepository(directory)
  const name = world.unique('tree')
  const body = { kind: 'provider', name: 'shell', alias: name, isolation: 'worktree', work_dir: directory } as const
  const accepted = await api.ask(createSession, `${BASE}/sessions`, { body })
  await succeeds(api, accepted)
  return { name, session: accepted.session_id }
}

/** The same after its session was closed with work in it: it is kept. */
async function kept(world: World, dirty: boolean): Promise<string> {
  const { name, session } = await made(world)
  const { api } = world.main
  const { path } = await api.ask(getWorktree, `${BASE}/worktrees/${name}`)
  writeFileSync(join(path, 'work'), 'work')
  await api.call('POST', `${BASE}/sessions/${session}/close`)
  await eventually(`${name} is kept`, async () => {
    const { state } = await api.ask(getWorktree, `${BASE}/worktrees/${name}`)
    return state === 'kept' || undefined
  })
  if (!dirty) rmSync(join(path, 'work'))
  return name
}

export const worktreeScenarios: readonly Scenario[] = [
  on('list-worktrees', 200, async (world) => {
    await made(world)
    return send(world, 'GET', '?fresh=true')
  }),
  on('get-worktree', 200, async (world) => send(world, 'GET', `/${(await made(world)).name}?fresh=true`)),
  on('get-worktree', 'worktree-not-found', (world) => send(world, 'GET', '/none')),
  on('prune-worktrees', 200, async (world) => {
    await kept(world, true)
    return send(world, 'POST', '/prune', { dry_run: true })
  }),
  on('delete-worktree', 200, async (world) => send(world, 'DELETE', `/${await kept(world, false)}`)),
  on('delete-worktree', 'worktree-not-found', (world) => send(world, 'DELETE', '/none')),
  on('delete-worktree', 'conflict-wrong-state', async (world) => {
    assertProblem(await send(world, 'DELETE', `/${(await made(world)).name}?force=true`), 'conflict-wrong-state')
    return send(world, 'DELETE', `/${await kept(world, true)}`)
  }),
]
