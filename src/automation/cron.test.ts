/** Times of schedules against a plain oracle that looks at every minute of ten years. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fc } from '../../test/support/random.ts'
import { createSchedule, scheduleFault } from './cron.ts'

const MINUTE_MS = 60_000
const FROM = Date.UTC(2024, 0, 1)
const TO = Date.UTC(2034, 0, 1)
/** One north of the equator, one south of it, and one whose clocks go by half an hour. */
const ZONES = ['America/New_York', 'Pacific/Auckland', 'Australia/Lord_Howe'] as const

interface Change {
  /** The first minute with the new offset. */
  readonly at: number
  readonly before: number
  readonly after: number
}

const formatters = new Map<string, Intl.DateTimeFormat>()
/** Minutes that the clocks of a zone are ahead of UTC. */
function offsetAt(zone: string, at: number): number {
  const formatter =
    formatters.get(zone) ??
    new Intl.DateTimeFormat('en-CA', { timeZone: zone, dateStyle: 'short', timeStyle: 'medium', hourCycle: 'h23' })
  formatters.set(zone, formatter)
  return Math.round((Date.parse(`${formatter.format(at).replace(', ', 'T')}Z`) - at) / MINUTE_MS)
}

function changesOf(zone: string): readonly Change[] {
  const found: Change[] = []
  const day = 24 * 60 * MINUTE_MS
  for (let at = FROM - day; at < TO; at += day) {
    const [before, after] = [offsetAt(zone, at), offsetAt(zone, at + day)]
    if (before === after) continue
    let [low, high] = [at, at + day]
    while (high - low > MINUTE_MS) {
      const middle = low + Math.floor((high - low) / 2 / MINUTE_MS) * MINUTE_MS
      if (offsetAt(zone, middle) === before) low = middle
      else high = middle
    }
    found.push({ at: high, before, after })
  }
  return found
}

const CHANGES = new Map(ZONES.map((zone) => [zone, changesOf(zone)]))

/** One field: what it takes, and whether it is written without wildcard and step. */
interface Field {
  readonly takes: readonly boolean[]
  readonly isFixed: boolean
  readonly isAny: boolean
}

function fieldOf(text: string, first: number, last: number): Field {
  const takes: boolean[] = new Array(last + 1).fill(false)
  for (const part of text.split(',')) {
    const [range = '', step = '1'] = part.split('/')
    const [low, high = low] = range === '*' ? [first, last] : range.split('-').map(Number)
    for (let value = low ?? first; value <= (high ?? last); value += Number(step)) takes[value] = true
  }
  return { takes, isFixed: !/[*/]/.test(text), isAny: text === '*' }
}

interface Wanted {
  readonly minute: Field
  readonly hour: Field
  readonly day: Field
  readonly month: Field
  readonly weekday: Field
}

function wantedBy(pattern: string): Wanted {
  const [minute = '', hour = '', day = '', month = '', weekday = ''] = pattern.split(' ')
  const named = fieldOf(weekday, 0, 7)
  if (named.takes[7] === true) Object.assign(named.takes, { 0: true })
  return {
    minute: fieldOf(minute, 0, 59),
    hour: fieldOf(hour, 0, 23),
    day: fieldOf(day, 1, 31),
    month: fieldOf(month, 1, 12),
    weekday: named,
  }
}

function isDayWanted({ day, month, weekday }: Wanted, wall: Date): boolean {
  if (month.takes[wall.getUTCMonth() + 1] !== true) return false
  const isDay = day.takes[wall.getUTCDate()] === true
  const isWeekday = weekday.takes[wall.getUTCDay()] === true
  // A field that says nothing decides nothing; of two that say something either will do.
  if (day.isAny || weekday.isAny) return isDay && isWeekday
  return isDay || isWeekday
}

/** Every minute from `from` until before `to`, one after the other, as the clocks on the wall show it. */
function minutesOf(pattern: string, zone: (typeof ZONES)[number], from: number, to: number): readonly number[] {
  const wanted = wantedBy(pattern)
  const isFixed = wanted.minute.isFixed && wanted.hour.isFixed
  const changes = CHANGES.get(zone) ?? []
  const found: number[] = []
  let next = changes.findIndex(({ at }) => at > from)
  let offset = offsetAt(zone, from)
  let today = Number.NaN
  let isToday = false
  /** Until when the clocks repeat what they have shown. */
  let repeatedUntil = 0
  const take = (wall: number): boolean => {
    const minutes = wall / MINUTE_MS
    const minute = ((minutes % 60) + 60) % 60
    if (wanted.minute.takes[minute] !== true) return false
    const hour = (((minutes - minute) / 60) % 24) + 0
    if (wanted.hour.takes[hour] !== true) return false
    const day = Math.floor(minutes / 1440)
    if (day !== today) {
      today = day
      isToday = isDayWanted(wanted, new Date(wall))
    }
    return isToday
  }
  for (let at = from; at < to; at += MINUTE_MS) {
    const change = changes[next]
    let isLate = false
    if (change !== undefined && at === change.at) {
      next += 1
      if (change.after < change.before) repeatedUntil = at + (change.before - change.after) * MINUTE_MS
      else if (isFixed)
        for (let gone = change.before; gone < change.after; gone++) isLate ||= take(at + gone * MINUTE_MS)
      offset = change.after
    }
    if (isLate || (take(at + offset * MINUTE_MS) && !(isFixed && at < repeatedUntil))) found.push(at)
  }
  return found
}

