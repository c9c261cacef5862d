/**
 * Files that go with messages (decision 157).
 *
 * A1  A file is on the disk, under the hash of its bytes, before its row is: what a row names can be read.
 * A2  A name that somebody gave is never a path.
 * A3  What no entry has after a day is removed, its file with the last of its rows.
 * A4  What no entry has yet is bounded: who uploads and says nothing cannot fill the disk.
 */
import { createHash } from 'node:crypto'
import { rmSync } from 'node:fs'
import { type FileHandle, mkdir, open, readdir, readFile, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { cut } from '../../../contract/base/text.ts'
import type { Clock } from '../../../kernel/clock.ts'
import type { Database, Row, Tx } from '../../../kernel/database.ts'
import { randomHex } from '../../../kernel/ids.ts'
import { problem } from '../../../kernel/problem.ts'
import type { Reader } from '../base/rows.ts'

const UNUSED_MS = 24 * 3_600_000
const MAX_FILENAME = 255
/** Of all that no entry has yet. */
const MAX_UNUSED_BYTES = 1024 ** 3
/** What each counts at least: many small ones are much to look through, too. */
const MIN_COUNTED_BYTES = 64 * 1024
/** Rows that go in one write. */
const BATCH = 500

export interface AttachmentRow {
  readonly id: string
  readonly sha256: string
  readonly size: number
  readonly filename: string
  readonly mimeType: string
  readonly createdAt: number
}

/** Bytes that are on the disk. */
export interface Saved {
  readonly sha256: string
  readonly size: number
  /** Its row is there, or will never be. */
  release(): void
}

interface AttachmentsDeps {
  readonly db: Database
  readonly clock: Clock
  /** Directory that they are in. */
  readonly root: string
}

export class Attachments {
  readonly #deps: AttachmentsDeps
  /** Files whose row is about to be written, by how many. */
  readonly #arriving = new Map<string, number>()
  /** How much more can come at least before it is counted again: what entries take is not added. */
  #room = 0

  constructor(deps: AttachmentsDeps) {
    this.#deps = deps
  }

  /** Takes the bytes in; nothing is left of what breaks off, or gets no row. 413 where too much waits for its message. */
  async save(bytes: AsyncIterable<Buffer>): Promise<Saved> {
    this.#refuseFull(this.#deps.db, 0)
    const incoming = join(this.#deps.root, 'incoming')
    await mkdir(incoming, { recursive: true, mode: 0o700 })
    const path = join(incoming, randomHex(12))
    try {
      const { sha256, size } = await written(path, bytes)
      const release = this.#hold(sha256)
      await this.#place(path, sha256).catch((error: unknown) => {
        release()
        throw error
      })
      return { sha256, size, release }
    } catch (error) {
      await rm(path, { force: true })
      throw error
    }
  }

  /** 413 where too much waits for its message. */
  insert(
    tx: Tx,
    { sha256, size }: Omit<Saved, 'release'>,
    filename: string | undefined,
    mimeType: string,
  ): AttachmentRow {
    this.#refuseFull(tx, size)
    const row = {
      id: `at-${randomHex(12)}`,
      sha256,
      size,
      filename: harmlessName(filename),
      mimeType,
      createdAt: this.#deps.clock.now(),
    }
    tx.run(
      'INSERT INTO transcript_attachments (id, sha256, size, filename, mime_type, created_at) VALUES (?, ?, ?, ?, ?, ?)',
      ...[row.id, sha256, size, row.filename, mimeType, row.createdAt],
    )
    return row
  }

  find(id: string, reader: Reader = this.#deps.db): AttachmentRow | undefined {
    const row = reader.get('SELECT * FROM transcript_attachments WHERE id = ?', id)
    return row === undefined ? undefined : attachmentOf(row)
  }

  /** 404 where there is none. */
  need(id: string): AttachmentRow {
    const found = this.find(id)
    if (found === undefined) throw problem('attachment-not-found', `attachment not found: ${cut(id, 80)}`)
    return found
  }

  /** Transcripts that have it. */
  usedIn(id: string): readonly string[] {
    return this.#deps.db
      .all('SELECT DISTINCT transcript_id FROM attachment_uses WHERE attachment_id = ?', id)
      .map((row) => String(row.transcript_id))
  }

  /** Where its bytes are: agents on this machine read them there. */
  pathOf({ sha256 }: Pick<AttachmentRow, 'sha256'>): string {
    return join(this.#deps.root, cut(sha256, 2), sha256)
  }

  /** The same by its id; undefined where there is none. */
  placeOf(id: string, reader: Reader): string | undefined {
    const row = this.find(id, reader)
    return row === undefined ? undefined : this.pathOf(row)
  }

  async read(row: AttachmentRow): Promise<Buffer> {
    try {
      return await readFile(this.pathOf(row))
    } catch (error) {
      throw problem('attachment-not-found', `the file of ${row.id} is gone`, { cause: error })
    }
  }

  /** Removes what no entry has, and files that no row names: uploads that were cut off. */
  async sweep(ageCounts: boolean): Promise<number> {
    let gone = 0
    for (let rows = BATCH; ageCounts && rows === BATCH; gone += rows) rows = await this.#sweepRows()
    await this.#sweepFiles()
    return gone
  }

  /** What was coming in when the process ended. */
  async forgetIncoming(): Promise<void> {
    await rm(join(this.#deps.root, 'incoming'), { recursive: true, force: true })
  }

  /** A4 */
  #refuseFull(reader: Reader, size: number): void {
    const counted = Math.max(size, MIN_COUNTED_BYTES)
    if (this.#room < counted) this.#room = MAX_UNUSED_BYTES - this.#unusedBytes(reader)
    if (this.#room < counted)
      throw problem(
        'payload-too-large',
        'uploads that no message has yet take 1 GiB: send them, or wait until they are removed, a day after they came',
      )
    if (size > 0) this.#room -= counted
  }

  /** What is older goes with the next sweep. */
  #unusedBytes(reader: Reader): number {
    const row = reader.get(
      `SELECT total(max(a.size, ${MIN_COUNTED_BYTES})) AS bytes FROM transcript_attachments AS a WHERE a.created_at >= ?
         AND NOT EXISTS (SELECT 1 FROM attachment_uses AS u WHERE u.attachment_id = a.id)`,
      this.#deps.clock.now() - UNUSED_MS,
    )
    return Number(row?.bytes)
  }

  #hold(sha256: string): () => void {
    this.#arriving.set(sha256, (this.#arriving.get(sha256) ?? 0) + 1)
    return () => {
      const left = (this.#arriving.get(sha256) ?? 1) - 1
      if (left > 0) this.#arriving.set(sha256, left)
      else this.#arriving.delete(sha256)
      this.#drop(sha256)
    }
  }

  async #place(path: string, sha256: string): Promise<void> {
    const directory = join(this.#deps.root, cut(sha256, 2))
    await mkdir(directory, { recursive: true, mode: 0o700 })
    await rename(path, join(directory, sha256))
    await onDisk(directory)
    await onDisk(this.#deps.root)
  }

  #sweepRows(): Promise<number> {
    const { db, clock } = this.#deps
    return db.write((tx) =>
      tx.run(
        `DELETE FROM transcript_attachments WHERE id IN (
           SELECT a.id FROM transcript_attachments AS a WHERE a.created_at < ?
             AND NOT EXISTS (SELECT 1 FROM attachment_uses AS u WHERE u.attachment_id = a.id) LIMIT ${BATCH})`,
        clock.now() - UNUSED_MS,
      ),
    )
  }

  async #sweepFiles(): Promise<void> {
    const { root } = this.#deps
    const directories = (await namesIn(root)).filter((name) => /^[0-9a-f]{2}$/.test(name))
    for (const directory of directories) {
      for (const file of await namesIn(join(root, directory))) {
        this.#drop(file)
      }
    }
  }

  /** Removes a file that no row names, at once: nobody can bring the same bytes between the look and the removal. */
  #drop(sha256: string): void {
    if (this.#deps.db.closed || this.#isWanted(sha256)) return
    rmSync(this.pathOf({ sha256 }), { force: true })
  }

  #isWanted(sha256: string): boolean {
    if (this.#arriving.has(sha256)) return true
    return this.#deps.db.get('SELECT 1 FROM transcript_attachments WHERE sha256 = ? LIMIT 1', sha256) !== undefined
  }
}

async function written(path: string, bytes: AsyncIterable<Buffer>): Promise<{ sha256: string; size: number }> {
  const hash = createHash('sha256')
  let size = 0
  const file: FileHandle = await open(path, 'wx', 0o600)
  try {
    for await (const chunk of bytes) {
      hash.update(chunk)
      size += chunk.length
      await file.writeFile(chunk)
    }
    await file.sync()
  } finally {
    await file.close()
  }
  return { sha256: hash.digest('hex'), size }
}

/** That a directory has a file is on the disk, too. */
async function onDisk(directory: string): Promise<void> {
  const handle = await open(directory, 'r')
  try {
    await handle.sync()
  } finally {
    await handle.close()
  }
}

async function namesIn(directory: string): Promise<readonly string[]> {
  try {
    return await readdir(directory)
  } catch {
    return []
  }
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is removed.
const UNSEEN = /[\u0000-\u001f\u007f-\u009f\u200e\u200f\u202a-\u202e\u2066-\u2069]/g

/** What stands behind the last slash or backslash, without what nobody sees or what turns text around. */
export function harmlessName(given: string | undefined): string {
  const last = (given ?? '').replaceAll(UNSEEN, '').split(/[/\\]/).at(-1) ?? ''
  const name = cut(last.trim().replace(/^\.+/, ''), MAX_FILENAME)
  return name === '' ? 'attachment' : name
}

const attachmentOf = (row: Row): AttachmentRow => ({
  id: String(row.id),
  sha256: String(row.sha256),
  size: Number(row.size),
  filename: String(row.filename),
  mimeType: String(row.mime_type),
  createdAt: Number(row.created_at),
})
