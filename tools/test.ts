// What `npm test` runs: every `*.test.ts` under src and test, by node's own test runner, with one summary at the end.
//
// A plain `node --test` will not do. Crash tests kill servers, those of runtimes and of hostile agents start many
// processes: of each kind one file at a time runs beside the others. Two invocations would print two summaries, and people
// and machines read only the last. And node waits for ever for a file whose tests are over but which still holds a socket
// or a child: one leak would hang the whole run. So every file is a run of its own, with a deadline, and all report into
// one reporter.
//
//   npm test                      everything
//   npm test -- events cursor     the files whose path contains one of the words
//   npm test -- --slowest         also tells at the end which files took longest
//   npm test -- --random          with a seed of chance that nobody had before; SVC_SEED=7 npm test has that one
//   npm run soak                  test/crash only, with more rounds (SVC_SOAK=1) and such a seed
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, globSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { PassThrough } from 'node:stream'
import { finished } from 'node:stream/promises'
import { run } from 'node:test'
import { spec, type TestEvent } from 'node:test/reporters'
import { parseArgs } from 'node:util'
import { endProcessesWith } from '../test/support/city-processes.ts'
import { HeldServer } from '../test/support/held.ts'
import { seedFrom } from '../test/support/random.ts'

const FILE_DEADLINE_MS = 900_000
const SOAK_DEADLINE_MS = 3_600_000
const COMPILE_DEADLINE_MS = 60_000
/** Which test has begun a process, in its environment. */
const FILE_VARIABLE = 'SVC_TEST_FILE'
const SLOWEST = 30

const root = resolve(import.meta.dirname, '..')
const { values: flags, positionals: words } = parseArgs({
  options: { soak: { type: 'boolean' }, slowest: { type: 'boolean' }, random: { type: 'boolean' } },
  allowPositionals: true,
})
const deadlineMs = flags.soak ? SOAK_DEADLINE_MS : FILE_DEADLINE_MS
if (flags.soak) process.env['SVC_SOAK'] = '1'
// One for all files: what fails comes again with it.
const seed = seedFrom(process.env['SVC_SEED'] ?? (flags.soak || flags.random ? 'random' : undefined))
process.env['SVC_SEED'] = String(seed)
// Every test file is a process, and most of them start more: what one has compiled, the next ones need not.
const compiled = process.env['NODE_COMPILE_CACHE'] ?? join(root, 'tools', 'toolchain', '.compiled')
process.env['NODE_COMPILE_CACHE'] = compiled

/** What takes longest, longest first, as `--slowest` tells it. */
const LONGEST = [
  'test/e2e/fuzz.test.ts',
  'test/contract/operations.test.ts',
  'test/guides/guides.test.ts',
  'test/e2e/cli.test.ts',
  'test/e2e/beads/interchange.test.ts',
  'test/e2e/beads/claimers.test.ts',
  'test/e2e/worktrees/worktrees.test.ts',
  'test/e2e/sessions/reports.test.ts',
  'test/contract/session-streams.test.ts',
  'test/e2e/sessions/wanted.test.ts',
  'test/e2e/cities.test.ts',
  'test/e2e/packs.test.ts',
  'test/e2e/sessions/survival.test.ts',
]
const rankOf = (file: string) => (LONGEST.includes(file) ? LONGEST.indexOf(file) : LONGEST.length)

const isCrashTest = (file: string) => file.startsWith('test/crash/')
const isRuntimeTest = (file: string) => file.startsWith('test/runtimes/') || file.endsWith('/hostile.test.ts')
const files = globSync(['src/**/*.test.ts', 'test/**/*.test.ts'], { cwd: root })
  .filter((file) => !flags.soak || isCrashTest(file))
  .filter((file) => words.length === 0 || words.some((word) => file.includes(word)))
  .sort()
if (files.length === 0) {
  process.stderr.write(`no test file matches ${words.join(' ') || (flags.soak ? 'test/crash' : 'src or test')}\n`)
  process.exit(1)
}

const gone = LONGEST.filter((file) => !existsSync(join(root, file)))
if (gone.length > 0) {
  process.stderr.write(`tools/test.ts takes for long what is not there: ${gone.join(', ')}\n`)
  process.exit(1)
}

const startedAt = performance.now()
if (!existsSync(compiled)) await compileServer()
const durations = new Map<string, number>()
const totals = { tests: 0, suites: 0, passed: 0, failed: 0, cancelled: 0, skipped: 0, todo: 0 }
let success = true

const events = new PassThrough({ objectMode: true })
const report = events.pipe(spec())
report.pipe(process.stdout)

