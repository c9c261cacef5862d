// What `npm run test:agents` runs: the tests under test/agents, with real harnesses of other people, pinned by the
// lockfiles under tools/agents and installed from the registry when they are missing. The harnesses talk to a scripted
// model on this machine, so a run costs nothing and always sees the same. Not a part of `npm test`: 700 MB to fetch.
//
//   npm run test:agents                   all of them, or it fails
//   npm run test:agents -- terminals      files whose name has the word
//   npm run test:agents -- --optional     where they cannot be had (no registry, another kind of machine): says so, and is content
import { spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, globSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { parseArgs } from 'node:util'

const INSTALL_MS = 240_000
const PING_MS = 20_000
/** A hundred packages, of which some are large; and that aider has a Python that it runs on. */
const PIP_MS = 600_000
const PYTHON_MS = 10_000
const KNOWN_PYTHON = 'import sys, venv; sys.exit(not (3, 10) <= sys.version_info < (3, 13))'
/** They wait for each other's processes most of the time. */
const FILES_AT_ONCE = 2

const root = resolve(import.meta.dirname, '..')
const { values: flags, positionals: words } = parseArgs({
  options: { optional: { type: 'boolean' } },
  allowPositionals: true,
})
const files = globSync('test/agents/*.test.ts', { cwd: root })
  .filter((file) => words.length === 0 || words.some((word) => file.includes(word)))
  .sort()
if (files.length === 0) fail(`no test file matches ${words.join(' ')}`)
if (process.platform !== 'linux' || process.arch !== 'x64') {
  const why = `no harness is pinned for ${process.platform}-${process.arch}`
  if (!flags.optional) fail(why)
  process.stderr.write(`test:agents: skipped: ${why}\n`)
  process.exit(0)
}

/** By the variable that tells the tests: the folder under tools/agents, and the program below its node_modules. */
const PROGRAMS = {
  SVC_TEST_OPENCODE: [opencodePackage(), join(opencodePackage(), 'bin/opencode')],
  SVC_TEST_CLAUDE: ['claude', '@anthropic-ai/claude-code-linux-x64/claude'],
  SVC_TEST_CLAUDE_ACP: ['claude-acp', '.bin/claude-agent-acp'],
  SVC_TEST_CODEX: ['codex', '@openai/codex/vendor/x86_64-unknown-linux-musl/bin/codex'],
  SVC_TEST_CODEX_ACP: ['codex-acp', '.bin/codex-acp'],
  SVC_TEST_GEMINI: ['gemini', '.bin/gemini'],
  SVC_TEST_QWEN: ['qwen', '.bin/qwen'],
} as const

const programs = await Promise.all([
  ...Object.entries(PROGRAMS).map(async ([variable, [folder, program]]) => {
    const home = join(root, 'tools', 'agents', folder)
    return (await install(home, folder)) ? [[variable, join(home, 'node_modules', program)]] : []
  }),
  installAider(join(root, 'tools', 'agents', 'aider')),
])
const tests = ['--test', `--test-concurrency=${FILES_AT_ONCE}`, ...files]
const status = await node(tests, root, { env: Object.fromEntries(programs.flat()), stdout: 1 })
process.exit(status === 0 ? 0 : 1)

/** The build for this machine; the default one dies of an illegal instruction where the processor has no AVX2. */
function opencodePackage(): string {
  const hasAvx2 = /^flags\b.*\bavx2\b/m.test(readFileSync('/proc/cpuinfo', 'utf8'))
  return hasAvx2 ? 'opencode-linux-x64' : 'opencode-linux-x64-baseline'
}

/** Makes sure that what is there is what its lockfile says; false where it cannot be had, and need not. */
async function install(home: string, name: string): Promise<boolean> {
  const stamp = join(home, 'node_modules', '.lock-hash')
  const lock = lockOf(home)
  const hash = createHash('sha256')
    .update(readFileSync(lock ?? join(home, 'package.json')))
    .digest('hex')
  if (existsSync(stamp) && readFileSync(stamp, 'utf8') === hash) return true
  process.stderr.write(`set-up: installing ${name}\n`)
  // Without install scripts: the package is the binary. The adapters run the harnesses that stand beside them.
  const how = lock === undefined ? ['install', '--no-package-lock'] : ['ci']
  if (name.endsWith('-acp')) how.push('--omit=optional')
  const status = await npm(home, [...how, '--ignore-scripts', '--no-audit', '--no-fund'], INSTALL_MS)
  if (status === 0) {
    writeFileSync(stamp, hash)
    return true
  }
  const why = `could not install ${name} (npm: ${status})`
  if (!flags.optional || (hasEnded(status) && (await npm(home, ['ping'], PING_MS)) === 0)) fail(why)
  process.stderr.write(`test:agents: ${name} is skipped: ${why}, and the registry does not answer, or not in time\n`)
  return false
}

/** From PyPI, into an environment of its own where nothing of ours looks. */
async function installAider(home: string): Promise<readonly (readonly [string, string])[]> {
  const venv = join(home, 'node_modules', 'venv')
  const found = [['SVC_TEST_AIDER', join(venv, 'bin', 'aider')]] as const
  const requirements = join(home, 'requirements.txt')
  const pinned = readFileSync(requirements, 'utf8')
  const stamp = join(venv, '.requirements')
  if (existsSync(stamp) && readFileSync(stamp, 'utf8') === pinned) return found
  const leaveOut = (why: string): readonly [] => {
    if (!flags.optional) fail(why)
    process.stderr.write(`test:agents: aider is skipped: ${why}\n`)
    return []
  }
  if ((await run('python3', ['-c', KNOWN_PYTHON], home, { timeout: PYTHON_MS, stdout: 2 })) !== 0)
    return leaveOut('aider needs a python3 from 3.10 to 3.12, with venv')
  process.stderr.write('set-up: installing aider\n')
  rmSync(venv, { recursive: true, force: true })
  const made = await run('python3', ['-m', 'venv', venv], home, { timeout: PIP_MS, stdout: 2 })
  if (made !== 0) return leaveOut(`could not make an environment for aider (venv: ${made})`)
  const pip = (args: readonly string[], timeout: number) =>
    run(join(venv, 'bin', 'python'), ['-m', 'pip', '-q', '--disable-pip-version-check', ...args], home, {
      timeout,
      stdout: 2,
    })
  const status = await pip(['install', '--no-deps', '--only-binary', ':all:', '-r', requirements], PIP_MS)
  if (status === 0) {
    writeFileSync(stamp, pinned)
    return found
  }
  const why = `could not install aider (pip: ${status})`
  if (hasEnded(status) && (await pip(['index', 'versions', 'aider-chat'], PING_MS)) === 0) fail(why)
  return leaveOut(`${why}, and the registry does not answer, or not in time`)
}

/** The package of qwen brings a list of its own that no lockfile can be held against: its version alone is pinned. */
function lockOf(home: string): string | undefined {
  const path = join(home, 'package-lock.json')
  return existsSync(path) ? path : undefined
}

/** One retry: where nobody answers, many of them take minutes. */
function npm(cwd: string, args: readonly string[], timeout: number): Promise<number | string> {
  const script = process.env['SVC_CHECKOUT_NPM']
  if (script === undefined) fail('run it as `npm run test:agents`')
  const patience = ['--loglevel=error', '--fetch-retries=1', '--fetch-retry-mintimeout=1000']
  return node([script, ...args, ...patience], cwd, { timeout, stdout: 2 })
}

interface Run {
  readonly env?: Readonly<Record<string, string>>
  readonly stdout: 1 | 2
  readonly timeout?: number
}

function node(args: readonly string[], cwd: string, how: Run): Promise<number | string> {
  return run(process.execPath, args, cwd, how)
}

/** Answers with how it exited, or why it did not run. */
function run(
  program: string,
  args: readonly string[],
  cwd: string,
  { env = {}, stdout, timeout }: Run,
): Promise<number | string> {
  const { NODE_OPTIONS: _, ...own } = process.env
  const PATH = `${dirname(process.execPath)}:${own['PATH'] ?? ''}`
  return new Promise((resolved) => {
    const child = spawn(program, args, {
      cwd,
      env: { ...own, ...env, PATH },
      stdio: ['ignore', stdout, 2],
      timeout,
    })
    child.on('error', (error) => resolved(error.message))
    child.on('exit', (code, signal) => resolved(code ?? String(signal)))
  })
}

/** By itself: one that was cut off at its deadline says nothing about what it was to install. */
const hasEnded = (status: number | string): boolean => typeof status === 'number'

function fail(message: string): never {
  process.stderr.write(`test:agents: ${message}\n`)
  process.exit(1)
}
