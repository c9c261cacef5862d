/** Who takes part in conversations of one city: bindings, groups, and the way of a message. */
import type { Tx } from '../../../kernel/database.ts'
import type { Mailbox } from '../../../messaging/address.ts'
import type { Conversation } from '../../../messaging/conversation.ts'
import type { Reader } from '../base/rows.ts'
import { type Refusal, refusalToSpeak, type Speaker } from './authority.ts'
import { Bindings } from './bindings.ts'
import { Groups } from './groups.ts'
import type { RoutingDeps } from './ports.ts'
import { Router } from './route.ts'

export class Routing {
  readonly deps: RoutingDeps
  readonly bindings: Bindings
  readonly groups: Groups
  readonly router: Router

  constructor(deps: RoutingDeps) {
    this.deps = deps
    this.bindings = new Bindings(deps)
    this.groups = new Groups(deps)
    this.router = new Router({ ...deps, bindings: this.bindings, groups: this.groups })
  }

  /** Why a session may not speak in a conversation; undefined where it may. */
  refusalToSpeak(reader: Reader, conversation: Conversation, speaker: Speaker): Refusal | undefined {
    return refusalToSpeak(this, reader, conversation, speaker)
  }

  /**
   * What is for this session alone ends with it, in the write that closes it; agents keep what is theirs (decision 156).
   */
  sessionClosed(tx: Tx, id: string, mailbox: Mailbox): void {
    const actor = 'supervisor'
    this.bindings.endOfSession(tx, id, actor)
    this.groups.removeOfSession(tx, id, actor)
    if (mailbox.startsWith('session:')) this.deps.members.leaveAll(tx, mailbox, actor)
  }
}
