/**
 * Who a message of a chat is for (sheet 06 §2.3; decisions 151, 152).
 *
 * R1  In this order: a binding; a group; what the message says itself; the configuration; nobody.
 * R2  A thread without a binding and a group of its own is where its parent is.
 * R3  What the message or the configuration says binds the conversation from then on.
 */
import type { InboundMatch } from '../../../contract/messaging/routes.ts'
import type { Tx } from '../../../kernel/database.ts'
import type { Mailbox } from '../../../messaging/address.ts'
import { type Conversation, transcriptId } from '../../../messaging/conversation.ts'
import type { Bindings } from './bindings.ts'
import { defaultRoute } from './defaults.ts'
import type { Groups } from './groups.ts'
import { routeInGroup } from './handles.ts'
import type { RoutingDeps } from './ports.ts'
import type { BindingRow, GroupRow } from './rows.ts'
import { type Target, wordTarget } from './targets.ts'
import { parentsOf } from './threads.ts'

export interface Wish {
  /** Handle of who is called. */
  readonly explicit_target?: string | undefined
  /** Whom the conversation is bound to if nobody has it. */
  readonly target?: string | undefined
}

export interface Route {
  readonly match: InboundMatch
  /** Transcript that is routed so: that of the parent where a thread has no route of its own. */
  readonly place: string
  readonly target?: Mailbox
  /** It is for this session alone. */
  readonly session_id?: string
  readonly binding?: BindingRow
  readonly group?: GroupRow
  readonly handle?: string
  readonly updateCursor?: boolean
}

interface Deps extends Pick<RoutingDeps, 'addresses' | 'targets' | 'defaultRoutes'> {
  readonly bindings: Bindings
  readonly groups: Groups
}

export class Router {
  readonly #deps: Deps

  constructor(deps: Deps) {
    this.#deps = deps
  }

  route(tx: Tx, conversation: Conversation, wish: Wish, actor: string): Route {
    for (const place of [conversation, ...parentsOf(conversation)]) {
      const found = this.#routeAt(tx, transcriptId(place), wish, actor)
      if (found !== undefined) return found
    }
    return this.#bound(tx, conversation, wish, actor) ?? { match: 'unrouted', place: transcriptId(conversation) }
  }

  #routeAt(tx: Tx, place: string, wish: Wish, actor: string): Route | undefined {
    const { bindings, groups } = this.#deps
    const binding = bindings.touch(tx, place)
    if (binding !== undefined) return { match: 'binding', place, binding, ...targetIn(binding) }
    const group = groups.of(tx, place)
    return group === undefined ? undefined : this.#routeIn(tx, group, wish, actor)
  }

  #routeIn(tx: Tx, group: GroupRow, { explicit_target: explicit }: Wish, actor: string): Route {
    const { groups } = this.#deps
    const isTaken = (handle: string) => groups.isTaken(tx, group.id, handle)
    const { match, handle, updateCursor } = routeInGroup(group, isTaken, explicit)
    const after = updateCursor && handle !== undefined ? groups.remember(tx, group, handle, actor) : group
    const route = { match, place: group.transcript_id, group: after, updateCursor }
    const meant = handle === undefined ? undefined : groups.participant(tx, group.id, handle)
    return meant === undefined ? route : { ...route, handle: meant.handle, ...targetIn(meant) }
  }

  /** R3. */
  #bound(tx: Tx, conversation: Conversation, wish: Wish, actor: string): Route | undefined {
    const { bindings } = this.#deps
    const [reason, target] = this.#targetFor(conversation, wish)
    if (target === undefined) return undefined
    const { binding } = bindings.bind(tx, { conversation, target, reason }, actor)
    return { match: reason, place: binding.transcript_id, binding, ...targetIn(binding) }
  }

  #targetFor(
    conversation: Conversation,
    { target: word }: Wish,
  ): readonly ['target' | 'default_route', Target | undefined] {
    const { addresses, targets, defaultRoutes } = this.#deps
    if (word !== undefined) return ['target', wordTarget(this.#deps, word, 'body.target')]
    const route = defaultRoute(defaultRoutes(), conversation)
    // Its agent may have been taken away, or told to take no messages, since the files were read.
    const mailbox = route === undefined ? undefined : addresses().find(route.agent)?.mailbox
    if (mailbox?.startsWith('agent:') !== true || !targets.agentTakesMessages(mailbox.slice('agent:'.length)))
      return ['default_route', undefined]
    return ['default_route', { mailbox }]
  }
}

const targetIn = ({ mailbox, session_id: session }: Target) => ({
  target: mailbox,
  ...(session === undefined ? {} : { session_id: session }),
})
