import assert from 'node:assert/strict'
import { test } from 'node:test'
import { eventually } from '../../../../test/support/http.ts'
import { SessionCity } from '../../../../test/support/session-city.ts'
import { type Holding, holderDue } from './stalls.ts'

const NOW = 10_000
const TIMEOUT = 100
const held = (nudgedAt?: number): Holding => ({ bead: 'al-1', since: 0, nudgedAt })

const CASES: readonly (readonly [string, Holding, number, ReturnType<typeof holderDue>])[] = [
  ['who works is left alone', held(), NOW - 99, 'nothing'],
  ['who has just got it is left alone', { ...held(), since: NOW - 1 }, 0, 'nothing'],
  ['who is silent for too long is nudged', held(), NOW - 100, 'nudge'],
  ['a nudge gets a whole timeout of its own', held(NOW - 99), NOW - 150, 'nothing'],
  ['who is silent behind it loses the work', held(NOW - 100), NOW - 100, 'release'],
  ['a few words are no work', held(NOW - 150), NOW - 100, 'release'],
  ['who worked since is nudged again first', held(NOW - 200), NOW - 100, 'nudge'],
]

for (const [name, holding, sign, expected] of CASES)
  test(`a holder of work: ${name}`, () => assert.equal(holderDue(holding, sign, NOW, TIMEOUT), expected))

test('an agent that sits on its work is nudged, then the work is somebody else’s', { timeout: 60_000 }, async () => {
  const released: string[] = []
  let active: string | undefined
  await using city = await new SessionCity({
    config: {
      session: { provider: 'subprocess', claim_holder_stall_timeout: '1s' },
      daemon: { patrol_interval: '100ms', shutdown_timeout: '1s' },
    },
    // It says nothing to whatever it is told.
    providers: {
      sitter: {
        command: '/bin/sh',
        args: ['-c', 'stty -echo; exec cat > /dev/null'],
        prompt_mode: 'none',
        delivery: 'line',
      },
    },
    work: {
      active: ({ id }) => (id === active ? 'al-1' : undefined),
      release: (tx, { id }, reason) => {
        tx.afterCommit(() => {
          if (reason !== 'session_closed') active = undefined
          released.push(`${id} ${reason}`)
        })
        return ['al-1']
      },
    },
  }).start()
  const { id } = await city.create({ template: 'sitter' })
  await city.is(id, 'active')
  active = id
  await eventually('its work is released', () => (released.length > 0 ? true : undefined))
  assert.deepEqual(released, [`${id} claim_holder_stalled`])
  const nudges = city.sessions.deliveries.page(id, undefined, undefined, 10)
  assert.deepEqual(
    nudges.map(({ source, state }) => [source, state]),
    [['nudge', 'delivered']],
  )
  assert.match(nudges[0]?.text ?? '', /You hold al-1/)
})

test('a turn that shows no sign of life is ended, and the session goes on', { timeout: 60_000 }, async () => {
  await using city = await new SessionCity({
    config: { session: { provider: 'subprocess', progress_stall_timeout: '700ms' } },
  }).start()
  const { id } = await city.create()
  await city.is(id, 'active')
  const { id: said } = await city.say(id, 'sleep 600')
  await city.delivered(id, said)
  const ended = await city.when(id, 'it is restarted', ({ state }) => state === 'start-pending')
  assert.deepEqual([ended.reason, ended.last_exit?.classification], ['progress-stall', 'crash'])
  await city.when(id, 'it is back', ({ state, generation }) => state === 'active' && generation === 2)
})
