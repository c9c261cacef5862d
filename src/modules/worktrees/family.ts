/** Worktrees, as the supervisor joins them. */
import { worktreeOperations } from '../../contract/worktrees.ts'
import { migrationsOf } from '../../kernel/database.ts'
import { defineFamily } from '../../kernel/family.ts'
import { createWorktreeHandlers, type WorktreeCity } from './handlers.ts'
import { Worktrees, type WorktreesDeps } from './service.ts'
import { WORKTREES_SCHEMA } from './store.ts'

export const worktrees = defineFamily({
  operations: worktreeOperations,
  schema: migrationsOf('worktrees', WORKTREES_SCHEMA),
  handlers: createWorktreeHandlers,
  open: (deps: WorktreesDeps & Pick<WorktreeCity, 'store'>) => ({ store: deps.store, worktrees: new Worktrees(deps) }),
  // Sessions are known by then.
  phases: { starting_agents: (city) => city.worktrees.recover() },
  close: (city) => city.worktrees.shut(),
})
