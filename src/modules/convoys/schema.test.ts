import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test } from 'node:test'
import { ManualClock } from '../../../test/support/manual-clock.ts'
import { fc } from '../../../test/support/random.ts'
import { temporaryDirectory } from '../../../test/support/temporary.ts'
import type { Tx } from '../../kernel/database.ts'
import { migrationsOf } from '../../kernel/database.ts'
import { openStore, STORE_SCHEMA, type Store } from '../../kernel/store.ts'
import { CONVOYS_SCHEMA } from './schema.ts'

/** The tables of beads as far as progress depends on them. */
const BEADS = `
CREATE TABLE beads (n INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, status TEXT NOT NULL, issue_type TEXT NOT NULL, created_at INTEGER) STRICT;
CREATE TABLE bead_deps (issue_id TEXT NOT NULL, depends_on_id TEXT NOT NULL, type TEXT NOT NULL,
  PRIMARY KEY (issue_id, depends_on_id, type)) STRICT, WITHOUT ROWID;
CREATE INDEX bead_deps_target ON bead_deps (depends_on_id, type, issue_id);
`
const IDS = ['c-1', 'c-2', 'c-3', 'b-1', 'b-2', 'b-3']
const STATUSES = ['open', 'in_progress', 'closed']
const type = (id: string) => (id.startsWith('c') ? 'convoy' : 'task')

function open(directory: string): Store {
  return openStore({
    path: join(directory, 'city.db'),
    migrations: migrationsOf('test', STORE_SCHEMA, BEADS, CONVOYS_SCHEMA),
    owner: 'a test',
    clock: new ManualClock(),
  })
}

const make = (tx: Tx, id: string, status = 'open') =>
  tx.run('INSERT OR IGNORE INTO beads (id, status, issue_type) VALUES (?, ?, ?)', id, status, type(id))
const move = (tx: Tx, id: string, status: string) => tx.run('UPDATE beads SET status = ? WHERE id = ?', status, id)
/** The store of beads refuses an edge of a bead to itself. */
const link = (tx: Tx, from: string, to: string, kind = 'tracks') =>
  from !== to && tx.run('INSERT OR IGNORE INTO bead_deps VALUES (?, ?, ?)', from, to, kind)
const unlink = (tx: Tx, from: string, to: string) =>
  tx.run('DELETE FROM bead_deps WHERE issue_id = ? AND depends_on_id = ?', from, to)
function remove(tx: Tx, id: string, edgesFirst: boolean): void {
  if (!edgesFirst) tx.run('DELETE FROM beads WHERE id = ?', id)
  tx.run('DELETE FROM bead_deps WHERE issue_id = ? OR depends_on_id = ?', id, id)
  if (edgesFirst) tx.run('DELETE FROM beads WHERE id = ?', id)
}

const due = (store: Store) => store.db.all('SELECT id FROM convoys WHERE due = 1 ORDER BY id').map(({ id }) => id)
const counted = (store: Store) =>
  store.db.all('SELECT id, total, closed FROM convoys WHERE total > 0 OR closed <> 0 ORDER BY id')
const plain = (store: Store) =>
  store.db.all(`SELECT m.convoy AS id, count(*) AS total, count(*) FILTER (WHERE b.status = 'closed') AS closed FROM (
      SELECT issue_id AS convoy, depends_on_id AS member FROM bead_deps WHERE type = 'tracks'
      UNION SELECT depends_on_id, issue_id FROM bead_deps WHERE type = 'parent-child') AS m
    LEFT JOIN beads AS b ON b.id = m.member GROUP BY m.convoy ORDER BY id`)
const complete = (store: Store) =>
  store.db
    .all(
      `SELECT c.id FROM convoys AS c JOIN beads AS b ON b.id = c.id
       WHERE c.total > 0 AND c.closed = c.total AND b.issue_type = 'convoy' AND b.status <> 'closed' ORDER BY c.id`,
    )
    .map(({ id }) => id)

const id = fc.constantFrom(...IDS)
const step = fc.oneof(
  fc.tuple(fc.constant('make' as const), id, fc.constantFrom(...STATUSES)),
  fc.tuple(fc.constant('move' as const), id, fc.constantFrom(...STATUSES)),
  fc.tuple(fc.constant('link' as const), id, id),
  fc.tuple(fc.constant('contain' as const), id, id),
  fc.tuple(fc.constant('relate' as const), id, id),
  fc.tuple(fc.constant('unlink' as const), id, id),
  fc.tuple(fc.constant('retype' as const), id, id),
  fc.tuple(fc.constant('remove' as const), id, fc.constantFrom('edges', 'bead')),
)

