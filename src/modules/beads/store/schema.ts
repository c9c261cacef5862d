/**
 * The work store: tables of beads in `city.db` (sheet 03; decisions 42–50). Times are milliseconds since the epoch. The
 * columns of `beads` are those of `columns.ts`, and some that are worked out (`rows.ts`).
 *
 * Q1  `beads.blockers` is the number of scheduling edges whose target is not closed, dangling ones included; it is kept in
 *     the write that changes an edge or a status (but see shifts.ts), so that `ready` reads an index and nothing else. `workable` is 0 for types
 *     and labels that are never work (sheet 03 §1.3).
 *     `deferred` is 1 until its date has come: only such beads are compared with the time when work is looked for.
 * Q2  `beads.labels` is the set of its labels, sorted, as JSON: a bead is read, and a filter looks, without other rows.
 * Q3  `bead_counts` says how many beads there are of each combination that there is, in the write that changes a bead. A row
 *     without beads goes.
 * Q4  Indexes run upwards and are read backwards: what is new comes at their end, where it splits no page.
 */

const FIRST_FACTS = `created_at DESC, id DESC, status, issue_type, priority, assignee, rig, parent, routed_to, root_bead_id, ephemeral,
  blockers, workable, updated_at, closed_at, defer_until, "from", ref, outcome, attempt, session_id, labels`

const FIRST_COUNTED = ['status', 'issue_type', 'rig', 'priority']
const LIKE_NEW = FIRST_COUNTED.map((column) => `${column} IS new.${column}`).join(' AND ')
const LIKE_OLD = FIRST_COUNTED.map((column) => `${column} IS old.${column}`).join(' AND ')
const NEW = FIRST_COUNTED.map((column) => `new.${column}`).join(', ')
const DIFFERS = FIRST_COUNTED.map((column) => `new.${column} IS NOT old.${column}`).join(' OR ')

const beadCame = `
  INSERT INTO bead_counts (${FIRST_COUNTED.join(', ')}, beads) SELECT ${NEW}, 0
    WHERE NOT EXISTS (SELECT 1 FROM bead_counts WHERE ${LIKE_NEW});
  UPDATE bead_counts SET beads = beads + 1 WHERE ${LIKE_NEW};`
const beadWent = `
  UPDATE bead_counts SET beads = beads - 1 WHERE ${LIKE_OLD};
  DELETE FROM bead_counts WHERE ${LIKE_OLD} AND beads = 0;`

