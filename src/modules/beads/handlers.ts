/** Handlers of the beads family: one small function per operation. Reading lists is in `read-handlers.ts`. */

import { type beadOperations, type DeletedBead, MAX_REMOVED_AT_ONCE } from '../../contract/beads.ts'
import { type Handlers, ok, type Reply } from '../../kernel/call.ts'
import type { Clock } from '../../kernel/clock.ts'
import type { Tx } from '../../kernel/database.ts'
import { checkPrecondition } from '../../kernel/etag.ts'
import { otherList, Page } from '../../kernel/page.ts'
import { needVisible, problem } from '../../kernel/problem.ts'
import { readGraph } from './query/graph.ts'
import { countComments, insertComment, listComments } from './store/comments.ts'
import { heldAbove, listDeps, waitsFor } from './store/deps.ts'
import { type BeadRecord, wireBead } from './store/record.ts'
import { createBatch } from './work/batch.ts'
import type { WorkCity } from './work/city.ts'
import { closerOf, freeSubject, openParts } from './work/closing.ts'
import { changeOfClose, changeOfPatch, draftOfCreate, namedByCreate, personOf } from './work/drafts.ts'
import type { RemovalInput } from './work/removal.ts'
import {
  assertIsWork,
  assertMayAnswer,
  assertMayEdge,
  assertMayPatch,
  assertMayRemove,
  assertMayReopen,
  closeOf,
} from './work/steps.ts'

/** The parts of a call that every edit of one bead has. */
interface EditCall {
  readonly params: { readonly id: string }
  readonly header: (name: string) => string | undefined
  readonly city: WorkCity
}

const indexOf = ({ store }: WorkCity) => ({ 'X-SVC-Index': String(store.log.head) })
const headersOf = (city: WorkCity, { revision }: { readonly revision: number }) => ({
  ETag: `"${revision}"`,
  ...indexOf(city),
})

