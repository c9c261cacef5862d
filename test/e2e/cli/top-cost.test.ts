// What the live view costs who looks at it: fifty agents that are busy all the time, and events without end.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import type { ServerResponse } from 'node:http'
import { test } from 'node:test'
import { answerJson, frame, openStream, scriptedServer } from '../../support/cli-server.ts'
import { eventually } from '../../support/http.ts'
import { TestTerminal } from '../../support/terminal.ts'

const AGENTS = 50
const EVENTS_PER_SECOND = 50
/** So many looks at each session are measured. */
const ROUNDS = 5
/** Of a core; a few are what it takes, more is what a machine that does other things as well may show. */
const MOST_PERCENT = 12
const TICKS_PER_SECOND = 100

const AT = '2026-05-01T10:00:00.000Z'
const list = (items: readonly unknown[]) => ({ items, total: items.length })
const city = { name: 'alpha', uid: 'a', path: '/a', running: true, status: 'running', host: 'h', observed_at: AT }
const status = {
  ...{ name: 'alpha', path: '/a', version: '1', uptime_sec: 5, suspended: false, running: AGENTS, observed_at: AT },
  agents: { total: AGENTS, running: AGENTS, suspended: 0, quarantined: 0 },
  rigs: { total: 0, suspended: 0 },
  work: { open: 7, in_progress: 2, ready: 3 },
  mail: { total: 0, unread: 0 },
  events: { head_seq: 9, oldest_seq: 1, bytes: 100 },
  config: { revision: 'r', loaded_at: AT },
}
const session = (index: number, more: object = {}) => ({
  id: `s-${String(index).padStart(16, '0')}`,
  ...{
    kind: 'agent',
    template: 'worker',
    state: 'active',
    desired: 'running',
    agent: `worker-${index}`,
    title: 'Work',
  },
  ...{ provider: 'shell', session_name: `w${index}`, runtime: 'subprocess', origin: 'ephemeral', pool: 'worker' },
  ...{ created_at: AT, updated_at: AT, state_since: AT, running: true, liveness: 'alive', observed_at: AT },
  ...{ attached: false, pinned: false, queued: 0, generation: 1, crash_count: 0, revision: 1, activity: 'in-turn' },
  ...{ active_bead: `al-${index}`, work_dir: '/a', pid: 1000 + index, options: { model: 'x' } },
  ...{ submission_capabilities: { supports_follow_up: true, supports_interrupt_now: true } },
  ...more,
})
const TYPES = ['bead.updated', 'session.delivery', 'worker.operation', 'session.updated', 'bead.claimed']

test('fifty busy agents cost it a few percent of a core', { timeout: 120_000 }, async (t) => {
  let looks = 0
  let reads = 0
  await using server = await scriptedServer((request, response) => {
    const { pathname: path, searchParams: query } = new URL(request.url, 'http://host')
    if (path === '/v0/cities') return answerJson(response, 200, list([city]))
    if (path === '/v0/events') return answerJson(response, 200, { ...list([]), event_cursor: 'alpha:1' })
    if (path === '/v0/events/stream') return flood(response)
    if (path.endsWith('/status')) return answerJson(response, 200, status)
    if (path.endsWith('/sessions')) {
      reads += 1
      return answerJson(response, 200, list(Array.from({ length: AGENTS }, (_, at) => session(at))))
    }
    if (path.includes('/sessions/') && query.get('peek') === 'true') {
      looks += 1
      const words = `✔ ${looks} checks passed — 測試 ${'x'.repeat(looks % 60)}`
      return answerJson(response, 200, session(Number(path.slice(-16)), { last_output: words, last_active: AT }))
    }
    answerJson(response, 200, list([]))
  })
  const env = { SVC_HOME: '/nonexistent/svc-home', SVC_API: server.url }
  await using terminal = new TestTerminal(['top'], { env, columns: 160, rows: 70 })
  await terminal.shows(/checks passed/)
  const [from, before] = [performance.now(), ticksOf(terminal.pid)]
  const [looksBefore, readsBefore, bytesBefore] = [looks, reads, terminal.raw.length]
  await eventually('it has looked often enough', () => looks > looksBefore + ROUNDS * AGENTS || undefined, 90_000)
  const seconds = (performance.now() - from) / 1000
  const ticks = ticksOf(terminal.pid) - before
  const share = ((ticks / TICKS_PER_SECOND) * 100) / seconds
  t.diagnostic(
    `${share.toFixed(1)} % of a core over ${seconds.toFixed(1)} s: ${looks - looksBefore} looks, ${reads - readsBefore} lists, ${terminal.raw.length - bytesBefore} bytes drawn`,
  )
  assert.ok(share < MOST_PERCENT, `${share} %`)
  // A read of everything for every event would be a flood of its own.
  assert.ok(reads - readsBefore < 3 * seconds, `${reads - readsBefore} lists in ${seconds} s`)
})

/** Events, evenly, until the reader has gone. */
function flood(response: ServerResponse): void {
  openStream(response)
  let seq = 1
  const timer = setInterval(() => {
    seq += 1
    const type = TYPES[seq % TYPES.length]
    const event = {
      seq,
      type,
      ts: AT,
      actor: 'worker',
      subject: `al-${seq % AGENTS}`,
      city: 'alpha',
      payload: { session: session(1) },
    }
    response.write(frame(`alpha:${seq}`, event, 'tagged_event'))
  }, 1000 / EVENTS_PER_SECOND)
  response.on('close', () => clearInterval(timer))
}

/** Time on a processor, of a process and its kernel. */
function ticksOf(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, 'latin1')
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return Number(fields[11]) + Number(fields[12])
}
