/** Convoys, as the supervisor joins them. */

import { convoyOperations } from '../../contract/convoys.ts'
import { migrationsOf } from '../../kernel/database.ts'
import { defineFamily } from '../../kernel/family.ts'
import { REACTIONS_SCHEMA } from '../../kernel/reactions.ts'
import { convoyReaction } from './completion.ts'
import { type ConvoyCity, createConvoyHandlers } from './handlers.ts'
import { type ConvoyNotices, noticeReaction } from './notices.ts'
import { CONVOYS_SCHEMA } from './schema.ts'

export const convoys = defineFamily({
  operations: convoyOperations,
  // The first family that reacted brought the table of reactions with it.
  schema: [...migrationsOf('convoys', CONVOYS_SCHEMA), ...migrationsOf('reactions', REACTIONS_SCHEMA)],
  handlers: createConvoyHandlers,
  open: (city: ConvoyCity & { readonly notices: ConvoyNotices }) => city,
  reactions: ({ store, beads, notices }) => [
    convoyReaction({ db: store.db, log: store.log, beads }),
    noticeReaction(notices),
  ],
})
