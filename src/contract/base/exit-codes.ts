/** How a process of ours ends: one table for the program, its help and the reference. */

export const EXIT = {
  ok: 0,
  failure: 1,
  usage: 2,
  notFound: 3,
  denied: 4,
  conflict: 5,
  rejected: 6,
  unavailable: 7,
  timedOut: 8,
  operationFailed: 9,
  cursorExpired: 10,
  outcomeUnknown: 12,
  hangup: 129,
  interrupted: 130,
  terminated: 143,
} as const

const MEANINGS: Readonly<Record<keyof typeof EXIT, string>> = {
  ok: 'Done. Also an empty list, and `events --watch` that saw no match in time.',
  failure: 'Another failure: of the program, of the server (500), or “no” to a question.',
  usage: 'The command line is wrong: an unknown flag, a bad value, flags that exclude each other. Nothing was sent.',
  notFound: 'What was named does not exist (404).',
  denied: 'Not allowed: no token, a wrong one, or one without the right (401, 403).',
  conflict:
    'In conflict with how things are: a wrong state, another revision, a port or a home that is taken, a program that the host has not (409, 412, `missing_dependency`).',
  rejected: 'The server refused what was said; each wrong field is named (400, 422).',
  unavailable:
    'No server is there to do it now: nobody listens, no answer, or “not now” (503). Try the same again later.',
  timedOut: 'The wait was too short; what is waited for goes on.',
  operationFailed: 'It was accepted, went on, and failed.',
  cursorExpired: 'What comes after this cursor is no longer kept (410): list again, and go on from there.',
  outcomeUnknown: 'The answer to a change was lost: it may have been done. The message says how to learn it.',
  hangup: 'Ended by SIGHUP.',
  interrupted: 'Ended by Ctrl-C.',
  terminated: 'Ended by SIGTERM.',
}

export interface ExitCode {
  readonly code: number
  readonly name: string
  readonly meaning: string
}

/** The table, by number; names are as in `outcome_unknown`. */
export const EXIT_CODES: readonly ExitCode[] = Object.entries(MEANINGS).map(([name, meaning]) => ({
  code: new Map(Object.entries(EXIT)).get(name) ?? EXIT.failure,
  name: name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`),
  meaning,
}))
