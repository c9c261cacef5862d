/**
 * `kill -9` under a molecule of a thousand steps with attempts, items and checks: each attempt is begun and ended once, each
 * command has run once, nothing is lost, and the end is told once.
 *
 *   SVC_SEED=123 n26 --test test/crash/molecules.test.ts     the same choices again
 */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { type ConfigCity, cityAgain, createCity } from '../support/config-city.ts'
import { asMap, at, type Fields } from '../support/document.ts'
import { type Answer, eventually } from '../support/http.ts'
import { type Random, seededRandom } from '../support/random.ts'
import { type RunningSupervisor, startSupervisor } from '../support/supervisor.ts'

const SOAK = process.env['SVC_SOAK'] !== undefined
const KILLS = SOAK ? 100 : 4
/** Rows: the plan, and for each item one and five in it. */
const ITEMS = SOAK ? 165 : 30
const WORKERS = 6
const DONE_MS = 240_000

/** Of these items the first attempt of `make` fails, and of those the check of the first attempt of `try`. */
const failsFirst = (item: number): boolean => item % 5 === 2
const refusedFirst = (item: number): boolean => item % 4 === 1

const CHECK = [
  'echo "$SVC_STEP_ID $SVC_ATTEMPT" >> "$SVC_CITY_PATH/checks"',
  'item=$(echo "$SVC_STEP_ID" | cut -d. -f2)',
  '[ "$SVC_ATTEMPT" -gt 1 ] || [ $((item % 4)) -ne 1 ]',
].join('; ')

const FORMULA = `formula = "big"
title = "Very much"
target = "workers"
[vars.items]
type = "json"
default = []
[[steps]]
id = "plan"
title = "Plan"
output = ["items"]
[[steps]]
id = "parts"
needs = ["plan"]
for_each = { in = "steps.plan.output.items", max_parallel = 20 }
[[steps.children]]
id = "make"
title = "Make {{ item }}"
retry = { max_attempts = 3, backoff = "200ms" }
[[steps.children]]
id = "try"
title = "Try {{ item }}"
needs = ["make"]
retry = { max_attempts = 3, backoff = "100ms" }
check = { exec = '''${CHECK}''', timeout = "2m" }
[[steps.children]]
id = "wait"
needs = ["make"]
gate = { timer = "50ms" }
[[steps.children]]
id = "left"
title = "Left out"
needs = ["make"]
condition = "false"
[[steps.children]]
id = "pack"
title = "Pack {{ item }}"
needs = ["try", "wait", "left"]
[[steps]]
id = "end"
title = "The end"
needs = ["parts"]
`

/** The answer; undefined where the connection broke. */
async function ask(city: ConfigCity, method: string, path: string, body?: object): Promise<Answer | undefined> {
  try {
    return await city.api.call(method, `${city.base}${path}`, body === undefined ? {} : { body })
  } catch (error) {
    if (error instanceof assert.AssertionError) throw error
    return undefined
  }
}

const itemsOf = (answer: Answer | undefined): readonly Fields[] => {
  const items = answer === undefined ? [] : at(answer.body, 'items')
  return Array.isArray(items) ? items.map(asMap) : []
}

/** Does what is ready until the connection breaks, or nothing is left to do. */
async function work(city: ConfigCity, name: string, random: Random, isOver: () => boolean): Promise<void> {
  while (!isOver()) {
    const answer = await ask(city, 'GET', '/beads/ready?limit=40')
    if (answer === undefined) return
    const bead = random.pick(itemsOf(answer))
    if (bead === undefined) await sleep(20)
    else if (!(await doBead(city, name, String(bead['id'])))) return
  }
}

/** False where the connection broke: the bead is claimed, or not, and somebody does it again. */
async function doBead(city: ConfigCity, name: string, id: string): Promise<boolean> {
  const claimed = await ask(city, 'POST', `/beads/${id}/claim`, { assignee: name })
  if (claimed === undefined) return false
  if (claimed.status !== 200) return true
  return close(city, asMap(at(claimed.body, 'bead')))
}

async function close(city: ConfigCity, bead: Fields): Promise<boolean> {
  const step = String(asMap(bead['metadata'])['svc.step_id'])
  const item = Number(/^parts\.(\d+)\.make$/.exec(step)?.[1] ?? 0)
  const fails = failsFirst(item) && bead['attempt'] === 1
  const output = step === 'plan' ? { output: { items: Array.from({ length: ITEMS }, (_, at) => at + 1) } } : {}
  const body = fails ? { outcome: 'fail', reason: 'not this time' } : { outcome: 'pass', ...output }
  return (await ask(city, 'POST', `/beads/${String(bead['id'])}/close`, body)) !== undefined
}

/** What was claimed before a kill is done by who claimed it. */
async function finishClaimed(city: ConfigCity): Promise<void> {
  for (const bead of itemsOf(await ask(city, 'GET', '/beads?status=in_progress&type=task&limit=1000')))
    await close(city, bead)
}

async function all(city: ConfigCity, path: string): Promise<readonly Fields[]> {
  const found: Fields[] = []
  for (let cursor = ''; ; ) {
    const answer = await city.get(`${path}${path.includes('?') ? '&' : '?'}limit=1000${cursor}`)
    assert.equal(answer.status, 200, answer.text)
    found.push(...itemsOf(answer))
    const next = asMap(answer.body)['next_cursor']
    if (next === undefined) return found
    cursor = `&cursor=${encodeURIComponent(String(next))}`
  }
}

