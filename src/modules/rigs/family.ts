/** Rigs, as the supervisor joins them; `View` is what they see of a configuration. */
import { rigOperations } from '../../contract/rigs.ts'
import { defineFamily } from '../../kernel/family.ts'
import type { GitFacts } from './git-facts.ts'
import { createRigHandlers, type RigHandlersDeps } from './handlers.ts'
import { type ProvisionDeps, rigCreateJob, sweepClones } from './provision.ts'
import type { RigCity, RigsView } from './rigs.ts'

export interface RigContext<View> extends ProvisionDeps<View> {
  readonly city: RigCity<View>
  readonly git: Pick<GitFacts, 'of' | 'observe'>
  readonly onChange: (listener: (config: View) => void) => void
}

export const rigFamily = <View extends RigsView>() =>
  defineFamily({
    operations: rigOperations,
    handlers: (host: RigHandlersDeps<View>) => createRigHandlers(host),
    open: ({ city, ...deps }: RigContext<View>): RigCity<View> & { readonly provision: ProvisionDeps<View> } => {
      /** A configuration is in force: its rigs are worth a look. */
      const follow = ({ rigs }: View) => {
        for (const { path } of rigs) if (path !== undefined) deps.git.of(path)
      }
      // Before jobs are taken up: what crashed ones left.
      sweepClones(city)
      deps.onChange(follow)
      follow(city.config.current())
      return { ...city, provision: deps }
    },
    jobs: (city) => [rigCreateJob(city.provision, city)],
  })
