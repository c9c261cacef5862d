/**
 * Orders in the city's store. `order_states` has what is to be remembered of each, by its scoped name: it outlives edits of
 * the file, and a file that is gone. `order_runs` has a row for each run. Times are milliseconds.
 *
 * `since`: cron times until then are decided, or do not count. `seen_seq`: events until then are. `cooled_from`: start of the
 * last run. `failures` in a row, the last of which was at `failed_at`. `active`: whether it was on when it was last looked at.
 * `trigger`: what set it off then. `holds`: the check of its condition has passed, and the run of that is still to begin. `enabled`: what `enable` or `disable` said, where the files say otherwise.
 */
const ORDERS_SCHEMA = `
CREATE TABLE order_states (
  scoped TEXT PRIMARY KEY,
  enabled INTEGER,
  active INTEGER NOT NULL,
  gone INTEGER NOT NULL DEFAULT 0,
  trigger TEXT NOT NULL,
  since INTEGER NOT NULL,
  seen_seq INTEGER NOT NULL,
  cooled_from INTEGER,
  failures INTEGER NOT NULL DEFAULT 0,
  failed_at INTEGER,
  check_exec TEXT,
  holds INTEGER NOT NULL DEFAULT 0,
  checked_at INTEGER,
  evaluated_at INTEGER,
  error TEXT
) STRICT, WITHOUT ROWID;

CREATE TABLE order_runs (
  n INTEGER PRIMARY KEY,
  id TEXT NOT NULL UNIQUE,
  scoped TEXT NOT NULL,
  name TEXT NOT NULL,
  rig TEXT,
  action TEXT NOT NULL,
  trigger TEXT NOT NULL,
  source TEXT NOT NULL,
  reason TEXT NOT NULL,
  status TEXT NOT NULL,
  slot INTEGER,
  molecule_id TEXT,
  first_seq INTEGER,
  last_seq INTEGER,
  events INTEGER,
  vars_json TEXT,
  started_at INTEGER NOT NULL,
  finished_at INTEGER,
  exit_code INTEGER,
  signal TEXT,
  error TEXT,
  output TEXT,
  truncated INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE INDEX order_runs_newest ON order_runs (scoped, n);
CREATE INDEX order_runs_named ON order_runs (name, n);
CREATE INDEX order_runs_status ON order_runs (status, n);
CREATE INDEX order_runs_live ON order_runs (scoped) WHERE status = 'running';
CREATE UNIQUE INDEX order_runs_slot ON order_runs (scoped, slot) WHERE slot IS NOT NULL;
CREATE INDEX order_runs_molecule ON order_runs (molecule_id) WHERE molecule_id IS NOT NULL;
`

/** `order_outputs`: how much the runs wrote that is kept, in one row that follows them. */
const OUTPUTS_SCHEMA = `
CREATE INDEX order_runs_wrote ON order_runs (n) WHERE output IS NOT NULL;
CREATE INDEX order_runs_wrote_of ON order_runs (scoped, n, octet_length(output)) WHERE output IS NOT NULL;
CREATE TABLE order_outputs (bytes INTEGER NOT NULL) STRICT;
INSERT INTO order_outputs (bytes) SELECT coalesce(sum(octet_length(output)), 0) FROM order_runs;
CREATE TRIGGER order_output_changed AFTER UPDATE OF output ON order_runs BEGIN
  UPDATE order_outputs SET bytes = bytes + coalesce(octet_length(new.output), 0) - coalesce(octet_length(old.output), 0);
END;
CREATE TRIGGER order_output_gone AFTER DELETE ON order_runs WHEN old.output IS NOT NULL BEGIN
  UPDATE order_outputs SET bytes = bytes - octet_length(old.output);
END;
`

/**
 * `waiting`: its command waits for a free slot, since `queued_at`. `depth`: how many runs led to it, each by an event of the
 * one before. `refusals` in a row of what an order would begin for its events, the last of which was at `refused_at`.
 */
const QUEUED_SCHEMA = `
ALTER TABLE order_runs ADD COLUMN waiting INTEGER NOT NULL DEFAULT 0;
ALTER TABLE order_runs ADD COLUMN queued_at INTEGER;
ALTER TABLE order_runs ADD COLUMN depth INTEGER NOT NULL DEFAULT 0;
ALTER TABLE order_states ADD COLUMN refusals INTEGER NOT NULL DEFAULT 0;
ALTER TABLE order_states ADD COLUMN refused_at INTEGER;
`

/** The steps of the tables of orders; a released one stays as it is. */
export const ORDER_SCHEMAS = [ORDERS_SCHEMA, OUTPUTS_SCHEMA, QUEUED_SCHEMA] as const
