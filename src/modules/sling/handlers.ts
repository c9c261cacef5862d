/** The handler of sling (decision 108). */
import type { SlingOutputBody, slingOperations } from '../../contract/automation/sling.ts'
import { defineHandlers, ok, type Reply } from '../../kernel/call.ts'
import { mayChangeCity } from '../../kernel/caller.ts'
import { rehearse } from '../../kernel/rehearse.ts'
import type { SlingCity } from './ports.ts'
import { sling } from './sling.ts'

export const createSlingHandlers = () =>
  defineHandlers<typeof slingOperations, SlingCity>({
    sling: async ({ body, claim, city, actor, caller }) => {
      const slinger = { actor, setsCommands: mayChangeCity(caller) }
      const { db, keys, log } = city.store
      const headers = () => ({ 'X-SVC-Index': String(log.head) })
      if (body.dry_run === true) {
        const would = await rehearse(db, (tx) => sling(tx, city, body, slinger))
        return ok(withoutNewIds(would, body.bead), headers())
      }
      const made: Reply<SlingOutputBody> = await keys.once(claim, () =>
        db.write((tx) => keys.remember(tx, claim, ok(sling(tx, city, body, slinger)))),
      )
      return { ...made, headers: headers() }
    },
  })

/** What would be new was never there. */
function withoutNewIds(
  { bead, molecule: _, children, ...would }: SlingOutputBody,
  given: string | undefined,
): SlingOutputBody {
  return {
    ...would,
    ...(given === undefined || bead === undefined ? {} : { bead }),
    children: children.map(({ bead: child, outcome }) => ({ bead: child, outcome })),
    dry_run: true,
  }
}
