/** Needs, as the supervisor joins them. */
import { needOperations } from '../../contract/needs.ts'
import { migrationsOf } from '../../kernel/database.ts'
import { defineFamily } from '../../kernel/family.ts'
import { createNeedHandlers, type NeedCity } from './handlers.ts'
import { Projection, type ProjectionDeps } from './projection.ts'
import { NEEDS_SCHEMA } from './rows.ts'

export const needs = defineFamily({
  operations: needOperations,
  schema: migrationsOf('needs', NEEDS_SCHEMA),
  handlers: createNeedHandlers,
  open: (context: ProjectionDeps): NeedCity => ({
    name: context.city,
    store: context.store,
    projection: new Projection(context),
  }),
  phases: { starting_agents: ({ projection }, signal) => projection.open(signal) },
  close: ({ projection }) => projection.close(),
  reactions: ({ projection }) => [projection.reaction()],
})
