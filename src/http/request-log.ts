/**
 * What the log says about requests.
 *
 * G1  A request has at most one line: that it was refused, or else that it was answered.
 * G2  Refusals are written at the default level, at most MAX_PER_SECOND of a code; what comes on top is written at
 *     `debug`, and counted in one line when the second is over. Who floods the server does not fill the disk.
 * G3  Answers are written at `debug`; those to mutations that leave no other trace at the default level. What services of
 *     cities answer is counted, and theirs to tell: whoever may flood one would push out of the log what it is for.
 */
import type { ProblemCode } from '../contract/base/problems.ts'
import type { Clock } from '../kernel/clock.ts'
import type { Logger } from '../kernel/log.ts'
import type { Problem } from '../kernel/problem.ts'

const MAX_PER_SECOND = 10
const WINDOW_MS = 1_000

interface Window {
  readonly end: () => void
  written: number
  dropped: number
}

/** Fields that every line about a request begins with; those of a request that could not be read are not known. */
export interface Subject {
  readonly requestId: string
  readonly method?: string
  readonly path?: string
}

export class RequestLog {
  readonly #log: Logger
  readonly #clock: Clock
  /** The second that goes on now, of each code that was refused in it. */
  readonly #windows = new Map<ProblemCode, Window>()

  constructor(log: Logger, clock: Clock) {
    this.#log = log
    this.#clock = clock
  }

  refused(subject: Subject, { status, code, detail, cause }: Problem): void {
    const level = !this.#takes(code) ? 'debug' : code === 'internal' ? 'error' : status >= 500 ? 'warn' : 'info'
    if (!this.#log.isLevelEnabled(level)) return
    const err = cause === undefined ? {} : { err: cause }
    this.#log[level](
      { ...fieldsOf(subject), status, code, detail: detail.slice(0, 500), ...err },
      status >= 500 ? 'request failed' : 'request refused',
    )
  }

  /** `since` is when its head was read. */
  answered(subject: Subject, status: number, since: number, worthALine: boolean): void {
    const level = worthALine ? 'info' : 'debug'
    if (!this.#log.isLevelEnabled(level)) return
    const ms = this.#clock.monotonic() - since
    this.#log[level]({ ...fieldsOf(subject), status, ms: Math.round(ms * 10) / 10 }, 'http request')
  }

  #takes(code: ProblemCode): boolean {
    const window = this.#windows.get(code) ?? this.#open(code)
    if (window.written < MAX_PER_SECOND) window.written++
    else window.dropped++
    return window.dropped === 0
  }

  #open(code: ProblemCode): Window {
    const end = () => {
      cancel()
      this.#windows.delete(code)
      if (window.dropped > 0) this.#log.info({ code, count: window.dropped }, 'more requests refused')
    }
    const cancel = this.#clock.after(WINDOW_MS, end)
    const window = { end, written: 0, dropped: 0 }
    this.#windows.set(code, window)
    return window
  }

  /** Says what it has counted. */
  close(): void {
    for (const { end } of this.#windows.values()) end()
  }
}

const fieldsOf = ({ requestId, method, path }: Subject) => ({
  request_id: requestId,
  ...(method === undefined ? {} : { method }),
  ...(path === undefined ? {} : { path: path.slice(0, 256) }),
})
