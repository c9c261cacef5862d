/**
 * The terminal of this process: taken over, given back.
 *
 * However the process ends, the terminal is as it was: its own screen, its cursor, its echo. Only `kill -9` leaves it.
 */
import { writeSync } from 'node:fs'
import { isatty } from 'node:tty'
import { BrokenPipe, type Io, type TakenTerminal, type Terminal, type TerminalEvents } from './base/io.ts'

/** A process that still runs after this long was not stopped; one that was hears of its going on. */
const NOT_STOPPED_MS = 100

interface ProcessTerminal extends Terminal {
  /** Another program has it. */
  readonly isLent: boolean
}

const ESC = '\u001b'
/** Another screen, no cursor, no wrapping: a line that is too wide must not move those below it. */
const FULL_SCREEN = { on: `${ESC}[?1049h${ESC}[?25l${ESC}[?7l`, off: `${ESC}[?7h${ESC}[?25h${ESC}[?1049l` }
/** Pasted text comes in brackets, so that it can be told from keys. */
const PASTE = { on: `${ESC}[?2004h`, off: `${ESC}[?2004l` }
const CSI = `${ESC}[`
/** Whatever the other program has left: its screen, its colours, its rows that scroll, its modes, its title. */
const UNDONE = [
  // The place of the cursor is kept over what would move it.
  `\u0018${ESC}\\${CSI}?1047l${ESC}7${CSI}r${CSI}?6l${ESC}8${CSI}m${ESC}(B\u000f${ESC}>${CSI}4l${CSI}0 q`,
  ...['1l', '5l', '7h', '25h', '69l', '1000l', '1002l', '1003l', '1004l', '1006l', '2004l', '2026l'].map(
    (mode) => `${CSI}?${mode}`,
  ),
  `${CSI}>4;0m${CSI}23;0t\r\n${CSI}J`,
].join('')

/** Undefined: there is none, or it can do nothing but print. */
export function processTerminal(env: Io['env']): ProcessTerminal | undefined {
  if (!isatty(0) || !isatty(1) || env['TERM'] === 'dumb') return undefined
  let isLent = false
  return {
    get isLent() {
      return isLent
    },
    get columns() {
      return process.stdout.columns || 80
    },
    get rows() {
      return process.stdout.rows || 24
    },
    take(use, events) {
      const taken = take(use, events)
      return {
        ...taken,
        async lend(work) {
          isLent = true
          try {
            return await taken.lend(work)
          } finally {
            isLent = false
          }
        },
      }
    },
  }
}

/** What stands there goes up, where it can be read again. */
const through = () => ({ on: `${CSI}22;0t${'\n'.repeat(process.stdout.rows || 24)}`, off: UNDONE })

function take(use: Parameters<Terminal['take']>[0], { onBytes, onResize, onReturn }: TerminalEvents): TakenTerminal {
  const { stdin, stdout } = process
  const modes = use === 'through' ? [through()] : use === 'screen' ? [FULL_SCREEN, PASTE] : [PASTE]
  let isOurs = false
  let isReleased = false
  const enter = () => {
    if (isOurs || isReleased) return
    isOurs = true
    stdin.setRawMode(true)
    stdin.on('data', onBytes).resume()
    // Written at once, whatever else waits to be: the process may be about to stop or end.
    writeSync(1, modes.map(({ on }) => on).join(''))
  }
  const leave = () => {
    if (!isOurs) return
    isOurs = false
    stdin.off('data', onBytes).pause()
    try {
      stdin.setRawMode(false)
      writeSync(1, modes.map(({ off }) => off).join(''))
    } catch {
      // The terminal itself is gone.
    }
  }
  const suspend = () => {
    leave()
    process.off('SIGTSTP', suspend)
    // The whole job, as the shell would: a program that waits for this one must not keep the terminal.
    process.kill(0, 'SIGTSTP')
    // Where there is no shell that could let the job go on, the system does not stop it.
    setTimeout(goOn, NOT_STOPPED_MS)
  }
  const goOn = () => {
    if (isOurs) return
    process.off('SIGTSTP', suspend).on('SIGTSTP', suspend)
    enter()
    onReturn()
  }
  enter()
  process.on('exit', leave).on('SIGTSTP', suspend).on('SIGCONT', goOn)
  stdout.on('resize', onResize)
  return {
    async write(text) {
      if (!isOurs) return
      await new Promise<void>((resolve, reject) => {
        stdout.write(text, (error) => (error ? reject(new BrokenPipe()) : resolve()))
      })
    },
    suspend,
    async lend(work) {
      // The other program stops and goes on by itself.
      process.off('SIGTSTP', suspend).off('SIGCONT', goOn)
      leave()
      try {
        return await work()
      } finally {
        // The process may be about to end, and only wait for the other.
        if (!isReleased) {
          process.on('SIGTSTP', suspend).on('SIGCONT', goOn)
          enter()
          onReturn()
        }
      }
    },
    release() {
      isReleased = true
      stdout.off('resize', onResize)
      process.off('exit', leave).off('SIGTSTP', suspend).off('SIGCONT', goOn)
      leave()
    },
  }
}
