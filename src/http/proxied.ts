/**
 * The raw proxy: what is asked of services of a city (decisions 169 to 174), a kind of route of its own. Nothing of it is in the
 * contract: it knows a path, and passes on what comes.
 */
import type { IncomingMessage } from 'node:http'
import { type Caller, shareOf } from '../kernel/caller.ts'
import type { Clock } from '../kernel/clock.ts'
import { descriptorLimit } from '../kernel/descriptors.ts'
import { type Listeners, openListeners } from '../kernel/peers/listeners.ts'
import { type Problem, problem } from '../kernel/problem.ts'
import type { Answer } from './answer.ts'
import type { Exchange } from './exchange.ts'
import { type GateDeps, holdsOurToken, PREFLIGHT_GATES, refuseWhileStopping } from './gates.ts'
import { passToPrivate } from './proxied-gates.ts'
import { Crowd } from './proxy/crowd.ts'
import { type Asker, Forwarding, type ForwardingDeps, type Upgrade } from './proxy/forwarding.ts'
import { type Framing, forwardedLines, framingOf } from './proxy/headers.ts'
import type { ReplyHead } from './proxy/reply-reader.ts'
import { type ProxiedService, type ServiceGate, type Visit, whyCut } from './proxy/services.ts'
import { type ProxiedTarget, readProxiedTarget } from './proxy/target.ts'
import { KeptUpstreams } from './proxy/upstream.ts'
import { Shares } from './shares.ts'
import { readTarget } from './target.ts'

/** Requests on their way at once, those that are held among them. */
const MAX_OPEN = 10_000
/** How often somebody looks for those that take too long: a timer for each would cost more than all else. */
const SWEEP_MS = 500

export interface ProxiedDeps {
  readonly services: ServiceGate
  readonly gates: GateDeps
  readonly clock: Clock
  /** An answer of ours instead of the service's. */
  refuse(reason: unknown, exchange: Exchange): void
  /** Something of ours threw: the exchange is cut. */
  broke(error: unknown, exchange: Exchange): void
  readonly meter: ProxyMeter
  /** Who is behind ports of services; everybody passes where absent. */
  readonly listeners?: Listeners | undefined
  /** Requests on their way at once; 10,000 where absent. */
  readonly max?: number | undefined
}

export interface ProxyMeter {
  proxyOpened(): void
  proxyClosed(): void
  /** A request that was for a service has its answer. */
  proxied(city: string, service: string, status: number): void
}

export class Proxied {
  readonly #deps: ProxiedDeps
  readonly #kept: KeptUpstreams
  readonly #open = new Crowd<Forwarding>()
  readonly #held = new Set<AbortController>()
  /** Signals of processes that are listened to: one listener, however many visit it. */
  readonly #heard = new WeakSet<AbortSignal>()
  readonly #forwardingDeps: ForwardingDeps
  /** For whoever is held next: almost nobody is, and one for each would cost more than his checks. */
  #spare = new AbortController()
  readonly #max: number
  readonly #shares: Shares
  /** Each takes two descriptors. */
  readonly #visitors = Math.max(16, Math.floor(descriptorLimit() / 8))
  #sweeping = false

