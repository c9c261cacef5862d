// What `npm run test:bd` runs: the tests under test/bd, which send beads through the real bd tool and back. It is built from
// the module and the sums that tools/bd pins, with the Go of this machine. Not a part of `npm test`: it needs Go.
//
//   npm run test:bd      where there is no Go, or nothing to fetch the module from: says so, and is content
import { spawnSync } from 'node:child_process'
import { globSync } from 'node:fs'
import { join, resolve } from 'node:path'

const root = resolve(import.meta.dirname, '..')
const home = join(root, 'tools', 'bd')
const bd = join(root, 'tools', 'toolchain', process.platform === 'win32' ? 'bd.exe' : 'bd')

if (spawnSync('go', ['version']).status !== 0) skip('there is no go on this machine')
const fetched = spawnSync('go', ['mod', 'download'], { cwd: home, encoding: 'utf8' })
if (fetched.status !== 0) skip(`the module of bd cannot be fetched: ${fetched.stderr.trim()}`)
process.stderr.write('test:bd: building bd\n')
const build = ['build', '-mod=readonly', '-o', bd, 'github.com/steveyegge/beads/cmd/bd']
if (spawnSync('go', build, { cwd: home, stdio: ['ignore', 2, 2] }).status !== 0) process.exit(1)

const files = globSync('test/bd/*.test.ts', { cwd: root }).sort()
const { status } = spawnSync(process.execPath, ['--test', ...files], {
  cwd: root,
  stdio: 'inherit',
  env: { ...process.env, SVC_TEST_BD: bd },
})
process.exit(status ?? 1)

/** Nobody's fault. */
function skip(why: string): never {
  process.stderr.write(`test:bd: skipped: ${why}\n`)
  process.exit(0)
}
