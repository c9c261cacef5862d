// The package as a user gets it: packed, installed globally into an empty prefix, run under its own name. Catches what a
// checkout cannot show: a file left out of the tarball, a dependency that is only a development one, a path that is right
// only under src.
import assert from 'node:assert/strict'
import { type ChildProcess, execFileSync, type SpawnSyncReturns, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { createInterface } from 'node:readline'
import { after, before, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'

type Packed = { filename: string; files: { path: string; mode: number }[] }
type CityRow = { name: string; running: boolean; status: string }

const INSTALL_MS = 240_000
const READY_MS = 30_000

const root = resolve(import.meta.dirname, '../..')
const version: string = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')).version
const scratch = mkdtempSync(join(tmpdir(), 'svc-package-'))
const prefix = join(scratch, 'prefix')
const home = join(scratch, 'home')
const svcctl = join(prefix, 'bin', 'svcctl')
const env = userEnvironment()
let packed: Packed

before(
  () => {
    execFileSync(process.execPath, [join(root, 'tools', 'build.ts')], { cwd: root, stdio: ['ignore', 'inherit', 2] })
    // Built just now, so the `prepack` script need not run; where npm refuses scripts it would not.
    packed = JSON.parse(npm('pack', '--ignore-scripts', '--json', '--pack-destination', scratch))[0]
    npm('install', '--global', '--prefix', prefix, '--prefer-offline', join(scratch, packed.filename))
  },
  { timeout: INSTALL_MS },
)

after(() => rmSync(scratch, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 }))

test('the tarball holds the program and the contract, and neither sources nor tests', () => {
  const paths = packed.files.map((file) => file.path)
  for (const path of ['dist/main.js', 'openapi.json', 'events.json', 'package.json', 'README.md', 'LICENSE']) {
    assert.ok(paths.includes(path), `${path} is missing`)
  }
  assert.deepEqual(
    paths.filter((path) => /\.tsx?$|\.test\.|^(src|test|tools|bench)\//.test(path)),
    [],
  )
})

test('the manuals are installed beside the program, and name every file that there is', () => {
  const manuals = readdirSync(join(root, 'man'))
  assert.ok(manuals.includes('svcctl.1') && manuals.includes('svcctl-city.toml.5'), manuals.join(', '))
  for (const name of manuals)
    assert.ok(existsSync(join(prefix, 'share', 'man', `man${name.at(-1)}`, name)), `${name} is not installed`)
})

test('what needs no server is printed by the installed program without one', () => {
  for (const words of [['openapi'], ['events'], ['city'], ['agent'], ['command', 'bead', 'create']]) {
    // The contract is larger than what is read of a program where nobody says how much.
    const options = { cwd: scratch, env, encoding: 'utf8', maxBuffer: 1 << 26 } as const
    const run = spawnSync(svcctl, ['schema', ...words], options)
    assert.equal(run.status, 0, run.stderr)
    assert.equal(typeof JSON.parse(run.stdout), 'object')
  }
})

test('svcctl version prints the version of the package', () => {
  const run = spawnSync(svcctl, ['version'], { cwd: scratch, env, encoding: 'utf8' })
  assert.equal(run.status, 0, run.stderr)
  assert.match(run.stdout, new RegExp(`\\b${version.replaceAll('.', '\\.')}\\b`))
})

test('a Node that is too old is told which one is needed, and shows no stack', (t) => {
  const old = oldNode()
  if (old === undefined) return t.skip('no Node older than 24 is on PATH')
  for (const words of [['version'], ['serve', '--port', '0']]) {
    const run: SpawnSyncReturns<string> = spawnSync(old, [svcctl, ...words], { cwd: scratch, env, encoding: 'utf8' })
    assert.equal(run.status, 1)
    assert.equal(run.stdout, '')
    assert.match(run.stderr, /^error: svcctl needs Node 24 or newer; this is v\d+\.\d+\.\d+ \(.*node\)\nhint: .*\n$/)
  }
})

test('the Node that is needed is the one that the package asks for', () => {
  const { engines } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
  const oldest = /OLDEST_NODE = (\d+)/.exec(readFileSync(join(root, 'src', 'main.ts'), 'utf8'))?.[1]
  assert.equal(engines.node, `>=${oldest}`)
})

test('svcctl serve brings a city up over HTTP and stops cleanly', { timeout: 4 * READY_MS }, async () => {
  const args = ['serve', '--port', '0', '--home', home]
  const server = spawn(svcctl, args, { cwd: scratch, env, stdio: ['ignore', 'pipe', 'pipe'] })
  try {
    const log = collect(server)
    const url = await listening(server, log)

    const health = await fetch(`${url}/health`)
    assert.equal(health.status, 200, await health.text())
    for (const name of ['swagger-ui.css', 'swagger-ui-bundle.js']) {
      const file = await fetch(`${url}/docs/${name}`)
      assert.equal(file.status, 200, await file.text())
    }

    const created = await fetch(`${url}/v0/city`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'x-svc-request': '1' },
      body: JSON.stringify({ dir: join(scratch, 'town'), provider: 'shell' }),
    })
    assert.equal(created.status, 202, await created.text())
    await cityRunning(url, 'town')
    assert.ok(existsSync(join(scratch, 'town', 'city.toml')))

    const ended = once(server, 'exit')
    server.kill('SIGTERM')
    assert.deepEqual(await ended, [0, null], log())
  } finally {
    server.kill('SIGKILL')
  }
})

