// The live view as lines, at three widths: what is drawn fits, whatever is in it.
import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { fc } from '../../../test/support/random.ts'
import type { CityInfo, StatusBody } from '../../contract/cities.ts'
import type { Need } from '../../contract/needs.ts'
import type { SessionResponse } from '../../contract/sessions/session-model.ts'
import { widthOf } from '../print/text-width.ts'
import type { Asked } from '../views/needs.ts'
import { draw } from './draw.ts'
import type { City } from './fleet.ts'
import { press } from './keyboard.ts'
import { EMPTY_LINE, type Key, typed } from './keys.ts'
import { rowsOf, type View } from './rows.ts'

const NOW = Date.parse('2026-05-01T10:00:00.000Z')
const ago = (seconds: number) => new Date(NOW - seconds * 1000).toISOString()

const session = (alias: string, more: Partial<SessionResponse> = {}): SessionResponse => ({
  id: `s-${alias}`,
  kind: 'agent',
  template: 'worker',
  state: 'active',
  desired: 'running',
  agent: 'worker',
  title: '',
  alias,
  provider: 'shell',
  session_name: alias,
  runtime: 'subprocess',
  origin: 'manual',
  created_at: ago(3600),
  updated_at: ago(60),
  state_since: ago(180),
  running: true,
  liveness: 'alive',
  observed_at: ago(0),
  attached: false,
  pinned: false,
  queued: 0,
  submission_capabilities: { supports_follow_up: true, supports_interrupt_now: true },
  generation: 1,
  crash_count: 0,
  revision: 1,
  ...more,
})

const info = (name: string, more: Partial<CityInfo> = {}): CityInfo => ({
  ...{ name, uid: name, path: `/cities/${name}`, running: true, status: 'running', host: 'h', observed_at: ago(0) },
  ...more,
})

const status = (name: string, more: Partial<StatusBody> = {}): StatusBody => ({
  ...{ name, path: `/cities/${name}`, version: '1', uptime_sec: 5, suspended: false, running: 2 },
  agents: { total: 3, running: 2, suspended: 0, quarantined: 0 },
  rigs: { total: 0, suspended: 0 },
  work: { open: 7, in_progress: 2, ready: 3 },
  mail: { total: 0, unread: 0 },
  events: { head_seq: 9, oldest_seq: 1, bytes: 100 },
  config: { revision: 'r', loaded_at: ago(900) },
  observed_at: ago(0),
  ...more,
})

const question = (city: string, alias: string): Asked => ({
  ...{ city, session_id: `s-${alias}`, alias, template: 'worker', title: '', since: ago(65), request_id: 'r1' },
  ...{ kind: 'approval', prompt: 'Run rm -rf build', options: ['Allow', 'Reject'], option_ids: ['a', 'r'] },
})

const need = (city: string, alias: string): Need => ({
  ...{ id: `nd-${alias}`, kind: 'approval', severity: 'act', city, since: ago(65), holds_up: 0, operations: [] },
  ...{ subject: { kind: 'session', id: `s-${alias}`, name: alias }, title: `${alias} asks for permission` },
})

const city = (name: string, more: Partial<City> = {}): City => ({
  ...{ info: info(name), status: status(name), sessions: [], agents: [], needs: [], questions: [] },
  ...more,
})

const ALPHA = city('alpha', {
  sessions: [
    session('busy', { activity: 'in-turn', active_bead: 'al-a1b', state_since: ago(42) }),
    session('asker', { activity: 'in-turn', pending: 'r1' }),
    session('名前', { activity: 'idle', state_since: ago(7200) }),
    session('sick', { state: 'quarantined', running: false, reason: 'crash-loop' }),
  ],
  needs: [need('alpha', 'asker')],
  questions: [question('alpha', 'asker')],
})
const BROKEN = city('beta', {
  status: status('beta', {
    work: { open: 0, in_progress: 0, ready: 0 },
    config: {
      ...{ revision: 'r', loaded_at: ago(900) },
      last_error: {
        ...{ revision: 'x', at: ago(60), since: ago(120) },
        issues: [{ file: 'city.toml', line: 4, column: 1, key: 'workspace.x', message: 'no such field' }],
      },
    },
  }),
})
const DOWN = city('gamma', {
  info: info('gamma', { running: false, status: 'init_failed', error: 'disk full' }),
  status: undefined,
})

