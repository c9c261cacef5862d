// What keys do to the inbox.
import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import type { Key } from '../live/keys.ts'
import { letter, mail, view } from './example.ts'
import { type Action, press } from './keyboard.ts'
import type { Choosing, View } from './state.ts'

const keysOf = (words: string): readonly Key[] =>
  [...words.matchAll(/<([a-z-]+)>|[\s\S]/gu)].map(([text, name]): Key => {
    // Named keys are those of the reader of keys.
    if (name === 'enter' || name === 'escape' || name === 'tab' || name === 'back-tab') return { key: name }
    if (name === 'right' || name === 'left' || name === 'end' || name === 'up' || name === 'down') return { key: name }
    return { key: 'text', text }
  })

interface After {
  readonly view: View
  readonly actions: readonly Action[]
}

function typed(words: string, more: Partial<View> = {}): After {
  const actions: Action[] = []
  let now = view(more)
  for (const key of keysOf(words)) {
    const { change = {}, action } = press(now, key)
    const chosen: Partial<Choosing> = change
    now = { ...now, ...chosen }
    if (action !== undefined) actions.push(action)
  }
  return { view: now, actions }
}
const ids = ({ actions }: After) =>
  actions.map((one) => ('message' in one ? `${one.kind} ${one.message.id}` : one.kind))

suite('keys of the inbox', () => {
  test('moving and reading', () => {
    assert.deepEqual(ids(typed('j<enter>')), ['open m2'])
    assert.deepEqual(ids(typed('<end> ')), ['open m3'])
    assert.deepEqual(ids(typed('<enter><right><right><right>')), ['open m1', 'open m2', 'open m3'])
    assert.equal(typed('<enter><right><right><right>').view.note, 'there is no other')
    assert.equal(typed('<enter>jj').view.open?.from, 2)
    const back = typed('<enter><right><escape>').view
    assert.deepEqual([back.open, back.selected.key], [undefined, 'm2'])
    assert.deepEqual(ids(typed('<enter>qq')), ['open m1', 'leave'])
  })

  test('archiving, taking back, marking unread', () => {
    assert.deepEqual(ids(typed('a')), ['archive m1'])
    assert.deepEqual(ids(typed('<enter>a')), ['open m1', 'archive m1'])
    assert.equal(typed('<enter>a').view.open, undefined)
    const archived = { ...mail(), messages: [letter('m9', { status: 'archived' })] }
    assert.deepEqual(ids(typed('a', { mail: archived, box: 'archived' })), ['unarchive m9'])
    assert.deepEqual(ids(typed('ju')), ['mark-unread m2'])
    assert.deepEqual([ids(typed('u')), typed('u').view.note], [[], 'it is unread'])
  })

  test('nothing is deleted without a yes', () => {
    assert.deepEqual(ids(typed('dy<enter>')), ['delete m1'])
    for (const words of ['dn<enter>', 'd<enter>', 'd<escape>', 'dperhaps<enter>'])
      assert.deepEqual(ids(typed(words)), [])
  })

  test('a reply and a new message are typed', () => {
    const [reply] = typed('rthank you<enter>').actions
    assert.ok(reply?.kind === 'reply')
    assert.deepEqual([reply.message.id, reply.body], ['m1', 'thank you'])
    assert.deepEqual(typed('nmayor<enter>Lunch<enter>At noon?<enter>').actions, [
      { kind: 'send', to: 'mayor', subject: 'Lunch', body: 'At noon?' },
    ])
    assert.deepEqual(typed('Nmayor<enter>Lunch<enter>').actions, [
      { kind: 'write', about: { draft: { to: 'mayor', subject: 'Lunch', inEditor: true } } },
    ])
    assert.deepEqual(ids(typed('r<enter>')), [], 'an empty line is no reply')
    assert.deepEqual(typed('nmayor<enter><escape>').view.entry, undefined)
  })

  test('boxes, the filter, help', () => {
    assert.equal(typed('<tab>').view.box, 'unread')
    assert.equal(typed('<back-tab>').view.box, 'sent')
    assert.deepEqual(ids(typed('/colour<enter><enter>')), ['open m2'])
    assert.equal(typed('/colour<enter><escape>').view.filter, '')
    assert.equal(typed('?').view.help, true)
    assert.deepEqual(ids(typed('?q')), [], 'the key that ends the help does nothing else')
  })

  test('what is pasted is no command', () => {
    assert.deepEqual(press(view(), { key: 'paste', text: 'dy' }), {})
  })

  test('with no message there is nothing to do', () => {
    const empty = { mail: { ...mail(), messages: [] } }
    for (const key of ['r', 'R', 'a', 'd', 'u', '<enter>']) assert.deepEqual(typed(key, empty).actions, [])
  })
})
