import assert from 'node:assert/strict'
import { test } from 'node:test'
import { SessionCity } from '../../../../test/support/session-city.ts'
import { columnOf, FIELDS, newRecord, parseSession, sqlOf } from './record.ts'

const SAID = {
  id: 's-0123456789abcdef',
  kind: 'agent',
  template: 'coder',
  origin: 'manual',
  agent: 'coder',
  title: 'a title',
  session_name: 'coder',
  provider: 'shell',
  runtime: 'subprocess',
  state: 'asleep',
  desired: 'asleep',
  state_since: 1,
  created_at: 1,
  updated_at: 1,
} as const

test('the table of sessions has the columns that the record of columns says, as it says', async () => {
  await using city = new SessionCity()
  const stored = city.store.db
    .all('PRAGMA table_info(sessions)')
    .map(({ name, type, notnull, dflt_value: given }) => [
      String(name),
      [type, ...(notnull === 1 ? ['NOT NULL'] : []), ...(given === null ? [] : [`DEFAULT ${given}`])].join(' '),
    ])
  assert.deepEqual(
    Object.fromEntries(stored),
    Object.fromEntries(FIELDS.map((field) => [columnOf(field), sqlOf(field)])),
  )
})

test('a session is read as it was written, whatever of it was said', async () => {
  await using city = new SessionCity()
  const plain = newRecord(SAID)
  const full = newRecord({
    ...SAID,
    id: 's-fedcba9876543210',
    session_name: 'other',
    alias: 'a/b',
    access_api: 'read',
    options: { model: 'x' },
    metadata: { "it's": '"' },
    pinned: true,
    process: true,
    crashes: [1, 2],
    last_exit: { at: '2026-01-01T00:00:00Z', reason: 'exited', classification: 'exited', code: 0 },
  })
  for (const record of [plain, full]) {
    await city.store.db.write((tx) => city.sessions.store.insert(tx, record, { actor: 'test' }))
    assert.deepEqual(city.sessions.store.byId(record.id), record)
  }
})

test('a word in the store that is none of ours is not taken for one', async () => {
  await using city = new SessionCity()
  await city.store.db.write((tx) => {
    city.sessions.store.insert(tx, newRecord(SAID), { actor: 'test' })
    tx.run("UPDATE sessions SET runtime = 'carrier-pigeon'")
  })
  const row = city.store.db.get('SELECT * FROM sessions')
  assert.ok(row !== undefined)
  assert.throws(() => parseSession(row), /unknown value: carrier-pigeon/)
})
