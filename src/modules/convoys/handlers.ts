/** Handlers of convoys (sheet 03 §7). */

import { DEFAULT_LIMIT } from '../../contract/base/paging.ts'
import type { ProblemCode } from '../../contract/base/problems.ts'
import type { Bead } from '../../contract/beads.ts'
import {
  type addToConvoy,
  type Convoy,
  type checkConvoy,
  type checkConvoys,
  type closeConvoy as closeConvoyOperation,
  type createConvoy,
  type deleteConvoy,
  type getConvoy,
  type landConvoy,
  type listConvoys,
  type listStranded,
  OWNED_LABEL,
  type patchConvoy,
  type removeFromConvoy,
} from '../../contract/convoys.ts'
import { type Handler, ok, type Reply } from '../../kernel/call.ts'
import type { Clock } from '../../kernel/clock.ts'
import { formatPageToken, invalidCursor, parsePageToken } from '../../kernel/cursor.ts'
import type { Tx } from '../../kernel/database.ts'
import { checkPrecondition } from '../../kernel/etag.ts'
import type { StoredEvent } from '../../kernel/event-log.ts'
import { problem } from '../../kernel/problem.ts'
import type { Store } from '../../kernel/store.ts'
import { waitForChange } from '../../kernel/waiting.ts'
import { announce, closeConvoy, introduce, leavesParent, sayMembers, sweepConvoys } from './completion.ts'
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
  type ListKey,
  membersAmong,
  membersPage,
  openMembers,
  strandedPage,
} from './members.ts'

export interface ConvoyCity {
  readonly store: Pick<Store, 'db' | 'log' | 'keys'>
  readonly beads: ConvoyBeads
}

export interface ConvoyHandlersDeps {
  readonly clock: Clock
  /** A running city, or the spec's 404. */
  readonly city: (name: string) => ConvoyCity
}

const ACTOR = 'api'
/** What of an event about a bead changes a list of convoys: the bead is one, or in one. */
const TOUCHES_CONVOYS = `SELECT 1 FROM beads WHERE id = ? AND issue_type = 'convoy'
  UNION ALL SELECT 1 FROM bead_deps WHERE depends_on_id = ? AND type = 'tracks'
  UNION ALL SELECT 1 FROM beads AS b CROSS JOIN beads AS c ON c.id = b.parent WHERE b.id = ? AND c.issue_type = 'convoy' LIMIT 1`

