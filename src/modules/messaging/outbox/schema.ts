/**
 * Tables of deliveries; what is said is in the entry of the transcript. Of a conversation one is `ready` or `flying`, the first that waits; the others are `behind` it. The
 * index keeps it so.
 */
export const OUTBOX_SCHEMA = `
CREATE TABLE outbox (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL UNIQUE,
  provider TEXT NOT NULL,
  account_id TEXT NOT NULL,
  transcript_id TEXT NOT NULL,
  sequence INTEGER NOT NULL,
  conversation_id TEXT NOT NULL,
  session_id TEXT,
  root INTEGER NOT NULL,
  state TEXT NOT NULL,
  attempts INTEGER NOT NULL DEFAULT 0,
  tries INTEGER NOT NULL DEFAULT 0,
  answered INTEGER NOT NULL DEFAULT 0,
  since INTEGER NOT NULL,
  next_at INTEGER NOT NULL,
  lease_until INTEGER,
  failure_kind TEXT,
  last_error TEXT,
  receipt_json TEXT,
  created_at INTEGER NOT NULL,
  settled_at INTEGER
) STRICT;
CREATE UNIQUE INDEX outbox_head ON outbox (transcript_id) WHERE state IN ('ready', 'flying');
CREATE INDEX outbox_behind ON outbox (transcript_id, seq) WHERE state = 'behind';
CREATE INDEX outbox_ready ON outbox (provider, account_id, next_at, seq) WHERE state = 'ready';
CREATE INDEX outbox_leases ON outbox (lease_until) WHERE lease_until IS NOT NULL;
CREATE INDEX outbox_age ON outbox (since) WHERE state IN ('behind', 'ready');
CREATE INDEX outbox_settled ON outbox (state, settled_at) WHERE settled_at IS NOT NULL;
CREATE INDEX outbox_adapter ON outbox (provider, account_id, state, seq);
CREATE INDEX outbox_entry ON outbox (transcript_id, sequence);
`
