// Logs that harnesses write by themselves, followed while they are found, replaced and cut. Programs that write such logs
// stand in for the harnesses.
import assert from 'node:assert/strict'
import { appendFileSync, readdirSync, renameSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { at } from '../../support/document.ts'
import { eventually } from '../../support/http.ts'
import { type Running, run } from '../../support/running.ts'
import { newSessionCity, type SessionApi, sessionPath } from '../../support/session-api.ts'
import { openStream, type SseReader } from '../../support/sse.ts'

/** Answers every line, and keeps a log of it under the key that it was given. */
const CLAUDE = `#!/bin/sh
key=none
while [ $# -gt 0 ]; do case $1 in --session-id|--resume) key=$2 ;; esac; shift; done
dir="$CLAUDE_CONFIG_DIR/projects/$(pwd -P | tr -c 'A-Za-z0-9\\n' -)"
mkdir -p "$dir"
stty -echo; echo ready
while IFS= read -r line; do
  printf '{"type":"user","message":{"content":"%s"}}\\n' "$line" >> "$dir/$key.jsonl"
  printf '{"type":"assistant","message":{"content":[{"type":"text","text":"heard %s"}]}}\\n' "$line" >> "$dir/$key.jsonl"
done
`
/** Makes up its key, unless it resumes one. */
const CODEX = `#!/bin/sh
key=$(cat /proc/sys/kernel/random/uuid); now=$(date -u +%Y-%m-%dT%H:%M:%SZ)
[ "$1" = resume ] && key=$2
[ "$1" = resume ] && [ -e "$CODEX_HOME/forgetful" ] && { echo "no conversation $key"; exit 1; }
dir="$CODEX_HOME/sessions/$(date -u +%Y/%m/%d)"
mkdir -p "$dir"; log="$dir/rollout-x-$key.jsonl"
[ -e "$log" ] || printf '{"type":"session_meta","payload":{"id":"%s","cwd":"%s","timestamp":"%s"}}\\n' "$key" "$(pwd -P)" "$now" > "$log"
stty -echo; echo "$1 $key"
while IFS= read -r line; do
  [ "$line" = fall ] && exit 3
  printf '{"type":"response_item","payload":{"type":"message","role":"assistant","content":[{"type":"output_text","text":"%s heard %s"}]}}\\n' "$1" "$line" >> "$log"
done
`
const provider = (name: string, variable: string, root: string) => `[providers.${name}]
base = "builtin:${name}"
command = ${JSON.stringify(join(root, `${name}.sh`))}
args = []
prompt_mode = "omit"
delivery = "line"
ready_prompt_prefix = ""
ready_delay_ms = 0
option_defaults = { permission_mode = "unrestricted" }
[providers.${name}.env]
${variable} = ${JSON.stringify(join(root, `.${name}`))}
`

describe('logs of harnesses', () => {
  let running: Running
  let city: SessionApi
  before(async () => {
    running = await run()
    city = await newSessionCity(running, 'alpha')
    city.write('claude.sh', CLAUDE, 0o755)
    city.write('codex.sh', CODEX, 0o755)
    symlinkSync(city.dir, join(running.work, 'by-another-name'))
    await city.configure(provider('claude', 'CLAUDE_CONFIG_DIR', city.dir) + provider('codex', 'CODEX_HOME', city.dir))
  })
  after(() => running[Symbol.asyncDispose]())

  const follow = (id: string, last?: string): Promise<SseReader> =>
    openStream(city.api, `${city.base}${sessionPath(id)}/stream?format=structured`, {
      headers: last === undefined ? {} : { 'last-event-id': last },
    })

  test('a client is told when the log is found, replaced or cut, and holds what it says', async () => {
    const id = await city.start({ name: 'claude', work_dir: join(running.work, 'by-another-name') })
    await using stream = await follow(id)
    await stream.until(() => held(stream).includes('ready\n'))
    await city.message(id, 'one')
    await stream.until(() => held(stream).at(-1) === 'heard one')
    assert.deepEqual([held(stream), resets(stream)], [['one', 'heard one'], ['stream_changed']])

    const [project = ''] = readdirSync(join(city.dir, '.claude', 'projects'))
    const directory = join(city.dir, '.claude', 'projects', project)
    const log = join(directory, String(readdirSync(directory)[0]))
    writeFileSync(`${log}.new`, `${line('it was')}${line('another story')}${line('and a longer one')}`)
    renameSync(`${log}.new`, log)
    await stream.until(() => held(stream).at(-1) === 'and a longer one')
    assert.deepEqual(held(stream), ['it was', 'another story', 'and a longer one'])
    assert.equal(resets(stream).at(-1), 'history_rewritten')

    truncateSync(log, Buffer.byteLength(line('it was')))
    await stream.until(() => held(stream).length === 1)
    appendFileSync(log, line('again').slice(0, 20))
    appendFileSync(log, line('again').slice(20))
    await stream.until(() => held(stream).length === 2)
    assert.deepEqual(held(stream), ['it was', 'again'])
    const last = stream.frames.findLast(({ id: place }) => place !== undefined)?.id
    await using resumed = await follow(id, last)
    appendFileSync(log, line('more'))
    await resumed.until(() => held(resumed).length > 0)
    assert.deepEqual([held(resumed), resets(resumed)], [['more'], []])
    await city.forget(id)
  })

  test('a key that only the log tells is the one that the next run resumes by', async () => {
    const id = await city.start({ name: 'codex' })
    await city.message(id, 'one')
    await city.said(id, ' heard one')
    const key = await eventually('its key is known', async () => {
      const { history } = await city.transcript(id, '', 'structured')
      return history?.provider_session_id
    })
    await city.message(id, 'fall')
    await city.until(id, 'runs again', ({ generation, state }) => generation === 2 && state === 'active')
    await city.message(id, 'two')
    const all = await city.said(id, 'resume heard two')
    assert.ok(all.includes(' heard one'), all)
    const { history } = await city.transcript(id, '', 'structured')
    assert.equal(history?.provider_session_id, key)
    await city.forget(id)
  })

  test('a harness that does not know its conversation any more begins a new one', async () => {
    city.write('apart/.keep', '')
    const id = await city.start({ name: 'codex', work_dir: 'apart' })
    await city.message(id, 'one')
    await city.said(id, ' heard one')
    await eventually('its key is known', async () => {
      const { history } = await city.transcript(id, '', 'structured')
      return history?.provider_session_id
    })
    city.write('.codex/forgetful', '')
    await city.message(id, 'fall')
    const session = await city.until(id, 'runs again', ({ generation, state }) => generation > 1 && state === 'active')
    assert.equal(session.generation, 3)
    city.remove('.codex/forgetful')
    await city.forget(id)
  })
})

const line = (text: string) =>
  `${JSON.stringify({ type: 'assistant', message: { content: [{ type: 'text', text }] } })}\n`

const bodies = (stream: SseReader): readonly unknown[] =>
  stream.frames.filter(({ event }) => event === 'structured').map(({ data }) => JSON.parse(data))

const resets = (stream: SseReader): readonly unknown[] =>
  bodies(stream).flatMap((body) => (at(body, 'operation') === 'reset' ? [at(body, 'reset_reason')] : []))

/** The texts that a client holds: a snapshot or a reset takes the place of everything before. */
function held(stream: SseReader): readonly string[] {
  let messages = new Map<string, string>()
  for (const body of bodies(stream)) {
    if (at(body, 'operation') !== 'upsert') messages = new Map()
    const list = at(body, 'structured_messages')
    assert.ok(Array.isArray(list))
    for (const message of list) messages.set(String(at(message, 'id')), String(at(message, 'blocks', 0, 'text')))
  }
  return [...messages.values()]
}
