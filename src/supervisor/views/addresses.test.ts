import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { AGENT, SessionCity } from '../../../test/support/session-city.ts'
import { Problem } from '../../kernel/problem.ts'
import type { NewSession } from '../../modules/sessions/launch/new-session.ts'
import { CityAddresses } from './addresses.ts'

const agent = (identity: string, scales = false) => ({
  ...AGENT,
  identity,
  name: identity,
  base_name: identity,
  scales,
})

const city = new SessionCity({
  config: {
    agents: [agent('mayor'), agent('lone'), agent('shop/clerk'), agent('pool', true), agent('shared')],
    named_sessions: [
      { identity: 'mayor', rig: '', mode: 'on_demand', agent: 'mayor', disabled: false },
      { identity: 'one', rig: '', mode: 'on_demand', agent: 'shared', disabled: false },
      { identity: 'two', rig: 'shop', mode: 'on_demand', agent: 'shared', disabled: false },
    ],
  },
})
after(() => city[Symbol.asyncDispose]())
const { sessions } = city
const addresses = new CityAddresses({ sessions: () => sessions.store, config: () => city.config })

/** Asleep: nothing is started while its name is looked up. */
const STRANGER: NewSession = { kind: 'agent', template: 'pool', origin: 'manual', cause: 'test', state: 'asleep' }
const make = (draft: Partial<NewSession>): Promise<string> =>
  city.store.db.write((tx) => sessions.insert(tx, { ...STRANGER, ...draft }, 'test').id)
const close = (id: string) => city.store.db.write((tx) => sessions.close(tx, id, 'test', 'test'))
const rename = (id: string, alias: string | undefined) =>
  city.store.db.write((tx) => sessions.store.change(tx, id, { alias }, { actor: 'test' }))
const mailbox = (word: string) => addresses.resolve(word).mailbox
const refused = (word: string, code: string, text: RegExp) =>
  assert.throws(
    () => addresses.resolve(word),
    (error) => error instanceof Problem && error.code === code && text.test(error.message),
  )

test('people and configured identities have mailboxes, whether a session of theirs is there or not', async () => {
  assert.deepEqual(addresses.resolve('human'), { mailbox: 'human', display: 'human', rig: '' })
  assert.deepEqual(addresses.resolve('mayor'), { mailbox: 'agent:mayor', display: 'mayor', rig: '' })
  assert.equal(addresses.resolve('two').rig, 'shop')
  assert.equal(mailbox('lone'), 'agent:lone')
  assert.equal(mailbox('shop/clerk'), 'agent:shop/clerk')
  assert.equal(mailbox('agent:lone'), 'agent:lone')
  refused('agent:nobody', 'recipient-not-found', /no recipient agent:nobody/)
  refused('mayr', 'recipient-not-found', /did you mean mayor\?/)

  const id = await make({ template: 'mayor', named: 'mayor', owner: 'mayor', alias: 'mayor', origin: 'named' })
  assert.deepEqual(addresses.resolve(id), { mailbox: 'agent:mayor', display: 'mayor', rig: '', session_id: id })
  await close(id)
  assert.equal(mailbox(id), 'agent:mayor')
  assert.equal(addresses.resolve('mayor').session_id, undefined)

  const lone = await make({ template: 'lone', pool: 'lone', owner: 'lone', origin: 'ephemeral' })
  assert.deepEqual(addresses.ofSession(lone), { mailbox: 'agent:lone', display: 'lone', rig: '', session_id: lone })
  assert.equal(mailbox(await make({ template: 'lone', alias: 'guest' })), addresses.resolve('guest').mailbox)
  assert.match(mailbox('guest'), /^session:s-/)
})

test('a pool, and an agent with several named sessions, are nobody in particular', async () => {
  refused('pool', 'ambiguous-recipient', /none is there now/)
  const first = await make({ pool: 'pool', owner: 'pool-1', origin: 'ephemeral' })
  await make({ pool: 'pool', owner: 'pool-2', origin: 'ephemeral' })
  refused('pool', 'ambiguous-recipient', /write to pool-1, pool-2$/)
  assert.deepEqual(addresses.resolve('pool-1'), {
    mailbox: `session:${first}`,
    display: 'pool-1',
    rig: '',
    session_id: first,
  })
  refused('shared', 'ambiguous-recipient', /^shared means one, two$/)
  for (const word of ['pool', 'shared', 'nobody']) assert.equal(addresses.find(word), undefined)
})

test('ids come before names, names before aliases, aliases before former ones, and who is open before who is closed', async () => {
  const a = await make({ alias: 'ann' })
  assert.equal(mailbox(a), `session:${a}`)
  await rename(a, 'anna')
  assert.equal(mailbox('ann'), `session:${a}`)
  const b = await make({ alias: 'ann' })
  assert.equal(mailbox('ann'), `session:${b}`)
  await close(b)
  assert.equal(mailbox('ann'), `session:${a}`, 'an open one that was called so is preferred to a closed one')
  const c = await make({ alias: 'ann' })
  await rename(c, undefined)
  refused('ann', 'ambiguous-recipient', /^ann means anna, s-[0-9a-f]{16}$/)
  assert.throws(() => sessions.resolve('ann'), /means/)
  await close(a)
  await close(c)
  refused('ann', 'ambiguous-recipient', new RegExp(`${a}`))
  assert.deepEqual(
    [addresses.isClosed('ann'), addresses.isClosed(`session:${a}`), addresses.isClosed('mayor')],
    [true, true, false],
  )
  await rename(b, undefined)
  const d = await make({ alias: 'dora' })
  await close(d)
  assert.deepEqual(addresses.resolve('dora'), { mailbox: `session:${d}`, display: 'dora', rig: '' })
  assert.equal(sessions.resolve('dora').id, d)
})

test('a name that closed sessions of one identity shared is still that identity', async () => {
  for (const _ of [1, 2]) await close(await make({ template: 'mayor', named: 'gone', owner: 'gone', alias: 'gone' }))
  assert.equal(mailbox('gone'), 'agent:gone')
  assert.equal(addresses.of('agent:gone').display, 'gone')
})

test('everybody who is there is listed once, by name', async () => {
  const names = addresses.live().map(({ display }) => display)
  assert.deepEqual(names, names.toSorted())
  assert.equal(new Set(names).size, names.length)
  assert.ok(names.includes('pool-1') && !names.includes('mayor'))
})

test('an alias that a configured session has got since goes to that', async () => {
  const taker = await make({ alias: 'late' })
  assert.equal(mailbox('late'), `session:${taker}`)
  const before = city.config
  city.config = { ...before, agents: [...before.agents, agent('late')] }
  assert.equal(mailbox('late'), 'agent:late')
  city.config = before
})
