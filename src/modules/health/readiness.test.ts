import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Clock } from '../../kernel/clock.ts'
import { Problem } from '../../kernel/problem.ts'
import type { Observation } from './logins.ts'
import type { Probe } from './probes.ts'
import { createReadiness, parseNames } from './readiness.ts'

function manualClock() {
  let now = 0
  let timers: { at: number; work: () => void }[] = []
  const clock: Clock = {
    now: () => Date.UTC(2026, 0, 1) + now,
    monotonic: () => now,
    after(ms, work) {
      const timer = { at: now + ms, work }
      timers.push(timer)
      return () => {
        timers = timers.filter((other) => other !== timer)
      }
    },
  }
  return {
    clock,
    pending: () => timers.length,
    async advance(ms: number) {
      now += ms
      const due = timers.filter((timer) => timer.at <= now)
      timers = timers.filter((timer) => timer.at > now)
      for (const timer of due) timer.work()
      await new Promise(setImmediate)
    },
  }
}

/** A probe that answers when told. */
function scripted(name: string, kind: Probe['kind'] = 'provider') {
  const runs: { signal: AbortSignal; answer: (seen: Observation) => void; fail: (error: Error) => void }[] = []
  const probe: Probe = {
    name,
    kind,
    display_name: name.toUpperCase(),
    run: (signal) => new Promise((answer, fail) => runs.push({ signal, answer, fail })),
  }
  return { probe, runs, last: () => runs[runs.length - 1] ?? assert.fail('no run') }
}

const settled = () => new Promise(setImmediate)
const patient = () => new AbortController().signal
const fixed = (name: string, kind: Probe['kind'], seen: Observation): Probe => ({
  name,
  kind,
  display_name: name,
  run: async () => seen,
})

test('the first read answers unknown at once and starts a probe; the next one has what it saw', async () => {
  const { clock, advance } = manualClock()
  const claude = scripted('claude')
  await using readiness = createReadiness({ clock, probes: [claude.probe] })
  assert.deepEqual(readiness.read(['claude']), [
    { name: 'claude', kind: 'provider', display_name: 'CLAUDE', status: 'unknown' },
  ])
  await advance(1000)
  claude.last().answer({ status: 'needs_auth', detail: 'why' })
  await settled()
  assert.deepEqual(readiness.read(['claude']), [
    {
      name: 'claude',
      kind: 'provider',
      display_name: 'CLAUDE',
      status: 'needs_auth',
      detail: 'why',
      observed_at: '2026-01-01T00:00:01.000Z',
    },
  ])
  assert.equal(claude.runs.length, 1)
})

test('a read starts a probe only when the last one is older than 30 s, and still answers with the old one', async () => {
  const { clock, advance } = manualClock()
  const git = scripted('git', 'tool')
  await using readiness = createReadiness({ clock, probes: [git.probe] })
  readiness.read(['git'])
  git.last().answer({ status: 'configured' })
  await settled()
  await advance(30_000)
  readiness.read(['git'])
  assert.equal(git.runs.length, 1)
  await advance(1)
  assert.equal(readiness.read(['git'])[0]?.status, 'configured')
  assert.equal(git.runs.length, 2)
})

test('one probe per item, whoever asks (I1), and items run side by side', async () => {
  const { clock } = manualClock()
  const [a, b] = [scripted('a'), scripted('b')]
  await using readiness = createReadiness({ clock, probes: [a.probe, b.probe] })
  readiness.read(['a'])
  const first = readiness.refresh(['a', 'b'], patient())
  const second = readiness.refresh(['b'], patient())
  assert.deepEqual([a.runs.length, b.runs.length], [1, 1])
  b.last().answer({ status: 'configured' })
  assert.equal((await second)[0]?.status, 'configured')
  a.last().answer({ status: 'not_installed' })
  assert.deepEqual(
    (await first).map((item) => item.status),
    ['not_installed', 'configured'],
  )
})

test('fresh means fresh: a refresh probes although the last observation is young', async () => {
  const { clock } = manualClock()
  const a = scripted('a')
  await using readiness = createReadiness({ clock, probes: [a.probe] })
  for (const status of ['needs_auth', 'configured'] as const) {
    const refreshed = readiness.refresh(['a'], patient())
    a.last().answer({ status })
    assert.equal((await refreshed)[0]?.status, status)
  }
  assert.equal(a.runs.length, 2)
})

test('a probe that hangs is an error after 5 s and is told to stop (I2)', async () => {
  const { clock, advance, pending } = manualClock()
  const a = scripted('a')
  await using readiness = createReadiness({ clock, probes: [a.probe] })
  const refreshed = readiness.refresh(['a'], patient())
  await advance(4999)
  assert.equal(a.last().signal.aborted, false)
  await advance(1)
  const [item] = await refreshed
  assert.deepEqual([item?.status, item?.detail], ['probe_error', 'probe did not finish in 5s'])
  assert.ok(a.last().signal.aborted)
  a.last().answer({ status: 'configured' })
  await settled()
  assert.deepEqual([readiness.read(['a'])[0]?.status, pending()], ['probe_error', 0])
})