// Ends the running files too: they would outlive us. What is left is reported as cancelled.
const interrupted = new AbortController()
for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(name, () => interrupted.abort())

const crashing = files.filter(isCrashTest)
const runtimes = files.filter(isRuntimeTest)
// The longest first; then backwards, for those under src are short: no core is without work at the end.
const others = files.filter((file) => !isCrashTest(file) && !isRuntimeTest(file)).reverse()
others.sort((one, other) => rankOf(one) - rankOf(other))
// Tests wait more than they work: two cores have room for four.
await Promise.all([runInTurn(crashing, others), runInTurn(runtimes, others), runInTurn(others), runInTurn(others)])

for (const event of closingLines()) events.write(event)
events.end()
await finished(report)
// Not by running out of work: a file cut off at its deadline may have left a child behind that holds our pipes.
process.stdout.write('', () => process.exit(success ? 0 : 1))

/**
 * What is compiled is kept by a process that ends by itself. Servers of tests are killed: the four lanes would compile each
 * of their first hundreds anew, for more than twice the work of their start.
 */
async function compileServer() {
  const home = mkdtempSync(join(tmpdir(), 'svc-test-'))
  const svcctl = [join(root, 'tools', 'svcctl.mjs'), 'serve', '--port', '0', '--home', home]
  const server = spawn(process.execPath, svcctl, { stdio: ['ignore', 'pipe', 'ignore'], timeout: COMPILE_DEADLINE_MS })
  server.stdout.once('data', () => server.kill('SIGTERM'))
  await once(server, 'close')
  rmSync(home, { recursive: true, force: true })
}

/** One lane: takes the next file from the first queue that has one until all are empty. */
async function runInTurn(...queues: string[][]) {
  for (const queue of queues)
    for (let file = queue.shift(); file !== undefined; file = queue.shift())
      for (const event of await runFile(file)) events.write(event)
}

/** The events of one file, together, so that two files at once do not mix their lines. */
async function runFile(file: string): Promise<TestEvent[]> {
  const deadline = AbortSignal.timeout(deadlineMs)
  const signal = AbortSignal.any([deadline, interrupted.signal])
  const seen: TestEvent[] = []
  // Of servers that the file starts without the support of tests.
  const held = new HeldServer()
  const began = performance.now()
  for await (const event of run({
    files: [join(root, file)],
    cwd: root,
    concurrency: 1,
    signal,
    env: { ...process.env, ...held.env, [FILE_VARIABLE]: file },
  }) as AsyncIterable<TestEvent>) {
    if (event.type === 'test:summary' && event.data.file === undefined) count(event.data)
    else if (!isClosingLine(event)) seen.push(event)
  }
  durations.set(file, performance.now() - began)
  for (const fault of held.faults()) {
    seen.push(diagnostic(`${file}: a server differs from its contract: ${fault}`))
    success = false
  }
  // Supervisors live on when their test is cut off, with all their agents.
  if (signal.aborted) endProcessesWith(FILE_VARIABLE, file)
  if (deadline.aborted) seen.push(diagnostic(`${file} was cut off after ${deadlineMs / 1000} s`))
  return seen
}

function count(summary: Extract<TestEvent, { type: 'test:summary' }>['data']) {
  const counts: Partial<typeof totals> = summary.counts // `failed` is missing from its declared type
  for (const key of Object.keys(totals) as (keyof typeof totals)[]) totals[key] += counts[key] ?? 0
  success &&= summary.success
}

/** `tests 3`, `pass 2`, …: each file's own, which ours replace. */
function isClosingLine(event: TestEvent): boolean {
  if (event.type === 'test:plan') return event.data.file === undefined
  return event.type === 'test:diagnostic' && event.data.file === undefined && event.data.nesting === 0
}

function closingLines(): TestEvent[] {
  const { tests, suites, passed, failed, cancelled, skipped, todo } = totals
  const lines = {
    tests,
    suites,
    pass: passed,
    fail: failed,
    cancelled,
    skipped,
    todo,
    duration_ms: performance.now() - startedAt,
  }
  return [
    ...(flags.slowest ? slowest() : []),
    `SVC_SEED=${seed}`,
    ...Object.entries(lines).map(([name, value]) => `${name} ${value}`),
  ].map(diagnostic)
}

function slowest(): string[] {
  return [...durations]
    .sort(([, one], [, other]) => other - one)
    .slice(0, SLOWEST)
    .map(([file, ms]) => `${(ms / 1000).toFixed(1).padStart(6)} s  ${file}`)
}

function diagnostic(message: string): TestEvent {
  return { type: 'test:diagnostic', data: { nesting: 0, message, level: 'info' } }
}
