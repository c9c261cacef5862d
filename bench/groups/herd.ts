/** Everybody comes back at once: does the service answer others while many readers replay a log? */
import { join } from 'node:path'
import { startSupervisor } from '../../test/support/supervisor.ts'
import { adopt, allRunning, type Group } from '../bench.ts'
import { Child, type Numbers } from '../child.ts'
import { median } from '../numbers.ts'

const READERS = 50
const EVENTS = 40_000
const ASKED_PER_SECOND = 100
const MAX_HEALTH_P99_MS = 50

export const herd: Group = async (bench) => {
  const dir = join(bench.dir, 'herd', 'log')
  await using logs = new Child('logs')
  await logs.ask('make', { dir, name: 'log', events: EVENTS })
  await using supervisor = await startSupervisor({ home: join(bench.dir, 'herd', 'home') })
  await adopt(supervisor.url, [dir])
  await allRunning(supervisor.url, 1)
  await using load = new Child('load')
  await using readers = new Child('readers')
  const stream = `${supervisor.url}/v0/city/log/events/stream?after_seq=0`
  const replays = () => readers.ask('herd', { url: stream, last: `"seq":${EVENTS},`, count: READERS })
  const health = (ms: number) => load.ask('ask', { url: `${supervisor.url}/health`, rate: ASKED_PER_SECOND, ms })
  const asked: Numbers[] = []
  const alone: Numbers[] = []
  const took: number[] = []
  for (let round = 0; round < 3; round++) {
    alone.push(await health(1_000))
    let asking = true
    const busy = health(bench.quick ? 2_000 : 4_000).finally(() => {
      asking = false
    })
    while (asking) took.push((await replays())['ms'] ?? Number.NaN)
    asked.push(await busy)
  }
  const p99 = median(asked.map((numbers) => numbers['p99'] ?? Number.NaN))
  const floorValue = median(alone.map((numbers) => numbers['p99'] ?? Number.NaN))
  return [
    {
      name: `GET /health while ${READERS} readers replay ${EVENTS} events, p99`,
      unit: 'ms',
      ours: p99,
      floor: 'the same without readers',
      floorValue,
      ratio: p99 / floorValue,
      budget: `≤ ${MAX_HEALTH_P99_MS} ms`,
      pass: p99 <= MAX_HEALTH_P99_MS,
      note: 'the process of the readers and the one that asks share the cores with the server',
    },
    {
      name: `${READERS} readers replay ${EVENTS} events at once`,
      unit: 'events/s',
      ours: (READERS * EVENTS * 1_000) / median(took),
      budget: 'reported',
    },
  ]
}
