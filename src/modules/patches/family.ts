/** Patches, as the supervisor joins them; `View` is what they see of a configuration. */
import { patchOperations } from '../../contract/patches.ts'
import { defineFamily } from '../../kernel/family.ts'
import { createPatchHandlers, type PatchCity, type PatchHandlersDeps } from './handlers.ts'

export const patchFamily = <View extends { readonly revision: string }>() =>
  defineFamily({
    operations: patchOperations,
    handlers: (host: PatchHandlersDeps<View>) => createPatchHandlers(host),
    open: (city: PatchCity<View>) => city,
  })
