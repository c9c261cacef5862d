/** What does a process cost before it does anything? Every test file and every supervisor pays for what it imports. */
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { Group } from '../bench.ts'
import { median } from '../numbers.ts'

const MAX_CPU_MS = 250
const ROOT = join(import.meta.dirname, '..', '..')
/** What tests import that run a supervisor in their own process: all of it, and their helpers. */
const IMPORTED = ['src/supervisor/supervisor.ts', 'test/support/running.ts'].map((file) =>
  pathToFileURL(join(ROOT, file)),
)
const REPORT = 'const { user, system } = process.cpuUsage(); console.log((user + system) / 1_000)'

export const imports: Group = async (bench) => {
  const env = { ...process.env, NODE_COMPILE_CACHE: join(bench.dir, 'compiled') }
  const cpuMs = (program: string) => {
    const run = spawnSync(process.execPath, ['--input-type=module', '-e', program], { env, encoding: 'utf8' })
    if (run.status !== 0) throw new Error(run.stderr)
    return Number(run.stdout)
  }
  const whole = `${IMPORTED.map(({ href }) => `await import(${JSON.stringify(href)})`).join('; ')}; ${REPORT}`
  cpuMs(whole)
  const ours: number[] = []
  const empty: number[] = []
  for (let round = 0; round < (bench.quick ? 5 : 11); round++) {
    ours.push(cpuMs(whole))
    empty.push(cpuMs(REPORT))
  }
  return [
    {
      name: 'imports of a test process, CPU',
      unit: 'ms',
      ours: median(ours),
      floor: 'node that imports nothing',
      floorValue: median(empty),
      ratio: median(ours) / median(empty),
      budget: `≤ ${MAX_CPU_MS} ms`,
      pass: median(ours) <= MAX_CPU_MS,
    },
  ]
}
