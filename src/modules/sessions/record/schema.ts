/**
 * The session store: tables in `city.db` (sheet 04; decisions 51–73). Times are milliseconds since the epoch.
 *
 * `sessions.generation` and `token` are who a process belongs to; they commit before it is started (S1 in store.ts).
 * `process` is 1 from that commit until the process is known to be gone: what has 1 is adopted after a restart of ours.
 * `access_hash` is that of the token that its process speaks to the API with, `access_api` what that lets it do (access.ts).
 * Columns that end in `_json` hold JSON; everything else is the word of the wire.
 */
const FIRST = `
CREATE TABLE sessions (
  id TEXT PRIMARY KEY,
  kind TEXT NOT NULL,
  template TEXT NOT NULL,
  origin TEXT NOT NULL,
  named TEXT,
  pool TEXT,
  agent TEXT NOT NULL,
  title TEXT NOT NULL,
  alias TEXT,
  session_name TEXT NOT NULL,
  provider TEXT NOT NULL,
  runtime TEXT NOT NULL,
  rig TEXT,
  work_dir TEXT,
  project_id TEXT,
  options_json TEXT NOT NULL DEFAULT '{}',
  metadata_json TEXT NOT NULL DEFAULT '{}',
  state TEXT NOT NULL,
  desired TEXT NOT NULL,
  reason TEXT,
  state_since INTEGER NOT NULL,
  deadline INTEGER,
  retry_at INTEGER,
  pinned INTEGER NOT NULL DEFAULT 0,
  fresh INTEGER NOT NULL DEFAULT 0,
  generation INTEGER NOT NULL DEFAULT 0,
  continuation_epoch INTEGER NOT NULL DEFAULT 1,
  token TEXT,
  access_hash TEXT,
  access_api TEXT,
  process INTEGER NOT NULL DEFAULT 0,
  pid INTEGER,
  launch_json TEXT,
  fingerprints_json TEXT,
  conversation_id TEXT,
  last_woke_at INTEGER,
  lived_at INTEGER,
  last_active INTEGER,
  last_nudge_delivered_at INTEGER,
  heartbeat_at INTEGER,
  max_age_at INTEGER,
  idle_defers INTEGER NOT NULL DEFAULT 0,
  attempts INTEGER NOT NULL DEFAULT 0,
  rapid_crashes INTEGER NOT NULL DEFAULT 0,
  churn INTEGER NOT NULL DEFAULT 0,
  crashes_json TEXT NOT NULL DEFAULT '[]',
  quarantined_until INTEGER,
  last_exit_json TEXT,
  drain_reason TEXT,
  drain_acked INTEGER NOT NULL DEFAULT 0,
  deliveries INTEGER NOT NULL DEFAULT 0,
  queued INTEGER NOT NULL DEFAULT 0,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  closed_at INTEGER,
  revision INTEGER NOT NULL DEFAULT 1
) STRICT;
CREATE INDEX sessions_newest ON sessions (created_at DESC, id DESC);
CREATE INDEX sessions_open ON sessions (created_at DESC, id DESC) WHERE state <> 'closed';
CREATE INDEX sessions_state ON sessions (state, created_at DESC, id DESC);
CREATE INDEX sessions_template ON sessions (template, created_at DESC, id DESC);
CREATE INDEX sessions_agent ON sessions (agent);
CREATE INDEX sessions_alias ON sessions (alias, created_at DESC) WHERE alias IS NOT NULL;
CREATE INDEX sessions_name ON sessions (session_name, created_at DESC);
CREATE INDEX sessions_access ON sessions (access_hash) WHERE process = 1 AND access_hash IS NOT NULL;
-- One open session per handle, per runtime name, per configured identity.
CREATE UNIQUE INDEX sessions_alias_open ON sessions (alias) WHERE alias IS NOT NULL AND state <> 'closed';
CREATE UNIQUE INDEX sessions_name_open ON sessions (session_name) WHERE state <> 'closed';
CREATE UNIQUE INDEX sessions_named_open ON sessions (named) WHERE named IS NOT NULL AND state <> 'closed';

-- One durable queue per session (decision 57). \`seq\` counts per session and is the order of typing; \`generation\` and
-- \`end_offset\` say where in which output the text was typed. \`request_open\`: its 202 still owes a terminal event.
-- \`with_launch\`: it may go into the command line of a start instead of being typed. \`eager\`: typed also in a turn.
-- \`wakes\`: a sleeping session is started for it. \`turn_started_at\`: since when the turn of it is under way whose end is
-- still to be told (turns.ts).
CREATE TABLE session_deliveries (
  id TEXT PRIMARY KEY,
  session_id TEXT NOT NULL,
  seq INTEGER NOT NULL,
  source TEXT NOT NULL,
  intent TEXT NOT NULL,
  state TEXT NOT NULL,
  text TEXT NOT NULL,
  request_id TEXT,
  request_open INTEGER NOT NULL DEFAULT 0,
  with_launch INTEGER NOT NULL DEFAULT 0,
  eager INTEGER NOT NULL DEFAULT 0,
  wakes INTEGER NOT NULL DEFAULT 1,
  attempts INTEGER NOT NULL DEFAULT 0,
  generation INTEGER,
  end_offset INTEGER,
  turn_started_at INTEGER,
  error_code TEXT,
  error_message TEXT,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  finished_at INTEGER,
  expires_at INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX session_deliveries_order ON session_deliveries (session_id, seq);
CREATE INDEX session_deliveries_waiting ON session_deliveries (session_id, seq) WHERE state IN ('queued', 'delivering');
CREATE INDEX session_deliveries_expiry ON session_deliveries (expires_at) WHERE state = 'queued';
CREATE INDEX session_deliveries_request ON session_deliveries (request_id) WHERE request_id IS NOT NULL;
CREATE INDEX session_deliveries_turns ON session_deliveries (session_id, seq) WHERE turn_started_at IS NOT NULL;

-- A session that waits for beads to close (sheet 04 §4.11).
CREATE TABLE session_waits (
  id TEXT PRIMARY KEY,
  session_id TEXT NOT NULL,
  state TEXT NOT NULL,
  dep_ids_json TEXT NOT NULL,
  dep_mode TEXT NOT NULL,
  note TEXT,
  delivery_id TEXT,
  created_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL,
  finished_at INTEGER
) STRICT;
CREATE INDEX session_waits_newest ON session_waits (created_at DESC, id DESC);
CREATE INDEX session_waits_session ON session_waits (session_id, created_at DESC, id DESC);
CREATE INDEX session_waits_pending ON session_waits (expires_at) WHERE state = 'pending';
CREATE TABLE session_wait_deps (
  bead TEXT NOT NULL,
  wait TEXT NOT NULL,
  PRIMARY KEY (bead, wait)
) STRICT, WITHOUT ROWID;
`

