/**
 * What goes with messages: the bytes of pictures and files while their delivery waits, and where files are that the agent
 * reads itself. Rows are written with their delivery and go with it.
 */
import { mkdirSync, realpathSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { basename, join, relative, resolve } from 'node:path'
import { MAX_ATTACHED_BYTES } from '../../../contract/sessions/session-model.ts'
import type { MessageAttachment } from '../../../contract/sessions/sessions.ts'
import type { Database, Tx } from '../../../kernel/database.ts'
import { present } from '../../../kernel/present.ts'
import { invalidField, problem } from '../../../kernel/problem.ts'
import type { AgentOffers, DeliveredAttachment } from '../../../runtimes/process/runtime.ts'

export interface Attachment {
  readonly name: string
  readonly mimeType: string | undefined
  readonly size: number
  /** Real path of a file in the work directory. */
  readonly path: string | undefined
  /** Absent when its delivery has ended. */
  readonly data: Buffer | undefined
}

/** Of a message, checked; 422 for what cannot be one. */
export function parseAttachments(
  given: readonly MessageAttachment[],
  workDir: string | undefined,
): readonly Attachment[] {
  const parsed = given.map((one, index) => parse(one, `body.attachments[${index}]`, workDir))
  const bytes = parsed.reduce((sum, { data }) => sum + (data?.length ?? 0), 0)
  if (bytes > MAX_ATTACHED_BYTES)
    throw invalidField('body.attachments', `are ${bytes} bytes together: at most ${MAX_ATTACHED_BYTES}`)
  return parsed
}

function parse(
  { name, mime_type: mimeType, data, path }: MessageAttachment,
  at: string,
  workDir: string | undefined,
): Attachment {
  if ((data === undefined) === (path === undefined)) throw invalidField(at, 'needs either `data` or `path`')
  if (data === undefined) return { ...link(path ?? '', `${at}.path`, workDir, name), mimeType, data: undefined }
  if (mimeType === undefined) throw invalidField(`${at}.mime_type`, 'is required with `data`')
  const bytes = Buffer.from(data, 'base64')
  // The decoder takes anything: what it did not read as it stands is no base64.
  if (bytes.length === 0 || bytes.toString('base64').replace(/=+$/, '') !== data.replace(/=+$/, ''))
    throw invalidField(`${at}.data`, 'is not base64')
  return { name: name ?? 'attachment', mimeType, size: bytes.length, path: undefined, data: bytes }
}

/** Nothing outside of the work directory, whatever links say. */
function link(path: string, at: string, workDir: string | undefined, name = basename(path)) {
  if (workDir === undefined) throw invalidField(at, 'the session has no work directory yet', path)
  const found = find(workDir, path)
  if (found === undefined) throw invalidField(at, 'is not there', path)
  const { root, real, stat } = found
  const inside = relative(root, real)
  if (inside.startsWith('..') || inside === '') throw invalidField(at, 'must be a file in the work directory', path)
  if (!stat.isFile()) throw invalidField(at, 'is no file', path)
  return { name, size: stat.size, path: real }
}

/** Undefined for what the system does not find: also a path that is too long, a loop of links, what is not ours to see. */
function find(workDir: string, path: string) {
  try {
    const root = realpathSync(workDir)
    const real = realpathSync(resolve(root, path))
    return { root, real, stat: statSync(real) }
  } catch {
    return undefined
  }
}

/** 415 for what its agent does not take. Of an agent that never ran nobody knows: then its delivery says so. */
export function refuseUntaken(attachments: readonly Attachment[], offers: AgentOffers | undefined): void {
  if (offers === undefined) return
  for (const { name, mimeType, path } of attachments) {
    if (path === undefined && !takes(offers, mimeType))
      throw problem('unsupported-media-type', `the agent takes no ${mimeType}: ${name}`)
  }
}

function takes({ accepts }: AgentOffers, mimeType = ''): boolean {
  if (mimeType.startsWith('image/')) return accepts.image
  if (mimeType.startsWith('audio/')) return accepts.audio
  return accepts.embedded
}

/** Why the agent that runs takes them not; undefined: it does. */
export function untakenBy(attachments: readonly Attachment[], offers: AgentOffers | undefined): string | undefined {
  const one = attachments.find(
    ({ path, mimeType }) => path === undefined && offers !== undefined && !takes(offers, mimeType),
  )
  return one === undefined ? undefined : `the agent takes no ${one.mimeType}: ${one.name}`
}

export const shownAttachment = ({ name, mimeType, size }: Attachment) => present({ name, mime_type: mimeType, size })

// ---- rows -----------------------------------------------------------------------------------------------------------

export function addAttachments(tx: Tx, deliveryId: string, attachments: readonly Attachment[]): void {
  for (const [position, { name, mimeType, size, path, data }] of attachments.entries())
    tx.run(
      'INSERT INTO session_attachments (delivery_id, position, name, mime_type, size, path, data) VALUES (?, ?, ?, ?, ?, ?, ?)',
      deliveryId,
      position,
      name,
      mimeType ?? null,
      size,
      path ?? null,
      data ?? null,
    )
}

export function attachmentsOf(db: Database, deliveryId: string): readonly Attachment[] {
  return db
    .all('SELECT * FROM session_attachments WHERE delivery_id = ? ORDER BY position', deliveryId)
    .map(({ name, mime_type: mimeType, size, path, data }) => ({
      name: String(name),
      mimeType: mimeType === null ? undefined : String(mimeType),
      size: Number(size),
      path: path === null ? undefined : String(path),
      data: data instanceof Uint8Array ? Buffer.from(data) : undefined,
    }))
}

export function dropBytes(tx: Tx, deliveryId: string): void {
  tx.run('UPDATE session_attachments SET data = NULL WHERE delivery_id = ?', deliveryId)
}

/** With the deliveries of a session, all or those up to a number. */
export function forgetAttachments(tx: Tx, sessionId: string, upTo = Number.MAX_SAFE_INTEGER): void {
  tx.run(
    'DELETE FROM session_attachments WHERE delivery_id IN (SELECT id FROM session_deliveries WHERE session_id = ? AND seq <= ?)',
    sessionId,
    upTo,
  )
}

// ---- files for the host ---------------------------------------------------------------------------------------------

const placeOf = (runDirectory: string, deliveryId: string): string => join(runDirectory, 'attachments', deliveryId)

/** As files of the run: bytes do not go over the socket of its host. */
export function layOut(
  attachments: readonly Attachment[],
  runDirectory: string,
  deliveryId: string,
): readonly DeliveredAttachment[] {
  const place = placeOf(runDirectory, deliveryId)
  return attachments.map(({ name, mimeType, size, path, data }, index) => {
    const about = { name, size, ...(mimeType === undefined ? {} : { mimeType }) }
    if (path !== undefined) return { kind: 'link', path, ...about }
    const file = join(place, String(index))
    mkdirSync(place, { recursive: true, mode: 0o700 })
    writeFileSync(file, data ?? Buffer.alloc(0), { mode: 0o600 })
    return { kind: 'file', path: file, ...about }
  })
}

export function clearAway(runDirectory: string, deliveryId: string): void {
  rmSync(placeOf(runDirectory, deliveryId), { recursive: true, force: true })
}
