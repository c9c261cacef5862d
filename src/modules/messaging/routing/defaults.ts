/** Where a conversation goes that nobody has: as the configuration says (sheet 06 §2.4). */
import type { DefaultRoute } from './ports.ts'

/** One for the account beats one for the whole provider; of several alike the first counts. Accounts are case-sensitive. */
export function defaultRoute(
  routes: readonly DefaultRoute[],
  { provider, account_id: account }: { readonly provider: string; readonly account_id: string },
): DefaultRoute | undefined {
  const ofProvider = routes.filter((route) => route.provider.trim().toLowerCase() === provider)
  return (
    ofProvider.find((route) => route.account_id === account) ??
    ofProvider.find((route) => route.account_id === undefined)
  )
}
