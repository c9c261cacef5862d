/**
 * Words of providers about limits, and when these end. Pure. Only texts of a log or a protocol are read so: the words on a
 * screen may be anybody's.
 */
import { cut } from '../contract/base/text.ts'

const SAYS_LIMIT =
  /\b(?:rate[ _-]?limit(?!er|ing)|(?:usage|session|weekly|daily|5-hour) limit reached|(?:hit|reached) your (?:[\w.]+ ){0,3}limit|too many requests|quota exceeded|resource_exhausted|(?:error|status|http)\W{0,3}429\b)/i

export const saysLimit = (text: string): boolean => SAYS_LIMIT.test(text)

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS
/** What is further off was not understood. */
const FURTHEST_MS = 32 * DAY_MS
const UNITS: Readonly<Record<string, number>> = { d: DAY_MS, h: HOUR_MS, m: 60_000, s: 1_000 }
const MONTHS = ['jan', 'feb', 'mar', 'apr', 'may', 'jun', 'jul', 'aug', 'sep', 'oct', 'nov', 'dec']

const PERIOD = '\\d+\\s*(?:days?|d|hours?|hrs?|h|minutes?|mins?|m|seconds?|secs?|s)\\b'
const IN = new RegExp(`\\b(?:in|after)\\s+(${PERIOD}(?:[\\s,]*(?:and\\s+)?${PERIOD})*)`, 'i')
const AT =
  /\b(?:resets?|try again|reset|until)\b(?:\s+(?:at|on))?\s+(?:([a-z]{3,9})\.?\s+(\d{1,2})(?:st|nd|rd|th)?,?\s*(?:(\d{4}),?\s*)?(?:at\s+)?)?(\d{1,2})(?::(\d{2}))?\s*([ap]m)?(?:\s*\(([a-z_]+(?:\/[a-z_+-]+)*)\))?/i

/** When the limit ends that a text speaks of; undefined: it does not say, or what it says is past. */
export function resetTime(text: string, now: number, localZone: string): number | undefined {
  const found = epochIn(text) ?? periodIn(text, now) ?? clockIn(text, now, localZone)
  return found !== undefined && found > now && found - now <= FURTHEST_MS ? found : undefined
}

function epochIn(text: string): number | undefined {
  const seconds = /[|@]\s*(\d{10})\b/.exec(text)?.[1]
  return seconds === undefined ? undefined : Number(seconds) * 1_000
}

function periodIn(text: string, now: number): number | undefined {
  const said = IN.exec(text)?.[1]
  if (said === undefined) return undefined
  const parts = said.matchAll(/(\d+)\s*([dhms])/gi)
  return [...parts].reduce((at, [, count, unit = '']) => at + Number(count) * (UNITS[unit.toLowerCase()] ?? 0), now)
}

function clockIn(text: string, now: number, localZone: string): number | undefined {
  const found = AT.exec(text)
  if (found === null) return undefined
  const [, monthName, dayText, yearText, hourText = '', minuteText = '0', half, zoneText] = found
  // A bare number is no time of day.
  if (half === undefined && found[5] === undefined) return undefined
  const hour = (Number(hourText) % (half === undefined ? 24 : 12)) + (half?.toLowerCase() === 'pm' ? 12 : 0)
  const zone = zoneText !== undefined && isZone(zoneText) ? zoneText : localZone
  const today = partsAt(now, zone)
  const month = monthName === undefined ? -1 : MONTHS.indexOf(cut(monthName, 3).toLowerCase())
  if (monthName !== undefined && month < 0) return undefined
  const date = month < 0 ? today : { year: Number(yearText ?? today.year), month, day: Number(dayText) }
  const at = instantOf({ ...date, hour, minute: Number(minuteText) }, zone)
  if (at > now) return at
  return month < 0 ? instantOf({ ...date, day: date.day + 1, hour, minute: Number(minuteText) }, zone) : undefined
}

interface Wall {
  readonly year: number
  readonly month: number
  readonly day: number
  readonly hour: number
  readonly minute: number
}

function isZone(name: string): boolean {
  try {
    new Intl.DateTimeFormat('en-US', { timeZone: name })
    return true
  } catch {
    return false
  }
}

function partsAt(at: number, timeZone: string): Wall {
  const options = {
    timeZone,
    hourCycle: 'h23',
    year: 'numeric',
    month: 'numeric',
    day: 'numeric',
    hour: 'numeric',
    minute: 'numeric',
  } as const
  const parts = new Intl.DateTimeFormat('en-US', options).formatToParts(at)
  const part = (type: Intl.DateTimeFormatPartTypes) => Number(parts.find((one) => one.type === type)?.value)
  return { year: part('year'), month: part('month') - 1, day: part('day'), hour: part('hour'), minute: part('minute') }
}

const asUtc = ({ year, month, day, hour, minute }: Wall): number => Date.UTC(year, month, day, hour, minute)

/** The clock on the wall there; looked at twice, for the offset may change on the way. */
function instantOf(wall: Wall, zone: string): number {
  const wanted = asUtc(wall)
  let at = wanted
  for (const _ of [1, 2]) at += wanted - asUtc(partsAt(at, zone))
  return at
}
