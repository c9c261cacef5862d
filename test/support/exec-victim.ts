/**
 * A supervisor's part of a city's commands, in a process of its own that dies by SIGKILL at a place that its arguments name:
 *
 *   node exec-victim.ts CITY PLACE ID COMMAND [idempotent]
 *
 * Each end is a line of the table `told`, written in the transaction that records it. Without a place it runs the command
 * to its end, or takes up what another has left, and prints `told`.
 */
import { join } from 'node:path'
import { systemClock } from '../../src/kernel/clock.ts'
import type { ExecRuntime } from '../../src/modules/execs/ports.ts'
import { createExecRuntime } from '../../src/runtimes/exec/runtime.ts'
import { openExecCity } from './exec-city.ts'
import { eventually } from './http.ts'

const [path = '', place = '', id = '', command = '', idempotent = ''] = process.argv.slice(2)
const die = (): never => {
  process.kill(process.pid, 'SIGKILL')
  throw new Error('it is dead')
}
const dieAt = (at: string) => {
  if (place === at) die()
}

const real = await createExecRuntime({
  clock: systemClock,
  env: process.env,
  directory: join(path, '.svc', 'runtime', 'exec'),
})
const runtime: ExecRuntime = {
  ...real,
  start(launch, gone) {
    dieAt('committed')
    real.start(launch, gone)
    dieAt('spawned')
  },
  look(start) {
    const sight = real.look(start)
    if (sight.state === 'running') dieAt('running')
    if (sight.state === 'done') dieAt('ended')
    return sight
  },
  revoke(start) {
    const revoked = real.revoke(start)
    if (revoked) dieAt('revoked')
    return revoked
  },
  remove(one) {
    dieAt('recorded')
    return real.remove(one)
  },
}
const city = await openExecCity(path, { runtime })
await city.db.write((tx) => tx.run('CREATE TABLE IF NOT EXISTS told (id TEXT NOT NULL, kind TEXT NOT NULL)'))
city.execs.own('check', {
  ended: (tx, exec, outcome) => void tx.run('INSERT INTO told VALUES (?, ?)', exec.id, outcome.kind),
})
await city.execs.recover()
if (id !== '') {
  await city.db.write((tx) => {
    city.execs.begin(tx, {
      ...{ id, owner: 'check', ref: id, command, cwd: '', timeout_ms: 60_000, about: { file_dir: '/' } },
      ...{ vars: {}, env: {}, inherit_env: [], stdin: null, idempotent: idempotent === 'idempotent' },
    })
    dieAt('uncommitted')
  })
}
await eventually(
  'all is over',
  () => (city.execs.counts.running + city.execs.counts.queued === 0 ? true : undefined),
  60_000,
)
// The files go right after the commit.
await eventually('no file is left', () => (real.list().length === 0 ? true : undefined))
process.stdout.write(JSON.stringify(city.db.all('SELECT * FROM told')))
await city[Symbol.asyncDispose]()