const view = (more: Partial<View> = {}): View => ({
  fleet: {
    url: 'http://127.0.0.1:8372',
    cities: [ALPHA, BROKEN, DOWN],
    events: [{ seq: 3, type: 'bead.created', ts: ago(5), actor: 'ann', subject: 'al-a1b', city: 'alpha', payload: {} }],
    eventsPerSecond: 4.25,
    outputs: new Map([
      ['alpha s-busy', '$ npm test\n✔ 41 passed\n\n'],
      ['alpha s-名前', 'ready\u001b[2J\u202e'],
    ]),
    lost: undefined,
  },
  ...{ now: NOW, pane: 'sessions', selected: { key: '', at: 0 }, filter: '', city: undefined },
  ...{ entry: undefined, help: false, note: undefined, color: false },
  ...more,
})

// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is taken away.
const STYLES = /\u001b\[\d+m/g
const plain = (lines: readonly string[]) => lines.map((line) => line.replaceAll(STYLES, '').trimEnd())
const drawn = (columns: number, rows: number, more: Partial<View> = {}) =>
  plain(draw(view(more), { columns, rows }).lines)

suite('the live view', () => {
  test('what today costs stands beside the city, and who is limited beside its name', () => {
    const totals = { turns: 3, input: 1, output: 1, cache_read: 0, cache_write: 0, cost_usd: '5.20', unpriced_turns: 0 }
    const budget = { day: '2026-05-01', today: totals, per_day_usd: '5.00', action: 'warn' as const, held_sessions: [] }
    const dear = city('dear', {
      sessions: [session('slow', { activity: 'idle', limited_until: ago(-600) })],
      status: status('dear', { budget: { ...budget, crossed_at: ago(60) } }),
    })
    const lines = drawn(100, 16, { fleet: { ...view().fleet, cities: [dear] } }).join('\n')
    assert.match(lines, /dear {2}running {2}1 session {2}today \$5\.20 of \$5\.00, crossed/)
    assert.match(lines, /slow .*limited/)
  })

  test('mail that nobody has read yet is counted', () => {
    const lines = drawn(100, 8, {
      fleet: { ...view().fleet, cities: [city('busy', { status: status('busy', { mail: { total: 5, unread: 2 } }) })] },
    })
    assert.match(lines[1] ?? '', /needs 0 {3}mail 2 unread/)
    assert.match(lines.join('\n'), /busy {2}running {2}0 sessions {2}mail 2 unread/)
  })

  test('services that do not work are counted', () => {
    const services = { total: 3, ready: 1, degraded: 2 }
    const lines = drawn(100, 8, {
      fleet: { ...view().fleet, cities: [city('busy', { status: status('busy', { services }) })] },
    })
    assert.match(lines.join('\n'), /busy {2}running {2}0 sessions {2}2 services degraded/)
  })

  test('at 80 columns', () => {
    assert.deepEqual(drawn(80, 16, { selected: { key: '', at: 2 } }), [
      'svcctl top   http://127.0.0.1:8372   3 cities   2 with a problem',
      'beads 7 open, 3 ready, 2 in progress' + '   sessions 3 active, 1 quarantined',
      'needs 1   4.3 events/s',
      '[sessions]  needs 1   events',
      '  alpha  running  4 sessions',
      '    asker  needs answer          1m    Run rm -rf build',
      '>   busy   in turn       al-a1b  42s   ✔ 41 passed',
      '    sick   quarantined           3m    crash-loop',
      '    名前   idle                  2h    ready\\x1b[2J\\u202e',
      '  beta  running  0 sessions  configuration rejected 2m ago: city.toml:4: no suc…',
      '  gamma  init_failed  disk full',
      '',
      '',
      '',
      '',
      'enter attach  m message  r answer  / filter  tab pane  c city  ? help  q leave',
    ])
  })

  test('at 40 columns the bead and the time make room', () => {
    assert.deepEqual(drawn(40, 14).slice(4, 11), [
      'needs 1   4.3 events/s',
      '[sessions]  needs 1   events',
      '> alpha  running  4 sessions',
      '    asker  needs answer  Run rm -rf bui…',
      '    busy   in turn       ✔ 41 passed',
      '    sick   quarantined   crash-loop',
      '    名前   idle          ready\\x1b[2J\\u…',
    ])
  })

  test('at 200 columns nothing is cut', () => {
    assert.match(drawn(200, 20).join('\n'), /beta {2}running .*rejected 2m ago: city.toml:4: no such field$/m)
  })

  test('the question of the selected row is shown with its choices', () => {
    const lines = drawn(60, 20, { selected: { key: 'alpha s-asker', at: 0 } })
    assert.deepEqual(lines.slice(-4), [
      'asker asks; answer by number',
      'Run rm -rf build',
      '1 Allow   2 Reject',
      'enter attach  m message  r answer  / filter  tab pane  c ci…',
    ])
  })

  test('of a long question every choice is shown, and the list as well', () => {
    const asked = {
      ...question('alpha', 'asker'),
      prompt: 'x'.repeat(900),
      options: ['Allow', 'Always allow', 'Reject', 'Never'],
    }
    const fleet = { ...view().fleet, cities: [{ ...ALPHA, questions: [asked] }] }
    const lines = drawn(40, 16, { fleet, selected: { key: 'alpha s-asker', at: 0 } })
    assert.ok(lines.includes('1 Allow   2 Always allow   3 Reject') && lines.includes('4 Never'), lines.join('\n'))
    assert.ok(
      lines.some((line) => line.startsWith('>   asker')),
      lines.join('\n'),
    )
  })

  test('the row of a session that failed shows its last words', () => {
    const last_exit = {
      at: ago(9),
      reason: 'exited',
      classification: 'crash',
      code: 1,
      output: 'one\nno licence',
    } as const
    const sick = session('sick', { state: 'quarantined', running: false, reason: 'failed-create', last_exit })
    const fleet = { ...view().fleet, cities: [city('alpha', { sessions: [sick] })] }
    assert.match(drawn(120, 12, { fleet }).join('\n'), /failed-create: exited with 1: no licence/)
  })

  test('needs, events and help have panes of their own', () => {
    assert.match(
      drawn(80, 12, { pane: 'needs' }).join('\n'),
      /^> alpha +asker +1m +Run rm -rf build +1 Allow, 2 Reject$/m,
    )
    assert.match(drawn(80, 12, { pane: 'events' }).join('\n'), /^> 09:59:55 +alpha +bead.created +al-a1b ann$/m)
    assert.match(drawn(80, 20, { help: true }).join('\n'), /^q, ctrl-c +leave$/m)
  })

  test('what is typed has a cursor; a lost server is said', () => {
    const line = [...'go on'].reduce((typing, text) => typed(typing, { key: 'text', text }), EMPTY_LINE)
    const entry = { label: 'message to busy: ', line, purpose: 'filter' } as const
    assert.equal(drawn(80, 12, { entry }).at(-1), 'message to busy: go on')
    const lost = { ...view().fleet, lost: 'connection refused; again in 0.5 s' }
    assert.match(drawn(80, 12, { fleet: lost })[0] ?? '', /connection refused; again in 0.5 s/)
  })

  test('a filter shows what has its words, and the city around it', () => {
    assert.deepEqual(
      rowsOf(view({ filter: 'AL-A1' })).map(({ key }) => key),
      ['alpha', 'alpha s-busy'],
    )
    assert.equal(rowsOf(view({ filter: 'beta' })).length, 1)
    assert.match(drawn(80, 12, { filter: 'zzz' }).join('\n'), /nothing has "zzz"; escape shows everything/)
  })

  test('lines are as many as rows and no wider than columns, whatever is in them', () => {
    const text = fc.string({ unit: 'grapheme', maxLength: 30 })
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 220 }),
        fc.integer({ min: 1, max: 60 }),
        fc.array(text, { maxLength: 40 }),
        fc.nat(50),
        (columns, rows, names, at) => {
          const sessions = names.map((name, index) => session(`${name}${index}`, { reason: name, running: false }))
          const questions = names.map((name, index) => ({
            ...question('alpha', `${name}${index}`),
            prompt: name,
            request_id: name,
          }))
          const fleet = {
            ...view().fleet,
            cities: [
              city('alpha', {
                sessions,
                questions,
                needs: names.map((name, index) => need('alpha', `${name}${index}`)),
              }),
            ],
          }
          for (const pane of ['sessions', 'needs', 'events'] as const) {
            const { lines } = draw(view({ fleet, pane, selected: { key: '', at }, color: true }), { columns, rows })
            assert.equal(lines.length, rows)
            for (const line of plain(lines)) assert.ok(widthOf(line) <= columns, `${columns}: ${JSON.stringify(line)}`)
          }
        },
      ),
      { numRuns: 200 },
    )
  })
})

