/** The screens of agents, for the sessions family: the observer of the runtimes behind the family's port. */
import type { Clock } from '../../kernel/clock.ts'
import type { Terminal } from '../../modules/sessions/record/ports.ts'
import type { LaunchFacts, SessionRecord } from '../../modules/sessions/record/record.ts'
import { openOutputReader } from '../../runtimes/process/output-log.ts'
import type { AgentProcess, Typable } from '../../runtimes/process/runtime.ts'
import { harnessOf } from '../../runtimes/terminal/harnesses.ts'
import { TerminalObserver } from '../../runtimes/terminal/observer.ts'

/** A start has a deadline of its own: this one only ends the observer's loop. */
const READY_MS = 600_000

/** Undefined for agents without a screen: behind ACP, on pipes. */
export function observeTerminal(
  process: AgentProcess,
  session: SessionRecord,
  launch: LaunchFacts,
  clock: Clock,
): Terminal | undefined {
  if (session.runtime === 'acp' || launch.io === 'pipes' || !isTypable(process)) return undefined
  const { ready } = launch
  const observer = new TerminalObserver({
    clock,
    process,
    output: openOutputReader(launch.directory),
    columns: launch.columns,
    rows: launch.rows,
    hints: {
      harness: harnessOf(ready.program),
      ...(ready.promptPrefix === undefined ? {} : { readyPrefix: ready.promptPrefix }),
      readyDelayMs: ready.delayMs ?? 0,
      readyConfirmation: ready.confirm,
      acceptStartupDialogs: ready.acceptDialogs,
    },
  })
  return {
    async ready(signal) {
      const { state } = await observer.ready(READY_MS, signal)
      if (state === 'timeout') throw new Error('startup-timeout')
      if (state === 'exited') throw new Error('the program ended while it was starting')
    },
    get activity() {
      return observer.activity
    },
    get pending() {
      return observer.pending
    },
    screen(lines) {
      const text = observer.text(lines)
      return { lines: text.lines, observedAt: text.observedAt }
    },
    answer: (requestId, answer, signal) => observer.answer(requestId, answer, signal),
    delivered: (message) => observer.onDelivery(message),
    onChange: (listener) => observer.on(listener),
    close: () => observer.close(),
  }
}

const isTypable = (process: AgentProcess): process is AgentProcess & Typable => 'typeKeys' in process
