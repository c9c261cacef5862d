import assert from 'node:assert/strict'
import { test } from 'node:test'
import { eventually } from '../../../../test/support/http.ts'
import { AGENT, SessionCity } from '../../../../test/support/session-city.ts'
import type { OfferedWork } from '../record/ports.ts'

/** A program that says nothing and takes everything: cat. */
const SITTER = { sitter: { command: '/bin/cat', prompt_mode: 'none', delivery: 'line', io: 'pipes' } } as const

/** A city whose sessions are offered what `offers` says of each. */
async function cityWith(
  offers: (id: string) => readonly OfferedWork[],
  active: (id: string) => string | undefined = () => undefined,
) {
  return new SessionCity({
    config: {
      agents: [{ ...AGENT, provider: 'sitter', max_active_sessions: 5, min_active_sessions: 3, scales: true }],
      daemon: { patrol_interval: '200ms', shutdown_timeout: '1s' },
    },
    providers: SITTER,
    work: { offered: ({ id }) => offers(id), active: ({ id }) => active(id) },
  }).start()
}

const told = (city: SessionCity, id: string): readonly string[] =>
  city.sessions.deliveries.page(id, undefined, undefined, 10).map(({ text }) => /al-\d/.exec(text)?.[0] ?? text)

test('who rests is told of work that waits for it, once, and of the next when it has that', {
  timeout: 60_000,
}, async () => {
  let waiting: readonly OfferedWork[] = []
  await using city = await cityWith(() => waiting)
  const ids = await eventually('three sit there', () => {
    const open = city.sessions.open.filter(({ state }) => state === 'active')
    return open.length === 3 ? open.map(({ id }) => id) : undefined
  })
  waiting = [
    { id: 'al-1', tier: 'routed' },
    { id: 'al-2', tier: 'routed' },
  ]
  city.sessions.poke()
  await eventually('two are told', () => (ids.flatMap((id) => told(city, id)).length >= 2 ? true : undefined))
  assert.deepEqual(ids.flatMap((id) => told(city, id)).toSorted(), ['al-1', 'al-2'], 'each bead is told to one of them')
  waiting = [...waiting, { id: 'al-3', tier: 'routed' }]
  await eventually('the third is told', () => (ids.flatMap((id) => told(city, id)).length >= 3 ? true : undefined))
  assert.deepEqual(ids.map((id) => told(city, id)).toSorted(), [['al-1'], ['al-2'], ['al-3']])
})

test('a chat that a person has made is told of what is assigned to it, and of nothing else', {
  timeout: 60_000,
}, async () => {
  let chat = ''
  const routed: OfferedWork = { id: 'al-1', tier: 'routed' }
  await using city = await cityWith((id) => (id === chat ? [routed, { id: 'al-2', tier: 'assigned' }] : []))
  const { id } = await city.create({ kind: 'agent', template: 'worker', origin: 'manual', alias: 'ana' })
  await city.is(id, 'active')
  chat = id
  await eventually('it is told', () => (told(city, id).length > 0 ? true : undefined))
  assert.deepEqual(told(city, id), ['al-2'])
})

test('who is started anew with work in hand is told to go on with it', { timeout: 60_000 }, async () => {
  let holder = ''
  await using city = await cityWith(
    () => [],
    (id) => (id === holder ? 'al-7' : undefined),
  )
  const id = await eventually('one runs', () => city.sessions.open.find(({ state }) => state === 'active')?.id)
  holder = id
  await city.sessions.kill(id)
  await eventually('it is told', () => (told(city, id).length > 0 ? true : undefined))
  assert.deepEqual(told(city, id), ['al-7'])
  assert.ok(city.record(id).generation > 1)
})