const FIRST = `
CREATE TABLE beads (
  n INTEGER PRIMARY KEY,
  id TEXT NOT NULL UNIQUE,
  title TEXT NOT NULL,
  status TEXT NOT NULL,
  issue_type TEXT NOT NULL,
  priority INTEGER,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  closed_at INTEGER,
  close_reason TEXT,
  assignee TEXT,
  "from" TEXT,
  parent TEXT,
  ref TEXT,
  rig TEXT NOT NULL DEFAULT '',
  description TEXT,
  ephemeral INTEGER NOT NULL DEFAULT 0,
  no_history INTEGER NOT NULL DEFAULT 0,
  defer_until INTEGER,
  revision INTEGER NOT NULL DEFAULT 1,
  blockers INTEGER NOT NULL DEFAULT 0,
  workable INTEGER NOT NULL DEFAULT 1,
  routed_to TEXT,
  root_bead_id TEXT,
  outcome TEXT,
  output_json TEXT,
  failure_class TEXT,
  failure_reason TEXT,
  attempt INTEGER,
  session_id TEXT,
  session_name TEXT,
  work_branch TEXT,
  work_commit TEXT,
  lease_ms INTEGER,
  lease_expires_at INTEGER,
  needs TEXT,
  metadata TEXT NOT NULL DEFAULT '{}',
  interchange TEXT,
  labels TEXT NOT NULL DEFAULT '[]'
) STRICT;
-- What lists look at, in their order: a filter reads one of these two from end to end and no row (modules/beads/query/filters.ts).
CREATE INDEX beads_facts ON beads (${FIRST_FACTS});
CREATE INDEX beads_live ON beads (${FIRST_FACTS}) WHERE status <> 'closed';
CREATE INDEX beads_type ON beads (issue_type, created_at DESC, id DESC);
CREATE INDEX beads_assignee ON beads (assignee, created_at DESC, id DESC) WHERE assignee IS NOT NULL;
CREATE INDEX beads_parent ON beads (parent, created_at, id) WHERE parent IS NOT NULL;
CREATE INDEX beads_root ON beads (root_bead_id) WHERE root_bead_id IS NOT NULL;
CREATE INDEX beads_updated ON beads (updated_at);
CREATE INDEX beads_reason ON beads (close_reason) WHERE close_reason IS NOT NULL;
CREATE INDEX beads_closed ON beads (closed_at) WHERE closed_at IS NOT NULL;
CREATE INDEX beads_lease ON beads (lease_expires_at) WHERE lease_expires_at IS NOT NULL;
CREATE INDEX beads_session ON beads (session_id) WHERE session_id IS NOT NULL AND status = 'in_progress';
-- Ready without a date, and what waits for its date.
CREATE INDEX beads_ready ON beads (coalesce(priority, 2), created_at, id)
  WHERE status = 'open' AND blockers = 0 AND workable = 1 AND defer_until IS NULL;
CREATE INDEX beads_deferred ON beads (defer_until)
  WHERE status = 'open' AND blockers = 0 AND workable = 1 AND defer_until IS NOT NULL;
-- Work of a pool, oldest first (sheet 03 §1.5), and work that was handed to somebody.
CREATE INDEX beads_routed ON beads (routed_to, created_at, id, issue_type, defer_until)
  WHERE status = 'open' AND blockers = 0 AND workable = 1 AND assignee IS NULL AND routed_to IS NOT NULL;
CREATE INDEX beads_assigned_open ON beads (assignee, coalesce(priority, 2), created_at, id)
  WHERE status <> 'closed' AND assignee IS NOT NULL;

CREATE TABLE bead_labels (
  label TEXT NOT NULL,
  n INTEGER NOT NULL,
  PRIMARY KEY (label, n)
) STRICT, WITHOUT ROWID;

CREATE TABLE bead_metadata (
  bead TEXT NOT NULL,
  key TEXT NOT NULL,
  value TEXT NOT NULL,
  PRIMARY KEY (bead, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX bead_metadata_key ON bead_metadata (key, value, bead);

-- One scheduling or informational edge per ordered pair, and a parent-child edge beside it (sheet 03 §2).
CREATE TABLE bead_deps (
  issue_id TEXT NOT NULL,
  depends_on_id TEXT NOT NULL,
  type TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  created_by TEXT,
  metadata TEXT,
  interchange TEXT,
  PRIMARY KEY (issue_id, depends_on_id, type)
) STRICT, WITHOUT ROWID;
CREATE INDEX bead_deps_target ON bead_deps (depends_on_id, type, issue_id);

CREATE TABLE bead_comments (
  id TEXT PRIMARY KEY,
  bead TEXT NOT NULL,
  author TEXT,
  text TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  interchange TEXT
) STRICT;
CREATE INDEX bead_comments_bead ON bead_comments (bead, created_at, id);

-- Words of open and closed beads alike, for q=; rowid = beads.n.
CREATE VIRTUAL TABLE bead_words USING fts5 (title, description, content = '', contentless_delete = 1, tokenize = 'unicode61 remove_diacritics 2');

-- Ids that were ever given out: an id is never used twice (sheet 03 §1.1).
CREATE TABLE bead_ids_gone (id TEXT PRIMARY KEY) STRICT, WITHOUT ROWID;

CREATE TABLE bead_counts (
  status TEXT NOT NULL,
  issue_type TEXT NOT NULL,
  rig TEXT NOT NULL,
  priority INTEGER,
  beads INTEGER NOT NULL
) STRICT;
CREATE INDEX bead_counts_of ON bead_counts (${FIRST_COUNTED.join(', ')});
CREATE TRIGGER bead_counted AFTER INSERT ON beads BEGIN ${beadCame}
END;
CREATE TRIGGER bead_uncounted AFTER DELETE ON beads BEGIN ${beadWent}
END;
CREATE TRIGGER bead_recounted AFTER UPDATE OF ${FIRST_COUNTED.join(', ')} ON beads WHEN ${DIFFERS} BEGIN ${beadWent}${beadCame}
END;
`

