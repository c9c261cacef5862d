/** Is a service there: its health path answers 2xx, or it takes a connection (decision 165). */
import type { IncomingMessage } from 'node:http'
import { connect, type Socket } from 'node:net'
import type { Clock } from '../../kernel/clock.ts'
import type { Listeners } from '../../kernel/peers/listeners.ts'
import type { Upstream } from './ports.ts'

const ANSWER_MS = 2_000

export interface Probed {
  readonly upstream: Upstream
  readonly healthPath: string | undefined
  readonly listeners: Listeners
}

/** Undefined: it is. Else why not, for people; rejects with the signal's reason alone. */
export async function probe(probed: Probed, clock: Clock, signal: AbortSignal): Promise<string | undefined> {
  signal.throwIfAborted()
  const { healthPath } = probed
  const limit = new AbortController()
  const cancel = clock.after(ANSWER_MS, () => limit.abort(new Error(`no answer within ${ANSWER_MS / 1000} s`)))
  const either = AbortSignal.any([signal, limit.signal])
  try {
    await (healthPath === undefined ? takesConnection(probed, either) : isHealthy(probed, healthPath, either))
    return undefined
  } catch (error) {
    signal.throwIfAborted()
    const why: unknown = limit.signal.aborted ? limit.signal.reason : error
    return why instanceof Error ? why.message : String(why)
  } finally {
    cancel()
  }
}

const addressOf = (upstream: Upstream) =>
  'socketPath' in upstream ? { path: upstream.socketPath } : { host: upstream.host, port: upstream.port }

function takesConnection(probed: Probed, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const socket = connect({ ...addressOf(probed.upstream), signal })
    socket.once('connect', () => {
      const why = foreignAt(probed, socket)
      socket.destroy(why)
      if (why === undefined) resolve()
    })
    socket.once('error', reject)
  })
}

/** At a port somebody else may listen: a service that is not there would look healthy. */
function foreignAt({ upstream, listeners }: Probed, socket: Socket): Error | undefined {
  const why = 'port' in upstream ? listeners.refusal(socket) : undefined
  return why === undefined ? undefined : new Error(why)
}

function isHealthy(probed: Probed, path: string, signal: AbortSignal): Promise<void> {
  const { upstream } = probed
  return new Promise((resolve, reject) => {
    const { request: begin } = process.getBuiltinModule('node:http')
    const where = 'socketPath' in upstream ? upstream : { host: upstream.host, port: upstream.port }
    const request = begin({ ...where, path, agent: false, signal, headers: { host: 'localhost' } })
    request.once('error', reject)
    request.once('socket', (socket) =>
      socket.once('connect', () => {
        const why = foreignAt(probed, socket)
        if (why !== undefined) request.destroy(why)
      }),
    )
    const onAnswer = (response: IncomingMessage) => {
      response.socket.destroy()
      const { statusCode = 0 } = response
      if (statusCode >= 200 && statusCode < 300) resolve()
      else reject(new Error(`${path} answers ${statusCode}`))
    }
    request.once('response', onAnswer)
    // Else a 101 is nothing that is ever told of, neither an answer nor an error.
    request.once('upgrade', onAnswer)
    request.end()
  })
}
