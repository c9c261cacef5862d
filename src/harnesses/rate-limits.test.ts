import assert from 'node:assert/strict'
import { test } from 'node:test'
import { resetTime, saysLimit } from './rate-limits.ts'

/** A Sunday, 12:30 in Berlin. */
const NOW = Date.parse('2026-11-22T11:30:00Z')

const RESETS: readonly (readonly [text: string, at: string | undefined])[] = [
  ["You've hit your limit · resets 3pm (Europe/Berlin)", '2026-11-22T14:00:00.000Z'],
  ["You've hit your limit · resets 12pm (Europe/Berlin)", '2026-11-23T11:00:00.000Z'],
  ['5-hour limit reached ∙ resets 3:30pm', '2026-11-22T15:30:00.000Z'],
  ['Claude usage limit reached. Your limit will reset at 1am (America/New_York).', '2026-11-23T06:00:00.000Z'],
  ['weekly limit reached ∙ resets Nov 25, 9am (Europe/Berlin)', '2026-11-25T08:00:00.000Z'],
  ['Claude AI usage limit reached|1795352000', '2026-11-22T12:53:20.000Z'],
  ["You've hit your usage limit. Try again in 3 days 4 hours.", '2026-11-25T15:30:00.000Z'],
  ["You've hit your usage limit. Upgrade to Pro, or try again at 3:04 PM.", '2026-11-22T15:04:00.000Z'],
  ['rate limit reached, please try again in 28s', '2026-11-22T11:30:28.000Z'],
  ['try again at Nov 26th, 2026 1:05 AM', '2026-11-26T01:05:00.000Z'],
  ['Usage limit reached for gemini-2.5-pro. Access resets at 3:04 PM UTC.', '2026-11-22T15:04:00.000Z'],
  ['rate limit reached', undefined],
  ['try again at 5', undefined],
  ['resets Nov 1, 9am', undefined],
  ['try again in 9000 days', undefined],
]

for (const [text, at] of RESETS)
  test(`when it ends: ${text}`, () => {
    const found = resetTime(text, NOW, 'UTC')
    assert.equal(found === undefined ? undefined : new Date(found).toISOString(), at)
  })

test('errors of providers are told from talk of numbers', () => {
  for (const text of ['429 Too Many Requests', 'HTTP 429', 'rate_limit_error', 'RESOURCE_EXHAUSTED: quota'])
    assert.ok(saysLimit(text), text)
  for (const text of ['429 files changed', 'the limit is 5', 'no model configured']) assert.ok(!saysLimit(text), text)
})
