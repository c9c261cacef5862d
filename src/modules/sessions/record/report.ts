/** What a harness says of itself while it runs. */
import type { Answer, Pending } from '../../../runtimes/process/runtime.ts'

/** What a harness says of itself, by its hooks. */
export interface Report {
  /** When the harness said it. */
  readonly at: number
  readonly activity?: 'idle' | 'in-turn'
  /** What it asks; `null`: that is over. Absent: nothing is said of it, save that it ends with the turn. */
  readonly pending?: Pending | null
  /** Takes the answer to `pending`; false: it is no longer open. Absent: the screen must take it. */
  readonly answer?: TakeAnswer
  /** Called where somebody has answered at the terminal: harnesses let a hook wait on that nobody needs any more. */
  readonly overtaken?: () => void
  /** What became of the question that is over. */
  readonly outcome?: 'answered' | 'dismissed' | 'gone'
}
export type TakeAnswer = (answer: Answer, signal: AbortSignal) => Promise<boolean>
