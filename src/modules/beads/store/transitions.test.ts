import assert from 'node:assert/strict'
import { test } from 'node:test'
import { BEAD_STATUSES } from '../../../contract/beads.ts'
import type { BeadRecord } from './record.ts'
import { claimRefusal, consequences, isAllowed } from './transitions.ts'

const RECORD: BeadRecord = {
  n: 1,
  id: 'al-1',
  title: 'one',
  status: 'open',
  issue_type: 'task',
  priority: null,
  created_at: 1,
  updated_at: 1,
  closed_at: null,
  close_reason: null,
  assignee: null,
  from: null,
  parent: null,
  ref: null,
  rig: '',
  description: null,
  ephemeral: false,
  no_history: false,
  defer_until: null,
  routed_to: null,
  root_bead_id: null,
  outcome: null,
  output_json: null,
  failure_class: null,
  failure_reason: null,
  attempt: null,
  session_id: null,
  session_name: null,
  work_branch: null,
  work_commit: null,
  lease_ms: null,
  lease_expires_at: null,
  needs: null,
  interchange: null,
  revision: 1,
  blockers: 0,
  labels: [],
  metadata: {},
  dependencies: [],
}
const NOW = 5_000

test('every status leads to every other, but from closed there is no way to in_progress', () => {
  for (const from of BEAD_STATUSES) {
    for (const to of BEAD_STATUSES)
      assert.equal(isAllowed(from, to), !(from === 'closed' && to === 'in_progress'), `${from} → ${to}`)
  }
})

const claimed = { ...RECORD, status: 'in_progress', assignee: 'ann', session_id: 's', session_name: 'n' } as const
const leased = { ...claimed, lease_ms: 100, lease_expires_at: 900 } as const
const closed = {
  ...RECORD,
  status: 'closed',
  assignee: 'ann',
  closed_at: 3,
  close_reason: 'done',
  outcome: 'pass',
} as const
const NO_LEASE = { lease_ms: null, lease_expires_at: null }

const TABLE: readonly [
  name: string,
  before: BeadRecord,
  change: Parameters<typeof consequences>[1],
  expected: object,
][] = [
  ['closing records when, and ends the lease', leased, { status: 'closed' }, { ...NO_LEASE, closed_at: NOW }],
  ['closing what nobody claimed records when', RECORD, { status: 'closed' }, { ...NO_LEASE, closed_at: NOW }],
  ['closing again changes nothing', closed, { status: 'closed' }, {}],
  [
    'reopening forgets how it ended and who had it',
    closed,
    { status: 'open' },
    {
      ...NO_LEASE,
      closed_at: null,
      close_reason: null,
      outcome: null,
      output_json: null,
      failure_class: null,
      failure_reason: null,
      session_id: null,
      session_name: null,
      assignee: null,
    },
  ],
  [
    'giving back ends lease and session; whoever does it says whose it is then',
    leased,
    { status: 'open' },
    { ...NO_LEASE, session_id: null, session_name: null },
  ],
  ['starting without a claim makes no lease', RECORD, { status: 'in_progress' }, {}],
  [
    'a hand-over keeps the lease, in full, and not the session',
    leased,
    { assignee: 'bob' },
    { session_id: null, session_name: null, lease_expires_at: NOW + 100 },
  ],
  [
    'taken from everybody it has no lease',
    leased,
    { assignee: null },
    { session_id: null, session_name: null, ...NO_LEASE },
  ],
  ['a hand-over of what has no lease makes none', claimed, { assignee: 'bob' }, {}],
  ['the same assignee is no hand-over', leased, { assignee: 'ann' }, {}],
]
for (const [name, before, change, expected] of TABLE)
  test(name, () => assert.deepEqual(consequences(before, change, NOW), expected))

test('a bead can be claimed by whoever has it, and by anybody while nobody has it, but not once it is closed', () => {
  const by = (assignee: string) => ({ assignee, session_id: undefined, isOwnName: false })
  assert.equal(claimRefusal(RECORD, by('ann')), undefined)
  assert.equal(claimRefusal(claimed, by('ann')), undefined)
  assert.equal(claimRefusal({ ...claimed, assignee: null }, by('bob')), undefined)
  assert.equal(claimRefusal(claimed, by('bob')), 'held')
  assert.equal(claimRefusal({ ...RECORD, assignee: 'ann' }, by('bob')), 'held')
  assert.equal(claimRefusal(closed, by('ann')), 'closed')
})

test('sessions that share a name do not take work from each other while its lease lasts', () => {
  const held = { ...leased, assignee: 'pool', session_id: 's1' }
  const by = (session_id: string | undefined, isOwnName = false) => ({ assignee: 'pool', session_id, isOwnName })
  assert.equal(claimRefusal(held, by('s2')), 'held-elsewhere')
  assert.equal(claimRefusal(held, by('s1')), undefined)
  assert.equal(claimRefusal(held, by(undefined)), undefined)
  assert.equal(claimRefusal(held, by('s2', true)), undefined)
  assert.equal(claimRefusal({ ...held, session_id: null }, by('s2')), undefined)
  assert.equal(claimRefusal({ ...held, ...NO_LEASE }, by('s2')), undefined)
})
