// Rate limits of agents that live: from the protocol and from logs, never from a screen. Real processes, over HTTP.
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test } from 'node:test'
import { outcome, run } from '../../support/running.ts'
import { newSessionCity } from '../../support/session-api.ts'

test('what is sent to a limited agent waits, says why, and is typed when the limit ends', {
  timeout: 90_000,
}, async () => {
  await using running = await run()
  const city = await newSessionCity(running, 'alpha')
  const id = await city.startTalker()
  await city.message(id, 'fail-data HTTP 429: Too many requests. Please try again in 6s.')
  const limited = await city.until(id, 'is limited', ({ limited_until: until }) => until !== undefined)
  // At once: the limit is short.
  const { request_id: request } = await city.done('POST', `/sessions/${id}/messages`, { message: 'say later' })
  const told = await outcome(running.api, String(request))
  assert.equal((await city.get(id)).queued, 1)
  assert.equal(told.status, 'succeeded')
  assert.equal(limited.limit_source, 'protocol')
  assert.match(limited.limit_message ?? '', /Too many requests/)
  const [event] = await city.events('session.rate_limited', { subject: id })
  assert.equal(event?.payload.limited_until, limited.limited_until)
  const results = await city.events('request.result.session.message', { subject: id })
  assert.deepEqual(
    results.flatMap(({ payload }) => (payload.request_id === request ? [[payload.queued, payload.waits_for]] : [])),
    [[true, 'rate_limit']],
  )
  await city.until(
    id,
    'is limited no more, and has nothing queued',
    (one) => one.limited_until === undefined && one.queued === 0,
  )
  const ended = await city.events('session.rate_limit_ended', { subject: id })
  assert.deepEqual(
    ended.map(({ payload }) => payload.reason),
    ['time'],
  )
})

const CLAUDE = `#!/bin/sh
stty -echo; echo ready
while IFS= read -r line; do
  case "$line" in
    end*) echo 'expected 429, too many requests; try again in 30 days'; exit 1 ;;
    limit*) printf '  \\342\\216\\277  You'"'"'ve hit your limit \\302\\267 try again in 2 hours\\n' ;;
    *) echo "heard $line" ;;
  esac
done
`

test('words about a limit on a screen hold nobody: not those of a message, and not those of a program that ends', {
  timeout: 90_000,
}, async () => {
  await using running = await run()
  const city = await newSessionCity(running, 'alpha')
  city.write('claude', CLAUDE, 0o755)
  await city.configure(`[providers.claude]
base = "builtin:claude"
command = ${JSON.stringify(join(city.dir, 'claude'))}
args = []
prompt_mode = "omit"
delivery = "line"
ready_prompt_prefix = ""
ready_delay_ms = 0
`)
  const id = await city.start({ name: 'claude' })
  await city.message(id, 'limit')
  await city.message(id, 'next')
  await city.until(id, 'has nothing queued', ({ queued }) => queued === 0)
  await city.done('POST', `/sessions/${id}/messages`, { message: 'end' })
  const ended = await city.until(id, 'has crashed', ({ last_exit: exit }) => exit !== undefined)
  assert.equal(ended.last_exit?.classification, 'crash')
  assert.match(ended.last_exit?.output ?? '', /expected 429, too many requests; try again in 30 days$/)
  assert.notEqual(ended.state, 'quarantined')
  assert.deepEqual(await city.events('session.rate_limited'), [])
})

/** Its limit, and its answers, are in its log alone. */
const LOGGING = `#!/bin/sh
key=none
while [ $# -gt 0 ]; do case $1 in --session-id|--resume) key=$2 ;; esac; shift; done
dir="$CLAUDE_CONFIG_DIR/projects/$(pwd -P | tr -c 'A-Za-z0-9\\n' -)"
mkdir -p "$dir"
stty -echo; echo ready
n=0
while IFS= read -r line; do
  n=$((n + 1)); now=$(date -u +%Y-%m-%dT%H:%M:%S.%3NZ)
  case "$line" in
    limit*) printf '{"type":"assistant","timestamp":"%s","isApiErrorMessage":true,"message":{"id":"e%s","content":[{"type":"text","text":"You have hit your limit, try again in 2 hours"}]}}\\n' "$now" "$n" >> "$dir/$key.jsonl" ;;
    *) printf '{"type":"assistant","timestamp":"%s","message":{"id":"m%s","model":"m","content":[],"usage":{"input_tokens":1,"output_tokens":1}}}\\n' "$now" "$n" >> "$dir/$key.jsonl" ;;
  esac
  echo "done"
done
`

test('a limit that the log of a harness tells of ends with the next turn that succeeds', {
  timeout: 90_000,
}, async () => {
  await using running = await run()
  const city = await newSessionCity(running, 'alpha')
  city.write('claude', LOGGING, 0o755)
  await city.configure(`[providers.claude]
base = "builtin:claude"
command = ${JSON.stringify(join(city.dir, 'claude'))}
args = []
prompt_mode = "omit"
delivery = "line"
ready_prompt_prefix = ""
ready_delay_ms = 0
[providers.claude.env]
CLAUDE_CONFIG_DIR = ${JSON.stringify(join(city.dir, '.claude'))}
`)
  const id = await city.start({ name: 'claude' })
  await city.message(id, 'limit')
  const limited = await city.until(id, 'is limited', ({ limited_until: until }) => until !== undefined)
  assert.equal(limited.limit_source, 'log')
  assert.match(limited.limit_message ?? '', /try again in 2 hours/)
  await city.done('POST', `/sessions/${id}/messages`, { message: 'waits' })
  assert.equal((await city.get(id)).queued, 1)

  // A person who sits at its terminal goes on, and is answered.
  const typed = await city.send('POST', `/sessions/${id}/terminal/input`, { viewer: 'ann', seq: 1, text: 'go on\r' })
  assert.equal(typed.status, 200, typed.text)
  await city.until(
    id,
    'is limited no more, and has nothing queued',
    (one) => one.limited_until === undefined && one.queued === 0,
  )
  const [ended] = await city.events('session.rate_limit_ended', { subject: id })
  assert.equal(ended?.payload.reason, 'output')
})
