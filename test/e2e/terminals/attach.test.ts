/** `svcctl session attach` in a terminal of its own: what somebody who sits there sees, types and is left with. */
import assert from 'node:assert/strict'
import { existsSync, readFileSync } from 'node:fs'
import { after, before, suite, test } from 'node:test'
import { cli } from '../../support/cli.ts'
import { eventually } from '../../support/http.ts'
import { type Running, run, runAgain } from '../../support/running.ts'
import { newSessionCity, type SessionApi, sessionPath } from '../../support/session-api.ts'
import { type TerminalOptions, TestTerminal } from '../../support/terminal.ts'

suite('session attach', { timeout: 240_000 }, () => {
  let running: Running
  let city: SessionApi
  before(async () => {
    running = await run()
    city = await newSessionCity(running, 'alpha')
  })
  after(() => running[Symbol.asyncDispose]())

  const attach = (id: string, options: Omit<TerminalOptions, 'env'> = {}) =>
    new TestTerminal(['session', 'attach', id], {
      env: { SVC_HOME: running.server.home, SVC_CITY: 'alpha' },
      ...options,
    })

  test('keys reach the shell, its answers the terminal, and ctrl-] gives the terminal back', async () => {
    const id = await city.start()
    await using terminal = attach(id, { inShell: true })
    await terminal.shows(/ready>/)
    terminal.type("printf '\\033[31mtyped-%s\\033[m\\n' $((6*7))\r")
    await terminal.shows(/^typed-42/m)
    assert.ok(terminal.raw.includes('\u001b[31mtyped-42'), 'in its colours')
    terminal.type('sleep 100\r')
    terminal.type('\u0003')
    await terminal.shows(/\^C/)
    terminal.type('\u001d')
    await terminal.shows(/left s-[0-9a-f]+: it goes on/)
    terminal.type('stty -a | grep -o -- " echo "; echo back-$((1+1))\r')
    await terminal.shows(/^back-2/m)
    assert.match(terminal.text(), /^ echo/m, 'the shell echoes again')
    assert.equal((await city.get(id)).state, 'active')
    await city.forget(id)
  })

  for (const [program, debian] of [
    ['vim', 'vim'],
    ['less', 'less'],
    ['htop', 'htop'],
  ] as const) {
    const missing = installed(program) ? false : `${program} is not installed: apt-get install ${debian}`
    test(`${program} is worked with as if one sat there`, { skip: missing }, async () => {
      const id = await city.start()
      city.write('poem.txt', Array.from({ length: 200 }, (_, at) => `verse ${at + 1}`).join('\n'))
      await using terminal = attach(id)
      await terminal.shows(/ready>/)
      if (program === 'vim') {
        terminal.type('vim -u NONE -i NONE poem.txt\r')
        await terminal.shows(/verse 1\nverse 2\n/)
        assert.ok(terminal.isFullScreen)
        // What vim asks the terminal is not answered: nothing of it stands in the text.
        terminal.type('ggOhello from afar\u001b')
        await terminal.shows(/^hello from afar\nverse 1/)
        terminal.resize(60, 12)
        await eventually('it draws the new size', async () => (terminal.lines().length === 12 ? true : undefined))
        terminal.type('\u001b[B\u001b[B')
        terminal.type(':wq\r')
        await terminal.shows((text) => /ready>/.test(text) && !text.includes('verse 3'))
        assert.ok(!terminal.isFullScreen, 'the shell is back')
        assert.match(city.read('poem.txt'), /^hello from afar\nverse 1\n/)
      }
      if (program === 'less') {
        terminal.type('less poem.txt\r')
        await terminal.shows(/verse 1\nverse 2\n/)
        terminal.type('G')
        await terminal.shows(/verse 200/)
        terminal.type('/verse 50$\r')
        await terminal.shows(/no match|Pattern not found|verse 50\n/i)
        // Leaving in the middle gives the terminal back; who comes again sees the same.
        terminal.type('\u001d')
        assert.equal(await terminal.ends(), 0)
        assert.ok(!terminal.isFullScreen)
        await using again = attach(id)
        await eventually('the screen of less', async () => (again.isFullScreen ? true : undefined))
        again.type('gg')
        await again.shows(/verse 1\nverse 2\n/)
        again.type('q')
        await again.shows((text) => /ready> less poem\.txt\nready>/.test(text))
      }
      if (program === 'htop') {
        terminal.type('htop\r')
        await terminal.shows(/PID/)
        terminal.type('q')
        await terminal.shows(/ready>/)
      }
      await city.forget(id)
    })
  }

  test('two people sit at one terminal, which has the size of who typed last', async () => {
    const id = await city.start()
    await using one = attach(id, { columns: 90, rows: 24 })
    await one.shows(/ready>/)
    one.type('stty size\r')
    await one.shows(/^24 90/m)
    await using two = attach(id, { columns: 70, rows: 20 })
    await two.shows(/24 90/)
    two.type('stty size\r')
    await two.shows(/^20 70/m)
    await one.shows(/^20 70/m)
    one.resize(100, 30)
    one.type('true\r')
    await eventually('it has the size', async () => {
      const { cols, rows } = await city.done('GET', `${sessionPath(id)}/screen`)
      return cols === 100 && rows === 30 ? true : undefined
    })
    one.type('stty size\r')
    await one.shows(/^30 100/m)
    two.type('~.')
    assert.equal(await two.ends(), 0)
    one.type('echo still-$((1+1))\r')
    await one.shows(/^still-2/m)
    await city.forget(id)
  })

  test('50 MB of output drown neither the server nor the one who looks, and Ctrl-C ends them', async () => {
    const id = await city.start()
    await using terminal = attach(id)
    await terminal.shows(/ready>/)
    terminal.type('yes "$(head -c 200 /dev/zero | tr "\\0" x)" | head -c 50000000; echo; echo all-$((6*7))\r')
    const peak = { server: 0, viewer: 0 }
    await eventually(
      'all of it has come',
      async () => {
        peak.server = Math.max(peak.server, residentMb(running.server.pid))
        peak.viewer = Math.max(peak.viewer, residentMb(terminal.pid))
        return /^all-42/m.test(terminal.text()) ? true : undefined
      },
      120_000,
    )
    assert.ok(peak.server < 400 && peak.viewer < 300, JSON.stringify(peak))
    terminal.type('yes flood\r')
    await terminal.shows(/flood\nflood/)
    const pressed = performance.now()
    terminal.type('\u0003')
    await terminal.shows(/\^C\n?ready>/)
    assert.ok(performance.now() - pressed < 10_000, 'it does not wait for all that was written')
    await city.forget(id)
  })

  for (const signal of ['SIGTERM', 'SIGHUP', 'SIGINT'] as const)
    test(`${signal} gives the terminal back as it was`, async () => {
      const id = await city.start()
      await using terminal = attach(id)
      await terminal.shows(/ready>/)
      terminal.type("printf '\\033[?1049h\\033[?25l\\033[?2004h\\033[31mdrawn'; sleep 100\r")
      await eventually('it draws', async () =>
        terminal.isFullScreen && terminal.text().includes('drawn') ? true : undefined,
      )
      const before = terminal.raw.length
      terminal.kill(signal)
      assert.notEqual(await terminal.ends(), 0)
      const undone = terminal.raw.slice(before)
      for (const code of ['?1049l', '?25h', '?2004l', 'm']) assert.ok(undone.includes(`\u001b[${code}`), code)
      assert.ok(!terminal.isFullScreen)
      await city.forget(id)
    })

  test('a screen is watched in its colours until one has seen enough', async () => {
    const id = await city.start()
    await using terminal = new TestTerminal(['session', 'screen', id, '--format', 'ansi', '--watch'], {
      env: { SVC_HOME: running.server.home, SVC_CITY: 'alpha' },
    })
    await terminal.shows(/ready>/)
    await city.message(id, "printf '\\033[32mgreen-%s\\033[m\\n' $((6*7))")
    await terminal.shows(/^green-42/m)
    assert.ok(terminal.raw.includes('32mgreen-42'), 'in its colour')
    terminal.type('q')
    assert.equal(await terminal.ends(), 0)
    const { out } = await cli(['session', 'screen', id, '-o', 'json'], {
      env: { SVC_HOME: running.server.home, SVC_CITY: 'alpha' },
    })
    assert.ok(JSON.parse(out).lines.includes('green-42'))
    await city.forget(id)
  })

  test('what cannot be attached to is said in a sentence, and the terminal is left alone', async () => {
    const id = await city.start()
    await city.done('POST', `${sessionPath(id)}/suspend`)
    await city.is(id, 'suspended')
    await using terminal = attach(id)
    assert.equal(await terminal.ends(), 5)
    assert.match(terminal.text(), /does not run: it is suspended/)
    await city.forget(id)
  })

  test('the end of the program ends the command, and says how', async () => {
    const id = await city.start()
    await using terminal = attach(id)
    await terminal.shows(/ready>/)
    terminal.type('echo last-$((1+1)); exit\r')
    assert.equal(await terminal.ends(), 0)
    assert.match(terminal.text(), /last-2[\s\S]*the program of s-[0-9a-f]+ has ended: /)
    await city.forget(id)
  })

  test('an agent without a terminal is talked to instead', async () => {
    const id = await city.startTalker()
    await using terminal = attach(id)
    terminal.type('say so\r')
    await terminal.shows(/^so$/m)
    terminal.type('\u0004')
    assert.equal(await terminal.ends(), 0)
    await city.forget(id)
  })
})

