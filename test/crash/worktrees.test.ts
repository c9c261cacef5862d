/**
 * Supervisors die at any moment while sessions with worktrees begin and end: afterwards every worktree is whole or gone,
 * nothing that anybody has written is lost, and no git and no set-up runs on.
 *
 *   SVC_SEED=123 n26 --test test/crash/worktrees.test.ts     the same chances again
 */
import assert from 'node:assert/strict'
import { existsSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { listTokens } from '../../src/runtimes/process/process-tree.ts'
import { eventually } from '../support/http.ts'
import { seededRandom } from '../support/random.ts'
import { run, runAgain } from '../support/running.ts'
import { SessionApi } from '../support/session-api.ts'
import { WorktreeCity } from '../support/worktree-city.ts'

/** Git takes its time where others need the machine too. */
const REST_MS = 90_000
const ROUNDS = process.env['SVC_SOAK'] === '1' ? 40 : 6

const WRITTEN = 4

test('after kill -9 at any moment no worktree is half, lost or left over', { timeout: 600_000 }, async (t) => {
  const random = seededRandom()
  t.diagnostic(`SVC_SEED=${random.seed}`)
  await using first = await run()
  const setup = '[worktrees]\nsetup = ["sleep 0.2; echo made > made"]\n'
  const trees = await WorktreeCity.start(first, setup)
  // Enough files that git takes a moment to write and to remove them.
  for (let i = 0; i < 400; i++) writeFileSync(join(trees.rig, `file-${i}`), 'x'.repeat(2_000))
  trees.git('add', '.')
  trees.git('commit', '-qm', 'files')
  const { home } = first.server
  // These have work in them before anything dies: changes in some, commits in the others. One is closed in each round.
  const dirty = new Set<string>()
  const written: string[] = []
  await Promise.all(
    Array.from({ length: WRITTEN }, async (_, number) => {
      const id = await trees.create(`w${number}`)
      const tree = await trees.of(id)
      writeFileSync(join(tree.path, 'work'), 'work')
      if (number % 2 === 1) {
        trees.inside(tree, 'add', 'work')
        trees.inside(tree, 'commit', '-qm', 'work')
      }
      written.push(id)
      dirty.add(tree.name)
    }),
  )
  await first.server.kill('SIGKILL')
  const alive = new Set<string>()

  for (let round = 0; round < ROUNDS; round++) {
    await using again = await runAgain(home)
    const city = new SessionApi(again.api, 'alpha', trees.city.dir)
    const runs = async () => ((await city.send('GET', '/sessions')).status === 200 ? true : undefined)
    await eventually('the city runs', runs, REST_MS)
    const aliases = [`r${round}-a`, `r${round}-b`]
    const wishes = aliases.map(async (alias) => {
      const { id } = await city.accept({ kind: 'agent', name: 'app/coder', alias })
      alive.add(id)
    })
    const ends = [...alive]
      .filter(() => random.chance(0.5))
      .map(async (id) => {
        const session = await city.send('GET', `/sessions/${id}`)
        const before = at(session)
        const path = join(trees.city.dir, '.svc/worktrees/app', before)
        // A close whose answer was lost may be on its way, and the state be of before it; where a set-up was cut, which may
        // have made its file, no agent has begun: nobody works in what is removed without a look, or while it is.
        const { state, desired } = Object(session.body)
        const works = session.status === 200 && state === 'active' && desired !== 'closed'
        // Only into one that is there: some of what ends has work in it.
        if (works && before !== '' && existsSync(join(path, 'made')) && random.chance(0.4)) {
          writeFileSync(join(path, 'work'), 'work')
          dirty.add(before)
        }
        if ((await city.send('POST', `/sessions/${id}/close`)).status < 300) alive.delete(id)
      })
    const work = written[round]
    if (work !== undefined) ends.push(city.send('POST', `/sessions/${work}/close`).then(() => {}))
    const strike = pause(random.between(20, 3_000)).then(() => again.server.kill('SIGKILL'))
    await Promise.allSettled([...wishes, ...ends, strike])
  }

  await using last = await runAgain(home)
  const city = new SessionApi(last.api, 'alpha', trees.city.dir)
  let open: ReturnType<typeof itemsOf> = []
  const look = async () => {
    const answer = await city.send('GET', '/worktrees?fresh=true')
    if (answer.status !== 200) return undefined
    const rows = itemsOf(answer.body)
    const sessions = itemsOf((await city.send('GET', '/sessions?limit=1000')).body)
    open = sessions.filter(({ state }) => state !== 'closed')
    const busy = sessions.some(({ state }) => ['start-pending', 'creating'].includes(String(state)))
    return !busy && rows.every(({ state }) => state === 'ready' || state === 'kept') ? rows : undefined
  }
  await eventually('everything has come to rest', look, REST_MS)
  const cutOff = written.filter((id) => open.some((one) => one['id'] === id))
  for (const id of cutOff) await city.done('POST', `/sessions/${id}/close`)
  const rest = await eventually('and again, when all that has work in it is closed', look, REST_MS)
  const names = rest.map(({ name }) => String(name)).sort()
  const closed = written.length - cutOff.length
  t.diagnostic(JSON.stringify({ worktrees: names.length, dirty: dirty.size, closed_while_killed: closed }))
  for (const { session_id: id, name, path, state, kept_reason: why } of rest) {
    assert.ok(existsSync(join(String(path), 'file-399')), `${String(name)} is whole`)
    const isOpen = open.some((one) => one['id'] === id)
    assert.equal(state, isOpen ? 'ready' : 'kept', String(name))
    if (state === 'kept') assert.ok(dirty.has(String(name)), `${String(name)} was kept for nothing: ${String(why)}`)
  }
  const kept = rest.filter(({ state }) => state === 'kept').map(({ name }) => name)
  // What somebody wrote before the close is there; where the strike came first, the session lives on.
  for (const name of dirty)
    assert.ok(existsSync(join(trees.city.dir, '.svc/worktrees/app', name, 'work')), `${name} lost its work`)
  assert.ok(kept.length >= written.length && kept.length <= dirty.size)
  assert.deepEqual(readdirSync(join(trees.city.dir, '.svc/worktrees/app')).sort(), names)
  assert.equal(trees.git('worktree', 'list', '--porcelain').match(/^worktree /gm)?.length, names.length + 1)
  assert.deepEqual(
    trees.branches().filter((name) => name.startsWith('svc/')),
    names.map((name) => `svc/${name}`),
  )
  const ours = new Set(open.map(({ id }) => id))
  const strays = listTokens().filter((one) => one.city_path === trees.city.dir && !ours.has(one.session_id))
  assert.deepEqual(strays, [])
})

const at = ({ body }: { readonly body: unknown }): string => String(Object(body)['worktree'] ?? '')

function itemsOf(body: unknown): readonly { readonly [key: string]: unknown }[] {
  const { items } = Object(body)
  assert.ok(Array.isArray(items))
  return items
}

test('the files of a set-up that was killed with everything are nobody’s work: the worktree goes with its session', {
  timeout: 240_000,
}, async () => {
  await using first = await run()
  // It hangs until the file `go` is there.
  const setup = 'echo made > made; until [ -e "$SVC_CITY_PATH/go" ]; do sleep 0.05; done'
  const trees = await WorktreeCity.start(first, `[worktrees]\nsetup = [${JSON.stringify(setup)}]\n`)
  const { id } = await trees.city.accept({ kind: 'agent', name: 'app/coder', alias: 'cut' })
  const path = join(trees.city.dir, '.svc/worktrees/app/cut')
  await eventually('the set-up has begun', () => existsSync(join(path, 'made')) || undefined)
  await first.server.kill('SIGKILL')
  trees.city.write('go', '')

  await using again = await runAgain(first.server.home)
  const city = new SessionApi(again.api, 'alpha', trees.city.dir)
  await eventually('the city runs', async () => (await city.send('GET', '/sessions')).status === 200 || undefined)
  await city.is(id, 'active')
  await city.done('POST', `/sessions/${id}/close`)
  await eventually('its worktree is gone', async () => {
    const [row] = itemsOf((await city.send('GET', '/worktrees')).body)
    assert.notEqual(row?.['state'], 'kept', String(row?.['kept_reason']))
    return row === undefined && !existsSync(path) ? true : undefined
  })
  assert.ok(!trees.branches().includes('svc/cut'))
})
