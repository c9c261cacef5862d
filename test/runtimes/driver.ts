// A supervisor in small that tests kill: starts or adopts a run, finds out about the delivery it was killed at, goes on
// with the next ones.
//
//   node driver.ts <spec file> <journal file>
//
// The journal is what a database is to the real one: `intent N`, then `done N` or `unknown N`.
import { appendFileSync, existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { delay, systemClock } from '../../src/kernel/clock.ts'
import { openOutputReader } from '../../src/runtimes/process/output-log.ts'
import { createSubprocessRuntime } from '../../src/runtimes/subprocess.ts'

const [specFile = '', journal = ''] = process.argv.slice(2)
const spec = JSON.parse(readFileSync(specFile, 'utf8'))
const note = (line: string) => appendFileSync(journal, `${line}\n`)
const lines = existsSync(journal) ? readFileSync(journal, 'utf8').trim().split('\n') : []
const last = Number(lines.findLast((line) => line.startsWith('intent '))?.slice(7) ?? 0)
const isSettled = lines.some((line) => line === `done ${last}` || line === `unknown ${last}`)

const runtime = createSubprocessRuntime({ clock: systemClock, env: process.env, home: spec.directory })
const signal = AbortSignal.timeout(30_000)
const alive = setInterval(() => {}, 1_000)
const agent = existsSync(join(spec.directory, 'host.json')) ? await adopted() : await runtime.start(spec, signal)

// What is typed before it echoes no more stands twice on its screen.
while (!(await output()).includes('ready')) await delay(systemClock, 20, signal)

let seq = last
if (last > 0 && !isSettled) {
  const answer = await agent.delivered({ seq, id: String(seq) }, signal)
  if (answer === 'unknown') note(`unknown ${seq}`)
  else if (answer === 'yes') note(`done ${seq}`)
  else await deliver()
}
process.stdout.write('going\n')
for (;;) {
  seq++
  note(`intent ${seq}`)
  await deliver()
  if (seq === 5_000) break
}
clearInterval(alive)

async function output() {
  const { bytes } = await openOutputReader(spec.directory).read(0, 1_000)
  return bytes.toString()
}

async function adopted() {
  const adoption = await runtime.adopt(spec, signal)
  if (adoption.state !== 'alive') throw new Error(JSON.stringify(adoption))
  return adoption.process
}

async function deliver() {
  const { state } = await agent.deliver({ seq, id: String(seq), text: `<m${seq}>` }, signal)
  if (state === 'failed') throw new Error(`delivery ${seq} failed`)
  note(`${state === 'delivered' ? 'done' : 'unknown'} ${seq}`)
}
