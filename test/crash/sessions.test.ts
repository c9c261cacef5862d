/**
 * Agents, hosts and supervisors die at any moment: nobody is told anything twice, nothing that was accepted
 * is forgotten, and nothing runs that belongs to nobody.
 *
 *   SVC_SEED=123 n26 --test test/crash/sessions.test.ts     the same chances again
 *   SVC_SOAK=1                                              two minutes of killing, and 60 aimed strikes
 */
import assert from 'node:assert/strict'
import { existsSync, type FSWatcher, statSync, watch } from 'node:fs'
import { dirname, join } from 'node:path'
import { test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import type { RuntimeName } from '../../src/contract/sessions/session-model.ts'
import { kill } from '../support/city-processes.ts'
import { type Random, seededRandom } from '../support/random.ts'
import { ChaosCity, type Talk } from '../support/session-chaos.ts'

const SOAK = process.env['SVC_SOAK'] === '1'
const CHAOS_MS = SOAK ? 120_000 : 30_000
const SESSIONS = 30
const STRIKES = SOAK ? 60 : 8
const RUNTIMES: readonly RuntimeName[] = ['subprocess', 'acp']
/** So many supervisors at most may go one after the other before what waits was accepted. */
const SHORT_LIVES = 4
const STRIKE_MS = 5_000
/** No person types so many. */
const LAST_LINE = 9_999

const timeout = CHAOS_MS + 400_000

test(`${SESSIONS} sessions survive ${CHAOS_MS / 1000} s of kill -9`, { timeout }, async (t) => {
  const random = seededRandom()
  t.diagnostic(`SVC_SEED=${random.seed}`)
  await using city = await new ChaosCity().start()
  for (let i = 0; i < SESSIONS; i++) await city.create(RUNTIMES[i % RUNTIMES.length] ?? 'subprocess', `agent-${i}`)
  const over = AbortSignal.timeout(CHAOS_MS)
  const kills = new Map<string, number>()
  await Promise.all([
    ...city.talks.map((talk) => tell(city, talk, random, over)),
    disturb(city, random, over, kills),
    killProcesses(city, random, over, kills),
    killSupervisors(city, random, over, kills),
  ])
  await city.comesToRest()
  await city.everyProcessBelongs()
  const messages = await city.everyMessageIsAccountedFor()
  const lines = city.peopleTypedOnce()
  await city.runningTerminalsTakeALine(LAST_LINE)
  assert.ok(city.peopleTypedOnce() > lines, 'no terminal runs that a person could type into')
  const requests = await city.everyRequestEndsOnce()
  t.diagnostic(JSON.stringify({ requests, messages, lines, kills: Object.fromEntries(kills) }))
  for (const victim of ['agent', 'host', 'supervisor'])
    assert.ok((kills.get(victim) ?? 0) > 0, `no ${victim} was killed`)
  assert.ok((messages['delivered'] ?? 0) > SESSIONS, 'the load was no load')
  await city.closesWithoutTrace()
  await city.stopSupervisor()
})

test('a strike between the typing of a message and its record loses nothing and repeats nothing', {
  timeout,
}, async (t) => {
  const random = seededRandom()
  t.diagnostic(`SVC_SEED=${random.seed}`)
  await using city = await new ChaosCity().start()
  for (const runtime of RUNTIMES) await city.create(runtime, runtime)
  await city.comesToRest()
  const struck = new Map<string, number>()
  for (let round = 0; round < STRIKES; round++) {
    // One supervisor serves them all: one of them may bring it down.
    const first = random.pick(city.talks)
    const moments = await Promise.all(city.talks.map((talk) => aimedStrike(city, talk, random, talk === first)))
    for (const moment of moments) struck.set(moment, (struck.get(moment) ?? 0) + 1)
    await city.comesToRest()
  }
  await city.everyProcessBelongs()
  const messages = await city.everyMessageIsAccountedFor()
  const requests = await city.everyRequestEndsOnce()
  t.diagnostic(JSON.stringify({ requests, messages, struck: Object.fromEntries(struck) }))
  await city.closesWithoutTrace()
  await city.stopSupervisor()
})

/** One who talks to one session, without waiting for anything but the 202. */
async function tell(city: ChaosCity, talk: Talk, random: Random, over: AbortSignal): Promise<void> {
  while (!over.aborted) {
    await city.say(talk)
    await pause(random.between(50, 1_500))
  }
}

/** People at terminals, some of whom go in the middle of a line, bots, interrupts, suspensions: all at once, at random. */
async function disturb(city: ChaosCity, random: Random, over: AbortSignal, kills: Map<string, number>): Promise<void> {
  const terminals = city.talks.filter(({ runtime }) => runtime !== 'acp')
  const people = Array.from({ length: 4 }, async (_, person) => {
    for (let n = 1; !over.aborted; n++) {
      const talk = random.pick(terminals) ?? assert.fail()
      if (random.chance(0.1)) await city.leaveHalfLine(talk, person * 1_000 + n)
      else await city.typeAsPerson(talk, person * 1_000 + n)
      await pause(random.between(50, 500))
    }
  })
  const others = async () => {
    while (!over.aborted) {
      await pause(random.between(100, 700))
      const chance = random.next()
      if (chance < 0.3) void city.watch(random.pick(terminals) ?? assert.fail(), random.between(100, 2_000))
      else if (chance < 0.6) await city.ask(random.pick(terminals) ?? assert.fail(), 'keys')
      else {
        const verb = chance < 0.85 ? 'stop' : 'suspend'
        await city.ask(random.pick(city.talks) ?? assert.fail(), verb)
        kills.set(verb, (kills.get(verb) ?? 0) + 1)
      }
    }
  }
  await Promise.all([...people, others()])
}

async function killProcesses(
  city: ChaosCity,
  random: Random,
  over: AbortSignal,
  kills: Map<string, number>,
): Promise<void> {
  while (!over.aborted) {
    await pause(random.between(100, 700))
    const { victim, pid } = aim(city, random)
    if (pid !== undefined && kill(pid)) kills.set(victim, (kills.get(victim) ?? 0) + 1)
  }
}

function aim({ processes }: ChaosCity, random: Random): { readonly victim: string; readonly pid: number | undefined } {
  const chance = random.next()
  if (chance < 0.3) return { victim: 'host', pid: random.pick(processes.hosts())?.pid }
  if (chance < 0.35) return { victim: 'attendant', pid: random.pick(processes.attendants())?.pid }
  return { victim: 'agent', pid: random.pick(processes.agents())?.pid }
}

async function killSupervisors(
  city: ChaosCity,
  random: Random,
  over: AbortSignal,
  kills: Map<string, number>,
): Promise<void> {
  for (let lives = 1; ; lives++) {
    await pause(random.between(500, 5_000))
    // Where none lives long enough to take its city over, as on a busy machine, nothing that is said is ever accepted.
    if (lives % SHORT_LIVES === 0) await city.accepts()
    if (over.aborted) return
    await city.killSupervisor()
    kills.set('supervisor', (kills.get('supervisor') ?? 0) + 1)
  }
}

type Moment = 'intent' | 'effect'

/** Says something, and kills at the very moment when it is about to be typed, or when its agent has got it. */
async function aimedStrike(city: ChaosCity, talk: Talk, random: Random, all: boolean): Promise<string> {
  const moment: Moment = random.chance(0.5) ? 'intent' : 'effect'
  const victims = all ? ['supervisor', 'supervisor', 'host', 'agent'] : ['host', 'agent']
  const victim = random.pick(victims) ?? 'agent'
  const traces = await city.runDirectory(talk)
  const trace = moment === 'effect' ? talk.file : join(traces, 'deliveries.jsonl')
  const pids = victimsOf(city, talk, victim)
  const restarted = Promise.withResolvers<void>()
  const strike = () => {
    for (const pid of pids) kill(pid)
    if (victim === 'supervisor') void city.killSupervisor().then(restarted.resolve, restarted.reject)
    else restarted.resolve()
  }
  const seen = whenWritten(trace, strike)
  await city.say(talk)
  const hit = await seen
  // A message that went elsewhere, or that nobody typed: then nobody is struck.
  if (hit) await restarted.promise
  return `${moment} ${victim}${hit ? '' : ' (missed)'}`
}

function victimsOf({ processes, supervisorPid }: ChaosCity, { id }: Talk, victim: string): readonly number[] {
  if (victim === 'supervisor') return [supervisorPid]
  if (victim === 'agent')
    return processes
      .roots()
      .filter((one) => one.session_id === id)
      .map(({ pid }) => pid)
  return processes
    .hosts()
    .filter((one) => one.session_id === id)
    .map(({ pid }) => pid)
}

/** Calls `act` at once when the file is there or grows; false where that does not happen in time. */
function whenWritten(path: string, act: () => void): Promise<boolean> {
  const size = () => (existsSync(path) ? (statSync(path, { throwIfNoEntry: false })?.size ?? 0) : -1)
  const before = size()
  return new Promise((resolve) => {
    let watcher: FSWatcher | undefined
    const end = (hit: boolean) => {
      clearTimeout(timer)
      watcher?.close()
      resolve(hit)
    }
    const timer = setTimeout(() => end(false), STRIKE_MS)
    watcher = watch(dirname(path), () => {
      if (size() <= before) return
      act()
      end(true)
    })
  })
}
