/** The screens of agents, for the sessions family: the observer of the runtimes behind the family's port. */

import { cutStart } from '../../contract/base/text.ts'
import { screenOf } from '../../harnesses/all.ts'
import { isShellProgram } from '../../harnesses/shell.ts'
import type { Clock } from '../../kernel/clock.ts'
import type { Shown, Terminal } from '../../modules/sessions/record/ports.ts'
import type { LaunchFacts, SessionRecord } from '../../modules/sessions/record/record.ts'
import { openOutputReader } from '../../runtimes/process/output-log.ts'
import type { AgentProcess } from '../../runtimes/process/runtime.ts'
import { colouredRows, escapeText, plainRows } from '../../runtimes/terminal/escape-text.ts'
import { TerminalObserver } from '../../runtimes/terminal/observer.ts'
import { readableText } from '../../runtimes/terminal/readable.ts'
import type { ScreenPicture } from '../../runtimes/terminal/screen.ts'

/** A start has a deadline of its own: this one only ends the observer's loop. */
const READY_MS = 600_000

/** Undefined for agents without a screen: behind ACP, on pipes. */
export function observeTerminal(
  process: AgentProcess,
  session: SessionRecord,
  launch: LaunchFacts,
  clock: Clock,
): Terminal | undefined {
  if (session.runtime === 'acp' || launch.io === 'pipes') return undefined
  const { ready } = launch
  const observer = new TerminalObserver({
    clock,
    process,
    output: openOutputReader(launch.directory),
    size: { columns: launch.columns, rows: launch.rows },
    hints: {
      rules: screenOf(ready.program),
      readyPrefix: ready.promptPrefix,
      readyDelayMs: ready.delayMs ?? 0,
      readyConfirmation: ready.confirm,
      acceptStartupDialogs: ready.acceptDialogs,
      lines: launch.delivery === 'line',
      shell: launch.shell ?? (launch.delivery === 'line' && isShellProgram(launch.ready.program)),
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
    get since() {
      return observer.since
    },
    get asks() {
      return observer.asks
    },
    get pending() {
      return observer.pending
    },
    screen(lines) {
      const text = observer.text(lines)
      return { lines: text.lines, observedAt: text.observedAt }
    },
    shown: async (signal) => shownOf(await observer.picture(signal)),
    get size() {
      return observer.size
    },
    answer: (requestId, answer, signal) => observer.answer(requestId, answer, signal),
    delivered: (message) => observer.onDelivery(message),
    taken: (signal) => observer.taken(signal),
    interrupted: (restores) => observer.onInterrupt(restores),
    lookNow: (signal) => observer.lookNow(signal),
    typing: (message) => observer.onTyping(message),
    mayEnter: (signal) => observer.mayEnter(signal),
    onChange: (listener) => observer.on(listener),
    close: () => observer.close(),
  }
}

function shownOf(picture: ScreenPicture): Shown {
  const { columns, rows, active, normal, modes, cursorVisible, title, offset, observedAt } = picture
  // Behind the last column: the next letter begins a row.
  const column = Math.min(active.cursorX, columns - 1)
  return {
    ...{ columns, rows, title, offset, observedAt },
    cursor: { row: active.cursorY, column, visible: cursorVisible },
    alternate: active !== normal,
    applicationCursor: modes.applicationCursorKeysMode,
    lines: (coloured) => (coloured ? colouredRows(picture) : plainRows(picture)),
    escapeText: () => escapeText(picture),
  }
}

const LAST_BYTES = 16 * 1024
const LAST_LINES = 20
const LAST_CHARACTERS = 4_000

/** Read from the log, which has all of it when the end of a program is known: a screen may be behind. */
export async function lastOutput(directory: string): Promise<string> {
  const output = openOutputReader(directory)
  const end = await output.endOffset()
  const { bytes } = await output.read(Math.max(0, end - LAST_BYTES), LAST_BYTES)
  const { text } = await readableText(bytes)
  const lines = text.split('\n').map((line) => line.trimEnd())
  return cutStart(
    lines
      .filter((line) => line !== '')
      .slice(-LAST_LINES)
      .join('\n'),
    LAST_CHARACTERS,
  )
}
