/** The actor of a city on a clock that stands still, with start-up work that hangs, fails and is preempted (W1–W4). */

import assert from 'node:assert/strict'
import { mkdirSync, renameSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { ManualClock, settled } from '../../../test/support/manual-clock.ts'
import { fc } from '../../../test/support/random.ts'
import { temporaryDirectory } from '../../../test/support/temporary.ts'
import type { RequestOperation } from '../../contract/event-types.ts'
import { migrationsOf } from '../../kernel/database.ts'
import { StartFailure } from '../../kernel/family.ts'
import { problem } from '../../kernel/problem.ts'
import { openStore, STORE_SCHEMA, type Store } from '../../kernel/store.ts'
import { LogStream } from '../../kernel/streams/log-stream.ts'
import { type CityRecord, cityFromRow } from './city.ts'
import { CITY_MIGRATIONS, openCityStore } from './city-store.ts'
import { REGISTRY_SCHEMA, Registry } from './registry.ts'
import { CityWorker, type PhaseHook } from './worker.ts'

const silent = { error: () => {}, warn: () => {}, info: () => {}, debug: () => {}, isLevelEnabled: () => false }
const framing = { frame: () => '', batch: () => Buffer.alloc(0) }

interface World extends AsyncDisposable {
  readonly clock: ManualClock
  readonly city: CityRecord
  readonly worker: CityWorker
  readonly supervisor: Store
  readonly states: string[]
  readonly departed: string[]
  accept(operation: RequestOperation): Promise<string>
  want(wanted: 'running' | 'stopped'): Promise<void>
  unregister(): Promise<string>
  outcome(id: string): string
  /** The store of the supervisor refuses so many writes. */
  fillDisk(writes: number): void
  /** Types in the log of the city. */
  events(): readonly string[]
}

let count = 0

/** What fails on the way. */
interface Faults {
  readonly opening?: () => void
  readonly changing?: () => void
}

async function world(
  hooks: readonly PhaseHook[],
  desired: 'running' | 'stopped' = 'running',
  faults: Faults = {},
): Promise<World> {
  const directory = temporaryDirectory()
  const clock = new ManualClock()
  const supervisor = openStore({
    path: join(directory.path, 's.db'),
    migrations: migrationsOf('supervisor', `${STORE_SCHEMA}${REGISTRY_SCHEMA}`),
    owner: 'test',
    clock,
  })
  const registry = new Registry(supervisor)
  const path = join(directory.path, 'alpha')
  mkdirSync(path)
  const store = await openCityStore(path, 'alpha', clock, CITY_MIGRATIONS)
  const row = await supervisor.db.write((tx) => {
    const added = registry.add(tx, { name: 'alpha', uid: store.uid, path, registeredAt: 1, startHead: 0 }, clock.now())
    registry.setDesired(tx, 'alpha', desired)
    return added
  })
  const city = cityFromRow({ ...row, desired }, clock.now())
  city.store = store
  city.stream = new LogStream(store.log, framing, clock)
  const states: string[] = []
  const departed: string[] = []
  const worker = new CityWorker(city, {
    clock,
    log: silent,
    supervisor,
    registry,
    stores: {
      open: () => Promise.reject(new StartFailure('city_store_lost', 'it cannot be opened again')),
      stream: () => assert.fail('the stream is there'),
      announce: () => {},
    },
    open: () => {
      faults.opening?.()
      return { hooks, agentsEnded: 0, leave: () => Promise.resolve() }
    },
    openMended: () => assert.fail('nobody mends it'),
    random: () => 0,
    changed: ({ state }) => {
      states.push(state)
      faults.changing?.()
    },
    departed: ({ name }) => departed.push(name),
    configTime: () => 1,
  })
  const accept = async (operation: RequestOperation): Promise<string> => {
    const id = `req-${String(++count).padStart(24, '0')}`
    await supervisor.db.write((tx) =>
      supervisor.requests.accept(tx, { id, operation, city: 'alpha', eventCursor: '0', input: {} }),
    )
    return id
  }
  return {
    clock,
    city,
    worker,
    supervisor,
    states,
    departed,
    accept,
    async want(wanted) {
      await supervisor.db.write((tx) => registry.setDesired(tx, 'alpha', wanted))
      city.wanted = wanted
    },
    async unregister() {
      const id = await accept('city.unregister')
      await supervisor.db.write((tx) => registry.depart(tx, 'alpha', id, store.log.head, clock.now()))
      city.wanted = 'gone'
      city.departure = id
      worker.steer()
      return id
    },
    fillDisk(writes) {
      const write = supervisor.db.write.bind(supervisor.db)
      let left = writes
      Object.assign(supervisor.db, {
        write: (work: Parameters<typeof write>[0]) => {
          left--
          return left < 0 ? write(work) : Promise.reject(problem('unavailable', 'the disk is full'))
        },
      })
    },
    outcome(id) {
      const found = supervisor.requests.get(id)
      return found?.status === 'failed' ? `failed: ${found.error_code}` : String(found?.status)
    },
    events: () => store.log.scan({}, { after: 0, upTo: store.log.head }, 'asc', 1_000).events.map(({ type }) => type),
    async [Symbol.asyncDispose]() {
      await worker.close()
      store.db.close()
      supervisor.db.close()
      directory[Symbol.dispose]()
    },
  }
}

/** Start-up work under the test's hand. */
function gate(phase: PhaseHook['phase'] = 'adopting_sessions') {
  const seen = { runs: 0, stops: 0, aborted: 0 }
  let opened = Promise.withResolvers<void>()
  const hook: PhaseHook = {
    phase,
    async run(_city, signal) {
      seen.runs++
      signal.addEventListener('abort', () => seen.aborted++)
      await opened.promise
    },
    stop() {
      seen.stops++
    },
  }
  return {
    hook,
    seen,
    open: () => opened.resolve(),
    fail: (error: Error) => {
      // Nobody may be waiting for it at the moment.
      opened.promise.catch(() => {})
      opened.reject(error)
    },
    again: () => {
      opened = Promise.withResolvers<void>()
    },
  }
}

test('a start goes through the phases in order, is running, and only then ends its request (W4)', async () => {
  await using it = await world([])
  const id = await it.accept('city.create')
  let runningAtTheEnd: boolean | undefined
  it.supervisor.log.onCommit((events) => {
    if (events.some(({ type }) => type === 'request.result.city.create')) runningAtTheEnd = it.city.state === 'running'
  })
  it.worker.poke()
  await settled()
  assert.deepEqual(it.states, [
    'loading_config',
    'starting_bead_store',
    'resolving_formulas',
    'adopting_sessions',
    'starting_agents',
    'running',
  ])
  assert.equal(it.outcome(id), 'succeeded')
  assert.equal(runningAtTheEnd, true)
  assert.deepEqual(it.events(), ['city.started'])
})

test('one step at a time: pokes while a phase runs start nothing twice (W1)', async () => {
  const slow = gate()
  await using it = await world([slow.hook])
  for (let i = 0; i < 5; i++) {
    it.worker.poke()
    await settled()
  }
  assert.equal(slow.seen.runs, 1)
  slow.open()
  await settled()
  assert.equal(it.city.state, 'running')
  assert.equal(slow.seen.runs, 1)
})

test('a stop aborts a start that hangs, and fails its request as stopped (W2)', async () => {
  const hung = gate()
  await using it = await world([hung.hook])
  const id = await it.accept('city.start')
  it.worker.poke()
  await settled()
  assert.equal(it.city.state, 'adopting_sessions')
  await it.want('stopped')
  it.worker.steer()
  await settled()
  assert.equal(hung.seen.aborted, 1)
  assert.equal(it.city.state, 'stopped')
  assert.equal(it.outcome(id), 'failed: stopped')
  assert.deepEqual(it.events(), [], 'it never ran, so nothing says that it stopped')
})

test('an unregister preempts a start that hangs: the create fails as unregistered, the unregister succeeds (W2, W4)', async () => {
  const hung = gate()
  await using it = await world([hung.hook])
  const create = await it.accept('city.create')
  it.worker.poke()
  await settled()
  const unregister = await it.unregister()
  await settled()
  assert.equal(it.outcome(create), 'failed: unregistered')
  assert.equal(it.outcome(unregister), 'succeeded')
  assert.deepEqual(it.departed, ['alpha'])
  assert.equal(it.city.state, 'stopped')
})

test('a start that was overtaken by a stop before it began ends too, also where a crash came in between', async () => {
  await using it = await world([], 'stopped')
  const id = await it.accept('city.restart')
  it.worker.poke()
  await settled()
  assert.equal(it.outcome(id), 'failed: stopped')
  assert.equal(it.city.state, 'stopped')
})

test('a start that fails is tried again after 10 s, 20 s, …, and its request fails once, saying so', async () => {
  const failing: PhaseHook = {
    phase: 'loading_config',
    run: () => {
      throw new StartFailure('city_config_failed', 'city.toml:1:1: no')
    },
  }
  await using it = await world([failing])
  const id = await it.accept('city.create')
  it.worker.poke()
  await settled()
  assert.equal(it.outcome(id), 'failed: city_config_failed')
  assert.deepEqual([it.city.state, it.city.attempts], ['init_failed', 1])
  await it.clock.advance(9_999)
  assert.equal(it.city.attempts, 1)
  await it.clock.advance(1)
  assert.equal(it.city.attempts, 2)
  await it.clock.advance(19_999)
  assert.equal(it.city.attempts, 2)
  await it.clock.advance(1)
  assert.equal(it.city.attempts, 3)
  assert.deepEqual(it.events(), ['city.start_failed', 'city.start_failed', 'city.start_failed'])
  it.worker.retryNow()
  await settled()
  assert.equal(it.city.attempts, 4, 'a new request does not wait for the back-off')
})

test('a start that succeeds after failures forgets them', async () => {
  const flaky = gate()
  await using it = await world([flaky.hook])
  it.worker.poke()
  await settled()
  flaky.fail(problem('unavailable', 'the disk is full'))
  await settled()
  assert.equal(it.city.state, 'init_failed')
  assert.equal(it.city.error, 'unavailable: the disk is full')
  assert.equal(flaky.seen.stops, 1, 'what had begun was ended')
  flaky.again()
  flaky.open()
  await it.clock.advance(10_000)
  assert.deepEqual([it.city.state, it.city.attempts, it.city.error], ['running', 0, undefined])
})

test('a start has ten minutes, then it fails as startup_timeout', async () => {
  const hung = gate()
  await using it = await world([hung.hook])
  const id = await it.accept('city.create')
  it.worker.poke()
  await settled()
  await it.clock.advance(599_999)
  assert.equal(it.city.state, 'adopting_sessions')
  await it.clock.advance(1)
  assert.equal(it.city.state, 'init_failed')
  assert.equal(it.outcome(id), 'failed: startup_timeout')
})

test('a part that does not stop is left behind after 30 s, and an unregister says that it was not clean', async () => {
  const stubborn: PhaseHook = { phase: 'starting_agents', run: () => {}, stop: () => new Promise(() => {}) }
  await using it = await world([stubborn])
  it.worker.poke()
  await settled()
  const id = await it.unregister()
  await settled()
  assert.equal(it.city.state, 'stopping')
  await it.clock.advance(30_000)
  await it.clock.advance(30_000)
  assert.equal(it.outcome(id), 'failed: city_unregister_failed')
  assert.deepEqual(it.departed, ['alpha'])
})

test('a part that stops too slowly never stops what the next start has begun', async () => {
  const slow = Promise.withResolvers<void>()
  const order: string[] = []
  const part: PhaseHook = {
    phase: 'starting_agents',
    run: () => void order.push('run'),
    stop: () => {
      order.push('stop')
      return slow.promise.then(() => void order.push('stopped'))
    },
  }
  await using it = await world([part])
  it.worker.poke()
  await settled()
  await it.want('stopped')
  it.worker.steer()
  await settled()
  await it.clock.advance(30_000)
  assert.equal(it.city.state, 'stopped', 'it is given up after 30 s')
  await it.want('running')
  it.worker.retryNow()
  await settled()
  assert.deepEqual(order, ['run', 'stop'], 'the next run waits')
  slow.resolve()
  await it.worker.until(({ state }) => state === 'running', AbortSignal.timeout(10_000))
  assert.deepEqual(order, ['run', 'stop', 'stopped', 'run'])
})

test('parts are stopped in the reverse of the order they started in, each even where another fails', async () => {
  const order: string[] = []
  const part = (name: string, fails = false): PhaseHook => ({
    phase: 'starting_agents',
    run: () => void order.push(`+${name}`),
    stop: () => {
      order.push(`-${name}`)
      if (fails) throw new Error(name)
    },
  })
  await using it = await world([part('a'), part('b', true), part('c')])
  it.worker.poke()
  await settled()
  await it.want('stopped')
  it.worker.steer()
  await settled()
  assert.deepEqual(order, ['+a', '+b', '+c', '-c', '-b', '-a'])
  assert.deepEqual(it.events(), ['city.started', 'city.stopped'])
})

test('a restart stops and starts once, and ends when the city runs again', async () => {
  await using it = await world([])
  it.worker.poke()
  await settled()
  const id = await it.accept('city.restart')
  it.city.restart = true
  it.worker.retryNow()
  await settled()
  assert.equal(it.outcome(id), 'succeeded')
  assert.deepEqual(it.events(), ['city.started', 'city.stopped', 'city.started'])
})

test('a lost directory stops the city without writing to it; when it is back its log says why', async () => {
  const there = gate('loading_config')
  there.open()
  await using it = await world([there.hook])
  it.worker.poke()
  await settled()
  there.again()
  there.fail(new StartFailure('city_directory_missing', 'city directory is missing'))
  it.worker.directoryLost()
  await settled()
  assert.equal(it.city.state, 'init_failed')
  there.again()
  there.open()
  await it.clock.advance(30_000)
  assert.equal(it.city.state, 'running')
  assert.deepEqual(
    it.events().filter((type) => type !== 'city.start_failed'),
    ['city.started', 'city.stopped', 'city.started'],
  )
})

test('waiting for a state ends with the state, with the caller, or at once where the caller is gone already', async () => {
  const slow = gate()
  await using it = await world([slow.hook])
  it.worker.poke()
  const caller = new AbortController()
  const patient = it.worker.until(({ state }) => state === 'running', new AbortController().signal)
  const impatient = it.worker.until(({ state }) => state === 'running', caller.signal)
  caller.abort(new Error('gone'))
  await assert.rejects(impatient, /gone/)
  await assert.rejects(
    it.worker.until(({ state }) => state === 'running', caller.signal),
    /gone/,
  )
  slow.open()
  await patient
})

test('closing ends a start that hangs, writes nothing, and leaves no timer', async () => {
  const hung = gate()
  const it = await world([hung.hook])
  const id = await it.accept('city.create')
  it.worker.poke()
  await settled()
  await it.worker.close()
  assert.equal(it.clock.pending, 0)
  assert.equal(it.outcome(id), 'accepted', 'the next supervisor goes on with it')
  assert.deepEqual(it.events(), [])
  await it[Symbol.asyncDispose]()
})

test('whatever is asked in whatever order, every accepted request ends once and the city ends as last asked', {
  timeout: 120_000,
}, async () => {
  const ask = fc.constantFrom('start', 'stop', 'restart', 'poke', 'turn', 'open', 'fail', 'hang', 'time', 'lost')
  await fc.assert(
    fc.asyncProperty(fc.array(ask, { maxLength: 12 }), fc.boolean(), async (asks, leaves) => {
      const part = gate()
      await using it = await world([part.hook])
      const accepted: string[] = []
      const ended: string[] = []
      it.supervisor.log.onCommit((events) => {
        for (const { type, envelope } of events)
          if (type.startsWith('request.')) ended.push(String(JSON.parse(envelope).payload.request_id))
      })
      for (const one of asks) {
        if (one === 'start' || one === 'restart') {
          accepted.push(await it.accept(one === 'start' ? 'city.start' : 'city.restart'))
          await it.want('running')
          if (one === 'restart' && it.city.state === 'running') it.city.restart = true
          it.worker.retryNow()
        } else if (one === 'stop') {
          await it.want('stopped')
          it.city.restart = false
          it.worker.steer()
        } else if (one === 'poke') it.worker.poke()
        else if (one === 'turn') await settled()
        else if (one === 'open') part.open()
        else if (one === 'fail') part.fail(new StartFailure('city_init_failed', 'no'))
        else if (one === 'hang') part.again()
        else if (one === 'lost') it.worker.directoryLost()
        else await it.clock.advance(45_000)
      }
      if (leaves) accepted.push(await it.unregister())
      part.open()
      part.again()
      part.open()
      it.worker.poke()
      for (let i = 0; i < 4; i++) await it.clock.advance(700_000)
      assert.deepEqual(ended.toSorted(), accepted.toSorted())
      assert.deepEqual(it.supervisor.requests.unfinished(), [])
      assert.equal(it.city.state, leaves || it.city.wanted === 'stopped' ? 'stopped' : 'running')
    }),
    { numRuns: 60 },
  )
})

test('every failing path of a 202 about a city ends in exactly one terminal event, whatever else fails on the way', {
  timeout: 120_000,
}, async () => {
  const eacces = () => Object.assign(new Error('EACCES: permission denied, stat'), { code: 'EACCES' })
  const place = fc.constantFrom('open', 'run', 'stop', 'changed', 'log', 'directory', 'disk')
  const operation = fc.constantFrom('city.create', 'city.start', 'city.restart', 'city.unregister')
  await fc.assert(
    fc.asyncProperty(fc.uniqueArray(place, { minLength: 1, maxLength: 4 }), operation, async (places, asked) => {
      const broken = new Set<string>(places)
      const fails = (what: string) => {
        if (broken.has(what)) throw eacces()
      }
      await using it = await world(
        [
          {
            phase: 'adopting_sessions',
            run: () => fails('run'),
            stop: () => fails('stop'),
          },
        ],
        'running',
        { opening: () => fails('open'), changing: () => fails('changed') },
      )
      const ended: string[] = []
      it.supervisor.log.onCommit((events) => {
        for (const { type, envelope } of events)
          if (type.startsWith('request.')) ended.push(String(JSON.parse(envelope).payload.request_id))
      })
      if (broken.has('directory')) renameSync(it.city.path, `${it.city.path}.away`)
      if (broken.has('log')) it.city.store?.db.close()
      const id = asked === 'city.unregister' ? await it.unregister() : await it.accept(asked)
      // The disk of the supervisor is full for two tries.
      if (broken.has('disk')) it.fillDisk(2)
      if (asked === 'city.restart') it.city.restart = true
      it.worker.retryNow()
      for (let i = 0; i < 6; i++) await it.clock.advance(1_500)
      assert.deepEqual(ended, [id])
      assert.notEqual(it.outcome(id), 'accepted')
    }),
    { numRuns: 80 },
  )
})

test('a read of the ledger that fails ends no process: the step is tried again', async () => {
  await using it = await world([])
  const read = it.supervisor.requests.unfinished.bind(it.supervisor.requests)
  let reads = 0
  Object.assign(it.supervisor.requests, {
    unfinished: (city: string) => {
      reads++
      if (reads <= 2) throw problem('unavailable', 'the store of the supervisor is not available: disk I/O error')
      return read(city)
    },
  })
  const id = await it.accept('city.start')
  it.worker.poke()
  for (let i = 0; i < 6; i++) await it.clock.advance(1_500)
  assert.equal(it.outcome(id), 'succeeded')
})
