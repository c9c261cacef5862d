// Mail on the command line, of a real supervisor: what a person types, what a session types, and the inbox on a screen.
import assert from 'node:assert/strict'
import { chmodSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, suite, test } from 'node:test'
import { MailCity } from '../../support/mail-city.ts'
import { type Running, run } from '../../support/running.ts'

let running: Running
before(async () => {
  running = await run()
})
after(() => running[Symbol.asyncDispose]())

suite('mail on the command line', { timeout: 120_000 }, () => {
  let city: MailCity
  let helper: string
  before(async () => {
    city = await MailCity.create(running, 'letters')
    helper = await city.session('helper')
  })

  test('a person and a session write to each other', async () => {
    const id = await city.sends('helper', 'Which colour?', 'Blue or green?')
    assert.match(
      await city.does(['mail', 'list'], { as: helper }),
      new RegExp(`^${id}\tunread\thuman\thelper\tWhich colour`),
    )
    assert.equal(await city.does(['mail', 'list']), '', 'what was sent is not in the own mailbox')
    const peeked = await city.run(['mail', 'read', id])
    assert.match(peeked.out, /\n\nBlue or green\?\n$/)
    assert.match(peeked.err, /it stays unread: it is mail of helper/)
    assert.match(await city.does(['mail', 'check'], { as: helper }), /You have 1 unread message:\n- .*Which colour/)
    const read = await city.does(['mail', 'read', id], { as: helper })
    assert.match(read, /FROM\s+human[\s\S]*SUBJECT\s+Which colour\?[\s\S]*STATUS\s+read[\s\S]*\n\nBlue or green\?\n$/i)
    assert.equal(await city.does(['mail', 'count', '-o', 'jsonpath={.unread}'], { as: helper }), '0\n')
    await city.does(['mail', 'reply', id, '--body', '-'], { as: helper, input: 'Blue.\nAnd dark.' })
    const [answer = ''] = (await city.does(['mail', 'list', '-o', 'name'])).split('\n')
    const thread = await city.does(['mail', 'thread', id])
    assert.deepEqual(
      thread
        .split('\n')
        .slice(0, 2)
        .map((line) => line.split('\t')[0]),
      [id, answer],
    )
    assert.match(
      await city.does(['mail', 'get', answer]),
      /Re: Which colour\?[\s\S]*unread[\s\S]*\n\nBlue\.\nAnd dark\.\n$/,
    )
    assert.match(
      await city.does(['mail', 'thread', id], { terminal: true, columns: 100 }),
      /── helper to human, .*\nBlue\.\nAnd dark\./,
    )
  })

  test('what it is about may be its first line; several get it in one thread; - is stdin', async () => {
    const other = await city.session('other')
    const out = await city.does(['mail', 'send', 'helper', 'other', '-', '-o', 'jsonl'], {
      input: '\nFirst line\nSecond',
    })
    const sent = out
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line))
    assert.deepEqual(
      sent.map(({ to, subject }) => [to, subject]),
      [
        ['helper', 'First line'],
        ['other', 'First line'],
      ],
    )
    assert.equal(new Set(sent.map(({ thread_id: thread }) => thread)).size, 1)
    const all = await city.json(['mail', 'broadcast', '-s', 'Freeze', '-b', 'No merges.', '--include-human'], {
      as: other,
    })
    assert.deepEqual(Array.isArray(all['items']) && all['items'].map(({ to }) => to), ['helper', 'human'])
    const { code, err } = await city.run(['mail', 'send', 'helper'])
    assert.equal(code, 2)
    assert.match(err, /there is nothing to send[\s\S]*--subject/)
    const unknown = await city.run(['mail', 'send', 'nobody', '-s', 'x'])
    assert.equal(unknown.code, 3)
    assert.match(unknown.err, /nobody/)
  })

  test('what is found can be archived, taken back, marked and deleted', async () => {
    const ids = [
      await city.sends('human', 'Build 1', 'the nightly build failed', helper),
      await city.sends('human', 'Build 2', 'the nightly build passed', helper),
      await city.sends('human', 'Lunch', 'noon?', helper),
    ]
    const [one = '', two = '', lunch = ''] = ids
    const names = async (...words: readonly string[]) =>
      (await city.does(['mail', ...words, '-o', 'name'])).trim().split('\n').filter(Boolean)
    assert.deepEqual(await names('search', 'nightly', 'fail*'), [one])
    const elsewhere = await city.run(['mail', 'search', 'nightly', '--agent', 'helper'])
    assert.deepEqual([elsewhere.code, elsewhere.out], [0, ''])
    assert.match(elsewhere.err, /nothing is found in the mailbox of helper; --all-mailboxes/)
    const dry = await city.run(['mail', 'archive', '--subject-prefix', 'build', '--from', 'helper', '--dry-run'])
    assert.match(dry.out, new RegExp(`${one}\tarchived.*\n${two}\tarchived`))
    assert.match(dry.err, /nothing is changed/)
    assert.deepEqual(await names('search', 'nightly', '--status', 'unread'), [two, one])
    assert.deepEqual(await names('archive', '--query', 'nightly passed'), [two])
    assert.deepEqual(await names('archive', '--subject-contains', 'BUILD'), [one])
    assert.deepEqual(await names('list', '--status', 'archived'), [two, one])
    await city.does(['mail', 'unarchive', one, two])
    await city.does(['mail', 'read', one])
    await city.does(['mail', 'mark-unread', one])
    assert.equal(await city.does(['mail', 'get', one, '-o', 'jsonpath={.status}']), 'unread\n')
    const partly = await city.run(['mail', 'archive', one, 'ml-0000000000000000'])
    assert.equal(partly.code, 3)
    assert.match(partly.out, /ml-0000000000000000\tnot_found/)
    await city.does(['mail', 'delete', lunch, '--yes'])
    assert.equal((await city.run(['mail', 'get', lunch])).code, 3)
    assert.equal((await city.run(['mail', 'delete', two])).code, 2, 'not without being asked')
    const { code, err } = await city.run(['mail', 'archive', one, '--query', 'x'])
    assert.equal(code, 2)
    assert.match(err, /mutually exclusive/)
    assert.equal((await city.run(['mail', 'archive'])).code, 2)
  })

  test('a list can be waited for, and ends with what came', async () => {
    const waiting = city.does(['mail', 'list', '--wait', '1m', '-o', 'name'], { as: await city.session('waiter') })
    const id = await city.sends('waiter', 'Here', 'it is')
    assert.equal(await waiting, `${id}\n`)
    assert.equal(await city.does(['mail', 'list', '--wait', '1ms', '--from', 'nobody']), '')
  })

  test('everybody’s mail is there for those who ask for it', async () => {
    const mine = await city.json(['mail', 'count'])
    const all = await city.json(['mail', 'count', '--all-mailboxes'])
    assert.ok(Number(all['total']) > Number(mine['total']))
    assert.equal((await city.run(['mail', 'list', '--agent', 'helper', '--all-mailboxes'])).code, 2)
    const status = await city.json(['status'])
    assert.deepEqual(status['mail'], all)
  })

  test('names of mailboxes and ids of messages are completed', async () => {
    const names = await city.run(['__complete', 'mail', 'send', ''])
    assert.match(names.out, /^human\t[\s\S]*^helper\t/m)
    const ids = await city.run(['__complete', 'mail', 'read', ''])
    assert.match(ids.out, /^ml-[0-9a-f]{16}\t(?:helper|other): /m)
  })

  test('without --body the editor opens; what cannot be sent is not lost', async () => {
    const editor = join(running.work, 'editor.sh')
    writeFileSync(editor, '#!/bin/sh\nprintf "%s\\n" "Subject: From the editor" "" "Two" "lines" > "$1"\n')
    chmodSync(editor, 0o755)
    await using written = city.terminal(['mail', 'send', 'helper'], { env: { EDITOR: editor } })
    assert.equal(await written.ends(), 0)
    assert.match(written.text(), /From the editor/)
    const [id = ''] = (await city.does(['mail', 'search', 'editor', '--agent', 'helper', '-o', 'name'])).split('\n')
    assert.equal(await city.does(['mail', 'get', id, '-o', 'jsonpath={.body}']), 'Two\nlines\n')
    await using refused = city.terminal(['mail', 'send', 'nobody'], { env: { EDITOR: editor } })
    assert.equal(await refused.ends(), 3)
    assert.match(refused.text(), /not sent; what you wrote is in .*to-nobody\.txt/)
    await using nothing = city.terminal(['mail', 'reply', id], { env: { EDITOR: 'true' } })
    assert.equal(await nothing.ends(), 1)
    assert.match(nothing.text(), /nothing was written/)
  })
})