test('whatever happens to beads and edges, the kept progress is what counting gives, and only complete convoys are due', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 60 }), async (steps) => {
      using directory = temporaryDirectory()
      const store = open(directory.path)
      try {
        for (const [what, one, other] of steps) {
          await store.db.write((tx) => {
            if (what === 'make') make(tx, one, other)
            else if (what === 'move') move(tx, one, other)
            else if (what === 'link') link(tx, one, other)
            else if (what === 'contain') link(tx, one, other, 'parent-child')
            else if (what === 'relate') link(tx, one, other, 'relates-to')
            else if (what === 'unlink') unlink(tx, one, other)
            else if (what === 'remove') remove(tx, one, other === 'edges')
            else
              tx.run(
                `UPDATE OR IGNORE bead_deps SET type = CASE type
                   WHEN 'tracks' THEN 'relates-to' WHEN 'relates-to' THEN 'parent-child' ELSE 'tracks' END
                 WHERE issue_id = ? AND depends_on_id = ?`,
                one,
                other,
              )
          })
          assert.deepEqual(counted(store), plain(store))
          const all = complete(store)
          assert.deepEqual(
            due(store).filter((one) => !all.includes(one)),
            [],
          )
        }
      } finally {
        store.db.close()
      }
    }),
    { numRuns: 60 },
  )
})

test('a convoy is due when its last open member is closed or goes, and not for members that were closed when they came', async () => {
  using directory = temporaryDirectory()
  const store = open(directory.path)
  const write = (change: (tx: Tx) => unknown) => store.db.write((tx) => void change(tx))
  try {
    await write((tx) => [make(tx, 'c-1'), make(tx, 'b-1', 'closed'), make(tx, 'b-2'), make(tx, 'b-3')])
    await write((tx) => link(tx, 'c-1', 'b-1'))
    assert.deepEqual(due(store), [], 'nothing was closed in it')
    await write((tx) => [link(tx, 'c-1', 'b-2'), link(tx, 'c-1', 'b-3')])
    await write((tx) => move(tx, 'b-2', 'closed'))
    assert.deepEqual(due(store), [])
    await write((tx) => unlink(tx, 'c-1', 'b-3'))
    assert.deepEqual(due(store), ['c-1'], 'the last open member went')
    await write((tx) => move(tx, 'b-2', 'open'))
    assert.deepEqual(due(store), [])
    await write((tx) => move(tx, 'b-2', 'closed'))
    assert.deepEqual(due(store), ['c-1'], 'the last open member was closed')
    await write((tx) => move(tx, 'c-1', 'closed'))
    assert.deepEqual(due(store), [], 'it is closed')
    await write((tx) => move(tx, 'c-1', 'open'))
    assert.deepEqual(due(store), [], 'somebody wanted it open')
    await write((tx) => [unlink(tx, 'c-1', 'b-1'), unlink(tx, 'c-1', 'b-2')])
    assert.deepEqual(due(store), [], 'an empty one is not complete')
  } finally {
    store.db.close()
  }
})

test('a member counts once, whether it is tracked, contained or both, and its end reaches every convoy that has it', async () => {
  using directory = temporaryDirectory()
  const store = open(directory.path)
  try {
    await store.db.write((tx) => {
      for (const one of IDS) make(tx, one, one === 'b-1' ? 'closed' : 'open')
      link(tx, 'c-1', 'b-1')
      link(tx, 'b-1', 'c-1', 'parent-child')
      link(tx, 'b-2', 'c-1', 'parent-child')
      link(tx, 'b-3', 'c-2', 'parent-child')
      link(tx, 'c-3', 'b-2')
    })
    assert.deepEqual(counted(store), [
      { id: 'c-1', total: 2, closed: 1 },
      { id: 'c-2', total: 1, closed: 0 },
      { id: 'c-3', total: 1, closed: 0 },
    ])
    await store.db.write((tx) => void move(tx, 'b-2', 'closed'))
    assert.deepEqual(due(store), ['c-1', 'c-3'])
  } finally {
    store.db.close()
  }
})
