/** What hangs on a conversation, and is asked before its transcript is deleted. */
import type { Tx } from '../../../kernel/database.ts'

export interface Dependent {
  /** Why it is needed, as `a binding to mayor`; undefined: it is not. */
  holds(tx: Tx, transcriptId: string): string | undefined
  /** It goes: whatever was in its way ends here. */
  release(tx: Tx, transcriptId: string, actor: string): void
}
