/**
 * Supervisors die at any moment while orders run commands that append a line: every run that was begun has its line, and no
 * run has two; every event sets off one run; what is told of a run is told once.
 *
 *   SVC_SEED=123 n26 --test test/crash/orders.test.ts     the same chances again
 *   SVC_SOAK=1                                            100 deaths
 */
import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { tokensIn } from '../../src/runtimes/process/process-tree.ts'
import { listAll, tryCall } from '../support/crash-client.ts'
import { asMap, at } from '../support/document.ts'
import { eventually } from '../support/http.ts'
import { seededRandom } from '../support/random.ts'
import { run, runAgain } from '../support/running.ts'
import { newSessionCity, SessionApi } from '../support/session-api.ts'

const ROUNDS = process.env['SVC_SOAK'] === '1' ? 100 : 8
const REST_MS = 120_000

const order = (trigger: string, more = '') => `[order]
${trigger}
exec = '''
cat > "$SVC_CITY_PATH/said/$SVC_RUN_ID.$$"
sleep 0.$(( $$ % 4 ))
printf '%s\\n' "$SVC_RUN_ID" >> "$SVC_CITY_PATH/lines"
'''
${more}`

const ORDERS = {
  'orders/by-hand.toml': order('trigger = "manual"', 'overlap = "allow"'),
  'orders/by-event.toml': order('trigger = "event"\non = "note.made"\nbatch = false'),
  'orders/by-time.toml': order('trigger = "cooldown"\ninterval = "1s"'),
}

test(`orders that append have one line per run over ${ROUNDS} times kill -9`, { timeout: 1_200_000 }, async (t) => {
  const random = seededRandom()
  t.diagnostic(`SVC_SEED=${random.seed}`)
  await using first = await run()
  const city = await newSessionCity(first, 'alpha')
  await city.configure('', { ...ORDERS, 'said/.keep': '' })
  const { home } = first.server
  const { base, dir } = city
  await first.server.kill('SIGKILL')

  let asked = 0
  for (let round = 0; round < ROUNDS; round++) {
    await using again = await runAgain(home)
    const { url } = again.server
    const over = AbortSignal.timeout(random.between(200, 1_700))
    const bother = async (path: string, body: () => object) => {
      while (!over.aborted) {
        const answer = await tryCall(url, 'POST', `${base}${path}`, { body: body() })
        // It may not be up yet.
        if (answer !== undefined && answer.status < 300) asked++
        await pause(random.between(5, 60))
      }
    }
    const load = [
      bother('/orders/by-hand/run', () => ({})),
      bother('/orders/by-hand/run', () => ({})),
      bother('/events', () => ({ type: 'note.made', actor: 'a-test', payload: { n: asked } })),
    ]
    await new Promise((resolve) => over.addEventListener('abort', resolve, { once: true }))
    await again.server.kill('SIGKILL')
    await Promise.all(load)
  }

  await using last = await runAgain(home)
  const { url } = last.server
  const after = new SessionApi(last.api, 'alpha', dir)
  await eventually('the city runs', async () =>
    (await after.send('GET', '/orders')).status === 200 ? true : undefined,
  )
  await after.done('POST', '/orders/by-time/disable')
  const notes = (await listAll(url, `${base}/events?type=note.made&order=asc`)).map((event) => Number(event['seq']))
  const runs = () => listAll(url, `${base}/orders/history`)
  const ended = await eventually(
    'all runs are over',
    async () => {
      const all = await runs()
      const handled = all.filter((one) => one['name'] === 'by-event' && one['status'] === 'succeeded')
      const live = all.filter((one) => one['status'] === 'running')
      return live.length === 0 && handled.length >= notes.length ? all : undefined
    },
    REST_MS,
  )
  const lines = readFileSync(join(dir, 'lines'), 'utf8').trim().split('\n')
  t.diagnostic(JSON.stringify({ asked, notes: notes.length, runs: ended.length, lines: lines.length }))
  assert.ok(asked > ROUNDS, 'the load was no load')
  assert.deepEqual(
    ended.filter((one) => one['status'] !== 'succeeded'),
    [],
    'every run succeeded: whatever the supervisor died of, its command ran on',
  )
  assert.equal(new Set(lines).size, lines.length, 'no run has two lines')
  assert.deepEqual(lines.toSorted(), ended.map((one) => String(one['id'])).toSorted(), 'every run has one')

  // What each run was handed, and how often it was begun.
  const said = readdirSync(join(dir, 'said')).filter((name) => name !== '.keep')
  const begun = said.map((name) => name.slice(0, name.lastIndexOf('.')))
  assert.deepEqual(begun.toSorted(), lines.toSorted(), 'each was begun once')
  const byEvent = new Set(ended.filter((one) => one['name'] === 'by-event').map((one) => String(one['id'])))
  const seqs = said.flatMap((name) => {
    if (!byEvent.has(name.slice(0, name.lastIndexOf('.')))) return []
    const { event } = asMap(JSON.parse(readFileSync(join(dir, 'said', name), 'utf8')))
    return [Number(asMap(event)['seq'])]
  })
  assert.deepEqual(
    seqs.toSorted((a, b) => a - b),
    notes,
    'each event set off one run',
  )

  // What is told of them.
  for (const type of ['order.fired', 'order.completed']) {
    const told = await listAll(url, `${base}/events?type=${type}&order=asc`)
    const ids = told.map((event) => at(event, 'payload', 'run_id'))
    assert.deepEqual(ids.toSorted(), lines.toSorted(), `${type} once per run`)
  }
  await eventually('no file of a command is left', () =>
    readdirSync(join(dir, '.svc/runtime/exec')).length === 0 ? true : undefined,
  )
  assert.equal(tokensIn(dir).size, 0, 'no process is left')
})
