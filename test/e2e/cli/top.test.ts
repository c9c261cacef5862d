// The live view in a real terminal, of a real supervisor with real agents.
import assert from 'node:assert/strict'
import { after, before, suite, test } from 'node:test'
import { AskingCity } from '../../support/asking-city.ts'
import { eventually } from '../../support/http.ts'
import { run } from '../../support/running.ts'
import { TestTerminal } from '../../support/terminal.ts'

suite('top', { timeout: 240_000 }, () => {
  let city: AskingCity
  before(async () => {
    city = await AskingCity.start()
  })
  after(() => city[Symbol.asyncDispose]())
  const wide = { columns: 100, rows: 20 }

  test('shows sessions as they come, what they say, what they hold and what they ask', async () => {
    await using terminal = city.terminal(['top'], wide)
    await terminal.shows(/svcctl top +http:.*1 city/)
    assert.equal(terminal.isFullScreen, true)
    const id = await city.create('worker')
    await terminal.shows(/^ +worker +idle/m)
    await city.does('session', 'message', id, 'say 名前 is seen', '--no-wait')
    await terminal.shows(/worker +idle .*名前 is seen/)
    await city.does('bead', 'create', 'Something to do')
    await terminal.shows(/beads 1 open, 1 ready, 0 in progress/)
    await city.does('session', 'message', id, 'ask Bash', '--no-wait')
    await terminal.shows(/worker +needs answer .*Use Bash/)
    await city.does('session', 'respond', id, 'deny')
    await terminal.shows(/worker +idle .*permission: Bash no/)
    city.city.write('city.toml', `${city.city.read('city.toml')}\n[nonsense]\nx = 1\n`)
    await terminal.shows(/alpha +running .*configuration rejected .*city.toml/)
    city.city.write('city.toml', city.city.read('city.toml').replace(/\n\[nonsense\]\nx = 1\n/, ''))
    await terminal.shows((text) => !text.includes('rejected'))
    await city.does('session', 'close', id)
    await terminal.shows((text) => !/^ +worker /m.test(text))
    terminal.type('q')
    assert.equal(await terminal.ends(), 0)
    assert.equal(terminal.isFullScreen, false)
  })

  test('a question is answered with a key; one that takes its place is not answered with it', async () => {
    const id = await city.asks('asker', 'Bash Edit')
    await using terminal = city.terminal(['top'], wide)
    await terminal.shows(/asker +needs answer/)
    terminal.type('/asker\rj')
    await terminal.shows(/asker asks; answer by number\s+Use Bash\n[\s\S]*3 Reject/)
    await pressUntil(terminal, '3', /Use Edit/)
    await city.says(id, '[approval resolved] Use Bash: Reject')
    await terminal.shows(/Use Edit\n[\s\S]*1 Allow/)
    terminal.type('rperhaps\r')
    await terminal.shows(/there is no choice "perhaps"/)
    terminal.type('rallow\r')
    await terminal.shows(/asker has the answer/)
    await city.says(id, '[approval resolved] Use Edit: Allow')
    await city.says(id, 'permission: Bash no')
    terminal.type('\u0003')
    assert.equal(await terminal.ends(), 130)
  })

  test('a message is sent, a session attached to, and the view comes back', async () => {
    const id = await city.create('friend')
    await using terminal = city.terminal(['top'], wide)
    await terminal.shows(/friend +idle/)
    terminal.type('/friend\rj')
    await terminal.shows(/^> +friend/m)
    terminal.type('msay hello from top\r')
    await city.says(id, 'hello from top')
    terminal.type('\r')
    await terminal.shows((text) => !text.includes('svcctl top') && text.includes('hello from top'))
    assert.equal(terminal.isFullScreen, false)
    terminal.type('say spoken inside\r')
    await terminal.shows(/^spoken inside$/m)
    // Ctrl-C is for the program that has the terminal.
    terminal.type('\u0003')
    await terminal.shows(/^> +friend/m)
    assert.equal(terminal.isFullScreen, true)
    terminal.type('q')
    assert.equal(await terminal.ends(), 0)
  })

  test('panes, help, and other sizes', async () => {
    await city.asks('sized', 'Bash')
    await using terminal = city.terminal(['top'], wide)
    await terminal.shows(/sized +needs answer/)
    terminal.type('\t')
    await terminal.shows(/\[needs \d\][\s\S]*alpha +.*sized .*Use Bash +1 Allow, 2 Always allow/)
    terminal.type('\t')
    await city.does('event', 'emit', 'demo.shown', '--message', 'look at this')
    await terminal.shows(/demo\.shown .*look at this/)
    terminal.type('?')
    await terminal.shows(/ctrl-c +leave/)
    terminal.type('?\t')
    await terminal.shows(/sized +needs answer/)
    terminal.resize(40, 12)
    await terminal.shows((text) => text.includes('sized') && text.split('\n').length === 12)
    assert.ok(terminal.lines().every((line) => line.length <= 40))
    terminal.resize(120, 30)
    await terminal.shows(/answer {2}\/ filter {2}tab pane {2}c city {2}\? help {2}q leave$/)
    assert.equal(terminal.lines().length, 30)
    terminal.type('q')
    await terminal.ends()
    await city.does('session', 'respond', 'sized', 'deny')
  })

  test('the terminal is given back on SIGTERM', async () => {
    await using terminal = city.terminal(['top'], wide)
    await terminal.shows(/svcctl top/)
    terminal.kill('SIGTERM')
    assert.equal(await terminal.ends(), 143)
    assert.equal(terminal.isFullScreen, false)
    assert.ok(terminal.raw.includes('\u001b[?25h'), 'the cursor is shown again')
  })

  test('Ctrl-Z gives the terminal to the shell until the job goes on', async () => {
    await using terminal = city.terminal(['top'], { ...wide, inShell: true })
    await terminal.shows(/svcctl top {3}/)
    for (let times = 0; times < 2; times += 1) {
      terminal.type('\u001a')
      await terminal.shows(/\[1\]\+ +Stopped/)
      assert.equal(terminal.isFullScreen, false)
      terminal.type('echo in the $((40+2)) shell\r')
      await terminal.shows(/^in the 42 shell$/m)
      terminal.type('clear; fg\r')
      await terminal.shows(/svcctl top {3}/)
      assert.equal(terminal.isFullScreen, true)
    }
    terminal.type('q')
    await terminal.shows((text) => !text.includes('svcctl top   '))
    terminal.type('exit\r')
    assert.equal(await terminal.ends(), 0)
  })

  test('where nothing could let it go on, Ctrl-Z does not take it away', async () => {
    await using terminal = city.terminal(['top'], wide)
    await terminal.shows(/svcctl top/)
    terminal.type('\u001a')
    await eventually('it is drawn again', () => terminal.raw.split('\u001b[?1049h').length > 2 || undefined)
    await terminal.shows(/svcctl top/)
    terminal.type('q')
    assert.equal(await terminal.ends(), 0)
  })

  test('SIGTERM also ends a session that is attached to, and gives the terminal back', async () => {
    await city.create('held')
    await using terminal = city.terminal(['top'], wide)
    await terminal.shows(/held +idle/)
    terminal.type('/held\rj\r')
    await terminal.shows((text) => !text.includes('svcctl top'))
    terminal.kill('SIGTERM')
    assert.equal(await terminal.ends(), 143)
    assert.equal(terminal.isFullScreen, false)
  })

  test('where nobody looks at a screen it prints what is, once', async () => {
    await city.create('printed')
    assert.match(await city.does('top'), /^alpha\trunning\tprinted\tactive\t/m)
    const { items, cities } = JSON.parse(await city.does('top', '-o', 'json'))
    assert.ok(items.some(({ session }: { session: string }) => session === 'printed'))
    assert.equal(cities[0].name, 'alpha')
    await using dumb = new TestTerminal(['top'], { env: { ...city.env, TERM: 'dumb' }, columns: 120 })
    assert.equal(await dumb.ends(), 0)
    assert.match(dumb.text(), /^CITY +STATUS +SESSION/m)
    assert.ok(!dumb.raw.includes('\u001b[?1049h'))
  })
})

