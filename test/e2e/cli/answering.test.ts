// Questions of agents, answered where they are seen: in a list, at a session, by a command.
import assert from 'node:assert/strict'
import { after, before, suite, test } from 'node:test'
import { AskingCity } from '../../support/asking-city.ts'

let city: AskingCity
before(async () => {
  city = await AskingCity.start()
})
after(() => city[Symbol.asyncDispose]())

suite('needs in a terminal', { timeout: 120_000 }, () => {
  test('what waits is answered by number, one after the other', async () => {
    const [bash, edit] = [await city.asks('one', 'Bash'), await city.asks('two', 'Edit')]
    await using terminal = city.terminal(['needs'], { columns: 120 })
    await terminal.shows(/# +CITY .*\n1 +alpha +one .*\n2 +alpha +two .*\nWhich\? 1-2, Enter for 1, q leaves:/)
    terminal.type('\r')
    await terminal.shows(/one asks for approval.*\nUse Bash\n(.*\n)* {2}1\) Allow\n {2}2\) Always allow\n/)
    terminal.type('9\r')
    await terminal.shows(/there is no choice "9": 1 Allow, 2 Always allow, 3 Reject, 4 Never/)
    terminal.type('3\r')
    await terminal.shows(/one has the answer/)
    await city.says(bash, 'permission: Bash no')
    await terminal.shows(/1 +alpha +two .*\nWhich\? Enter for 1/)
    terminal.type('1\r')
    await terminal.shows(/two asks.*\nUse Edit/)
    terminal.type('allow\r')
    await city.says(edit, 'permission: Edit once')
    await terminal.shows(/nothing waits for you/)
    assert.equal(await terminal.ends(), 0)
  })

  test('a question that somebody else has answered is said so, and the list goes on', async () => {
    await city.asks('first', 'Bash')
    await city.asks('second', 'Edit')
    await using terminal = city.terminal(['needs'], { columns: 120 })
    await terminal.shows(/Which\?/)
    terminal.type('1\r')
    await terminal.shows(/Use Bash[\s\S]*Answer, s skips/)
    await city.does('session', 'respond', 'first', 'deny')
    terminal.type('1\r')
    await terminal.shows(/first asks that no longer[\s\S]*1 +alpha +second[\s\S]*Which\?/)
    terminal.type('q\r')
    assert.equal(await terminal.ends(), 0)
    await city.does('session', 'respond', 'second', 'deny')
  })

  test('one can be skipped; Ctrl-D leaves', async () => {
    await city.asks('left', 'Bash')
    await city.asks('right', 'Edit')
    await using terminal = city.terminal(['needs'], { columns: 120 })
    await terminal.shows(/Enter for 1/)
    terminal.type('\r')
    await terminal.shows(/Answer, s skips/)
    terminal.type('s\r')
    await terminal.shows(/Enter for 2/)
    terminal.type('\u0004')
    assert.equal(await terminal.ends(), 0)
    for (const alias of ['left', 'right']) await city.does('session', 'respond', alias, 'deny')
  })

  test('--watch shows what waits now on a screen of its own, and gives the terminal back', async () => {
    await using terminal = city.terminal(['needs', '--watch'], { columns: 100 })
    await terminal.shows(/nothing to show/)
    assert.equal(terminal.isFullScreen, true)
    await city.asks('watched', 'Bash')
    await terminal.shows(/CITY .*\nalpha +watched .*Use Bash/)
    await city.does('session', 'respond', 'watched', 'deny')
    await terminal.shows(/^nothing to show$/)
    terminal.type('q')
    assert.equal(await terminal.ends(), 0)
    assert.equal(terminal.isFullScreen, false)
  })

  test('piped, needs stays a list', async () => {
    await city.asks('piped', 'Bash')
    assert.match(await city.does('needs'), /^alpha\tpiped\tapproval\t/)
    await city.does('session', 'respond', 'piped', 'deny')
  })
})

suite('session respond', { timeout: 120_000 }, () => {
  for (const [choice, chosen] of [
    ['2', 'always'],
    ['Always allow', 'always'],
    ['no', 'no'],
    ['approve', 'once'],
    ['deny', 'no'],
  ] as const)
    test(`takes "${choice}"`, async () => {
      const id = await city.asks(`say-${chosen}-${choice.length}`, 'Bash')
      await city.does('session', 'respond', id, choice)
      await city.says(id, `permission: Bash ${chosen}`)
    })

  test('an answer that there is not names those that there are', async () => {
    const id = await city.asks('picky', 'Bash')
    const { err, code } = await city.run('session', 'respond', id, 'perhaps')
    assert.equal(code, 2)
    assert.match(err, /there is no choice "perhaps": 1 Allow, 2 Always allow, 3 Reject, 4 Never; or approve/)
    const bare = await city.run('session', 'respond', id)
    assert.equal(bare.code, 2)
    assert.match(bare.err, /which choice is missing[\s\S]*1 Allow, 2 Always allow/)
    await city.does('session', 'respond', id, '3')
    assert.equal((await city.run('session', 'respond', id, '3')).code, 5)
  })

  test('asks for the choice in a terminal', async () => {
    const id = await city.asks('asked', 'Bash')
    await using terminal = city.terminal(['session', 'respond', id])
    await terminal.shows(/Use Bash\n[\s\S]* {2}4\) Never\nAnswer:/)
    terminal.type('2\r')
    assert.equal(await terminal.ends(), 0)
    await city.says(id, 'permission: Bash always')
  })
})

suite('session attach', { timeout: 120_000 }, () => {
  test('shows a question and answers it', async () => {
    const id = await city.create('talker')
    await using terminal = city.terminal(['session', 'attach', 'talker'])
    terminal.type('ask Bash\r')
    await terminal.shows(/it asks:\nUse Bash\n[\s\S]* {2}3\) Reject\n[\s\S]*answer with a number or a name:/)
    terminal.type('what?\r')
    await terminal.shows(/there is no choice "what\?"/)
    terminal.type('3\r')
    await terminal.shows(/permission: Bash no/)
    // The transcript says what was answered, for those who come later.
    await terminal.shows(/\[approval resolved\] Use Bash: Reject/)
    terminal.type('say so\r')
    await terminal.shows(/^so$/m)
    terminal.type('\u0004')
    assert.equal(await terminal.ends(), 0)
    await city.says(id, 'approval resolved] Use Bash: Reject')
  })

  test('of a session without a terminal says how to leave, and ctrl-] leaves it from within a line', async () => {
    const id = await city.create('eve')
    for (const keys of ['half a line\u001d', '\u001d', '~.\r']) {
      await using terminal = city.terminal(['session', 'attach', 'eve'])
      await terminal.shows(/attached to eve: ctrl-\],[\s\S]*leaves; the\s+session goes on/)
      terminal.type('say here\r')
      await terminal.shows(/^here$/m)
      terminal.type(keys)
      assert.equal(await terminal.ends(), 0)
      assert.match(terminal.text(), /^left eve: it goes on$/m)
    }
    const { out } = await city.run('session', 'logs', id)
    assert.doesNotMatch(out, /half a line|~\./)
    assert.match((await city.run('session', 'get', id)).out, /active/)
  })

  test('says that somebody else has answered', async () => {
    await city.asks('shared', 'Bash')
    await using terminal = city.terminal(['session', 'attach', 'shared'])
    await terminal.shows(/answer with a number or a name:/)
    await city.does('session', 'respond', 'shared', 'deny')
    await terminal.shows(/it asks that no longer/)
  })
})