/** It was never counted: how long assigned work puts a sleep off is a time now. */
const SECOND = 'ALTER TABLE sessions DROP COLUMN idle_defers'

/** Why a session is started anew whose process ran in a way that there is no more. */
export const RUNTIME_REMOVED = 'runtime-removed'

/** Terminals are held by hosts alone: who ran under tmux is a `subprocess` from its next start on. */
const THIRD = `
UPDATE sessions SET reason = '${RUNTIME_REMOVED}'
WHERE runtime = 'tmux' AND process = 1 AND state IN ('creating', 'active', 'draining');
UPDATE sessions SET runtime = 'subprocess' WHERE runtime = 'tmux';
`

/** What harnesses tell, and what was decided about their tools. */
const REPORTED = `
ALTER TABLE sessions ADD COLUMN titled INTEGER NOT NULL DEFAULT 0;
ALTER TABLE sessions ADD COLUMN reported_model TEXT;
ALTER TABLE sessions ADD COLUMN log_path TEXT;
-- Whoever asked, and lost the answer, asks again and is told the same. Gone with the run.
CREATE TABLE session_permissions (
  session_id TEXT NOT NULL,
  generation INTEGER NOT NULL,
  request_id TEXT NOT NULL,
  decision TEXT NOT NULL,
  reason TEXT,
  by TEXT NOT NULL,
  at INTEGER NOT NULL,
  PRIMARY KEY (session_id, generation, request_id)
) STRICT, WITHOUT ROWID;
`

