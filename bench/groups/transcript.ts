/** What does a page of a large output log cost, wherever it is? Beside reading as many bytes of its files. */
import { closeSync, mkdirSync, openSync, readdirSync, readSync } from 'node:fs'
import { join } from 'node:path'
import { terminalChapter } from '../../src/modules/sessions/transcripts/chapters.ts'
import { readPage } from '../../src/modules/sessions/transcripts/pages.ts'
import { RAW_BYTES, unseen } from '../../src/modules/sessions/transcripts/service.ts'
import { Transcript } from '../../src/modules/sessions/transcripts/transcript.ts'
import { openOutputReader, openOutputWriter } from '../../src/runtimes/process/output-log.ts'
import { compare, type Group } from '../bench.ts'

const MIB = 1024 * 1024
const LOG_MIB = 200
const MAX_MS = 50
const MAX_GROWTH_MIB = 64

export const transcript: Group = async (bench) => {
  const directory = join(bench.dir, 'output')
  bench.say(`raw pages of an output log of ${LOG_MIB} MiB`)
  mkdirSync(directory)
  const writer = openOutputWriter(directory)
  for (let at = 0; at < LOG_MIB; at++) writer.append(Buffer.from(`${at} bottles\r\n`.repeat(MIB)).subarray(0, MIB))
  writer.close()
  const log = openOutputReader(directory)
  const sources = { provider: 'shell', log, typed: () => [], lastTyped: () => 0, render: unseen }
  const made = new Transcript([terminalChapter(1, sources)], { room: RAW_BYTES })
  const segments = readdirSync(directory).map((name) => join(directory, name))
  const before = process.memoryUsage().rss
  let turn = 0
  /** Somewhere else each time. */
  const place = () => ((turn++ * 37) % (LOG_MIB - 1)) + 1
  const ours = async () => {
    const began = performance.now()
    const { items } = await readPage(made, { before: `1-${place() * MIB}` }, () => true)
    if (items.length !== 16) throw new Error(`a page of ${items.length} blocks`)
    return performance.now() - began
  }
  const floor = async () => {
    const began = performance.now()
    const file = openSync(segments[place() % (segments.length - 1)] ?? directory, 'r')
    readSync(file, Buffer.allocUnsafe(MIB), 0, MIB, MIB)
    closeSync(file)
    return performance.now() - began
  }
  const found = await compare(bench.quick ? 20 : 100, ours, [floor])
  const growth = (process.memoryUsage().rss - before) / MIB
  return [
    {
      name: `raw page of 1 MiB, anywhere in a log of ${LOG_MIB} MiB`,
      unit: 'ms',
      ours: found.ours,
      floor: 'reading as many bytes of its files',
      floorValue: found.floors[0] ?? Number.NaN,
      ratio: found.ratios[0] ?? Number.NaN,
      budget: `≤ ${MAX_MS} ms, memory grows by ≤ ${MAX_GROWTH_MIB} MiB`,
      pass: found.ours <= MAX_MS && growth <= MAX_GROWTH_MIB,
      note: `memory grew by ${growth.toFixed(0)} MiB`,
    },
  ]
}