suite('top and its server', { timeout: 120_000 }, () => {
  test('a server that ends and comes back on another port is found again', async () => {
    await using first = await AskingCity.start()
    await using terminal = first.terminal(['top'], { columns: 100, rows: 20 })
    await terminal.shows(/alpha +running/)
    const before = first.running.server.url
    await first.running.server.kill('SIGKILL')
    await terminal.shows(/(again in|refused|reset|ended)/)
    const { home } = first.running.server
    await using again = await run({ home })
    assert.notEqual(again.server.url, before)
    await terminal.shows((text) => text.includes(again.server.url) && /alpha +running/.test(text))
    terminal.type('q')
    assert.equal(await terminal.ends(), 0)
  })

  test('without a server it says so at once, on no other screen', async () => {
    await using terminal = new TestTerminal(['top', '--api', 'http://127.0.0.1:9'], {
      env: { SVC_HOME: '/nonexistent' },
    })
    assert.equal(await terminal.ends(), 7)
    assert.match(terminal.text(), /cannot reach http:\/\/127\.0\.0\.1:9/)
    assert.ok(!terminal.raw.includes('\u001b[?1049h'))
  })
})

/** A key that comes too soon after the question is not taken. */
async function pressUntil(terminal: TestTerminal, key: string, what: RegExp): Promise<void> {
  await eventually(`${key} is taken`, async () => {
    if (what.test(terminal.text())) return true
    terminal.type(key)
    await new Promise((done) => setTimeout(done, 200))
    return undefined
  })
}
