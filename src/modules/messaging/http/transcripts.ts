/** Handlers of transcripts. */
import type { transcriptOperations } from '../../../contract/messaging/transcripts.ts'
import { defineHandlers } from '../../../kernel/call.ts'
import { attachmentHandlers } from './attachments.ts'
import type { MessagingCity } from './city.ts'
import { membershipHandlers } from './memberships.ts'
import { publishHandlers } from './publish.ts'
import { readingHandlers } from './transcript-reads.ts'

export const createTranscriptHandlers = () =>
  defineHandlers<typeof transcriptOperations, MessagingCity>({
    ...readingHandlers,
    ...membershipHandlers,
    ...attachmentHandlers,
    ...publishHandlers,
  })
