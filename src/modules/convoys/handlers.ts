/** Handlers of convoys (sheet 03 §7). */

import type { ProblemCode } from '../../contract/base/problems.ts'
import type { Bead } from '../../contract/beads.ts'
import type { convoyOperations } from '../../contract/convoys.ts'
import { type Convoy, OWNED_LABEL } from '../../contract/convoys.ts'
import { defineHandlers, ok, type Reply } from '../../kernel/call.ts'
import type { Caller } from '../../kernel/caller.ts'
import type { Clock } from '../../kernel/clock.ts'
import type { Tx } from '../../kernel/database.ts'
import { checkPrecondition } from '../../kernel/etag.ts'
import type { StoredEvent } from '../../kernel/event-log.ts'
import { Page } from '../../kernel/page.ts'
import { needVisible, problem } from '../../kernel/problem.ts'
import type { Store } from '../../kernel/store.ts'
import { type BlockingInput, waitForChange } from '../../kernel/waiting.ts'
import { announce, closeConvoy, introduce, leavesParent, removeConvoy, sayMembers, sweepConvoys } from './completion.ts'
import {
  type ConvoyBeads,
  type ConvoyChange,
  isComplete,
  isOwned,
  needConvoy,
  progressOf,
  readConvoy,
  settingsAsMetadata,
  wireConvoy,
} from './convoys.ts'
import {
  beadsAmong,
  convoysPage,
  countConvoys,
  countStranded,
  membersAmong,
  membersPage,
  openMembers,
  strandedPage,
} from './members.ts'

const KEY = ['number', 'string'] as const

export interface ConvoyCity {
  readonly store: Pick<Store, 'db' | 'log' | 'keys'>
  readonly beads: ConvoyBeads
  /** Throws molecule-live where a live molecule is about the convoy and the caller may not close it, unless it is canceled. */
  free(tx: Tx, id: string, closing: ConvoyClosing): void
}

/** Who closes a convoy, and how. */
export interface ConvoyClosing {
  readonly caller: Caller
  readonly actor: string
  readonly cancel: boolean | undefined
  readonly command: 'convoy close' | 'convoy land'
}

interface WaitingCall {
  readonly city: ConvoyCity
  readonly query: BlockingInput
  readonly signal: AbortSignal
}

/** What of an event about a bead changes a list of convoys: the bead is one, or in one. */
const TOUCHES_CONVOYS = `SELECT 1 FROM beads WHERE id = ? AND issue_type = 'convoy'
  UNION ALL SELECT 1 FROM bead_deps WHERE depends_on_id = ? AND type = 'tracks'
  UNION ALL SELECT 1 FROM beads AS b CROSS JOIN beads AS c ON c.id = b.parent WHERE b.id = ? AND c.issue_type = 'convoy' LIMIT 1`

