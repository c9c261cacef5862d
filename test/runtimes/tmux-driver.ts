// A supervisor in small that tests kill: adopts a run, finds out about the delivery it was killed at, goes on with the next.
//
//   node tmux-driver.ts <socket> <spec file> <journal file>
//
// The journal is what a database is to the real one: `intent N`, then `done N` or `unknown N`.
import { appendFileSync, existsSync, readFileSync } from 'node:fs'
import { systemClock } from '../../src/kernel/clock.ts'
import { createTmuxRuntime } from '../../src/runtimes/tmux/runtime.ts'

const [socket = '', specFile = '', journal = ''] = process.argv.slice(2)
const spec = JSON.parse(readFileSync(specFile, 'utf8'))
const note = (line: string) => appendFileSync(journal, `${line}\n`)
const lines = existsSync(journal) ? readFileSync(journal, 'utf8').trim().split('\n') : []
const last = Number(lines.findLast((line) => line.startsWith('intent '))?.slice(7) ?? 0)
const isSettled = lines.some((line) => line === `done ${last}` || line === `unknown ${last}`)

const runtime = createTmuxRuntime({ clock: systemClock, log: { warn: () => {} }, socket, env: process.env })
const signal = AbortSignal.timeout(30_000)
const adopted = await runtime.adopt(spec, signal)
if (adopted.state !== 'alive') throw new Error(JSON.stringify(adopted))
const agent = adopted.process

let seq = last
if (last > 0 && !isSettled) {
  const answer = await agent.delivered({ seq, id: '' }, signal)
  if (answer === 'unknown') note(`unknown ${seq}`)
  else if (answer === 'yes') note(`done ${seq}`)
  else await deliver()
}
process.stdout.write('going\n')
for (;;) {
  seq++
  note(`intent ${seq}`)
  await deliver()
}

async function deliver() {
  const { state } = await agent.deliver({ seq, id: String(seq), text: `<m${seq}>` }, signal)
  if (state === 'failed') throw new Error(`delivery ${seq} failed`)
  note(`${state === 'delivered' ? 'done' : 'unknown'} ${seq}`)
}
