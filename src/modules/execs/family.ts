/** Commands of checks, conditions and orders, as the supervisor joins them. Nothing of them is asked for over HTTP. */
import { migrationsOf } from '../../kernel/database.ts'
import { defineFamily } from '../../kernel/family.ts'
import { Execs, type ExecsDeps } from './service.ts'
import { EXECS_BY_OWNER, EXECS_SCHEMA, EXECS_WITHOUT_TOKEN } from './store.ts'

export const execs = defineFamily({
  operations: [],
  schema: migrationsOf('execs', EXECS_SCHEMA, EXECS_WITHOUT_TOKEN, EXECS_BY_OWNER),
  handlers: () => ({}),
  open: (deps: ExecsDeps) => ({ execs: new Execs(deps) }),
  // Owners have said by then that they want to hear.
  phases: { starting_agents: ({ execs: all }) => all.recover() },
  stop: ({ execs: all }, how) => all.stop(how),
})
