import { HttpServer } from '../../src/http/server.ts'
import { systemClock } from '../../src/kernel/clock.ts'
import { QUIET_METRICS } from '../../test/support/http-server.ts'

const silent = () => {}
const life = {}
const cut = new AbortController().signal
const visit = { upstream: { socketPath: '/tmp/px/u.sock' }, life, cut, leave: silent }
const web = { name: 'web', direct: false, websockets: true, firstByteMs: 60000, idleMs: 600000, enter: () => visit }
const http = new HttpServer({
  operations: [],
  handlers: {},
  security: { allowedHosts: [], allowedOrigins: [], token: undefined, readOnly: false },
  cities: { resolve: () => undefined },
  clock: systemClock,
  log: { info: silent, warn: silent, error: silent, debug: silent, isLevelEnabled: () => false } as never,
  metrics: QUIET_METRICS,
  services: { inCity: () => ({ find: () => web }) },
})
console.log(await http.listen('127.0.0.1', 19003))