/** What an agent offers, where a fork comes from, variables of one session; what goes with a message. */
const OFFERED = `
ALTER TABLE sessions ADD COLUMN offers_json TEXT;
ALTER TABLE sessions ADD COLUMN fork_of TEXT;
ALTER TABLE sessions ADD COLUMN env_json TEXT NOT NULL DEFAULT '{}';
-- \`data\` is gone when the delivery has ended; \`path\` is that of a file in the work directory, which the agent reads itself.
CREATE TABLE session_attachments (
  delivery_id TEXT NOT NULL,
  position INTEGER NOT NULL,
  name TEXT NOT NULL,
  mime_type TEXT,
  size INTEGER NOT NULL,
  path TEXT,
  data BLOB,
  PRIMARY KEY (delivery_id, position)
) STRICT, WITHOUT ROWID;
`

/** Where a session works was its agent's business alone. */
const ISOLATED = 'ALTER TABLE sessions ADD COLUMN isolation TEXT;'

/** The city looks for texts that have had their time. */
const AGED = "CREATE INDEX session_deliveries_texts ON session_deliveries (finished_at) WHERE text <> ''"

/** What its provider limits. */
const LIMITS = `
ALTER TABLE sessions ADD COLUMN limited_until INTEGER;
ALTER TABLE sessions ADD COLUMN limited_at INTEGER;
ALTER TABLE sessions ADD COLUMN limit_source TEXT;
ALTER TABLE sessions ADD COLUMN limit_message TEXT;
`

/** What sessions were called before: mail and paths still find them. */
const RENAMED = `
CREATE TABLE session_former_aliases (
  alias TEXT NOT NULL,
  session_id TEXT NOT NULL,
  PRIMARY KEY (alias, session_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX session_former_aliases_session ON session_former_aliases (session_id);
`

/**
 * Whom mail and chat are to be told of (digests.ts). `delivery_id`: what is queued for it; `again`: asked for once more while
 * that was being typed; `retry_at`: not before, its last try failed.
 */
const DIGESTS = `
CREATE TABLE session_digests (
  mailbox TEXT NOT NULL,
  source TEXT NOT NULL,
  reference TEXT NOT NULL,
  wakes INTEGER NOT NULL,
  again INTEGER NOT NULL DEFAULT 0,
  delivery_id TEXT,
  failures INTEGER NOT NULL DEFAULT 0,
  retry_at INTEGER,
  PRIMARY KEY (mailbox, source, reference)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX session_digests_delivery ON session_digests (delivery_id) WHERE delivery_id IS NOT NULL;
CREATE INDEX session_digests_open ON session_digests (retry_at) WHERE delivery_id IS NULL;
`

/** Who said it, and the line in front of it by which a model can tell. */
const SENDERS = `
ALTER TABLE session_deliveries ADD COLUMN sender_kind TEXT;
ALTER TABLE session_deliveries ADD COLUMN sender_name TEXT;
ALTER TABLE session_deliveries ADD COLUMN sender_session TEXT;
ALTER TABLE session_deliveries ADD COLUMN frame TEXT NOT NULL DEFAULT '';
`

/** Who says that the program took what was typed. */
const ACKNOWLEDGED = 'ALTER TABLE session_deliveries ADD COLUMN acknowledged_by TEXT'

/** Each step once and for ever: a store of any age runs those that it lacks. */
export const SESSIONS_SCHEMA = [
  FIRST,
  SECOND,
  THIRD,
  REPORTED,
  OFFERED,
  ISOLATED,
  AGED,
  LIMITS,
  RENAMED,
  DIGESTS,
  SENDERS,
  ACKNOWLEDGED,
] as const
