/**
 * Why the process dies, where only its log can say so: an exception or a rejection that nobody caught. It is written at once,
 * past the log's own buffer, because nothing that waits is written any more.
 */
import type { EventEmitter } from 'node:events'
import { appendFileSync } from 'node:fs'
import { EXIT } from '../contract/base/exit-codes.ts'
import { removeEndpoint } from './endpoint.ts'

export interface LastWordsDeps {
  /** The log of the supervisor. */
  readonly file: string
  readonly home: string
  readonly now: () => string
  readonly stderr: { write(text: string): unknown }
  readonly exit: (code: number) => void
}

/** Listens until the end of the process. */
export function giveLastWords(on: EventEmitter, deps: LastWordsDeps): void {
  on.on('uncaughtException', (error) => die(error, 'an exception was not caught', deps))
  on.on('unhandledRejection', (reason) => die(reason, 'a rejection was not handled', deps))
}

function die(error: unknown, what: string, { file, home, now, stderr, exit }: LastWordsDeps): void {
  const err = error instanceof Error ? { type: error.name, message: error.message, stack: error.stack } : String(error)
  const line = JSON.stringify({ level: 60, time: now(), err, msg: `the supervisor ends: ${what}` })
  attempt(() => appendFileSync(file, `${line}\n`))
  // A client that finds it would ask for a port that somebody else may take.
  attempt(() => removeEndpoint(home))
  attempt(() => stderr.write(`error: ${what}: ${error instanceof Error ? (error.stack ?? error.message) : err}\n`))
  exit(EXIT.failure)
}

/** On a full disk the exit still comes. */
function attempt(work: () => unknown): void {
  try {
    work()
  } catch {
    // Nobody is left who could be told.
  }
}
