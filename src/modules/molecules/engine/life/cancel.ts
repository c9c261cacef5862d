/** The end of a molecule before its time: canceled by somebody, or out of time (decisions 95, 102). */
import { nextTurn } from '../../../../kernel/clock.ts'
import type { Tx } from '../../../../kernel/database.ts'
import { problem } from '../../../../kernel/problem.ts'
import { type Failure, isLive, moleculeOf } from '../base/rows.ts'
import { type EngineDeps, Run } from '../base/run.ts'
import { ROWS_PER_MOLECULE } from '../base/schema.ts'
import type { DueTimer } from '../base/timers.ts'
import { stop, stopBelow } from '../steps/lists.ts'
import type { Stop } from '../steps/stop.ts'
import { resolve } from './resolve.ts'

/** What one write stops: 500 steps that are under way, or 2,500 that wait; some 20 ms. */
const MAX_STOPPED = 2_500

/** It has ended with this write; commands are ended and holders interrupted after it. */
export function cancelRun(run: Run, reason: string, actor: string): void {
  const { id, status } = run.molecule
  if (!isLive(status)) throw problem('conflict-wrong-state', `the molecule ${id} is ${status} already`)
  endWith(run, { status: 'canceled', reason }, () => resolve(run, 'canceled', undefined, reason, actor))
}

/**
 * As much as one write may take is stopped in it. Of a molecule that has more under way the rest follows at once: it has
 * ended by then, so nothing that happens to what is left begins anything.
 */
function endWith(run: Run, how: Stop, end: () => void): void {
  const isAll = stop(run, run.root, how, { left: MAX_STOPPED })
  end()
  if (!isAll) run.timer(run.root, 'stop', run.now, JSON.stringify(how))
}

/** Stops more of what is left of one that has ended. */
export function stopMore(tx: Tx, deps: EngineDeps, { step, data }: Pick<DueTimer, 'step' | 'data'>): void {
  const run = data === null ? undefined : Run.of(tx, deps, moleculeOf(step))
  if (run === undefined || data === null) return
  if (!stopBelow(run, run.root, JSON.parse(data), { left: MAX_STOPPED })) run.timer(run.root, 'stop', run.now, data)
  run.finish()
}

/** Stops all that is left, in writes of which each is short. */
export async function stopRest(deps: EngineDeps, root: number): Promise<void> {
  while (leftOf(deps.db, root) !== undefined) {
    await deps.db.write((tx) => {
      const data = leftOf(tx, root)
      if (data === undefined) return
      deps.timers.drop(tx, root, 'stop')
      stopMore(tx, deps, { step: root, data })
    })
    await nextTurn()
  }
}

/** Whoever goes on with it begins with nothing under way. */
export function stopAllOf(run: Run): void {
  const data = leftOf(run.tx, run.root.id)
  if (data === undefined) return
  run.noTimer(run.root, 'stop')
  stopBelow(run, run.root, JSON.parse(data), { left: Number.MAX_SAFE_INTEGER })
}

function leftOf(reader: Pick<Tx, 'get'>, root: number): string | undefined {
  const row = reader.get("SELECT data FROM molecule_timers WHERE step = ? AND kind = 'stop'", root)
  return row === undefined ? undefined : String(row.data)
}

/** Its time is over: the rest is left, what is to run in any case too. */
export function timeOutRun(run: Run): void {
  const { status } = run.molecule
  if (!isLive(status)) return
  const late = run.rows(
    `SELECT * FROM molecule_steps WHERE id > ? AND id < ? AND superseded = 0 AND phase NOT IN ('pending', 'settled', 'group', 'repeat')
      ORDER BY id LIMIT 1`,
    run.root.id,
    run.root.id + ROWS_PER_MOLECULE,
  )
  const failure: Failure = {
    step_id: late[0]?.path ?? '',
    class: 'hard',
    reason: 'timeout',
    message: 'the time of the molecule is over',
  }
  endWith(run, { status: 'canceled', reason: 'timeout' }, () => resolve(run, 'fail', failure))
}