/** The columns that filters look at; labels come last, because they may be long. */
const FACTS = `created_at, id, status, issue_type, priority, assignee, rig, parent, routed_to, root_bead_id, ephemeral,
  blockers, workable, updated_at, closed_at, defer_until, "from", ref, outcome, attempt, session_id, labels`

const SECOND = `
DROP TRIGGER bead_counted;
DROP TRIGGER bead_uncounted;
DROP TRIGGER bead_recounted;
ALTER TABLE beads ADD COLUMN deferred INTEGER NOT NULL DEFAULT 0;
UPDATE beads SET deferred = 1 WHERE n IN (SELECT n FROM beads INDEXED BY beads_facts
  WHERE created_at IS NOT NULL AND defer_until > unixepoch() * 1000);
DROP INDEX beads_facts;
DROP INDEX beads_live;
DROP INDEX beads_type;
DROP INDEX beads_assignee;
DROP INDEX beads_ready;
DROP INDEX beads_deferred;
DROP TABLE bead_labels;
-- What lists look at, in their order: a filter reads one of these two and no row (modules/beads/query/filters.ts).
CREATE INDEX beads_facts ON beads (${FACTS});
CREATE INDEX beads_live ON beads (${FACTS}) WHERE status <> 'closed';
CREATE INDEX beads_type ON beads (issue_type, created_at, id);
CREATE INDEX beads_assignee ON beads (assignee) WHERE assignee IS NOT NULL;
-- Ready, as far as no date is in its way; the date is looked at because clocks can be set back.
CREATE INDEX beads_ready ON beads (coalesce(priority, 2), created_at, id, defer_until)
  WHERE status = 'open' AND blockers = 0 AND workable = 1 AND deferred = 0;
CREATE INDEX beads_deferred ON beads (defer_until, status, blockers, workable, coalesce(priority, 2), created_at, id)
  WHERE deferred = 1;
-- Words of open and closed beads alike, and their labels; rowid = beads.n. Indexed up to a number (words.ts).
DROP TABLE bead_words;
CREATE VIRTUAL TABLE bead_words USING fts5 (title, description, labels, content = '', contentless_delete = 1,
  tokenize = 'unicode61 remove_diacritics 2');
CREATE TABLE bead_words_upto (n INTEGER NOT NULL) STRICT;
INSERT INTO bead_words_upto VALUES (0);
`

/** What changes that take more than one write have still to do. */
const THIRD = `
-- Beads that closed or opened while some of what depends on them counts them as they were (shifts.ts).
CREATE TABLE bead_shifts (
  bead TEXT PRIMARY KEY,
  opens INTEGER NOT NULL,
  ranges TEXT NOT NULL,
  actor TEXT NOT NULL
) STRICT, WITHOUT ROWID;
-- How many beads a request to delete has deleted so far (work/removal.ts).
CREATE TABLE bead_removals (request TEXT PRIMARY KEY, deleted INTEGER NOT NULL) STRICT, WITHOUT ROWID;
`

/** What has been closed for longest, by type (work/expiry.ts). */
const FOURTH = `
CREATE INDEX beads_closed_type ON beads (issue_type, closed_at, id) WHERE closed_at IS NOT NULL;
`

/** The words themselves: which there are that begin in some way. It is a view of the index and stores nothing. */
const FIFTH = `
CREATE VIRTUAL TABLE bead_terms USING fts5vocab(bead_words, instance);
`

/** The steps of the store of beads; a released one stays as it is. */
export const BEADS_SCHEMA = [FIRST, SECOND, THIRD, FOURTH, FIFTH] as const
