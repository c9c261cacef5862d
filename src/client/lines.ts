/** Answers that are lines, read while they come. Browser-safe. */
import { DecodeError, Unreachable } from './problems.ts'

/** No line of ours is longer; an answer without line feeds must not fill the memory. */
const MAX_LINE_CHARACTERS = 16 * 1024 * 1024

/** The lines of a body, without their line feeds; blank ones are left out. */
export async function* readLines(
  body: ReadableStream<Uint8Array>,
  url: string,
  signal: AbortSignal | undefined,
): AsyncGenerator<string> {
  const decoder = new TextDecoder('utf-8', { fatal: true })
  const reader = body.getReader()
  let rest = ''
  try {
    for (;;) {
      const { done, value } = await next(reader, url, signal)
      rest += decode(decoder, value)
      const lines = rest.split('\n')
      rest = done ? '' : (lines.pop() ?? '')
      if (rest.length > MAX_LINE_CHARACTERS) throw new DecodeError('a line of the answer is too long')
      for (const line of lines) if (line !== '') yield line
      if (done) return
    }
  } finally {
    // One who stops early takes the connection down.
    await reader.cancel().catch(() => undefined)
  }
}

async function next(reader: ReadableStreamDefaultReader<Uint8Array>, url: string, signal: AbortSignal | undefined) {
  try {
    return await reader.read()
  } catch (error) {
    signal?.throwIfAborted()
    throw new Unreachable(url, error)
  }
}

function decode(decoder: TextDecoder, bytes: Uint8Array | undefined): string {
  try {
    return bytes === undefined ? decoder.decode() : decoder.decode(bytes, { stream: true })
  } catch {
    throw new DecodeError('the answer is not UTF-8')
  }
}