export function createConvoyHandlers({ clock }: { readonly clock: Clock }) {
  const headers = ({ store }: ConvoyCity, revision: number) => ({
    'X-SVC-Index': String(store.log.head),
    ETag: `"${revision}"`,
  })
  const read = ({ store, beads }: ConvoyCity, id: string): Convoy => readConvoy(store.db, beads, id)
  const depsOf = ({ store: { db, log }, beads }: ConvoyCity) => ({ db, log, beads })

  /** A change of one convoy, which is as `If-Match` says; answers with the convoy as it is then. */
  const changing = async (
    city: ConvoyCity,
    id: string,
    ifMatch: string | undefined,
    change: (tx: Tx, convoy: Bead) => void,
  ): Promise<Reply<Convoy>> => {
    const convoy = await city.store.db.write((tx) => {
      const before = needConvoy(city.beads, id)
      checkPrecondition(ifMatch, String(before.revision))
      change(tx, before)
      return read(city, id)
    })
    return ok(convoy, headers(city, convoy.revision))
  }

  /** Waits where that is asked for; then the city as it is. */
  const changed = async (call: WaitingCall): Promise<ConvoyCity> => {
    const { log, db } = call.city.store
    await waitForChange(log, call.query, clock, call.signal, (event) => concernsConvoys(db, event))
    return call.city
  }

  return defineHandlers<typeof convoyOperations, ConvoyCity>({
    'list-convoys': async (call) => {
      const { store, beads } = await changed(call)
      const { query } = call
      const index = String(store.log.head)
      const statuses = query.status ?? (query.all === true ? (['open', 'in_progress', 'closed'] as const) : undefined)
      const { order = 'desc' } = query
      // A cursor belongs to the order that it was made with.
      const page = new Page(`convoys ${order}`, KEY, query)
      const ids = convoysPage(store.db, { statuses }, order, page)
      const progress = progressOf(store.db, ids)
      const shown = page.of(
        beads.wireBare(ids),
        ({ created_at, id }) => [Date.parse(created_at), id],
        (bead) => wireConvoy(bead, progress(bead.id)),
      )
      return ok({ ...shown, total: countConvoys(store.db, { statuses }) }, { 'X-SVC-Index': index })
    },

    'create-convoy': async ({ body, claim, city, actor }) => {
      const { store, beads } = city
      const { title, description, rig, items = [], owned } = body
      needVisible('body.title', title)
      const members = [...new Set(items)]
      const { status, body: convoy } = await store.keys.once(claim, () =>
        store.db.write((tx) => {
          refuseUnknown(tx, items)
          const labels = owned === true ? [OWNED_LABEL] : []
          const metadata = settingsAsMetadata<string>(body)
          const id = beads.create(tx, { title, description, rig, labels, metadata, members }, actor)
          announce(depsOf(city), tx, id, 'created', actor)
          return store.keys.remember(tx, claim, { status: 201, body: read(city, id) })
        }),
      )
      return { status, body: convoy, headers: headers(city, convoy.revision) }
    },

    'list-stranded': async (call) => {
      const { store, beads } = await changed(call)
      const { query } = call
      const index = String(store.log.head)
      const shown = strandedPage(store.db, beads, new Page('stranded', KEY, query))
      return ok({ ...shown, total: countStranded(store.db) }, { 'X-SVC-Index': index })
    },

    'check-convoys': async ({ city, actor }) => {
      const { checked, closed, truncated } = await sweepConvoys(depsOf(city), actor)
      return ok(
        { checked, closed: [...closed], ...(truncated ? { truncated } : {}) },
        { 'X-SVC-Index': String(city.store.log.head) },
      )
    },

    'get-convoy': ({ params, query, city }) => {
      const { store, beads } = city
      const index = String(store.log.head)
      const convoy = read(city, params.id)
      const page = new Page(`members ${params.id}`, KEY, query)
      const { items: children, ...next } = membersPage(store.db, beads, params.id, page)
      return ok(
        { convoy, children, progress: convoy.progress, ...next },
        { 'X-SVC-Index': index, ETag: `"${convoy.revision}"` },
      )
    },

    'patch-convoy': ({ params, body, header, city, actor }) => {
      const { title, description, owned } = body
      needVisible('body.title', title)
      const change: ConvoyChange = {
        ...(title === undefined ? {} : { title }),
        ...(description === undefined ? {} : { description }),
        ...(owned === undefined ? {} : { owned }),
        metadata: settingsAsMetadata<string | null>(body),
      }
      return changing(city, params.id, header('if-match'), (tx) => city.beads.change(tx, params.id, change, actor))
    },

    'delete-convoy': async ({ params, header, city, actor }) => {
      const { store } = city
      await removeConvoy(depsOf(city), params.id, header('if-match'), actor)
      return ok({ status: 'deleted' as const, id: params.id }, { 'X-SVC-Index': String(store.log.head) })
    },

    'check-convoy': ({ params, city }) => {
      const { store, beads } = city
      const index = String(store.log.head)
      const { id } = needConvoy(beads, params.id)
      const progress = progressOf(store.db, [id])(id)
      return ok({ convoy_id: id, ...progress, complete: isComplete(progress) }, { 'X-SVC-Index': index })
    },

    'add-to-convoy': ({ params, body, header, city, actor }) => {
      const items = [...new Set(body.items)]
      return changing(city, params.id, header('if-match'), (tx, { id, status }) => {
        if (status === 'closed')
          throw problem('conflict-wrong-state', `the convoy ${id} is closed: reopen it before you add to it`)
        refuseUnknown(tx, body.items)
        refuse(
          'validation-failed',
          body.items,
          items.filter((item) => item === id),
          () => `body.items: ${id} is the convoy itself`,
          'is the convoy itself',
        )
        const known = membersAmong(tx, id, items)
        const added = items.filter((item) => !known.has(item))
        if (added.length === 0) return
        introduce(depsOf(city), tx, id, actor)
        city.beads.track(tx, id, added, actor)
        sayMembers(depsOf(city), tx, id, actor)
      })
    },

    'remove-from-convoy': ({ params, body, header, city, actor }) => {
      const items = [...new Set(body.items)]
      return changing(city, params.id, header('if-match'), (tx, { id }) => {
        refuseStrangers(tx, id, body.items)
        introduce(depsOf(city), tx, id, actor)
        city.beads.untrack(tx, id, items, actor)
        sayMembers(depsOf(city), tx, id, actor)
      })
    },

    'close-convoy': ({ params, body, header, city, actor, caller }) =>
      changing(city, params.id, header('if-match'), (tx, { id, status }) => {
        if (status === 'closed') return
        city.free(tx, id, { caller, actor, cancel: body?.cancel, command: 'convoy close' })
        closeConvoy(depsOf(city), tx, id, body?.reason, actor)
      }),

    'land-convoy': async ({ params, body, header, city, actor, caller }) => {
      const { force = false, dry_run = false, cancel } = body ?? {}
      const landing = (tx: Pick<Tx, 'get' | 'all'>) => {
        const convoy = needConvoy(city.beads, params.id)
        checkPrecondition(header('if-match'), String(convoy.revision))
        if (!isOwned(convoy))
          throw problem('conflict-wrong-state', `the convoy ${params.id} is not owned: it closes by itself`)
        return { closed: convoy.status === 'closed', open: openMembers(tx, params.id) }
      }
      const { closed, open } = dry_run
        ? landing(city.store.db)
        : await city.store.db.write((tx) => {
            const state = landing(tx)
            if (state.closed) return state
            if (state.open.length > 0 && !force) throw unfinished(params.id, state.open)
            city.free(tx, params.id, { caller, actor, cancel, command: 'convoy land' })
            closeConvoy(depsOf(city), tx, params.id, 'landed', actor)
            return state
          })
      const convoy = read(city, params.id)
      return ok(
        { landed: !dry_run || closed || force || open.length === 0, dry_run, open: [...open], convoy },
        headers(city, convoy.revision),
      )
    },
  })
}

