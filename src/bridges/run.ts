/** The two bridges as whole programs: what the command line starts. */
import type { Client } from '../client/client.ts'
import { IrcChat, type IrcOptions } from './irc/chat.ts'
import { Adapter } from './library/adapter.ts'
import { Bridge } from './library/bridge.ts'
import type { Chat } from './library/carrying.ts'
import { Journal } from './library/journal.ts'
import { type Place, serveHealth } from './library/listening.ts'
import type { Posting } from './library/posting.ts'
import { openStateRoot, readSecret } from './library/state.ts'
import type { World } from './library/world.ts'
import { NoWayOut } from './webhook/chat.ts'
import { Listener } from './webhook/listener.ts'
import { providerOf } from './webhook/messages.ts'
import { type Style, verifierOf } from './webhook/signatures.ts'

export interface BridgePlace {
  readonly client: Client
  readonly city: string
  /** Directory of what it must remember. */
  readonly stateRoot: string
  readonly world: World
  /** It is asked to end. */
  readonly ending: AbortSignal
  /** Where it says how it is, where somebody wants to know. */
  readonly health?: Place | undefined
}

interface Parts {
  readonly journal: Journal
  readonly posting: Posting
}

/** What one kind of bridge has of its own: how it is set up, and what is done after the last word. */
interface Kind {
  readonly provider: string
  readonly account: string
  readonly name: string
  /** Nothing can be said in the chat. */
  readonly noWayOut?: boolean
  open(parts: Parts): Promise<{ readonly chat: Chat; readonly broken: Promise<never>; close(): Promise<void> }>
}

async function runBridge(place: BridgePlace, kind: Kind): Promise<void> {
  const { client, city, world, ending } = place
  const { provider, account, name, noWayOut = false } = kind
  const root = openStateRoot(place.stateRoot)
  using journal = new Journal(root)
  const secret = readSecret(root, world)
  const bridge = new Bridge(
    new Adapter({ client, city, provider, account, name, secret, noWayOut }),
    journal,
    world,
    ending,
  )
  world.log.info('starting', { provider, account, city, state_root: root })
  const { chat, broken, close } = await kind.open({ journal, posting: bridge.posting })
  try {
    await Promise.race([bridge.run(chat), broken])
  } finally {
    await close()
  }
  world.log.info('ended', { waiting: journal.waiting() })
}

export function runIrc(place: BridgePlace, options: IrcOptions): Promise<void> {
  const { account, login } = options
  return runBridge(place, {
    provider: 'irc',
    account,
    name: `IRC ${login.nick}@${login.place.host}`,
    async open({ journal, posting }) {
      const chat = new IrcChat(options, journal, posting, place.world)
      const over = new AbortController()
      const health = place.health === undefined ? undefined : await serveHealth(place.health, () => chat.health())
      const connected = chat.run(over.signal)
      const broken = connected.then(() => new Promise<never>(() => undefined))
      return {
        chat,
        broken,
        async close() {
          over.abort(new Error('the bridge ends'))
          await connected.catch(() => undefined)
          await health?.close()
        },
      }
    },
  })
}

export interface WebhookOptions {
  readonly style: Style
  readonly account: string
  readonly listen: Place
  readonly secret: string
}

export function runWebhook(place: BridgePlace, options: WebhookOptions): Promise<void> {
  const { style, account, listen, secret } = options
  return runBridge(place, {
    provider: providerOf(style),
    account,
    name: `webhooks of ${account}`,
    noWayOut: true,
    async open({ posting }) {
      const listener = new Listener({ style, account, verify: verifierOf(style, secret) }, posting, place.world)
      const listens = await listener.listen(listen)
      place.world.log.info('listening', { at: listens })
      return {
        chat: new NoWayOut(() => ({ listening: listens, ...listener.counts })),
        broken: new Promise<never>(() => undefined),
        close: () => listener.close(),
      }
    },
  })
}
