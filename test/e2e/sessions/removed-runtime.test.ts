// A city of an earlier version whose agents ran under tmux: nothing of it is lost, nothing of it runs on, and it is told.
import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import BetterSqlite3 from 'better-sqlite3'
import { socketNameOf } from '../../../src/runtimes/socket-directory.ts'
import { isRunning } from '../../support/city-processes.ts'
import { eventually } from '../../support/http.ts'
import { cityIs, run, runAgain } from '../../support/running.ts'
import { newSessionCity, SessionApi } from '../../support/session-api.ts'
import { written } from '../../support/written.ts'

const TMUX = '[session]\nprovider = "tmux"\n'

/** Makes the store what it was before there was one runtime for terminals; tokens by session. */
function turnedBack(dir: string): ReadonlyMap<string, string> {
  const file = new BetterSqlite3(join(dir, '.svc', 'city.db'))
  try {
    file.prepare("DELETE FROM migrations WHERE name = 'sessions/3'").run()
    file.pragma(`user_version = ${Number(file.pragma('user_version', { simple: true })) - 1}`)
    file.prepare("UPDATE sessions SET runtime = 'tmux' WHERE runtime = 'subprocess'").run()
    const good = file.prepare<[], { bytes: Buffer }>("SELECT bytes FROM config_good WHERE path = 'city.toml'").get()
    const text = String(good?.bytes).replace('[session]\nprovider = "subprocess"\n', TMUX)
    file.prepare("UPDATE config_good SET bytes = ? WHERE path = 'city.toml'").run(Buffer.from(text))
    const rows = file.prepare<[], { id: string; token: string }>('SELECT id, token FROM sessions').all()
    return new Map(rows.map(({ id, token }) => [id, token]))
  } finally {
    file.close()
  }
}

const WAITS = 'setInterval(() => {}, 1000)'

/** What an agent under tmux and the server of its city look like to the kernel. */
function underTmux(dir: string, token: string): { readonly agent: ChildProcess; readonly server: ChildProcess } {
  const socket = `/run/user/another/svc/${socketNameOf(dir)}/tmux`
  const options = { stdio: 'ignore', detached: true, argv0: 'tmux' } as const
  return {
    agent: spawn(process.execPath, ['-e', WAITS], { ...options, env: { SVC_INSTANCE_TOKEN: token } }),
    server: spawn(process.execPath, ['-e', WAITS, 'x', '-S', socket, '-f', 'conf'], options),
  }
}

test('sessions that ran under tmux are started anew and say so, and what waited for them arrives', async () => {
  await using first = await run()
  const city = await newSessionCity(first, 'alpha')
  const [live, asleep] = [await city.start({ alias: 'live' }), await city.start({ alias: 'asleep' })]
  await city.done('POST', `/sessions/${asleep}/suspend`)
  await city.is(asleep, 'suspended')
  await city.message(live, 'sleep 1000')
  await city.until(live, 'works', ({ activity }) => activity === 'in-turn')
  await city.submit(live, 'echo waited >> waited', 'follow_up')
  const host = city.hostOf(live)
  await first.server.kill('SIGKILL')
  process.kill(host, 'SIGKILL')
  await eventually('its host is gone', () => !isRunning(host) || undefined)
  const token = turnedBack(city.dir).get(live) ?? assert.fail()
  writeFileSync(
    join(city.dir, 'city.toml'),
    city.read('city.toml').replace('[session]\nprovider = "subprocess"\n', TMUX),
  )
  const { agent, server } = underTmux(city.dir, token)

  await using second = await runAgain(first.server.home)
  await cityIs(second.api, 'alpha', 'running')
  const again = new SessionApi(second.api, 'alpha', city.dir)
  const back = await again.until(live, 'is back', ({ state, generation }) => state === 'active' && generation === 2)
  assert.equal(back.runtime, 'subprocess')
  assert.equal(await written(join(city.dir, 'waited')), 'waited\n')
  for (const one of [agent, server])
    await eventually('nothing of the old terminals runs', () => !isRunning(one.pid ?? 0) || undefined)
  const killed = await again.events('session.killed', { subject: live })
  assert.deepEqual(
    killed.map(({ payload }) => [payload['reason'], payload['to']]),
    [['runtime-removed', 'start-pending']],
  )
  const rested = await again.get(asleep)
  assert.deepEqual([rested.state, rested.runtime, rested.generation], ['suspended', 'subprocess', 1])
  // It came up on what was good; the files are refused with their place and what to write instead.
  const [rejected] = await again.events('config.rejected')
  assert.match(JSON.stringify(rejected?.payload), /city\.toml/)
  assert.match(JSON.stringify(rejected?.payload), /tmux/)
})

test('tmux in a request or a file is refused, and the refusal says what there is instead', async () => {
  await using running = await run()
  const city = await newSessionCity(running, 'alpha')
  const refused = await city.send('POST', '/sessions', { kind: 'provider', name: 'bash', runtime: 'tmux' })
  assert.equal(refused.status, 422, refused.text)
  assert.match(refused.text, /body\.runtime/)
  assert.match(refused.text, /terminal of its own host/)
  await assert.rejects(
    city.configure('', { 'agents/scout/agent.toml': 'provider = "bash"\nsession = "tmux"\n' }),
    /agents\/scout\/agent\.toml:2:11: `tmux` is not one of/,
  )
  const { text } = await city.send('GET', '/config/validate')
  assert.match(text, /terminal of its own host/)
})