test('a molecule survives kills: nothing is doubled, nothing is lost, and its end is told once', {
  timeout: DONE_MS + KILLS * 30_000,
}, async (t) => {
  const random = seededRandom()
  t.diagnostic(`SVC_SEED=${random.seed}`)
  await using first = await startSupervisor()
  let server: RunningSupervisor = first
  let city = await createCity(server, 'alpha')
  try {
    city.write('formulas/big.toml', FORMULA)
    let kills = 0
    for (let round = 1; kills < KILLS; round++) {
      const id = await started(city)
      for (let over = false; !over; ) {
        const goesOn = kills < KILLS
        const working = workAll(city, random, id)
        const ended = goesOn ? Promise.race([working, sleep(random.between(300, SOAK ? 4_000 : 2_500))]) : working
        over = (await ended) === 'over'
        if (over) break
        await server.kill('SIGKILL')
        kills++
        await working
        city.api.close()
        server = await startSupervisor({ home: first.home })
        city = await cityAgain(server, 'alpha')
        await finishClaimed(city)
      }
      await assertWhole(city, id)
      t.diagnostic(`molecule ${round} is whole after ${kills} kills`)
    }
  } finally {
    city.api.close()
    await server.kill('SIGKILL')
  }
})

async function started(city: ConfigCity): Promise<string> {
  const answer = await eventually('the formula is known', async () => {
    const tried = await city.post('/molecules', { formula: 'big' })
    return tried.status === 404 ? undefined : tried
  })
  assert.equal(answer.status, 201, answer.text)
  return String(at(answer.body, 'id'))
}

/** 'over' where the molecule has ended; undefined where the connection broke before. */
async function workAll(city: ConfigCity, random: Random, id: string): Promise<'over' | undefined> {
  let status: unknown
  const isOver = () => status === 'completed' || status === 'failed' || status === 'broken'
  const watch = async () => {
    while (!isOver()) {
      const answer = await ask(city, 'GET', `/molecules/${id}`)
      status = answer === undefined ? 'broken' : at(answer.body, 'status')
      await sleep(50)
    }
  }
  const workers = Array.from({ length: WORKERS }, (_, n) => work(city, `worker-${n}`, random, isOver))
  await Promise.all([watch(), ...workers])
  return status === 'broken' ? undefined : 'over'
}

/** Every attempt that there had to be, once; and nothing else. */
async function assertWhole(city: ConfigCity, id: string): Promise<void> {
  const { body: molecule } = await city.get(`/molecules/${id}`)
  assert.equal(at(molecule, 'status'), 'completed', JSON.stringify(molecule))
  const steps = await all(city, `/molecules/${id}/steps`)
  assert.equal(steps.length, 3 + ITEMS * 6)
  const attempts = steps.map(
    ({ id: path, attempt, status }) => [String(path), Number(attempt), String(status)] as const,
  )
  for (const [path, attempt, status] of attempts) {
    const [, item = '0', name] = /^parts\.(\d+)\.(\w+)$/.exec(path) ?? []
    if (name === 'left') assert.deepEqual([attempt, status], [0, 'skipped'], path)
    else {
      const again = (name === 'make' && failsFirst(Number(item))) || (name === 'try' && refusedFirst(Number(item)))
      assert.deepEqual([attempt, status], [again ? 2 : 1, 'completed'], path)
    }
  }
  await assertTold(city, id, attempts)
  assertChecked(city, attempts)
}

type Attempts = readonly (readonly [path: string, attempt: number, status: string])[]

const wanted = (attempts: Attempts, isOne: (path: string) => boolean): readonly string[] =>
  attempts
    .filter(([path]) => isOne(path))
    .flatMap(([path, count]) => Array.from({ length: count }, (_, n) => `${path} ${n + 1}`))
    .sort()

async function assertTold(city: ConfigCity, id: string, attempts: Attempts): Promise<void> {
  const events = (await all(city, `/events?subject=${id}&order=asc`)).map(
    ({ type, payload }) => [String(type), asMap(payload)] as const,
  )
  const told = (wantedType: string) =>
    events
      .filter(([type, { status }]) => type === wantedType && status !== 'skipped')
      .map(([, { step_id, attempt }]) => `${String(step_id)} ${String(attempt)}`)
      .sort()
  assert.equal(events.filter(([type]) => type === 'molecule.resolved').length, 1)
  assert.equal(events.filter(([type]) => type === 'molecule.created').length, 1)
  const bodies = (path: string) => path !== 'parts'
  assert.deepEqual(
    told('execution.step_started').filter((one) => !one.startsWith('parts ')),
    wanted(attempts, bodies),
  )
  assert.deepEqual(
    told('execution.step_completed').filter((one) => !one.startsWith('parts ')),
    wanted(attempts, bodies),
  )
  assert.deepEqual(
    told('execution.check_completed'),
    wanted(attempts, (path) => path.endsWith('.try')),
  )
  assert.equal(new Set(told('gate.closed')).size, ITEMS)
  assert.equal(told('gate.closed').length, ITEMS)
}

/** One line for each run of a check. The file is of all rounds, each of which has the same. */
function assertChecked(city: ConfigCity, attempts: Attempts): void {
  const lines = readFileSync(join(city.dir, 'checks'), 'utf8').trimEnd().split('\n')
  const expected = wanted(attempts, (path) => path.endsWith('.try'))
  assert.equal(lines.length % expected.length, 0, `${lines.length} runs of ${expected.length} checks`)
  const rounds = lines.length / expected.length
  const counts = Map.groupBy(lines, (line) => line)
  for (const line of expected) assert.equal(counts.get(line)?.length, rounds, line)
}
