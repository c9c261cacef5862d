import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { afterEach, suite, test } from 'node:test'
import { delay, systemClock } from '../../kernel/clock.ts'
import { identify, livenessOf, type ProcessIdentity, parseStat } from './process-identity.ts'
import { markedArgs, runIdOf } from './process-mark.ts'
import { findByToken, killTree, listTokens, membersOf, serviceRuns, type Tree } from './process-tree.ts'

const started: Tree[] = []
const TOKEN = randomBytes(16).toString('hex')

suite('the processes of a session', { timeout: 60_000 }, () => {
  afterEach(async () => {
    for (const tree of started.splice(0)) await killTree(tree, systemClock)
  })

  test('a descendant that ignores TERM and HUP is killed with the rest', async () => {
    const tree = await start(`(trap '' TERM HUP; exec sleep 600) & echo ready; wait`)
    assert.ok(membersOf(tree.tree).length >= 2)
    assert.deepEqual(await killTree(tree.tree, systemClock), [])
    assert.deepEqual(findByToken(tree.tree.token), [])
    await tree.gone
  })

  test('a double-forked process with a session of its own does not escape, even when its root is gone', async () => {
    const tree = await start(`(setsid sh -c 'sleep 600 & sleep 600' &) ; echo ready`)
    await tree.gone
    while (findByToken(tree.tree.token).length < 2) await delay(systemClock, 5)
    assert.deepEqual(await killTree(tree.tree, systemClock), [])
    assert.deepEqual(findByToken(tree.tree.token), [])
  })

  test('a process with a cleaned environment is found by its ancestry and its session', async () => {
    const tree = await start(`env -i sleep 600 & (env -i sh -c 'sleep 600 & sleep 600' &); echo ready; wait`)
    while (membersOf(tree.tree).length < 5) await delay(systemClock, 5)
    const members = membersOf(tree.tree)
    assert.deepEqual(await killTree(tree.tree, systemClock), [])
    for (const pid of members) assert.equal(identify(pid), undefined)
  })

  test('a double-forked process with a cleaned environment and a session of its own does not escape', async () => {
    const script = `(env -i setsid sh -c 'echo $$; trap "" HUP TERM; exec sleep 600' &); sleep 0.2`
    const { tree, gone, said } = await start(script, {}, TOKEN)
    await gone
    assert.deepEqual(findByToken(tree.token), [])
    assert.deepEqual(membersOf({ token: tree.token }), [Number(said)])
    assert.deepEqual(await killTree({ token: tree.token }, systemClock), [])
    assert.equal(identify(Number(said)), undefined)
  })

  test('a fork storm is stopped', async () => {
    const script = `f() { while :; do sleep 0.2 & (sleep 0.4 &) ; done; }; f & f & f & echo ready; wait`
    const tree = await start(script)
    while (membersOf(tree.tree).length < 30) await delay(systemClock, 5)
    assert.deepEqual(await killTree(tree.tree, systemClock), [])
    assert.deepEqual(findByToken(tree.tree.token), [])
  })

  test('our own process is never touched, whatever the tree claims', async () => {
    const own = identify(process.pid)
    const parent = identify(process.ppid)
    assert.ok(own !== undefined && parent !== undefined)
    assert.ok(!membersOf({ root: own }).includes(process.pid))
    assert.ok(!membersOf({ root: parent }).some((pid) => pid === process.ppid || pid === process.pid))
  })

  test('a pid that now means another process is no root', async () => {
    const tree = await start('echo ready; exec sleep 600')
    const stale: ProcessIdentity = { ...tree.tree.root, start_time: '1' }
    assert.deepEqual(membersOf({ root: stale }), [])
    assert.equal(livenessOf(stale), 'dead')
    assert.equal(livenessOf(tree.tree.root), 'alive')
    assert.deepEqual(await killTree(tree.tree, systemClock), [])
    await tree.gone
    assert.equal(livenessOf(tree.tree.root), 'dead')
  })

  test('a token that is a part of another one matches nothing', async () => {
    const tree = await start('echo ready; exec sleep 600')
    assert.deepEqual(findByToken(tree.tree.token.slice(0, 31)), [])
    assert.deepEqual(findByToken(tree.tree.token.slice(1)), [])
    await killTree(tree.tree, systemClock)
  })

  test('what knows only a name of its run is found by the token, and by that name', async () => {
    const token = randomBytes(16).toString('hex')
    const tree = await start(
      'echo ready; exec sleep 600',
      { SVC_INSTANCE_TOKEN: 'another', SVC_SERVICE_RUN: runIdOf(token), SVC_SERVICE_NAME: 'a', SVC_CITY_PATH: '/runs' },
      token,
    )
    assert.doesNotMatch(runIdOf(token), new RegExp(token))
    assert.deepEqual(findByToken(token), [tree.child.pid])
    assert.deepEqual([...serviceRuns('/runs')], [runIdOf(token)])
    assert.deepEqual(await killTree({ token: runIdOf(token) }, systemClock), [])
    await tree.gone
  })

  test('orphans are listed with the session and the city they belong to', async () => {
    const tree = await start('echo ready; exec sleep 600', { SVC_SESSION_ID: 's-1', SVC_CITY_PATH: '/somewhere' })
    const found = listTokens().filter((holder) => holder.token === tree.tree.token)
    assert.deepEqual(found, [
      { pid: tree.child.pid, token: tree.tree.token, session_id: 's-1', city_path: '/somewhere' },
    ])
    await killTree(tree.tree, systemClock)
  })

  test('a program name with spaces and parentheses does not confuse the reading of its state', () => {
    const rest = `S 10 20 30 34816 25 4194560 ${'0 '.repeat(12)}777 0`
    const stat = parseStat(`42 (a) b (c) ${rest}`)
    assert.deepEqual(stat, {
      pid: 42,
      parent: 10,
      group: 20,
      session: 30,
      foreground: 25,
      startTime: '777',
      runnable: false,
      zombie: false,
    })
  })
})

async function start(script: string, more: Record<string, string> = {}, token = randomBytes(16).toString('hex')) {
  const child = spawn('prlimit', markedArgs(token, 'sh', ['-c', script]), {
    detached: true,
    env: { PATH: process.env['PATH'], SVC_INSTANCE_TOKEN: token, ...more },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const gone = new Promise<void>((resolve) => child.once('exit', () => resolve()))
  const said = await line(child)
  const root = identify(child.pid ?? -1) ?? { pid: child.pid ?? -1, start_time: '', boot_id: '' }
  started.push({ root, token })
  return { child, gone, said, tree: { root, token } }
}

function line(child: ChildProcess): Promise<string> {
  return new Promise((resolve) => child.stdout?.once('data', (text: Buffer) => resolve(text.toString().trim())))
}
