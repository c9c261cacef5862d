/** The decisions of a city's life: pure, data in and data out (sheet 01 §4.2, decisions 19–21). */
import { CITY_NAME_PATTERN, MAX_CITY_NAME } from '../../contract/base/names.ts'
import { CITY_PHASES, type CityPhase, type CityState } from '../../contract/cities.ts'
import { backoffMs } from '../../kernel/backoff.ts'

/** What the registry wants of a city; `gone`: it was unregistered. */
export type Wanted = 'running' | 'stopped' | 'gone'

/** What the city's worker does next. */
export type Step = 'start' | 'stop' | 'depart' | 'wait'

export interface Situation {
  readonly wanted: Wanted
  readonly state: CityState
  /** A restart was asked for and its stop has not happened yet. */
  readonly restart: boolean
  readonly retryAt: number | undefined
  readonly now: number
}

export function nextStep({ wanted, state, restart, retryAt, now }: Situation): Step {
  if (state === 'running' && (wanted !== 'running' || restart)) return 'stop'
  if (wanted === 'gone') return 'depart'
  if (wanted === 'stopped') return state === 'stopped' ? 'wait' : 'stop'
  if (state === 'running') return 'wait'
  // A time that is further away than any pause was set by a clock that was ahead.
  return retryAt !== undefined && retryAt > now && retryAt <= now + LAST_RETRY_MS ? 'wait' : 'start'
}

const FIRST_RETRY_MS = 10_000
const LAST_RETRY_MS = 300_000

/** Wait before the try after `attempts` failures: 10 s doubling to 5 min, less up to a fifth (`random` in 0..1). */
export function retryDelayMs(attempts: number, random: number): number {
  const full = backoffMs({ firstMs: FIRST_RETRY_MS, longestMs: LAST_RETRY_MS }, attempts)
  return Math.round(full * (1 - 0.2 * random))
}

/** Phases before the one that a city is in; undefined outside the start-up. */
export function phasesCompleted(state: CityState): CityPhase[] | undefined {
  const phases: readonly CityState[] = CITY_PHASES
  const at = phases.indexOf(state)
  return at < 0 ? undefined : CITY_PHASES.slice(0, at)
}

const CITY_NAME = new RegExp(CITY_NAME_PATTERN)

export const isCityName = (name: string): boolean => name.length <= MAX_CITY_NAME && CITY_NAME.test(name)
