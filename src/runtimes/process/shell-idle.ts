/**
 * When a shell on a terminal waits for input (decision 60): the terminal's foreground process group is its own, the shell
 * itself waits for something, and nothing was printed for a quarter of a second. So neither a builtin loop nor a shell
 * that has read a line and got no processor yet is taken for idle. One that waits inside a builtin (`read`, `wait`) is.
 *
 * S1  Whoever is idle and quiet costs nothing: there is a timer only after output, after a delivery and while busy.
 * S2  A delivery is in turn from its first moment, until a check that came after it says otherwise.
 */
import type { Clock } from '../../kernel/clock.ts'
import { type ProcessStat, readStat } from './process-identity.ts'
import type { Activity } from './runtime.ts'

const QUIET_MS = 250
const FIRST_RETRY_MS = 100
const MAX_RETRY_MS = 1_000

export type Foreground = 'own' | 'other' | 'unknown'

/** Whether the process' own group has the terminal, and the process waits for input. `unknown`: no such process, no terminal, or no /proc here. */
export function readForeground(pid: number): Foreground {
  const stat = readStat(pid)
  return stat === undefined ? 'unknown' : foregroundOf(stat)
}

export function foregroundOf({
  group,
  foreground,
  runnable,
}: Pick<ProcessStat, 'group' | 'foreground' | 'runnable'>): Foreground {
  if (foreground === -1) return 'unknown'
  return group === foreground && !runnable ? 'own' : 'other'
}

const ACTIVITY: Readonly<Record<Foreground, Activity>> = { own: 'idle', other: 'in-turn', unknown: 'unknown' }

interface IdleWatchDeps {
  readonly clock: Clock
  readonly foreground: () => Foreground
  /** Told each change, never twice the same. */
  readonly onActivity: (activity: Activity) => void
}

/** Turns "something was printed" and "something was typed" into idle and in-turn. */
export class IdleWatch {
  readonly #deps: IdleWatchDeps
  #activity: Activity = 'unknown'
  #quietSince: number
  #retryMs = FIRST_RETRY_MS
  #cancel: (() => void) | undefined
  #closed = false

  constructor(deps: IdleWatchDeps) {
    this.#deps = deps
    this.#quietSince = deps.clock.monotonic()
    this.#arm(QUIET_MS)
  }

  get activity(): Activity {
    return this.#activity
  }

  /** Cheap: a flood moves a number and keeps the timer that is there. */
  onOutput(): void {
    this.#stir()
  }

  onDelivery(): void {
    this.#stir()
  }

  close(): void {
    this.#closed = true
    this.#cancel?.()
    this.#cancel = undefined
  }

  #stir(): void {
    if (this.#closed) return
    this.#quietSince = this.#deps.clock.monotonic()
    this.#retryMs = FIRST_RETRY_MS
    this.#become('in-turn')
    if (this.#cancel === undefined) this.#arm(QUIET_MS)
  }

  #check(): void {
    const quietMs = this.#deps.clock.monotonic() - this.#quietSince
    if (quietMs < QUIET_MS) {
      this.#arm(QUIET_MS - quietMs)
      return
    }
    const foreground = this.#deps.foreground()
    this.#become(ACTIVITY[foreground])
    if (foreground !== 'other') return
    this.#arm(this.#retryMs)
    this.#retryMs = Math.min(this.#retryMs * 2, MAX_RETRY_MS)
  }

  #arm(ms: number): void {
    this.#cancel = this.#deps.clock.after(ms, () => {
      this.#cancel = undefined
      this.#check()
    })
  }

  #become(activity: Activity): void {
    if (activity === this.#activity || this.#closed) return
    this.#activity = activity
    this.#deps.onActivity(activity)
  }
}
