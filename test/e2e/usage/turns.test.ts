// What turns cost, from the agent protocol and from logs that harnesses write: real processes, over HTTP.
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test } from 'node:test'
import { asMap, at } from '../../support/document.ts'
import { assertProblem, eventually } from '../../support/http.ts'
import { cityIs, run, runAgain } from '../../support/running.ts'
import { newSessionCity, SessionApi } from '../../support/session-api.ts'

const recorded = async (city: SessionApi, id: string) =>
  (await city.events('usage.recorded', { subject: id })).map(({ payload }) => payload)

const recordedTimes = (city: SessionApi, id: string, times: number) =>
  eventually(`${times} turns of ${id} are recorded`, async () => {
    const all = await recorded(city, id)
    return all.length >= times ? all : undefined
  })

const body = async (city: SessionApi, path: string) => asMap((await city.send('GET', path)).body)
const list = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : [])

const PRICES = `[[pricing]]
model = "talk-*"
input = 3
output = 15.5
`

test('a turn over the agent protocol is recorded once, priced, and added up everywhere', {
  timeout: 90_000,
}, async () => {
  await using running = await run()
  const city = await newSessionCity(running, 'alpha')
  await city.configure(PRICES)
  const id = await city.startTalker({ options: {} })
  await city.message(id, 'say one')
  const [turn] = await recordedTimes(city, id, 1)
  assert.deepEqual(
    [turn?.model, turn?.input, turn?.output, turn?.cost_usd, turn?.source],
    ['unknown', 7, 1, undefined, 'protocol'],
  )
  // Nobody knows the price of a model that nobody named: absent, never 0.
  const session = await city.get(id)
  assert.deepEqual(session.usage, { turns: 1, input: 7, output: 1, cache_read: 0, cache_write: 0, unpriced_turns: 1 })

  await city.message(id, 'works talk-2\nsay two')
  await city.message(id, 'say three')
  const all = await recordedTimes(city, id, 3)
  assert.deepEqual(
    all.map(({ model, cost_usd: cost, cost_source: by }) => [model, cost, by]),
    [
      ['unknown', undefined, undefined],
      ['talk-2', '0.0000755', 'prices'],
      ['talk-2', '0.0000425', 'prices'],
    ],
  )
  for (const by of ['session', 'agent', 'model', 'day']) {
    const { items, sum, total } = await body(city, `/usage?by=${by}`)
    assert.equal(at(sum, 'turns'), 3, by)
    assert.equal(at(sum, 'cost_usd'), '0.000118', by)
    assert.equal(total, by === 'model' ? 2 : 1)
    assert.equal(
      list(items).reduce<number>((turns, item) => turns + Number(at(item, 'turns')), 0),
      3,
    )
  }
  const models = list((await body(city, '/usage?by=model')).items)
  assert.deepEqual(
    models.map((item) => at(item, 'key')),
    ['talk-2', 'unknown'],
  )
  assert.equal(list((await body(city, '/usage?by=session&since=1h')).items).length, 1)
  assert.equal(list((await body(city, '/usage?by=session&until=1h')).items).length, 0)
  const mine = await body(city, `/sessions/${id}/usage?limit=2`)
  assert.equal(mine.total, 3)
  assert.equal(list(mine.items).length, 2)
  const rest = await body(city, `/sessions/${id}/usage?limit=2&cursor=${encodeURIComponent(String(mine.next_cursor))}`)
  assert.equal(list(rest.items).length, 1)
})

test('what the agent says that it cost counts, not the prices of the city', { timeout: 90_000 }, async () => {
  await using running = await run()
  const city = await newSessionCity(running, 'alpha')
  await city.configure(PRICES)
  const id = await city.startTalker()
  await city.message(id, 'works talk-2\nusage 10 100 0.1\nsay one')
  await city.message(id, 'usage 20 100 0.3\nsay two')
  const all = await recordedTimes(city, id, 2)
  assert.deepEqual(
    all.map(({ cost_usd: cost, cost_source: by }) => [cost, by]),
    [
      ['0.10', 'harness'],
      ['0.20', 'harness'],
    ],
  )
})

