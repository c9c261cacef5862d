/** What the city's log is told of its packs. */
import type { EventDraft } from '../../../kernel/event-log.ts'
import type { Scope } from '../city/imports.ts'
import { type Pin, samePin } from '../store/lock.ts'

export interface Upgraded {
  readonly pin: Pin
  readonly previous: Pin
}

export function upgradedPins(before: readonly Pin[], after: readonly Pin[]): Upgraded[] {
  return after.flatMap((pin) => {
    if (before.some((old) => samePin(old, pin))) return []
    const previous = before.find((old) => old.source === pin.source)
    return previous === undefined ? [] : [{ pin, previous }]
  })
}

export function packEvent(
  type: 'pack.added' | 'pack.removed',
  { name, scope, source }: Named,
  pin: Pinned | undefined,
): EventDraft {
  const pinned = pin === undefined ? {} : { version: pin.version, commit: pin.commit }
  return { type, actor: 'api', subject: name, payload: { name, scope, source, ...pinned } }
}

export const trustedEvent = ({ name, scope, source }: Named, { version, commit }: Pinned): EventDraft => ({
  type: 'pack.trusted',
  actor: 'api',
  subject: name,
  payload: { name, scope, source, version, commit },
})

type Named = { readonly name: string; readonly scope: Scope; readonly source: string }
type Pinned = Pick<Pin, 'version' | 'commit'>

export function upgradeEvent(
  { pin, previous }: Upgraded,
  named: { name: string; scope: Scope } | undefined,
): EventDraft {
  const { name, scope } = named ?? { name: pin.source, scope: 'city' }
  return {
    type: 'pack.upgraded',
    actor: 'api',
    subject: name,
    payload: {
      name,
      scope,
      source: pin.source,
      version: pin.version,
      commit: pin.commit,
      previous_version: previous.version,
      previous_commit: previous.commit,
    },
  }
}