export function createConvoyHandlers({ clock, city }: ConvoyHandlersDeps) {
  const headers = ({ store }: ConvoyCity, revision: number) => ({
    'X-SVC-Index': String(store.log.head),
    ETag: `"${revision}"`,
  })
  const read = ({ store, beads }: ConvoyCity, id: string): Convoy => readConvoy(store.db, beads, id)
  const depsOf = ({ store: { db, log }, beads }: ConvoyCity) => ({ db, log, beads })

  /** A change of one convoy, which is as `If-Match` says; answers with the convoy as it is then. */
  const changing = async (
    found: ConvoyCity,
    id: string,
    ifMatch: string | undefined,
    change: (tx: Tx, convoy: Bead) => void,
  ): Promise<Reply<Convoy>> => {
    const convoy = await found.store.db.write((tx) => {
      const before = needConvoy(found.beads, id)
      checkPrecondition(ifMatch, String(before.revision))
      change(tx, before)
      return read(found, id)
    })
    return ok(convoy, headers(found, convoy.revision))
  }

  const list: Handler<typeof listConvoys> = async ({ params, query, signal }) => {
    await waitForChange(city(params.cityName).store.log, query, clock, signal, (event) =>
      concernsConvoys(city(params.cityName).store.db, event),
    )
    const { store, beads } = city(params.cityName)
    const index = String(store.log.head)
    const statuses = query.status ?? (query.all === true ? (['open', 'in_progress', 'closed'] as const) : undefined)
    const { limit, order = 'desc' } = query
    // A cursor belongs to the order that it was made with.
    const kind = `convoys ${order}`
    const page = convoysPage(store.db, { statuses }, order, keyOf(kind, query.cursor), limit || DEFAULT_LIMIT)
    const progress = progressOf(store.db, page.items)
    return ok(
      {
        items: beads.wireBare(page.items).map((bead) => wireConvoy(bead, progress(bead.id))),
        total: countConvoys(store.db, { statuses }),
        ...nextCursor(kind, page.next),
      },
      { 'X-SVC-Index': index },
    )
  }

  const create: Handler<typeof createConvoy> = async ({ params, body, claim }) => {
    const found = city(params.cityName)
    const { store, beads } = found
    const { title, description, rig, items = [], owned } = body
    const members = [...new Set(items)]
    const { status, body: convoy } = await store.keys.once(claim, () =>
      store.db.write((tx) => {
        refuseUnknown(tx, items)
        const labels = owned === true ? [OWNED_LABEL] : []
        const metadata = settingsAsMetadata<string>(body)
        const id = beads.create(tx, { title, description, rig, labels, metadata, members }, ACTOR)
        announce(depsOf(found), tx, id, 'created', ACTOR)
        return store.keys.remember(tx, claim, { status: 201, body: read(found, id) })
      }),
    )
    return { status, body: convoy, headers: headers(found, convoy.revision) }
  }

  const stranded: Handler<typeof listStranded> = async ({ params, query, signal }) => {
    await waitForChange(city(params.cityName).store.log, query, clock, signal, (event) =>
      concernsConvoys(city(params.cityName).store.db, event),
    )
    const { store, beads } = city(params.cityName)
    const index = String(store.log.head)
    const page = strandedPage(store.db, beads, keyOf('stranded', query.cursor), query.limit || DEFAULT_LIMIT)
    return ok(
      { items: [...page.items], total: countStranded(store.db), ...nextCursor('stranded', page.next) },
      { 'X-SVC-Index': index },
    )
  }

  const sweep: Handler<typeof checkConvoys> = async ({ params }) => {
    const found = city(params.cityName)
    const { checked, closed, truncated } = await sweepConvoys(depsOf(found), ACTOR)
    return ok(
      { checked, closed: [...closed], ...(truncated ? { truncated } : {}) },
      { 'X-SVC-Index': String(found.store.log.head) },
    )
  }

  const get: Handler<typeof getConvoy> = ({ params, query }) => {
    const found = city(params.cityName)
    const { store, beads } = found
    const index = String(store.log.head)
    const convoy = read(found, params.id)
    const after = keyOf(`members ${params.id}`, query.cursor)
    const page = membersPage(store.db, beads, params.id, after, query.limit || DEFAULT_LIMIT)
    return ok(
      {
        convoy,
        children: [...page.items],
        progress: convoy.progress,
        ...nextCursor(`members ${params.id}`, page.next),
      },
      { 'X-SVC-Index': index, ETag: `"${convoy.revision}"` },
    )
  }

  const patch: Handler<typeof patchConvoy> = ({ params, body, header }) => {
    const found = city(params.cityName)
    const { title, description, owned } = body
    const change: ConvoyChange = {
      ...(title === undefined ? {} : { title }),
      ...(description === undefined ? {} : { description }),
      ...(owned === undefined ? {} : { owned }),
      metadata: settingsAsMetadata<string | null>(body),
    }
    return changing(found, params.id, header('if-match'), (tx) => found.beads.change(tx, params.id, change, ACTOR))
  }

  const remove: Handler<typeof deleteConvoy> = async ({ params, header }) => {
    const { store, beads } = city(params.cityName)
    await store.db.write((tx) => {
      const { revision } = needConvoy(beads, params.id)
      checkPrecondition(header('if-match'), String(revision))
      beads.remove(tx, params.id, ACTOR)
    })
    return ok({ status: 'deleted' as const, id: params.id }, { 'X-SVC-Index': String(store.log.head) })
  }

  const check: Handler<typeof checkConvoy> = ({ params }) => {
    const { store, beads } = city(params.cityName)
    const index = String(store.log.head)
    const { id } = needConvoy(beads, params.id)
    const progress = progressOf(store.db, [id])(id)
    return ok({ convoy_id: id, ...progress, complete: isComplete(progress) }, { 'X-SVC-Index': index })
  }

  const add: Handler<typeof addToConvoy> = ({ params, body, header }) => {
    const found = city(params.cityName)
    const items = [...new Set(body.items)]
    return changing(found, params.id, header('if-match'), (tx, { id, status }) => {
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
      introduce(depsOf(found), tx, id, ACTOR)
      found.beads.track(tx, id, added, ACTOR)
      sayMembers(depsOf(found), tx, id, ACTOR)
    })
  }

  const take: Handler<typeof removeFromConvoy> = ({ params, body, header }) => {
    const found = city(params.cityName)
    const items = [...new Set(body.items)]
    return changing(found, params.id, header('if-match'), (tx, { id }) => {
      refuseStrangers(tx, id, body.items)
      introduce(depsOf(found), tx, id, ACTOR)
      found.beads.untrack(tx, id, items, ACTOR)
      sayMembers(depsOf(found), tx, id, ACTOR)
    })
  }

  const close: Handler<typeof closeConvoyOperation> = ({ params, body, header }) => {
    const found = city(params.cityName)
    return changing(found, params.id, header('if-match'), (tx, { id, status }) => {
      if (status !== 'closed') closeConvoy(depsOf(found), tx, id, body?.reason, ACTOR)
    })
  }

  const land: Handler<typeof landConvoy> = async ({ params, body, header }) => {
    const found = city(params.cityName)
    const { force = false, dry_run = false } = body ?? {}
    const landing = (tx: Pick<Tx, 'get' | 'all'>) => {
      const convoy = needConvoy(found.beads, params.id)
      checkPrecondition(header('if-match'), String(convoy.revision))
      if (!isOwned(convoy))
        throw problem('conflict-wrong-state', `the convoy ${params.id} is not owned: it closes by itself`)
      return { closed: convoy.status === 'closed', open: openMembers(tx, params.id) }
    }
    const { closed, open } = dry_run
      ? landing(found.store.db)
      : await found.store.db.write((tx) => {
          const state = landing(tx)
          if (state.closed) return state
          if (state.open.length > 0 && !force) throw unfinished(params.id, state.open)
          closeConvoy(depsOf(found), tx, params.id, 'landed', ACTOR)
          return state
        })
    const convoy = read(found, params.id)
    return ok(
      { landed: !dry_run || closed || force || open.length === 0, dry_run, open: [...open], convoy },
      headers(found, convoy.revision),
    )
  }

  return {
    'list-convoys': list,
    'create-convoy': create,
    'list-stranded': stranded,
    'check-convoys': sweep,
    'get-convoy': get,
    'patch-convoy': patch,
    'delete-convoy': remove,
    'check-convoy': check,
    'add-to-convoy': add,
    'remove-from-convoy': take,
    'close-convoy': close,
    'land-convoy': land,
  }
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

const nextCursor = (kind: string, next: ListKey | undefined) =>
  next === undefined ? {} : { next_cursor: formatPageToken(kind, [next.createdAt, next.id]) }

function keyOf(kind: string, token: string | undefined): ListKey | undefined {
  if (token === undefined) return undefined
  const [createdAt, id] = parsePageToken(kind, token)
  if (typeof createdAt !== 'number' || typeof id !== 'string') throw invalidCursor('does not name an item of this list')
  return { createdAt, id }
}
