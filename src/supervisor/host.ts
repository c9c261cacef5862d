/** What all cities of this supervisor share. */
import { join } from 'node:path'
import { StandInGit } from '../files/git/stand-in.ts'
import { findBinary } from '../kernel/processes.ts'
import type { Store } from '../kernel/store.ts'
import { Programs } from '../modules/agents/programs.ts'
import type { Lookup } from '../modules/packs/remote/fence.ts'
import { GitFacts } from '../modules/rigs/git-facts.ts'
import { openPackHost } from './views/packs.ts'
import { openRigClones } from './views/rig-clones.ts'
import type { Host } from './views/running.ts'

type Given = Omit<Host, 'packs' | 'clones' | 'git' | 'repositories' | 'programs'>

export function openHost(given: Given, store: Store, lookup: Lookup | undefined): Host {
  const { clock, env } = given
  const repositories = new StandInGit({ clock, env }, join(given.settings.home, 'git'))
  return {
    ...given,
    packs: openPackHost(given, store, lookup),
    clones: openRigClones(given),
    repositories,
    git: new GitFacts({ clock, git: repositories }),
    programs: new Programs(clock, (command) => findBinary(command, env)),
  }
}