suite('the inbox on a screen', { timeout: 120_000 }, () => {
  test('mail is seen as it comes, read, answered, archived, taken back and deleted', async () => {
    const city = await MailCity.create(running, 'screens')
    const helper = await city.session('helper')
    const first = await city.sends(
      'human',
      'Which colour?',
      'Blue or green?\nIt is for the fence of the neighbour.',
      helper,
    )
    await using terminal = city.terminal(['mail', 'inbox'])
    await terminal.shows(/svcctl mail inbox +screens +mail of human: 1 message +1 unread/)
    assert.equal(terminal.isFullScreen, true)
    await terminal.shows(/^> \* helper +\S+ +Which colour\? +Blue or green\?/m)
    await city.sends('human', 'Lunch', 'At noon?', helper)
    await terminal.shows(/^ {2}\* helper +\S+ +Lunch|^> \* helper +\S+ +Lunch/m)
    // The selection stays where it was, whatever comes.
    await terminal.shows(/^> \* helper +\S+ +Which colour/m)
    terminal.type('\r')
    await terminal.shows(/from +helper[\s\S]*Blue or green\?\nIt is for the fence/)
    await terminal.shows(/2 messages +1 unread/)
    assert.equal(await city.does(['mail', 'get', first, '-o', 'jsonpath={.status}']), 'read\n')
    terminal.type('rGreen, please.\r')
    await terminal.shows(/answered helper/)
    await terminal.shows(/── human to helper, .*─\nGreen, please\./)
    assert.match(await city.does(['mail', 'list'], { as: helper }), /Re: Which colour\?/)
    terminal.type('a')
    await terminal.shows((text) => !text.includes('Which colour'))
    terminal.type('\t\t')
    await terminal.shows(/\[archived\]/)
    await terminal.shows(/Which colour/)
    terminal.type('a')
    await terminal.shows(/nothing is archived/)
    terminal.type('\t')
    await terminal.shows(/\[sent\][\s\S]*to helper +\S+ +Re: Which colour\?/)
    terminal.type('\t')
    await terminal.shows(/\[inbox\][\s\S]*Lunch[\s\S]*Which colour/)
    terminal.type('/colour\r')
    await terminal.shows((text) => !text.includes('Lunch') && text.includes('Which colour'))
    terminal.type('dy\r')
    await terminal.shows(/nothing has "colour"/)
    assert.equal((await city.run(['mail', 'get', first])).code, 3)
    terminal.type('\u001b')
    await terminal.shows(/Lunch/)
    terminal.type('nhelper\rA new one\rWith text\r')
    await terminal.shows(/sent to helper/)
    terminal.type('nnobody\rx\ry\r')
    await terminal.shows(/there is nobody|nobody/)
    terminal.type('?')
    await terminal.shows(/delete it for good/)
    terminal.type('?')
    terminal.resize(50, 12)
    await terminal.shows((text) => text.includes('Lunch') && text.split('\n').every((line) => line.length <= 50))
    terminal.type('q')
    assert.equal(await terminal.ends(), 0)
    assert.equal(terminal.isFullScreen, false)
  })

  test('texts of strangers command no terminal', async () => {
    const city = await MailCity.create(running, 'strangers')
    const evil = '\u001b[2J\u001b]0;owned\u0007\u009b31mred\u202egnp.exe'
    const id = await city.sends('human', `Hello ${evil}`, `${evil}\nsecond`)
    await using terminal = city.terminal(['mail', 'inbox'])
    await terminal.shows(/Hello/)
    terminal.type('\r')
    await terminal.shows(/second/)
    assert.ok(!terminal.raw.includes('\u001b]0;owned'))
    assert.ok(!terminal.raw.includes('\u202e'))
    terminal.type('qq')
    await terminal.ends()
    await using printed = city.terminal(['mail', 'get', id])
    await printed.ends()
    assert.ok(!printed.raw.includes('\u001b]0;owned') && !printed.raw.includes('\u202e'))
  })
})
