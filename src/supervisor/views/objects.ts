/** Where providers, rigs and patches meet configuration, sessions and work. */
import { DEFAULT_LIMIT } from '../../contract/base/paging.ts'
import { PRESETS } from '../../harnesses/all.ts'
import { beadsOfRig, openBeadsOfRig } from '../../modules/beads/store/counts.ts'
import type { EffectiveConfig } from '../../modules/config/compose/effective.ts'
import { referrersOfProvider, referrersOfRig } from '../../modules/config/compose/references.ts'
import { config as configuration } from '../../modules/config/family.ts'
import type { PatchHandlersDeps } from '../../modules/patches/handlers.ts'
import type { ProviderHandlersDeps } from '../../modules/providers/handlers.ts'
import type { RigContext } from '../../modules/rigs/family.ts'
import type { RigHandlersDeps } from '../../modules/rigs/handlers.ts'
import { readOverride } from '../../modules/rigs/overrides.ts'
import type { RigSessions } from '../../modules/rigs/rigs.ts'
import { sessions } from '../../modules/sessions/family.ts'
import { declaredProvider, declaredRig, storedPatches, treeFiles } from './config.ts'
import type { Host, Running } from './running.ts'

const RIG_FILES = { declaration: declaredRig, referrers: referrersOfRig, tree: treeFiles }

/** The store and the configuration of a city, for who needs no more of it. */
export const configured = (city: Running) => ({ store: city.store, config: configuration.of(city).config })

export const providerHost = (): ProviderHandlersDeps<EffectiveConfig> => ({
  presets: PRESETS,
  declaration: declaredProvider,
  referrers: referrersOfProvider,
  tree: treeFiles,
})

export const patchHost = (): PatchHandlersDeps<EffectiveConfig> => ({ patches: storedPatches, tree: treeFiles })

export const rigHost = ({ clock, git, clones }: Host): RigHandlersDeps<EffectiveConfig> => ({
  ...RIG_FILES,
  clock,
  git,
  checkSource: clones.checkSource,
})

export function rigContext(city: Running): RigContext<EffectiveConfig> {
  const { name, path, launch, host } = city
  const { store, config } = configured(city)
  return {
    ...RIG_FILES,
    clock: host.clock,
    git: host.git,
    clone: (source, directory, signal) => host.clones.clone(source, directory, signal),
    onChange: (listener) => config.onChange((change) => listener(change.config)),
    city: {
      name,
      directory: path,
      store,
      config,
      sessions: sessionsOfRigs(city),
      openBeads: (rig) => openBeadsOfRig(store.db, rig, DEFAULT_LIMIT),
      beads: (rig) => beadsOfRig(store.db, rig),
      launch,
    },
  }
}

/** As somebody said it of the rig, else as its files do. */
export const isRigSuspended = (city: Running, rig: string): boolean =>
  readOverride(city.store.db, rig) ??
  configured(city)
    .config.current()
    .rigs.find(({ name }) => name === rig)?.suspended_on_start ??
  false

/** A city whose sessions are not open yet has none. */
function sessionsOfRigs(city: Running): RigSessions {
  const all = () => sessions.find(city)?.sessions
  const running = (rig: string) => (all()?.store.open() ?? []).filter((one) => one.rig === rig && one.process)
  return {
    running: (rig) => {
      const found = running(rig)
      const times = found.map((one) => all()?.live(one.id)?.lastActive ?? one.last_active ?? one.state_since)
      return { count: found.length, lastActivity: times.length === 0 ? undefined : Math.max(...times) }
    },
    restart: async (rig) => {
      const ended = await Promise.all(
        running(rig).map(async ({ id }) => ({ id, done: (await all()?.kill(id)) === true })),
      )
      return ended.filter(({ done }) => !done).map(({ id }) => id)
    },
  }
}
