/**
 * What a service wrote, over its starts, by one offset. Bytes of a secret that it has are stars: who reads what a program
 * says need not be one who may know its secrets.
 */
import type { ServiceLog } from '../../contract/services.ts'
import { marginOf, maskAll, maskBegun } from '../../kernel/masking.ts'
import { runDirectory } from './places.ts'
import type { ServicesDeps } from './ports.ts'
import type { RunRow } from './store.ts'

const STAR = 0x2a

type Place = Pick<ServicesDeps, 'city' | 'output'>

export interface Part {
  readonly offset: number | undefined
  readonly limit: number
  readonly awaitsMore?: boolean
}

export class Log {
  readonly #place: Place
  readonly #name: string

  constructor(place: Place, name: string) {
    this.#place = place
    this.#name = name
  }

  /** `offset` undefined: the last of it. `awaitsMore`: a character whose end is still to come is not begun. */
  async read(
    runs: readonly RunRow[],
    { offset, limit, awaitsMore = false }: Part,
    secrets: readonly Buffer[],
  ): Promise<Omit<ServiceLog, 'service_name'>> {
    const outputs = runs.map((run) => ({
      base: run.base,
      output: this.#place.output(runDirectory(this.#place.city.path, this.#name, run.generation)),
    }))
    const [first, last] = [outputs[0], outputs.at(-1)]
    const start = first === undefined ? 0 : first.base + (await first.output.startOffset())
    const end = last === undefined ? 0 : last.base + (await last.output.endOffset())
    const from = Math.min(Math.max(offset ?? end - limit, start), end)
    const around = marginOf(secrets)
    const bytes: Buffer[] = []
    let at = Math.max(from - around, start)
    const stop = Math.min(from + limit + around, end)
    const begin = at
    for (const [index, { base, output }] of outputs.entries()) {
      const next = outputs[index + 1]?.base ?? end
      while (at < Math.min(next, stop)) {
        const read = await output.read(at - base, Math.min(next, stop) - at)
        if (read.bytes.length === 0) break
        // What was dropped meanwhile is a hole, and keeps its place.
        if (read.offset > at - base) bytes.push(Buffer.alloc(read.offset - (at - base), STAR))
        bytes.push(read.bytes)
        at = base + read.offset + read.bytes.length
      }
      if (at < next && at < stop) {
        bytes.push(Buffer.alloc(Math.min(next, stop) - at, STAR))
        at = Math.min(next, stop)
      }
    }
    const all = maskAll(Buffer.concat(bytes), secrets)
    if (stop === end) maskBegun(all, secrets)
    const asked = all.subarray(from - begin, from - begin + limit)
    const shown = from + limit < end ? whole(asked, 1) : awaitsMore ? whole(asked, 0) : asked
    return {
      start_offset: start,
      offset: from,
      next_offset: from + shown.length,
      end_offset: end,
      text: shown.toString('utf8'),
    }
  }
}

/** Without the beginning of a character at its end, where the rest of it comes with what is read next; so many bytes at least. */
function whole(bytes: Buffer, least: number): Buffer {
  for (let back = 1; back <= 3 && back <= bytes.length - least; back++) {
    const byte = bytes[bytes.length - back] ?? 0
    if (byte < 0x80) return bytes
    if (byte < 0xc0) continue
    const length = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : 2
    return length > back ? bytes.subarray(0, bytes.length - back) : bytes
  }
  return bytes
}
