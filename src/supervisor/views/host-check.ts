/** Can this host run a city: hard dependencies and the provider, before anything is written (spec §4, sheet 01 §6.3). */
import { invalidField, problem } from '../../kernel/problem.ts'
import type { Readiness } from '../../modules/health/readiness.ts'

/** `provider` undefined: the city has a start command of its own, which nobody can probe. */
export async function checkHost(
  provider: string | undefined,
  readiness: Pick<Readiness, 'checkHost' | 'providerProblem'>,
  isKnown: (name: string) => boolean,
  signal: AbortSignal,
): Promise<void> {
  if (provider !== undefined && !isKnown(provider)) throw invalidField('body.provider', 'invalid provider', provider)
  const missing = await readiness.checkHost(signal)
  if (missing.length > 0) {
    const names = missing.map(({ location }) => location.replace(/^host\./, '')).join(', ')
    throw problem('missing-dependency', `the host lacks ${names}`, { errors: [...missing], retryAfterSec: 60 })
  }
  const notReady = provider === undefined ? undefined : await readiness.providerProblem(provider, signal)
  if (notReady !== undefined) throw notReady
}
