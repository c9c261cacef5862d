// What `npm run check` runs: everything that can be said about the code without running it. All steps run even when one
// fails, so that one look shows all there is to repair; a step's output is shown only where it failed.
import { spawnSync } from 'node:child_process'
import { resolve } from 'node:path'

const root = resolve(import.meta.dirname, '..')

// Scripts, not the `.bin` links: those would start whatever `node` is on PATH, which may be older than the pinned one.
const STEPS = [
  { name: 'types', script: 'node_modules/typescript/bin/tsc', args: ['-p', '.'] },
  // The same sources once more, where a text that is shortened by `slice` has a type that fits nowhere.
  { name: 'shortened texts', script: 'node_modules/typescript/bin/tsc', args: ['-p', 'tools/texts'] },
  {
    name: 'format and lint',
    script: 'node_modules/@biomejs/biome/bin/biome',
    args: ['ci', '--colors=off', '--error-on-warnings'],
  },
  { name: 'imports', script: 'tools/check-imports.ts', args: [] },
  { name: 'generated files', script: 'tools/generate.ts', args: ['--check'] },
  { name: 'dead code', script: 'node_modules/knip/bin/knip.js', args: ['--no-progress'] },
]

for (const { name, script, args } of STEPS) {
  const startedAt = performance.now()
  const step = spawnSync(process.execPath, [resolve(root, script), ...args], {
    cwd: root,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const seconds = ((performance.now() - startedAt) / 1000).toFixed(1)
  console.log(`${step.status === 0 ? 'ok    ' : 'FAILED'} ${name} (${seconds} s)`)
  if (step.status === 0) continue
  process.exitCode = 1
  console.log(`${step.stdout ?? ''}${step.stderr ?? ''}${step.error?.message ?? ''}`)
}
