/** How long does a person wait for the command line? */
import { spawn, spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, symlinkSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { type Group, supervisorWith } from '../bench.ts'
import { median, percentile } from '../numbers.ts'
import type { Row } from '../rows.ts'

const ROOT = resolve(import.meta.dirname, '..', '..')
/** Times what an empty program takes. */
const MAX_VERSION = 2.5
const MAX_SEQ = 3.5

/** From spawn to exit; the program must succeed. */
function elapsedMs(argv: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<number> {
  const began = performance.now()
  const child = spawn(process.execPath, argv, { stdio: 'ignore', env: { ...process.env, ...env } })
  return new Promise((done, fail) => {
    child.once('error', fail).once('exit', (code) => {
      if (code === 0) done(performance.now() - began)
      else fail(new Error(`${argv.join(' ')} exited with ${code}`))
    })
  })
}

export const emptyProgramMs = (): Promise<number> => elapsedMs(['-e', '0'])

export const cli: Group = async (bench) => {
  await using supervisor = await supervisorWith(bench, 'cli', ['alpha'])
  const env = { SVC_API: supervisor.url, SVC_HOME: supervisor.home, SVC_CITY: '' }
  const rounds = bench.quick ? 9 : 25
  const rows: Row[] = []
  for (const { name, main } of [
    { name: 'checkout', main: join(ROOT, 'tools', 'svcctl.mjs') },
    { name: 'package', main: built(bench.dir) },
  ]) {
    const commands = [
      { what: 'svcctl version', argv: ['version'], most: MAX_VERSION },
      { what: 'svcctl events --seq', argv: ['events', '--seq'], most: MAX_SEQ },
    ]
    for (const { what, argv, most } of commands) {
      await elapsedMs([main, ...argv], env)
      const ours: number[] = []
      const empty: number[] = []
      for (let round = 0; round < rounds; round++) {
        ours.push(await elapsedMs([main, ...argv], env))
        empty.push(await emptyProgramMs())
      }
      const ratio = median(ours.map((ms, round) => ms / (empty[round] ?? Number.NaN)))
      rows.push({
        name: `${what} (${name})`,
        unit: 'ms',
        ours: median(ours),
        p99: percentile(ours, 99),
        floor: 'node -e 0',
        floorValue: median(empty),
        ratio,
        budget: `≤ ${most} ×`,
        pass: ratio <= most,
      })
    }
  }
  return rows
}

/** The package's JavaScript, as `npm run build` makes it, outside the checkout's dist: that may be in use. */
function built(dir: string): string {
  const root = join(dir, 'package')
  mkdirSync(root)
  const tsc = join(ROOT, 'node_modules', 'typescript', 'bin', 'tsc')
  // Types are checked elsewhere: what is being worked on may be measured too.
  const options = ['-p', join(ROOT, 'tsconfig.build.json'), '--noEmitOnError', 'false', '--outDir', join(root, 'dist')]
  spawnSync(process.execPath, [tsc, ...options], { cwd: ROOT, stdio: 'ignore' })
  const main = join(root, 'dist', 'main.js')
  if (!existsSync(main)) throw new Error('the package could not be built')
  for (const name of ['package.json', 'node_modules', 'openapi.json', 'events.json'])
    symlinkSync(join(ROOT, name), join(root, name))
  return main
}