  constructor(deps: ProxiedDeps) {
    this.#deps = deps
    this.#max = deps.max ?? MAX_OPEN
    this.#shares = new Shares(this.#max)
    this.#kept = new KeptUpstreams(deps.clock)
    this.#forwardingDeps = {
      clock: deps.clock,
      kept: this.#kept,
      listeners: deps.listeners ?? openListeners(undefined),
      over: (over) => this.#over(over),
    }
  }

  /** Answers it, now or later, or throws the Problem that does. */
  serve(exchange: Exchange, target: ProxiedTarget, upgrade?: Upgrade): void {
    const { gates, services } = this.#deps
    const direct = findDirect(target, services)
    if (direct !== undefined) {
      refuseWhileStopping(exchange, gates)
      this.#enter(exchange, target, direct, upgrade)
    } else if (exchange.method === 'OPTIONS') {
      // Who may ask is ours to say.
      for (const gate of PREFLIGHT_GATES) gate(exchange, gates)
      exchange.answer.begin(204).end()
    } else {
      const service = passToPrivate(exchange, target, services, gates, upgrade !== undefined)
      this.#enter(exchange, target, service, upgrade)
    }
  }

  /** Ends what is open with rights that somebody has no more. */
  endOf(isMeant: (caller: Caller) => boolean): void {
    for (const forwarding of this.#open.all)
      if (isMeant(forwarding.caller))
        forwarding.cut(problem('forbidden', 'the rights that this was asked with have ended'))
  }

  /** The supervisor stops: what would not end by itself does so now, and nobody is held any more. */
  stop(): void {
    for (const controller of [...this.#held]) controller.abort()
    for (const forwarding of this.#open.all) if (forwarding.isEndless) forwarding.cut(stopping())
  }

  close(): void {
    for (const forwarding of this.#open.all) forwarding.cut(stopping())
    this.#kept.close()
  }

  #enter(exchange: Exchange, target: ProxiedTarget, service: ProxiedService, upgrade: Upgrade | undefined): void {
    exchange.service = service.name
    if (upgrade !== undefined) requireWebsockets(service)
    const framing = readFraming(exchange)
    this.#refuseTooMany(exchange.caller)
    const controller = this.#spare
    const visit = service.enter(controller.signal)
    // Its caller may be another one after a second look.
    exchange.share = shareOf(exchange.caller)
    this.#shares.take(exchange.share)
    this.#deps.meter.proxyOpened()
    if (!(visit instanceof Promise)) {
      this.#start(exchange, target, service, framing, visit, upgrade)
      return
    }
    this.#spare = new AbortController()
    exchange.passing = { abandon: () => controller.abort() }
    const look = () => {
      if (!service.direct) passToPrivate(exchange, target, this.#deps.services, this.#deps.gates, upgrade !== undefined)
      if (upgrade !== undefined) requireWebsockets(service)
    }
    void this.#hold(exchange, controller, visit, look, (entered) =>
      this.#start(exchange, target, service, framing, entered, upgrade),
    )
  }

  /** Visitors of direct services are nobody in particular, and share what the descriptors of this process allow. */
  #refuseTooMany(caller: Caller): void {
    const who = shareOf(caller)
    const share = caller.kind === 'stranger' ? Math.min(this.#shares.part(2), this.#visitors) : this.#shares.part(10)
    const refused = this.#shares.refusal(who, share)
    if (refused === undefined) return
    const sentence =
      refused === 'everybody'
        ? `${this.#max} requests to services are on their way`
        : `${this.#shares.of(who ?? '')} requests of ${who} to services are on their way`
    throw problem('unavailable', sentence, { retryAfterSec: 1 })
  }

  /** `look`: once more, for what counted when it came may have ended: the rights of its caller, or that it was for everybody. */
  async #hold(
    exchange: Exchange,
    controller: AbortController,
    entering: Promise<Visit>,
    look: () => void,
    start: (visit: Visit) => void,
  ): Promise<void> {
    const { gates, refuse } = this.#deps
    this.#held.add(controller)
    let visit: Visit | undefined
    try {
      visit = await entering
      refuseWhileStopping(exchange, gates)
      look()
      if (exchange.answer.destroyed || controller.signal.aborted) throw new Error('nobody waits for it any more')
    } catch (error) {
      visit?.leave()
      this.#left(exchange.share)
      refuse(gates.isShuttingDown() ? stopping() : error, exchange)
      return
    } finally {
      this.#held.delete(controller)
    }
    start(visit)
  }

  #start(
    exchange: Exchange,
    { prefix, rest }: ProxiedTarget,
    service: ProxiedService,
    framing: Framing,
    visit: Visit,
    upgrade: Upgrade | undefined,
  ): void {
    const { gates, refuse, broke } = this.#deps
    const { authority } = exchange.target
    const forwarding = new Forwarding(
      new ExchangeAsker(exchange, !service.direct, upgrade, {
        refuse: (reason) => refuse(reason, exchange),
        broke: (error) => broke(error, exchange),
      }),
      {
        service,
        visit,
        caller: exchange.caller,
        share: exchange.share,
        isForEverybody: service.direct,
        framing,
        target: rest,
        authority,
        added: forwardedLines(exchange.socket.remoteAddress ?? '', exchange.host, prefix),
        isOurs: (authorization) => holdsOurToken(gates.security, authorization),
      },
      this.#forwardingDeps,
    )
    exchange.passing = forwarding
    this.#open.add(forwarding)
    if (!this.#heard.has(visit.cut)) this.#hear(visit)
    this.#sweepLater()
  }

  #hear({ cut, life }: Visit): void {
    this.#heard.add(cut)
    const onAbort = () => {
      this.#kept.drop(life)
      for (const forwarding of this.#open.all) if (forwarding.visit.cut === cut) forwarding.cut(whyCut(cut))
    }
    if (cut.aborted) onAbort()
    else cut.addEventListener('abort', onAbort, { once: true })
  }

  #over(forwarding: Forwarding): void {
    this.#open.remove(forwarding)
    this.#left(forwarding.share)
  }

  #left(who: string | undefined): void {
    this.#shares.leave(who)
    this.#deps.meter.proxyClosed()
  }

  #sweepLater(): void {
    if (this.#sweeping) return
    this.#sweeping = true
    this.#deps.clock.after(SWEEP_MS, () => {
      this.#sweeping = false
      const now = this.#deps.clock.monotonic()
      for (const forwarding of this.#open.all) forwarding.check(now)
      if (this.#open.size > 0) this.#sweepLater()
    })
  }
}