export function createBeadHandlers({ clock }: { readonly clock: Clock }) {
  /** Changes one bead in one write, if it is the version that the caller means. */
  const edit = async <T>(
    { params, header, city }: EditCall,
    change: (tx: Tx, city: WorkCity, before: BeadRecord) => T,
  ) => {
    const result = await city.store.db.write((tx) => {
      const before = city.beads.need(params.id)
      checkPrecondition(header('if-match'), String(before.revision))
      return change(tx, city, before)
    })
    return { city, result }
  }
  const answer = async (editing: Promise<{ readonly city: WorkCity; readonly result: BeadRecord }>) => {
    const { city, result } = await editing
    return ok(wireBead(result), headersOf(city, result))
  }

  return {
    'create-bead': async ({ body, claim, city, actor }) => {
      const { keys, db } = city.store
      const made = await keys.once(claim, () => {
        const draft = draftOfCreate(city, body)
        return db.write((tx) => {
          city.beads.assertExist(namedByCreate(body))
          return keys.remember(tx, claim, { status: 201, body: wireBead(city.beads.insert(tx, draft, actor)) })
        })
      })
      return { ...made, headers: headersOf(city, made.body) }
    },

    'create-bead-batch': async ({ body, claim, city, actor }) => {
      const { keys, db } = city.store
      const made: Reply<{ ids: Record<string, string> }> = await keys.once(claim, () =>
        db.write((tx) => keys.remember(tx, claim, { status: 201, body: { ids: createBatch(tx, city, body, actor) } })),
      )
      return { ...made, headers: indexOf(city) }
    },

    'get-bead': ({ params, city }) => {
      const bead = city.beads.need(params.id)
      return ok(withWarnings(bead, heldAbove(city.beads, city.store.db, bead, clock.now())), headersOf(city, bead))
    },

    'get-bead-graph': ({ params, city }) => {
      return ok(readGraph(city.beads, city.store.db, params.rootID), indexOf(city))
    },

    'patch-bead': (call) =>
      answer(
        edit(call, (tx, city, before) => {
          assertMayPatch(city.steps, before, call.body)
          if (call.body.status === 'closed') freeSubject(tx, city, before, call)
          if (call.body.assignee !== undefined) assertMayAnswer(city.steps, before, call.caller)
          const change = changeOfPatch(city, before, call.body)
          if (typeof change.parent === 'string')
            city.beads.assertExist([{ location: 'body.parent', id: change.parent }])
          return city.beads.change(tx, before, change, call.actor)
        }),
      ),

    'delete-bead': async ({ params: { id }, query, header, claim, city, actor }) => {
      const { beads, store } = city
      const { cascade = false } = query
      const check = () => {
        const { revision } = beads.need(id)
        checkPrecondition(header('if-match'), String(revision))
      }
      // One that is not there may have gone under this very key.
      const isLong =
        beads.find(id) !== undefined && beads.removalSize(id, cascade, MAX_REMOVED_AT_ONCE) > MAX_REMOVED_AT_ONCE
      const reply = isLong
        ? await city.launch({
            operation: 'bead.delete',
            subject: id,
            input: { id, cascade, actor } satisfies RemovalInput,
            claim,
            check() {
              check()
              assertMayRemove(city.steps, [id])
              store.requests.refuseSecond('bead.delete', id, `${id} is being deleted already`)
              if (!cascade) beads.refuseReferred(id)
            },
          })
        : await store.keys.once<DeletedBead>(claim, () =>
            store.db.write((tx) => {
              check()
              const deleted = [...beads.remove(tx, id, actor, cascade)]
              return store.keys.remember(tx, claim, ok({ status: 'deleted', id, deleted }))
            }),
          )
      return { ...reply, headers: indexOf(city) }
    },

    'close-bead': async (call) => {
      const { session_id: session, cancel } = call.body ?? {}
      const closing = { caller: call.caller, actor: call.actor, session, cancel }
      const { city, result } = await edit(call, (tx, city, before) => {
        const { beads, steps, people } = city
        assertMayAnswer(steps, before, call.caller)
        const said = closeOf(steps, people, before, call.body)
        if (before.status === 'closed') {
          refuseOtherOutcome(before, said.outcome)
          return { bead: before, warnings: [] }
        }
        const free = freeSubject(tx, city, before, closing)
        const bead = beads.change(tx, free, changeOfClose(said), closerOf(people, before, closing))
        return { bead, warnings: openParts(tx, bead) }
      })
      return ok(withWarnings(result.bead, result.warnings), headersOf(city, result.bead))
    },

    'reopen-bead': (call) =>
      answer(
        edit(call, (tx, { beads, steps }, before) => {
          assertMayReopen(steps, before)
          if (before.status !== 'closed')
            throw problem(
              'conflict-wrong-state',
              `${before.id} is ${before.status}: only what is closed can be reopened`,
            )
          return beads.change(tx, before, { status: 'open' }, call.actor)
        }),
      ),

    'assign-bead': (call) =>
      answer(
        edit(call, (tx, { beads, people, steps }, before) => {
          assertIsWork(steps, before)
          assertMayAnswer(steps, before, call.caller)
          const { assignee, expected_assignee: expected } = call.body
          if (expected !== undefined && personOf(people, expected) !== before.assignee) throw notWhoHasIt(before)
          return beads.change(tx, before, { assignee: personOf(people, assignee) }, call.actor)
        }),
      ),

    'route-bead': async (call) => {
      const target = call.body.target || null
      const { city, result } = await edit(call, (tx, { beads, steps }, before) => {
        assertIsWork(steps, before)
        assertMayAnswer(steps, before, call.caller)
        return beads.change(tx, before, { routed_to: target }, call.actor)
      })
      const warnings =
        target === null || isKnown(city, target) ? [] : [`nobody is called ${target}: it waits until somebody is`]
      return ok(withWarnings(result, warnings), headersOf(city, result))
    },

    'claim-bead': async (call) => {
      const { city, result } = await edit(call, (tx, { claims, steps }, before) => {
        assertIsWork(steps, before)
        assertMayAnswer(steps, before, call.caller)
        return claims.claim(tx, before, call.body)
      })
      // Only now: the event of a claim that came too late is in the log.
      if (!result.claimed) throw result.refusal
      const warnings = waitsFor(city.store.db, result.bead, clock.now())
      const body = {
        claimed: true,
        bead: wireBead(result.bead),
        ...(warnings.length === 0 ? {} : { warnings }),
      } as const
      return ok(body, headersOf(city, result.bead))
    },

    'heartbeat-bead': (call) =>
      answer(edit(call, (tx, { claims }, before) => claims.heartbeat(tx, before, call.body?.assignee))),

    'release-bead': async (call) => {
      const { city, result } = await edit(call, (tx, { claims, steps }, before) => {
        assertIsWork(steps, before)
        assertMayAnswer(steps, before, call.caller)
        return claims.release(tx, before, call.body?.assignee, call.body?.assignee ?? call.actor)
      })
      return ok({ released: true, bead: wireBead(result) }, headersOf(city, result))
    },

    'list-bead-deps': ({ params, query, city }) => {
      return ok(listDeps(city.beads, city.store.db, params.id, query), indexOf(city))
    },

    'add-bead-dep': (call) =>
      answer(
        edit(call, (tx, { beads, steps }, before) => {
          assertMayEdge(steps, before)
          const { depends_on_id, type = 'blocks' } = call.body
          beads.assertExist([{ location: 'body.depends_on_id', id: depends_on_id }])
          return beads.change(tx, before, { add_edges: [{ depends_on_id, type }] }, call.actor)
        }),
      ),

    'remove-bead-dep': (call) =>
      answer(
        edit(call, (tx, { beads, steps }, before) => {
          assertMayEdge(steps, before, call.params.dependsOnId)
          const edge = { depends_on_id: call.params.dependsOnId, type: call.query.type }
          return beads.change(tx, before, { remove_edges: [edge] }, call.actor)
        }),
      ),

    'add-bead-label': (call) =>
      answer(
        edit(call, (tx, { beads }, before) =>
          beads.change(tx, before, { labels: [...before.labels, call.params.label] }, call.actor),
        ),
      ),

    'remove-bead-label': (call) =>
      answer(
        edit(call, (tx, { beads }, before) =>
          beads.change(
            tx,
            before,
            { labels: before.labels.filter((label) => label !== call.params.label) },
            call.actor,
          ),
        ),
      ),

    'list-bead-comments': ({ params, query, city }) => {
      const { db } = city.store
      city.beads.need(params.id)
      const headers = indexOf(city)
      const page = new Page('comments', ['string', 'number', 'string'], query)
      const [of = params.id, ...after] = page.after ?? []
      if (of !== params.id) throw otherList(query.cursor ?? '')
      const found = listComments(db, params.id, page.ask, after)
      const shown = page.of(found, ({ created_at, id }) => [params.id, Date.parse(created_at), id])
      return ok({ ...shown, total: countComments(db, params.id) }, headers)
    },

    'add-bead-comment': async ({ params, body, claim: key, city, actor }) => {
      const { keys, db } = city.store
      needVisible('body.text', body.text)
      const said = await keys.once(key, () =>
        db.write((tx) => {
          const bead = city.beads.need(params.id)
          const author = body.author === undefined ? {} : { author: city.people.canonical(body.author) }
          const made = insertComment(tx, bead.id, { text: body.text, created_at: clock.now(), ...author })
          city.beads.change(tx, bead, { touched: ['comments'] }, made.author ?? actor)
          return keys.remember(tx, key, { status: 201, body: made })
        }),
      )
      return { ...said, headers: indexOf(city) }
    },
  } satisfies Partial<Handlers<typeof beadOperations, WorkCity>>
}

const withWarnings = (bead: BeadRecord, warnings: string[]) => ({
  ...wireBead(bead),
  ...(warnings.length === 0 ? {} : { warnings }),
})

/** Repeating how it ended is no failure; contradicting it is (decision 93). */
function refuseOtherOutcome({ id, outcome, root_bead_id: molecule }: BeadRecord, said: string | undefined): void {
  const ended = outcome ?? 'pass'
  if (said === undefined || said === ended) return
  const way = molecule === null ? 'reopen it first' : `${molecule} has gone on with that`
  throw problem('conflict-wrong-state', `${id} is closed already, with the outcome ${ended}: ${way}`, {
    errors: [{ location: 'body.outcome', message: `is not how it ended: ${ended}`, value: said }],
  })
}

function notWhoHasIt({ id, assignee }: BeadRecord) {
  const who = assignee ?? 'nobody'
  return problem('conflict-assignee', `${who} has ${id}`, {
    errors: [{ location: 'body.expected_assignee', message: `is not who has it: ${who}`, value: assignee }],
  })
}

const isKnown = (city: WorkCity, target: string): boolean => {
  const { agents, named_sessions } = city.config()
  return [...agents, ...named_sessions].some(({ identity }) => identity === target)
}
