// Bad input in bulk, against a real supervisor with a city in it: our own generated requests (streams included, which
// never end by themselves), bytes that are hardly HTTP, then Schemathesis over the whole contract. Fails where an answer
// is not the declared one, a breach of a schema is accepted, the server fails, hangs, logs an error or grows.
//
//   npm run fuzz
//   npm run fuzz -- --only 'molecule|sling'
//   npm run fuzz -- --max-examples 200 --seed 7 --deadline 3600
//
// Schemathesis comes from PyPI into a virtual environment under node_modules/.cache; without Python 3 that part is
// left out, and said so.
import { spawn, spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { asFields, OPERATIONS } from '../test/support/contract-document.ts'
import { CITY, ensureCity, isSteering, STEERED, unregisterOthers } from '../test/support/fuzzed-city.ts'
import { FuzzedSupervisor } from '../test/support/fuzzed-supervisor.ts'
import { BODIES } from '../test/support/fuzzed-world.ts'
import { type Campaign, fuzzBytes, fuzzOperation, isStrict, rightFailures } from '../test/support/fuzzing.ts'
import { seedFrom } from '../test/support/random.ts'
import { RAW_CASES, rawFaults } from '../test/support/raw-cases.ts'
import { exchangeBytes, keptAlive } from '../test/support/wire.ts'

const SCHEMATHESIS = '4.32.5'
const KEEP_EVERY_MS = 150
const TIDY_EVERY_MS = 2_000
/** Far more than the sessions that the city may have; each is a program, its host and a writer of its log. */
const MAX_PROCESSES = 60
/** What the process may grow by over the whole run: garbage is let lie for a while, caches and open logs fill up. */
const MAX_GROWTH_BYTES = 400 * 1024 * 1024
/** The same of what is left of the heap where garbage was collected: a leak per request would pass it. */
const MAX_HEAP_GROWTH_BYTES = 40 * 1024 * 1024
/** Samples of the heap before the lowest of some of them says anything. */
const ENOUGH_SAMPLES = 60

const root = resolve(import.meta.dirname, '..')
const { values: flags } = parseArgs({
  options: {
    'max-examples': { type: 'string', default: '30' },
    seed: { type: 'string', default: String(seedFrom(process.env['SVC_SEED'] ?? 'random')) },
    deadline: { type: 'string', default: '600' },
    'own-runs': { type: 'string', default: '80' },
    // Ids of operations, as a regular expression.
    only: { type: 'string', default: '' },
    'only-own': { type: 'boolean', default: false },
  },
})
const seed = Number(flags.seed)
const runs = Number(flags['own-runs'])
const deadline = AbortSignal.timeout(Number(flags.deadline) * 1_000)
const only = new RegExp(flags.only)
const CHOSEN = OPERATIONS.filter(({ id }) => only.test(id))
const failures: string[] = []
let cases = 0

process.stdout.write(`seed ${seed}\n`)
{
  await using supervisor = await FuzzedSupervisor.start()
  await ownCases(supervisor)
  await rawBytes(supervisor)
  if (!flags['only-own']) await schemathesis(supervisor)
  failures.push(...(await supervisor.faults()), ...(await supervisor.end()))
}
process.stdout.write(`\n${cases} cases of our own, ${failures.length} failures\n`)
for (const failure of failures) process.stdout.write(`\n${failure}\n`)
process.exit(failures.length === 0 ? 0 : 1)

async function ownCases(supervisor: FuzzedSupervisor) {
  const { url, work, world } = supervisor
  const agent = keptAlive()
  const campaign: Campaign = { url, work, world, agent, seed, seen: new Map() }
  for (const operation of CHOSEN) {
    await attempt(operation.id, () =>
      fuzzOperation(operation, campaign, isSteering(operation.id) ? Math.ceil(runs / 4) : runs),
    )
    await ensureCity(url, CITY)
    await unregisterOthers(url)
    countProcesses(supervisor, operation.id)
  }
  agent.destroy()
  cases += [...campaign.seen.values()].reduce((sum, count) => sum + count, 0)
  tellAnswers(campaign.seen)
}

/** How often each operation answered what. */
function tellAnswers(seen: ReadonlyMap<string, number>) {
  for (const { id } of CHOSEN) {
    const answers = [...seen]
      .filter(([key]) => key.startsWith(`${id} `))
      .map(([key, count]) => `${key.slice(id.length + 1)}×${count}`)
    process.stdout.write(`${id.padEnd(28)} ${answers.sort().join(' ')}\n`)
  }
  const never = CHOSEN.filter(({ id }) => ![...seen.keys()].some((key) => key.startsWith(`${id} 2`)))
  if (never.length > 0) process.stdout.write(`no success of: ${never.map(({ id }) => id).join(', ')}\n`)
}

async function rawBytes({ url }: FuzzedSupervisor) {
  for (const [name, bytes] of RAW_CASES) {
    await attempt(name, async () => {
      const found = rawFaults(await exchangeBytes(url, Buffer.from(bytes)))
      if (found.length > 0) throw new Error(found.join('\n'))
    })
  }
  await attempt('raw bytes', () => fuzzBytes({ url, seed }, runs * 10))
  cases += RAW_CASES.size + runs * 10
}

async function attempt(name: string, work: () => Promise<void>) {
  try {
    await work()
  } catch (error) {
    const cause = error instanceof Error && error.cause instanceof Error ? error.cause.message : ''
    failures.push(`${name}: ${error instanceof Error ? error.message.slice(0, 2_000) : String(error)}\n${cause}`)
  }
}

function countProcesses(supervisor: FuzzedSupervisor, when: string) {
  const count = supervisor.processes()
  if (count > MAX_PROCESSES) failures.push(`${count} processes of agents after ${when}`)
}

async function schemathesis(supervisor: FuzzedSupervisor) {
  const program = installed()
  if (program === undefined) return
  const directory = join(supervisor.work, 'schemathesis')
  mkdirSync(directory)
  writeFileSync(join(directory, 'schemathesis.toml'), settings(supervisor.world.requestId))
  const world = join(directory, 'world.json')
  const seen = join(directory, 'seen.json')
  tellWorld(supervisor, world)
  const before = supervisor.memory()
  const keeper = new AbortController()
  const heap: number[] = []
  const keeping = keepCities(supervisor, world, heap, keeper.signal)
  const code = await run(
    program,
    [
      'run',
      `${supervisor.url}/openapi.json`,
      '--no-color',
      '--seed',
      String(seed),
      '--max-examples',
      flags['max-examples'],
      ...(flags.only === '' ? [] : ['--include-operation-id-regex', flags.only]),
      // Wide schemas make much that is thrown away.
      '--suppress-health-check',
      'filter_too_much,too_slow,data_too_large',
    ],
    {
      cwd: directory,
      env: { ...process.env, SVC_FUZZ_WORK: supervisor.work, SVC_FUZZ_WORLD: world, SVC_FUZZ_SEEN: seen },
    },
  )
  keeper.abort()
  await keeping
  if (existsSync(seen)) {
    const counted = asFields(JSON.parse(readFileSync(seen, 'utf8')))
    tellAnswers(new Map(Object.entries(counted).map(([key, count]) => [key, Number(count)])))
  }
  if (deadline.aborted) failures.push(`not finished within ${flags.deadline} s`)
  else if (code !== 0) failures.push(`Schemathesis found failures (exit ${code}); they are above`)
  const growth = supervisor.memory() - before
  process.stdout.write(`the process grew by ${mebibytes(growth)}, its heap by ${mebibytes(heapGrowth(heap))}\n`)
  if (growth > MAX_GROWTH_BYTES) failures.push(`the process grew by ${mebibytes(growth)}`)
  if (heapGrowth(heap) > MAX_HEAP_GROWTH_BYTES) failures.push(`the heap grew by ${mebibytes(heapGrowth(heap))}`)
}

function mebibytes(bytes: number): string {
  return `${Math.round(bytes / 1024 / 1024)} MiB`
}

/** Between the first and the last third: from the lowest to the lowest, which is after a collection. */
function heapGrowth(samples: readonly number[]): number {
  if (samples.length < ENOUGH_SAMPLES) return 0
  const third = Math.floor(samples.length / 3)
  return Math.min(...samples.slice(-third)) - Math.min(...samples.slice(0, third))
}

/** Schemathesis, installed where it is missing; undefined without Python. */
function installed(): string | undefined {
  const directory = join(root, 'node_modules', '.cache', `schemathesis-${SCHEMATHESIS}`)
  const program = join(directory, 'bin', 'schemathesis')
  const isReady = () =>
    existsSync(program) && spawnSync(program, ['--version'], { encoding: 'utf8' }).stdout?.includes(SCHEMATHESIS)
  if (isReady()) return program
  process.stdout.write(`installing Schemathesis ${SCHEMATHESIS}\n`)
  rmSync(directory, { recursive: true, force: true })
  const steps: readonly (readonly [string, readonly string[]])[] = [
    ['python3', ['-m', 'venv', directory]],
    [
      join(directory, 'bin', 'pip'),
      ['install', '--quiet', '--disable-pip-version-check', `schemathesis==${SCHEMATHESIS}`],
    ],
  ]
  for (const [command, args] of steps) {
    const { status, error, stderr } = spawnSync(command, args, { encoding: 'utf8' })
    if (status === 0) continue
    process.stdout.write(
      `LEFT OUT: Schemathesis needs Python 3.10 or newer with venv and pip, and PyPI: ${error?.message ?? stderr.trim().slice(-500)}\n`,
    )
    return undefined
  }
  return isReady() ? program : undefined
}

/** Most requests hit what exists. Where a right request may be refused, the reason is one that no schema can say. */
function settings(requestId: string): string {
  const streams = OPERATIONS.filter(({ streams }) => streams).map(({ id }) => id)
  const accepted = ['2xx', 400, 401, 403, 404, 409, 410, 412]
  const loose = OPERATIONS.filter((operation) => !isStrict(operation) && operation.id !== 'receive-inbound').map(
    ({ id }) => id,
  )
  const beyondSchema = ['emit-event', 'list-events', 'list-city-events', 'get-city-status', ...loose]
  const steering = OPERATIONS.filter(({ id }) => isSteering(id)).map(({ id }) => id)
  const failing = OPERATIONS.filter(({ id, family }) => family === 'Sessions' && rightFailures(id)).map(({ id }) => id)
  const toml = JSON.stringify
  return `hooks = ${toml(join(import.meta.dirname, 'fuzz-hooks.py'))}
request-timeout = 10.0
continue-on-failure = true
headers = { X-SVC-Request = "fuzz" }

[generation]
database = "none"

[dictionaries]
cities = { values = [${toml(CITY)}] }
steered = { values = [${toml(STEERED)}] }
requests = { values = [${toml(requestId)}] }
paths = { values = [${toml(CITY)}, ${toml(STEERED)}] }
providers = { values = ["shell"] }
assets = { values = ["start.js", "swagger-ui.css"] }

[parameters]
"path.cityName" = { dictionary = "cities", probability = 0.85 }
"path.request_id" = { dictionary = "requests", probability = 0.5 }
"path.asset" = { dictionary = "assets", probability = 0.5 }

[checks]
positive_data_acceptance.expected-statuses = ${toml(accepted)}
negative_data_rejection.expected-statuses = [400, 401, 403, 404, 405, 409, 412, 413, 415, 422, 429, 431, 501, 503]

# Never end: our own cases are for them.
[[operations]]
include-operation-id = ${toml(streams)}
enabled = false

[[operations]]
include-operation-id = ${toml(steering.filter((id) => id !== 'stop-city'))}
parameters = { "path.cityName" = { dictionary = "steered", probability = 0.85 } }

# 504: the caller's own deadline passed.
[[operations]]
include-operation-id = "stop-city"
parameters = { "path.cityName" = { dictionary = "steered", probability = 0.85 } }
checks.positive_data_acceptance.expected-statuses = ${toml([...accepted, 422, 504])}
checks.not_a_server_error.expected-statuses = ["2xx", "4xx", 504]

# 501, 503, 504: the program lacks the feature, the host lacks the program, the session does not answer.
[[operations]]
include-operation-id = ${toml(failing)}
checks.positive_data_acceptance.expected-statuses = ${toml([...accepted, 422, 429, 501, 503, 504])}
checks.not_a_server_error.expected-statuses = ["2xx", "4xx", 501, 503, 504]

# 429: more messages in a second than an adapter may bring.
[[operations]]
include-operation-id = "receive-inbound"
checks.positive_data_acceptance.expected-statuses = ${toml([...accepted, 422, 429])}

# 503: the host lacks the provider.
[[operations]]
include-operation-id = "create-city"
parameters = { "body.provider" = { dictionary = "providers", probability = 0.7 } }
checks.positive_data_acceptance.expected-statuses = ${toml([...accepted, 422, 503])}
checks.not_a_server_error.expected-statuses = ["2xx", "4xx", 503]

[[operations]]
include-operation-id = "adopt-city"
parameters = { "body.path" = { dictionary = "paths", probability = 0.5 } }
checks.positive_data_acceptance.expected-statuses = ${toml([...accepted, 422])}

# Its examples are texts, and files are made as bytes (fuzz-hooks.py).
[[operations]]
include-operation-id = ["put-formula", "put-order"]
phases.examples.enabled = false

[[operations]]
include-operation-id = ${toml(beyondSchema)}
checks.positive_data_acceptance.expected-statuses = ${toml([...accepted, 422])}
`
}

/**
 * Both cities up all the time, and something in them, so that requests reach more than their 404; others are
 * unregistered now and then.
 */
async function keepCities(supervisor: FuzzedSupervisor, file: string, heap: number[], signal: AbortSignal) {
  const { url, world } = supervisor
  let tidied = performance.now()
  while (!signal.aborted) {
    await ensureCity(url, CITY)
    await ensureCity(url, STEERED)
    if (performance.now() - tidied > TIDY_EVERY_MS) {
      await unregisterOthers(url)
      await world.tend()
      countProcesses(supervisor, 'requests of Schemathesis')
      tidied = performance.now()
    } else await world.look()
    tellWorld(supervisor, file)
    heap.push(await supervisor.heap())
    await delay(KEEP_EVERY_MS, undefined, { signal }).catch(() => {})
  }
}

/** For the hooks, which never see half of it. */
function tellWorld({ world }: FuzzedSupervisor, file: string) {
  const paths = OPERATIONS.map(({ id, path }) => {
    const cityName = isSteering(id) ? STEERED : CITY
    return [path, world.pathsOf(path).map((values) => ({ cityName, ...values }))] as const
  })
  writeFileSync(
    `${file}.new`,
    JSON.stringify({ paths: Object.fromEntries(paths), fields: world.fields(), bodies: BODIES }),
  )
  renameSync(`${file}.new`, file)
}

function run(
  program: string,
  args: readonly string[],
  options: { cwd: string; env: NodeJS.ProcessEnv },
): Promise<number | null> {
  const child = spawn(program, args, { ...options, stdio: ['ignore', 'inherit', 'inherit'] })
  const cut = () => child.kill('SIGKILL')
  deadline.addEventListener('abort', cut)
  return new Promise((done, fail) => {
    child.on('error', fail)
    child.on('exit', (code) => {
      deadline.removeEventListener('abort', cut)
      done(code)
    })
  })
}
