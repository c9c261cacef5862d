/** Orders as files: triggers, actions, what goes together and what does not. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parseOrder } from './order.ts'

const read = (text: string) => parseOrder('nightly', { text, file: 'orders/nightly.toml', dir: '/city/orders' })
const lines = (text: string) =>
  read(text).issues.map(
    ({ line, column, key, message, hint }) =>
      `${line}:${column} ${key}: ${message}${hint === undefined ? '' : ` (${hint})`}`,
  )

const ACTION = 'exec = "true"'
const order = (...keys: readonly string[]) => `[order]\n${keys.join('\n')}\n`

test('a formula on a schedule', () => {
  const text = order(
    'description = "Every night"',
    'formula = "triage"',
    'target = "builders"',
    'title = "Triage of {{ event.type }}"',
    'bead = "{{ event.payload.id }}"',
    'vars = { days = 30, who = "{{ events | map: \'actor\' | join }}" }',
    'trigger = "cron"',
    'schedule = "30 6 * * 1-5"',
    'tz = "Europe/Lisbon"',
    'catch_up = "0s"',
    'timeout = "2h"',
    'overlap = "allow"',
    'scope = "rig"',
    'enabled = false',
    'keep = "1d"',
  )
  assert.deepEqual(read(text), {
    issues: [],
    order: {
      name: 'nightly',
      description: 'Every night',
      readsOneEvent: true,
      enabled: false,
      scope: 'rig',
      vars: { days: 30, who: "{{ events | map: 'actor' | join }}" },
      action: {
        kind: 'formula',
        formula: 'triage',
        target: 'builders',
        title: 'Triage of {{ event.type }}',
        bead: '{{ event.payload.id }}',
        keep: 86_400_000,
      },
      timeout: 7_200_000,
      overlap: 'allow',
      trigger: { kind: 'cron', schedule: '30 6 * * 1-5', tz: 'Europe/Lisbon', catch_up: 0 },
    },
  })
})

test('each trigger with its defaults', () => {
  const triggers: readonly (readonly [readonly string[], object])[] = [
    [['trigger = "cron"', 'schedule = "@daily"'], { kind: 'cron', schedule: '@daily', catch_up: 86_400_000 }],
    [['trigger = "cooldown"', 'interval = "10m"'], { kind: 'cooldown', interval: 600_000 }],
    [
      ['trigger = "condition"', 'check = "test -f x"'],
      { kind: 'condition', check: 'test -f x', check_timeout: 10_000, interval: 60_000 },
    ],
    [
      ['trigger = "event"', 'on = "bead.*"'],
      { kind: 'event', on: 'bead.*', match: {}, batch: true, max_per_hour: 600 },
    ],
    [
      ['trigger = "event"', 'on = "bead.closed"', 'batch = false', 'match = { "issue.type" = "bug" }'],
      { kind: 'event', on: 'bead.closed', match: { 'issue.type': 'bug' }, batch: false, max_per_hour: 600 },
    ],
    [['trigger = "manual"'], { kind: 'manual' }],
  ]
  for (const [keys, trigger] of triggers) {
    const { order: found, issues } = read(order(ACTION, ...keys))
    assert.deepEqual(issues, [])
    assert.deepEqual(found?.trigger, trigger)
    assert.deepEqual(found?.action, { kind: 'exec', exec: 'true', env: {}, inherit_env: [], idempotent: false })
    assert.equal(found?.timeout, 300_000)
  }
})

const TRIGGER_KEYS: Readonly<Record<string, string>> = {
  schedule: '"0 6 * * *"',
  tz: '"UTC"',
  catch_up: '"1h"',
  interval: '"10m"',
  check: '"true"',
  check_timeout: '"5s"',
  on: '"bead.closed"',
  match: '{ a = "b" }',
  batch: 'true',
}
const OWN: Readonly<Record<string, readonly string[]>> = {
  cron: ['schedule', 'tz', 'catch_up'],
  cooldown: ['interval'],
  condition: ['check', 'check_timeout', 'interval'],
  event: ['on', 'match', 'batch'],
  manual: [],
}

test('keys of another trigger are refused, each where it stands', () => {
  for (const [trigger, own] of Object.entries(OWN)) {
    const all = Object.entries(TRIGGER_KEYS).map(([key, value]) => `${key} = ${value}`)
    const keys = read(order(ACTION, `trigger = "${trigger}"`, ...all)).issues.map(({ key }) => key)
    const strange = Object.keys(TRIGGER_KEYS).filter((key) => !own.includes(key))
    assert.deepEqual(keys.sort(), strange.map((key) => `order.${key}`).sort(), trigger)
  }
})

test('a trigger has what it needs', () => {
  const needed: Readonly<Record<string, string>> = {
    cron: 'schedule',
    cooldown: 'interval',
    condition: 'check',
    event: 'on',
  }
  for (const [trigger, key] of Object.entries(needed)) {
    assert.deepEqual(lines(order(ACTION, `trigger = "${trigger}"`)), [
      `1:2 order.${key}: \`${key}\` is required where \`trigger = "${trigger}"\``,
    ])
  }
  assert.deepEqual(lines(order(ACTION, 'trigger = "cooldown"', 'interval = ""')), [
    '4:12 order.interval: must not be empty',
  ])
  assert.deepEqual(lines(order(ACTION)), ['1:2 order.trigger: `trigger` is required'])
})

test('an order says a formula or a command, and only keys of that', () => {
  assert.deepEqual(lines(order('trigger = "manual"')), ['1:2 order: must say `formula` or `exec`'])
  assert.deepEqual(lines(order('formula = "a"', ACTION, 'trigger = "manual"')), [
    '3:1 order.exec: says `formula` or `exec`: one of them',
  ])
  assert.deepEqual(
    lines(order('formula = "a"', 'trigger = "manual"', 'env = {}', 'inherit_env = []', 'idempotent = true')),
    [
      '4:1 order.env: `env` needs `exec`',
      '5:1 order.inherit_env: `inherit_env` needs `exec`',
      '6:1 order.idempotent: `idempotent` needs `exec`',
    ],
  )
  assert.deepEqual(
    lines(order(ACTION, 'trigger = "manual"', 'target = "x"', 'title = "x"', 'bead = "x"', 'keep = "1d"')).map(
      (line) => line.split(': ')[1],
    ),
    ['`target` needs `formula`', '`title` needs `formula`', '`bead` needs `formula`', '`keep` needs `formula`'],
  )
})

test('schedules and zones that croner or the system would take are refused where they never come', () => {
  for (const schedule of [
    '2026-01-01T00:00:00',
    '0 0 30 2 *',
    '* * * *',
    '0 0 0 * * *',
    '61 * * * *',
    '* * * * MOX',
    '@never',
  ]) {
    const [line = ''] = lines(order(ACTION, 'trigger = "cron"', `schedule = "${schedule}"`))
    assert.match(line, /^4:12 order\.schedule: /, schedule)
  }
  assert.deepEqual(lines(order(ACTION, 'trigger = "cron"', 'schedule = "0 6 * * *"', 'tz = "Mars/Olympus"')), [
    '5:6 order.tz: `Mars/Olympus` is not a time zone (write a name like `Europe/Lisbon`)',
  ])
})

test('templates of an order read `event` and `events`, and nothing else', () => {
  const text = order(
    'formula = "a"',
    'trigger = "manual"',
    'title = "{{ evnt.type }}"',
    'bead = "{{ bead.id }}"',
    'vars = { a = ["{{ steps.x }}"], event = 1 }',
  )
  assert.deepEqual(lines(text), [
    '4:13 order.title: there is no `evnt` here (did you mean `event`?)',
    '5:12 order.bead: there is no `bead` here',
    '6:19 order.vars.a[0]: there is no step `x` here',
    '6:33 order.vars.event: `event` is a reserved name',
  ])
})

test('what is dropped is refused with what to write instead', () => {
  assert.deepEqual(
    lines(
      order('formula = "a"', 'trigger = "webhook"', 'pool = "x"', 'params = {}', 'no_work_gate = true', 'pooll = 1'),
    ),
    [
      '3:11 order.trigger: `webhook` is not one of `cron`, `cooldown`, `condition`, `event`, `manual` (run it over the API, or emit an event and write `trigger = "event"`)',
      '4:1 order.pool: unknown key `pool` (write `target`)',
      '5:1 order.params: unknown key `params` (write `vars`; `order run --var` gives others)',
      '6:1 order.no_work_gate: unknown key `no_work_gate` (write `overlap = "allow"`)',
      '7:1 order.pooll: unknown key `pooll`',
    ],
  )
})

test('a file that is none, is empty or has keys outside the table is refused', () => {
  assert.deepEqual(lines(''), ['1:1 order: `order` is required'])
  assert.deepEqual(lines('trigger = "cron"'), ['1:1 order: `order` is required', '1:1 trigger: unknown key `trigger`'])
  assert.match(lines('[order').join(), /^1:7 : not valid TOML/)
})