/** Answers every line; its log tells the tokens of each, in two lines that belong together. */
const CLAUDE = `#!/bin/sh
key=none
while [ $# -gt 0 ]; do case $1 in --session-id|--resume) key=$2 ;; esac; shift; done
dir="$CLAUDE_CONFIG_DIR/projects/$(pwd -P | tr -c 'A-Za-z0-9\\n' -)"
mkdir -p "$dir"
stty -echo; echo ready
n=0
while IFS= read -r line; do
  n=$((n + 1)); now=$(date -u +%Y-%m-%dT%H:%M:%SZ)
  for out in 1 40; do
    printf '{"type":"assistant","timestamp":"%s","requestId":"r%s","message":{"id":"msg_%s_%s","model":"claude-x","content":[{"type":"text","text":"heard %s"}],"usage":{"input_tokens":10,"output_tokens":%s,"cache_read_input_tokens":1000,"cache_creation_input_tokens":5}}}\\n' "$now" "$n" "$key" "$n" "$line" "$out" >> "$dir/$key.jsonl"
  done
  echo "heard $line"
done
`
const claude = (root: string) => `[[pricing]]
model = "claude-*"
input = 3
output = 15
cache_read = 0.3
cache_write = 3.75
[providers.claude]
base = "builtin:claude"
command = ${JSON.stringify(join(root, 'claude.sh'))}
args = []
prompt_mode = "omit"
delivery = "line"
ready_prompt_prefix = ""
ready_delay_ms = 0
[providers.claude.env]
CLAUDE_CONFIG_DIR = ${JSON.stringify(join(root, '.claude'))}
`

test('turns in the log of a harness count once, whatever is killed between them and their record', {
  timeout: 120_000,
}, async () => {
  await using first = await run()
  let city = await newSessionCity(first, 'alpha')
  city.write('claude.sh', CLAUDE, 0o755)
  await city.configure(claude(city.dir))
  const id = await city.start({ name: 'claude' })
  await city.message(id, 'one')
  const [turn] = await recordedTimes(city, id, 1)
  assert.deepEqual(
    [turn?.model, turn?.input, turn?.output, turn?.cache_read, turn?.cache_write, turn?.cost_usd, turn?.source],
    ['claude-x', 10, 40, 1000, 5, '0.00094875', 'log'],
  )
  // Killed before anybody looked at the log again.
  await city.message(id, 'two')
  await first.server.kill('SIGKILL')
  await using second = await runAgain(first.server.home)
  await cityIs(second.api, 'alpha', 'running')
  city = new SessionApi(second.api, 'alpha', city.dir)
  await recordedTimes(city, id, 2)
  await city.message(id, 'three')
  const all = await recordedTimes(city, id, 3)
  assert.deepEqual(
    all.map(({ key }) => String(key).split('_').at(-1)),
    ['1', '2', '3'],
  )
  assert.equal((await city.get(id)).usage?.output, 120)
})

/** Keeps a log of its answers in the file that it is told; of crush nothing is known to tell them. */
const AIDER = `#!/bin/sh
stty -echo; echo ready
while IFS= read -r line; do
  printf '{"event": "message_send", "properties": {"main_model": "openai/REDACTED", "prompt_tokens": 70, "completion_tokens": 8, "cost": 0.002}, "time": %s}\\n' "$(date +%s)" >> "$AIDER_ANALYTICS_LOG"
  echo "heard $line"
done
`
const silent = (root: string) =>
  ['aider', 'crush']
    .map(
      (name) => `[providers.${name}]
base = "builtin:${name}"
command = ${JSON.stringify(name === 'aider' ? join(root, 'aider.sh') : 'cat')}
args = []
prompt_mode = "omit"
delivery = "line"
ready_prompt_prefix = ""
`,
    )
    .join('')

