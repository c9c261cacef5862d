/** Where commands meet their city: its directory, its packs, and what starts processes. */
import { join } from 'node:path'
import { contains } from '../../files/read.ts'
import { config as configuration } from '../../modules/config/family.ts'
import { execs } from '../../modules/execs/family.ts'
import type { ExecsDeps } from '../../modules/execs/service.ts'
import { createExecRuntime } from '../../runtimes/exec/runtime.ts'
import type { Running } from './running.ts'
import { BIN } from './sessions.ts'

export async function execContext(city: Running): Promise<ExecsDeps> {
  const { name, path, store, host } = city
  const { clock, log, env, settings, metrics } = host
  const { config } = configuration.of(city)
  return {
    db: store.db,
    clock,
    log,
    env,
    home: settings.home,
    homeHasToken: settings.auth,
    city: { name, path },
    bin: BIN,
    runtime: await createExecRuntime({ clock, env, directory: join(path, '.svc', 'runtime', 'exec') }),
    ended: metrics.execEnded,
    untrustedPack: (directory) => {
      const pack = config.current().packs.find(({ root, trusted }) => !trusted && contains(root, directory))
      return pack?.binding.split('.')[0]
    },
  }
}

/** How many run and wait, by city. */
export const execCounts = (cities: readonly Running[]) =>
  Object.fromEntries(
    cities.flatMap((city) => {
      const all = execs.find(city)?.execs
      return all === undefined ? [] : [[city.name, all.counts] as const]
    }),
  )
