/** Import and export of beads: files and pipes of any size, which never lie in memory as a whole. */

import { type FileHandle, open, rename, rm } from 'node:fs/promises'
import { resolve } from 'node:path'
import { TimedOut } from '../../client/clock.ts'
import { LostReply, Unreachable } from '../../client/problems.ts'
import type { QueryOf } from '../../contract/base/operation.ts'
import { cut } from '../../contract/base/text.ts'
import type { BeadImportIssue, BeadImportResponse } from '../../contract/beads.ts'
import type { OperationById } from '../../contract/index.ts'
import type { FlagSpec, Input } from '../base/command.ts'
import type { Context } from '../base/context.ts'
import { EXIT, Failure, printable, usageError } from '../base/failure.ts'
import { Progress } from '../base/progress.ts'
import { parseTimeout } from '../framework/accepted.ts'
import type { Call } from '../framework/declaration.ts'
import { bodyOf } from '../framework/fields.ts'
import { view } from '../print/view.ts'

const TIMEOUT_MS = 10 * 60_000
/** Lines of an export are written in pieces of about this size. */
const PIECE = 64 * 1024

/** How long a transfer may take. */
export const transferMs = (input: Input): Promise<number> => parseTimeout(input, TIMEOUT_MS)

export const transferTimeout: FlagSpec = {
  flags: '--timeout <duration>',
  description: 'How long it may take (default: 10m). Exit code 8 when it was not enough.',
}

export const RESULT = view<BeadImportResponse>()('created updated unchanged skipped failed WARNINGS dry_run', {
  as: { WARNINGS: ({ warnings }) => (warnings.length === 0 ? undefined : warnings.length) },
  name: ({ created, updated }) => `${created + updated}`,
})

/** Sends the file; what was wrong with which line goes to stderr, and makes it exit code 1. */
export async function importFile({
  context,
  input,
  client,
  cityName,
  said,
  options,
}: Call<'import-beads'>): Promise<number> {
  const path = input.required('file')
  const file = path === '-' ? undefined : await opened(resolve(context.io.cwd, path), 'r')
  const progress = new Progress(context, (await file?.stat())?.size)
  const { body, text } = await withoutHaste(input, 'the import', () =>
    client.call('import-beads', {
      params: { cityName },
      query: bodyOf<QueryOf<OperationById<'import-beads'>>>(said),
      body: counted(file?.createReadStream() ?? context.io.stdin.chunks(options.signal), progress),
      ...options,
    }),
  ).finally(async () => {
    await progress.clear()
    await file?.close()
  })
  for (const issue of body.warnings) await context.note(`warning: ${issueText(issue)}`)
  for (const issue of body.errors) await context.io.stderr.write(`error: ${issueText(issue)}\n`)
  if (body.failed > body.errors.length)
    await context.io.stderr.write(`error: ${body.failed - body.errors.length} more lines failed\n`)
  await context.print.item({ item: body, ...RESULT, json: text })
  return body.failed > 0 ? EXIT.failure : EXIT.ok
}

async function* counted(
  chunks: AsyncIterable<Uint8Array>,
  progress: Progress,
): AsyncGenerator<Uint8Array<ArrayBuffer>> {
  for await (const chunk of chunks) {
    const bytes = Buffer.from(chunk)
    yield bytes
    await progress.add(bytes.length, lineFeedsIn(bytes))
  }
}

function lineFeedsIn(bytes: Uint8Array): number {
  let count = 0
  for (let at = bytes.indexOf(10); at !== -1; at = bytes.indexOf(10, at + 1)) count += 1
  return count
}

const issueText = ({ line, id, detail }: BeadImportIssue): string =>
  printable(`line ${line}${id === undefined ? '' : ` (${id})`}: ${detail}`)

/** Streams to stdout, or to a file that is there only once it is whole. */
export async function exportFile({
  context,
  input,
  client,
  cityName,
  said,
  options,
}: Call<'export-beads'>): Promise<number> {
  const file = input.text('file')
  const query = bodyOf<QueryOf<OperationById<'export-beads'>>>(said)
  await withoutHaste(input, 'the export', async () => {
    const { lines } = await client.openLines('export-beads', { params: { cityName }, query, ...options })
    if (file === undefined || file === '-') return toStdout(context, lines)
    const count = await toFile(context, resolve(context.io.cwd, file), lines)
    await context.note(`${count} beads in ${file}`)
  })
  return EXIT.ok
}

async function toStdout(context: Context, lines: AsyncIterable<string>): Promise<void> {
  for await (const { text } of inPieces(lines)) await context.print.raw(text)
}

async function toFile(context: Context, path: string, lines: AsyncIterable<string>): Promise<number> {
  const partial = `${path}.${cut(context.io.newKey(), 8)}.part`
  const progress = new Progress(context, undefined)
  const file = await opened(partial, 'wx')
  let count = 0
  try {
    for await (const piece of inPieces(lines)) {
      count += piece.lines
      await file.write(piece.text)
      await progress.add(piece.text.length, piece.lines)
    }
    await file.close()
    await rename(partial, path)
    return count
  } catch (error) {
    await file.close().catch(() => undefined)
    await rm(partial, { force: true })
    throw error
  } finally {
    await progress.clear()
  }
}

async function opened(path: string, flags: 'r' | 'wx'): Promise<FileHandle> {
  try {
    const file = await open(path, flags)
    if (!(await file.stat()).isDirectory()) return file
    await file.close()
    throw new Error('it is a directory')
  } catch (error) {
    throw usageError(`cannot open ${path}: ${error instanceof Error ? error.message : String(error)}`)
  }
}

async function* inPieces(lines: AsyncIterable<string>): AsyncGenerator<{ text: string; lines: number }> {
  let piece = { text: '', lines: 0 }
  for await (const line of lines) {
    piece.text += `${line}\n`
    piece.lines += 1
    if (piece.text.length < PIECE) continue
    yield piece
    piece = { text: '', lines: 0 }
  }
  if (piece.lines > 0) yield piece
}

/** An end of patience here is no silence of the server: exit code 8. Where it broke off, it can be done again. */
async function withoutHaste<T>(input: Input, what: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    const cause = error instanceof LostReply ? error.cause : error
    if (cause instanceof Unreachable && !cause.refused)
      throw new Failure(
        error === cause ? EXIT.unavailable : EXIT.outcomeUnknown,
        `${what} broke off: ${cause.message}`,
        {
          hint: 'do it again: what was imported stays, and is not imported twice',
          cause: error,
        },
      )
    if (!(cause instanceof TimedOut)) throw error
    throw new Failure(EXIT.timedOut, `${what} took longer than ${(await transferMs(input)) / 1000} s`, {
      hint: 'ask for more time with --timeout; what was imported stays',
      cause: error,
    })
  }
}
