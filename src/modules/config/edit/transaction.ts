/**
 * Changing the city's files as one transaction (decision 30).
 *
 * T1  The intent (new contents, events, the answer to an idempotency key) is on disk before the first file changes.
 * T2  After a crash at any point every file is as before or every file is as intended; the events follow the files.
 * T3  A file that somebody else has changed meanwhile is never overwritten.
 */

import { existsSync, mkdirSync, readdirSync, renameSync, rmdirSync, rmSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { FileRefused, isMissing, readRegular } from '../../../files/read.ts'
import type { Reply } from '../../../kernel/call.ts'
import type { Tx } from '../../../kernel/database.ts'
import type { EventDraft } from '../../../kernel/event-log.ts'
import { asCaller, callersMode } from '../../../kernel/file-modes.ts'
import type { IdempotencyClaim } from '../../../kernel/idempotency.ts'
import { look } from '../../../kernel/look.ts'
import type { Store } from '../../../kernel/store.ts'
import { hashOf } from '../load/own-files.ts'

/** Appended to the migrations of a city's store. */
export const CONFIG_SCHEMA = `
CREATE TABLE config_journal (id INTEGER PRIMARY KEY CHECK (id = 1), intent TEXT NOT NULL, created_at INTEGER NOT NULL) STRICT;
CREATE TABLE config_good (path TEXT PRIMARY KEY, hash TEXT NOT NULL, bytes BLOB NOT NULL) STRICT, WITHOUT ROWID;
`

/** One file of an intent. `path` is relative to the city, links followed; `text: null` removes it. */
export interface IntendedFile {
  readonly path: string
  /** Hash of what it holds before; null where it does not exist. */
  readonly before: string | null
  readonly text: string | null
}

export interface Intent {
  readonly files: readonly IntendedFile[]
  readonly events: readonly EventDraft[]
  /** The answer that a repeated request with the same key gets. */
  readonly answer?: { readonly claim: IdempotencyClaim; readonly reply: Reply }
}

/** Somebody else changed a file between reading and writing it. */
export class FileChanged extends Error {
  readonly path: string

  constructor(path: string) {
    super(`${path} was changed meanwhile`)
    this.path = path
  }
}

export function readIntent(store: Store): Intent | undefined {
  const row = store.db.get('SELECT intent FROM config_journal WHERE id = 1')
  if (row === undefined) return undefined
  const intent: Intent = JSON.parse(String(row.intent))
  return intent
}

export function writeIntent(tx: Tx, intent: Intent, now: number): void {
  tx.run('INSERT INTO config_journal (id, intent, created_at) VALUES (1, ?, ?)', JSON.stringify(intent), now)
}

export function clearIntent(tx: Tx): void {
  tx.run('DELETE FROM config_journal WHERE id = 1')
}

/** What a completed intent leaves in the store: its events, its answer, and no intent. */
export function commitIntent(tx: Tx, store: Store, intent: Intent): void {
  for (const event of intent.events) store.log.append(tx, event)
  if (intent.answer !== undefined) store.keys.remember(tx, intent.answer.claim, intent.answer.reply)
  clearIntent(tx)
}

/** Writes every new content beside its file, on disk; nothing that anybody reads has changed yet. */
export async function stageFiles(dir: string, { files }: Intent): Promise<void> {
  for (const { path, text } of files) {
    if (text === null) continue
    const target = join(dir, path)
    asCaller(() => mkdirSync(dirname(target), { recursive: true }))
    rmSync(stagedPath(target), { force: true })
    const there = look(target)
    const mode = ('stats' in there ? there.stats.mode : callersMode(0o666)) & 0o777
    const file = await open(stagedPath(target), 'wx', mode)
    try {
      await file.chmod(mode)
      await file.writeFile(text)
      await file.sync()
    } finally {
      await file.close()
    }
  }
}

/**
 * Puts the staged files in place, without a pause between looking at the old ones and replacing them. Throws
 * `FileChanged`, and has changed nothing then, where a file is neither as before nor as intended.
 */
export function swapFiles(dir: string, { files }: Intent): void {
  for (const file of files) if (stateOf(dir, file) === 'foreign') throw new FileChanged(file.path)
  for (const file of files) swapFile(dir, file)
}

function swapFile(dir: string, file: IntendedFile): void {
  const target = join(dir, file.path)
  if (file.text !== null) {
    if (existsSync(stagedPath(target))) renameSync(stagedPath(target), target)
    return
  }
  rmSync(target, { force: true })
  removeEmptyAgent(target)
}

/** Makes the swap survive a loss of power. */
export async function syncDirectories(dir: string, { files }: Intent): Promise<void> {
  for (const path of new Set(files.map((file) => dirname(join(dir, file.path))))) {
    if (!existsSync(path)) continue
    const directory = await open(path, 'r')
    try {
      await directory.sync()
    } finally {
      await directory.close()
    }
  }
}

/** Takes back what staging made. */
export function unstageFiles(dir: string, { files }: Intent): void {
  for (const { path, text } of files) {
    if (text === null) continue
    const target = join(dir, path)
    removeStaged(target)
    removeEmptyAgent(target)
  }
}

// Where a directory of the path is a file, staging has made nothing.
function removeStaged(target: string): void {
  try {
    rmSync(stagedPath(target), { force: true })
  } catch (error) {
    if (!isMissing(error)) throw error
  }
}

/** Whether no file has been swapped: as long as that is so, an intent may still be discarded. */
export function isUntouched(dir: string, { files }: Intent): boolean {
  return files.every((file) => stateOf(dir, file) !== 'after')
}

/**
 * After a crash, or a commit that the disk refused: completes the intent where no file has been touched by anybody
 * else, or where one has been swapped already; discards it otherwise. True: completed.
 */
export async function resumeIntent(dir: string, intent: Intent): Promise<boolean> {
  const states = intent.files.map((file) => stateOf(dir, file))
  const foreign = states.includes('foreign')
  if (foreign && !states.includes('after')) {
    unstageFiles(dir, intent)
    return false
  }
  // A file that a person has edited since keeps the edit; the others belong together.
  const ours: Intent = { ...intent, files: intent.files.filter((_, index) => states[index] !== 'foreign') }
  unstageFiles(dir, { ...intent, files: intent.files.filter((_, index) => states[index] !== 'before') })
  const open: Intent = { ...ours, files: intent.files.filter((_, index) => states[index] === 'before') }
  try {
    await stageFiles(dir, open)
  } catch (error) {
    // What it was meant for has changed so that it cannot be written any more; nothing of it is there yet.
    if (!isUntouched(dir, intent)) throw error
    unstageFiles(dir, open)
    return false
  }
  swapFiles(dir, open)
  await syncDirectories(dir, ours)
  return true
}

type FileState = 'before' | 'after' | 'foreign'

function stateOf(dir: string, { path, before, text }: IntendedFile): FileState {
  const now = diskHash(join(dir, path))
  if (now === (text === null ? null : hashOf(text))) return 'after'
  return now === before ? 'before' : 'foreign'
}

/** What is there and is no file of a configuration: the hash of nothing that anybody intends. */
const UNREADABLE = ''

/** Hash of the file on disk; null where it does not exist. */
function diskHash(path: string): string | null {
  try {
    const bytes = readRegular(path)
    return bytes === undefined ? null : hashOf(bytes)
  } catch (error) {
    if (error instanceof FileRefused) return UNREADABLE
    throw error
  }
}

const stagedPath = (target: string): string => join(dirname(target), `.${basename(target)}.svc-next`)

/** An agent's directory without a file would be an agent without a definition. */
function removeEmptyAgent(target: string): void {
  const parent = dirname(target)
  if (basename(target) !== 'agent.toml' || basename(dirname(parent)) !== 'agents') return
  if (existsSync(parent) && readdirSync(parent).length === 0) rmdirSync(parent)
}
