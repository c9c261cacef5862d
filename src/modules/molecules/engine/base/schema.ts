/**
 * Tables of molecules in `city.db` (decisions 89–91). Times are milliseconds since the epoch.
 *
 * S1  Rows of steps have their molecule in their number: `molecule × 16384 + k`. The row with k = 0 is the molecule as the
 *     list of its first steps. So a molecule is a range of the table, and 10,000 rows fit into it.
 * S2  `unsettled` is the number of needs that are not settled, `open` the number of children that are not, `blocked` the
 *     number of needs that failed for good: a change reads and writes what depends on it and nothing else.
 * S3  A plan is stored once for all molecules that run by it, under its SHA-256; it goes with the last of them.
 * S4  `molecule_counts` says how many molecules there are of each combination that there is.
 */

/** Rows of one molecule have numbers from `molecule × ROWS_PER_MOLECULE` on. */
export const ROWS_PER_MOLECULE = 16_384

const COUNTED = ['status', 'formula', 'rig', 'target']
const all = (row: 'new' | 'old') => COUNTED.map((column) => `${column} = ${row}.${column}`).join(' AND ')
const came = `
  INSERT INTO molecule_counts (${COUNTED.join(', ')}, molecules) VALUES (${COUNTED.map((name) => `new.${name}`).join(', ')}, 1)
    ON CONFLICT DO UPDATE SET molecules = molecules + 1;`
const went = `
  UPDATE molecule_counts SET molecules = molecules - 1 WHERE ${all('old')};
  DELETE FROM molecule_counts WHERE ${all('old')} AND molecules = 0;`
const differs = COUNTED.map((name) => `new.${name} IS NOT old.${name}`).join(' OR ')

