/** Where beads and convoys meet configuration and sessions. */

import type { WorkContext } from '../../modules/beads/family.ts'
import { beads } from '../../modules/beads/family.ts'
import type { WorkPeople } from '../../modules/beads/work/city.ts'
import { freeSubject } from '../../modules/beads/work/closing.ts'
import { config } from '../../modules/config/family.ts'
import type { ConvoyCity } from '../../modules/convoys/handlers.ts'
import type { ConvoyNotices } from '../../modules/convoys/notices.ts'
import { sessions } from '../../modules/sessions/family.ts'
import type { SessionRecord } from '../../modules/sessions/record/record.ts'
import { convoyBeads } from './convoys.ts'
import { convoyNotices } from './mail.ts'
import { stepsOf } from './molecules.ts'
import type { Running } from './running.ts'
import { namesOf } from './sessions.ts'

export function workContext(city: Running): WorkContext {
  const { name, store, launch, host } = city
  const { clock, log } = host
  return {
    name,
    store,
    clock,
    log,
    launch,
    config: () => config.of(city).config.current(),
    onReconfigured: (listener) => config.of(city).config.onChange(listener),
    people: peopleOf(city),
    steps: stepsOf(city),
    ended: (id) => hasEnded(city, id),
    lives: (id) => lives(city, id),
  }
}

export function convoyCity(city: Running): ConvoyCity & { readonly notices: ConvoyNotices } {
  const work = beads.of(city)
  return {
    store: work.store,
    beads: convoyBeads(work),
    notices: convoyNotices(city),
    free: (tx, id, closing) => void freeSubject(tx, work, work.beads.need(id), closing),
  }
}

/** True where a session of that id is known and has ended, or is to end. */
function hasEnded(city: Running, id: string): boolean {
  const session = sessions.find(city)?.sessions.store.byId(id)
  return session !== undefined && (session.desired !== 'running' || session.state === 'draining')
}

/** False where it is known that nothing runs under this id; before sessions are taken over nobody knows (decision 63). */
function lives(city: Running, id: string): boolean {
  const opened = sessions.find(city)?.sessions
  if (opened === undefined) return true
  return opened.store.byId(id)?.process === true && opened.live(id)?.liveness !== 'dead'
}

/** Names of sessions for work: every handle of a session means whoever owns its work. */
function peopleOf(city: Running): WorkPeople {
  const find = (handle: string): SessionRecord | undefined => {
    const store = sessions.find(city)?.sessions.store
    return store?.byId(handle) ?? store?.byNamed(handle) ?? store?.openByName(handle) ?? store?.openByAlias(handle)
  }
  return {
    canonical: (handle) => find(handle)?.agent ?? handle,
    identities: (handle) => {
      const found = find(handle)
      return found === undefined ? [handle] : namesOf(found)
    },
    routes: (handle) => {
      const found = find(handle)
      if (found === undefined) return [handle]
      return found.kind === 'agent' ? [...new Set([found.agent, found.template])] : [found.agent]
    },
  }
}
