/** Handlers of the packs family. */

import type { AsyncAcceptedResponse } from '../../contract/base/accepted.ts'
import type { RequestOperation } from '../../contract/event-types.ts'
import type {
  addPack,
  checkPacks,
  getPack,
  installPacks,
  listPacks,
  removePack,
  upgradePacks,
} from '../../contract/packs.ts'
import { type Handler, ok, type Reply } from '../../kernel/call.ts'
import type { IdempotencyClaim } from '../../kernel/idempotency.ts'
import { type AdmissionDeps, prepareAdd, refuseTaken, refuseUnknown } from './admission.ts'
import type { PackCity } from './city.ts'
import type { PackInventory } from './inventory.ts'
import type { Packs } from './service.ts'

export interface PackHandlersDeps {
  readonly packs: Packs
  readonly inventory: PackInventory
  readonly admission: AdmissionDeps
  readonly city: (name: string) => PackCity
  /** Answers the 202 of a request about the city. */
  readonly launch: (city: string, request: LaunchRequest) => Promise<Reply<AsyncAcceptedResponse>>
}

interface LaunchRequest {
  readonly operation: RequestOperation
  readonly subject?: string
  readonly input: object
  readonly claim: IdempotencyClaim | undefined
  /** Refuses, unless the key has an answer already. */
  readonly check?: () => void
}

export function createPackHandlers({ packs, inventory, admission, city: cityOf, launch }: PackHandlersDeps) {
  const list: Handler<typeof listPacks> = ({ params }) => {
    const city = cityOf(params.cityName)
    const index = String(city.head())
    const { items, errors } = inventory.list(city)
    const partial = errors.length === 0 ? {} : { partial: true, partial_errors: [...errors] }
    return ok(
      { items: [...items], total: items.length, ...partial },
      { ETag: `"${city.revision}"`, 'X-SVC-Index': index },
    )
  }

  const get: Handler<typeof getPack> = ({ params, query }) => {
    const city = cityOf(params.cityName)
    const index = String(city.head())
    const item = inventory.find(city, params.name, query.scope)
    return ok(item, { ETag: `"${item.revision}"`, 'X-SVC-Index': index })
  }

  const add: Handler<typeof addPack> = ({ params, body, claim }) => {
    const city = cityOf(params.cityName)
    const input = prepareAdd(admission, city, body)
    return launch(params.cityName, {
      operation: 'pack.add',
      subject: input.name,
      input,
      claim,
      check: () => refuseTaken(city, input),
    })
  }

  const install: Handler<typeof installPacks> = ({ params, claim }) =>
    launch(params.cityName, { operation: 'pack.install', subject: params.cityName, input: {}, claim })

  const upgrade: Handler<typeof upgradePacks> = ({ params, body, claim }) => {
    const city = cityOf(params.cityName)
    return launch(params.cityName, {
      operation: 'pack.upgrade',
      subject: params.cityName,
      input: body ?? {},
      claim,
      check: () => refuseUnknown(city, body?.names),
    })
  }

  const remove: Handler<typeof removePack> = async ({ params, query, header }) => {
    const { item, revision } = await packs.remove(cityOf(params.cityName), params.name, query.scope, header('if-match'))
    return ok({ status: 'deleted' as const, name: item.name, scope: item.scope, source: item.source, revision })
  }

  const check: Handler<typeof checkPacks> = async ({ params }) => {
    const city = cityOf(params.cityName)
    await packs.verify(city.dir)
    return ok(inventory.check(city))
  }

  return {
    'list-packs': list,
    'get-pack': get,
    'add-pack': add,
    'remove-pack': remove,
    'install-packs': install,
    'upgrade-packs': upgrade,
    'check-packs': check,
  }
}