const FIRST = `
CREATE TABLE molecule_plans (
  hash TEXT PRIMARY KEY,
  plan TEXT NOT NULL,
  molecules INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE molecules (
  n INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL UNIQUE,
  formula TEXT NOT NULL,
  formula_hash TEXT NOT NULL,
  plan TEXT NOT NULL,
  title TEXT NOT NULL,
  status TEXT NOT NULL,
  rig TEXT NOT NULL DEFAULT '',
  target TEXT NOT NULL DEFAULT '',
  bead TEXT,
  order_name TEXT,
  order_run_id TEXT,
  vars TEXT NOT NULL,
  failure TEXT,
  warnings TEXT,
  actor TEXT NOT NULL,
  keep_ms INTEGER,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  closed_at INTEGER,
  expires_at INTEGER,
  revision INTEGER NOT NULL DEFAULT 1,
  -- Events up to here are older than it.
  since_seq INTEGER NOT NULL,
  begun INTEGER NOT NULL DEFAULT 0,
  -- Beads that somebody has, and execs that run.
  busy INTEGER NOT NULL DEFAULT 0,
  -- Rows that were ever made, which numbers them; and of work and gates that count: how many there are, and how they are.
  rows INTEGER NOT NULL,
  total INTEGER NOT NULL,
  active INTEGER NOT NULL DEFAULT 0,
  waiting INTEGER NOT NULL DEFAULT 0,
  completed INTEGER NOT NULL DEFAULT 0,
  failed INTEGER NOT NULL DEFAULT 0,
  skipped INTEGER NOT NULL DEFAULT 0,
  canceled INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE INDEX molecules_status ON molecules (status, n);
CREATE INDEX molecules_formula ON molecules (formula, n);
CREATE INDEX molecules_rig ON molecules (rig, n);
CREATE INDEX molecules_target ON molecules (target, n);
CREATE INDEX molecules_plan ON molecules (plan);
CREATE INDEX molecules_bead ON molecules (bead, n) WHERE bead IS NOT NULL;
CREATE INDEX molecules_order ON molecules (order_name, n) WHERE order_name IS NOT NULL;

CREATE TABLE molecule_counts (
  ${COUNTED.map((name) => `${name} TEXT NOT NULL`).join(', ')},
  molecules INTEGER NOT NULL,
  PRIMARY KEY (${COUNTED.join(', ')})
) STRICT, WITHOUT ROWID;
CREATE TRIGGER molecule_counted AFTER INSERT ON molecules BEGIN ${came}
END;
CREATE TRIGGER molecule_uncounted AFTER DELETE ON molecules BEGIN ${went}
END;
CREATE TRIGGER molecule_recounted AFTER UPDATE OF ${COUNTED.join(', ')} ON molecules WHEN ${differs} BEGIN ${went}${came}
END;

CREATE TABLE molecule_steps (
  id INTEGER PRIMARY KEY,
  -- The row whose list it is in; null for that of the molecule itself.
  parent INTEGER,
  -- Which step of the plan, counted through it; -1 for the molecule itself.
  node INTEGER NOT NULL,
  -- Of an item: which, from 1. 0 for a step.
  item_index INTEGER NOT NULL DEFAULT 0,
  path TEXT NOT NULL,
  phase TEXT NOT NULL,
  status TEXT NOT NULL,
  reason TEXT,
  superseded INTEGER NOT NULL DEFAULT 0,
  -- Its turn has come, but this write had enough to do (begin.ts).
  queued INTEGER NOT NULL DEFAULT 0,
  unsettled INTEGER NOT NULL DEFAULT 0,
  blocked INTEGER NOT NULL DEFAULT 0,
  open INTEGER NOT NULL DEFAULT 0,
  failures INTEGER NOT NULL DEFAULT 0,
  -- Items that run.
  running INTEGER NOT NULL DEFAULT 0,
  attempt INTEGER NOT NULL DEFAULT 0,
  -- Attempts before the last POST retry: they do not count.
  attempts_before INTEGER NOT NULL DEFAULT 0,
  -- Of this attempt: leases that were lost, runs of the check without a verdict.
  lost INTEGER NOT NULL DEFAULT 0,
  unjudged INTEGER NOT NULL DEFAULT 0,
  busy INTEGER NOT NULL DEFAULT 0,
  bead TEXT,
  exec TEXT,
  -- The question after the work.
  asked TEXT,
  event TEXT,
  event_match TEXT,
  title TEXT,
  item TEXT,
  -- Other items that have to be settled first, by index.
  item_needs TEXT,
  member TEXT,
  vars TEXT,
  output TEXT,
  failure TEXT,
  verdict TEXT,
  assignee TEXT,
  target TEXT,
  work_commit TEXT,
  last_error TEXT,
  due_at INTEGER,
  next_attempt_at INTEGER,
  started_at INTEGER,
  began_at INTEGER,
  finished_at INTEGER,
  since_seq INTEGER
) STRICT;
CREATE INDEX molecule_steps_list ON molecule_steps (parent, node) WHERE parent IS NOT NULL;
CREATE INDEX molecule_steps_bead ON molecule_steps (bead) WHERE bead IS NOT NULL;
CREATE INDEX molecule_steps_asked ON molecule_steps (asked) WHERE asked IS NOT NULL;
CREATE INDEX molecule_steps_exec ON molecule_steps (exec) WHERE exec IS NOT NULL;
CREATE INDEX molecule_steps_event ON molecule_steps (event) WHERE event IS NOT NULL;
CREATE INDEX molecule_steps_queued ON molecule_steps (id) WHERE queued = 1;

-- What came of each attempt.
CREATE TABLE molecule_attempts (
  step INTEGER NOT NULL,
  attempt INTEGER NOT NULL,
  outcome TEXT NOT NULL,
  bead TEXT,
  assignee TEXT,
  failure TEXT,
  verdict TEXT,
  output TEXT,
  started_at INTEGER,
  finished_at INTEGER NOT NULL,
  PRIMARY KEY (step, attempt)
) STRICT, WITHOUT ROWID;

-- Beads of steps, also of attempts that are over, and of questions: what is one may not be changed as others are.
CREATE TABLE molecule_beads (
  bead TEXT PRIMARY KEY,
  step INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX molecule_beads_step ON molecule_beads (step);

-- Beads that a live molecule drives: the one it is attached to, members that items have for themselves. Each has one driver.
CREATE TABLE molecule_drives (
  bead TEXT PRIMARY KEY,
  step INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX molecule_drives_step ON molecule_drives (step);

CREATE TABLE molecule_timers (
  step INTEGER NOT NULL,
  kind TEXT NOT NULL,
  due_at INTEGER NOT NULL,
  data TEXT,
  PRIMARY KEY (step, kind)
) STRICT, WITHOUT ROWID;
CREATE INDEX molecule_timers_due ON molecule_timers (due_at, step, kind);

-- Live molecules with gates that wait, or will wait, for events: the log keeps what is newer than the oldest of them.
CREATE TABLE molecule_listeners (
  molecule INTEGER PRIMARY KEY,
  since_seq INTEGER NOT NULL
) STRICT;
CREATE INDEX molecule_listeners_since ON molecule_listeners (since_seq);
`

/** When a timer was set: one that was set while the clock was ahead is brought back to earth by it. */
const SET_AT = `ALTER TABLE molecule_timers ADD COLUMN set_at INTEGER NOT NULL DEFAULT 0;`

/** Processor time that the texts of a molecule have used so far, in milliseconds. */
const TEXTS_MS = 'ALTER TABLE molecules ADD COLUMN texts_ms INTEGER NOT NULL DEFAULT 0;'

/** The steps of the tables of molecules; a released one stays as it is. */
export const MOLECULES_SCHEMA = [FIRST, SET_AT, TEXTS_MS] as const
