/** What the end of the command of a check or of a condition says about what it looked at (decision 99). */
export type CommandVerdict = 'pass' | 'fail' | 'none'

/** 126 and 127 say that there was nothing to run, and more that it was ended: no verdict about the work. */
const LAST_FAILURE = 125

export function verdictOf(end: { readonly kind: string; readonly exit_code?: number }): CommandVerdict {
  const { kind, exit_code } = end
  if (kind !== 'exited' || exit_code === undefined) return 'none'
  if (exit_code === 0) return 'pass'
  return exit_code >= 1 && exit_code <= LAST_FAILURE ? 'fail' : 'none'
}
