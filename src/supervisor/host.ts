/** What all cities of this supervisor share. */
import { findBinary } from '../kernel/processes.ts'
import type { Store } from '../kernel/store.ts'
import { Programs } from '../modules/agents/programs.ts'
import type { Lookup } from '../modules/packs/remote/fence.ts'
import { GitFacts } from '../modules/rigs/git-facts.ts'
import { openPackHost } from './views/packs.ts'
import { openRigClones } from './views/rig-clones.ts'
import type { Host } from './views/running.ts'

type Given = Omit<Host, 'packs' | 'clones' | 'git' | 'programs'>

export function openHost(given: Given, store: Store, lookup: Lookup | undefined): Host {
  const { clock, env } = given
  return {
    ...given,
    packs: openPackHost(given, store, lookup),
    clones: openRigClones(given),
    git: new GitFacts({ clock, env }),
    programs: new Programs(clock, (command) => findBinary(command, env)),
  }
}