function refuseUnknown(tx: Tx, given: readonly string[], items = given): void {
  const known = beadsAmong(tx, items)
  const missing = items.filter((item) => !known.has(item))
  refuse('bead-not-found', given, missing, (item) => `there is no bead ${item}`, 'there is no such bead')
}

/** What is not there may be removed where it is a member all the same. */
function refuseStrangers(tx: Tx, convoy: string, given: readonly string[]): void {
  const known = membersAmong(tx, convoy, given)
  const strangers = given.filter((item) => !known.has(item))
  refuseUnknown(tx, given, strangers)
  const message = 'is not a member of the convoy'
  refuse('invalid-request', given, strangers, (item) => `${item} ${message} ${convoy}`, message)
}

/** Names each of the `wrong` ones by its place among those that were given. */
function refuse(
  code: ProblemCode,
  given: readonly string[],
  wrong: readonly string[],
  sentence: (item: string) => string,
  message: string,
): void {
  const [first] = wrong
  if (first === undefined) return
  const errors = [...new Set(wrong)].map((item) => ({
    location: `body.items[${given.indexOf(item)}]`,
    message,
    value: item,
  }))
  throw problem(code, sentence(first), { errors })
}

const unfinished = (id: string, open: readonly string[]) =>
  problem('conflict-wrong-state', `the convoy ${id} has members that are not closed; \`force\` lands it all the same`, {
    errors: open.map((member) => ({ location: 'path.id', message: `${member} is not closed`, value: member })),
  })

function concernsConvoys(db: Store['db'], event: StoredEvent): boolean {
  const { type, subject = '' } = event
  if (type === 'city.stopped' || type.startsWith('convoy.') || leavesParent(event)) return true
  return type.startsWith('bead.') && db.get(TOUCHES_CONVOYS, subject, subject, subject) !== undefined
}
