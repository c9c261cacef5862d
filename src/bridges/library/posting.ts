/**
 * The way in: what came from the chat is posted in the order in which it came, conversation by conversation, until the
 * supervisor has it. The journal holds it meanwhile, and the id of a message is the same at each try.
 */

import { acceptable } from './acceptable.ts'
import { isRefusal, pause } from './carrying.ts'
import type { Journal, Taken, Waiting } from './journal.ts'
import { reasonOf } from './log.ts'
import type { InboundMessage, Supervisor } from './shapes.ts'
import type { World } from './world.ts'

/** As many as the supervisor takes of the past at once. */
const PAST_AT_ONCE = 500

interface Parts {
  readonly supervisor: Supervisor
  readonly journal: Journal
  readonly world: World
  /** The supervisor does not know the adapter any more. */
  readonly onUnknown: () => Promise<void>
}

export class Posting {
  readonly #parts: Parts
  #wake: () => void = () => undefined

  constructor(parts: Parts) {
    this.#parts = parts
  }

  /** Keeps it on disk and posts it as soon as possible. */
  take(message: InboundMessage, { past = false, proof }: { past?: boolean; proof?: string } = {}): Taken {
    const taken = this.#parts.journal.keep(acceptable(message), past, proof)
    if (taken === 'full') this.#parts.world.log.error('too much waits for the supervisor: a message is lost')
    this.#wake()
    return taken
  }

  async run(signal: AbortSignal): Promise<void> {
    const { journal, world } = this.#parts
    const stopped = new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }))
    let failures = 0
    while (!signal.aborted) {
      const more = new Promise<void>((resolve) => {
        this.#wake = resolve
      })
      const conversations = journal.conversations()
      if (conversations.length === 0) {
        await Promise.race([more, stopped])
        continue
      }
      for (const conversation of conversations) {
        try {
          await this.#post(journal.next(conversation, PAST_AT_ONCE), signal)
          failures = 0
        } catch (error) {
          if (signal.aborted) return
          world.log.warn('cannot post yet', { reason: reasonOf(error), waiting: journal.waiting(), failures })
          await pause(world, failures, error, signal)
          failures += 1
          break
        }
      }
    }
  }

  async #post(waiting: readonly Waiting[], signal: AbortSignal): Promise<void> {
    const { journal, supervisor } = this.#parts
    const [first] = waiting
    if (first === undefined) return
    try {
      if (first.past)
        await supervisor.postPast(
          waiting.map(({ message }) => message),
          signal,
        )
      else await supervisor.post(first.message, signal)
    } catch (error) {
      if (!isRefusal(error)) throw error
      if (error.code === 'adapter-not-found') {
        await this.#parts.onUnknown()
        throw error
      }
      // One of them is what it does not take: alone, it does not keep the others back.
      if (waiting.length > 1) {
        for (const one of waiting) await this.#post([one], signal)
        return
      }
      this.#parts.world.log.error('the supervisor refuses a message: it is dropped', {
        message: first.message.provider_message_id,
        reason: reasonOf(error),
      })
    }
    journal.posted(waiting.map(({ number }) => number))
  }
}
