/** Handlers of the packs family. */
import type { packOperations } from '../../contract/packs.ts'
import { defineHandlers, ok } from '../../kernel/call.ts'
import { type AdmissionDeps, prepareAdd, refuseTaken, refuseUnknown } from './admission.ts'
import type { PackCity } from './city/city.ts'
import type { Consent } from './install/consent.ts'
import type { PackUpkeep } from './install/upkeep.ts'
import type { Packs } from './service.ts'
import type { PackInventory } from './show/inventory.ts'
import { reasonsFor } from './show/why.ts'
import type { Pruning } from './store/pruning.ts'

export interface PackHandlersDeps {
  readonly packs: Packs
  readonly upkeep: PackUpkeep
  readonly inventory: PackInventory
  readonly consent: Consent
  readonly admission: AdmissionDeps
  readonly pruning: Pruning
  /** Gives way to others for a moment. */
  readonly pause: () => Promise<void>
  /** Does some work for as long as a request may take. */
  readonly within: <T>(signal: AbortSignal, work: (limit: AbortSignal) => Promise<T>) => Promise<T>
}

export function createPackHandlers({
  packs,
  upkeep,
  inventory,
  consent,
  admission,
  pruning,
  pause,
  within,
}: PackHandlersDeps) {
  const whole = async (city: PackCity, name: string, scope: string | undefined) => {
    const index = String(city.head())
    const item = inventory.find(city, name, scope)
    const entry = inventory.declared(city, item)
    const runs = entry === undefined ? [] : await consent.runs(city.dir, entry)
    return ok({ ...item, runs }, { ETag: `"${item.revision}"`, 'X-SVC-Index': index })
  }
  return defineHandlers<typeof packOperations, PackCity>({
    'list-packs': ({ city }) => {
      const index = String(city.head())
      const { items, errors } = inventory.list(city)
      const partial = errors.length === 0 ? {} : { partial: true, partial_errors: [...errors] }
      return ok(
        { items: [...items], total: items.length, ...partial },
        { ETag: `"${city.revision}"`, 'X-SVC-Index': index },
      )
    },

    'get-pack': ({ params, query, city }) => whole(city, params.name, query.scope),

    'trust-pack': async ({ params, query, body, city }) => {
      await packs.trust(city, params.name, query.scope, body.commit)
      return whole(city, params.name, query.scope)
    },

    'add-pack': ({ body, claim, city }) => {
      const input = prepareAdd(admission, city, body)
      return city.launch({
        operation: 'pack.add',
        subject: input.name,
        input,
        claim,
        check: () => refuseTaken(city, input),
      })
    },

    'install-packs': ({ claim, city }) =>
      city.launch({ operation: 'pack.install', subject: city.name, input: {}, claim }),

    'upgrade-packs': ({ body, claim, city }) =>
      city.launch({
        operation: 'pack.upgrade',
        subject: city.name,
        input: body ?? {},
        claim,
        check: () => refuseUnknown(city, body?.names),
      }),

    'remove-pack': async ({ params, query, header, city }) => {
      const { item, revision } = await packs.remove(city, params.name, query.scope, header('if-match'))
      return ok({ status: 'deleted' as const, name: item.name, scope: item.scope, source: item.source, revision })
    },

    'check-packs': async ({ city, body, signal }) => {
      await upkeep.verify(city.dir)
      const found = inventory.check(city)
      return ok(
        body?.remote === true ? await within(signal, (limit) => upkeep.withReleases(city, found, limit)) : found,
      )
    },

    'explain-pack': async ({ params, city }) => {
      const index = String(city.head())
      const reasons = await reasonsFor(inventory, city.dir, params.name, pause)
      return ok({ name: params.name, packs: reasons }, { 'X-SVC-Index': index })
    },

    'list-pack-cache': async () => {
      const { items, errors } = await pruning.list()
      const partial = errors.length === 0 ? {} : { partial: true, partial_errors: [...errors] }
      const bytes = items.reduce((sum, item) => sum + item.bytes, 0)
      return ok({ items: [...items], total: items.length, bytes, ...partial })
    },

    'prune-pack-cache': async ({ body }) => ok(await pruning.prune(body ?? {})),
  })
}