test('a harness that logs where it is told to is counted by its runs, and one that tells nothing is said not to be', {
  timeout: 90_000,
}, async () => {
  await using running = await run()
  const city = await newSessionCity(running, 'alpha')
  city.write('aider.sh', AIDER, 0o755)
  await city.configure(silent(city.dir))
  const id = await city.start({ name: 'aider', options: { model: 'sonnet' } })
  await city.message(id, 'one')
  await recordedTimes(city, id, 1)
  await city.done('POST', `/sessions/${id}/kill`)
  await city.until(id, 'runs again', ({ generation, state }) => generation === 2 && state === 'active')
  await city.message(id, 'two')
  const all = await recordedTimes(city, id, 2)
  assert.deepEqual(
    all.map(({ model, input, output, cost_usd: cost, source }) => [model, input, output, cost, source]),
    Array.from({ length: 2 }, () => ['sonnet', 70, 8, '0.002', 'log']),
  )

  const crush = await city.start({ name: 'crush' })
  const counted = async (which: string) => (await body(city, `/sessions/${which}/usage`)).counted
  assert.deepEqual([await counted(id), await counted(crush)], [true, false])
  assert.deepEqual((await body(city, '/usage')).uncounted, [crush])
  await city.done('POST', `/sessions/${crush}/report`, { usage: { input: 5, output: 1 } })
  assert.equal(await counted(crush), true)
  assert.deepEqual((await body(city, '/usage')).uncounted, [])
})

test('what is reported under one id counts once, also when many report it at once', { timeout: 90_000 }, async () => {
  await using running = await run()
  const city = await newSessionCity(running, 'alpha')
  const id = await city.start({ name: 'bash' })
  const report = (key: string) =>
    city.send('POST', `/sessions/${id}/report`, {
      usage: { id: key, model: 'm', input: 5, output: 1, cost_usd: '0.1' },
    })
  const answers = await Promise.all(Array.from({ length: 40 }, (_, n) => report(`turn-${n % 10}`)))
  assert.deepEqual([...new Set(answers.map(({ status }) => status))], [200])
  const { usage } = await city.get(id)
  assert.deepEqual([usage?.turns, usage?.input, usage?.cost_usd], [10, 50, '1.00'])
  assert.equal((await recorded(city, id)).length, 10)

  await city.done('POST', `/sessions/${id}/report`, { rate_limit: { message: 'slow down' } })
  assert.equal((await city.get(id)).limit_source, 'report')
  await city.done('POST', `/sessions/${id}/report`, { rate_limit: null })
  assert.equal((await city.get(id)).limited_until, undefined)
})

test('a time that is none, and counts that no turn has, are refused by their field and spoil no sum', {
  timeout: 90_000,
}, async () => {
  await using running = await run()
  const city = await newSessionCity(running, 'alpha')
  const id = await city.start()
  for (const [since, status] of [
    ['2w', 422],
    ['99999999999d', 422],
    ['2026-02-31', 422],
    ['2026-11-22T25:00:00Z', 422],
    ['0', 200],
    ['1.5h', 200],
    ['2026-11-22', 200],
    ['2026-11-22T10:00:00Z', 200],
  ] as const) {
    const answer = await city.send('GET', `/usage?since=${since}`)
    assert.equal(answer.status, status, `${since}: ${answer.text}`)
    if (status === 422) assert.match(answer.text, /query\.since/)
  }
  const report = (usage: object) => city.send('POST', `/sessions/${id}/report`, { usage })
  for (const usage of [
    { input: Number.MAX_SAFE_INTEGER, output: 1 },
    { input: 1, output: 1, cost_usd: '999999999.999999999999' },
    { input: 1, output: 1, model: '' },
  ])
    assertProblem(await report(usage), 'validation-failed')
  for (let n = 0; n < 3; n++)
    assert.equal((await report({ input: 1e9, output: 1e9, cost_usd: '9999.999999999999' })).status, 200)
  assert.equal(at(await body(city, '/usage?by=session'), 'sum', 'cost_usd'), '30000.00')
})
