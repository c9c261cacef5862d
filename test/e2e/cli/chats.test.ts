// Chats on the command line, of a real supervisor: an adapter that is played by hand, conversations, who takes part.
import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, suite, test } from 'node:test'
import { at } from '../../support/document.ts'
import { eventually } from '../../support/http.ts'
import { MailCity } from '../../support/mail-city.ts'
import { type Running, run } from '../../support/running.ts'

suite('chats on the command line', { timeout: 120_000 }, () => {
  let running: Running
  let city: MailCity
  let room: string
  before(async () => {
    running = await run()
    city = await MailCity.create(running, 'chats')
    await city.does(['adapter', 'register', 'irc/libera', '--name', 'Libera'])
    room = String((await city.json(['transcript', 'create', ...IN_ROOM]))['transcript_id'])
  })
  after(() => running[Symbol.asyncDispose]())
  const IN_ROOM = ['--provider', 'irc', '--account', 'libera', '--conversation', '#builds']

  const line = (id: string, text: string, more: object = {}) =>
    JSON.stringify({
      message: {
        ...{ provider_message_id: id, conversation: { conversation_id: '#builds', kind: 'room' } },
        ...{ actor: { id: 'ana', display_name: 'Ana' }, text, ...more },
      },
    })
  const receive = (id: string, text: string, more: object = {}) =>
    city.does(['adapter', 'receive', 'irc/libera'], { input: line(id, text, more) })

  test('an adapter is registered, changed, shown and removed', async () => {
    const shown = await city.does(['adapter', 'list'])
    assert.match(shown, /^irc\/libera\tpull\tonline\t0\t0/)
    assert.equal(await city.does(['adapter', 'get', 'irc/libera', '-o', 'jsonpath={.name}']), 'Libera\n')
    const made = await city.json(['adapter', 'register', 'chat/main', '--generate-secret', '--meta', 'team=ui'])
    assert.match(String(made['secret']), /^whsec_/)
    const changed = await city.json(['adapter', 'update', 'chat/main', '--rotate-secret'])
    assert.notEqual(changed['secret'], made['secret'])
    const wrong = await city.run(['adapter', 'get', 'chat'])
    assert.equal(wrong.code, 2)
    assert.match(wrong.err, /PROVIDER\/ACCOUNT/)
    assert.match(await city.does(['adapter', 'remove', 'chat/main', '--yes']), /unregistered/)
    assert.equal((await city.run(['adapter', 'get', 'chat/main'])).code, 3)
  })

  test('what is said in the chat is listed, found and watched; what is said from here goes there once', async () => {
    await receive('m1', 'Is the build green?')
    assert.match(await receive('m1', 'Is the build green?'), /unrouted.*yes|unrouted.*true/)
    await receive('m2', 'Hello\nworld', { attachments: [{ provider_id: 'f1', filename: 'log.txt' }] })
    assert.match(
      await city.does(['transcript', 'list', '--conversation', '#builds']),
      new RegExp(`^${room}\tirc/libera #builds\troom\t2`),
    )
    assert.match(await city.does(['transcript', 'search', room, 'build', 'gre*']), /^1\tAna\tIs the build green\?/)
    let seen = ''
    const stop = new AbortController()
    const watching = city.run(['transcript', 'watch', room], {
      io: {
        signal: stop.signal,
        stdout: {
          isTerminal: false,
          columns: 80,
          async write(text) {
            seen += String(text)
          },
        },
      },
    })
    await eventually('the last entries are shown', () => seen.includes('[log.txt]') || undefined)
    assert.equal(seen, '   1  Ana: Is the build green?\n   2  Ana: Hello\n      world [log.txt]\n')
    const says = () =>
      city.json(['transcript', 'send', room, 'It', 'is', 'green.', ...['--wait', '0s', '--idempotency-key', 'k1']])
    const sent = await says()
    const again = await says()
    assert.equal(sent['delivery_status'], 'pending')
    assert.equal(again['delivery_id'], sent['delivery_id'])
    await eventually('it is shown as it is said', () => seen.includes('It is green. (pending)') || undefined)
    const claimed = await city.json(['adapter', 'delivery', 'claim', 'irc/libera'])
    const delivery = String(at(claimed, 'items', 0, 'delivery_id'))
    assert.equal(delivery, sent['delivery_id'])
    const name = [
      'adapter',
      'delivery',
      'fail',
      'irc/libera',
      delivery,
      '--attempt',
      '1',
      '--failure-kind',
      'transient',
    ]
    assert.match(await city.does([...name, '--error', 'no link']), new RegExp(`^id\t${delivery}[\\s\\S]*no link`))
    assert.match(await city.does(['adapter', 'delivery', 'list', 'irc/libera']), /pending\t1\t.*no link/)
    await city.does(['adapter', 'delivery', 'retry', 'irc/libera', delivery])
    await city.does(['adapter', 'delivery', 'claim', 'irc/libera', '--wait', '10s'])
    await city.does(['adapter', 'delivery', 'ack', 'irc/libera', delivery, '--receipt', '{"message_id":"m3"}'])
    await eventually('its delivery is told', () => seen.includes('   3  is delivered\n') || undefined)
    stop.abort()
    await watching.catch(() => undefined)
    const entries = await city.json(['transcript', 'entries', room, '--after', '2'])
    assert.deepEqual(
      [at(entries, 'items', 0, 'provider_message_id'), at(entries, 'items', 0, 'delivery_status')],
      ['m3', 'delivered'],
    )
    assert.equal((await city.run(['transcript', 'send', room])).code, 2)
  })

  test('files are uploaded, said and downloaded', async () => {
    const file = join(running.work, 'report.json')
    const bytes = Buffer.from([0x7b, 0x7d, 0x00, 0xff, 0x80])
    writeFileSync(file, bytes)
    const uploaded = await city.json(['transcript', 'upload', file])
    assert.deepEqual(
      [uploaded['filename'], uploaded['mime_type'], uploaded['size']],
      ['report.json', 'application/json', 5],
    )
    const sent = await city.json([
      'transcript',
      'send',
      room,
      '--attach',
      file,
      '--attachment',
      String(uploaded['id']),
      '--wait',
      '0s',
    ])
    const files = at(sent, 'transcript_entry', 'attachments')
    assert.ok(Array.isArray(files) && files.length === 2, JSON.stringify(files))
    const copy = join(running.work, 'copy.json')
    await city.does(['transcript', 'download', String(uploaded['id']), '--to', copy])
    assert.deepEqual(readFileSync(copy), bytes)
    assert.equal((await city.run(['transcript', 'upload', running.work])).code, 2)
  })

  test('a conversation is bound, shared and left; its members read it', async () => {
    const helper = await city.session('helper')
    const agentOnly = await city.run(['participant', 'bind', ...IN_ROOM])
    assert.equal(agentOnly.code, 2)
    assert.match(agentOnly.err, /--session, --agent and --mailbox/)
    const human = await city.json(['participant', 'bind', '--mailbox', 'human', '--transcript', room])
    assert.equal(human['mailbox'], 'human')
    assert.match(
      await city.does(['participant', 'binding', 'list']),
      new RegExp(`^${human['id']}\tirc/libera #builds\thuman\tactive`),
    )
    assert.match(await city.does(['participant', 'binding', 'end', String(human['id'])]), /ended/)
    await city.does(['transcript', 'member', 'add', room, 'helper', '--backfill', 'all'])
    assert.match(await city.does(['transcript', 'member', 'list', room]), /^helper\tmanual\tall\t0/)
    const unread = await city.json(['transcript', 'unread', room], { as: helper })
    assert.ok(Number(unread['head_sequence']) >= 3)
    await city.does(['transcript', 'ack', room, '2'], { as: helper })
    assert.equal(at(await city.json(['transcript', 'unread', room], { as: helper }), 'items', 0, 'sequence'), 3)
    await city.does(['transcript', 'member', 'remove', room, 'helper'])
    const group = String((await city.json(['participant', 'group', 'create', ...IN_ROOM]))['id'])
    assert.match(await city.does(['participant', 'group', 'list']), new RegExp(`^${group}\tirc/libera #builds`))
    const refused = await city.run(['participant', 'add', group, 'ops', '--session', 'helper'])
    // A real shell is told nothing: it cannot take part.
    assert.notEqual(refused.code, 0)
    await city.does(['agent', 'create', 'ops', '--provider', 'claude'])
    const added = await city.json(['participant', 'add', group, 'duty', '--agent', 'ops'])
    assert.deepEqual([added['handle'], added['agent_name']], ['duty', 'ops'])
    assert.match(await city.does(['participant', 'list', '--group', group]), /\tduty\tops\t/)
    await city.does(['participant', 'group', 'delete', group, '--yes'])
    await city.does(['transcript', 'delete', room, '--cascade', '--yes'])
    assert.equal((await city.run(['transcript', 'get', room])).code, 3)
  })
})
