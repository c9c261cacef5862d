import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fc } from '../../../../test/support/random.ts'
import { defaultRoute } from './defaults.ts'
import { type Cursors, type HandleRoute, routeInGroup } from './handles.ts'

const HANDLES = ['mayor', 'poet', 'cook']

test('in a group goes to whom: who is called, who was called last, who is meant else', () => {
  const isTaken = (handle: string) => handle === 'mayor' || handle === 'poet'
  const cases: readonly [string, Cursors, string | undefined, string][] = [
    ['who is called', { last_addressed_handle: 'poet', default_handle: 'poet' }, 'mayor', 'explicit_target mayor true'],
    ['however it is written', {}, '  MayoR ', 'explicit_target mayor true'],
    ['who is called and is not there is nobody', { default_handle: 'poet' }, 'ghost', 'no_match - false'],
    [
      'nobody is called',
      { last_addressed_handle: 'poet', default_handle: 'mayor' },
      undefined,
      'last_addressed poet false',
    ],
    ['blanks call nobody', { default_handle: 'mayor' }, '  ', 'default mayor false'],
    [
      'who was called last is gone',
      { last_addressed_handle: 'cook', default_handle: 'mayor' },
      undefined,
      'default mayor false',
    ],
    ['both are gone', { last_addressed_handle: 'cook', default_handle: 'cook' }, undefined, 'no_match - false'],
    ['nothing is known', {}, undefined, 'no_match - false'],
  ]
  for (const [name, cursors, explicit, expected] of cases) {
    const { match, handle = '-', updateCursor } = routeInGroup(cursors, isTaken, explicit)
    assert.equal(`${match} ${handle} ${updateCursor}`, expected, name)
  }
})

test('whoever a message goes to is a participant, and only who was called moves the cursor', () => {
  const handle = fc.option(fc.constantFrom(...HANDLES, 'Mayor ', 'ghost', ''), { nil: undefined })
  fc.assert(
    fc.property(fc.subarray(HANDLES), handle, handle, handle, (taken, explicit, last, byDefault) => {
      const cursors = { default_handle: byDefault, last_addressed_handle: last }
      const route: HandleRoute = routeInGroup(cursors, (one) => taken.includes(one), explicit)
      assert.equal(route.match === 'no_match', route.handle === undefined)
      if (route.handle !== undefined) assert.ok(taken.includes(route.handle))
      assert.equal(route.updateCursor, route.match === 'explicit_target')
      const isCalled = explicit !== undefined && explicit.trim() !== ''
      assert.equal(isCalled && route.match !== 'no_match', route.match === 'explicit_target')
    }),
  )
})

test('a default route for the account goes before one for the provider; accounts are case-sensitive', () => {
  const routes = [
    { provider: 'IRC', agent: 'desk' },
    { provider: 'irc', account_id: 'libera', agent: 'poet' },
    { provider: 'irc', agent: 'second' },
    { provider: 'slack', account_id: 'T1', agent: 'mayor' },
  ]
  const agentFor = (provider: string, account_id: string) => defaultRoute(routes, { provider, account_id })?.agent
  assert.equal(agentFor('irc', 'libera'), 'poet')
  assert.equal(agentFor('irc', 'Libera'), 'desk')
  assert.equal(agentFor('slack', 'T1'), 'mayor')
  assert.equal(agentFor('slack', 't1'), undefined)
  assert.equal(agentFor('xmpp', 'x'), undefined)
})