function requireWebsockets({ name, websockets }: ProxiedService): void {
  if (websockets) return
  throw problem('forbidden', `service ${name} takes no WebSockets: publication.allow_websockets is false`)
}

function readFraming(exchange: Exchange): Framing {
  try {
    return framingOf(exchange.request)
  } catch (error) {
    // What follows the head is read in one way by us, and perhaps in another by who sent it.
    exchange.setHeader('Connection', 'close')
    throw error
  }
}

const stopping = (): Problem => problem('unavailable', 'the supervisor is shutting down', { retryAfterSec: 1 })

/** One that stands before all checks: that of a city that runs. */
function findDirect({ city, service }: ProxiedTarget, services: ServiceGate): ProxiedService | undefined {
  if (city === undefined || service === undefined) return undefined
  const found = services.inCity(city)?.find(service)
  return found?.direct === true ? found : undefined
}

/** Other protocols are passed on to services alone, and HTTP/2 is not: what is asked in it would pass no check. */
export function asksForUpgrade({ url = '', headers, httpVersionMinor }: IncomingMessage): boolean {
  if (httpVersionMinor === 0 || /\bh2c?\b/i.test(headers.upgrade ?? '')) return false
  if (headers['transfer-encoding'] !== undefined || (headers['content-length'] ?? '0') !== '0') return false
  return readProxiedTarget(readTarget(url)) !== undefined
}

class ExchangeAsker implements Asker {
  readonly request: IncomingMessage
  readonly answer: Answer
  readonly upgrade: Upgrade | undefined
  readonly refuse: (reason: Problem) => void
  readonly broke: (error: unknown) => void
  readonly #isPrivate: boolean

  constructor(
    { request, answer }: Exchange,
    isPrivate: boolean,
    upgrade: Upgrade | undefined,
    ends: { refuse(reason: Problem): void; broke(error: unknown): void },
  ) {
    this.request = request
    this.answer = answer
    this.upgrade = upgrade
    this.refuse = (reason) => {
      // What is left of the body is thrown away.
      answer.outlastsBody = true
      ends.refuse(reason)
    }
    this.broke = ends.broke
    this.#isPrivate = isPrivate
  }

  begin({ status, message }: ReplyHead, headers: string[]): void {
    this.answer.relay(status, message, headers, this.#isPrivate)
  }

  ownHeaders(): readonly string[] {
    return this.answer.ownTo([], this.#isPrivate)
  }

  expect(): void {
    this.answer.outbox?.expect()
  }

  finish(body: Buffer): void {
    this.answer.finish(body)
  }

  waitsToSend(): boolean {
    return this.answer.holdsBodyBack
  }

  letSend(): void {
    this.answer.letBodyCome()
  }

  sends(): void {
    this.answer.holdsBodyBack = false
  }
}
