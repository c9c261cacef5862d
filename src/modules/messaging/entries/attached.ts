/** Files that entries have: those that were uploaded are looked up, and stay as long as an entry has them. */
import type { ChatAttachment } from '../../../contract/messaging/entries.ts'
import type { Tx } from '../../../kernel/database.ts'
import { invalidField } from '../../../kernel/problem.ts'
import type { Reader } from '../base/rows.ts'

/** What an entry is to keep of its attachments; 422 where an uploaded one is not there (any more). */
export function attach(
  tx: Tx,
  transcriptId: string,
  sequence: number,
  attachments: readonly ChatAttachment[],
): readonly ChatAttachment[] {
  return attachments.map((attachment, index) => {
    const { id } = attachment
    if (id === undefined) return attachment
    const row = tx.get('SELECT filename, mime_type, size FROM transcript_attachments WHERE id = ?', id)
    if (row === undefined)
      throw invalidField(`body.attachments[${index}].id`, 'was not uploaded, or too long ago', id.slice(0, 80))
    tx.run(
      'INSERT OR IGNORE INTO attachment_uses (transcript_id, sequence, attachment_id) VALUES (?, ?, ?)',
      transcriptId,
      sequence,
      id,
    )
    const known = { filename: String(row.filename), mime_type: String(row.mime_type), size: Number(row.size) }
    return { ...attachment, ...known }
  })
}

/** Whether an entry of a conversation of this account has the file. */
export const isCarried = (
  reader: Reader,
  attachmentId: string,
  { provider, account_id }: { readonly provider: string; readonly account_id: string },
): boolean =>
  reader.get(
    `SELECT 1 FROM attachment_uses AS u JOIN transcripts AS t ON t.id = u.transcript_id
     WHERE u.attachment_id = ? AND t.provider = ? AND t.account_id = ?`,
    attachmentId,
    provider,
    account_id,
  ) !== undefined
