/** Providers, as the supervisor joins them; `View` is what they see of a configuration. */
import { providerOperations } from '../../contract/providers.ts'
import { defineFamily } from '../../kernel/family.ts'
import { createProviderHandlers, type ProviderCity, type ProviderHandlersDeps, type ProvidersView } from './handlers.ts'

export const providerFamily = <View extends ProvidersView>() =>
  defineFamily({
    operations: providerOperations,
    handlers: (host: ProviderHandlersDeps<View>) => createProviderHandlers(host),
    open: (city: ProviderCity<View>) => city,
  })