test('a probe that throws is an observation (I2)', async () => {
  const { clock } = manualClock()
  const sync: Probe = {
    name: 'sync',
    kind: 'tool',
    display_name: 'Sync',
    run() {
      throw new Error('at once')
    },
  }
  const later: Probe = { ...sync, name: 'later', run: () => Promise.reject(new Error('later')) }
  await using readiness = createReadiness({ clock, probes: [sync, later] })
  const seen = await readiness.refresh(['sync', 'later'], patient())
  assert.deepEqual(
    seen.map((item) => [item.status, item.detail]),
    [
      ['probe_error', 'at once'],
      ['probe_error', 'later'],
    ],
  )
})

test('a caller that gives up ends its own wait only (I3)', async () => {
  const { clock } = manualClock()
  const a = scripted('a')
  await using readiness = createReadiness({ clock, probes: [a.probe] })
  const controller = new AbortController()
  const leaving = readiness.refresh(['a'], controller.signal)
  const staying = readiness.refresh(['a'], patient())
  controller.abort(new Error('gone'))
  await assert.rejects(leaving, /gone/)
  assert.equal(a.last().signal.aborted, false)
  a.last().answer({ status: 'configured' })
  assert.equal((await staying)[0]?.status, 'configured')
})

test('closing ends probes and starts none', async () => {
  const { clock, pending } = manualClock()
  const a = scripted('a')
  const readiness = createReadiness({ clock, probes: [a.probe] })
  readiness.read(['a'])
  await readiness[Symbol.asyncDispose]()
  assert.ok(a.last().signal.aborted)
  assert.equal(readiness.read(['a'])[0]?.status, 'unknown')
  assert.deepEqual([a.runs.length, pending()], [1, 0])
})

test('names are trimmed and said once; the order of the question is kept', () => {
  const known = new Set(['git', 'claude', 'codex'])
  const cases: [string, string[]][] = [
    ['git', ['git']],
    [' codex ,git,, codex', ['codex', 'git']],
  ]
  for (const [text, names] of cases) assert.deepEqual(parseNames('items', text, known), names)
})

test('an unknown name is refused with the exact words', () => {
  const known = new Set(['claude'])
  const cases = [
    ['items', 'claude,x', 'x'],
    ['providers', 'git', 'git'],
    ['items', ' ,', ' ,'],
    ['items', '__proto__', '__proto__'],
    ['items', 'Claude', 'Claude'],
  ] as const
  for (const [parameter, text, value] of cases) {
    assert.throws(
      () => parseNames(parameter, text, known),
      (error) => {
        assert.ok(error instanceof Problem)
        assert.equal(error.detail, `invalid: unsupported ${parameter} value "${value}"`)
        assert.deepEqual(
          error.options.errors?.map((detail) => detail.location),
          [`query.${parameter}`],
        )
        return error.status === 400
      },
    )
  }
})

test('git is needed, and where it is missing its place says so', async () => {
  const { clock } = manualClock()
  await using none = createReadiness({ clock, probes: [fixed('git', 'tool', { status: 'not_installed' })] })
  const missing = await none.checkHost(patient())
  assert.deepEqual(
    missing.map(({ location }) => location),
    ['host.git'],
  )
  assert.match(missing[0]?.message ?? '', /^git is not installed: /)
})

test('a tool that is there, or that could not be looked at, is not called missing', async () => {
  const { clock } = manualClock()
  for (const status of ['configured', 'probe_error'] as const) {
    await using readiness = createReadiness({ clock, probes: [fixed('git', 'tool', { status })] })
    assert.deepEqual(await readiness.checkHost(patient()), [])
  }
})

test('a provider that is not ready is a problem that says why', async () => {
  const { clock } = manualClock()
  const probes = [
    fixed('codex', 'provider', { status: 'needs_auth', detail: 'missing ~/.codex/auth.json' }),
    fixed('shell', 'provider', { status: 'configured' }),
  ]
  await using readiness = createReadiness({ clock, probes })
  assert.equal(await readiness.providerProblem('shell', patient()), undefined)
  const refused = await readiness.providerProblem('codex', patient())
  assert.equal(refused?.status, 503)
  assert.equal(
    refused?.detail,
    'provider_not_ready: provider codex is not ready: needs_auth (missing ~/.codex/auth.json)',
  )
  assert.equal(refused?.options.errors?.[0]?.location, 'body.provider')
})