suite('keys of the live view', () => {
  const after = (of: View, ...keys: readonly string[]): ReturnType<typeof press> & { readonly view: View } => {
    let now = of
    let last: ReturnType<typeof press> = {}
    for (const one of keys) {
      last = press(now, [...one].length === 1 ? { key: 'text', text: one } : nameless(one))
      now = { ...now, ...last.change }
    }
    return { ...last, view: now }
  }
  const nameless = (key: string): Key =>
    key === 'enter' || key === 'escape' || key === 'tab' || key === 'down' || key === 'end' ? { key } : assert.fail(key)

  test('they move within the rows', () => {
    assert.equal(after(view(), 'j').view.selected.key, 'alpha s-asker')
    assert.equal(after(view(), 'down', 'down', 'k').view.selected.key, 'alpha s-asker')
    assert.equal(after(view(), 'end', 'j').view.selected.key, 'gamma')
    assert.equal(after(view(), 'tab').view.pane, 'needs')
    assert.equal(after(view(), 'tab', 'tab', 'tab').view.pane, 'sessions')
  })

  test('a session that went away leaves the selection where it was', () => {
    const at = after(view(), 'j', 'j').view
    const less = {
      ...at.fleet,
      cities: [{ ...ALPHA, sessions: ALPHA.sessions.filter(({ alias }) => alias !== 'busy') }],
    }
    assert.equal(after({ ...at, fleet: less }, 'a').action?.kind, 'attach')
  })

  test('a number answers the question that is selected, and nothing else', () => {
    const { action } = after(view(), 'j', '2')
    assert.ok(action?.kind === 'answer' && action.word === '2' && action.isKey && action.question.request_id === 'r1')
    assert.equal(after(view(), 'j', '3').action, undefined)
    assert.match(after(view(), 'j', '3').view.note ?? '', /there is no choice 3/)
    assert.equal(after(view(), 'j', 'j', '1').action, undefined)
    assert.deepEqual(press(view({ selected: { key: 'alpha s-asker', at: 1 } }), { key: 'paste', text: '1' }), {})
  })

  test('an answer, a message and a filter are typed', () => {
    const { action } = after(view(), 'j', 'r', 'n', 'o', 'enter')
    assert.ok(action?.kind === 'answer' && action.word === 'no' && !action.isKey)
    const message = after(view(), 'j', 'j', 'm', 'q', '?', 'enter').action
    assert.ok(message?.kind === 'say' && message.text === 'q?' && message.spot.id === 's-busy')
    assert.equal(after(view(), 'j', 'm', 'x', 'escape').view.entry, undefined)
    assert.equal(after(view(), '/', 'b', 'u').view.filter, 'bu')
    assert.equal(after(view(), '/', 'b', 'enter', 'escape').view.filter, '')
  })

  test('one city, and all again', () => {
    const one = after(view(), 'end', 'c')
    assert.equal(one.view.city, 'gamma')
    assert.equal(after(one.view, 'c').view.city, undefined)
  })
})
