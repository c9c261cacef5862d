import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Pending } from '../../../runtimes/process/runtime.ts'
import type { Report } from '../record/report.ts'
import { afterReport, type Reported, type Sources, weigh } from './evidence.ts'

const T = 1_000_000
const asked = (requestId: string): Pending => ({ requestId, kind: 'approval', options: [], metadata: {} })
const taken = () => Promise.resolve(true)
const silent = { activity: 'unknown', pending: undefined } as const
type ScreenSaid = NonNullable<Sources['screen']>
const shows = (activity: ScreenSaid['activity'], more: Partial<ScreenSaid> = {}): ScreenSaid => ({
  activity,
  since: T - 60_000,
  asks: more.pending !== undefined,
  pending: undefined,
  ...more,
})
const dialog = shows('in-turn', { pending: asked('on-screen') })
const told = (...reports: Report[]): Reported => reports.reduce(afterReport, {})

function sources(change: Partial<Sources>): Sources {
  return {
    protocol: silent,
    reported: {},
    screen: shows('unknown'),
    outputAt: T,
    typedAt: undefined,
    interruptedAt: undefined,
    now: T,
    ...change,
  }
}

const summary = (change: Partial<Sources>) => {
  const { activity, pending, source } = weigh(sources(change))
  return [activity, source, pending?.requestId].filter((word) => word !== undefined).join(' ')
}

