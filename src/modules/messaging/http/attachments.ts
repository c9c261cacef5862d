/** Handlers of files that go with messages. */
import type { UploadedAttachment } from '../../../contract/messaging/transcripts.ts'
import { ok, RawBody } from '../../../kernel/call.ts'
import type { Caller } from '../../../kernel/caller.ts'
import { isoTime } from '../../../kernel/clock.ts'
import { fingerprintOf } from '../../../kernel/idempotency.ts'
import { problem } from '../../../kernel/problem.ts'
import type { AttachmentRow } from '../entries/attachments.ts'
import type { MessagingCity, TranscriptHandlers } from './city.ts'
import { mayRead } from './reading.ts'

const OCTETS = 'application/octet-stream'

export const attachmentHandlers: Pick<
  TranscriptHandlers,
  'upload-transcript-attachment' | 'get-transcript-attachment'
> = {
  'upload-transcript-attachment': async ({ city, body, query, header, claim }) => {
    const { store, attachments } = city
    const type = typeOf(header('content-type'))
    const saved = await attachments.save(body)
    try {
      // The same key stands for the same bytes.
      const fingerprint = fingerprintOf([saved.sha256, query.filename ?? '', type])
      const own = claim === undefined ? undefined : { ...claim, fingerprint }
      return await store.keys.once(own, () =>
        store.db.write((tx) => {
          const row = attachments.insert(tx, saved, query.filename, type)
          return store.keys.remember(tx, own, { status: 201, body: attachmentView(row) })
        }),
      )
    } finally {
      saved.release()
    }
  },

  'get-transcript-attachment': async ({ city, params, caller }) => {
    const row = city.attachments.need(params.attachmentId)
    refuseStrangers(city, caller, row)
    const bytes = await city.attachments.read(row)
    return ok(new RawBody(bytes, OCTETS), { 'Content-Disposition': disposition(row.filename) })
  },
}

/** One that is in no message yet is known to whoever uploaded it. */
function refuseStrangers(city: MessagingCity, caller: Caller, { id }: AttachmentRow): void {
  const uses = city.attachments.usedIn(id)
  if (uses.length === 0 || uses.some((transcript) => mayRead(city, caller, transcript))) return
  throw problem('session-forbidden', `whoever asks reads no transcript that has ${id}`)
}

/** Without parameters: nothing here looks into the bytes. */
function typeOf(given: string | undefined): string {
  const type = given?.split(';', 1)[0]?.trim().toLowerCase() ?? ''
  return type === '' || type.length > 255 ? OCTETS : type
}

/** RFC 6266: a plain name for old clients, and the whole one. */
function disposition(filename: string): string {
  const plain = filename.replaceAll(/[^\x20-\x7e]/g, '_').replaceAll(/["\\%]/g, '_')
  const whole = encodeURIComponent(filename).replaceAll(/['()*]/g, (one) => `%${one.charCodeAt(0).toString(16)}`)
  return `attachment; filename="${plain}"; filename*=UTF-8''${whole}`
}

const attachmentView = ({ id, filename, mimeType, size, sha256, createdAt }: AttachmentRow): UploadedAttachment => ({
  id,
  filename,
  mime_type: mimeType,
  size,
  sha256,
  created_at: isoTime(createdAt),
})
