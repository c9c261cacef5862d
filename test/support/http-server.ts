/** Parts of a server that tests make themselves. */
import type { HttpMetrics } from '../../src/http/server.ts'

const silent = () => {}

export const QUIET_METRICS: HttpMetrics = {
  requestMeter: () => silent,
  refused: silent,
  streamOpened: silent,
  streamClosed: silent,
  proxyOpened: silent,
  proxyClosed: silent,
  proxied: silent,
}
