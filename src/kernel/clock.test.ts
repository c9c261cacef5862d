import assert from 'node:assert/strict'
import { mock, test } from 'node:test'
import { parseDay, parseTime, systemClock } from './clock.ts'

const TIMES: readonly (readonly [string, string | undefined])[] = [
  ['2026-11-22T08:05:00Z', '2026-11-22T08:05:00.000Z'],
  ['2026-11-22t08:05:00.1234567z', '2026-11-22T08:05:00.123Z'],
  ['2026-11-22 09:05:00+01:00', '2026-11-22T08:05:00.000Z'],
  ['2026-11-22T00:00:00-23:59', '2026-11-22T23:59:00.000Z'],
  ['0000-01-01T00:00:00Z', '0000-01-01T00:00:00.000Z'],
  ['9999-12-31T23:59:59.999Z', '9999-12-31T23:59:59.999Z'],
  ['9999-12-31T23:59:59.999-00:01', undefined],
  ['0000-01-01T00:00:00+00:01', undefined],
  ['2016-12-31T23:59:60Z', undefined],
  ['2026-02-30T00:00:00Z', undefined],
  ['2026-11-22T24:00:00Z', undefined],
  ['2026-11-22T08:05:00', undefined],
  ['2026-11-22T08:05Z', undefined],
  ['2026-11-22T08:05:00+0100', undefined],
  ['2026-11-22', undefined],
  [' 2026-11-22T08:05:00Z', undefined],
  ['', undefined],
]
for (const [text, iso] of TIMES) {
  test(`"${text}" is ${iso ?? 'no time'}`, () => {
    const ms = parseTime(text)
    assert.equal(ms === undefined ? undefined : new Date(ms).toISOString(), iso)
  })
}

test('a day is one that exists', () => {
  assert.equal(parseDay('2024-02-29'), Date.UTC(2024, 1, 29))
  for (const text of ['2026-02-29', '2026-13-01', '2026-1-1', '2026-11-22T00:00:00Z', ''])
    assert.equal(parseDay(text), undefined)
})

test('what is to happen in a hundred days happens then, and not at once again and again', () => {
  mock.timers.enable({ apis: ['setTimeout'] })
  try {
    const longest = 2 ** 31 - 1
    let calls = 0
    systemClock.after(4 * longest + 1_000, () => calls++)
    const cancel = systemClock.after(2 * longest, () => assert.fail('it was cancelled'))
    mock.timers.tick(longest)
    cancel()
    for (let n = 0; n < 3; n++) mock.timers.tick(longest)
    mock.timers.tick(999)
    assert.equal(calls, 0)
    mock.timers.tick(1)
    assert.equal(calls, 1)
  } finally {
    mock.timers.reset()
  }
})
