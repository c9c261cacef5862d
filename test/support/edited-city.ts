/** A city's store with its configuration service, without a supervisor around it. */
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import type { Clock } from '../../src/kernel/clock.ts'
import { openStore, type Store } from '../../src/kernel/store.ts'
import { ConfigService } from '../../src/modules/config/edit/service.ts'
import { OPTIONS } from '../../src/modules/config/testing.ts'
import { CITY_SCHEMA } from '../../src/supervisor/families.ts'

const SILENT = { error() {}, warn() {}, info() {}, debug() {}, isLevelEnabled: () => false }

export interface EditedCity extends AsyncDisposable {
  readonly service: ConfigService
  readonly store: Store
}

export async function openEditedCity(dir: string, clock: Clock): Promise<EditedCity> {
  mkdirSync(join(dir, '.svc'), { recursive: true })
  const store = openStore({ path: join(dir, '.svc', 'city.db'), migrations: CITY_SCHEMA, owner: 'a test', clock })
  const service = new ConfigService({ name: 'edited', dir, store, clock, log: SILENT, loadOptions: () => OPTIONS })
  const close = async () => {
    await service.close()
    store.db.close()
  }
  try {
    await service.open()
  } catch (error) {
    await close()
    throw error
  }
  return { service, store, [Symbol.asyncDispose]: close }
}
