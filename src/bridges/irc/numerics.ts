/** Refusals of IRC servers, and what they mean for a message that was sent. */
import { cut } from '../../contract/base/text.ts'
import type { FailureKind } from '../library/shapes.ts'

interface Refusal {
  readonly kind: FailureKind
  /** Which parameter names the target. */
  readonly names: string
}

const REFUSALS: Readonly<Record<string, Refusal>> = {
  // Somebody who is not there may come back: a split of the net looks the same.
  '401': { kind: 'transient', names: 'no such nick or channel' },
  '402': { kind: 'transient', names: 'no such server' },
  '403': { kind: 'not_found', names: 'no such channel' },
  '404': { kind: 'auth', names: 'the channel does not let us speak' },
  '407': { kind: 'permanent', names: 'too many targets' },
  '408': { kind: 'permanent', names: 'the channel does not take such text' },
  '411': { kind: 'permanent', names: 'no recipient' },
  '412': { kind: 'permanent', names: 'no text' },
  '413': { kind: 'permanent', names: 'no such target' },
  '414': { kind: 'permanent', names: 'no such target' },
  '415': { kind: 'permanent', names: 'no such target' },
  '417': { kind: 'permanent', names: 'the line is too long' },
  '442': { kind: 'transient', names: 'not in the channel' },
  '477': { kind: 'auth', names: 'the channel lets only registered nicks speak' },
  '489': { kind: 'auth', names: 'the channel lets only secured connections speak' },
  '531': { kind: 'auth', names: 'this person takes no messages of us' },
  '716': { kind: 'auth', names: 'this person takes no messages of strangers' },
  '263': { kind: 'rate_limited', names: 'the server is busy' },
  '439': { kind: 'rate_limited', names: 'too many messages' },
  FAIL: { kind: 'permanent', names: 'the server refuses it' },
}

export interface Refused {
  readonly kind: FailureKind
  readonly error: string
}

/** What the server has against a message; undefined for everything that is no refusal. */
export function refusalIn(command: string, params: readonly string[]): Refused | undefined {
  const found = REFUSALS[command]
  if (found === undefined) return undefined
  return { kind: found.kind, error: `${found.names} (${command}${said(params)})` }
}

const said = (params: readonly string[]): string => {
  const words = params.length > 1 ? params.at(-1) : undefined
  return words === undefined ? '' : `: ${cut(words.replaceAll(/\p{Cc}/gu, ''), 200)}`
}

/** Numerics by which a channel cannot be joined, in words. */
export const JOIN_REFUSALS: Readonly<Record<string, string>> = {
  '403': 'no such channel',
  '405': 'in too many channels',
  '437': 'not available at the moment',
  '471': 'the channel is full',
  '473': 'only who is invited may join',
  '474': 'banned from it',
  '475': 'it needs a key',
  '476': 'not a name of a channel',
  '477': 'only registered nicks may join',
  '489': 'only secured connections may join',
}
