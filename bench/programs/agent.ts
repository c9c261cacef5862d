/**
 * An agent for measurements, on a terminal or a pipe. `listen FILE`: notes how late each line is that says when it was
 * sent. `tick MS`: prints the time, again and again. `idle`: waits.
 */
import { appendFileSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { machineMicros } from '../numbers.ts'

const [mode = 'idle', argument = ''] = process.argv.slice(2)

if (mode === 'tick') setInterval(() => process.stdout.write(`S${machineMicros()}\n`), Number(argument))
const lines = createInterface({ input: process.stdin })
for await (const line of lines) {
  const sent = /T(\d+)/.exec(line)?.[1]
  if (mode === 'listen' && sent !== undefined) appendFileSync(argument, `${machineMicros() - Number(sent)}\n`)
}
