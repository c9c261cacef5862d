/**
 * Times of cron orders (decision 111): croner calculates, and nothing of it runs. Five fields in the order minute, hour, day
 * of month, month, day of week, or a nickname such as `@daily`; where both kinds of days are said, either will do.
 *
 * A time that the clocks skip is taken at the end of the gap, one that they repeat the first time; but minutes or hours with
 * a wildcard or a step are those that the clocks show: none in the gap, each of a repetition.
 */
import { Cron } from 'croner'

export interface Schedule {
  /** The first time after that one, in milliseconds; undefined where there is none any more. */
  next(after: number): number | undefined
  /** The last time until then, itself included. */
  latest(upTo: number): number | undefined
}

const MAX_CHARACTERS = 200
const MINUTE_MS = 60_000
/** Any will do: what never comes from here on, such as 30 February, comes never. */
const SOME_TIME = Date.UTC(2026, 0)
/** Five fields or a nickname: croner takes a date too, as a schedule of one time. */
const FORM = /^\s*(?:@[a-z]+|\S+(?:\s+\S+){4})\s*$/i

/** The times of a schedule without fault, in a time zone that there is. */
export function createSchedule(text: string, zone: string): Schedule {
  const cron = cronOf(text, zone)
  return {
    next: (after) => cron.nextRun(new Date(after))?.getTime(),
    // It looks for what is before a moment, and all times are whole minutes.
    latest: (upTo) =>
      cron.previousRuns(1, new Date(Math.floor(upTo / MINUTE_MS) * MINUTE_MS + MINUTE_MS))[0]?.getTime(),
  }
}

/** What is wrong with a schedule, in a sentence; undefined where nothing is. */
export function scheduleFault(text: string): string | undefined {
  if (text.length > MAX_CHARACTERS) return `is longer than ${MAX_CHARACTERS} characters`
  if (!FORM.test(text)) return 'is no schedule: write five fields, such as `30 6 * * 1-5`, or `@daily`'
  try {
    return cronOf(text, 'UTC').nextRun(new Date(SOME_TIME)) === null ? 'never comes: there is no such day' : undefined
  } catch (error) {
    const why = error instanceof Error ? error.message.replace(/^CronPattern: /, '') : String(error)
    return `is no schedule: ${why}`
  }
}

const cronOf = (text: string, timezone: string): Cron =>
  new Cron(text.trim(), { mode: '5-part', fixedTimeRule: 'no-wildcard', timezone, paused: true })