test('a supervisor that is killed while somebody is attached is looked for, and nothing is typed twice', {
  timeout: 120_000,
}, async () => {
  await using running = await run()
  const city = await newSessionCity(running, 'alpha')
  const id = await city.start()
  await using terminal = new TestTerminal(['session', 'attach', id], {
    env: { SVC_HOME: running.server.home, SVC_CITY: 'alpha' },
  })
  await terminal.shows(/ready>/)
  terminal.type('echo before-$((1+1))\r')
  await terminal.shows(/^before-2/m)
  // A program of its own: bash loses an interrupt that comes while it starts one.
  terminal.type("sh -c 'for i in $(seq 100); do echo tick-$i; sleep 0.1; done'\r")
  await terminal.shows(/tick-3/)
  await running.server.kill('SIGKILL')
  await terminal.shows(/looking for the server; ctrl-\] leaves/)
  await using again = await runAgain(running.server.home)
  const ticks = Number(/tick-(\d+)/.exec(terminal.text())?.[1])
  await terminal.shows((text) => Number(/tick-(\d+)(?![\s\S]*tick)/.exec(text)?.[1]) > ticks + 5)
  terminal.type('\u0003')
  await terminal.shows(/\^C\n?ready>/)
  terminal.type('echo after-$((1+1))\r')
  await terminal.shows(/^after-2/m)
  assert.equal(terminal.text().match(/^after-2/gm)?.length, 1)
  terminal.type('\u001d')
  assert.equal(await terminal.ends(), 0)
  again.api.close()
})

function installed(program: string): boolean {
  return (process.env['PATH'] ?? '').split(':').some((directory) => existsSync(`${directory}/${program}`))
}

function residentMb(pid: number): number {
  const kb = /VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]
  return Number(kb) / 1024
}
