/** Handlers of molecules (decision 104). */

import type { Value } from '../../automation/plan.ts'
import type { MoleculeDraft, MoleculeStartRequest, moleculeOperations } from '../../contract/automation/molecules.ts'
import { MOLECULE_STATUSES } from '../../contract/automation/words.ts'
import { defineHandlers, ok, type Reply } from '../../kernel/call.ts'
import { mayChangeCity } from '../../kernel/caller.ts'
import type { Clock } from '../../kernel/clock.ts'
import { checkPrecondition } from '../../kernel/etag.ts'
import type { StoredEvent } from '../../kernel/event-log.ts'
import { needRigs } from '../../kernel/near-names.ts'
import { Page } from '../../kernel/page.ts'
import { durationMs, needVisible, problem } from '../../kernel/problem.ts'
import { rehearse } from '../../kernel/rehearse.ts'
import type { Store } from '../../kernel/store.ts'
import { type BlockingInput, waitForChange } from '../../kernel/waiting.ts'
import type { MoleculeRow } from './engine/base/rows.ts'
import { wireMolecule } from './engine/base/wire.ts'
import type { Molecules } from './engine/molecules.ts'
import { graphOf } from './read/graph.ts'
import type { MoleculeReads } from './read/reads.ts'
import type { Starting, StartWish } from './starting.ts'

export interface MoleculesCity {
  readonly store: Pick<Store, 'db' | 'log' | 'keys'>
  readonly molecules: Molecules
  readonly reads: MoleculeReads
  readonly starting: Starting
  rigNames(): readonly string[]
  /** Whether the formula of this name is another one than the molecule runs by. */
  isChanged(molecule: MoleculeRow): boolean
}

interface WaitingCall {
  readonly city: MoleculesCity
  readonly query: BlockingInput
  readonly signal: AbortSignal
}

/** Wakes whoever waits for a list, or for one: the second where `id` is given. */
const concerns = ({ type, subject }: StoredEvent, id?: string): boolean =>
  type === 'city.stopped' ||
  ((id === undefined || subject === id) &&
    (type.startsWith('molecule.') ||
      type.startsWith('execution.') ||
      type.startsWith('gate.') ||
      type === 'bead.deleted'))

export function createMoleculeHandlers({ clock }: { readonly clock: Clock }) {
  const indexOf = ({ store }: MoleculesCity) => ({ 'X-SVC-Index': String(store.log.head) })
  const wire = (city: MoleculesCity, row: MoleculeRow) =>
    wireMolecule(row, city.isChanged(row), city.reads.warnings(row))
  const answer = (city: MoleculesCity, row: MoleculeRow) =>
    ok(wire(city, row), { ...indexOf(city), ETag: `"${row.revision}"` })
  const need = ({ reads }: MoleculesCity, id: string): MoleculeRow => {
    const found = reads.find(id)
    if (found === undefined) throw problem('molecule-not-found', `there is no molecule ${id}`)
    return found
  }
  const matching = (ifMatch: string | undefined) => (molecule: MoleculeRow) =>
    checkPrecondition(ifMatch, String(molecule.revision))

  /** Waits where that is asked for; then the city as it is. */
  const changed = async (call: WaitingCall, id?: string): Promise<MoleculesCity> => {
    await waitForChange(call.city.store.log, call.query, clock, call.signal, (event) => concerns(event, id))
    return call.city
  }

  return defineHandlers<typeof moleculeOperations, MoleculesCity>({
    'list-molecules': async (call) => {
      const city = await changed(call)
      const { limit, cursor, index: _, wait: __, ...filter } = call.query
      needRigs(filter.rig, city.rigNames())
      const headers = indexOf(city)
      const { reads } = city
      const page = new Page('molecules', ['number'], { limit, cursor })
      const rows = reads.list(filter, page.ask, page.after?.[0])
      const status_counts = reads.counts(filter)
      const asked = filter.status ?? MOLECULE_STATUSES
      return ok(
        {
          ...page.of(
            rows,
            ({ n }) => [n],
            (row) => wire(city, row),
          ),
          total: [...new Set(asked)].reduce((sum, status) => sum + status_counts[status], 0),
          status_counts,
        },
        headers,
      )
    },

    'start-molecule': async ({ body, claim, city, actor, caller }) => {
      needVisible('body.title', body.title)
      const wish = { ...wishOf(body, actor), setsCommands: mayChangeCity(caller) }
      const { db, keys } = city.store
      if (body.dry_run === true) {
        const row = await rehearse(db, (tx) => city.starting.start(tx, wish))
        return ok(draftOf(row), indexOf(city))
      }
      const made: Reply<ReturnType<typeof wire>> = await keys.once(claim, () =>
        db.write((tx) => keys.remember(tx, claim, { status: 201, body: wire(city, city.starting.start(tx, wish)) })),
      )
      return { ...made, headers: indexOf(city) }
    },

    'get-molecule': async (call) => {
      const city = await changed(call, call.params.id)
      return answer(city, need(city, call.params.id))
    },

    'list-molecule-steps': async (call) => {
      const { id } = call.params
      const city = await changed(call, id)
      const { status, superseded = false } = call.query
      const headers = indexOf(city)
      const molecule = need(city, id)
      const page = new Page(`steps ${id}`, ['number'], call.query)
      return ok(city.reads.steps(molecule, { status, superseded }, page), headers)
    },

    'get-molecule-step': ({ params, city }) => {
      const headers = indexOf(city)
      const view = city.reads.view(need(city, params.id), params.path)
      if (view === undefined)
        throw problem('molecule-step-not-found', `the molecule ${params.id} has no step ${params.path}`)
      return ok(view, headers)
    },

    'get-molecule-graph': ({ params, query, city }) => {
      const headers = indexOf(city)
      const molecule = need(city, params.id)
      return ok(graphOf(city.store.db, city.reads.of(molecule), query.expand ?? []), headers)
    },

    'cancel-molecule': async ({ params, body, header, city, actor }) => {
      const reason = body?.reason || 'canceled'
      const check = matching(header('if-match'))
      await city.store.db.write((tx) => city.molecules.cancel(tx, params.id, reason, actor, check))
      await city.molecules.stopped(params.id)
      return answer(city, need(city, params.id))
    },

    'retry-molecule': async ({ params, header, city, actor }) => {
      const check = matching(header('if-match'))
      const row = await city.store.db.write((tx) => city.molecules.retry(tx, params.id, actor, check))
      return answer(city, row)
    },

    'delete-molecule': async ({ params: { id }, header, city, actor }) => {
      const beads = await city.molecules.remove(id, actor, matching(header('if-match')))
      return ok({ status: 'deleted' as const, id, beads }, indexOf(city))
    },
  })
}

function wishOf(
  { keep, dry_run: _, vars, ...body }: MoleculeStartRequest,
  actor: string,
): Omit<StartWish, 'setsCommands'> {
  return {
    ...body,
    actor,
    ...(vars === undefined ? {} : { vars: valuesOf(vars) }),
    ...(keep === undefined ? {} : { keep: durationMs('body.keep', keep) }),
  }
}

/** A body is JSON, and so is everything in it. */
const valuesOf = (vars: Readonly<Record<string, unknown>>): Readonly<Record<string, Value>> =>
  JSON.parse(JSON.stringify(vars))

function draftOf(row: MoleculeRow): MoleculeDraft {
  const {
    id: _,
    status: __,
    created_at: ___,
    updated_at: ____,
    revision: _____,
    failure: ______,
    closed_at: _______,
    expires_at: ________,
    ...shown
  } = wireMolecule(row, false)
  return { dry_run: true, ...shown }
}