/** The Node of some system, where one is installed that is too old for us. */
function oldNode(): string | undefined {
  const found = (process.env['PATH'] ?? '').split(':').map((folder) => join(folder, 'node'))
  return found.find((node) => {
    const { stdout = '' } = spawnSync(node, ['--version'], { encoding: 'utf8' })
    return Number(/^v(\d+)\./.exec(stdout ?? '')?.[1] ?? Number.NaN) < 24
  })
}

/** npm under this very Node, whatever Node npm would choose for itself. */
function npm(...args: string[]): string {
  const flags = ['--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error']
  return execFileSync(process.execPath, [npmEntry(), ...args, ...flags], {
    cwd: root,
    env,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'inherit'],
  })
}

function npmEntry(): string {
  const given = process.env['SVC_CHECKOUT_NPM']
  if (given !== undefined) return given
  return join(execFileSync('npm', ['root', '--global'], { encoding: 'utf8' }).trim(), 'npm', 'bin', 'npm-cli.js')
}

/** This process's environment with the pinned Node first on PATH, without what the developer set for svcctl. */
function userEnvironment(): NodeJS.ProcessEnv {
  const kept = Object.entries(process.env).filter(([name]) => !name.startsWith('SVC_') && name !== 'NODE_TEST_CONTEXT')
  const path = `${dirname(process.execPath)}:${process.env['PATH'] ?? ''}`
  return { ...Object.fromEntries(kept), PATH: path, SVC_HOME: home }
}

/** Everything `server` has written to stderr so far. */
function collect(server: ChildProcess): () => string {
  let text = ''
  server.stderr?.setEncoding('utf8').on('data', (chunk: string) => {
    text += chunk
  })
  return () => text
}

async function listening(server: ChildProcess, log: () => string): Promise<string> {
  assert.ok(server.stdout)
  const signal = AbortSignal.timeout(READY_MS)
  let url: string | undefined
  for await (const line of createInterface({ input: server.stdout, signal })) {
    url ??= /^listening on (http:\/\/127\.0\.0\.1:\d+)$/.exec(line)?.[1]
    // The second line says where it tells what it does.
    if (url !== undefined && line === `log in ${join(home, 'supervisor.log')}`) return url
  }
  return assert.fail(`the server did not say where it listens\n${log()}`)
}

async function cityRunning(url: string, name: string): Promise<void> {
  const deadline = performance.now() + READY_MS
  let seen = ''
  while (performance.now() < deadline) {
    const reply = await fetch(`${url}/v0/cities`)
    seen = await reply.text()
    const cities: CityRow[] = JSON.parse(seen).items
    if (cities.some((city) => city.name === name && city.running)) return
    await sleep(50)
  }
  assert.fail(`${name} was not running after ${READY_MS / 1000} s: ${seen}`)
}