const CASES: readonly (readonly [string, Partial<Sources>, string])[] = [
  ['nobody says anything', {}, 'unknown none'],
  ['the screen alone', { screen: shows('idle') }, 'idle screen'],
  ['a question on the screen', { screen: dialog }, 'in-turn screen on-screen'],
  [
    'a protocol knows better than a screen',
    { protocol: { ...silent, activity: 'idle' }, screen: shows('in-turn') },
    'idle protocol',
  ],
  [
    'a protocol needs no screen',
    { protocol: { ...silent, activity: 'in-turn' }, screen: undefined },
    'in-turn protocol',
  ],
  [
    'a question of the protocol',
    { protocol: { activity: 'in-turn', pending: asked('p') }, screen: undefined },
    'in-turn protocol p',
  ],
  [
    'a shell in which a hook waits for an answer is not idle',
    { protocol: { ...silent, activity: 'idle' }, reported: told({ at: T, pending: asked('h'), answer: taken }) },
    'in-turn report h',
  ],
  [
    'a dialog is drawn before the hook that asks the same is heard: it is not announced yet, and nobody is idle',
    { screen: dialog, hookUntil: T + 1 },
    'in-turn screen',
  ],
  ['no hook asks: the dialog is a question of its own', { screen: dialog, hookUntil: T }, 'in-turn screen on-screen'],
  [
    'a dialog that still stands there right after its hook was answered is no second question',
    {
      screen: dialog,
      reported: told({ at: T, pending: asked('h'), answer: taken }, { at: T, pending: null, outcome: 'answered' }),
    },
    'in-turn screen',
  ],
  [
    'a dialog that stands there when nobody has answered the hook is a question',
    {
      screen: dialog,
      reported: told({ at: T, pending: asked('h'), answer: taken }, { at: T, pending: null, outcome: 'gone' }),
    },
    'in-turn screen on-screen',
  ],
  [
    'one question at a time: that of the protocol',
    {
      protocol: { activity: 'in-turn', pending: asked('p') },
      reported: told({ at: T, pending: asked('h'), answer: taken }),
    },
    'in-turn protocol p',
  ],
  [
    'a shell with a question on its screen is not idle',
    { protocol: { ...silent, activity: 'idle' }, screen: dialog },
    'in-turn screen on-screen',
  ],
  [
    'a program that reads lines and says that it works is not idle, though nothing stands in front of it',
    { protocol: { ...silent, activity: 'idle' }, reported: told({ at: T - 60_000, activity: 'in-turn' }) },
    'in-turn report',
  ],
  [
    'not even where its terminal shows a prompt and has rested',
    {
      protocol: { ...silent, activity: 'idle' },
      reported: told({ at: T - 60_000, activity: 'in-turn' }),
      screen: shows('idle', { since: T - 30_000 }),
      outputAt: T - 30_000,
    },
    'in-turn report',
  ],
  [
    'until it was interrupted',
    {
      protocol: { ...silent, activity: 'idle' },
      reported: told({ at: T - 5, activity: 'in-turn' }),
      interruptedAt: T,
    },
    'idle protocol',
  ],
  [
    'what works in front of a shell is at work, whatever it says',
    { protocol: { ...silent, activity: 'in-turn' }, reported: told({ at: T, activity: 'idle' }) },
    'in-turn protocol',
  ],
  [
    'a program that reads lines says that it asks',
    { protocol: { ...silent, activity: 'idle' }, reported: told({ at: T, pending: asked('r') }) },
    'in-turn report r',
  ],
  [
    'so does one that works in front of a shell',
    { protocol: { ...silent, activity: 'in-turn' }, reported: told({ at: T, pending: asked('r') }) },
    'in-turn report r',
  ],
  [
    'what it asked is over once it was interrupted',
    { protocol: { ...silent, activity: 'idle' }, reported: told({ at: T - 5, pending: asked('r') }), interruptedAt: T },
    'idle protocol',
  ],
  [
    'a protocol of turns knows better than a report',
    {
      protocol: { ...silent, activity: 'idle' },
      screen: undefined,
      reported: told({ at: T, activity: 'in-turn', pending: asked('r') }),
    },
    'idle protocol',
  ],
  [
    'a program in a shell asks',
    { protocol: { ...silent, activity: 'in-turn' }, screen: dialog },
    'in-turn protocol on-screen',
  ],

  [
    'a report outranks the screen',
    { reported: told({ at: T, activity: 'idle' }), screen: shows('in-turn') },
    'idle report',
  ],
  [
    'a report of work outranks an idle screen',
    { reported: told({ at: T, activity: 'in-turn' }), screen: shows('idle') },
    'in-turn report',
  ],
  [
    'the last report counts',
    { reported: told({ at: T - 5, activity: 'in-turn' }, { at: T, activity: 'idle' }) },
    'idle report',
  ],
  [
    'not the one that arrives last',
    { reported: told({ at: T, activity: 'idle' }, { at: T - 5, activity: 'in-turn' }) },
    'idle report',
  ],
  [
    'the end of a turn is over once something was typed',
    { reported: told({ at: T - 5, activity: 'idle' }), typedAt: T },
    'unknown none',
  ],
  [
    'a screen that moves on in its turn contradicts an end',
    { reported: told({ at: T - 9_000, activity: 'idle' }), screen: shows('in-turn'), outputAt: T },
    'in-turn screen',
  ],
  [
    'its last strokes do not',
    { reported: told({ at: T - 1_000, activity: 'idle' }), screen: shows('in-turn'), outputAt: T },
    'idle report',
  ],
  [
    'no report makes who is asked something idle',
    { reported: told({ at: T, activity: 'idle' }), screen: dialog },
    'in-turn screen on-screen',
  ],
  [
    'not even before it is announced',
    { reported: told({ at: T, activity: 'idle' }), screen: shows('in-turn', { asks: true }) },
    'in-turn screen',
  ],
  [
    'a report of work with a question on the screen',
    { reported: told({ at: T, activity: 'in-turn' }), screen: dialog },
    'in-turn report on-screen',
  ],

  [
    'a screen at rest ends a turn of which no end was told',
    {
      reported: told({ at: T - 60_000, activity: 'in-turn' }),
      screen: shows('idle', { since: T - 20_000 }),
      outputAt: T - 20_000,
    },
    'idle screen',
  ],
  [
    'but not at once',
    {
      reported: told({ at: T - 60_000, activity: 'in-turn' }),
      screen: shows('idle', { since: T - 9_000 }),
      outputAt: T - 9_000,
    },
    'in-turn report',
  ],
  [
    'nor where it rested before the turn was told',
    { reported: told({ at: T - 30_000, activity: 'in-turn' }), screen: shows('idle'), outputAt: T - 30_000 },
    'in-turn report',
  ],
  [
    'an interrupt ends a turn without a word',
    {
      reported: told({ at: T - 5_000, activity: 'in-turn' }),
      screen: shows('idle', { since: T - 10 }),
      interruptedAt: T - 100,
    },
    'idle screen',
  ],
  [
    'a screen that works on says that it did not',
    { reported: told({ at: T - 5_000, activity: 'in-turn' }), screen: shows('in-turn'), interruptedAt: T - 100 },
    'in-turn report',
  ],

  [
    'a question that was reported',
    { reported: told({ at: T, pending: asked('r'), answer: taken }) },
    'in-turn report r',
  ],
  [
    'one question at a time: who takes the answer',
    { reported: told({ at: T, pending: asked('r'), answer: taken }), screen: dialog },
    'in-turn report r',
  ],
  [
    'one question at a time: the one that can be answered',
    { reported: told({ at: T, pending: asked('r') }), screen: dialog },
    'in-turn screen on-screen',
  ],
  ['a question of which only the report knows', { reported: told({ at: T, pending: asked('r') }) }, 'in-turn report r'],
  [
    'it was answered at the terminal',
    { reported: told({ at: T - 9_000, pending: asked('r') }), screen: shows('idle', { since: T - 1_000 }) },
    'idle screen',
  ],
  [
    'it is over when that is said',
    { reported: told({ at: T - 5, pending: asked('r'), answer: taken }, { at: T, pending: null }) },
    'unknown none',
  ],
  [
    'another tool of the same turn works on',
    { reported: told({ at: T - 5, pending: asked('r'), answer: taken }, { at: T, activity: 'in-turn' }) },
    'in-turn report r',
  ],
  [
    'work after a notice says that it was answered',
    { reported: told({ at: T - 5, pending: asked('r') }, { at: T, activity: 'in-turn' }) },
    'in-turn report',
  ],
  [
    'the end of the turn ends it',
    { reported: told({ at: T - 5, pending: asked('r'), answer: taken }, { at: T, activity: 'idle' }) },
    'idle report',
  ],
]

for (const [name, change, expected] of CASES)
  test(`what an agent does: ${name}`, () => assert.equal(summary(change), expected))

test('a turn of which no end was told is looked at again when its screen has rested', () => {
  const screen = shows('idle', { since: T - 3_000 })
  const { until } = weigh(
    sources({ reported: told({ at: T - 60_000, activity: 'in-turn' }), screen, outputAt: T - 3_000 }),
  )
  assert.equal(until, T + 7_000)
})

test('whatever is reported, who has a question on the screen is never idle', () => {
  const reports: readonly Report[] = [
    { at: T, activity: 'idle' },
    { at: T, activity: 'idle', pending: null },
    { at: T - 60_000, activity: 'in-turn' },
    { at: T, pending: null },
  ]
  for (const report of reports)
    for (const protocol of [silent, { ...silent, activity: 'idle' as const }])
      for (const typedAt of [undefined, T])
        for (const interruptedAt of [undefined, T])
          for (const screen of [dialog, shows('in-turn', { asks: true }), shows('idle', { asks: true })]) {
            const { activity } = weigh(sources({ reported: told(report), protocol, typedAt, interruptedAt, screen }))
            assert.equal(activity, 'in-turn')
          }
})
