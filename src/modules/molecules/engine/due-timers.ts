/** What timers of molecules do when they are due. */
import type { Tx } from '../../../kernel/database.ts'
import { Faults } from './base/faults.ts'
import type { Failure, StepRow } from './base/rows.ts'
import type { EngineDeps, Run } from './base/run.ts'
import type { DueTimer } from './base/timers.ts'
import { stopMore, timeOutRun } from './life/cancel.ts'
import { failRow } from './life/fail.ts'
import { eventCame, withRow } from './reaction.ts'
import { startAttempt } from './steps/attempts.ts'
import { beginQueued } from './steps/begin.ts'
import { checkAgain } from './steps/checks.ts'
import { gatePassed, scanEarlier } from './steps/gates.ts'
import { stop } from './steps/lists.ts'

function fire(tx: Tx, deps: EngineDeps, timer: DueTimer): void {
  const { step, kind, data } = timer
  if (kind === 'stop') {
    stopMore(tx, deps, timer)
    return
  }
  withRow(tx, deps, step, (run, row) => {
    if (row.superseded || row.phase === 'settled') return
    switch (kind) {
      case 'timeout':
        return timeOut(run, row)
      case 'deadline':
        return timeOutRun(run)
      case 'gate':
        return gatePassed(run, row, 'timer')
      case 'retry':
        run.change({}, 'retry')
        return startAttempt(run, row)
      case 'check':
        return checkAgain(run, row)
      case 'go':
        return beginQueued(run)
      case 'scan':
        return scanEarlier(run, row, Number(data))
      case 'event':
        return eventCame(run, row, Number(data))
      case 'keep':
        return
    }
  })
}

/** The timers of a city; one that threw at a step is done again, and that step fails. */
export class Firing {
  readonly #deps: EngineDeps
  readonly #faults = new Faults()

  constructor(deps: EngineDeps) {
    this.#deps = deps
  }

  fire(tx: Tx, timer: DueTimer): void {
    this.#faults.during(keyOf(timer), (doomed) => fire(tx, { ...this.#deps, doomed }, timer))
  }

  failed(tx: Tx, timer: DueTimer, why: string): void {
    if (this.#faults.has(keyOf(timer))) this.fire(tx, timer)
    else withRow(tx, this.#deps, timer.step, (run, row) => failRow(run, row, why))
  }
}

const keyOf = ({ step, kind }: DueTimer): string => `${step} ${kind}`

/** The time of an attempt is over: what is open closes, who has it is interrupted (decision 95). */
function timeOut(run: Run, row: StepRow): void {
  if (row.phase === 'pending' || row.phase === 'backoff') return
  const failure: Failure = { step_id: row.path, class: 'transient', reason: 'timeout', message: 'its time is over' }
  stop(run, row, { status: 'failed', reason: 'timeout', failure })
  run.do({ do: 'ended', row, failure })
}
