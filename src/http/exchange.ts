/** One request on its way through the gates, with the answer that is being made. */
import type { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import type { Operation } from '../contract/base/operation.ts'
import { type Caller, STRANGER } from '../kernel/caller.ts'
import type { Problem } from '../kernel/problem.ts'
import type { Answer } from './answer.ts'
import type { GateInput, LendCity, ResolvedCity } from './gates.ts'
import type { ArrivingBody } from './input/body.ts'
import type { ProxiedTarget } from './proxy/target.ts'
import type { Subject } from './request-log.ts'
import { readTarget, type Target } from './target.ts'

export class Exchange implements GateInput, Subject {
  readonly request: IncomingMessage
  readonly answer: Answer
  readonly method: string
  readonly target: Target
  /** When its head was read. */
  readonly since: number
  /** Of the signal of its call, where somebody asked for that. */
  controller: AbortController | undefined
  /** Where its body is still to come. */
  arriving: ArrivingBody | undefined
  operation: Operation | undefined
  redirect: string | undefined
  caller: Caller = STRANGER
  city: ResolvedCity | undefined
  mend: LendCity | undefined
  /** The service that it is for, where it is for one. */
  proxied: ProxiedTarget | undefined
  /** That of this name, which there is. */
  service: string | undefined
  /** What goes on for it at that service; told where the client is gone. */
  passing: { abandon(): void } | undefined
  /** Whose share of requests to services it takes; undefined: the owner's, which has no bound. */
  share: string | undefined
  /** Why it was refused, once it is. */
  refused: Problem | undefined

  constructor(request: IncomingMessage, answer: Answer, since: number) {
    this.request = request
    this.answer = answer
    this.since = since
    this.method = request.method ?? ''
    this.target = readTarget(request.url ?? '')
  }

  get socket(): Socket {
    return this.request.socket
  }

  get requestId(): string {
    return this.answer.requestId
  }

  /** What a service is asked is of nobody but that: a path may hold its secrets. */
  get path(): string {
    return this.proxied?.prefix ?? this.target.path
  }

  get host(): string {
    return this.target.authority ?? this.request.headers.host ?? ''
  }

  // Properties, so that they may be handed on without the exchange.
  readonly header = (name: string): string | undefined => {
    const { headers } = this.request
    const value = headers[name] ?? headers[name.toLowerCase()]
    return Array.isArray(value) ? value.join(', ') : value
  }
  readonly setHeader = (name: string, value: string): void => this.answer.collect(name, value)
}
