/** Pure parts of the IRC bridge: what goes out, and what comes in means. */
import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { readMessage } from './incoming.ts'
import { formatLine, roomFor } from './line.ts'
import { refusalIn } from './numerics.ts'
import { addressedIn, ctcpIn, folded, isChannelName, isPerson, withoutFormatting } from './text.ts'

suite('lines that go out', () => {
  test('whatever is in them, they are one command', () => {
    for (const text of ['a\r\nQUIT', 'a\nQUIT', 'a\rQUIT', 'a\0QUIT', ':a', '', '@a=b PRIVMSG x :y', '\u0085a']) {
      const line = formatLine({ tags: { label: 'x;y z\r\n\0' }, command: 'PRIVMSG', params: ['#c', text] })
      assert.doesNotMatch(line, /[\r\n\0]/, JSON.stringify(text))
      assert.ok(line.startsWith('@label=x\\:y\\sz\\r\\n PRIVMSG #c :'), line)
    }
  })

  test('a target that would be more than one word is refused', () => {
    for (const target of ['#c d', '#c\r\n', '', ':x', '#c\0'])
      assert.throws(() => formatLine({ command: 'PRIVMSG', params: [target, 'text'] }), /not a word of IRC/, target)
  })

  test('there is room for hundreds of bytes, counted with the name that others see', () => {
    assert.ok(roomFor('svc', '#c') > 380)
    assert.equal(roomFor('svc', '#c') - roomFor('svc__', '#ccc'), 4)
  })
})

suite('texts that come in', () => {
  test('markup and controls go, words stay', () => {
    assert.equal(
      withoutFormatting('\u0002b\u0002 \u000304,12c\u0003 \u0004ff00ffd \u001d\u001f\u0016\u000fe \u00033 x\u0007'),
      'b c d e  x',
    )
  })

  test('whom a line speaks to', () => {
    const isOwn = (name: string) => name === 'svc'
    const cases: readonly [string, string | undefined][] = [
      ['mayor: is it done?', 'mayor'],
      ['Mayor: is it done?', 'mayor'],
      ['@mayor is it done?', 'mayor'],
      ['@mayor: is it done?', 'mayor'],
      ['svc: mayor: is it done?', 'mayor'],
      ['svc: is it done?', undefined],
      ['well, is it done?', undefined],
      ['https://example.org', undefined],
      ['see 10:30', undefined],
      ['10:30 it is', undefined],
      ['rig/mayor: hello', 'rig/mayor'],
      [': hello', undefined],
      ['', undefined],
      [`${'x'.repeat(65)}: hello`, undefined],
    ]
    for (const [text, expected] of cases) assert.equal(addressedIn(text, isOwn), expected, text)
  })

  test('requests of clients', () => {
    assert.deepEqual(ctcpIn('\u0001ACTION waves\u0001'), { name: 'ACTION', rest: 'waves' })
    assert.deepEqual(ctcpIn('\u0001version'), { name: 'VERSION', rest: '' })
    assert.equal(ctcpIn('version'), undefined)
  })

  test('names', () => {
    assert.equal(folded('Ana[x]\\^', 'rfc1459'), 'ana{x}|~')
    assert.equal(folded('Ana[x]^', 'strict-rfc1459'), 'ana{x}^')
    assert.equal(folded('Ana[x]', 'ascii'), 'ana[x]')
    for (const nick of ['NickServ', 'chanserv', '*status', '$$*', 'a b', 'a,b', '', '#c', '1a', 'a\r\n'])
      assert.equal(isPerson(nick), false, nick)
    for (const nick of ['ana', 'Ana|away', '[x]', 'ä']) assert.equal(isPerson(nick), true, nick)
    for (const name of ['#c,#d', '#c d', 'c', '#', '#\u0007x']) assert.equal(isChannelName(name), false, name)
  })

  const reader = {
    account: 'test',
    nick: 'svc',
    isOwn: (nick: string) => nick === 'svc',
    isName: (nick: string) => nick === 'svc',
    mapping: 'ascii',
    newKey: () => 'key',
    now: 0,
  }
  const line = (more: object) => ({
    tags: {},
    prefix: 'ana!u@h',
    nick: 'ana',
    ident: 'u',
    hostname: 'h',
    command: 'PRIVMSG',
    params: ['#C', 'hello'],
    ...more,
  })

  test('ids, times, accounts, answers and bots are taken from the tags', () => {
    const tags = { msgid: 'm1', time: '2026-01-02T03:04:05.678Z', account: 'ana2', '+draft/reply': 'm0', bot: '' }
    assert.deepEqual(readMessage(line({ tags }), reader), {
      provider_message_id: 'm1',
      conversation: { provider: 'irc', account_id: 'test', conversation_id: '#c', kind: 'room' },
      actor: { id: 'account:ana2', display_name: 'ana', is_bot: true },
      text: 'hello',
      received_at: '2026-01-02T03:04:05.678Z',
      reply_to_message_id: 'm0',
    })
    const plain = readMessage(line({}), reader)
    assert.deepEqual(
      [plain?.provider_message_id, plain?.actor],
      ['line-key', { id: 'nick:ana', display_name: 'ana', is_bot: false }],
    )
  })

  test('servers, ourselves, clients, services and what is empty are not heard', () => {
    for (const more of [
      { nick: '' },
      { nick: 'svc' },
      { params: ['#c', '\u0001VERSION\u0001'] },
      { params: ['#c', ' \u0002 '] },
      { params: ['#c'] },
      { params: ['other', 'hello'] },
      { command: 'NOTICE', params: ['svc', 'This nickname is registered'] },
      { command: 'TAGMSG', params: ['#c'] },
    ])
      assert.equal(readMessage(line(more), reader), undefined, JSON.stringify(more))
  })

  test('a broken time is now', () => {
    assert.equal(readMessage(line({ tags: { time: 'never' } }), reader)?.received_at, '1970-01-01T00:00:00.000Z')
  })
})

test('refusals say whether it is worth trying again', () => {
  assert.deepEqual(refusalIn('404', ['svc', '#c', 'Cannot send\u0007']), {
    kind: 'auth',
    error: 'the channel does not let us speak (404: Cannot send)',
  })
  assert.equal(refusalIn('403', ['svc', '#c', 'x'])?.kind, 'not_found')
  assert.equal(refusalIn('001', ['svc']), undefined)
})