function slotsOf(pattern: string, zone: string, from: number, to: number): readonly number[] {
  const schedule = createSchedule(pattern, zone)
  const found: number[] = []
  for (let at = schedule.next(from - 1); at !== undefined && at < to; at = schedule.next(at)) found.push(at)
  return found
}

const texts = (times: readonly number[]) => times.map((at) => new Date(at).toISOString())

// Few enough a day that ten years of them are counted in a second.
const SPARSE = ['30 2 * * *', '45 1 1-7 * 0', '5 0 */2 * *', '*/20 2 1,15 3-5,9-11 0']
for (const zone of ZONES) {
  test(`ten years of schedules in ${zone} are what each of their minutes says`, () => {
    assert.ok((CHANGES.get(zone) ?? []).length >= 19)
    for (const pattern of SPARSE)
      assert.deepEqual(texts(slotsOf(pattern, zone, FROM, TO)), texts(minutesOf(pattern, zone, FROM, TO)), pattern)
  })

  test(`schedules of every few minutes in ${zone} are right around every change of ten years`, () => {
    for (const { at } of CHANGES.get(zone) ?? []) {
      const [from, to] = [at - 6 * 60 * MINUTE_MS, at + 6 * 60 * MINUTE_MS]
      for (const pattern of ['*/15 * * * *', '*/10 1-3 * * *', '7,37 * * * *', '0,15,30,45 0-3 * * *', '*/30 2 * * *'])
        assert.deepEqual(texts(slotsOf(pattern, zone, from, to)), texts(minutesOf(pattern, zone, from, to)), pattern)
    }
  })
}

const values = (first: number, last: number) => {
  const one = fc.integer({ min: first, max: last })
  const range = fc.tuple(one, one).map(([a, b]) => `${Math.min(a, b)}-${Math.max(a, b)}`)
  const step = fc.integer({ min: 1, max: Math.ceil((last - first) / 2) })
  const stepped = fc.tuple(fc.oneof(fc.constant('*'), range), step).map(([of, by]) => `${of}/${by}`)
  const list = fc
    .uniqueArray(fc.oneof(one.map(String), range), { minLength: 1, maxLength: 3 })
    .map((all) => all.join(','))
  return fc.oneof(fc.constant('*'), list, stepped)
}

test('any schedule is what each minute around a change says, forwards and backwards', () => {
  const changes = ZONES.flatMap((zone) => (CHANGES.get(zone) ?? []).map(({ at }) => ({ zone, at })))
  const schedule = fc.record({
    where: fc.constantFrom(...changes),
    fields: fc.tuple(values(0, 59), fc.oneof(values(0, 3), values(0, 23)), values(1, 28), values(1, 12), values(0, 6)),
    before: fc.integer({ min: 1, max: 3_000 }),
    after: fc.integer({ min: 60, max: 200 }),
  })
  fc.assert(
    fc.property(schedule, ({ where: { zone, at }, fields, before, after }) => {
      const pattern = fields.join(' ')
      const [from, to] = [at - before * MINUTE_MS, at + after * MINUTE_MS]
      const expected = minutesOf(pattern, zone, from, to)
      const shown = expected.slice(0, 60)
      const last = shown.at(-1)
      const found = slotsOf(pattern, zone, from, last === undefined ? to : last + MINUTE_MS)
      assert.deepEqual(texts(found), texts(shown), `${pattern} in ${zone}`)
      const latest = createSchedule(pattern, zone).latest(to - MINUTE_MS)
      const end = expected.at(-1)
      if (end === undefined) assert.ok(latest === undefined || latest < from, `${pattern} in ${zone}`)
      else assert.deepEqual(texts([latest ?? 0]), texts([end]), `the last of ${pattern} in ${zone}`)
    }),
    { numRuns: 400 },
  )
})

test('the last time until a moment counts the moment, and no second before it', () => {
  const { latest } = createSchedule('30 6 * * *', 'UTC')
  const slot = Date.UTC(2026, 10, 22, 6, 30)
  assert.equal(latest(slot), slot)
  assert.equal(latest(slot + 59_999), slot)
  assert.equal(latest(slot - 1), slot - 86_400_000)
})

test('what is no schedule is refused in a sentence', () => {
  for (const good of ['30 6 * * 1-5', '@daily', '0 0 29 2 *', '*/15 2 * * *', '0 0 * jan-mar sun', '0 0 * * 7'])
    assert.equal(scheduleFault(good), undefined, good)
  for (const [bad, why] of [
    ['', /five fields/],
    ['soon', /five fields/],
    ['2026-11-22T06:30:00', /five fields/],
    ['* * * * * *', /five fields/],
    ['@reboot', /not supported/],
    ['@sometimes', /no schedule/],
    ['61 * * * *', /minute: 61/],
    ['0 0 30 2 *', /no such day/],
    ['0 0 31 4,6 *', /no such day/],
    ['0 5-2 * * *', /larger/],
    [`${'1,'.repeat(200)}1 * * * *`, /longer than 200/],
  ] as const)
    assert.match(scheduleFault(bad) ?? '', why, bad)
})
