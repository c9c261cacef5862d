/** What an agent says on stderr: a bounded file for people, and its last words for messages. */
import { appendFileSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import type { Readable } from 'node:stream'
import { cut } from '../../contract/base/text.ts'
import { maskAll, StreamMask } from '../../kernel/masking.ts'

/** Of each of the two files: the current one and the one before. */
const MAX_FILE_BYTES = 512 * 1024
const TAIL_BYTES = 2048
/** Of what stood on stdout in the place of a message. */
const MAX_QUOTED = 300

export interface StderrLog {
  /** The last lines, cut to what fits a message. */
  tail(): string
}

/** `secrets` are stars in it. */
export function keepStderr(stream: Readable, directory: string, secrets: readonly string[]): StderrLog {
  const path = join(directory, 'stderr.log')
  rmSync(path, { force: true })
  let size = 0
  let tail = Buffer.alloc(0)
  stream.on('error', () => {})
  const mask = new StreamMask(secrets)
  const keep = (chunk: Buffer) => {
    if (chunk.length === 0) return
    tail = Buffer.concat([tail, chunk]).subarray(-TAIL_BYTES)
    try {
      if (size + chunk.length > MAX_FILE_BYTES) {
        renameSync(path, join(directory, 'stderr.old.log'))
        size = 0
      }
      appendFileSync(path, chunk, { mode: 0o600 })
      size += chunk.length
    } catch {
      // A full disk or a directory that is gone takes the log from people, never the agent.
    }
  }
  stream.on('data', (chunk: Buffer) => keep(mask.push(chunk)))
  stream.on('close', () => keep(mask.flush()))
  return { tail: () => tail.toString('utf8').trim() }
}

/** What an agent said that did not begin: on stderr, and on stdout in the place of messages. `secrets` are stars in it. */
export function lastWordsOf(stderr: string, unread: Buffer, secrets: readonly string[]): string {
  const masked = maskAll(
    Buffer.from(unread),
    secrets.map((secret) => Buffer.from(secret)),
  )
  const quoted = cut(masked.toString('utf8').trim(), MAX_QUOTED)
  const noJson = quoted === '' ? '' : `; its output is no JSON: ${JSON.stringify(quoted)}`
  return `${noJson}${stderr === '' ? '' : `; it said: ${stderr}`}`
}
