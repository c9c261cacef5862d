/** What the proxy needs to know of services; the family that runs them says it. */
import { Problem, problem } from '../../kernel/problem.ts'

export interface ServiceGate {
  /** Undefined where the city does not run. */
  inCity(city: string): { find(name: string): ProxiedService | undefined } | undefined
}

export interface ProxiedService {
  readonly name: string
  /** `publish_mode = "direct"`: none of our checks stands before it. */
  readonly direct: boolean
  /** `publication.allow_websockets`. */
  readonly websockets: boolean
  /** Of a private one: its pages run in a sandbox of the browser, else they could do with our API what their reader may. */
  readonly sandbox: boolean
  /** `first_byte_timeout` */
  readonly firstByteMs: number
  /** `idle_timeout` */
  readonly idleMs: number
  /**
   * A place at its process. Callers are held while it starts or is reloaded, with their bodies unread; throws a Problem (503
   * with Retry-After) where it is degraded, suspended or cannot be held. No lock is held during the visit.
   */
  enter(signal: AbortSignal): Visit | Promise<Visit>
}

export interface Visit {
  readonly upstream: { readonly socketPath: string } | { readonly host: string; readonly port: number }
  /** The same object for the whole life of one process: kept connections belong to it. */
  readonly life: object
  /** Aborts when the process is about to be ended: what still runs is cut, and told its reason where that is a Problem. */
  readonly cut: AbortSignal
  /** Once, when nothing of the visit is left at the process; more often does nothing. */
  leave(): void
}

/** What is told to whom that cuts. */
export const whyCut = ({ reason }: AbortSignal): Problem =>
  reason instanceof Problem ? reason : problem('unavailable', 'the service is being restarted', { retryAfterSec: 1 })
