/**
 * Interrupting the turn of one session, and what was seen of that.
 *
 * I1  `over` says that the turn was seen to end: the process lives, it takes messages again, and no other turn began by
 *     itself within two seconds. Of a screen from which nobody can tell it is not said.
 * I2  What was typed before an interrupt is not typed again, and is taken out of an input line into which it comes back.
 */
import { delay } from '../../../kernel/clock.ts'
import { deadline } from '../../../kernel/deadline.ts'
import type { AgentProcess } from '../../../runtimes/process/runtime.ts'
import { takesMessages } from './evidence.ts'
import { NO_INTERRUPT, type Scene } from './scene.ts'

/** `idle`: no turn ran. `gone`: the program ended by it. `deaf`: the turn goes on. */
export type Interrupted = 'idle' | 'unsupported' | 'over' | 'gone' | 'deaf'

const LOOK_MS = 100
const PRESS_MS = 10_000
const BETWEEN_PRESSES_MS = 150
/** A program that begins the turn again, or draws its end late, has done so by then. */
const SETTLED_MS = 2_000
/** A key that was not heeded by then is pressed once more. */
const AGAIN_MS = 5_000

interface Seeing {
  readonly process: AgentProcess
  /** The turn that runs now is that of a message which waited. */
  readonly isNext: () => boolean
  readonly signal: AbortSignal
}

export class Interrupts {
  readonly #scene: Scene

  constructor(scene: Scene) {
    this.#scene = scene
  }

  /** Ends the turn and waits until that is seen, or is not to be expected any more. */
  async stop(signal: AbortSignal): Promise<Interrupted> {
    const { watch, deps } = this.#scene
    const { process, evidence } = watch
    if (process === undefined) return 'idle'
    const isIdle = evidence.activity === 'idle' && evidence.pending === undefined
    if (isIdle && this.#rules().quitsWhenIdle === true) return 'idle'
    const { turnsEnded, saidAt } = watch
    const isNext = () => watch.turnsEnded > turnsEnded && watch.saidAt !== saidAt
    using asked = deadline(deps.clock, PRESS_MS, 'the session does not answer', signal)
    if (!(await this.press(process, asked.signal))) return 'unsupported'
    if (isIdle) return 'idle'
    using limit = deadline(deps.clock, deps.policy().interruptMs, 'it works on', signal)
    return await this.#seen({ process, isNext, signal: limit.signal })
  }

  /** Presses the key of its harness, or sends what its protocol has for that; false: it cannot be interrupted. */
  async press(process: AgentProcess, signal: AbortSignal): Promise<boolean> {
    const { watch, journal, deps } = this.#scene
    const { presses = 1, restores = false } = this.#rules()
    // Before the key: a message that comes back in answer to it is no message of ours any more.
    watch.terminal?.interrupted(restores)
    const done = await journal.observed('interrupt', NO_INTERRUPT, async () => {
      for (let left = this.#takesKeys() ? presses : 1; left > 0; left--) {
        if (!(await process.interrupt(signal))) return false
        if (left > 1) await delay(deps.clock, BETWEEN_PRESSES_MS, signal)
      }
      return true
    })
    if (done) watch.interrupted()
    return done
  }

  async #seen({ process, isNext, signal }: Seeing): Promise<Interrupted> {
    const { watch, deps } = this.#scene
    const { clock } = deps
    const startedAt = clock.monotonic()
    let quietSince: number | undefined
    let isPressedAgain = false
    while (!signal.aborted) {
      if (watch.process !== process || watch.exit !== undefined) return 'gone'
      if (isNext()) return 'over'
      const now = clock.monotonic()
      const isOver = this.#rests()
      quietSince = isOver ? (quietSince ?? now) : undefined
      // A protocol says the end itself; what a screen shows may be between two pictures.
      if (isOver && watch.evidence.source === 'protocol') return 'over'
      if (quietSince !== undefined && now - quietSince >= SETTLED_MS) return 'over'
      if (!isOver && !isPressedAgain && this.#works() && this.#takesKeys() && now - startedAt >= AGAIN_MS) {
        isPressedAgain = true
        await this.press(process, signal).catch(() => false)
      }
      await delay(clock, LOOK_MS, signal).catch(() => {})
    }
    return this.#rests() ? 'over' : 'deaf'
  }

  #works(): boolean {
    const { activity, pending } = this.#scene.watch.evidence
    return activity === 'in-turn' || pending !== undefined
  }

  /** A harness that is slow to draw is not known to work for a while: that is no end of its turn. */
  #rests(): boolean {
    const { deps, id, watch } = this.#scene
    const session = deps.sessions.byId(id)
    return !this.#works() && session !== undefined && takesMessages(watch.evidence.activity, session)
  }

  /** A program that draws its own screen; a shell's foreground gets a signal, a protocol a message. */
  #takesKeys(): boolean {
    const session = this.#scene.deps.sessions.byId(this.#scene.id)
    return session?.runtime !== 'acp' && session?.launch?.delivery === 'tui'
  }

  #rules() {
    const { deps, id } = this.#scene
    return deps.interruptOf(deps.sessions.byId(id)?.launch?.ready.family ?? '')
  }
}
