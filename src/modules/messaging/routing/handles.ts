/** Who is meant in a group: pure (sheet 06 §2.5). */
import type { InboundMatch } from '../../../contract/messaging/routes.ts'

export interface Cursors {
  readonly default_handle?: string | undefined
  readonly last_addressed_handle?: string | undefined
}

export interface HandleRoute {
  readonly match: Extract<InboundMatch, 'explicit_target' | 'last_addressed' | 'default' | 'no_match'>
  readonly handle?: string
  /** Whoever was called is meant from now on where nobody is. */
  readonly updateCursor: boolean
}

/** Handles as they are compared: blanks around them and letter case do not count. */
export const normalHandle = (text: string): string => text.trim().toLowerCase()

/** `isTaken`: the handle is that of a participant. Who is called and is not there is nobody else's to answer. */
export function routeInGroup(
  { default_handle: byDefault, last_addressed_handle: last }: Cursors,
  isTaken: (handle: string) => boolean,
  explicit?: string,
): HandleRoute {
  const called = explicit === undefined ? '' : normalHandle(explicit)
  if (called !== '')
    return isTaken(called)
      ? { match: 'explicit_target', handle: called, updateCursor: true }
      : { match: 'no_match', updateCursor: false }
  if (last !== undefined && isTaken(last)) return { match: 'last_addressed', handle: last, updateCursor: false }
  if (byDefault !== undefined && isTaken(byDefault)) return { match: 'default', handle: byDefault, updateCursor: false }
  return { match: 'no_match', updateCursor: false }
}
