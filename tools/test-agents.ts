// What `npm run test:agents` runs: the tests under test/agents, with real harnesses of other people, pinned by the
// lockfiles under tools/agents and installed from the registry when they are missing. The harnesses talk to a scripted
// model on this machine, so a run costs nothing and always sees the same. Not a part of `npm test`: 150 MB to fetch.
//
//   npm run test:agents                   all of them, or it fails
//   npm run test:agents -- --optional     where they cannot be had (no registry, another kind of machine): says so, and is content
import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, globSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { parseArgs } from 'node:util'

const PING_MS = 60_000

const root = resolve(import.meta.dirname, '..')
const { values: flags } = parseArgs({ options: { optional: { type: 'boolean' } } })

const opencode = installed(opencodePackage())
const files = globSync('test/agents/*.test.ts', { cwd: root }).sort()
const { status } = spawnSync(process.execPath, ['--test', ...files], {
  cwd: root,
  stdio: 'inherit',
  env: { ...process.env, SVC_TEST_OPENCODE: join(opencode, 'bin', 'opencode') },
})
process.exit(status ?? 1)

/** The build for this machine; the default one dies of an illegal instruction where the processor has no AVX2. */
function opencodePackage(): string {
  if (process.platform !== 'linux' || process.arch !== 'x64') {
    unavailable(`no harness is pinned for ${process.platform}-${process.arch}`)
  }
  const hasAvx2 = /^flags\b.*\bavx2\b/m.test(readFileSync('/proc/cpuinfo', 'utf8'))
  return hasAvx2 ? 'opencode-linux-x64' : 'opencode-linux-x64-baseline'
}

/** The directory of the package, after making sure that it is what its lockfile says. */
function installed(name: string): string {
  const home = join(root, 'tools', 'agents', name)
  const stamp = join(home, 'node_modules', '.lock-hash')
  const hash = createHash('sha256')
    .update(readFileSync(join(home, 'package-lock.json')))
    .digest('hex')
  if (!existsSync(stamp) || readFileSync(stamp, 'utf8') !== hash) {
    install(home, name)
    writeFileSync(stamp, hash)
  }
  return join(home, 'node_modules', name)
}

function install(home: string, name: string): void {
  process.stderr.write(`set-up: installing ${name}\n`)
  // Without install scripts: the package is the binary.
  const status = npm(home, ['ci', '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error'])
  if (status === 0) return
  const message = `could not install ${name} (npm exited ${status})`
  if (npm(home, ['ping', '--loglevel=error'], PING_MS) === 0) fail(message)
  unavailable(`${message}: the registry is not reachable`)
}

/** Answers with how npm exited. */
function npm(cwd: string, args: readonly string[], timeout?: number): number | string {
  const script = process.env['SVC_CHECKOUT_NPM']
  if (script === undefined) fail('run it as `npm run test:agents`')
  const { NODE_OPTIONS: _, ...env } = process.env
  const { status, signal } = spawnSync(process.execPath, [script, ...args], {
    cwd,
    env: { ...env, PATH: `${dirname(process.execPath)}:${env['PATH'] ?? ''}` },
    stdio: ['ignore', 2, 2],
    timeout,
  })
  return status ?? String(signal)
}

/** Nobody's fault. */
function unavailable(why: string): never {
  if (!flags.optional) fail(why)
  process.stderr.write(`test:agents: skipped: ${why}\n`)
  process.exit(0)
}

function fail(message: string): never {
  process.stderr.write(`test:agents: ${message}\n`)
  process.exit(1)
}
